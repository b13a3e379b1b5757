"""The question: what it takes, what it refuses, what it says."""

from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest

import wallflower as wf
from wallflower.errors import BudgetExhausted, DataError, ParameterError
from wallflower.noise import system_noise
from wallflower.privacy import Kind, Neighbours
from wallflower.queries.explain.detectors import CustomDetector, Distance, Grubbs, Lof, Tukey
from wallflower.queries.explain.draws.dp import chance_of_none
from wallflower.queries.explain.draws.utilities import CustomUtility
from wallflower.queries.explain.exact import valid_contexts
from wallflower.queries.explain.space.contexts import predicate
from wallflower.synthetic import salaries

JOBS, YEARS = tuple("abcd"), (2008, 2009, 2010)
DOMAIN = wf.Schema.of(
    ["job", "year", "salary"], categories={"job": JOBS, "year": YEARS}, bounds={"salary": (0, 1_000_000)}, clip=True
)


def frame(n=3000, seed=1):
    """Salaries by job and year; record 0 earns far more than anybody in its job."""
    codes, metric, _ = salaries(n, (4, 3), seed=seed)
    codes[0], metric[0] = (1, 2), 900_000.0
    jobs, years = np.array(JOBS)[codes[:, 0]], np.array(YEARS)[codes[:, 1]]
    return pd.DataFrame({"staff": [f"p{row}" for row in range(n)], "job": jobs, "year": years, "salary": metric})


def asked(**given):
    usual = {"record": "0", "metric": "salary", "context": ("job", "year"), "domain": DOMAIN, "size": 4000}
    return wf.Explain(**usual | {"loss": wf.Loss("1")} | given)


def opened(tmp_path, **budget):
    people = frame()
    book = wf.Ledger.open(str(tmp_path / "ledger.db"))
    book.grant("people", wf.Loss("50"), by="owner")
    book.allow_constrained("people", "50", by="owner")
    return people, book


WAYS = [
    {},
    {"detector": "bins:points=21,fraction=0.05", "loss": wf.Loss("2")},  # so that none is never said
    {"detector": "distance:k=200,radius=20000", "loss": wf.Loss("2")},
    {"detector": "clamped-grubbs", "loss": wf.Loss("5")},
    {"top": 3, "doubt": 0},
    {"mode": "ocdp"},
    {"mode": "ocdp", "detector": "grubbs"},
    {"mode": "ocdp", "detector": "lof:k=5"},
    {"mode": "ocdp", "detector": "histogram", "top": 2},
    {"mode": "ocdp", "detector": "grubbs", "search": "best-first"},
    {"mode": "ocdp", "detector": "grubbs", "search": "uniform", "samples": 9},
    {"mode": "ocdp", "detector": "grubbs", "search": "walk", "samples": 9},
    {"mode": "ocdp", "detector": "grubbs", "search": "dfs", "samples": 9},
    {"mode": "ocdp", "detector": "grubbs", "search": "bfs", "samples": 9},
    {"mode": "ocdp", "detector": "grubbs", "search": "guided", "samples": 20},
    {"mode": "ocdp", "detector": "grubbs", "utility": "overlap", "near": "0100001"},
    {"mode": "ocdp", "detector": "grubbs", "search": "bfs", "start": "0100001", "unseen": True},
    {"mode": "ocdp", "detector": CustomDetector(lambda values, index: bool(values[index] > 3 * np.median(values)))},
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "given", WAYS, ids=lambda given: " ".join(f"{key}={str(value)[:20]}" for key, value in given.items()) or "usual"
)
def test_every_way_names_contexts_in_which_the_record_is_an_outlier(given, tmp_path):
    people, book = opened(tmp_path)
    query = asked(**given)
    made = wf.release(query, wf.load(people, schema=query.wants(), name="people"), book)
    codes = np.column_stack([np.searchsorted(JOBS, people["job"]), np.searchsorted(YEARS, people["year"])])
    valid = valid_contexts(codes, [4, 3], people["salary"].to_numpy(), 0, query.detector_for(4000))
    assert 1 <= len(made.value) <= query.top
    for item, filters in zip(made.value, made.extras["filters"], strict=True):
        assert item["bits"] in valid
        chosen = eval(filters["pandas"], {"df": people})  # noqa: S307 - our own text
        assert len(chosen) == valid[item["bits"]]
        also = eval(filters["polars"], {"df": pl.from_pandas(people), "pl": pl})  # noqa: S307 - our own text
        assert len(also) == len(chosen)
    assert made.facts.n == 4000
    assert "at most 4,000 records" in str(made.facts)


