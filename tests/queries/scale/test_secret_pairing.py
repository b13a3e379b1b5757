"""The pairing of `scale` and `detector` is secret: no order of records, whatever it follows from, says more than ε.

Each attack of this file once told two adjacent tables apart with near certainty, by a pairing that was released. It has
a source whose order of records follows from a private cell, and two adjacent tables that come in different orders. What
is compared is the law of the spreads that the real `answer` chooses. Where the attacker knows the pairing, laws are
further apart than ε: that is what the attack needs, and it shows that the test could fail.
"""

from __future__ import annotations

import sqlite3
from functools import cache
from itertools import combinations_with_replacement

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wallflower as wf
from scripted_noise import Scripted
from wallflower.data.scans import load_into
from wallflower.errors import DataError, EngineMismatch
from wallflower.queries.detector import Detector, Model, detector
from wallflower.queries.scale import Scale, scale
from wallflower.release.inputs import project
from wallflower.schema import Column, Schema

# In the order of X all pairs differ by 1, and by 3 once the first record comes third, with the same x.
XS = (1.0, 3.0, 5.0, 0.0, 2.0, 4.0)
AGES = (5, 10, 30, 50, 60, 70)
OLDER = (40, *AGES[1:])
EPSILON = 20  # times 6 records it is enough for the quantile 3/4, which shows more
FACTS = Schema(columns=(Column("x", low=0, high=8, integer=True), Column("age", low=0, high=120)))
QUERIES = (
    Scale(loss=wf.Loss(EPSILON), columns=("x",)),
    Detector(loss=wf.Loss(2 * EPSILON), columns=("x",)),  # half of it is for spreads
)


@cache
def orders(n):
    """One order for each pairing of n records: the first half is paired with the second."""

    def pairings(rows):
        if not rows:
            yield ()
            return
        first, *rest = rows
        for at, other in enumerate(rest):
            yield from (((first, other), *more) for more in pairings(rest[:at] + rest[at + 1 :]))

    return [np.array(pairing).T.ravel() for pairing in pairings(list(range(n)))]


class Ordered(Scripted):
    """Noise from a seed; the pairing is that of one order."""

    def __init__(self, order):
        super().__init__()
        self.order = order

    def sample(self, bound, size):
        assert bound == size == len(self.order)
        return self.order


class Chosen(Exception):
    """What an answer is about to choose by."""


def laws(query, view, monkeypatch):
    """For each pairing the law of the spreads of one column, P ∝ exp(-ε err/2): taken from the choice that the real
    `answer` makes, whose draw is exact by `mechanisms.md` (J2)."""

    def choose(errors, *, sensitivity, epsilon, noise):
        raise Chosen(np.exp(-errors[0] * float(epsilon) / (2 * sensitivity)))

    with monkeypatch.context() as patched:
        for module in (scale, detector):
            patched.setattr(module, "choose_together", choose)
        weights = []
        for order in orders(view.n):
            with pytest.raises(Chosen) as caught:
                query.answer(view, Ordered(order))
            weights.append(caught.value.args[0])
    return np.array([row / row.sum() for row in weights])


def distance(one, two):
    return float(np.abs(np.log(one / two)).max())


def require_secret(tables, monkeypatch, *, is_told_apart=True):
    """Adjacent tables in two orders: told apart by whoever knows the pairing, and not at all by what is released."""
    first, second = (table.points(("x",)) for table in tables)
    values = [points.values if isinstance(points, wf.Points) else points.gather() for points in (first, second)]
    assert not np.array_equal(*values)
    assert np.array_equal(*(np.sort(rows, axis=0) for rows in values))
    for query in QUERIES:
        one, two = (laws(query, query.view(table), monkeypatch) for table in tables)
        assert (distance(one, two) > 1.4 * EPSILON) or not is_told_apart
        assert distance(one, two) > 0
        assert one.mean(axis=0) == pytest.approx(two.mean(axis=0), rel=1e-12)


