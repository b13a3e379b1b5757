"""Pictures of releases: nothing here sees data, only what was released and what is public.

A drawing is made with two stand-in colours, ink and accent; a page replaces them by its own, so that one drawing suits
light and dark.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final

from wallflower.drawing.palette import ACCENT, INK, MATPLOTLIB_STYLE, QUIET
from wallflower.drawing.picture import Bars, Choices, Dot, Picture
from wallflower.errors import ParameterError
from wallflower.machine.heavy import matplotlib as _matplotlib
from wallflower.machine.heavy import matplotlib_layout_engine as _layout
from wallflower.machine.heavy import matplotlib_ticker as _ticker
from wallflower.machine.lazy import Lazy
from wallflower.privacy import Loss
from wallflower.queries import COMPANIONS, QUERIES
from wallflower.query import Plan, Query, Scale
from wallflower.release import Release
from wallflower.release.text import symbol
from wallflower.report.panels import LABEL, SIZE, draw, draw_words, is_wide, size_of

ALONE: Final = 0.7  # of the width of both panels, for the value without the curve

if TYPE_CHECKING:
    import wallflower.report.figures as _figures
else:
    _figures = Lazy("wallflower.report.figures")


def query_of(release: Release[Any]) -> Query[Any, Any] | None:
    """The question a release answers, as it was asked; None if it is unknown here."""
    question = next((known for known in (*QUERIES, *COMPANIONS) if known.label == release.label), None)
    return None if question is None else question.from_json(release.parameters)


def plan_of(release: Release[Any]) -> Plan | None:
    """What was to be expected of a release, from the public facts it carries.

    None if its question is unknown here, or if too little was public to expect anything.
    """
    query = query_of(release)
    try:
        return None if query is None else query.plan(n=release.facts.n, dimension=release.facts.dimension)
    except ParameterError:
        return None


def figure(release: Release[Any], *, with_curve: bool = True, width_inches: float | None = None) -> Any:
    """The value with its interval, or as its question pictures it; beside it, what each loss would have given.

    with_curve    False: the value alone
    width_inches  width of the figure; letters keep their size; default: by the picture
    """
    plan, pictured = (plan_of(release) if with_curve else None), picture_of(release)
    width, height = size_of(pictured)
    curve = plan is not None and bool(plan.curve)
    width = width_inches or (width if curve else ALONE * width)
    with _matplotlib.rc_context(MATPLOTLIB_STYLE):
        drawn = _figures.Figure(
            figsize=(width, height), layout=_layout.ConstrainedLayoutEngine(w_pad=0.15, wspace=0.06)
        )
        panels = _panels(drawn, height, curve=curve, wide=is_wide(pictured))
        if pictured is None:
            draw_words(panels["v"], release)
        else:
            draw(panels["v"], pictured, release)
        if plan is not None and curve:
            _draw_curve(panels["c"], plan, release.guarantee.loss)
    return drawn


def figure_of_plan(plan: Plan) -> Any:
    """What each amount of the loss would give; the planned one is marked. Without a curve, what is to be expected."""
    with _matplotlib.rc_context(MATPLOTLIB_STYLE):
        drawn = _figures.Figure(figsize=(SIZE[0] / 1.6, SIZE[1]), layout="constrained")
        axes = drawn.subplots()
        if plan.curve:
            _draw_curve(axes, plan, plan.cost, title="What each {} would give", here="this plan")
        else:
            axes.set_axis_off()
            axes.text(0, 0.5, fill(plan.verdict, 3 * LABEL), va="center", transform=axes.transAxes)
    return drawn


def svg(drawn: Any) -> str:
    """A figure as inline SVG whose colours follow the page it is on."""
    target = io.StringIO()
    with _matplotlib.rc_context(MATPLOTLIB_STYLE):
        drawn.savefig(target, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = target.getvalue()
    text = text[text.index("<svg") :]
    for colour, name in ((INK, "ink"), (ACCENT, "accent"), (QUIET, "quiet")):
        text = text.replace(colour, f"var(--{name})")
    return re.sub(r'<svg ([^>]*?)width="[^"]*" height="[^"]*"', r'<svg \1class="plot"', text, count=1)


def picture_of(release: Release[Any]) -> Picture | None:
    """What is seen of a release: as its question says, or a number with its interval; None where words must do."""
    query = query_of(release)
    found = None
    if query is not None:
        found = query.as_released(release.extras, release.facts).picture(release.value, release.facts)
    empty = (isinstance(found, Bars) and not found.labels) or (isinstance(found, Choices) and not found.rows)
    if found is None and isinstance(release.value, int | float) and not isinstance(release.value, bool):
        found = Dot(value=release.value, across="")
    if isinstance(found, Dot) and found.interval is None:
        return replace(found, interval=release.interval, covers=release.covers)
    return None if empty else found


def _panels(drawn: Any, height: float, *, curve: bool, wide: bool) -> Any:
    """Axes `v` for the value and `c` for the curve, which stays as high as it is without bars."""
    if not curve:
        return drawn.subplot_mosaic("v")
    widths = (1.7, 1) if wide else (1.15, 1)
    if height < 1.3 * SIZE[1]:
        return drawn.subplot_mosaic("vc", width_ratios=widths)
    return drawn.subplot_mosaic("vc;v.", width_ratios=widths, height_ratios=(SIZE[1], height - SIZE[1]))


def _draw_curve(
    axes: Any, plan: Plan, loss: Loss, *, title: str = "What each {} would have given", here: str = "this release"
) -> None:
    amounts, heights = zip(*plan.curve, strict=True)
    letter, spent = symbol(loss), float(loss.amount)
    axes.set_title(title.format(letter))
    axes.plot(amounts, heights, color=INK, linewidth=1.4)
    axes.set_xscale("log")
    axes.set_yscale(plan.scale)
    for axis in (axes.xaxis, axes.yaxis) if plan.scale == "log" else (axes.xaxis,):
        axis.set_major_locator(_ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_minor_locator(_ticker.NullLocator())
        axis.set_major_formatter(_ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    if plan.scale == "linear":
        axes.set_ylim(0, 1.02 * max(1.0, *heights))
    if amounts[0] <= spent <= amounts[-1]:
        spot = (spent, _along(plan.curve, spent, plan.scale))
        axes.axvline(spent, color=ACCENT, linewidth=1, linestyle=(0, (4, 3)))
        axes.plot(*spot, "o", color=ACCENT, markersize=6)
        right = spent <= math.sqrt(amounts[0] * amounts[-1])
        above = right == (heights[0] >= heights[-1])  # on the side the line does not go to
        above = above and not (plan.scale == "linear" and spot[1] > 0.9 * max(1.0, *heights))
        offset = (7 if right else -7, 7 if above else -14)
        side = "left" if right else "right"
        axes.annotate(here, spot, offset, textcoords="offset points", color=ACCENT, ha=side)
    axes.grid(True, which="major")
    axes.spines[["right", "top"]].set_visible(False)
    axes.set_xlabel(f"{letter} spent")
    axes.set_ylabel(fill(plan.measure, LABEL + 8))


def _along(curve: Sequence[tuple[float, float]], spent: float, scale: Scale) -> float:
    """The height of the drawn line, straight between points on the scales it is drawn on."""
    for (left, before), (right, after) in pairwise(curve):
        if left <= spent <= right:
            share = math.log(spent / left) / math.log(right / left)
            if scale == "linear":
                return (1 - share) * before + share * after
            return math.exp((1 - share) * math.log(before) + share * math.log(after))
    return curve[-1][1]
