"""The attacks on explanations: sound mechanisms hold, broken ones are caught."""

import pytest

from wallflower.evidence import audits
from wallflower.queries.explain.audit import BROKEN


@pytest.mark.slow
def test_sound_ways_hold_and_broken_ones_are_caught():
    found = {finding.name: finding for finding in audits("explain", quick=True)}
    assert not [finding for finding in found.values() if not finding.ok]
    for name in (*BROKEN, "a tenth short", "every step at the whole loss", "flips without restoring"):
        assert found[f"broken: {name}"].caught
    assert found["release: pays, then looks"].words.startswith("the charge was durable")