@pytest.fixture(params=["memory", "tiles"])
def engine(request):
    return request.param


# Attacks


def test_folders_of_a_private_column_do_not_tell_who_is_in_them(engine, tmp_path, monkeypatch):
    facts = Schema(columns=(Column("x", low=0, high=8, integer=True), Column("ward", categories=("a", "b", "c"))))
    tables = []
    for mine in ("a", "b"):  # the last line of the table, which goes to the first folder or to the end of the second
        rows = [*zip(XS[1:], "bbccc", strict=True), (XS[0], mine)]
        place = tmp_path / mine
        for ward in "abc":
            if some := [x for x, label in rows if label == ward]:
                (place / f"ward={ward}").mkdir(parents=True)
                pq.write_table(pa.table({"x": some}), place / f"ward={ward}" / "part.parquet")
        tables.append(load_into(place, engine, schema=facts))
    require_secret(tables, monkeypatch)


def test_an_index_that_sorts_what_sqlite_returns_does_not_tell_an_age(engine, tmp_path, monkeypatch):
    tables = []
    for ages in (AGES, OLDER):
        place = tmp_path / f"{ages[0]}.db"
        with sqlite3.connect(place) as base:
            base.execute("CREATE TABLE people (name TEXT, x REAL, age REAL)")
            base.executemany("INSERT INTO people VALUES ('somebody', ?, ?)", zip(XS, ages, strict=True))
            base.execute("CREATE INDEX quick ON people (age, x)")
        tables.append(load_into(f"sqlite:///{place}?sql=SELECT x, age FROM people", engine, schema=FACTS))
    require_secret(tables, monkeypatch)


def test_a_table_in_the_order_of_its_primary_key_does_not_tell_an_age(engine, tmp_path, monkeypatch):
    tables = []
    for ages in (AGES, OLDER):
        place = tmp_path / f"{ages[0]}.db"
        with sqlite3.connect(place) as base:
            base.execute("CREATE TABLE people (x REAL, age REAL, PRIMARY KEY (age, x)) WITHOUT ROWID")
            base.executemany("INSERT INTO people VALUES (?, ?)", zip(XS, ages, strict=True))
        tables.append(load_into(f"sqlite:///{place}?table=people", engine, schema=FACTS))
    require_secret(tables, monkeypatch)


@pytest.mark.slow
def test_a_record_that_postgresql_moves_when_it_is_updated_tells_nothing(engine, postgres, monkeypatch):
    tables = []
    for new in (None, 40):
        place = postgres.fresh()
        with psycopg.connect(place, autocommit=True) as base:
            base.execute("CREATE TABLE people (x float8, age float8)")
            with base.cursor() as cursor:
                cursor.executemany("INSERT INTO people VALUES (%s, %s)", list(zip(XS, AGES, strict=True)))
            if new is not None:
                base.execute("UPDATE people SET age = %s WHERE age = %s", (new, AGES[1]))
        tables.append(load_into(f"{place}?table=people", engine, schema=FACTS))
    require_secret(tables, monkeypatch, is_told_apart=False)


# Rows


def test_a_row_does_not_name_a_record_where_rows_follow_from_cells(engine, tmp_path):
    """Else the record that is asked about, which is not protected, would be another on an adjacent table."""
    asked = wf.Explain(
        record="2",
        metric="x",
        context=("age",),
        domain=Schema.of(["x", "age"], edges={"age": (0, 35, 120)}, bounds={"x": (0, 8)}),
        size=6,
        loss=wf.Loss("1"),
    )
    with sqlite3.connect(tmp_path / "people.db") as base:
        base.execute("CREATE TABLE people (x REAL, age REAL, PRIMARY KEY (age, x)) WITHOUT ROWID")
        base.executemany("INSERT INTO people VALUES (?, ?)", zip(XS, AGES, strict=True))
    (tmp_path / "folders" / "age=5").mkdir(parents=True)
    pq.write_table(pa.table({"x": XS}), tmp_path / "folders" / "age=5" / "part.parquet")
    pq.write_table(pa.table({"x": XS, "age": AGES}), tmp_path / "people.parquet")
    places = (f"sqlite:///{tmp_path / 'people.db'}?table=people", tmp_path / "folders", tmp_path / "people.parquet")
    *unordered, plain = (load_into(place, engine, schema=FACTS) for place in places)
    for table in unordered:
        with pytest.raises((DataError, EngineMismatch), match=r"Name (it|the record) by a column of identifiers"):
            project(asked, table)
    assert project(asked, plain) is not None


