"""Counts of what was asked, for Prometheus. Labels are routes, statuses and kinds, never anything from the data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from threading import Lock
from typing import Final

from wallflower.ledger import Account

_HELP: Final = {
    "requests": "Requests answered, by route, method and status.",
    "asks": "Questions asked, by kind and outcome.",
    "authentication_failures": "Requests without a valid token.",
    "decisions": "Observations decided in watches.",
}
Label = tuple[str, tuple[tuple[str, str], ...]]


class Metrics:
    """Counters of one process."""

    def __init__(self) -> None:
        self._counts: Counter[Label] = Counter()
        self._lock = Lock()

    def count(self, name: str, times: int = 1, **labels: str) -> None:
        with self._lock:
            self._counts[name, tuple(sorted(labels.items()))] += times

    def text(self, gauges: Iterable[tuple[str, Account]] = (), *, under_way: int = 0, unreadable: int = 0) -> str:
        """Everything in the text format; `gauges` are data sets whose names may be shown, with their accounts."""
        with self._lock:
            counts = dict(self._counts)
        lines = []
        for name, words in _HELP.items():
            lines += [f"# HELP wallflower_{name}_total {words}", f"# TYPE wallflower_{name}_total counter"]
            own = sorted((labels, value) for (kind, labels), value in counts.items() if kind == name)
            lines += [f"wallflower_{name}_total{_labels(labels)} {value}" for labels, value in own]
        lines += ["# HELP wallflower_under_way Questions that wait or are being answered."]
        lines += ["# TYPE wallflower_under_way gauge", f"wallflower_under_way {under_way}"]
        lines += ["# HELP wallflower_datasets_unreadable Data sets that this process could not read."]
        lines += ["# TYPE wallflower_datasets_unreadable gauge", f"wallflower_datasets_unreadable {unreadable}"]
        shown = list(gauges)
        if shown:
            lines += ["# HELP wallflower_budget_left What is not spent: epsilon, or rho where squares are counted."]
            lines += ["# TYPE wallflower_budget_left gauge"]
        lines += [
            f"wallflower_budget_left{_labels([('dataset', name)])} {float(account.left.amount):g}"
            for name, account in shown
        ]
        return "\n".join(lines) + "\n"


def _labels(pairs: Iterable[tuple[str, str]]) -> str:
    inside = ",".join(f'{name}="{_escape(value)}"' for name, value in pairs)
    return f"{{{inside}}}" if inside else ""


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
