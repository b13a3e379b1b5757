"""Who did what to the service: a row that stays for whoever asks later, and a line in the log."""

from __future__ import annotations

import time
from typing import Any, Final

from wallflower.curator.desk.access.tokens import Caller, new_id
from wallflower.curator.desk.logs import tell
from wallflower.curator.desk.records import ACTS, Records

TOLD: Final = ("id", "created", "act", "by", "token", "address", "about")


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

    def last(
        self, count: int, *, before: str | None = None, act: str | None = None, by: str | None = None
    ) -> list[dict[str, Any]]:
        """The latest acts, oldest first: of one kind or one person only, and before an id, if these are stated."""
        wanted = {name: value for name, value in (("act", act), ("by", by)) if value is not None}
        rows = self._records.page(ACTS, count, before=before, **wanted)
        return [{name: row[name] for name in TOLD} for row in reversed(rows)]

    def kinds(self) -> list[str]:
        """The kinds of acts that happened."""
        return self._records.distinct(ACTS, "act")

    def people(self) -> list[str]:
        """The people who did something."""
        return self._records.distinct(ACTS, "by")
