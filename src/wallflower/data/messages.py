"""Observations from messages: each message is one observation, whatever is in it, so that numbers never shift.

A message is a JSON object with an entry for each column, a list of entries, or one number. Entries that cannot be read
count as missing, as in lines of a file; a message of which nothing can be read is an observation without entries.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from wallflower.data.lines import VALUE, Batch, FleetBatch, Oddities


class Letter(Protocol):
    """A message of some broker."""

    @property
    def number(self) -> int: ...

    @property
    def topic(self) -> str: ...

    @property
    def payload(self) -> bytes: ...


@dataclass(slots=True)
class MessageReader:
    """Reads messages as observations of these columns; `time` is the member that says when each was made, if wanted."""

    columns: tuple[str, ...]
    time: str | None = None
    oddities: Oddities = field(default_factory=Oddities)

    def batch(self, messages: Sequence[Letter]) -> Batch:
        """One row for each message.

        >>> from wallflower.machine.mqtt import Message
        >>> reader = MessageReader(("x", "y"))
        >>> reader.batch([Message(1, "t", b'{"x": 1, "y": 2}'), Message(2, "t", b"[3, null]")]).rows.tolist()
        [[1.0, 2.0], [3.0, nan]]
        """
        entries = [self._parse(message) for message in messages]
        rows = np.array([self._row(entry) for entry in entries]).reshape(len(entries), len(self.columns))
        times = None if self.time is None else tuple(str(entry.get(self.time)) for entry in entries)
        return Batch(rows, times)

    def fleet_batch(self, messages: Sequence[Letter]) -> FleetBatch:
        """The same for a fleet: `stream` and `time` are members of a message; a message without a stream is of the
        stream that its topic names."""
        batch = FleetBatch()
        for message in messages:
            entry = self._parse(message)
            stream, time = entry.get("stream", message.topic), entry.get("time")
            is_time = isinstance(time, str | int) and not isinstance(time, bool)
            batch.streams.append(stream if isinstance(stream, str) and stream else message.topic)
            batch.times.append(time if is_time else None)
            batch.rows.append(self._row(entry))
        return batch

    def _parse(self, message: Letter) -> dict[str, Any]:
        try:
            content = json.loads(message.payload)
        except (ValueError, RecursionError):
            content = None
        if isinstance(content, dict):
            if len(self.columns) == 1 and VALUE in content and self.columns[0] not in content:
                content[self.columns[0]] = content[VALUE]
            return content
        if isinstance(content, list) and len(content) == len(self.columns):
            return dict(zip(self.columns, content, strict=True))
        if isinstance(content, int | float) and len(self.columns) == 1:
            return {self.columns[0]: content}
        self.oddities.unreadable += 1
        return {}

    def _row(self, entry: dict[str, Any]) -> list[float]:
        return [self.oddities.read(entry.get(name)) for name in self.columns]
