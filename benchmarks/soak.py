"""A service under honest and hostile calls while its processes are killed, and then the bill: answers, rows and sums.

`python benchmarks/soak.py --seconds 600 --ledger both` starts a service of several workers here, lets analysts,
stewards and strangers call it at once, kills workers, whoever watches over them and the whole service in turn, and at
the end holds every answer that reached anybody against the ledger. It prints what came out and exits with 1 on any
difference.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # where a PostgreSQL of our own is started

from postgres import running
from soak_check import Difference, Evidence, Row, differences, lost_charges
from soak_service import ANALYSTS, STEWARDS, Victim, victim
from soak_traffic import Analyst, Person, Scene, Steward, Stranger
from wallflower.errors import ChainBroken
from wallflower.ledger import Ledger

BETWEEN = 5  # answers between two kills: a machine that is too busy for them would show nothing
SHOWN = 20  # differences of one kind
KINDS = (
    "unpaid answer",
    "double payment",
    "overspent",
    "lost answer",
    "unexplained failure",
    "unexpected answer",
    "second decision",
    "history lost",
    "chain broken",
)


def main(arguments: list[str] | None = None) -> int:
    given = parsed(arguments)
    kinds = ("sqlite", "postgresql") if given.ledger == "both" else (given.ledger,)
    worst = 0
    for kind in kinds:
        with tempfile.TemporaryDirectory(prefix="wallflower-soak-") as folder, place(kind, Path(folder)) as where:
            seen, rows, broken = soaked(Path(folder), where, given)
        found = [*broken, *differences(seen, rows)]
        print(table(kind, given, seen, rows, found), flush=True)
        worst |= bool(found)
    return worst


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600, help="how long calls begin, on each ledger")
    parser.add_argument("--ledger", choices=("sqlite", "postgresql", "both"), default="both")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--pause", type=float, default=4, help="seconds between two kills")
    parser.add_argument("--seed", default=str(os.getpid()), help="of who does what when; not of any noise")
    return parser.parse_args(arguments)


@contextmanager
def place(kind: str, folder: Path) -> Iterator[str]:
    """Where a new ledger may be."""
    if kind == "sqlite":
        yield str(folder / "ledger.db")
        return
    with running() as server:
        yield server.fresh()


def soaked(folder: Path, where: str, given: argparse.Namespace) -> tuple[Evidence, list[Row], list[Difference]]:
    """Let everybody call until it is over; gives what was seen, and the rows of the ledger afterwards."""
    with victim(folder, where, workers=given.workers) as (service, tokens):
        scene = Scene(service.url, tokens, until=time.monotonic() + given.seconds)
        threads = [threading.Thread(target=person.live, daemon=True) for person in people(scene, given.seed)]
        for thread in threads:
            thread.start()
        kill_until_over(service, scene, given.pause)
        for thread in threads:
            thread.join()
        code = service.stop()
        if code:
            scene.seen.surprises.append(f"the service, told to stop, ended with {code}")
    with Ledger.open(where) as ledger:
        return scene.seen, list(ledger.export()), list(verified(ledger))


def people(scene: Scene, seed: str) -> list[Person]:
    kinds: dict[type[Person], tuple[str, ...]] = {
        Analyst: ANALYSTS,
        Steward: STEWARDS,
        Stranger: (ANALYSTS[0], "stranger"),
    }
    return [kind(scene, name, f"{seed} {kind.__name__}") for kind, names in kinds.items() for name in names]


def kill_until_over(service: Victim, scene: Scene, pause: float) -> None:
    """Mostly a worker, sometimes whoever watches over them or all at once; some answers come through between."""
    turn = 0
    while time.monotonic() + pause < scene.until:
        before = len(scene.seen.deliveries)
        time.sleep(pause)
        while len(scene.seen.deliveries) < before + BETWEEN:
            if scene.is_over:
                return
            time.sleep(pause / 10)
        turn += 1
        if turn % 8 == 5:
            kill = service.kill_all()
        elif turn % 8 == 2:
            kill = service.kill_supervisor()
        else:
            kill = service.kill_worker(turn)
        with scene.lock:
            scene.seen.kills.append(kill)


def verified(ledger: Ledger) -> Iterator[Difference]:
    try:
        ledger.verify()
    except ChainBroken as error:
        yield Difference(kind="chain broken", words=str(error))


def table(kind: str, given: argparse.Namespace, seen: Evidence, rows: list[Row], found: list[Difference]) -> str:
    """What came out, in lines of a name and a number; what must be 0 stands last."""
    kills, events = Counter(kill.who for kill in seen.kills), Counter(row["event"] for row in rows)
    calls: Counter[str] = Counter()
    for (_, said), times in seen.statuses.items():
        calls[said] += times
    fresh = {one.charge for one in seen.deliveries}
    lines: list[tuple[str, Any]] = [
        (f"soak on {kind}, seed {given.seed}", f"{given.seconds:g} s, {given.workers} workers"),
        ("kills", ", ".join(f"{times} {who}" for who, times in sorted(kills.items())) or 0),
        ("calls answered", sum(calls.values())),
        *((f"  {said}", times) for said, times in sorted(calls.items())),
        ("calls broken or 5xx", len(seen.failures)),
        ("answers delivered", len(seen.deliveries)),
        ("  of so many charges", len(fresh)),
        ("observations decided", len(seen.decisions)),
        ("rows of the ledger", len(rows)),
        *((f"  {event}", times) for event, times in sorted(events.items())),
        ("charged and lost in kills", len(lost_charges(rows))),
    ]
    tally = Counter(one.kind for one in found)
    lines += [(name, tally[name]) for name in KINDS]
    text = [f"{name:<34} {value}" for name, value in lines]
    for name in KINDS:
        text += [f"! {one.kind}: {one.words}" for one in found if one.kind == name][:SHOWN]
    return "\n".join(text)


if __name__ == "__main__":
    sys.exit(main())
