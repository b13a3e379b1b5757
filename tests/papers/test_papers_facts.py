"""What every page of a paper owes: printed facts that are the paper's, beside ours, with a reason where they differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from wallflower.papers.facts import DEVIATES, IMPROVED, TOO_FEW_RUNS, WORKS, Comparison, Fact, judge
from wallflower.papers.okada2015.choosers import ALGORITHM3
from wallflower.papers.okada2015.comparison import _recall_by_number
from wallflower.papers.page import Section, Sheet, first_section, write_page


def test_what_deviates_needs_a_reason() -> None:
    fact = Fact("7", "6.2")
    with pytest.raises(AssertionError, match="no reason"):
        Comparison("noise", fact, "23", DEVIATES)
    rows = first_section(
        [Comparison("noise", fact, "23", DEVIATES, "another constant"), Comparison("count", fact, "7", IMPROVED)]
    )
    assert rows.sheet.rows[0] == ("noise", "6.2", "7", "23", "deviates", "another constant")


def test_too_few_runs_turn_no_claim_round() -> None:
    assert judge(False, "another constant", runs=200, wanted=200) == (DEVIATES, "another constant")
    status, why = judge(False, "another constant", runs=12, wanted=200)
    assert status == TOO_FEW_RUNS
    assert "12 runs here, 200 in the paper" in why
    assert judge(True, "another constant", runs=1, wanted=200, within="rising") == (WORKS, "rising")
    with pytest.raises(AssertionError, match="no reason"):
        Comparison("noise", Fact("23", "4"), "7", TOO_FEW_RUNS)


def test_a_page_leads_to_each_of_its_sections(tmp_path: Path) -> None:
    sheet = Sheet(heading=("a",), rows=(("1",),))
    sections = [Section(name=f"figure{at}", title=f"Figure {at}", caption="", sheet=sheet) for at in (1, 2)]
    page = write_page(tmp_path / "page.html", "title", "lead", sections).read_text(encoding="utf-8")
    for section in sections:
        assert f'<section id="{section.name}">' in page
        assert f'<a href="#{section.name}">{section.title}</a>' in page


@pytest.mark.parametrize(("shares", "status"), [((0.7, 0.6, 0.5), WORKS), ((0.4, 0.6, 0.7), DEVIATES)])
def test_the_status_of_recall_by_h_follows_from_its_numbers(shares: tuple[float, ...], status: str) -> None:
    heading = ("h", "epsilon", f"recall_{ALGORITHM3.column}")
    rows = tuple((h, 3.2, share) for h, share in enumerate(shares, 1))
    figure5 = Section(name="figure5", title="", caption="", sheet=Sheet(heading=heading, rows=rows))
    assert _recall_by_number(figure5).status == status
