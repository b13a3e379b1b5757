"""What every page of a paper owes: printed facts that are the paper's, beside ours, with a reason where they differ."""

from __future__ import annotations

import pytest

from wallflower.papers.facts import DEVIATES, IMPROVED, Comparison, Fact
from wallflower.papers.page import first_section


def test_what_deviates_needs_a_reason() -> None:
    fact = Fact("7", "6.2")
    with pytest.raises(AssertionError, match="no reason"):
        Comparison("noise", fact, "23", DEVIATES)
    rows = first_section(
        [Comparison("noise", fact, "23", DEVIATES, "another constant"), Comparison("count", fact, "7", IMPROVED)]
    )
    assert rows.sheet.rows[0] == ("noise", "6.2", "7", "23", "deviates", "another constant")
