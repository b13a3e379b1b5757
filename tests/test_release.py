"""The one door: charge, then look, then record; and what comes out of it."""

from __future__ import annotations

import inspect
import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import wallflower as wf
from above import Above
from ranking import Ranking
from wallflower.data import load
from wallflower.dataset import Dataset
from wallflower.errors import BudgetExhausted, DataError, KeyConflict, NotUseful, ParameterError
from wallflower.ledger import Ledger
from wallflower.privacy import Exact, Kind, Loss, Neighbours
from wallflower.query import Quality
from wallflower.release import Release, default_analyst, release
from wallflower.release.answer import citation
from wallflower.release.guarantee import Guarantee, certainty
from wallflower.release.text import readable
from wallflower.schema import Column, Person, Schema
from wallflower.units import Protection

ROWS = np.column_stack([np.arange(40.0), np.arange(40.0)[::-1]])


@pytest.fixture
def points() -> wf.Points:
    return wf.Points.from_array(ROWS, columns=("a", "b"), name="ward")


def above(epsilon: str = "0.25", **more: Any) -> Above:
    return Above(bar=9.5, loss=Loss(epsilon), **more)


def test_a_release_is_charged_answered_and_recorded(points: wf.Points, ledger: Ledger) -> None:
    made = release(above(), points, ledger, analyst="ana")
    assert [entry.event for entry in ledger.history("ward")] == ["charge", "release"]
    assert ledger.release(made.ledger_id) == made.to_dict()
    assert (made.dataset, made.analyst, made.left, made.ledger_id) == ("ward", "ana", Loss("0.75"), 1)
    assert 0 <= made.value <= 40
    assert ledger.verify().entries == 2


def test_the_charge_is_durable_before_the_look(points: wf.Points, place: str) -> None:
    seen = []

    class Nosy(Above):
        def answer(self, data: Any, noise: Any) -> int:
            with Ledger.open(place) as other:
                seen.append([entry.event for entry in other.history("ward")])
            return super().answer(data, noise)

    with Ledger.open(place) as ledger:
        release(Nosy(bar=1, loss=Loss("0.5")), points, ledger, analyst="ana")
    assert seen == [["charge"]]


def test_a_refusal_looks_at_nothing_and_leaves_no_trace(points: wf.Points, ledger: Ledger) -> None:
    class Blind(Above):
        def answer(self, data: Any, noise: Any) -> int:
            raise AssertionError("looked")

    with pytest.raises(BudgetExhausted):
        release(Blind(bar=1, loss=Loss("2")), points, ledger)
    assert ledger.history() == []


def test_an_unfit_table_is_refused_before_anything_is_charged(points: wf.Points, ledger: Ledger) -> None:
    with pytest.raises(DataError, match="column 'c'"):
        release(above(columns=("c",)), points, ledger)
    assert ledger.history() == []


def test_the_same_key_gives_the_same_release_without_a_look(points: wf.Points, ledger: Ledger) -> None:
    first = release(above(), points, ledger, analyst="ana", idempotency_key="k")
    other = wf.Points.from_array(ROWS + 1000, columns=("a", "b"), name="ward")
    again = release(above(), other, ledger, analyst="ana", idempotency_key="k")
    assert again == replace(first, replayed=True)
    assert not first.replayed
    assert ledger.remaining("ward") == Loss("0.75")
    with pytest.raises(KeyConflict):
        release(above("0.5"), points, ledger, analyst="ana", idempotency_key="k")


def test_a_failed_look_stays_charged_and_the_next_question_is_answered(points: wf.Points, ledger: Ledger) -> None:
    class Torn(Above):
        def answer(self, data: Any, noise: Any) -> int:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        release(Torn(bar=1, loss=Loss("0.5")), points, ledger, analyst="ana")
    assert ledger.remaining("ward") == Loss("0.5")
    assert release(above(), points, ledger, analyst="ana").left == Loss("0.25")


def test_data_may_be_anything_that_loads_and_a_ledger_anything_that_opens(tmp_path: Path, monkeypatch: Any) -> None:
    source = tmp_path / "ward.csv"
    source.write_text("a,b\n" + "".join(f"{row},{row}\n" for row in range(20)))
    monkeypatch.setenv("WALLFLOWER_LEDGER", str(tmp_path / "default.db"))
    assert release(above(), source, tmp_path / "own.db").dataset == "ward"
    assert release(above(), pa.table({"a": [1.0, 2.0], "b": [1.0, 2.0]}), None).dataset == "unnamed"
    with Ledger.open(tmp_path / "default.db") as ledger:
        assert ledger.datasets() == ["unnamed"]


