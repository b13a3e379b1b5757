"""Another library's measurement is charged as stated, in the account's unit, before it runs."""

from __future__ import annotations

import os
import subprocess
from fractions import Fraction
from pathlib import Path

import opendp.prelude as dp
import pytest

import wallflower as wf
from wallflower.errors import ParameterError, Untranslatable
from wallflower.external import charge_external, opendp_loss
from wallflower.privacy import Kind, Neighbours
from wallflower.units import Claim, Protection, price

WORDS = {"measurement": "mean age", "library": "opendp 0.16", "analyst": "ana"}
MEMBERSHIP = wf.Loss("0.25", neighbours=Neighbours.ADD_REMOVE)
ROOT = Path(__file__).parents[1]
TUMULT = ROOT / "build" / "tumult" / "bin" / "python"
ROWS = dp.vector_domain(dp.atom_domain(T=int))
SIZED = dp.vector_domain(dp.atom_domain(T=int), size=10)


@pytest.fixture
def book(tmp_path: Path) -> wf.Ledger:
    return wf.Ledger.open(tmp_path / "ledger.db")


@pytest.fixture(autouse=True)
def features() -> None:
    dp.enable_features("contrib")


def test_a_charge_is_in_the_ledger_with_what_was_stated(book: wf.Ledger) -> None:
    receipt = charge_external("icu", MEMBERSHIP, ledger=book, **WORDS)
    entry = book.history("icu", event="charge")[0]
    assert (entry.id, entry.label, entry.analyst) == (receipt.id, "external-measurement/1", "ana")
    assert entry.details["library"] == "opendp 0.16"
    assert entry.loss == MEMBERSHIP
    assert book.remaining("icu") == wf.Loss("0.5")  # a replaced record is two changes of membership


def test_each_call_is_a_charge_and_the_limit_is_one_for_all_libraries(book: wf.Ledger) -> None:
    for _ in range(2):
        charge_external("icu", wf.Loss("0.5"), ledger=book, **WORDS)
    with pytest.raises(wf.BudgetExhausted):
        charge_external("icu", wf.Loss("0.01"), ledger=book, **WORDS)
    assert len(book.history("icu")) == 2


def test_a_loss_of_records_is_refused_where_membership_is_protected(book: wf.Ledger) -> None:
    book.declare("icu", Protection(unit="membership"), by="eva", reason="n is secret")
    with pytest.raises(Untranslatable):
        charge_external("icu", wf.Loss("0.5"), ledger=book, **WORDS)
    assert charge_external("icu", MEMBERSHIP, ledger=book, **WORDS).booked == MEMBERSHIP


def test_where_rows_belong_to_people_only_a_loss_of_whole_people_is_taken(book: wf.Ledger) -> None:
    book.declare("visits", Protection(person="patient", units_per_person=3), by="eva", reason="rows are visits")
    with pytest.raises(ParameterError):
        charge_external("visits", wf.Loss("0.25"), ledger=book, **WORDS)
    assert charge_external("visits", MEMBERSHIP, ledger=book, whole_person=True, **WORDS).booked == wf.Loss("0.5")


def test_a_stated_number_of_rows_per_person_multiplies_what_holds_for_a_row() -> None:
    several = Protection(units_per_person=3)
    row, person = (Claim(loss=wf.Loss("0.1", delta="1e-6"), whole_person=whole) for whole in (False, True))
    assert price(row, several).epsilon == Fraction(3, 10)
    assert (price(person, several).epsilon, price(person, several).delta) == (Fraction(1, 10), Fraction(1, 10**6))
    assert person.to_json()["whole_person"]  # the ledger keeps it


def test_the_schema_says_whose_loss_is_counted_before_the_first_query(book: wf.Ledger, tmp_path: Path) -> None:
    facts = tmp_path / "icu.toml"
    facts.write_text(
        'name = "icu"\n[protects]\nrows = "people"\nunit = "membership"\n[columns]\nage = {low = 0, high = 9}\n'
    )
    with pytest.raises(Untranslatable):
        charge_external("icu", wf.Loss("0.5"), ledger=book, schema=facts, **WORDS)
    charge_external("icu", MEMBERSHIP, ledger=book, schema=facts, **WORDS)
    assert book.account("icu").protection.unit == "membership"


