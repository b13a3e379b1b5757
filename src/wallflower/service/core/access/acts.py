"""The audit log of stewards: every change is a row in the database and a line in the log."""

from __future__ import annotations

import time
from typing import Any, Final

from wallflower.service.core.access.tokens import Caller, new_id
from wallflower.service.core.logs import log_event
from wallflower.service.core.records import ACTS, Records

ACT_FIELDS: Final = ("id", "created", "act", "by", "token", "address", "about")


class Acts:
    """Changes that stewards made: limits, quotas, declarations, allowances, data sets, tokens, people."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def note(self, act: str, caller: Caller, about: str) -> None:
        """Record a change that is done. The log line omits `about`, which may name a data set."""
        who = {"by": caller.name, "token": caller.token, "address": caller.address}
        key = f"{time.time_ns():020}-{new_id()}"  # in order, also within a millisecond
        self._records.add(ACTS, {"id": key, "act": act, "about": about, **who})
        log_event("act", act=act, **who)

    def last(
        self, count: int, *, before: str | None = None, act: str | None = None, by: str | None = None
    ) -> list[dict[str, Any]]:
        """Return the latest acts, oldest first, optionally of one kind or person, or before an id."""
        wanted = {name: value for name, value in (("act", act), ("by", by)) if value is not None}
        rows = self._records.page(ACTS, count, before=before, **wanted)
        return [{name: row[name] for name in ACT_FIELDS} for row in reversed(rows)]

    def kinds(self) -> list[str]:
        """Return the kinds of acts that occurred."""
        return self._records.distinct(ACTS, "act")

    def people(self) -> list[str]:
        """Return everybody who made a change."""
        return self._records.distinct(ACTS, "by")
