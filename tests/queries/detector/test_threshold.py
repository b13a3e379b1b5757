"""Another threshold for a released detector: what it costs, what it flags, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import wallflower as wf
from wallflower.cli import main
from wallflower.errors import LossMismatch, ParameterError
from wallflower.queries.detector.model import Model

DRAW = np.random.default_rng(3)
RECORDS = DRAW.normal(size=(6000, 3))
PEOPLE = wf.Points.from_array(RECORDS, columns=("a", "b", "c"), name="people")
AMPLE = wf.Loss("50")


@pytest.fixture
def people(tmp_path):
    with wf.Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.grant("people", AMPLE, by="steward", reason="tests")
    return wf.open(PEOPLE, ledger=tmp_path / "ledger.db")


def test_another_threshold_keeps_the_detector_and_costs_the_choice_alone(people):
    """Two thresholds at ε = 10: each misses by more than 25 records less than once in 10^50."""
    fitted = people.detector(epsilon="5")
    before = people.budget().spent.epsilon
    chosen = people.threshold(detector=fitted, contamination="2%", epsilon="10")
    assert people.budget().spent.epsilon == before + 10
    assert chosen.decision_function(RECORDS).tolist() == fitted.decision_function(RECORDS).tolist()
    assert chosen.predict(RECORDS).sum() == pytest.approx(120, abs=25)
    again = people.threshold(detector=chosen, contamination="10%", epsilon="10")
    assert again.predict(RECORDS).sum() == pytest.approx(600, abs=25)
    assert again.drift(RECORDS).expected[0] < 0.1 < again.drift(RECORDS).expected[1]
    assert Model.of(again.to_dict()).threshold == again.value["threshold"]


def test_the_number_to_flag_comes_from_a_released_count(people):
    fitted = people.detector(epsilon="5")
    counted = people.count(neighbours=5, radius=0.5, epsilon="5")
    chosen = people.threshold(detector=fitted, counted=counted, epsilon="10")
    assert chosen.value["wanted"] == counted.value
    assert chosen.model.contamination == Fraction(counted.value, 6000)


def test_it_misses_by_about_as_many_records_as_it_says():
    query = wf.Threshold(detector=1, contamination="2%", loss=wf.Loss("0.1"))
    assert query.off(10**6) == 212
    assert wf.Threshold(detector=1, contamination="2%", loss=wf.Loss.zcdp("1/800")).off(10**6) == 212


def test_what_is_refused_is_refused_by_public_facts(people):
    fitted = people.detector(epsilon="5")
    spent = people.budget().spent
    for settings, words in (
        ({"detector": 99, "contamination": "2%"}, "entry 99"),
        ({"detector": fitted}, "contamination, counted"),
        ({"detector": fitted, "contamination": "2%", "counted": 1}, "contamination, counted"),
        ({"detector": fitted, "counted": fitted}, "not a release of count"),
        ({"detector": fitted, "contamination": "200%"}, "no share"),
    ):
        with pytest.raises(ParameterError, match=words):
            people.threshold(**settings, epsilon="1")
    with pytest.raises(LossMismatch, match="no use for a δ"):
        people.threshold(detector=fitted, contamination="2%", epsilon="1", delta="1e-6")
    assert people.budget().spent == spent


def test_the_command_line_chooses_a_threshold_beside_fit(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savetxt("people.csv", RECORDS, delimiter=",", comments="", header="a,b,c", fmt="%.6g")
    shared = ["--ledger", "ledger.db", "--json"]
    assert main(["detector", "fit", "people.csv", "--epsilon", "0.5", *shared]) == 0
    chosen = ["--detector", "1", "--contamination", "5%", "--epsilon", "0.4", "--model", "people.json"]
    assert main(["detector", "threshold", "people.csv", *chosen, *shared]) == 0
    capsys.readouterr()
    np.savetxt("new.csv", [[0, 0, 0], [9, 9, 9]], delimiter=",", comments="", header="a,b,c", fmt="%.6g")
    assert main(["detector", "score", "people.json", "new.csv", "--csv"]) == 0
    heading, *rows = (line.split(",") for line in capsys.readouterr().out.splitlines())
    assert [row[heading.index("flagged")] for row in rows] == ["0", "1"]
