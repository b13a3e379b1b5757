"""`wallflower study`: what is measured, what is said of it, and that it runs without any data."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from studies.detector import (
    CHOSEN_ON,
    COMPILED,
    DELTAS,
    EPSILONS,
    MADE_UP,
    OURS,
    RIVALS,
    Job,
    LabelledTable,
    Mean,
    Results,
    Trial,
    available,
    plan_jobs,
    study,
    targets,
)

from studies import detector
from wallflower.cli import main
from wallflower.papers.panels import Panel, draw_panels


@pytest.fixture(autouse=True)
def without_data(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("WALLFLOWER_DATA", raising=False)
    detector.table_of.cache_clear()
    yield
    detector.table_of.cache_clear()


@pytest.mark.slow
def test_a_quick_study_runs_without_any_data(tmp_path: Path) -> None:
    said: list[str] = []
    paths = list(study(tmp_path, True, said.append))
    assert "no folder of data is named" in said[0]
    names = {path.name for path in paths}
    assert {"trials.csv", "targets.csv", "auroc.csv", "auroc.png", "precision.csv", "flags.csv"} <= names
    page = (tmp_path / "detector.html").read_text(encoding="utf-8")
    assert "nothing was tuned here" in page
    assert "NOT PRIVATE" in page
    with (tmp_path / "trials.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["detector"] for row in rows} == {*DELTAS, *RIVALS} - {*COMPILED}
    best = [float(row["auroc"]) for row in rows if row["epsilon"] == "1"]
    assert min(best) > 0.9  # of a table made up so that outliers are easy to find


def test_what_is_not_studied_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "detectr"]) == 2
    assert "Did you mean detector?" in capsys.readouterr().err


def test_a_table_is_made_up_where_there_is_no_other() -> None:
    said: list[str] = []
    assert [table.name for table in available(False, said.append)] == [MADE_UP]
    assert len(said) == len(CHOSEN_ON) + 2


def test_those_without_a_seed_are_fitted_once() -> None:
    jobs = plan_jobs([MADE_UP], EPSILONS, RIVALS, 10)
    assert sum(job.who == OURS for job in jobs) == 40
    assert sum(job.who == "IForest" for job in jobs) == 10
    assert sum(job.who == "KNN" for job in jobs) == 1


def results(scores: dict[str, float]) -> Results:
    """Large tables with the names of those that constants were chosen on, all scored alike."""
    names = list(CHOSEN_ON)[:7]
    tables = tuple(
        LabelledTable(name=name, values=np.zeros((1000, 2)), outliers=np.zeros(1000, dtype=bool)) for name in names
    )
    trials = tuple(
        Trial(
            job=Job(table=name, who=OURS, epsilon=epsilon, number=number),
            auroc=score + 0.01 * (2 * number - 1),
            precision=score,
            flagged=0.02,
        )
        for name in names
        for epsilon, score in scores.items()
        for number in range(2)
    )
    return Results(tables, (), tuple(scores), trials)


def test_the_aim_is_said_to_be_met_or_missed_as_measured() -> None:
    rows = targets(results({"0.1": 0.8, "0.3": 0.91, "1": 0.915})).sheet.rows
    assert [row[-1] for row in rows] == ["", "met", "missed"]
    assert rows[1][2] == pytest.approx(0.91)
    fewer = results({"1": 0.99})
    assert targets(Results(fewer.tables[:6], (), ("1",), fewer.trials)).sheet.rows[0][-1] == ""


def test_an_interval_is_of_the_mean_over_fits() -> None:
    found = results({"1": 0.9}).over(list(CHOSEN_ON)[:7], OURS, "1", "auroc")
    assert found.value == pytest.approx(0.9)
    assert found.off == pytest.approx(12.7062 * 0.01, rel=1e-4)  # Student's t with one degree of freedom
    assert Mean.of([0.7]) == Mean(0.7, 0.0)


def test_panels_that_do_not_fill_their_rows_are_drawn() -> None:
    panel = Panel(title="a", along=(0.1, 1.0), curves=(), across="ε", up="share", chance=0.5)
    drawn = draw_panels((panel,) * 4, 3)
    assert [axes.get_visible() for axes in drawn.axes] == [True] * 4 + [False] * 2
