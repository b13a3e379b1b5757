"""Metrics for Prometheus, over all workers of a service.

With several workers every process writes its counts into files of one folder (`prometheus_client`'s multiprocess
mode), and whichever worker is scraped adds them up. Labels are route templates, statuses and kinds of queries, never
anything from the data.

A scrape never waits for the ledger: what has to be read from it is a `LedgerState`, read beside the scrape.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from wallflower.machine.version import VERSION

MEDIA: Final = "text/plain; version=0.0.4; charset=utf-8"
FOLDER_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"  # prometheus_client reads it when it is imported
_LATENCY_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
_COUNTERS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "requests": ("Requests answered, by route template, method and status.", ("route", "method", "status")),
    "asks": ("Queries asked, by kind and outcome.", ("kind", "outcome")),
    "authentication_failures": ("Requests without a valid token or code.", ()),
    "decisions": ("Observations decided in watches.", ()),
    "ledger_errors": ("Transactions that the ledger's database refused or did not answer.", ()),
}
disable_created_metrics()  # type: ignore[no-untyped-call]


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerState:
    """The part of the metrics that is read from the ledger's database; the defaults mean that it cannot be read."""

    is_up: bool = False
    valid_tokens: Mapping[str, int] = field(default_factory=dict)
    next_expiry: Mapping[str, str] = field(default_factory=dict)
    budget_left: Mapping[str, float] = field(default_factory=dict)


@contextmanager
def shared_folder() -> Iterator[None]:
    """A folder in which the workers that are started meanwhile share their counts."""
    with TemporaryDirectory(prefix="wallflower-metrics-") as folder:
        os.environ[FOLDER_VARIABLE] = folder
        try:
            yield
        finally:
            del os.environ[FOLDER_VARIABLE]


class QueueMeter:
    """Length and waiting time of one queue."""

    def __init__(self, length: Gauge, wait: Histogram) -> None:
        self._length, self._wait = length, wait

    @contextmanager
    def measure_wait(self) -> Iterator[None]:
        """Count a piece of work as waiting until the block ends."""
        began = time.monotonic()
        self._length.inc()
        try:
            yield
        finally:
            self._length.dec()
            self._wait.observe(time.monotonic() - began)


class Metrics:
    """What one process counts, and what all of them have counted."""

    def __init__(self) -> None:
        self._folder = os.environ.get(FOLDER_VARIABLE)
        self._registry = CollectorRegistry()
        at: dict[str, Any] = {"namespace": "wallflower", "registry": self._registry}
        self._counters = {name: Counter(name, text, labels, **at) for name, (text, labels) in _COUNTERS.items()}
        for name, (_, labels) in _COUNTERS.items():
            if not labels:
                self._counters[name].inc(0)  # an alert on a series that appears with its first error misses that error
        self._latency = Histogram(
            "request_duration_seconds",
            "Time from the first byte of a head to the last of the answer, by route template and method.",
            ("route", "method"),
            buckets=_LATENCY_SECONDS,
            **at,
        )
        self._lengths = Gauge(
            "queue_length",
            "Pieces of work that wait for their turn.",
            ("queue",),
            multiprocess_mode="livesum",
            **at,
        )
        self._waits = Histogram(
            "queue_wait_seconds", "Time that work waited for its turn.", ("queue",), buckets=_LATENCY_SECONDS, **at
        )
        self._under_way = Gauge(
            "under_way", "Queries that wait or are being answered.", multiprocess_mode="livesum", **at
        )
        self._unreadable = Gauge(
            "datasets_unreadable",
            "Data sets that cannot be read; with several workers the largest of their numbers.",
            multiprocess_mode="livemax",
            **at,
        )
        self._memory = Gauge(
            "resident_memory_bytes", "Resident memory, by process.", ("process",), multiprocess_mode="livesum", **at
        )
        self._starts = Gauge(
            "start_time_seconds", "When a process started.", ("process",), multiprocess_mode="livesum", **at
        )
        self._starts.labels(_process()).set(time.time())

    def count(self, name: str, times: int = 1, **labels: str) -> None:
        """Add to a counter."""
        counter = self._counters[name]
        (counter.labels(**labels) if labels else counter).inc(times)

    def observe_request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request that was answered, and how long it took."""
        self.count("requests", route=route, method=method, status=str(status))
        self._latency.labels(route, method).observe(seconds)

    def queue(self, name: str) -> QueueMeter:
        """The meter of a queue."""
        return QueueMeter(self._lengths.labels(name), self._waits.labels(name))

    def update(self, *, under_way: int, unreadable: int) -> None:
        """Write down what this process is like at the moment; workers that are not scraped do so regularly."""
        self._under_way.set(under_way)
        self._unreadable.set(unreadable)
        self._memory.labels(_process()).set(_resident_bytes())

    def text(self, ledger: LedgerState) -> bytes:
        """Everything in the text format, over all workers."""
        registry = self._registry
        if self._folder is not None:
            _remove_dead_gauges(Path(self._folder))
            registry = CollectorRegistry()
            MultiProcessCollector(registry, path=self._folder)  # type: ignore[no-untyped-call]
        beside = CollectorRegistry()
        beside.register(_Extras(ledger))
        return generate_latest(registry) + generate_latest(beside)


class _Extras(Collector):
    """Metrics that are the same whichever worker is scraped."""

    def __init__(self, ledger: LedgerState) -> None:
        self._ledger = ledger

    def collect(self) -> Iterator[Metric]:
        build = GaugeMetricFamily("wallflower_build_info", "Versions, as labels.", labels=("version", "python"))
        build.add_metric((VERSION, platform.python_version()), 1)
        yield build
        up = GaugeMetricFamily("wallflower_ledger_up", "Whether the ledger could be read for this scrape.")
        up.add_metric((), int(self._ledger.is_up))
        yield up
        valid = GaugeMetricFamily("wallflower_tokens_valid", "Valid tokens, by scope.", labels=("scope",))
        expiry = GaugeMetricFamily(
            "wallflower_token_next_expiry_timestamp_seconds",
            "When the next of the valid tokens expires, by scope.",
            labels=("scope",),
        )
        left = GaugeMetricFamily(
            "wallflower_budget_left",
            "What is not spent: epsilon, or rho where squares are counted.",
            labels=("dataset",),
        )
        for scope, number in sorted(self._ledger.valid_tokens.items()):
            valid.add_metric((scope,), number)
        for scope, moment in sorted(self._ledger.next_expiry.items()):
            expiry.add_metric((scope,), datetime.fromisoformat(moment).timestamp())
        for dataset, amount in sorted(self._ledger.budget_left.items()):
            left.add_metric((dataset,), amount)
        yield from (family for family in (valid, expiry, left) if family.samples)


def _process() -> str:
    return str(os.getpid())


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _remove_dead_gauges(folder: Path) -> None:
    """Forget the gauges of workers that have ended; their counters stay, so that no sum falls."""
    for file in folder.glob("gauge_live*.db"):
        process = file.stem.rpartition("_")[2]
        if not Path(f"/proc/{process}").exists():
            file.unlink(missing_ok=True)
