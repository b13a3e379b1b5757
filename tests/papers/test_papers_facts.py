"""What every page of a paper owes: printed facts that are the paper's, beside ours, with a reason where they differ."""

from __future__ import annotations

import pytest

from wallflower.papers.facts import DEVIATES, IMPROVED, Compared, Fact
from wallflower.papers.page import opening


def test_what_deviates_needs_a_reason() -> None:
    fact = Fact("7", "6.2")
    with pytest.raises(AssertionError, match="no reason"):
        Compared("noise", fact, "23", DEVIATES)
    rows = opening(
        [Compared("noise", fact, "23", DEVIATES, "another constant"), Compared("count", fact, "7", IMPROVED)]
    )
    assert rows.sheet.rows[0] == ("noise", "6.2", "7", "23", "deviates", "another constant")
