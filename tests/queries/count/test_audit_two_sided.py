"""The attacks on the bound from below end as they must, and see what is broken inside the released code."""

from dataclasses import replace

import pytest

from wallflower.neighbours.noisy_count import count_noise
from wallflower.queries.count import lower
from wallflower.queries.count.audit.two_sided import BROKEN_BOUNDS, BROKEN_LAWS, lower_findings
from wallflower.queries.count.two_sided import TwoSidedCount

CALIBRATE = count_noise
CERTIFY = lower.certify_lower


def all_as_they_must():
    """Ends at the first that does not."""
    return all(finding.ok for finding in lower_findings())


@pytest.mark.slow
def test_what_is_sound_holds_and_what_is_broken_is_caught(quick_findings):
    found = {finding.name: finding for finding in quick_findings("count")}
    sound = [name for name in found if name.startswith(("lower bound", "two-sided interval"))]
    assert len(sound) >= 8
    assert not any(found[name].caught for name in sound)
    assert all(found[f"broken: {name}"].caught for name in (*BROKEN_BOUNDS, *BROKEN_LAWS))


def whole_loss(query):
    return query.loss


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "name", "broken"),
    [
        (lower, "joining_reach", lambda reach: reach),
        (lower, "joining_reach", lambda reach: 4.0 * reach * (1 - 1e-9)),
        (TwoSidedCount, "loss_per_number", property(whole_loss)),
        (TwoSidedCount, "floor_noise", lambda query, n, dimension, cap=None: CALIBRATE(0, query.loss_per_number)),
        (lower, "heavy_cliques", lambda graph, weight, room: iter(())),
    ],
    ids=["one radius", "deflated", "whole loss twice", "noise for less", "cliques overlooked"],
)
def test_what_breaks_inside_is_caught(monkeypatch, place, name, broken):
    monkeypatch.setattr(place, name, broken)
    assert not all_as_they_must()


@pytest.mark.slow
def test_noise_a_tenth_short_is_caught(monkeypatch):
    def short(query, n, dimension, cap=None):
        law = CALIBRATE(query.rule(n, dimension).narrow - 1, query.loss_per_number)
        return replace(law, scale=law.scale * 9 / 10)

    monkeypatch.setattr(TwoSidedCount, "floor_noise", short)
    assert not all_as_they_must()


@pytest.mark.slow
def test_room_for_one_more_is_caught(monkeypatch):
    monkeypatch.setattr(
        "wallflower.queries.count.audit.two_sided.certify_lower",
        lambda tree, neighbours, sensitivity, tolerance: CERTIFY(tree, neighbours, sensitivity + 1, tolerance),
    )
    assert not all_as_they_must()
