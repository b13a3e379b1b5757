"""An entry may be of any Python type: it moves the distance of its own observation and of no other."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from watches import EVENT, opened

import wallflower as wf
from wallflower.data.lines import number
from wallflower.errors import DataError
from wallflower.ledger import Ledger
from wallflower.queries.watch import Watch
from wallflower.queries.watch.detectors import Staircase
from wallflower.streams.rule import rows_of

PAIR = Watch(threshold=2.0, low=-5.0, high=5.0, loss=wf.Loss("0.25"))


class Hostile:
    """Raises whatever is asked of it."""

    def __float__(self) -> float:
        raise KeyError("no")

    def __len__(self) -> int:
        raise RuntimeError("no")


class Endless:
    """Too large for a float, and not to be compared."""

    def __float__(self) -> float:
        raise OverflowError

    def __gt__(self, other: object) -> bool:
        raise RuntimeError("no")


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(5000, 9000).map(lambda digits: 10**digits),
    st.floats(),
    st.text(),
    st.binary(),
    st.decimals(),
    st.fractions(),
    st.complex_numbers(),
    st.dates(),
    st.timedeltas(),
    st.sampled_from(
        [
            Hostile(),
            Endless(),
            object(),
            float,
            dict,
            Decimal("sNaN"),
            Fraction(10**400),
            "\ud800",
            np.True_,
            np.int8(3),
            np.float16(2.5),
            np.longdouble("1e400"),
            np.complex128(1 + 2j),
            np.datetime64("2026-01-01"),
            np.timedelta64(3, "s"),
            np.ma.masked,
            pd.NA,
            pd.NaT,
            pd.Timestamp("2026-01-01"),
            lambda: 1.0,
            frozenset({1}),
            {1, 2},
        ]
    ),
)
CONTAINERS = st.one_of(
    st.lists(SCALARS, max_size=3),
    st.tuples(SCALARS, SCALARS),
    st.dictionaries(st.text(), SCALARS, max_size=2),
    st.sampled_from(
        [np.array([1.0]), np.array([1.0, 2.0]), np.array(["x"]), np.array([[1.0]]), range(2), bytearray(b"7")]
    ),
)
Decide = Callable[[list[Any]], Any]


@contextmanager
def distances_seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[list[int]]]:
    """The distances that the real code hands to the real detector."""
    seen: list[list[int]] = []
    real = Staircase.decide

    def decide(self: Staircase, distances: Any, *given: Any, **more: Any) -> Any:
        seen.append(distances.tolist())
        return real(self, distances, *given, **more)

    monkeypatch.setattr(Staircase, "decide", decide)
    yield seen


def batches(entry: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[list[Any], int, Any]]:
    """A batch, a place in it, and what stands there in an adjacent batch."""
    return st.lists(SCALARS, min_size=2, max_size=5).flatmap(
        lambda rows: st.tuples(st.just(rows), st.integers(0, len(rows) - 1), entry)
    )


def require_one_distance(decide: Decide, seen: list[list[int]], rows: list[Any], place: int, other: Any) -> None:
    found = []
    for batch in (rows, [*rows[:place], other, *rows[place + 1 :]]):
        seen.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            decide(batch)
        found.append([distance for part in seen for distance in part])
    assert len(found[0]) == len(found[1]) == len(rows)
    assert [a == b for spot, (a, b) in enumerate(zip(*found, strict=True)) if spot != place].count(False) == 0


def test_in_a_fleet_of_one_column(tmp_path: Path, book: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    times = count()
    with (
        wf.fleet(EVENT, columns=["x"], dataset="meters", ledger=book, store=tmp_path / "s") as fleet,
        distances_seen(monkeypatch) as seen,
    ):
        fleet.decide("m0", 10_000, 0.0)  # so that the ledger has a note of all earlier times: quicker

        def decide(rows: list[Any]) -> None:
            time = next(times)
            told = fleet.decide_many([f"m{place}" for place in range(len(rows))], [time] * len(rows), rows)
            assert not any(told.faults)
            assert not told.skipped.any()

        @settings(max_examples=25, deadline=None)
        @given(batches(SCALARS | CONTAINERS))
        @example(([True, 1.0], 1, "x"))
        @example(([True] * 5, 4, "ERR"))
        @example(([0.5, 0.5], 1, [0.5, 1.0]))
        def check(case: tuple[list[Any], int, Any]) -> None:
            require_one_distance(decide, seen, *case)

        check()


@pytest.mark.parametrize("kind", ["fleet", "watch"])
def test_in_a_batch_of_two_columns(tmp_path: Path, book: Ledger, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    times = count()
    names = ["x", "y"]
    fleet = wf.fleet(PAIR, columns=names, dataset="meters", ledger=book, store=tmp_path / "s")
    watch = opened(book, PAIR, columns=names)
    with fleet, watch, distances_seen(monkeypatch) as seen:
        fleet.decide("m0", 10_000, None)

        def decide(rows: list[Any]) -> None:
            time, pairs = next(times), [[x, True] for x in rows]
            if kind == "watch":
                watch.decide_many(pairs)
            else:
                fleet.decide_many([f"m{place}" for place in range(len(rows))], [time] * len(rows), pairs)

        @settings(max_examples=100 if kind == "watch" else 15, deadline=None)
        @given(batches(SCALARS | CONTAINERS))
        def check(case: tuple[list[Any], int, Any]) -> None:
            require_one_distance(decide, seen, *case)

        check()


def test_in_a_watch_of_one_column(book: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(book) as watch, distances_seen(monkeypatch) as seen:

        @settings(max_examples=150, deadline=None)
        @given(batches(SCALARS))
        @example(([True, 1.0], 1, "x"))
        def check(case: tuple[list[Any], int, Any]) -> None:
            require_one_distance(watch.decide_many, seen, *case)

        check()


def test_an_observation_of_another_build_is_refused_before_a_watch_looks(book: Ledger, tmp_path: Path) -> None:
    with opened(book, checkpoint=tmp_path / "s") as watch:
        before = len(book.history())
        for row in ([1.0, 2.0], (), np.array([1.0, 2.0]), {"z": 1.0}):
            with pytest.raises(DataError):
                watch.decide_many([0.0, row])
        assert (watch.position, len(book.history())) == (0, before)


@pytest.mark.parametrize("other", ["x", None, 3])
def test_a_frame_reads_each_cell_by_itself(other: Any) -> None:
    for cell in (timedelta(seconds=3), date(2026, 1, 1), 1 + 2j, True, np.timedelta64(3, "s")):
        alone = rows_of(pd.DataFrame({"x": [cell]}), ["x"])[0, 0]
        beside = rows_of(pd.DataFrame({"x": pd.Series([cell, other], dtype=object)}), ["x"])[0, 0]
        assert alone == beside or (math.isnan(alone) and math.isnan(beside))


def test_a_number_of_any_type() -> None:
    assert number(np.array([2.5])) == 2.5
    assert number(10**5000) == math.inf
    assert number(-(10**5000)) == -math.inf
    assert number("9" * 5000) == math.inf
    for none in (np.ma.masked, np.complex128(1), np.timedelta64(1, "s"), Hostile(), Endless(), [1.0], pd.NaT):
        assert math.isnan(number(none))