def test_an_answer_is_booked_for_a_replaced_record_and_the_paper_s_mode_is_fenced_off(tmp_path):
    people = frame()
    table = wf.load(people, schema=asked().wants(), name="people")
    half = asked(loss=wf.Loss("0.5"))
    with wf.Ledger.open(str(tmp_path / "ledger.db")) as book:
        plain = wf.release(half, table, book)
        assert plain.guarantee.adjacency is Neighbours.ADD_REMOVE
        assert plain.booked == wf.Loss(Fraction(342, 514))
        assert book.account("people").names == ("0",)
        with pytest.raises(BudgetExhausted, match="no differential privacy"):
            wf.release(asked(mode="ocdp"), table, book)
        book.allow_constrained("people", "1", by="owner")
        made = wf.release(asked(mode="ocdp"), table, book)
        after = book.account("people")
    assert (after.spent.epsilon, after.fence.since) == (Fraction(342, 514), made.ledger_id)
    assert made.guarantee.kind is Kind.OUTPUT_CONSTRAINED
    assert "weaker than differential privacy" in str(made)
    assert made.guarantee.text.count("exactly the same contexts") == 1


def test_a_detector_without_a_margin_is_not_quietly_less_private():
    for detector in ("lof", "grubbs", "histogram", Lof(), Grubbs(), CustomDetector(lambda values, index: True)):
        with pytest.raises(ParameterError, match="no margin"):
            asked(detector=detector)
        with pytest.raises(ParameterError, match="mode"):
            asked(detector=detector, mode="dp")
        assert asked(detector=detector, mode="ocdp").cost().kind is Kind.OUTPUT_CONSTRAINED


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"record": "p7"}, "identifier"),
        ({"context": ()}, "context"),
        ({"context": ("job", "job")}, "context"),
        ({"context": ("job", "salary")}, "context"),
        ({"context": ("town",)}, "public values are not stated"),
        ({"detector": "tukie"}, "Did you mean tukey"),
        ({"detector": "tukey:fences=2"}, "Did you mean fence"),
        ({"detector": "distance:k=3"}, "needs radius"),
        ({"detector": "tukey:fence=wide"}, "not a number"),
        ({"mode": "pure"}, "mode"),
        ({"top": 0}, "top"),
        ({"top": 33}, "32 contexts"),
        ({"samples": 0}, "samples"),
        ({"search": "bfs"}, "a setting of mode ocdp"),
        ({"mode": "ocdp", "search": "dijkstra"}, "search"),
        ({"mode": "ocdp", "utility": "overlap"}, "near"),
        ({"mode": "ocdp", "near": "0100001"}, "near"),
        ({"mode": "ocdp", "utility": "overlap", "near": "01"}, "7 bits"),
        ({"mode": "ocdp", "start": "0100001"}, "looking"),
        ({"mode": "ocdp", "start": "01", "unseen": True}, "7 bits"),
        ({"size": 2 * 10**9}, "size"),
        ({"detector": "clamped-grubbs:low=0,high=5e-324"}, "wider"),
        ({"detector": "clamped-grubbs:largest=99"}, "largest is 99, and tables may have 100"),
        ({"doubt": 1}, "doubt"),
        ({"clear": 0}, "clear"),
        ({"loss": wf.Loss("1", delta="1e-6")}, "delta"),
        ({"loss": wf.Loss.zcdp("1")}, "epsilon"),
        ({"loss": wf.Loss("0")}, "epsilon"),
    ],
    ids=str,
)
def test_what_makes_no_question_is_refused(given, words):
    with pytest.raises(ParameterError, match=words):
        asked(**given).detector_for(100)