def test_the_starter_cap_is_said_in_the_release_until_somebody_grants(points: wf.Points, ledger: Ledger) -> None:
    assert "starter cap of ε = 1" in release(above(), points, ledger).notes[0]
    ledger.grant("ward", Loss("2"), by="steward")
    assert release(above(), points, ledger).notes == ()


def test_a_release_survives_json_and_a_newer_version(points: wf.Points, ledger: Ledger) -> None:
    made = release(above(), points, ledger)
    stored = json.loads(made.to_json())
    assert Release.from_dict(stored) == made
    assert Release.from_dict(stored | {"from a newer version": 1}) == made
    assert stored["guarantee"]["epsilon"] == 0.25
    assert (stored["guarantee"]["delta"], stored["guarantee"]["rho"]) == (0, None)
    assert (stored["guarantee"]["kind"], stored["guarantee"]["adjacency"]) == ("pure", "replace-one-record")
    assert stored["facts"] == {"n": 40, "dimension": 2, "columns": ["a", "b"]}
    assert stored["version"] == wf.__version__


def test_nothing_but_the_answer_depends_on_the_records(ledger: Ledger) -> None:
    private = ("value", "interval", "text", "extras", "ledger_id", "left", "charged_at")
    public = []
    for rows in (ROWS, ROWS * 1e6, np.zeros_like(ROWS)):
        points = wf.Points.from_array(rows, columns=("a", "b"), name="ward")
        made = release(above(), points, ledger).to_dict()
        public.append({name: value for name, value in made.items() if name not in private})
    assert public[0] == public[1] == public[2]


def test_a_reading_never_gets_the_records(points: wf.Points, ledger: Ledger) -> None:
    class Curious(Above):
        def reading(self, value: int, facts: Any) -> Any:
            assert not hasattr(facts, "values")
            return super().reading(value, facts)

    release(Curious(bar=1, loss=Loss("0.5")), points, ledger)


def test_releases_stack_as_arrow_rows(points: wf.Points, ledger: Ledger) -> None:
    ledger.grant("ward", Loss("9", delta="1e-6"), by="steward", accounting="concentrated")
    losses = (Loss("0.5"), Loss("0.25", delta="1e-9"), Loss.zcdp("0.5"))
    queries = [wf.Count(neighbours=3, radius=1.0, loss=loss) for loss in losses]
    rows = pa.concat_tables([release(query, points, ledger).to_arrow() for query in queries])
    assert rows["epsilon"].to_pylist() == [0.5, 0.25, None]
    assert rows["rho"].to_pylist() == [None, None, 0.5]
    assert rows["ledger_id"].to_pylist() == [2, 4, 6]


def test_a_release_reads_well(points: wf.Points, ledger: Ledger) -> None:
    made = replace(release(above(), points, ledger, analyst="ana"), value=1234.5678, interval=(1230.0, 1240.25))
    assert repr(made) == "Release(above of ward: 1,234.6 (95 % interval 1,230 to 1,240.2), ε = 0.25, ledger 1)"
    assert "a factor of at most 1.29" in str(made)
    assert replace(made, interval=None).summary == "1,234.6"
    assert readable("text") == "text"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([["age"], ["age", "hours"]], "age; age × hours"),
        ([1, 2], "1, 2"),
        (["age", "hours"], "age, hours"),
        ([[1, 2.5], [3, 4]], "1, 2.5; 3, 4"),
        ({"columns": ["age", "hours"], "outliers": 1234}, "columns age × hours, outliers 1,234"),
        ([{"columns": ["age"], "outliers": 14}, {"columns": [], "outliers": 0}], None),
        ({"true_alarms": 0.91234, "works": True, "note": None}, "true alarms 0.912, works yes, note not proved"),
        ([], "none"),
        ({}, "none"),
        (True, "yes"),
    ],
)
def test_a_value_of_many_parts_reads_well_and_survives_json(
    points: wf.Points, ledger: Ledger, value: Any, words: str | None
) -> None:
    expected = words or "columns age, outliers 14; columns none, outliers 0"
    made = replace(release(above(), points, ledger, analyst="ana"), value=value, interval=None)
    assert readable(value) == made.summary == expected
    assert Release.from_dict(json.loads(made.to_json())) == made
    assert expected in made._repr_html_()
    stored = made.to_arrow()["value"].to_pylist()[0]
    assert stored == value if isinstance(value, bool) else json.loads(stored) == value


