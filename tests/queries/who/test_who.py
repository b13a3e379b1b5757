"""Lists of names: what they release, what they refuse beforehand, and what is kept of them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import wallflower as wf
from wallflower.data import Column, Points, Schema, Table
from wallflower.errors import BudgetExhausted, DataError, LossMismatch, ParameterError, Untranslatable
from wallflower.ledger import Ledger
from wallflower.privacy import Loss
from wallflower.queries.who import Who
from wallflower.queries.who.walk import furthest_rank
from wallflower.release import Release, pay, quote
from wallflower.schema import Person
from wallflower.units import Protection

ROWS = 400
FACTS = Schema(columns=(Column("x", low=-50, high=50), Column("y", low=-50, high=50), Column("id", identifier=True)))


class AllNamed:
    """Coins that name everybody whose turn comes."""

    def flip(self, exponent: Fraction) -> bool:
        return False


def make_table(schema: Schema = FACTS, name: str = "icu") -> Table:
    rng = np.random.default_rng(7)
    values = rng.normal(size=(ROWS, 2))
    values[:12] = rng.uniform(20, 40, size=(12, 2))
    cells = {"x": values[:, 0], "y": values[:, 1], "id": [f"p{ROWS - at:03}" for at in range(ROWS)]}
    return Table(arrow=pa.table(cells), schema=schema, name=name)


@pytest.fixture
def table() -> Table:
    return make_table()


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.open(tmp_path / "ledger.db")


def fit(ledger: Ledger, table: Table, **terms) -> int:
    """A budget, a detector, and the number of its release."""
    ledger.grant(table.name, Loss(10, **terms.pop("limit", {})), by="steward", reason="test", **terms)
    query = wf.Detector(loss=Loss("2"), contamination="5%", columns=("x", "y"))
    return pay(query, table, ledger, analyst="ana").answer().ledger_id


def allow(ledger: Ledger, detector: int, most: int = 40, **terms) -> None:
    ledger.allow_naming("icu", detector, most, by="steward", reason="a review", **terms)


def make_query(detector: int, **more) -> Who:
    return Who(**{"detector": detector, "most": 5, "loss": Loss("1"), "identifier": "id"} | more)


def ask(ledger: Ledger, table: Table, query: Who, **more) -> Release:
    return pay(query, table, ledger, analyst="ana", force=True, **more).answer()


# What is released


def test_nobody_is_named_until_the_steward_allows_it(ledger: Ledger, table: Table) -> None:
    detector = fit(ledger, table)
    head = ledger.verify().head
    with pytest.raises(BudgetExhausted) as refusal:
        ask(ledger, table, make_query(detector))
    assert refusal.value.part == "naming"
    assert ledger.verify().head == head
    allow(ledger, detector)
    assert ask(ledger, table, make_query(detector)).value is not None


def test_names_come_from_the_records_above_the_threshold_of_the_detector(ledger: Ledger, table: Table) -> None:
    detector = fit(ledger, table)
    allow(ledger, detector)
    found = ask(ledger, table, make_query(detector, show=("score", "contributions", "row")))
    model = Release.from_dict(ledger.release(detector)).model
    scores = [row["score"] for row in found.value]
    assert scores == sorted(scores, reverse=True)
    assert all(score > model.threshold for score in scores)
    places = {text: at for at, text in enumerate(table.arrow["id"].to_pylist())}
    for row in found.value:
        at = places[row["record"]]
        assert row["row"] == {name: table.arrow[name][at].as_py() for name in ("x", "y", "id")}
        assert row["score"] == model.decision_function(table)[at]
        assert sum(row["contributions"].values()) == pytest.approx(row["score"])


def test_the_law_of_the_list_does_not_depend_on_where_search_stops(table: Table, ledger: Ledger) -> None:
    query = make_query(fit(ledger, table), most=ROWS // 10, above=-1e9)
    view = query.take_releases(query.view(table), ledger.release)
    everybody = list(view.ranked(None, ROWS + 1))
    assert [list(view.ranked(None, first)) for first in (1, 3, ROWS)] == [everybody] * 3
    assert len(everybody) == ROWS
    assert everybody == sorted(everybody)


def test_a_bar_of_its_own_replaces_the_threshold(table: Table, ledger: Ledger) -> None:
    detector = fit(ledger, table)
    view = make_query(detector).take_releases(make_query(detector).view(table), ledger.release)
    scores = view.model.decision_function(table)
    for above, count in ((float(scores.max()), 0), (float(np.sort(scores)[-4]), 3), (-1e9, 5)):
        rows = make_query(detector, above=above).answer(view, AllNamed())
        assert len(rows) == count


def test_rows_and_points_are_named_by_number_where_the_steward_says_that_rows_stay(
    ledger: Ledger, table: Table
) -> None:
    detector = fit(ledger, table)
    allow(ledger, detector)
    query = make_query(detector, identifier=None)
    with pytest.raises(BudgetExhausted, match="keep their numbers"):
        ask(ledger, table, query)
    allow(ledger, detector, by_row=True)
    view = query.take_releases(query.view(table), ledger.release)
    rows = query.answer(view, AllNamed())
    best = np.argsort(-view.model.decision_function(table), kind="stable")[:5]
    assert [row["record"] for row in rows] == best.tolist()
    points = Points.from_array(table.points(("x", "y")).values, columns=("x", "y"), name="icu")
    view = query.take_releases(query.view(points), ledger.release)
    assert query.answer(view, AllNamed()) == rows


# What is refused, by public facts and before the charge


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"most": ROWS // 10 + 1}, ParameterError),
        ({"identifier": "x"}, DataError),
        ({"detector": 99}, ParameterError),
    ],
)
def test_a_refusal_changes_nothing(ledger: Ledger, table: Table, more, error) -> None:
    detector = fit(ledger, table)
    allow(ledger, detector)
    head = ledger.verify().head
    with pytest.raises(error):
        ask(ledger, table, make_query(**{"detector": detector} | more))
    assert ledger.verify().head == head


def test_the_allowance_counts_names_that_were_requested_not_those_that_came_out(ledger: Ledger, table: Table) -> None:
    detector = fit(ledger, table)
    allow(ledger, detector, 12)
    nothing = make_query(detector, above=1e9)  # no record is above this
    assert quote(nothing, table, ledger, analyst="ana").affords == 2
    assert ask(ledger, table, nothing).value == []
    assert ledger.account("icu").naming.find("icu", detector).left == 7
    ask(ledger, table, nothing)
    with pytest.raises(BudgetExhausted) as refusal:
        ask(ledger, table, make_query(detector, most=3))
    assert refusal.value.part == "naming"
    ask(ledger, table, make_query(detector, most=2))


def test_another_detector_is_not_allowed_by_the_first(ledger: Ledger, table: Table) -> None:
    first, second = fit(ledger, table), fit(ledger, table)
    allow(ledger, first)
    with pytest.raises(BudgetExhausted):
        ask(ledger, table, make_query(second))


@pytest.mark.parametrize("loss", [Loss("1", delta="1e-6"), Loss.zcdp("0.5")])
def test_a_loss_with_delta_or_rho_has_no_theorem(loss: Loss) -> None:
    with pytest.raises(LossMismatch):
        make_query(1, loss=loss)


def test_accounts_that_hide_memberships_or_count_moments_name_nobody(tmp_path: Path, table: Table) -> None:
    for number, protection in enumerate((Protection(unit="membership"), Protection(rows="time", unit="record"))):
        with Ledger.open(tmp_path / f"{number}.db") as ledger:
            ledger.declare("other", protection, by="steward")
            detector = fit(ledger, table)
            with pytest.raises(ParameterError):
                ledger.allow_naming("other", detector, 10, by="steward", reason="a review")
            other = replace(table, name="other")
            with pytest.raises(Untranslatable):
                ask(ledger, other, make_query(detector))


def test_a_person_with_several_rows_costs_as_many_lists(tmp_path: Path) -> None:
    person = replace(FACTS, person=Person(id="id", max_rows=2))
    table = make_table(person)
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.declare("icu", person.protects, by="steward")
        detector = fit(ledger, table)
        allow(ledger, detector)
        release = ask(ledger, table, make_query(detector, identifier=None))
        assert (release.booked, release.guarantee.loss) == (Loss("2"), Loss("1"))
        assert {row["record"][0] for row in release.value} <= {"p"}


def test_force_does_not_open_what_the_steward_has_not(ledger: Ledger, table: Table) -> None:
    detector = fit(ledger, table)
    with pytest.raises(BudgetExhausted):
        pay(make_query(detector), table, ledger, analyst="ana", force=True)


# What is kept


def test_the_ledger_keeps_neither_names_nor_their_number(ledger: Ledger, table: Table) -> None:
    detector = fit(ledger, table)
    allow(ledger, detector)
    empty = ask(ledger, table, make_query(detector, above=1e9))
    full = ask(ledger, table, make_query(detector, above=-1e9, loss=Loss("5")))
    assert len(empty.value) < len(full.value)
    kept = [ledger.release(release.ledger_id) for release in (empty, full)]
    sizes = [len(json.dumps(body)) - len(str(body["parameters"])) for body in kept]
    for release, body in zip((empty, full), kept, strict=True):
        text = json.dumps(list(ledger.export()), default=str) + json.dumps(body)
        assert body["value"] is None
        assert set(body["extras"]) == {"digest"}
        assert release.extras["salt"] not in text
        assert not any(f'"{row["record"]}"' in text for row in release.value)
    assert abs(sizes[0] - sizes[1]) < 40  # of which the loss and what is left are written with more digits


def test_equal_lists_have_different_digests(ledger: Ledger, table: Table) -> None:
    detector = fit(ledger, table)
    allow(ledger, detector)
    lists = [ask(ledger, table, make_query(detector, above=1e9)) for _ in range(2)]
    assert lists[0].value == lists[1].value == []
    assert lists[0].extras["digest"] != lists[1].extras["digest"]


def test_an_idempotency_key_gives_the_list_only_where_its_file_is(ledger: Ledger, table: Table, tmp_path: Path) -> None:
    detector = fit(ledger, table)
    allow(ledger, detector)
    query = make_query(detector)
    first = ask(ledger, table, query, idempotency_key="k")
    place = first.write_list(tmp_path / "list.json")
    assert place.stat().st_mode & 0o777 == 0o600
    again = ask(ledger, table, query, idempotency_key="k")
    assert again.replayed
    assert again.is_withheld
    assert again.value is None
    assert again.read_list(place).value == first.value
    other = ask(ledger, table, query)
    with pytest.raises(ParameterError):
        other.read_list(place)
    with pytest.raises(FileExistsError):
        other.write_list(place)
    place.unlink()
    with pytest.raises(ParameterError):
        again.read_list(place)


def test_a_file_with_a_list_does_not_show_by_its_size_how_long_the_list_is(
    ledger: Ledger, table: Table, tmp_path: Path
) -> None:
    detector = fit(ledger, table)
    allow(ledger, detector)
    lists = [ask(ledger, table, make_query(detector, above=above, loss=Loss("4"))) for above in (1e9, -1e9)]
    sizes = {release.write_list(tmp_path / f"{at}.json").stat().st_size for at, release in enumerate(lists)}
    assert sizes == {2**16}


# What is said


def test_the_release_and_later_ones_say_who_is_not_covered(ledger: Ledger, table: Table) -> None:
    detector = fit(ledger, table)
    allow(ledger, detector)
    release = ask(ledger, table, make_query(detector))
    assert release.guarantee.names_records
    assert release.to_dict()["guarantee"]["names_records"] is True
    assert Release.from_dict(json.loads(release.to_json())) == release
    number = f"entry {release.ledger_id} "
    assert number in release.protects
    assert number in ledger.account("icu").protects()
    later = pay(wf.Count(neighbours=3, radius=1.0, columns=("x",), loss=Loss("1")), table, ledger, analyst="bo")
    assert number in later.answer().protects


def test_no_sentence_says_that_people_who_are_named_are_protected(ledger: Ledger, table: Table) -> None:
    detector = fit(ledger, table)
    allow(ledger, detector)
    release = ask(ledger, table, make_query(detector))
    first = re.split(r"(?<=[.:])\s", release.text)[0]
    assert re.search(r"\bno guarantee\b", first, re.IGNORECASE)
    assert re.search(r"\bno guarantee\b", release.guarantee.text.split(".")[0], re.IGNORECASE)
    promised = re.split(r"(?<=\.)\s", release.price)
    certain = [at for at, sentence in enumerate(promised) if "becomes at most" in sentence]
    assert certain
    assert all("whom no answer names" in promised[at + 1] for at in certain)


def test_text_and_picture_are_made_without_the_list(ledger: Ledger, table: Table) -> None:
    query = make_query(fit(ledger, table))
    view = query.take_releases(query.view(table), ledger.release)
    some = query.answer(view, AllNamed())
    assert query.reading(some, view) == query.reading(None, view) == query.reading([], view)
    assert query.picture(some, view) == query.picture(None, view)


def test_a_plan_tells_ranks_and_skips_and_expects_outliers_by_the_detector(ledger: Ledger, table: Table) -> None:
    detector = fit(ledger, table)
    query = make_query(detector)
    view = query.take_releases(query.view(table), ledger.release)
    plan = query.plan_on(view)
    assert plan.options[0].figures["furthest"] == furthest_rank(5, Fraction(1))
    assert plan.options[0].figures["skipped"] == pytest.approx(np.exp(-1))
    assert plan.useful  # 20 outliers are expected, and names come from about 8 ranks
    assert not make_query(detector, most=20).plan_on(view).useful


def open_with_labels(book: Ledger, name: str, categories: tuple[str, ...]) -> wf.Dataset:
    draw = np.random.default_rng(len(categories))
    labels = [categories[at] for at in draw.integers(len(categories), size=400).tolist()]
    arrow = pa.table({"id": [f"p{at}" for at in range(400)], "x": draw.normal(size=400), "ward": labels})
    columns = (Column("id", identifier=True), Column("x", low=-9, high=9), Column("ward", categories=categories))
    book.grant(name, Loss("50"), by="sue")
    return wf.open(arrow, schema=Schema(columns=columns), name=name, ledger=book)


def test_a_detector_with_labels_names_records_and_other_labels_are_refused_before_the_charge(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger.db") as book:
        first = open_with_labels(book, "first", ("north", "south"))
        other = open_with_labels(book, "other", ("south", "north", "west"))
        detector = first.detector(epsilon="4", columns=("x", "ward"), force=True).ledger_id
        ask = {"detector": detector, "most": 4, "above": -1e9, "epsilon": "20", "identifier": "id", "force": True}
        for dataset in (first, other):
            book.allow_naming(dataset.name, detector, 10, by="sue", reason="a review")
        assert len(first.who(**ask).value) == 4
        with pytest.raises(DataError, match="other categories"):
            other.who(**ask)
        assert not book.history("other", event="charge")
