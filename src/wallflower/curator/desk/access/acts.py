"""Who did what to the service: a row that stays for whoever asks later, and a line in the log."""

from __future__ import annotations

import time
from typing import Any, Final

from wallflower.curator.desk.access.tokens import Caller, new_id
from wallflower.curator.desk.logs import tell
from wallflower.curator.desk.records import ACTS, Records

TOLD: Final = ("created", "act", "by", "token", "address", "about")


class Acts:
    """What stewards did: limits, shares, declarations, allowances, data sets, tokens."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def note(self, act: str, caller: Caller, about: str) -> None:
        """Write down an act that is done. The log holds no name of a data set, so it is not told what it is about."""
        who = {"by": caller.name, "token": caller.token, "address": caller.address}
        key = f"{time.time_ns():020}-{new_id()}"  # in order, also within a millisecond
        self._records.add(ACTS, {"id": key, "act": act, "about": about, **who})
        tell("act", act=act, **who)

    def last(self, count: int) -> list[dict[str, Any]]:
        """The latest acts, oldest first."""
        return [{name: row[name] for name in TOLD} for row in self._records.last(ACTS, count)]
