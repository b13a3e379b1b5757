"""A service under honest and hostile calls while its processes are killed, and then the bill: answers, rows and sums.

`python benchmarks/soak.py --seconds 600 --ledger both` starts a service of several workers, on PostgreSQL two machines
of them on one database, and lets analysts, stewards, visitors of the pages, strangers and senders of hostile heads call
it at once. Meanwhile workers, supervisors and whole services are killed in turn, services are stopped by SIGTERM,
PostgreSQL is restarted as after a power cut, files of registered data sets vanish, and visitors flood the planner. At
the end every answer that reached anybody is held against the ledger. It prints what came out and exits with 1 on any
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

from postgres import Server, running
from soak_check import Difference, Evidence, Kill, Row, differences, lost_charges
from soak_people import HeadSender, Registrar, Visitor
from soak_service import ANALYSTS, REGISTRAR, STEWARDS, VISITORS, Victim, site
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
        with tempfile.TemporaryDirectory(prefix="wallflower-soak-") as folder, place(kind, Path(folder)) as found_at:
            where, server = found_at
            seen, rows, broken = soaked(Path(folder), where, server, given)
        found = [*broken, *differences(seen, rows)]
        print(table(kind, given, seen, rows, found), flush=True)
        worst |= bool(found)
    return worst


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600, help="how long calls begin, on each ledger")
    parser.add_argument("--ledger", choices=("sqlite", "postgresql", "both"), default="both")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--machines", type=int, default=2, help="on PostgreSQL; on SQLite there is one")
    parser.add_argument("--pause", type=float, default=4, help="seconds between two kills")
    parser.add_argument("--seed", default=str(os.getpid()), help="of who does what when; not of any noise")
    return parser.parse_args(arguments)


@contextmanager
def place(kind: str, folder: Path) -> Iterator[tuple[str, Server | None]]:
    """Where a new ledger may be, and the server that holds it, if there is one."""
    if kind == "sqlite":
        yield str(folder / "ledger.db"), None
        return
    with running() as server:
        yield server.fresh(), server


def soaked(
    folder: Path, where: str, server: Server | None, given: argparse.Namespace
) -> tuple[Evidence, list[Row], list[Difference]]:
    """Let everybody call until it is over; gives what was seen, and the rows of the ledger afterwards."""
    machines = 1 if server is None else given.machines
    with site(folder, where, workers=given.workers, machines=machines) as built:
        urls = tuple(machine.url for machine in built.machines)
        scene = Scene(urls, built.roots, built.tokens, until=time.monotonic() + given.seconds)
        threads = [threading.Thread(target=person.live, daemon=True) for person in people(scene, given.seed)]
        for thread in threads:
            thread.start()
        kill_until_over(built.machines, server, scene, given.pause)
        for thread in threads:
            thread.join()
        for code in [machine.stop() for machine in built.machines]:
            if code:
                scene.seen.surprises.append(f"the service, told to stop, ended with {code}")
    with Ledger.open(where) as ledger:
        return scene.seen, list(ledger.export()), list(verified(ledger))


def people(scene: Scene, seed: str) -> list[Person]:
    kinds: dict[type[Person], tuple[str, ...]] = {
        Analyst: ANALYSTS,
        Steward: STEWARDS,
        Stranger: (ANALYSTS[0], "stranger"),
        Visitor: VISITORS,
        Registrar: (REGISTRAR,),
        HeadSender: ("sender",),
    }
    return [kind(scene, name, f"{seed} {kind.__name__}") for kind, names in kinds.items() for name in names]


def kill_until_over(machines: list[Victim], server: Server | None, scene: Scene, pause: float) -> None:
    """Mostly a worker, sometimes a supervisor, a whole service, by SIGTERM too, or the database; some answers come
    through between."""
    turn = 0
    while time.monotonic() + pause < scene.until:
        before = len(scene.seen.deliveries)
        time.sleep(pause)
        while len(scene.seen.deliveries) < before + BETWEEN:
            if scene.is_over:
                return
            time.sleep(pause / 10)
        turn += 1
        kill = kill_one(machines[turn % len(machines)], machines, server, turn)
        with scene.lock:
            scene.seen.kills.append(kill)


def kill_one(machine: Victim, machines: list[Victim], server: Server | None, turn: int) -> Kill:
    match turn % 8:
        case 2:
            return machine.kill_supervisor()
        case 3 | 6:
            return machine.terminate()
        case 4 if server is not None:
            return restart_database(server, machines)
        case 5:
            return machine.kill_all()
        case _:
            return machine.kill_worker(turn)


def restart_database(server: Server, machines: list[Victim]) -> Kill:
    """Cut the power of the database and switch it on again; queries under way can be charged and not recorded."""
    began = time.monotonic()
    server.stop()
    server.start()
    for machine in machines:
        machine.wait()
    cost = sum(machine.answers_at_once for machine in machines)
    return Kill(who="database", began=began, ended=time.monotonic(), cost=cost)


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