def test_lists_stack_as_arrow_rows_however_long_they_are(points: wf.Points, ledger: Ledger) -> None:
    made = release(above(), points, ledger)
    rows = [replace(made, value=value).to_arrow() for value in ([], [["a"]], [{"a": 1}])]
    assert pa.concat_tables(rows)["value"].to_pylist() == ["[]", '[["a"]]', '[{"a": 1}]']


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (Loss("0.5"), "Differential privacy with ε = 0.5"),
        (Loss("20"), "at most e^20"),
        (Loss("1", delta="1e-6"), "(ε, δ)-differential privacy with ε = 1, δ = 1e-06"),
        (Loss.zcdp("0.02"), "which implies ε = "),
        (Loss("1", kind=Kind.METRIC, neighbours=Neighbours.READING), "any one reading"),
        (Loss("1", kind=Kind.OUTPUT_CONSTRAINED), "Output-constrained privacy"),
    ],
)
def test_every_guarantee_has_words_and_survives_json(loss: Loss, words: str) -> None:
    promise = Guarantee(loss)
    assert words in promise.text
    assert Guarantee.from_json(json.loads(json.dumps(promise.to_json()))) == promise
    assert (promise.kind, promise.adjacency) == (loss.kind, loss.neighbours)


@pytest.mark.parametrize(
    ("booked", "protection", "first", "more"),
    [
        (Loss("0.5"), Protection(person="who"), "ε = 0.5: with any one person (all rows with the same who) repl", ""),
        (
            Loss("1.5"),
            Protection(person="who", units_per_person=3),
            "ε = 1.5: with any one person (all rows with the same who, of which at most 3 are kept) repl",
            "it is ε = 0.5.",
        ),
        (
            Loss("0.5", neighbours=Neighbours.ADD_REMOVE),
            Protection(person="who", unit="membership"),
            "ε = 0.5: with any one person (all rows with the same who) added or removed",
            "",
        ),
    ],
)
def test_a_guarantee_names_the_person_and_what_is_booked_for_them(
    booked: Loss, protection: Protection, first: str, more: str
) -> None:
    promise = Guarantee(Loss("0.5", neighbours=booked.neighbours), booked=booked, protection=protection)
    assert promise.text.startswith(f"Differential privacy with {first}")
    assert f"a factor of at most {math.ceil(math.exp(booked.amount) * 100) / 100:g}." in promise.text
    assert promise.text.endswith(more)
    assert ("one record" in promise.text) is bool(more)
    assert promise.person_loss == booked
    assert Guarantee.from_json(json.loads(json.dumps(promise.to_json()))) == promise


def test_an_output_constrained_guarantee_does_not_claim_the_rows_of_a_person() -> None:
    loss = Loss("1", kind=Kind.OUTPUT_CONSTRAINED, neighbours=Neighbours.ADD_REMOVE)
    several = Guarantee(loss, protection=Protection(person="who", units_per_person=3))
    assert several.person_loss is None
    assert "any one person" not in several.text
    assert "a person with several rows is not covered" in several.text
    single = Guarantee(loss, protection=Protection(person="who"))
    assert "any one person (all rows with the same who)" in single.text


