"""A batch costs what its queries cost together, and is asked whole or not at all."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

import wallflower as wf
from forks import call
from wallflower.batch import QuestionFile
from wallflower.errors import NotUseful, ParameterError, SourceError
from wallflower.synthetic import mixture

COUNT = wf.Count(neighbours=5, radius=0.5, loss=wf.Loss("0.5"))


def counts(*losses: str) -> list[wf.Count]:
    return [replace(COUNT, radius=0.5 + place / 10, loss=wf.Loss(loss)) for place, loss in enumerate(losses)]


@pytest.fixture
def book(tmp_path: Path) -> wf.Ledger:
    return wf.Ledger.open(tmp_path / "ledger.db")


@pytest.fixture
def people(book: wf.Ledger) -> object:
    return wf.open(wf.Points.from_array(mixture(1000, 2, seed=1), name="people"), ledger=book, analyst="ana")


def test_a_plan_of_a_batch_charges_nothing_and_adds_up_both_ways(people: object, book: wf.Ledger) -> None:
    batch = wf.plan_all(people, counts("0.5", "0.25"))
    assert (batch.basic, batch.zcdp) == (wf.Loss("0.75"), wf.Loss.zcdp(Fraction(5, 32)))
    assert batch.fits
    assert batch.scale == 1
    assert book.history() == []


def test_a_query_fits_after_the_earlier_ones_that_fit(people: object) -> None:
    batch = wf.plan_all(people, counts("0.5", "0.75", "0.25"))
    assert [item.fits for item in batch.items] == [True, False, True]


def test_the_common_factor_is_the_largest_at_which_all_fit(people: object, book: wf.Ledger) -> None:
    batch = wf.plan_all(people, counts("0.5", "0.75", "0.25"))
    assert batch.scale == Fraction(666, 1000)
    assert wf.plan_all(people, batch.fitting).fits
    assert not wf.plan_all(people, [replace(q, loss=wf.Loss(q.loss.epsilon * 667 / 666)) for q in batch.fitting]).fits


def test_where_the_account_adds_squares_the_factor_follows_them(people: object, book: wf.Ledger) -> None:
    book.grant("people", wf.Loss("1", delta="1e-6"), accounting="concentrated", by="eva", reason="test")
    batch = wf.plan_all(people, counts(*["0.1"] * 20))
    limit = book.account("people").limit.rho
    assert batch.scale is not None
    assert batch.scale**2 * batch.zcdp.rho <= limit < (batch.scale + Fraction(1, 1000)) ** 2 * batch.zcdp.rho


def test_a_quota_and_a_pace_count_over_the_whole_batch(people: object, book: wf.Ledger) -> None:
    book.grant("people", wf.Loss("4"), by="eva", reason="test", pace="1")
    assert [item.fits for item in wf.plan_all(people, counts("0.6", "0.6")).items] == [True, False]
    book.grant("people", wf.Loss("4"), by="eva", reason="test")
    book.set_quota("people", "ana", wf.Loss("1"), by="eva")
    assert [item.fits for item in wf.plan_all(people, counts("0.6", "0.6")).items] == [True, False]


def test_no_factor_helps_where_nothing_is_left(people: object) -> None:
    people.ask(replace(COUNT, loss=wf.Loss("1")))
    batch = wf.plan_all(people, counts("0.5"))
    assert batch.scale is None
    assert batch.fitting == ()


def test_a_batch_that_does_not_fit_or_is_noise_charges_nothing(people: object, book: wf.Ledger) -> None:
    with pytest.raises(wf.BudgetExhausted):
        wf.plan_all(people, counts("0.5", "0.75")).ask()
    with pytest.raises(NotUseful):
        wf.plan_all(people, counts("0.5", "0.001")).ask()
    assert book.history() == []


def test_a_batch_with_a_key_continues_where_it_stopped(people: object, book: wf.Ledger) -> None:
    wf.plan_all(people, counts("0.5")).ask(idempotency_key="monday")
    both = wf.plan_all(people, counts("0.5", "0.4"))
    assert [release.replayed for release in both.ask(idempotency_key="monday")] == [True, False]
    assert book.remaining("people") == wf.Loss("0.1")
    assert all(release.replayed for release in both.ask(idempotency_key="monday"))


def test_an_empty_batch_is_refused(people: object) -> None:
    with pytest.raises(ParameterError):
        wf.plan_all(people, [])


FILE = """
source = "people.csv"
[[questions]]
kind = "count"
columns = ["a", "b"]
neighbours = 5
radius = 0.5
epsilon = 0.1
"""


def test_numbers_of_a_file_are_exact_and_paths_are_beside_it(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("a,b\n1,2\n")
    (tmp_path / "q.toml").write_text(FILE)
    stated = QuestionFile.read(tmp_path / "q.toml")
    assert stated.source == str(tmp_path / "people.csv")
    assert stated.queries == (wf.Count(columns=("a", "b"), neighbours=5, radius=0.5, loss=wf.Loss("0.1")),)


@pytest.mark.parametrize(
    "text", ["", "source = 3\nquestions = []", 'sauce = "x"', 'source = "x"\nquestions = [3]', "=", FILE + 'x = "y"']
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "q.toml").write_text(text)
    with pytest.raises(ParameterError):
        QuestionFile.read(tmp_path / "q.toml")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        QuestionFile.read(tmp_path / "q.toml")


def test_the_command_line_asks_only_what_was_confirmed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = mixture(1000, 2, seed=1).tolist()
    (tmp_path / "people.csv").write_text("a,b\n" + "".join(f"{a:.2f},{b:.2f}\n" for a, b in rows))
    (tmp_path / "q.toml").write_text(FILE.replace("0.1", "0.6"))
    words = ("plan", "--file", "q.toml", "--ledger", "l.db", "--ask")
    assert call(*words).returncode == 2
    with wf.Ledger.open("l.db") as book:
        assert book.history("people", event="charge") == []
    done = json.loads(call(*words, "--yes", "--json").stdout)
    assert done["fits"]
    assert len(done["releases"]) == 1
    assert call(*words, "--yes").returncode == 3  # the budget does not cover it twice