def test_tables_outside_what_is_public_are_refused_without_a_value():
    people = frame()
    query = asked(identifier="staff", record="p17")
    row = query.view(wf.load(people, schema=query.wants())).table
    assert row.values[row.record] == people["salary"][17]
    with pytest.raises(DataError, match="not exactly one"):
        asked(identifier="staff", record="nobody").view(wf.load(people, schema=query.wants()))
    with pytest.raises(DataError, match="no such row"):
        asked(record="3000").view(people)
    with pytest.raises(DataError, match="public bound"):
        asked(size=2999).view(people)
    with pytest.raises(ParameterError, match="size"):
        asked(size=None).view(people)
    strange = people.assign(job=people["job"].where(people.index != 5, "spy"))
    with pytest.raises(DataError, match="public categories") as refused:
        asked().view(strange)
    assert "spy" not in str(refused.value)
    other = wf.Schema.of(["job", "year", "salary"], categories={"job": (*JOBS, "e"), "year": YEARS})
    with pytest.raises(DataError, match="other categories"):
        asked().view(wf.load(people, schema=other))


def test_a_function_that_fails_is_refused_before_the_charge_or_finds_nothing(tmp_path):
    people, book = opened(tmp_path)
    table = wf.load(people, schema=asked().wants(), name="people")
    broken = [{"detector": CustomDetector(lambda values, index: values[1000] > 1)}]
    broken += [{"detector": "grubbs", "utility": CustomUtility(lambda bits, values: int(values[0] / 0), 1)}]
    for given in broken:
        with pytest.raises(ParameterError, match="synthetic numbers"):
            wf.release(asked(mode="ocdp", **given), table, book)
    assert not book.history("people", event="charge")
    fragile = CustomDetector(lambda values, index: bool([True][len(values) > 1000]))
    assert wf.release(asked(mode="ocdp", detector=fragile), table, book).value


class Largest:
    """Keeps the protocol of a detector."""

    def outlier(self, values, index):
        return bool(values[index] == values.max())


def is_largest(values, index, least=1):
    return bool(len(values) >= least and values[index] == values.max())


@pytest.mark.parametrize(
    ("detector", "name"),
    [
        (is_largest, "custom:test_explain.is_largest"),
        (partial(is_largest, least=3), "custom:test_explain.is_largest"),
        (Largest(), "custom:test_explain.Largest"),
        (CustomDetector(is_largest, name="largest"), "custom:largest"),
        (CustomDetector(lambda values, index: True, name="all"), "custom:all"),
    ],
)
def test_a_detector_of_ones_own_is_taken_as_it_is_and_named(detector, name, tmp_path):
    people, book = opened(tmp_path)
    query = asked(mode="ocdp", detector=detector)
    answer = wf.release(query, wf.load(people, schema=query.wants(), name="people"), book)
    assert answer.parameters["detector"].replace("tests.queries.explain.", "") == name


def test_a_utility_of_ones_own_states_its_sensitivity_and_is_named(tmp_path):
    people, book = opened(tmp_path)
    with pytest.raises(ParameterError, match="needs its sensitivity"):
        asked(mode="ocdp", detector="grubbs", utility=lambda bits, values: 1)
    utility = wf.CustomUtility(lambda bits, values: bits.count("1"), sensitivity=1, name="bits")
    query = asked(mode="ocdp", detector="grubbs", utility=utility)
    answer = wf.release(query, wf.load(people, schema=query.wants(), name="people"), book)
    assert answer.parameters["utility"] == "custom:bits"
    assert "0x" not in str(answer)