@pytest.mark.parametrize(("unit", "times"), [({"rollup": {"pulse": "max"}}, 1), ({"max_rows": 3}, 3)])
def test_a_release_states_what_a_person_loses(ledger: Ledger, unit: dict[str, Any], times: int) -> None:
    rows = pa.table({"who": [f"p{row % 10}" for row in range(60)], "pulse": [float(row) for row in range(60)]})
    facts = Schema(columns=(Column("pulse", low=0, high=60),), person=Person(id="who", **unit), name="visits")
    ledger.grant("visits", Loss("10"), by="sue")
    visits = Dataset(load(rows, schema=facts), ledger, "ana", (Above,))
    plan = visits.plan.above(bar=9.5, epsilon="0.5")
    assert plan.booked == Loss(Fraction(times, 2))
    assert wf.query.Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan
    expected = "ε = 0.5 per person" if times == 1 else "ε = 0.5 per record, booked as ε = 1.5 per person"
    assert plan.cost_text == expected
    assert expected in str(plan)
    assert ledger.account("visits").spent.epsilon == 0
    made = visits.above(bar=9.5, epsilon="0.5")
    assert made.booked == made.guarantee.booked == Loss(Fraction(times, 2))
    assert "one person (all rows with the same who" in made.guarantee.text
    assert certainty(made.booked) is not None
    assert str(certainty(made.booked)) in made.price
    assert Release.from_dict(json.loads(made.to_json())).guarantee == made.guarantee
    assert f"{made.loss_text}." in citation(made, publisher="", link="")
    assert made.loss_text == f"{made.booked} per person"
    with pytest.raises(BudgetExhausted, match="all rows with the same who"):
        visits.above(bar=9.5, epsilon="100")


def test_the_analyst_is_the_variable_or_the_user(monkeypatch: Any) -> None:
    monkeypatch.setenv("WALLFLOWER_ANALYST", "ana")
    assert default_analyst() == "ana"
    monkeypatch.delenv("WALLFLOWER_ANALYST")
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.getuid", lambda: 4_000_000_000)
    assert default_analyst() == "user 4000000000"


# wf.open


@pytest.fixture
def ward(points: wf.Points, ledger: Ledger) -> Dataset:
    return Dataset(points, ledger, "ana", (Above,))


def test_an_opened_data_set_has_a_method_per_question(ward: Dataset) -> None:
    made = ward.above(bar=9.5, epsilon="0.25", idempotency_key="k")
    assert (made.kind, made.analyst) == ("above", "ana")
    assert ward.above(bar=9.5, epsilon="1/4", idempotency_key="k").replayed
    assert ward.releases() == [made]
    assert ward.budget().spent.epsilon == Fraction(1, 4)
    assert {"above", "plan", "budget", "releases"} <= set(dir(ward))


def test_methods_tell_what_they_take(ward: Dataset) -> None:
    taken = inspect.signature(ward.above).parameters
    assert list(taken)[:2] == ["bar", "columns"]
    assert {"epsilon", "delta", "rho", "loss", "idempotency_key"} <= set(taken)
    assert ward.above.__doc__.startswith("How many records are above the bar?")
    assert "which side of the bar: above, below" in ward.above.__doc__
    assert "idempotency_key" not in inspect.signature(ward.plan.above).parameters


def test_fractions_are_given_as_text_and_sets_of_columns_as_tuples(points: wf.Points, ledger: Ledger) -> None:
    ward = Dataset(points, ledger, "ana", (Ranking,))
    made = ward.ranking(bar="1/3", among=(("a",), ("a", "b")), epsilon="0.5")
    assert (made.parameters["bar"], made.parameters["among"]) == ("1/3", [["a"], ["a", "b"]])
    asked = Ranking.from_json(json.loads(made.to_json())["parameters"])
    assert asked == Ranking(bar=Fraction(1, 3), among=(("a",), ("a", "b")), loss=Loss("0.5"))
    assert ward.releases() == [made]
    assert inspect.signature(ward.ranking).parameters["bar"].annotation == Exact
    with pytest.raises(ParameterError, match=r"bar: 0\.5 is a float"):
        ward.ranking(bar=0.5, epsilon="0.5")


def test_a_plan_says_how_often_the_budget_affords_it(ward: Dataset, ledger: Ledger) -> None:
    assert ward.plan.above(bar=9.5, epsilon="0.25").affords == 4
    ledger.grant("ward", Loss("3", delta="1e-6"), by="steward")
    assert [ward.plan.above(bar=9.5, epsilon=epsilon).affords for epsilon in ("0.1", "0.05", "1")] == [35, 140, 3]
    ward.above(bar=9.5, epsilon="1")
    assert [ward.plan.above(bar=9.5, epsilon=epsilon).affords for epsilon in ("0.1", "1", "2.5")] == [20, 2, 0]


