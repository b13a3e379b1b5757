"""A watch over many streams: one decision for each line of a fleet, as it comes."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, Final

from wallflower.cli.options import facts_of
from wallflower.cli.show import notice, say_cap
from wallflower.cli.watch.feeds import open_feed, open_hooks
from wallflower.data.lines import VALUE, FleetBatch, fleet_batches
from wallflower.errors import BudgetExhausted, ParameterError
from wallflower.ledger import Ledger
from wallflower.streams.fleet import Fleet, FleetDecisions, fleet

_UNFIT: Final = {"goes_on": "--continue", "checkpoint_key": "--checkpoint-key", "server": "--server"}


def require_fleet(given: Mapping[str, Any]) -> None:
    """Refuse what a fleet cannot do, before anything is read."""
    if not given["fleet"]:
        return
    for name, words in _UNFIT.items():
        if given.get(name):
            raise ParameterError(
                f"{words}: does not go with --fleet, which keeps decisions by stream and time in a store of its own "
                "here. Leave it out."
            )
    if not given["checkpoint"]:
        raise ParameterError(
            "--fleet: decisions are stored before they are released, and no store is given. Add --checkpoint with a "
            "file, or with the URL of a PostgreSQL database."
        )


def decide_fleet(query: Any, given: Mapping[str, Any], dataset: str) -> str:
    """Write one JSON object for each line of the source, as soon as it is decided. Where it was interrupted, what
    became of it.
    """
    facts = facts_of(given["schema"], query.wants())
    columns = query.columns or (facts.default_numbers if facts else ()) or (VALUE,)
    own = {name: given[name] for name in ("analyst", "idempotency_key", "renew", "force", "look_ahead")}
    opened: Fleet | None = None
    try:
        with open_feed(given) as feed, Ledger.open(given["ledger"]) as ledger:
            try:
                opened = fleet(
                    query,
                    ledger=ledger,
                    dataset=dataset,
                    store=given["checkpoint"],
                    columns=columns,
                    schema=facts,
                    **own,
                )
            except BudgetExhausted:
                say_cap(ledger, dataset)
                raise
            with opened, open_hooks(given) as hooks:
                _announce(opened, query, ledger, dataset)
                batches = fleet_batches(given["source"], columns) if feed is None else feed.fleet_batches(columns)
                for batch in batches:
                    told = opened.decide_many(batch.streams, batch.times, batch.array)
                    if hooks is not None:
                        hooks.note(_notices(batch, told, opened.charge, dataset))
                    _write(batch, told)
        return ""
    except KeyboardInterrupt:
        if opened is None:
            return "the ledger shows whatever was charged (wallflower ledger list)."
        return f"what was decided stays charged (entry {opened.charge}); the same --checkpoint takes it up again."


def _announce(opened: Fleet, query: Any, ledger: Ledger, dataset: str) -> None:
    if not opened.resumed:
        notice(f"{query.cost()} was charged to {dataset} for the whole fleet (entry {opened.charge}).")
        say_cap(ledger, dataset)
        return
    notice(f"Taken up again with {opened.streams:,} streams; nothing was charged. What was decided is told again.")
    if opened.may_skip:
        notice(
            "A process did not end well: observations that it may have decided about, and whose decisions are not in "
            "the store, are skipped."
        )


def _notices(batch: FleetBatch, told: FleetDecisions, charge: int, dataset: str) -> dict[str, dict[str, Any]]:
    """What is said of each flag: what the output says of it, and whose it is."""
    scores = [None] * len(told) if told.scores is None else told.scores.tolist()
    found = {}
    for stream, time, flag, score in zip(batch.streams, batch.times, told.outliers, scores, strict=True):
        if flag:
            more = {} if score is None else {"score": score}
            body = {"dataset": dataset, "charge": charge, "stream": stream, "time": time, "outlier": True, **more}
            found[f"{dataset}/{charge}/{json.dumps([stream, time])}"] = body
    return found


def _write(batch: FleetBatch, told: FleetDecisions) -> None:
    lines = []
    scores = [None] * len(told) if told.scores is None else told.scores.tolist()
    readings = zip(batch.streams, batch.times, told.outliers, scores, told.faults, strict=True)
    for stream, time, flag, score, fault in readings:
        found: dict[str, Any] = {"stream": stream, "time": time, "outlier": flag}
        if flag is None:
            found["skipped"] = True
            if fault is not None:
                found["fault"] = fault
        elif score is not None:
            found["score"] = score
        lines.append(json.dumps(found))
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
