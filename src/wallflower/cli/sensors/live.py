"""Windows of a stream as they go on: a table that is drawn again on a terminal, a line for each change elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

Told = Callable[[str, int | None, str], None]  # which party, which window, what it did


@contextmanager
def show_windows() -> Iterator[Told]:
    """Show what parties do, on stderr."""
    console = Console(file=sys.stderr, highlight=False)
    if not console.is_terminal:
        yield lambda party, window, words: console.print(_line(party, window, words), soft_wrap=True)
        return
    view = _View()
    with Live(view.table(), console=console, transient=False, refresh_per_second=10) as live:

        def redraw(party: str, window: int | None, words: str) -> None:
            view.take(party, window, words)
            live.update(view.table())

        yield redraw


class _View:
    """The latest word of every party on every window."""

    def __init__(self) -> None:
        self._parties: list[str] = []
        self._windows: dict[int, dict[str, str]] = {}
        self._last = ""

    def take(self, party: str, window: int | None, words: str) -> None:
        if window is None:
            self._last = f"{party}: {words}"
            return
        if party not in self._parties:
            self._parties.append(party)
        self._windows.setdefault(window, {})[party] = words

    def table(self) -> Table:
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", caption=self._last, caption_justify="left")
        table.add_column("window")
        for party in self._parties:
            table.add_column(party)
        for window in sorted(self._windows):
            done = self._windows[window]
            table.add_row(
                str(window), *(Text(done.get(party, ""), style=_style(done, party)) for party in self._parties)
            )
        return table


def _style(done: dict[str, str], party: str) -> str:
    words = done.get(party, "")
    return "green" if words == "purged" or "judged" in words else "cyan"


def _line(party: str, window: int | None, words: str) -> Text:
    at = "" if window is None else f"window {window}: "
    return Text.assemble((f"{party}: ", "cyan"), f"{at}{words}")