def test_an_answer_says_what_it_cost_and_what_that_means(ward: Dataset) -> None:
    made = ward.above(bar=9.5, epsilon="0.5")
    assert (made.booked, made.limit, made.left) == (Loss("0.5"), Loss("1"), Loss("0.5"))
    assert made.price.startswith(
        "It cost ε = 0.5. ε = 0.5 is left for ana. The budget of all analysts together is ε = 1."
    )
    assert "becomes at most 62.3 % sure" in made.price
    assert made.protects.startswith("one record")
    assert Release.from_dict(json.loads(made.to_json())) == made


def test_what_is_left_of_a_share_is_not_said_to_be_of_the_limit(ward: Dataset, ledger: Ledger) -> None:
    ledger.grant("ward", Loss("2"), by="steward")
    ledger.set_quota("ward", "ana", Loss("1.5"), by="steward")
    made = ward.above(bar=9.5, epsilon="0.5")
    assert made.price.startswith(
        "It cost ε = 0.5. ε = 1 is left for ana. The budget of all analysts together is ε = 2."
    )


def test_no_cell_of_a_file_is_run_by_a_spreadsheet(ward: Dataset) -> None:
    rows = [{"=1+1": "@SUM(A1)", "outliers": -3}, {"=1+1": "-2", "outliers": 4}]
    made = replace(ward.above(bar=9.5, epsilon="0.5"), value=rows, interval=None)
    assert made.to_csv() == "'=1+1,outliers\n'@SUM(A1),-3\n-2,4\n"


def test_certainty_is_never_told_too_small() -> None:
    for text in ("0", "0.001", "0.5", "1", "3", "20", "1000000"):
        loss = Loss(text)
        words = certainty(loss)
        assert words is not None
        grown = 1 / (1 + math.exp(-float(loss.amount)))
        if grown > 0.999:
            assert "can become over 99.9 % sure" in words
            continue
        told = float(words.split("at most ")[1].split(" %")[0]) / 100
        assert grown <= told <= grown + 0.001 + 1e-9
    assert certainty(Loss.zcdp("1")) is None


def test_certainty_counts_delta_in_and_is_told_of_the_average() -> None:
    """The mechanism that tells everything with chance δ, and else answers at random, attains it."""
    epsilon, delta = 1, 0.1
    apart = (1 - delta) / (1 + math.exp(-epsilon))
    words = str(certainty(Loss("1", delta="0.1")))
    told = float(words.split("at most ")[1].split(" %")[0]) / 100
    assert delta + apart <= told <= delta + apart + 0.001
    assert words.endswith(" % sure on average.")


def test_an_answer_of_no_use_is_sold_only_to_whoever_wants_it_anyway(ward: Dataset, ledger: Ledger) -> None:
    with pytest.raises(NotUseful, match=r"drowns the answer.*force=True") as refusal:
        ward.above(bar=9.5, epsilon="0.001")
    assert (refusal.value.kind, refusal.value.smallest) == ("above-the-bar/1", "3/800")
    assert ledger.history("ward") == []
    made = ward.above(bar=9.5, epsilon="0.001", force=True)
    assert made.quality is not None
    assert (made.quality.noise, "drowns the answer" in made.quality_text) == ("mostly noise", True)
    assert made.quality_text in str(made)


def test_an_answer_without_a_quality_of_its_own_has_that_of_its_plan(ward: Dataset) -> None:
    made = ward.above(bar=9.5, epsilon="0.25")
    assert made.quality == Quality("moderate noise", "by the plan: the noise is small")
    assert Release.from_dict(json.loads(made.to_json())) == made


def test_what_was_sold_once_comes_back_without_another_word(ward: Dataset) -> None:
    made = ward.above(bar=9.5, epsilon="0.001", idempotency_key="k", force=True)
    assert ward.above(bar=9.5, epsilon="0.001", idempotency_key="k") == replace(made, replayed=True)


def test_the_door_for_programs_warns_of_an_answer_of_no_use(points: wf.Points, ledger: Ledger) -> None:
    with pytest.warns(UserWarning, match="drowns the answer"):
        release(above("0.001"), points, ledger)
    release(above("0.001"), points, ledger, force=True)


def test_a_release_says_what_was_asked_and_when_it_was_charged(ward: Dataset, ledger: Ledger) -> None:
    made = ward.above(bar=9.5, columns=("a",), epsilon="0.25")
    assert made.terms == "bar 9.5, columns a, side above, clamp yes"
    assert made.charged_at == ledger.history("ward", event="charge")[0].time
    assert made.charged_at_text.endswith(" UTC")


