"""What a watch or a fleet watches: the columns of a stream, their public facts, and whose budget pays for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from wallflower.data import Schema
from wallflower.ledger import Declaration, Ledger
from wallflower.noise import Noise, words
from wallflower.queries.watch import Watch
from wallflower.queries.watch.claims import LiveStream
from wallflower.release import declaration_of, default_analyst, require_use
from wallflower.watching.payer import Memory, Payer
from wallflower.watching.rule import Rule, names_of

USUAL: Final = 1000  # what a plan on a stream reckons with, if its schema states no rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A query, and the stream that it is asked of."""

    dataset: str
    facts: Schema
    rule: Rule
    declared: Declaration | None

    @classmethod
    def of(cls, query: Watch, dataset: str, columns: Sequence[str] | None, schema: Schema | str | Path | None) -> Self:
        """Hold a query to what is public of the stream."""
        public = Schema.read(schema) if isinstance(schema, str | Path) else schema
        names = names_of(query, columns, public)
        facts = Schema.of(names) if public is None or public.columns is None else public.only(names)
        rule = Rule(query, facts)
        if query.season is not None:
            query.season.require_same(dataset, names)
        return cls(dataset=dataset, facts=facts, rule=rule, declared=declaration_of(dataset, public or Schema()))

    def payer(self, ledger: Ledger, state: Memory | None, *, analyst: str | None, anyway: bool | None) -> Payer:
        """Who pays for it, and remembers in `state`, if there is one."""
        query, facts, names = self.rule.query, self.facts, tuple(self.rule.columns)
        return Payer(
            query=query,
            claim=query.claim(LiveStream(columns=names, schema=facts)),
            declared=self.declared,
            dataset=self.dataset,
            analyst=analyst or default_analyst(),
            ledger=ledger,
            state=state,
            heed=lambda: require_use(query.plan(n=facts.rows or USUAL, dimension=len(names)), anyway=anyway),
        )


def new_holder(kind: str, noise: Noise) -> str:
    """A name for whoever holds an epoch, and the key of its charge unless another is given: no other ledger has it."""
    return f"{kind}-" + "".join(f"{word:016x}" for word in words(noise, 2).tolist())
