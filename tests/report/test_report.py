"""Pictures and pages: complete in themselves, and nothing in them that was not released."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from above import Above
from ranking import Ranking
from wallflower import report
from wallflower.data import Points
from wallflower.ledger import Ledger
from wallflower.privacy import Loss
from wallflower.release import Release, release
from wallflower.report import plots

pytestmark = pytest.mark.slow  # together more than `make check` has room for

NAMES = ("age", "hours_per_week", "education_num", "capital_gain", "native_country_of_the_household_head", "sex")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "ledger.db") as opened:
        yield opened


@pytest.fixture
def made(ledger: Ledger, monkeypatch: Any) -> Release[Any]:
    monkeypatch.setattr(plots, "QUERIES", (Above, Ranking))
    points = Points.from_array(np.arange(80.0).reshape(40, 2), name="ward")
    return release(Above(bar=1.0, loss=Loss("0.5")), points, ledger, analyst="ana & bo")


@pytest.fixture
def ranked(made: Release[Any], ledger: Ledger) -> Release[Any]:
    ledger.grant("census", Loss("9"), by="steward")
    points = Points.from_array(np.arange(len(NAMES) * 3.0).reshape(3, -1), columns=NAMES, name="census")
    return release(Ranking(loss=Loss("0.5")), points, ledger)


def of_length(ranked: Release[Any], bars: int, *, sure: bool = True) -> Release[Any]:
    """A ranking of so many sets, of 1 to 5 columns each."""
    sets = [[NAMES[(place + more) % len(NAMES)] for more in range(place % 5 + 1)] for place in range(bars)]
    value = [{"columns": names, "above": 1480 - 100 * place} for place, names in enumerate(sets)]
    return replace(ranked, value=value, parameters=ranked.parameters | {"sure": sure})


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
    assert plots.plan_of(strange) is None
    assert len(strange.plot().axes) == 1


@pytest.mark.parametrize("sure", [True, False])
@pytest.mark.parametrize("bars", [1, 4, 12])
def test_bars_have_room_for_their_labels_and_marks(ranked: Release[Any], bars: int, sure: bool) -> None:
    drawn = of_length(ranked, bars, sure=sure).plot()
    drawn.draw_without_rendering()
    panel, curve = drawn.axes
    labels = [label.get_window_extent() for label in panel.get_yticklabels()]
    marks = [mark.get_window_extent() for mark in panel.texts]
    assert len(labels) == len(marks) == bars
    for boxes in (labels, marks):
        assert all(upper.y0 > lower.y1 for upper, lower in pairwise(boxes)), "the first is on top, and none overlap"
    assert min(box.x0 for box in labels) > 0
    assert max(box.x1 for box in marks) < curve.get_tightbbox().x0
    for box in (panel.get_tightbbox(), curve.get_tightbbox()):
        assert drawn.bbox.padded(1).contains(box.x0, box.y0)
        assert drawn.bbox.padded(1).contains(box.x1, box.y1)


def test_bars_show_what_the_question_pictures(ranked: Release[Any]) -> None:
    panel, curve = of_length(ranked, 2).plot().axes
    assert [patch.get_width() for patch in panel.patches] == [1480, 1380]
    assert [mark.get_text() for mark in panel.texts] == ["1,480", "1,380"]
    assert [label.get_text() for label in panel.get_yticklabels()] == ["age", "hours_per_week\n× education_num"]
    assert panel.get_xlabel().splitlines()[0] == "records above the bar"
    assert [list(line.get_xdata()) for line in panel.lines[::2]] == [[1474, 1486], [1374, 1386]]
    assert not of_length(ranked, 2, sure=False).plot().axes[0].lines
    assert (curve.get_yscale(), curve.get_ylabel()) == ("linear", "how often the first is found")
    assert curve.get_ylim() == (0, 1.02)


def test_more_bars_make_a_higher_figure_beside_the_same_curve(ranked: Release[Any]) -> None:
    few, many = (of_length(ranked, bars).plot() for bars in (3, 12))
    assert few.get_figheight() < 5 < many.get_figheight()
    for drawn in (few, many):
        drawn.draw_without_rendering()
        assert 1.2 < drawn.axes[1].get_window_extent().height / drawn.dpi < 3


def test_nothing_to_draw_as_bars_is_said_in_words(ranked: Release[Any]) -> None:
    for strange in (replace(ranked, value=[]), replace(ranked, label="something-else/9")):
        panel = strange.plot().axes[0]
        assert not panel.patches
        assert len(panel.texts) == 1


@pytest.mark.parametrize("value", [3, 3.5, "no", [1, 2], True, [["a"] * 3] * 20, {"rate": 0.5}])
def test_any_value_can_be_drawn(made: Release[Any], value: object, tmp_path: Path) -> None:
    for interval in (made.interval, None):
        replace(made, value=value, interval=interval).plot().savefig(tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_the_height_of_the_line_is_read_on_its_own_scales() -> None:
    curve = ((0.1, 100.0), (1.0, 10.0), (10.0, 1.0))
    assert plots._along(curve, 10**-0.5, "log") == pytest.approx(10**1.5)
    assert plots._along(curve, 10.0, "log") == pytest.approx(1.0)
    assert plots._along(((0.1, 0.0), (1.0, 0.5)), 10**-0.5, "linear") == pytest.approx(0.25)


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
        "ana &amp; bo",
        "ana &amp; bo",
        "a factor of at most 1.65",
        "laplace (chosen)",
        "prefers-color",
    ):
        assert words in page
    assert ledger.verify().head in page
    assert plots.INK not in page.partition("<svg")[2]


def test_a_notebook_shows_a_card(made: Release[Any]) -> None:
    card = made._repr_html_()
    tags = Tags()
    tags.feed(card)
    assert tags.open == []
    assert "<b>" not in card
    assert "starter cap" in card


def test_two_drawings_of_one_release_are_the_same(made: Release[Any]) -> None:
    assert plots.svg(made.plot()) == plots.svg(made.plot())