@pytest.mark.parametrize("name", ["", "two\nlines", "x" * 201, 3])
def test_names_of_ones_own_functions_are_one_line(name):
    with pytest.raises(ParameterError, match="printable text"):
        wf.CustomDetector(is_largest, name=name)
    with pytest.raises(ParameterError, match="printable text"):
        wf.CustomUtility(is_largest, 1, name=name)


@pytest.mark.parametrize("detector", [7, Largest, None, object()])
def test_what_is_no_detector_is_refused_by_what_it_is(detector):
    with pytest.raises(ParameterError, match="is not a detector"):
        asked(mode="ocdp", detector=detector).to_json()


def test_a_start_takes_the_record_s_own_values_in(tmp_path):
    people, book = opened(tmp_path)
    query = asked(mode="ocdp", detector="grubbs", search="bfs", start="1000100", unseen=True, samples=1)
    (item,) = wf.release(query, wf.load(people, schema=query.wants(), name="people"), book).value
    assert (item["bits"][1], item["bits"][6]) == ("1", "1")


def test_headlines_name_the_shorter_list_and_leave_bits_to_programs(tmp_path):
    people, book = opened(tmp_path)
    query = asked(loss=wf.Loss("20"))
    made = wf.release(query, wf.load(people, schema=query.wants(), name="people"), book)
    value = [{"context": predicate(query.domains, "1110111"), "bits": "1110111"}]
    assert query.reading(value, made.facts).text.startswith(
        "In salary, the record is an outlier among records where job is all but d "
    )
    assert made.summary == made.value[0]["context"]
    assert made.value[0]["bits"] not in f"{made}{made._repr_html_()}"
    assert made.value[0]["bits"] in made.to_json()


def test_sums_over_too_many_records_are_refused_without_a_table_of_them():
    people = frame()
    with pytest.raises(ParameterError, match="rounded"):
        asked(detector="clamped-grubbs", size=10**9).view(wf.load(people, schema=asked().wants()))


def test_points_have_contexts_by_edges():
    values = np.random.default_rng(1).normal(size=(500, 2))
    values[3] = (0.1, 40.0)
    domain = {"columns": {"x1": {"edges": [-1, 0, 1]}, "x2": {"low": -50, "high": 50}}}
    query = wf.Explain(
        record=3, metric="x2", context=["x1"], domain=domain, size=1000, loss=wf.Loss("20"), detector="tukey:points=201"
    )
    (item,) = query.answer(query.view(wf.Points.from_array(values)), system_noise())
    assert item["bits"][2] == "1"


def test_questions_are_values():
    for query in (asked(), asked(mode="ocdp", detector=Lof(k=7)), asked(detector=Tukey((0.0, 1.0, 5.0)), doubt="1/5")):
        again = wf.Explain.from_json(query.to_json())
        assert again.detector_for(10) == query.detector_for(10)
        assert again.to_json() == query.to_json()
        assert again.cost() == query.cost()
    assert asked(doubt="0.25").parts() == (Fraction(1, 4), Fraction(3, 4))
    assert asked(detector=Distance(3, 2.0)).to_json()["detector"] == "distance:k=3,radius=2.0"


@pytest.mark.slow
def test_nothing_is_said_where_nothing_stands_out():
    people = frame().assign(salary=100_000.0)
    query = asked(loss=wf.Loss("0.5"))
    view = query.view(people)
    said = [query.answer(view, system_noise()) for _ in range(200)]
    assert sum(map(bool, said)) <= 18  # 1 % each: 19 or more of 200 have a chance below 1e-11
    assert "None" in query.reading([], view).text
    assert "None" in asked(mode="ocdp").reading([], view).text
    assert asked(mode="ocdp", detector="grubbs").answer(view, system_noise()) == []


NAMED = [{"context": "all records", "bits": "1111111"}]