# Every order


def test_all_sorted_tables_of_eight_records_are_within_epsilon(monkeypatch):
    """The exact law for every pair of adjacent tables of a tiny world, each sorted: the worst order there is. Known
    pairings exceed ε = 1, secret ones do not come near it."""
    query, sites = Scale(loss=wf.Loss("1")), (0.0, 1.0, 3.0, 40.0)
    tables = list(combinations_with_replacement(sites, 8))
    known = {}
    for table in tables:
        found = [np.sort(np.abs(np.subtract(*np.array(table)[order].reshape(2, -1)))) for order in orders(8)]
        known[table] = np.array(found)  # the law follows from the differences alone
    alone = {row.tobytes(): row for rows in known.values() for row in rows}
    monkeypatch.setattr(f"{__name__}.orders", lambda n: [np.arange(n)])
    by_differences = {}
    for name, row in alone.items():
        view = wf.Points.from_array(np.concatenate([np.zeros(4), row])[:, None], columns=("x",))
        (by_differences[name],) = laws(query, view, monkeypatch)
    law = {table: np.array([by_differences[row.tobytes()] for row in rows]) for table, rows in known.items()}
    released = secret = squares = 0.0
    for table in tables:
        for at in range(8):
            for site in sites:
                other = tuple(sorted((*table[:at], site, *table[at + 1 :])))
                if other > table:
                    released = max(released, distance(law[table], law[other]))
                    secret = max(secret, distance(law[table].mean(axis=0), law[other].mean(axis=0)))
                    one, two = law[table].mean(axis=0), law[other].mean(axis=0)
                    orders_above = np.array([0.01, 1, 9, 99])[:, None]
                    moments = (one * (one / two) ** orders_above).sum(axis=1)
                    squares = max(squares, (np.log(moments) / orders_above[:, 0] / (1 + orders_above[:, 0])).max())
    assert squares < 1 / 8  # the means of laws that are 1/8-zCDP are so too
    assert released == pytest.approx(1.036, abs=5e-4)
    assert secret == pytest.approx(0.525, abs=5e-4)


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.kind)
def test_nothing_that_is_released_follows_from_the_pairing_but_by_the_choice(query, monkeypatch):
    """With other pairs and the same choice an answer is the same, to the last word of it."""
    view = query.view(wf.load(pa.table({"x": XS, "age": AGES}), schema=FACTS))
    for module in (scale, detector):
        monkeypatch.setattr(module, "choose_together", lambda errors, **_: [3 for _ in errors])
    values = [query.answer(view, Ordered(order)) for order in orders(6)]
    assert all(value == values[0] for value in values)
    model = Model.from_json(values[0]).to_json() if query.kind == "detector" else {}
    assert set(values[0]) == ({"key", "spreads", "labels", *model} if model else {"scale"})


def test_one_pass_reads_all_columns_of_the_pairs(monkeypatch):
    """A second pass of an engine may have another order; then a record would be in two pairs."""
    values = np.random.default_rng(1).normal(size=(50, 4))
    tiled = load_into(wf.load(values, schema=Schema.of(list("abcd"))).arrow, "tiles")
    passes, chunks = [], tiled.sheet.chunks
    monkeypatch.setattr(tiled.sheet, "chunks", lambda columns: passes.append(columns) or chunks(columns))
    query = Scale(loss=wf.Loss("100"))
    query.answer(query.view(tiled), Scripted())
    assert passes == [[0, 1, 2, 3]]