def test_a_release_of_an_older_program_has_no_quality(ward: Dataset) -> None:
    stored = ward.above(bar=9.5, epsilon="0.25").to_dict()
    old = {name: value for name, value in stored.items() if name not in ("quality", "terms", "charged_at")}
    read = Release.from_dict(old)
    assert (read.quality, read.quality_text, read.terms, read.charged_at_text) == (None, "", "", "")


def test_a_plan_spends_nothing(ward: Dataset) -> None:
    plan = ward.plan.above(bar=9.5, epsilon="0.25")
    assert plan == ward.plan("above", bar=9.5, epsilon="0.25") == ward.plan.of(above())
    assert plan.facts == {"n": 40, "dimension": 2}
    assert ward.releases() == []
    assert ward.budget().spent.epsilon == 0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"bar": 1, "epsilon": 0.5}, "0.5 is a float and only nearly what you wrote"),
        ({"baar": 1, "epsilon": "0.5"}, "Did you mean bar?"),
        ({"epsilon": "0.5"}, "bar is missing"),
        ({"bar": 1}, "no privacy loss is stated"),
        ({"bar": 1, "epsilon": "1", "rho": "1"}, "a loss is stated once"),
        ({"bar": 1, "epsilon": "1", "loss": Loss("1")}, "a loss is stated once"),
        ({"bar": 1, "delta": "1e-6"}, "a loss is stated once"),
    ],
)
def test_a_wrong_call_says_what_to_do(ward: Dataset, given: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words.replace("?", r"\?")):
        ward.above(**given)
    assert ward.releases() == []


def test_a_loss_is_stated_in_any_of_three_ways(points: wf.Points, ledger: Ledger) -> None:
    ward = Dataset(points, ledger, "ana", (wf.Count,))
    nearby = {"neighbours": 3, "radius": 1.0}
    assert ward.plan.count(**nearby, loss=Loss("0.5")).cost == Loss("0.5")
    assert ward.plan.count(**nearby, epsilon="0.5", delta="1e-6").cost == Loss("0.5", delta="1e-6")
    assert ward.plan.count(**nearby, rho="0.5").cost == Loss.zcdp("0.5")


def test_an_unknown_question_is_an_attribute_error_with_a_suggestion(ward: Dataset) -> None:
    with pytest.raises(AttributeError, match="Did you mean above"):
        ward.abov  # noqa: B018
    assert not hasattr(ward, "_repr_html_")


def test_an_opened_data_set_shows_public_facts_only(ward: Dataset) -> None:
    assert repr(ward).startswith("<ward: 40 records, 2 columns; ask above; Ledger(")


def test_open_reads_source_schema_and_ledger(tmp_path: Path) -> None:
    (tmp_path / "ward.csv").write_text("a,who\n1,x\n2,y\n3,z\n")
    (tmp_path / "ward.toml").write_text('name = "icu"\n[columns.a]\nscale = 2\n')
    people = wf.open(tmp_path / "ward.csv", schema=tmp_path / "ward.toml", ledger=tmp_path / "ledger.db", analyst="ana")
    assert (people.name, people.releases()) == ("icu", [])
    table = wf.load(tmp_path / "ward.csv", schema=wf.Schema.of(["a"]))
    assert wf.open(table, ledger=tmp_path / "ledger.db").name == "ward"
    with pytest.raises(ParameterError, match="brings its own schema and name"):
        wf.open(table, ledger=tmp_path / "ledger.db", name="icu")


def test_the_package_exports_what_it_says() -> None:
    assert all(hasattr(wf, name) for name in wf.__all__)
    assert sorted(wf.__all__) == wf.__all__


def test_certainty_is_said_of_somebody_who_knows_the_rest() -> None:
    """Of twins whom nobody knows, an answer tells twice: 88.1 %, not the 73.2 % of a record that is alone unknown."""
    words = str(certainty(Loss("1")))
    assert words.startswith("Even someone who knows all the other data")
    assert 1 / (1 + math.exp(-2 * 1)) > 0.88 > float(words.split("at most ")[1].split(" %")[0]) / 100
