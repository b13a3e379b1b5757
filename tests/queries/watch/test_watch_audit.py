"""Attacks on the watch: everything sound holds, everything broken is caught."""

import math

import pytest

from wallflower.evidence import audits
from wallflower.privacy import Loss
from wallflower.queries.watch.audit import SPARSE, detector_of, exact, person
from wallflower.queries.watch.audit.oracle import law, log_ratio, loss_between

MISTAKES = {
    "no noise on the threshold",
    "no cutoff",
    "one draw for two observations",
    "halves to even",
    "half the noise, event",
    "half the noise, sparse",
    "a tenth short, event, scores",
    "a tenth short, sparse",
    "a tenth short, paper",
    "a tenth short, gaussian, two steps, ρ",
    "a tenth short, gaussian, window of two, δ",
    "a tenth short, baseline, one entry",
    "a tenth short, baseline, one person",
    "a tenth short, answer, event",
    "|s| as if it were monotone",
    "the noisy distance of a flag, unpaid",
    "event level for a person",
    "paper's ε for a person",
    "a baseline from the stream itself",
}


def judge(found):
    assert [(finding.name, finding.text) for finding in found if not finding.ok] == []
    names = [finding.name for finding in found]
    assert len(names) == len(set(names))
    assert {f"broken: {name}" for name in MISTAKES} <= {finding.name for finding in found if finding.caught}
    assert all(finding.name.startswith("broken: ") is finding.expected for finding in found)
    assert all(finding.lower is None or math.isfinite(finding.lower) for finding in found)


@pytest.mark.slow
def test_sound_watches_hold_and_broken_ones_are_caught(quick_findings):
    judge(quick_findings("watch"))


@pytest.mark.heavy
def test_so_they_do_with_more_trials():
    found = list(audits("watch", quick=False))
    judge(found)
    assert {f"sparse, {name}, by draws" for name in SPARSE} <= {finding.name for finding in found}


@pytest.mark.parametrize("name", SPARSE)
def test_all_outcomes_together_are_certain(name):
    detector = person(**SPARSE[name])
    found = law(detector, [k * detector.sensitivity for k in (1, -2, 3)])
    assert sum(found.values()) == pytest.approx(1, rel=1e-12)
    assert all(sum(flags) <= 3 for flags in found)
    one = next(iter(found))
    assert law(detector, [k * detector.sensitivity for k in (1, -2, 3)], only=one)[one] == pytest.approx(
        found[one], rel=1e-12
    )


def test_only_what_decides_by_coins_of_known_odds_has_a_law():
    with pytest.raises(TypeError, match="GaussianPerStep"):
        law(detector_of(level="person", loss=Loss.zcdp("1"), steps=2), [0])


@pytest.mark.parametrize(("p", "q", "loss"), [(0.5, 0.25, math.log(2)), (0.25, 0.5, math.log(2)), (0.0, 0.0, 0.0)])
def test_a_loss_counts_both_ways(p, q, loss):
    assert log_ratio(p, q) == pytest.approx(loss)
    assert log_ratio(0.0, 0.1) == math.inf
    assert loss_between({(True,): 1.0}, {(False,): 1.0})[0] == math.inf


def test_a_loss_a_little_above_its_claim_is_caught():
    assert not exact("x", 1.0, 1.0, "").caught
    assert exact("x", 1.0, 1.0 + 1e-11, "").caught
