"""Attacks on sensors: everything sound holds, everything broken is caught."""

import math

import numpy as np
import pytest

from wallflower.noise import system_noise
from wallflower.sensors.audit import findings, unlikeness

MISTAKES = {
    "half the noise, columns",
    "half the noise, planar",
    "two columns sold at the ε of one",
    "a round diameter for square ranges",
    "no box",
    "scaled by its own deviation",
    "noise drawn again for a retry",
    "a mask one bit short",
    "one mask for two readings",
    "noise for one bin, where a reading moves two",
}


def judge(found):
    assert [(finding.name, finding.text) for finding in found if not finding.ok] == []
    names = [finding.name for finding in found]
    assert len(names) == len(set(names))
    assert {f"broken: {name}" for name in MISTAKES} <= {finding.name for finding in found if finding.caught}
    assert all(finding.name.startswith("broken: ") is finding.expected for finding in found)
    assert all(finding.lower is None or math.isfinite(finding.lower) for finding in found)


@pytest.mark.slow
def test_sound_sensors_hold_and_broken_ones_are_caught():
    judge(list(findings(quick=True)))


@pytest.mark.heavy
def test_so_they_do_with_more_trials():
    judge(list(findings(quick=False)))


def test_bytes_of_one_law_are_alike_and_one_skewed_byte_is_noticed():
    one, other = (system_noise().words(8000).view(np.uint8).reshape(4000, 16) for _ in range(2))
    assert unlikeness(one, other) > 1e-12
    skewed = other.copy()
    skewed[:, 7] &= 0xFE
    assert unlikeness(one, skewed) < 1e-12
