"""Which data sets hold the same records: keyed tags, in a table that can be erased.

The tags stand outside the chain of hashes. In rows that can never be deleted, a key that leaks would be an oracle on
records for ever; here `forget` ends it, as does deleting the key. The key is never in a ledger.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from wallflower.machine.heavy import sqlalchemy as sa

_REMEMBER: Final = "INSERT INTO fingerprints (dataset, kind, tag) VALUES (:dataset, :kind, :tag) ON CONFLICT DO NOTHING"
_ALIKE: Final = "SELECT DISTINCT dataset FROM fingerprints WHERE tag IN :tags AND dataset <> :dataset"
_STORED: Final = "SELECT kind, tag FROM fingerprints WHERE dataset = :dataset"
_KNOWN: Final = "SELECT count(*) FROM fingerprints WHERE dataset = :dataset AND tag IN :tags AND kind <> 'least'"
_SEEN: Final = "SELECT 1 FROM fingerprints WHERE dataset = :dataset LIMIT 1"
_FORGET: Final = "DELETE FROM fingerprints WHERE dataset = :dataset"


class Tags(Protocol):
    """What `wallflower.data.fingerprints` makes of a table, as much as a ledger needs to know of it."""

    @property
    def rows(self) -> str: ...

    @property
    def least(self) -> tuple[str, ...]: ...

    @property
    def source(self) -> str | None: ...

    def share(self, least: Iterable[str]) -> float:
        """How much the rows have in common with those of other tags, or 0 when it may be chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A data set with the same records, at least in part, or from the same source. For the steward's eyes only."""

    dataset: str
    share: float
    same_source: bool
    same_rows: bool


def remember(db: sa.Connection, dataset: str, fingerprint: Tags) -> None:
    """Add the tags of a data set to those of its earlier versions."""
    db.execute(
        sa.text(_REMEMBER), [{"dataset": dataset, "kind": kind, "tag": tag} for kind, tag in _pairs(fingerprint)]
    )


def is_seen(db: sa.Connection, dataset: str) -> bool:
    """Whether a data set was ever loaded."""
    return db.execute(sa.text(_SEEN), {"dataset": dataset}).first() is not None


def is_remembered(db: sa.Connection, dataset: str, fingerprint: Tags) -> bool:
    """Whether the data set was seen with exactly these rows, from this source."""
    tags = [tag for kind, tag in _pairs(fingerprint) if kind != "least"]
    known = sa.text(_KNOWN).bindparams(sa.bindparam("tags", expanding=True))
    return bool(db.scalar(known, {"dataset": dataset, "tags": tags}) == len(tags))


def matches(db: sa.Connection, dataset: str, fingerprint: Tags) -> list[Match]:
    """The other data sets that these tags point to, the surest first.

    The tags of all versions of a data set together are the sketch of all their rows. A part in common with one version
    fades as more and more versions without it are added; equal rows and an equal source never do.
    """
    alike = sa.text(_ALIKE).bindparams(sa.bindparam("tags", expanding=True))
    tags = [tag for _, tag in _pairs(fingerprint)]
    names = db.scalars(alike, {"tags": tags, "dataset": dataset}).all()
    found = [_match(db, name, fingerprint) for name in names]
    return sorted(filter(_is_sure, found), key=_surest)


def forget(db: sa.Connection, dataset: str) -> None:
    """Erase all tags of a data set."""
    db.execute(sa.text(_FORGET), {"dataset": dataset})


def _pairs(fingerprint: Tags) -> list[tuple[str, str]]:
    sources = [] if fingerprint.source is None else [fingerprint.source]
    kinds = {"rows": [fingerprint.rows], "least": fingerprint.least, "source": sources}
    return [(kind, tag) for kind, tags in kinds.items() for tag in tags]


def _match(db: sa.Connection, name: str, fingerprint: Tags) -> Match:
    stored: defaultdict[str, set[str]] = defaultdict(set)
    for kind, tag in db.execute(sa.text(_STORED), {"dataset": name}):
        stored[kind].add(tag)
    same_rows = fingerprint.rows in stored["rows"]
    return Match(
        dataset=name,
        share=1.0 if same_rows else fingerprint.share(stored["least"]),
        same_source=fingerprint.source in stored["source"],
        same_rows=same_rows,
    )


def _is_sure(match: Match) -> bool:
    return match.share > 0 or match.same_source


def _surest(match: Match) -> tuple[Any, ...]:
    return not match.same_rows, not match.same_source, -match.share, match.dataset
