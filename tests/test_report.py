"""Pictures and pages: complete in themselves, and nothing in them that was not released."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from above import Above
from wallflower import report
from wallflower.data import Points
from wallflower.ledger import Ledger
from wallflower.privacy import Loss
from wallflower.release import Release, release


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "ledger.db") as opened:
        yield opened


@pytest.fixture
def made(ledger: Ledger, monkeypatch: Any) -> Release[Any]:
    monkeypatch.setattr(report, "QUERIES", (Above,))
    points = Points.from_array(np.arange(80.0).reshape(40, 2), name="ward <b>")
    return release(Above(bar=1.0, loss=Loss("0.5")), points, ledger, analyst="ana & bo")


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.add(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_plot_shows_the_value_and_what_each_epsilon_would_have_given(made: Release[Any]) -> None:
    value, curve = made.plot().axes
    assert value.get_title(loc="left") == made.question
    assert str(made.value) in [text.get_text() for text in value.texts]
    assert curve.get_title(loc="left") == "What each ε would have given"
    drawn = {tuple(line.get_xdata()): list(line.get_ydata()) for line in curve.lines}
    assert drawn[0.1, 0.2, 0.5, 1.0, 2.0] == [30.0, 15.0, 6.0, 3.0, 1.5]
    assert drawn[(0.5,)] == [pytest.approx(6.0)]


def test_a_plot_of_an_unknown_question_has_only_the_value(made: Release[Any]) -> None:
    strange = replace(made, label="something-else/9")
    assert report.plan_of(strange) is None
    assert len(strange.plot().axes) == 1


@pytest.mark.parametrize("value", [3, 3.5, "no", [1, 2]])
def test_any_value_can_be_drawn(made: Release[Any], value: object, tmp_path: Path) -> None:
    for interval in (made.interval, None):
        replace(made, value=value, interval=interval).plot().savefig(tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_the_height_of_the_line_is_read_on_log_scales() -> None:
    curve = ((0.1, 100.0), (1.0, 10.0), (10.0, 1.0))
    assert report._along(curve, 10**-0.5) == pytest.approx(10**1.5)
    assert report._along(curve, 10.0) == pytest.approx(1.0)


def test_a_page_is_complete_in_itself_and_well_formed(made: Release[Any], ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    report.write(path, [made], ledger)
    page = path.read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert "svg" in tags.seen
    assert not {"script", "link", "img", "iframe"} & tags.seen
    assert not re.search(r'(src|href)="(?!#)', page.replace("xlink:href", "xlink"))
    assert not re.search(r"url\((?!#)", page)


def test_a_page_tells_answer_guarantee_plan_and_ledger(made: Release[Any], ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    report.write(path, [made], ledger)
    page = path.read_text(encoding="utf-8")
    for words in (
        "ward &lt;b&gt;",
        "ana &amp; bo",
        "at most 1.65 times as likely",
        "laplace (chosen)",
        "prefers-color",
    ):
        assert words in page
    assert ledger.verify().head in page
    assert report.INK not in page.partition("<svg")[2]


def test_a_notebook_shows_a_card(made: Release[Any]) -> None:
    card = made._repr_html_()
    tags = Tags()
    tags.feed(card)
    assert tags.open == []
    assert "<b>" not in card
    assert "starter cap" in card


def test_two_drawings_of_one_release_are_the_same(made: Release[Any]) -> None:
    assert report.svg(made.plot()) == report.svg(made.plot())
