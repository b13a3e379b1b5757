"""Plans and releases as cards, text, frames and pages: the same words everywhere, light and dark, no script."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from wallflower.data import Points
from wallflower.drawing import palette
from wallflower.drawing.picture import Band, Bars, Choices, Curve, Dot, Figures, HeatMap, Picture, Ranks, Ticks
from wallflower.errors import PackageMissing, PrivacyError
from wallflower.ledger import Ledger
from wallflower.machine import heavy
from wallflower.privacy import Loss
from wallflower.queries import COMPANIONS, QUERIES
from wallflower.queries.count import Count
from wallflower.query.plan import Plan
from wallflower.release import Release, release
from wallflower.report.releases import picture_html

VOID = {"meta", "line", "rect", "circle", "polyline", "polygon"}


class Tags(HTMLParser):
    """Which elements there are, and that each one that is opened is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.add(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def tags_of(html: str) -> set[str]:
    parser = Tags()
    parser.feed(html)
    assert parser.open == []
    return parser.seen


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Release[Any]:
    points = Points.from_array(np.arange(160.0).reshape(80, 2), name="ward")
    with Ledger.open(tmp_path_factory.mktemp("cards") / "ledger.db") as ledger:
        query = Count(neighbours=2, radius=3.0, loss=Loss("0.5"))
        return release(query, points, ledger, analyst="<ana> & bo", force=True)


@pytest.fixture
def plan() -> Plan:
    return Count(neighbours=5, radius=1.0, loss=Loss("0.5")).plan(n=2000, dimension=7)


@pytest.mark.parametrize("question", [*QUERIES, *COMPANIONS], ids=lambda question: question.kind)
def test_the_plan_of_every_question_has_text_and_card(question: Any) -> None:
    plan = question.example().plan(n=2000, dimension=3)
    text, card = str(plan), plan._repr_html_()
    assert text.startswith(f"What to expect of {plan.query}\n")
    assert all(len(line) <= 110 for line in text.splitlines()), text
    assert "Plan(" in repr(plan)
    for words in (plan.cost.text, plan.chosen):
        assert words in text
        assert words in card
    assert "table" in tags_of(card)


def test_a_card_has_colours_for_light_and_dark_and_no_script(made: Release[Any], plan: Plan) -> None:
    for card in (made._repr_html_(), plan._repr_html_()):
        assert not {"script", "link", "img", "iframe"} & tags_of(card)
        for theme in ("prefers-color-scheme:dark", 'data-jp-theme-light="false"', 'data-jp-theme-light="true"'):
            assert theme in card
        assert not re.search(r"(src|href)=|url\(", card)
        assert not re.search(r'style="[^"]*(color:|#)', card), "colours come from the themes"


def test_words_are_readable_on_both_grounds() -> None:
    for colours in (palette.LIGHT, palette.DARK):
        named = dict(part.split(":") for part in colours.strip(";").split(";"))
        for name in ("--ink", "--quiet", "--accent", "--good", "--care", "--bad"):
            for ground in ("--card", "--code"):
                assert contrast(named[name], named[ground]) >= 4.5, f"{name} on {ground}"


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_what_others_named_is_escaped(made: Release[Any]) -> None:
    card = made._repr_html_()
    assert "&lt;ana&gt; &amp; bo" in card
    assert "<ana>" not in card


PICTURES = [
    Bars(labels=("<a>", "b"), lengths=(3.0, -1.0), intervals=((2.0, 4.0), (-2.0, 0.0)), across="n", marks=("3", "-1")),
    Bars(labels=tuple("abcdefghijklmnop"), lengths=(1.0,) * 16, across="", marks=("",) * 16),
    Ticks(places=(3, 9), known=10, until=20, across="hours"),
    Ticks(places=(), known=1, until=1, across="hours"),
    Curve(places=(0.1, 1.0, 10.0), heights=(9.0, 3.0, 0.0), lows=(8, 2, 0), highs=(10, 4, 1), across="r", up="n"),
    Curve(places=(0.5,), heights=(0.0,), across="r", up="n"),
    Band(middle=(1.0, 2.0), low=(0.5, 1.0), high=(2.0, 3.0), across="hour", up="load", marks=(2,)),
    HeatMap(
        down=("<x>", "y"),
        across=("u",),
        names=("a", "b"),
        values=((0.5,), (None,)),
        marks=(("1",), ("",)),
        measure="share",
    ),
    Dot(value=3, interval=(0.0, 9.0), across="", covers="95 %"),
    Ranks(labels=("<a>", "b × c"), among="columns"),
    Figures(labels=("<a>", "b"), headings=("spread",), values=((1.5,), (None,))),
    Choices(groups=(("job", ("<dean>", "clerk")),), rows=((True, False), (True, True))),
]


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: type(picture).__name__)
def test_every_picture_is_drawn_on_a_card(picture: Any) -> None:
    drawn = picture_html(picture, "said")
    assert {"svg", "table"} & tags_of(drawn)
    assert not re.search(r"<(a|x|dean)>|nan|inf", drawn)


def test_every_kind_of_picture_is_tried() -> None:
    assert {type(picture) for picture in PICTURES} == set(get_args(Picture))


def test_what_one_value_says_is_left_to_words() -> None:
    assert picture_html(None, "") == ""
    assert picture_html(Dot(value=3, across=""), "") == ""
    assert picture_html(Ranks(labels=("a",), among="columns"), "") == ""


def test_a_plan_is_drawn_with_its_own_loss_marked(plan: Plan) -> None:
    (axes,) = plan.plot().axes
    assert axes.get_title(loc="left") == "What each ε would give"
    assert "this plan" in [text.get_text() for text in axes.texts]
    assert replace(plan, curve=()).plot().axes


def test_frames_have_the_numbers_of_the_words(made: Release[Any], plan: Plan) -> None:
    answered, expected = made.to_pandas(), plan.to_pandas()
    assert answered["value"].tolist() == [made.value]
    assert (answered["low"][0], answered["high"][0]) == made.interval
    assert expected["mechanism"].tolist() == [option.mechanism for option in plan.options]
    assert expected.loc[expected["chosen"], "mechanism"].tolist() == [plan.chosen]
    assert expected["half_width"].tolist() == [option.figures["half_width"] for option in plan.options]


def test_without_pandas_a_frame_is_refused_by_name(made: Release[Any], plan: Plan, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.delattr(heavy.pandas, "DataFrame", raising=False)  # kept since an earlier use
    for thing in (made, plan):
        with pytest.raises(PackageMissing, match=r"pip install 'wallflower\[frames\]'") as refusal:
            thing.to_pandas()
        assert refusal.value.package == "pandas"
        assert isinstance(refusal.value, PrivacyError)
        assert isinstance(refusal.value, ImportError)


def test_reports_are_pages_complete_in_themselves(made: Release[Any], plan: Plan, tmp_path: Path) -> None:
    for thing, words in ((made, f"Entry {made.ledger_id} of the ledger"), (plan, "before anything was spent")):
        place = thing.report(str(tmp_path / "page.html"))
        page = place.read_text(encoding="utf-8")
        assert words in page
        assert not {"script", "link", "img", "iframe"} & tags_of(page)
        assert not re.search(r'(src|href)="(?!#)', page.replace("xlink:href", "xlink"))
        assert "prefers-color-scheme" in page
        assert page.count("<svg") >= 1
