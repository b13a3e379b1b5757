"""The worker that every party has: how long it waits between two tries."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from stage import parameters

from wallflower.sensors.parties.client import Unreachable
from wallflower.sensors.parties.keys import Identity, sign_parameters
from wallflower.sensors.parties.party import Party

SHORTEST = 0.05


class Stumbling(Party):
    """Its partner is there only now and then."""

    role = "owner"
    luck: Iterator[bool]

    def advance(self, window: int) -> bool:
        if not next(self.luck):
            raise Unreachable("nobody is there.")
        return True


def pause(party: Party) -> tuple[float, float]:
    """Two bounds on the seconds that the worker will wait, after one more try as soon as it may."""
    if 0 in party._retries:
        time.sleep(max(0.0, party._retries[0][0] - time.monotonic()))
    before = time.monotonic()
    party._advance_window(0)
    due = party._retries[0][0]
    return due - time.monotonic(), due - before


def test_a_pause_grows_until_a_step_succeeds(keys: Path, tmp_path: Path) -> None:
    owner = Identity.read(keys / "owner")
    party = Stumbling(owner, sign_parameters(parameters(keys), owner), tmp_path / "owner.db")
    party.luck = iter([False] * 5 + [True, False])
    try:
        *_, (_, longest) = [pause(party) for _ in range(5)]
        assert longest > 4 * SHORTEST
        shortest, _ = pause(party)
        assert shortest <= SHORTEST
    finally:
        party.stop()
