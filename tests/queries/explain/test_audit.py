"""The attacks on explanations: sound mechanisms hold, broken ones are caught."""

import pytest

from wallflower.queries.explain.audit import BROKEN, SHORTENED


@pytest.mark.slow
def test_sound_ways_hold_and_broken_ones_are_caught(quick_findings):
    found = {finding.name: finding for finding in quick_findings("explain")}
    assert not [finding for finding in found.values() if not finding.ok]
    for name in (*BROKEN, *(f"a tenth short, {short}" for short in SHORTENED), "flips without restoring"):
        assert found[f"broken: {name}"].caught
    assert found["release: pays, then looks"].text.startswith("the charge was durable")