@pytest.mark.parametrize("kind", ["pure", "output-constrained", "metric-local"])
def test_a_loss_without_a_theorem_is_refused(book: wf.Ledger, kind: str) -> None:
    loss = wf.Loss("0" if kind == "pure" else "1", kind=Kind(kind))
    with pytest.raises(ParameterError):
        charge_external("icu", loss, ledger=book, **WORDS)
    assert book.history() == []


@pytest.mark.parametrize("words", ["", "two\nlines", "x" * 201, None])
def test_what_the_ledger_keeps_is_one_line(book: wf.Ledger, words: str) -> None:
    with pytest.raises(ParameterError):
        charge_external("icu", wf.Loss("1"), ledger=book, **{**WORDS, "measurement": words})


def measure(domain: object, metric: object) -> object:
    return dp.t.make_clamp(domain, metric, bounds=(0, 10)) >> dp.t.then_sum()


def test_an_opendp_loss_is_that_of_a_replaced_row_and_never_rounded_down() -> None:
    unsized = measure(ROWS, dp.symmetric_distance())
    laplace, gaussian = unsized >> dp.m.then_laplace(scale=30.0), unsized >> dp.m.then_gaussian(scale=30.0)
    assert Fraction(2, 3) <= opendp_loss(laplace).epsilon < Fraction(2, 3) + Fraction(1, 10**9)
    assert Fraction(2, 9) <= opendp_loss(gaussian).rho < Fraction(2, 9) + Fraction(1, 10**9)
    assert opendp_loss(laplace).neighbours is Neighbours.REPLACE_ONE


def test_an_opendp_measurement_of_a_stated_size_is_not_free() -> None:
    sized = measure(SIZED, dp.symmetric_distance()) >> dp.m.then_laplace(scale=20.0)
    assert sized.map(1) == 0  # no tables of one size are one row apart
    assert opendp_loss(sized).epsilon >= Fraction(1, 2)


def test_an_opendp_measurement_with_a_delta_has_both_numbers_rounded_up() -> None:
    gaussian = measure(ROWS, dp.symmetric_distance()) >> dp.m.then_gaussian(scale=40.0)
    fixed = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gaussian), 1e-6)
    epsilon, delta = fixed.map(2)
    loss = opendp_loss(fixed)
    assert loss.epsilon >= Fraction(epsilon)
    assert loss.delta >= Fraction(delta)


def test_an_opendp_measurement_that_counts_no_rows_is_refused() -> None:
    number = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), 2.0)
    with pytest.raises(ParameterError):
        opendp_loss(number)


def test_an_opendp_measurement_with_another_measure_is_refused() -> None:
    gaussian = measure(ROWS, dp.symmetric_distance()) >> dp.m.then_gaussian(scale=30.0)
    with pytest.raises(ParameterError):
        opendp_loss(dp.c.make_zCDP_to_approxDP(gaussian))  # a privacy profile


@pytest.mark.heavy
@pytest.mark.skipif(not (TUMULT.parents[1] / ".made").is_file(), reason="no Tumult: `scripts/setup tumult` installs it")
def test_the_page_runs_tumult_after_its_charge(book: wf.Ledger, tmp_path: Path) -> None:
    page = (ROOT / "docs/guides/one-budget.md").read_text(encoding="utf-8")
    script = tmp_path / "average.py"
    script.write_text(page.split("```py\n")[1].split("```")[0], encoding="utf-8")
    (tmp_path / "people.csv").write_text("age,pulse\n" + "45,70\n" * 2000)
    charge_external("people", MEMBERSHIP, measurement="mean age", library="tumult 0.21", ledger=book, analyst="ana")
    program = str(TUMULT)
    done = subprocess.run(
        [program, str(script)],
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": program},
        capture_output=True,
        text=True,
        check=True,
    )
    assert abs(float(done.stdout.split()[-1]) - 45) < 15  # (120/2)/ε of noise on a sum of 2000 rows, many times over
    assert book.remaining("people") == wf.Loss("0.5")
