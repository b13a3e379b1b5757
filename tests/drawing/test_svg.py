"""The words of a picture: each tells in a table what it shows, and nothing else."""

from __future__ import annotations

from typing import Any, get_args
from xml.etree import ElementTree

import pytest

from wallflower.drawing import svg
from wallflower.drawing.picture import Band, Bars, Choices, Curve, Dot, Figures, HeatMap, Picture, Ranks, Sheet, Ticks
from wallflower.report import panels

TOLD: list[tuple[Any, Sheet]] = [
    (
        Bars(labels=("a", "b"), lengths=(2.0, 1.0), intervals=((1.0, 3.0), (0.0, 2.0)), across="n", marks=("2", "1")),
        Sheet(("name", "n", "95 % from", "to", "in words"), (("a", 2.0, 1.0, 3.0, "2"), ("b", 1.0, 0.0, 2.0, "1"))),
    ),
    (
        Bars(labels=("a",), lengths=(2.0,), across="n", marks=("2",)),
        Sheet(("name", "n", "in words"), (("a", 2.0, "2"),)),
    ),
    (Dot(value=4, across="n"), Sheet(("n",), ((4,),))),
    (
        Dot(value=4, interval=(1.0, 6.0), across="n", covers="95 % interval"),
        Sheet(("n", "95 % interval, from", "to"), ((4, 1.0, 6.0),)),
    ),
    (Ranks(labels=("x", "y"), among="columns"), Sheet(("place", "columns"), ((1, "x"), (2, "y")))),
    (
        Figures(labels=("x",), headings=("median", "spread"), values=((None, 2.0),)),
        Sheet(("name", "median", "spread"), (("x", None, 2.0),)),
    ),
    (Ticks(places=(2, 5), known=9, until=9, across="o"), Sheet(("marked",), ((2,), (5,)))),
    (
        Choices(groups=(("g", ("a", "b")), ("h", ("c",))), rows=((True, False, True),)),
        Sheet(("no.", "attribute", "in", "not in"), ((1, "g", "a", "b"), (1, "h", "c", "none"))),
    ),
    (
        HeatMap(
            down=("d",), across=("p", "q"), names=("D", "A"), values=((0.5, None),), marks=(("1", "0"),), measure="m"
        ),
        Sheet(("D", "A", "in the cell", "m"), (("d", "p", "1", 0.5), ("d", "q", "0", None))),
    ),
    (
        Band(middle=(1.0, 2.0), low=(0.0, 1.0), high=(2.0, 3.0), across="hour", up="t", marks=(2,)),
        Sheet(("hour", "t", "usual from", "to", "marked"), ((1, 1.0, 0.0, 2.0, ""), (2, 2.0, 1.0, 3.0, "marked"))),
    ),
    (
        Curve(places=(1.0, 2.0), heights=(9.0, 3.0), lows=(8.0, 2.0), highs=(10.0, 4.0), across="r", up="n"),
        Sheet(("r", "n", "band from", "to"), ((1.0, 9.0, 8.0, 10.0), (2.0, 3.0, 2.0, 4.0))),
    ),
]


@pytest.mark.parametrize(("pictured", "sheet"), TOLD, ids=lambda one: type(one).__name__)
def test_a_table_tells_what_is_drawn(pictured: Any, sheet: Sheet) -> None:
    assert pictured.table() == sheet


def test_every_word_is_drawn_by_the_report_and_on_the_pages() -> None:
    known = {type(pictured) for pictured, _ in TOLD}
    assert known == set(panels._PANELS) == set(get_args(Picture))
    assert known - set(svg._RENDERERS) == {Figures}, "figures are a table"
    for pictured, _ in TOLD:
        assert svg.legend(pictured) or isinstance(pictured, Figures) or pictured == Dot(value=4, across="n")
        for drawing in filter(None, (svg.draw(pictured, "said & done", width=width) for width in (760, 340))):
            assert ElementTree.fromstring(drawing).get("aria-label") == "said & done"
            assert "style=" not in drawing


def test_the_strongest_colour_is_the_largest_value_and_the_palest_the_least() -> None:
    heat = HeatMap(
        down=("d",),
        across=("p", "q"),
        names=("D", "A"),
        values=((-1.0, 3.0),),
        marks=(("", ""),),
        measure="m",
        least=-1,
    )
    assert [heat.strength(value) for value in (-1.0, 1.0, 3.0)] == [0.0, 0.5, 1.0]
    assert heat.table().headings == ("D", "A", "m")