@pytest.mark.parametrize(
    ("given", "value", "label", "rule"),
    [
        ({}, NAMED, "low noise", "invalid with a chance of at most"),
        ({"doubt": 0}, NAMED, "check first", "invalid with a chance of at most"),
        (
            {},
            [],
            "low noise",
            "none is answered under 1 % of the time where the record stands out by 10 % of a context",
        ),
        ({"detector": "bins"}, [], "mostly noise", "none is answered 98 % of the time"),
        ({"detector": "bins"}, NAMED, "moderate noise", "invalid with a chance"),
        ({"detector": "distance:k=10,radius=9", "loss": wf.Loss("5")}, [], "moderate noise", "nobody near"),
        ({"mode": "ocdp"}, NAMED, "low noise", "only contexts in which the record is an outlier"),
        ({"mode": "ocdp"}, [], "low noise", "every context was examined"),
        ({"mode": "ocdp", "search": "walk"}, [], "moderate noise", "not every context"),
    ],
    ids=str,
)
def test_an_answer_states_its_noise_and_conditions(given, value, label, rule):
    query = asked(**given)
    reading = query.reading(value, query.view(wf.load(frame(), schema=query.wants())))
    assert reading.quality.verdict == label
    assert rule in reading.quality.rule


def test_notes_tell_what_naming_a_context_or_none_is_worth():
    facts = asked().view(wf.load(frame(), schema=asked().wants()))
    assert "at most 1.1 % of answers" in asked().reading(NAMED, facts).notes[0]
    assert "whether or not" in asked(doubt=0).reading(NAMED, facts).quality.conditions[0]
    assert asked(doubt=0).reading(NAMED, facts).text.startswith("If the record is an outlier anywhere")
    assert asked().reading([], facts).notes == ()
    assert "at least 98 % of answers" in asked(detector="bins").reading([], facts).notes[0]
    assert asked(mode="ocdp").reading([], facts).notes == ()
    for deciding in (Fraction(1, 1000), Fraction(1), Fraction(5), Fraction(100), Fraction(1005), Fraction(10**5)):
        assert 1 - chance_of_none(0.0, deciding) <= (1 / 99 if deciding <= 5 else 1 / 50)


@pytest.mark.parametrize("mode", ["dp", "ocdp"])
def test_neighbours_that_no_table_has_make_an_explanation_of_no_use(mode):
    few, many = (asked(detector=f"distance:k={k},radius=20000", mode=mode) for k in (200, 4000))
    assert few.plan(n=4000, dimension=1).useful
    plan = many.plan(n=4000, dimension=1)
    assert (plan.useful, plan.smallest_useful_epsilon) == (False, None)
    assert "everybody is an outlier" in plan.verdict
    value = [{"context": "everybody", "bits": "1" * sum(many.sizes)}]
    assert many._quality(value, 4000).noise == "mostly noise"


def test_the_name_of_one_column_is_a_context_of_one():
    assert asked(context="job") == asked(context=("job",))


def test_the_plan_forecasts_and_the_loss_matters():
    poor, rich = (asked(loss=wf.Loss(amount)).plan(n=4000, dimension=3) for amount in ("0.001", "2"))
    assert not poor.useful
    assert rich.useful
    assert rich.facts["contexts"] == 32
    assert poor.smallest_useful_epsilon == rich.smallest_useful_epsilon
    ways = {option.mechanism for option in asked(mode="ocdp").plan(n=4000, dimension=3).options}
    assert ways == {"direct", "best-first", "uniform", "walk", "dfs", "bfs", "guided"}


def test_searches_are_chosen_by_public_facts():
    many = wf.Schema.of(["a", "salary"], categories={"a": [f"v{at}" for at in range(30)]}, bounds={"salary": (0, 1)})
    given = {"context": ("a",), "domain": many, "mode": "ocdp", "size": 50_000}
    assert asked(mode="ocdp", detector="lof").search_for(4000) == "direct"
    assert asked(detector="lof", **given).search_for(50_000) == "best-first"
    assert asked(detector=CustomDetector(lambda values, index: True), **given).search_for(50_000) == "guided"
    reading = asked(detector="lof", **given).reading([], asked().view(frame()))
    assert "real numbers" in reading.status
