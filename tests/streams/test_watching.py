"""A watch over observations as they come: what it charges, decides, remembers and refuses."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fractions import Fraction
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from watches import EVENT, LONG, PERSON, SCORES, labels, opened

from wallflower.data import Points, Schema
from wallflower.errors import BudgetExhausted, DataError, KeyConflict, ParameterError, StateError
from wallflower.ledger import Ledger
from wallflower.noise import system_noise
from wallflower.privacy import Loss
from wallflower.queries.watch import Watch
from wallflower.queries.watch.detectors import Sparse
from wallflower.queries.watch.detectors.staircase import Table
from wallflower.queries.watch.statistics import Statistic
from wallflower.release import release
from wallflower.streams import watching

door: Any = import_module("wallflower.streams.watch")  # the function of this name stands before it in the package


class Scripted:
    """Noise whose words are given."""

    def __init__(self, words: Any) -> None:
        self._words: Iterator[int] = iter(words)

    def below(self, bound: int) -> int:
        return next(self._words)


# Paying


def test_a_watch_is_charged_once_however_much_it_decides(book: Ledger) -> None:
    with opened(book) as watch:
        for x in range(100):
            assert watch.decide(x) in (True, False)
        assert (watch.position, watch.charge, watch.resumed, watch.exhausted) == (100, 1, False, False)
    assert labels(book) == ["outlier-watch/1"]
    assert book.remaining("ward") == Loss(EVENT.cost().amount * 3)


@pytest.mark.parametrize("is_kept", [False, True], ids=["in memory", "resumed"])
def test_the_noise_on_thresholds_is_drawn_once(
    book: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_kept: bool
) -> None:
    drawn = [10**9]  # so high that nothing passes it; what would be drawn again is what everything passes
    monkeypatch.setattr(Sparse, "secret", lambda detector, noise: (drawn.pop() if drawn else -(10**9),))
    state = {"checkpoint": tmp_path / "s"} if is_kept else {}
    for _ in range(2 if is_kept else 1):
        with opened(book, PERSON, **state) as watch:
            for _ in range(3):
                assert not watch.decide_many([5.0] * 20).flags.any()
    assert drawn == []


def test_a_refused_watch_costs_nothing(book: Ledger, tmp_path: Path) -> None:
    with pytest.raises(BudgetExhausted):
        opened(book, Watch(threshold=2.0, low=-5.0, high=5.0, loss=Loss("1.5")), checkpoint=tmp_path / "s")
    with pytest.raises(ParameterError, match="bounds"):
        opened(book, Watch(threshold=2.0, loss=Loss("0.5")), checkpoint=tmp_path / "s")
    with pytest.raises(StateError, match="No such file"):
        opened(book, checkpoint=tmp_path / "nowhere" / "s")
    with pytest.raises(ParameterError, match="columns"):
        opened(book, columns=None)
    assert labels(book) == []
    opened(book, checkpoint=tmp_path / "s").close()  # the refusals left it unlocked


def test_a_key_pays_once(book: Ledger) -> None:
    opened(book, idempotency_key="k").close()
    with pytest.raises(KeyConflict, match="resumed by its checkpoint"):
        opened(book, idempotency_key="k")
    release(EVENT, Points.from_array([[1.0], [2.0]], name="ward"), book, idempotency_key="whole", force=True)
    with pytest.raises(KeyConflict, match="charged before"):
        opened(book, idempotency_key="whole", analyst=book.history()[-1].analyst)


# Deciding


@pytest.mark.parametrize("epsilon", ["0.05", "1", "30"])
@pytest.mark.parametrize(
    "public",
    [
        {"low": -5.0, "high": 5.0, "threshold": 2.0},
        {"low": 0.1, "high": 0.7, "threshold": 0.05, "centre": 0.3},
        {"low": -1e9, "high": 3.0, "threshold": 1.0, "centre": -17.5},
        {"low": 0.0, "high": 1000.0, "threshold": 30.0, "change": 1.0, "mean": (500.3,)},
    ],
)
def test_single_decisions_are_those_of_a_batch_for_every_word(public: Any, epsilon: str) -> None:
    rule = door.Rule(Watch(**public, loss=Loss(epsilon)), Schema.of(["x"]))
    quick, gauge, detector = rule.quick(), rule.gauge, rule.detector
    assert quick is not None
    edges = [gauge.step * (place + 0.5) for place in (-3, -1, 0, 1, 2, 10**4)]
    ends = [public["low"], public["high"], np.nextafter(public["low"], 9e99), -0.0, 5e-324, 1e300, np.inf, np.nan]
    xs = np.array([*edges, *ends, *(-x for x in ends), *np.linspace(public["low"], public["high"], 41)])
    entries = Table.of(Fraction(epsilon)).thresholds.tolist()
    words = sorted({0, 2**64 - 1, *entries, *(entry - 1 for entry in entries), *(entry + 1 for entry in entries)})
    words = [word for word in words if word < 2**64]
    for x in xs.tolist():
        batch = detector.decide(rule.measure(np.full(len(words), x)), (), 0, Scripted(words))
        assert [quick(x, word) for word in words] == batch.flags.tolist()


COVARIANCE = ((2.0, 0.5, 0.0), (0.5, 1.0, 0.25), (0.0, 0.25, 3.0))


@pytest.mark.parametrize(
    "public",
    [
        {"statistic": "sum", "centre": 0.3},
        {"statistic": "weighted", "weights": (0.5, -2.0, 0.1)},
        {"statistic": "max", "mean": (0.1, 0.2, 0.3), "covariance": COVARIANCE},
        {"statistic": "mahalanobis", "mean": (0.1, 0.2, 0.3), "covariance": COVARIANCE},
    ],
    ids=lambda public: public["statistic"],
)
def test_single_rows_are_decided_as_those_of_a_batch(public: Any) -> None:
    query = Watch(threshold=2.0, low=-5.0, high=5.0, loss=Loss("1"), **public)
    rule = door.Rule(query, Schema.of(["a", "b", "c"]))
    quick = rule.quick()
    assert quick is not None
    ends = [-5.0, 5.0, -0.0, 1e300, np.nan, np.inf, -np.inf, 0.7, -2.3]
    rows = np.array([*np.random.default_rng(3).normal(0, 3, (200, 3)), *product(ends, repeat=3)])
    words = [int(word) for word in system_noise().words(len(rows))]
    batch = rule.detector.decide(rule.measure(rows), (), 0, Scripted(words))
    assert [quick(row, word) for row, word in zip(rows.tolist(), words, strict=True)] == batch.flags.tolist()


def test_words_drawn_ahead_are_used_once_and_in_order(book: Ledger, monkeypatch: Any) -> None:
    script = [int(word) for word in system_noise().words(4 * door.WORDS_DRAWN_AHEAD)]
    monkeypatch.setattr(door, "system_noise", lambda: Scripted(script))
    xs = np.linspace(-5, 5, 2 * door.WORDS_DRAWN_AHEAD + 1)
    with opened(book, idempotency_key="one") as one, opened(book, idempotency_key="many") as many:
        singly = [one.decide(x) for x in xs.tolist()]
        assert one.position == len(xs)
        assert singly == many.decide_many(xs).flags.tolist()
    assert one.position == len(xs)


def test_an_observation_is_a_number_a_sequence_or_a_mapping(book: Ledger, monkeypatch: Any) -> None:
    seen: list[list[list[float]]] = []
    measure = Statistic.measure
    monkeypatch.setattr(Statistic, "measure", lambda self, rows: seen.append(rows.tolist()) or measure(self, rows))
    with opened(book, SCORES, columns=["a", "b"]) as watch:  # which has no quick way
        watch.decide([1, "2.5"])
        watch.decide((True, None))
        watch.decide({"b": 3.0, "a": 4})
        watch.decide({"b": 3.0})
        watch.decide(np.array([1.0, 2.0]))
        watch.decide_many([[1, 2], {"a": 3}])
        watch.decide_many(np.array([[1, 2], [3, 4]]))
        watch.decide_many(iter([[1, 10**400]]))
        assert watch.position == 10
    expected = "[[[1.0, 2.5]], [[1.0, nan]], [[4.0, 3.0]], [[nan, 3.0]], [[1.0, 2.0]], [[1.0, 2.0], [3.0, nan]], "
    assert str(seen) == expected + "[[1.0, 2.0], [3.0, 4.0]], [[1.0, inf]]]"


FRAMES: dict[str, Any] = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "arrow": pa.table,
    "batch": pa.RecordBatch.from_pydict,
    "nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_a_frame_is_read_by_the_names_of_its_columns(book: Ledger, monkeypatch: Any, kind: str) -> None:
    seen: list[list[list[float]]] = []
    measure = Statistic.measure
    monkeypatch.setattr(Statistic, "measure", lambda self, rows: seen.append(rows.tolist()) or measure(self, rows))
    frame = FRAMES[kind]({"when": ["mon", "tue", "wed"], "b": [10, 20, None], "a": [1.0, 2.0, 3.0]})
    with opened(book, columns=["a", "b"]) as watch:
        assert len(watch.decide_many(frame)) == 3
    assert str(seen) == "[[[1.0, 10.0], [2.0, 20.0], [3.0, nan]]]"


def test_a_row_of_a_frame_is_read_by_the_names_of_its_columns(book: Ledger, monkeypatch: Any) -> None:
    seen: list[list[list[float]]] = []
    measure = Statistic.measure
    monkeypatch.setattr(Statistic, "measure", lambda self, rows: seen.append(rows.tolist()) or measure(self, rows))
    frame = pd.DataFrame({"b": [10.0, 20.0], "a": [1.0, 2.0]})
    with opened(book, SCORES, columns=["a", "b"]) as watch:  # which has no quick way
        for _, row in frame.iterrows():
            assert watch.decide(row) in (True, False)
    assert str(seen) == "[[[1.0, 10.0]], [[2.0, 20.0]]]"


def test_numbers_of_observations_may_come_from_numpy(book: Ledger, tmp_path: Path) -> None:
    with opened(book, checkpoint=tmp_path / "s") as watch:
        told = watch.decide_many([0.0, 5.0], first=np.int64(1))
        assert watch.decide_at(np.int64(2), None) == told.outliers[1]


@pytest.mark.parametrize("cells", [[5.0, "no number", 5], ["5", None, "5.0"], [True, None, 5.0]], ids=str)
@pytest.mark.parametrize("kind", ["pandas", "series", "array"])
def test_one_column_of_anything_is_read_row_by_row(book: Ledger, kind: str, cells: Any) -> None:
    array = np.empty(3, dtype=object)
    array[:] = cells
    rows = {"pandas": pd.DataFrame({"x": array}), "series": pd.Series(array), "array": array[:, None]}[kind]
    query = Watch(threshold=2.0, low=-5.0, high=5.0, loss=Loss("64"))
    with opened(book, query, ledger=_rich(book)) as watch:
        flags = watch.decide_many(rows).flags.tolist()
        assert flags == [cell in (5, 5.0, "5", "5.0") for cell in cells]


def test_a_stored_frame_goes_on_after_what_was_told(book: Ledger, tmp_path: Path) -> None:
    frame = pd.DataFrame({"b": [5.0] * 6, "a": [0.0] * 6})
    with opened(book, columns=["a", "b"], checkpoint=tmp_path / "s") as watch:
        first = watch.decide_many(frame[:3])
        assert len(watch.decide_many(frame, first=1)) == 6
        assert watch.decide_many(frame[:3], first=1).flags.tolist() == first.flags.tolist()


@pytest.mark.parametrize(
    "rows",
    [
        pd.DataFrame({"a": [4711.0]}),
        pd.DataFrame([[4711.0, 1.0]]),
        pd.DataFrame([[4711.0, 1.0, 2.0]], columns=["a", "b", "a"]),
        pa.table({"a": [4711.0], "B": [1.0]}),
        {"a": [4711.0], "b": [1.0]},
        "4711",
    ],
    ids=lambda rows: type(rows).__name__,
)
def test_a_batch_without_the_columns_is_refused_and_not_shown(book: Ledger, rows: Any) -> None:
    with opened(book, columns=["a", "b"]) as watch:
        with pytest.raises(DataError, match="a, b") as refusal:
            watch.decide_many(rows)
        assert "4711" not in str(refusal.value)
        assert watch.position == 0


def test_a_threshold_out_of_reach_opens_no_watch(book: Ledger) -> None:
    with pytest.raises(ParameterError, match="cannot be reached"):
        opened(book, Watch(threshold=5.1, low=-5.0, high=5.0, loss=Loss("0.5")))
    assert labels(book) == []


@pytest.mark.parametrize("x", [[4711.0], [1, 2, 4711], 4711.0, "4711", {"a": 1, "4711": 2}, None, np.array([4711.0])])
def test_a_misbuilt_observation_is_refused_and_not_shown(book: Ledger, x: Any) -> None:
    with opened(book, columns=["a", "b"]) as watch:
        with pytest.raises(DataError, match="a, b") as refusal:
            watch.decide(x)
        assert "4711" not in str(refusal.value)
        with pytest.raises(DataError):
            watch.decide_many(np.array([4711.0, 2.0, 3.0]))
        assert watch.position == 0


def test_one_number_may_come_in_any_shape(book: Ledger) -> None:
    with opened(book, Watch(threshold=2.0, low=-5.0, high=5.0, loss=Loss("64")), ledger=_rich(book)) as watch:
        far = [5, 5.0, np.float64(5), [5], {"x": 5}, "5", np.array(5.0), True]
        near = [0, 0.0, np.float32(0), (0,), {"x": None}, {}, "no number", None, np.nan, [None]]
        assert [watch.decide(x) for x in far[:-1]] == [True] * 7
        assert [watch.decide(x) for x in near] == [False] * 10


def _rich(book: Ledger) -> Ledger:
    book.grant("ward", EVENT.cost().times(1000), by="owner")
    return book


def test_scores_come_with_a_batch(book: Ledger) -> None:
    with opened(book, SCORES) as watch:
        assert watch.decide(1.0) in (True, False)
        told = watch.decide_many([1.0, 2.0, 3.0])
        assert told.scores is not None
        assert ((told.scores >= 1) == told.flags).all()
        assert (told.first, len(told), told.exhausted) == (2, 3, False)


@pytest.mark.parametrize("own", [{}, {"low": -1.0, "high": 1.0}, {"low": -1000.0, "high": 1000.0}], ids=str)
@pytest.mark.parametrize("scaling", [{}, {"center": {"a": 37}, "scale": {"a": 3, "b": 0.1}}], ids=["plain", "scaled"])
def test_a_schema_scales_a_stream_as_it_scales_a_table(book: Ledger, own: Any, scaling: Any) -> None:
    schema = Schema.of(["a", "b"], bounds={"a": (0, 100), "b": (-1, 1)}, clip=True, **scaling)
    query = Watch(threshold=2.0, loss=Loss("0.5"), **own)
    raw = np.array([[38.5, 0.3], [1e6, -7.0], [0.0, 1.0]])
    points = Points.from_array(raw, schema=schema)
    rule = door.Rule(query, schema)
    assert rule.measure(raw).tolist() == query.statistic_on(2, points.schema).measure(points.values).tolist()
    with watching(query, schema=schema, dataset="ward", ledger=book) as watch:
        assert watch.columns == ("a", "b")
        assert watch.decide([38.5, 0.3]) in (True, False)


@pytest.mark.parametrize("scaling", [{}, {"scale": {"a": 3, "b": 0.1}}], ids=["plain", "scaled"])
def test_a_batch_has_as_many_entries_in_a_row_as_there_are_columns(scaling: Any) -> None:
    schema = Schema.of(["a", "b"], **scaling)
    rule = door.Rule(Watch(threshold=2.0, low=-5.0, high=5.0, loss=Loss("0.5")), schema)
    for rows in ([], np.empty((0, 2)), np.empty((0, 2), dtype=object)):
        assert rule.measure(rows).tolist() == []
    for rows in (np.ones((4, 1)), np.ones(4), np.ones((4, 3))):
        with pytest.raises(DataError, match="2 columns"):
            rule.measure(rows)


# Exhaustion


@pytest.mark.parametrize("in_state", [False, True])
def test_an_exhausted_watch_says_so_and_looks_no_more(
    book: Ledger, tmp_path: Path, monkeypatch: Any, in_state: bool
) -> None:
    state = {"checkpoint": tmp_path / "s"} if in_state else {}
    with opened(book, PERSON, **state) as watch:
        told = watch.decide_many(LONG)
        assert told.exhausted
        assert watch.exhausted
        assert told.flags.sum() == 3
        assert told.flags[-1]
        assert watch.position == len(told) < len(LONG)
        monkeypatch.setattr(door.Rule, "measure", lambda *_: pytest.fail("looked"))
        assert watch.decide(5.0) is None
        assert watch.decide_many(LONG).exhausted
        assert len(watch.decide_many(LONG)) == 0
    if in_state:
        with opened(book, PERSON, **state) as again:
            assert again.exhausted
            assert again.decide(5.0) is None
            assert again.decide_many(LONG, first=1).flags.tolist() == told.flags.tolist()
            assert not again.decide_many([None], first=1).exhausted
            assert again.decide_at(len(LONG), 5.0) is None


def test_gaussian_noise_is_exhausted_after_its_steps(book: Ledger) -> None:
    loss = Loss.zcdp("0.5")
    book.grant("ward", loss, by="owner")
    query = Watch(threshold=2.0, low=-5.0, high=5.0, level="person", steps=3, loss=loss)
    with opened(book, query) as watch:
        decided = [watch.decide(0.0) for _ in range(5)]
    assert decided[3:] == [None, None]
    assert None not in decided[:3]


def test_an_exhausted_epoch_is_followed_by_a_paid_one(book: Ledger, tmp_path: Path) -> None:
    with opened(book, PERSON, checkpoint=tmp_path / "s") as watch:
        watch.decide_many(LONG)
    with opened(book, PERSON, checkpoint=tmp_path / "s", renew=True) as watch:
        assert (watch.position, watch.resumed, watch.exhausted) == (0, False, False)
    assert labels(book).count("outlier-watch/1") == 2


# Ending


@pytest.mark.parametrize("in_state", [False, True])
def test_a_closed_watch_decides_nothing(book: Ledger, tmp_path: Path, in_state: bool) -> None:
    with opened(book, **({"checkpoint": tmp_path / "s"} if in_state else {})) as watch:
        watch.decide(1.0)
    watch.close()
    for ask in (lambda: watch.decide(1.0), lambda: watch.decide_many([1.0])):
        with pytest.raises(StateError, match="closed"):
            ask()
    assert watch.position == 1
    assert "closed" in repr(watch)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("in_state", [False, True])
def test_a_forked_child_neither_repeats_nor_goes_on(book: Ledger, tmp_path: Path, in_state: bool) -> None:
    watch = opened(book, **({"checkpoint": tmp_path / "s"} if in_state else {}))
    watch.decide(1.0)
    child = os.fork()
    if child == 0:  # pragma: no cover
        try:
            watch.decide(1.0)
        except StateError:
            os._exit(7 if not watch._ahead and watch.position == 1 else 8)
        finally:
            os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert watch.decide(1.0) in (True, False)
    assert watch.position == 2
    watch.close()
    if in_state:
        with opened(book, checkpoint=tmp_path / "s") as again:
            assert again.position == 2
