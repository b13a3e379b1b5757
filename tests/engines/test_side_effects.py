"""Nothing but the answer depends on records: no warning, no log line, no exception after the charge, no public word.

Every query and mode is asked of tables that differ in their records alone, extreme ones among them, with warnings as
errors, on every engine.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sparks import spark

import wallflower as wf
from wallflower.data import load
from wallflower.data.scans import keep, load_into
from wallflower.engines.local import LocalEngine
from wallflower.errors import PrivacyError
from wallflower.ledger import Ledger
from wallflower.privacy import Loss
from wallflower.queries import QUERIES
from wallflower.queries.explain.draws.ocdp import SEARCHES
from wallflower.query import Query
from wallflower.release import pay
from wallflower.schema import Column, Schema

LARGEST, SMALLEST = 1.7e308, 5e-324
SCHEMA = Schema(
    name="t",
    columns=(
        Column("a"),
        Column("b", low=-1e301, high=1e301),
        Column("e", edges=(0, 1)),
        Column("g", categories=("u", "v", "w"), weight=1, other="w", missing="u", public=True),
        Column("id", identifier=True),
    ),
    clip=True,
)
DOMAIN = Schema.of(["e", "g", "a"], edges={"e": (0.0, 1.0)}, categories={"g": ("u", "v", "w")}, clip=True)
BOUNDED = Schema.of(
    ["e", "g", "b"],
    edges={"e": (0.0, 1.0)},
    categories={"g": ("u", "v", "w")},
    bounds={"b": (-1e301, 1e301)},
    clip=True,
)

MANY, FEW, TENTH = Loss("50"), Loss("9"), Fraction(1, 10)


def modes(scale: int, detector: int) -> dict[str, Query[Any, Any]]:
    """Every query that is asked of a table, in every mode that has code of its own."""
    return {
        "scale": wf.Scale(loss=MANY, columns=("a", "b", "e")),
        "scale location": wf.Scale(loss=MANY, location=True),
        "scale units": wf.Scale(loss=MANY, units=(("a", "b"),)),
        "scale subset": wf.Scale(loss=Loss("0.5"), subset=True),
        "radius": wf.Radius(neighbours=1, share=TENTH, loss=FEW),
        "radius graded": wf.Radius(neighbours=1, share=TENTH, loss=FEW, graded=True),
        "radius scaled": wf.Radius(neighbours=1, share=TENTH, loss=FEW, scale=scale, columns=("a", "b")),
        "profile": wf.Profile(neighbours=1, loss=FEW),
        "profile shares": wf.Profile(neighbours=1, loss=FEW, shares=("10%", "1/2")),
        "profile graded": wf.Profile(neighbours=1, loss=FEW, graded=True),
        "count": wf.Count(neighbours=2, radius=0.5, loss=FEW),
        "count tiny radius": wf.Count(neighbours=1, radius=1e-100, loss=FEW),
        "count immense radius": wf.Count(neighbours=1, radius=1e100, loss=FEW),
        "count normalised": wf.Count(neighbours=2, radius=0.5, normalise=True, loss=FEW),
        "count zcdp": wf.Count(neighbours=2, radius=0.5, loss=Loss.zcdp("1")),
        "count global": wf.Count(neighbours=2, radius=0.5, mechanism="global", columns=("a", "b"), loss=FEW),
        "count smooth": wf.Count(
            neighbours=2, radius=0.5, mechanism="smooth", columns=("a",), loss=Loss("9", delta="1e-6")
        ),
        "count share": wf.Count(neighbours=1, share=TENTH, loss=FEW),
        "count share delta": wf.Count(neighbours=1, share=TENTH, loss=Loss("9", delta="1e-6")),
        "count share two-sided": wf.Count(neighbours=1, share=TENTH, loss=FEW, interval="two-sided"),
        "count two-sided": wf.Count(neighbours=1, radius=1.0, loss=FEW, interval="two-sided"),
        "count scaled": wf.Count(neighbours=1, radius=1.0, loss=FEW, scale=scale, columns=("a", "b")),
        "count by": wf.Count(neighbours=1, radius=1.0, loss=FEW, by=("g",)),
        "count by edges": wf.Count(neighbours=1, radius=1.0, loss=FEW, by=("g", "e"), columns=("a", "b")),
        "count public": wf.Count(neighbours=1, radius=1.0, loss=FEW, by=("g",), public_groups=True),
        "detector": wf.Detector(loss=MANY, contamination=TENTH),
        "detector scores": wf.Detector(loss=MANY),
        "detector scaled": wf.Detector(loss=MANY, contamination=TENTH, scale=scale, columns=("a", "b")),
        "detector schema": wf.Detector(loss=MANY, contamination=TENTH, spreads="schema"),
        "flags": wf.Flags(detector=detector, by=("g",), loss=Loss("5")),
        "subspaces": wf.Subspaces(
            neighbours=1, radius=0.5, upto=2, top=2, columns=("a", "b", "e"), loss=FEW, counts=True
        ),
        "subspaces count": wf.Subspaces(
            neighbours=1,
            radius=0.5,
            upto=2,
            top=2,
            columns=("a", "b", "e"),
            loss=Loss("9", delta="1e-6"),
            score="count",
        ),
        **{
            f"explain {detector_}": explained(detector_, DOMAIN, "a")
            for detector_ in ("bins:low=-1e100,high=1e100", "distance:k=1,radius=1")
        },
        **{
            f"explain {detector_}": explained(detector_, BOUNDED, "b")
            for detector_ in ("tukey:low=-4,high=4", "clamped-grubbs:low=-4,high=4")
        },
        **{
            f"explain ocdp {detector_}": explained(detector_, DOMAIN, "a", mode="ocdp")
            for detector_ in ("grubbs", "histogram", "lof:k=1")
        },
        **{
            f"explain ocdp {search}": explained("grubbs", DOMAIN, "a", mode="ocdp", search=search, samples=4)
            for search in SEARCHES
        },
    }


def explained(detector: str, domain: Schema, metric: str, **more: Any) -> Query[Any, Any]:
    usual: dict[str, Any] = {"record": "r2", "identifier": "id", "context": ("e", "g"), "size": 60, "loss": FEW}
    return wf.Explain(detector=detector, domain=domain, metric=metric, **usual | more)


def tables(n: int) -> Iterator[pa.Table]:
    """Tables of n records that have nothing else in common; the first is an ordinary one."""
    line, draw = np.linspace(-1.0, 1.0, n), np.random.default_rng(n)
    opposite = np.where(line < 0, -LARGEST, LARGEST)
    one_far = np.where(np.arange(n) == n // 2, -LARGEST, line)
    denormal = np.where(line < 0, SMALLEST, -SMALLEST)
    all_scales = 10.0 ** np.linspace(-300, 300, n) * np.where(np.arange(n) % 2, 1.0, -1.0)
    mixed = draw.choice([0.0, -0.0, 1.0, -1.0, LARGEST, -LARGEST, SMALLEST, 1e-300, 1e300, 3.3e15], n)
    shapes = (
        (line, line[::-1], line, ["u", "v", "w"]),
        (opposite, opposite, np.zeros(n), ["u"]),
        (one_far, denormal, np.full(n, LARGEST), ["w", "zzz", ""]),
        (np.zeros(n), np.zeros(n), np.zeros(n), [None]),
        (mixed, all_scales, opposite, ["v", None, "u"]),
    )
    for a, b, e, labels in shapes:
        label = pa.array((labels * n)[:n], pa.string())
        yield pa.table({"a": a, "b": b, "e": e, "g": label, "id": [f"r{row}" for row in range(n)]})


def public_part(release: Any, plan: Any) -> str:
    """All of a release but the answer and what is computed from it."""
    private = {
        "value",
        "messages",  # the arguments of sentences, for translation
        "interval",
        "text",
        "extras",
        "brief",
        "charged_at",
        "ledger_id",
        "left",
        "analyst",
        "notes",
        "quality",
    }
    kept = {name: value for name, value in release.to_dict().items() if name not in private}
    return str((plan.to_json() if hasattr(plan, "to_json") else plan, kept))


@pytest.fixture(autouse=True)
def several_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wallflower.neighbours.tiles.tile_size", lambda dimension, neighbours: 8)


def in_memory(source: pa.Table, _: Path) -> Any:
    return load(source, schema=SCHEMA, name="t")


def on_tiles(source: pa.Table, _: Path) -> Any:
    return keep(source, LocalEngine(), schema=SCHEMA, name="t")


def run_all(made: Any, place: Path, only: tuple[str, ...]) -> dict[str, str]:
    """What can be seen of each mode besides its answer; after a charge, an exception is a failure."""
    seen = {}
    with Ledger.open(place / "ledger.db") as book:
        book.grant("t", Loss("100000", delta="1/10"), by="steward", accounting="concentrated")
        book.allow_constrained("t", "1000000", by="steward")
        scale = pay(wf.Scale(loss=MANY, columns=("a", "b")), made, book, analyst="ana", force=True).answer().ledger_id
        fitted = wf.Detector(loss=MANY, contamination=TENTH, columns=("a", "b"), spreads="schema")
        detector = pay(fitted, made, book, analyst="ana", force=True).answer().ledger_id
        for mode, query in modes(scale, detector).items():
            if only and mode not in only:
                continue
            try:
                payment = pay(query, made, book, analyst="ana", force=True)
            except PrivacyError as refusal:
                seen[mode] = f"{type(refusal).__name__}: {refusal}"
                continue
            seen[mode] = public_part(payment.answer(), payment.plan)
    return seen


def compare_all(
    engine: Callable[[pa.Table, Path], Any],
    n: int,
    folder: Path,
    caplog: pytest.LogCaptureFixture,
    *,
    chosen: slice = slice(None),
    only: tuple[str, ...] = (),
) -> set[str]:
    """The modes that were answered; all that is seen besides the answers is the same for all tables."""
    caplog.set_level(logging.DEBUG, logger="wallflower")
    first: dict[str, str] = {}
    logged: list[str] = []
    for place, source in enumerate(list(tables(n))[chosen]):
        own = folder / str(place)
        own.mkdir()
        caplog.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            seen = run_all(engine(source, own), own, only)
        lines = [record.getMessage() for record in caplog.records]
        first, logged = first or seen, logged if place else lines
        assert seen == first
        assert lines == logged
    return {mode for mode, what in first.items() if what.startswith("(")}


STREAMS = {"watch", "shift", "baseline"}  # test_contract asks these of extreme streams with warnings as errors
KINDS = {question.kind for question in QUERIES} - STREAMS | {"flags"}


ONE_EACH = (
    "scale",
    "radius",
    "profile shares",
    "count by",
    "detector",
    "flags",
    "subspaces",
    "explain bins:low=-1e100,high=1e100",
)


def kinds_of(modes: set[str]) -> set[str]:
    return {mode.split()[0] for mode in modes}


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 30])
def test_nothing_but_the_answer_depends_on_records_in_memory(
    n: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    answered = compare_all(in_memory, n, tmp_path, caplog, chosen=slice(3 if n == 2 else None))
    assert n < 30 or answered == set(modes(1, 1))


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 30])
def test_nothing_but_the_answer_depends_on_records_on_tiles(
    n: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    answered = compare_all(on_tiles, n, tmp_path, caplog, chosen=slice(3 if n == 2 else None))
    assert n < 30 or kinds_of(answered) == KINDS


def test_a_difference_that_leaves_float64_warns_of_nothing_on_tiles(tmp_path: Path) -> None:
    """One cell of one record decides whether two cells are more than 1.8e308 apart."""
    values = np.random.default_rng(0).normal(size=(50, 2))
    values[:2, 0] = LARGEST, -LARGEST
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = wf.open(values, name="t", engine="tiles", ledger=tmp_path / "ledger.db")
        data.count(neighbours=3, radius=0.5, epsilon="0.5", force=True)


@pytest.mark.slow
@pytest.mark.heavy  # a minute and a half
def test_nothing_but_the_answer_depends_on_records_on_spark(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Java takes seconds to start, and each query some more: one mode of each, on an ordinary table and a mixed one."""
    with spark() as (engine, _):

        def on_spark(source: pa.Table, folder: Path) -> Any:
            (folder / "t").mkdir()
            pq.write_table(source, folder / "t" / "0.parquet")
            return load_into(folder / "t", engine, schema=SCHEMA, name="t")

        answered = compare_all(on_spark, 30, tmp_path, caplog, chosen=slice(0, None, 4), only=ONE_EACH)
    assert kinds_of(answered) == KINDS
