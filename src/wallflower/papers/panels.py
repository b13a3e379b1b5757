"""Pictures of a reproduction: lines in panels on scales of several kinds; what is not private is red and dashed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from wallflower.drawing.palette import ACCENT, INK, QUIET
from wallflower.machine.heavy import matplotlib as _matplotlib
from wallflower.machine.heavy import matplotlib_figure as _figures
from wallflower.machine.heavy import matplotlib_ticker as _ticker
from wallflower.papers.methods import CurveLabel

WRONG: Final = "#d9480f"
STYLE: Final[Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "svg.fonttype": "none",
    "svg.hashsalt": "wallflower",
    **dict.fromkeys(("axes.labelcolor", "axes.titlecolor", "text.color", "xtick.color", "ytick.color"), INK),
    **dict.fromkeys(("axes.edgecolor", "grid.color", "legend.edgecolor"), QUIET),
}
_HONEST: Final = ((INK, "o", 7), ("#5c7cfa", "s", 6), ("#9c36b5", "^", 5), ("#2b8a3e", "D", 4), (QUIET, "v", 5))
_PRINTED: Final = ((WRONG, "x", 5), ("#e03131", "+", 7), ("#f08c00", "1", 7), ("#a61e4d", "2", 7), ("#862e9c", "3", 7))
_OURS: Final = (ACCENT, "o", 5)
_SMOOTH: Final = 12  # a line of more points than this has no markers


@dataclass(frozen=True, slots=True, kw_only=True)
class Spots:
    """Simulated points on a line, each with what it may be off by."""

    along: tuple[float, ...]
    values: tuple[float, ...]
    off: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One line of a panel; `why` says what is wrong with it, if anything is.

    It may run over an axis of its own, lie in a band, and have simulated points, which then take the place of markers.
    """

    label: str
    values: tuple[float, ...]
    why: str = ""
    ours: bool = False
    along: tuple[float, ...] | None = None
    band: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    spots: Spots | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Lines over one axis, all of them positive, on a logarithmic scale.

    With `chance`, which is what a guess gives, they are shares from 0 to 1 on a plain scale over a logarithmic axis. A
    `scale` says otherwise: "rates" are logarithmic both ways, from `floor` to 1, "roc" is one rate against another, and
    "signed" is logarithmic above 10 and below -10. "plain" has `along` both ways, "square" is a ROC on such axes, and
    "histogram" is plain both ways.
    """

    title: str
    along: tuple[float, ...]
    curves: tuple[Curve, ...]
    across: str
    up: str
    claim: tuple[float, float] | None = None
    chance: float | None = None
    scale: str | None = None
    floor: float | None = None


def draw_panels(panels: Sequence[Panel], across: int = 2) -> Any:
    """The panels side by side, `across` in a row, one legend below them."""
    columns = min(across, len(panels))
    rows = -(-len(panels) // columns)
    with _matplotlib.rc_context(STYLE):
        size = (min(4.7 * max(columns, 1.8), 11.0), 2.8 * rows + (2.2 if rows == 1 else 1.2))
        figure = _figures.Figure(figsize=size, layout="constrained")
        pens = _pens(panels)
        places = figure.subplots(rows, columns, squeeze=False).flat
        for axes, panel in zip(places, panels, strict=False):
            _draw(axes, panel, pens)
        for spare in places[len(panels) :]:
            spare.set_visible(False)
        known = {
            label: handle
            for axes in figure.axes
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(known.values(), known.keys(), loc="outside lower left", ncols=2, frameon=False, handlelength=3)
    return figure


def curve(method: CurveLabel, values: tuple[float, ...], *, ours: bool) -> Curve:
    """The line of a method, its guarantee in its label."""
    return Curve(label=f"{method.label}: {method.guarantee}", values=values, why=method.why, ours=ours)


def _pens(panels: Sequence[Panel]) -> dict[str, tuple[str, str, int]]:
    """Colour, marker and its size for each label: a line looks the same in every panel."""
    honest, wrong = iter(_HONEST), iter(_PRINTED)
    lines = {line.label: line for panel in panels for line in panel.curves}
    return {label: _OURS if line.ours else next(wrong if line.why else honest) for label, line in lines.items()}


def _draw(axes: Any, panel: Panel, pens: Mapping[str, tuple[str, str, int]]) -> None:
    for line in panel.curves:
        _draw_line(axes, line, line.along or panel.along, *pens[line.label])
    _SCALES[panel.scale or ("amounts" if panel.chance is None else "shares")](axes, panel)
    if panel.claim:
        _draw_claim(axes, panel)
    axes.set_title(panel.title)
    axes.set_xlabel(panel.across)
    axes.set_ylabel(panel.up)
    axes.grid(True, alpha=0.25, linewidth=0.6)
    axes.spines[["right", "top"]].set_visible(False)


def _draw_line(axes: Any, line: Curve, along: Sequence[float], colour: str, marker: str, size: int) -> None:
    is_smooth = line.spots is not None or len(along) > _SMOOTH
    look = {"color": colour, "marker": marker, "markersize": size, "zorder": 3 if line.ours else 2}
    look["markerfacecolor"] = colour if line.ours else "none"
    axes.plot(
        along,
        line.values,
        label=line.label,
        linewidth=2.6 if line.ours else 1.2,
        linestyle=(0, (4, 2)) if line.why else "-",
        **look | ({"marker": ""} if is_smooth else {}),
    )
    if line.band:
        axes.fill_between(along, *line.band, color=colour, alpha=0.13, linewidth=0, zorder=1)
    if line.spots:
        axes.errorbar(
            line.spots.along, line.spots.values, line.spots.off, linestyle="", capsize=2, elinewidth=1, **look
        )


def _scale_amounts(axes: Any, panel: Panel) -> None:
    _log_up(axes)
    axes.set_xticks(panel.along)


def _scale_signed(axes: Any, panel: Panel) -> None:
    axes.set_yscale("symlog", linthresh=10, linscale=0.6)
    axes.yaxis.set_major_formatter(_ticker.FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.yaxis.set_minor_locator(_ticker.NullLocator())
    axes.set_xticks(panel.along)


def _scale_shares(axes: Any, panel: Panel) -> None:
    _log_across(axes, panel)
    axes.set_ylim(-0.03, 1.03)  # a marker at the edge is drawn whole
    if panel.chance is not None:
        axes.axhline(panel.chance, label="by chance", color=QUIET, linewidth=1, linestyle=":", zorder=1)


def _scale_rates(axes: Any, panel: Panel) -> None:
    _log_across(axes, panel)
    _log_up(axes)
    axes.set_ylim(panel.floor, 1.0)


def _scale_roc(axes: Any, panel: Panel) -> None:
    _log_across(axes, panel)
    axes.set_xlim(panel.along[0], panel.along[-1])
    axes.set_ylim(0.0, 1.02)
    line = [panel.along[0] * (panel.along[-1] / panel.along[0]) ** (step / 100) for step in range(101)]
    axes.plot(line, line, label="by chance", color=QUIET, linewidth=1, linestyle=":", zorder=1)


def _scale_plain(axes: Any, panel: Panel) -> None:
    ends = panel.along[0], panel.along[-1]
    room = 0.03 * (ends[1] - ends[0])  # a marker at the edge is drawn whole
    axes.set_xticks(panel.along)
    axes.set_yticks(panel.along)
    axes.set_xlim(ends[0] - room, ends[1] + room)
    axes.set_ylim(ends[0] - room, ends[1] + room)


def _scale_square(axes: Any, panel: Panel) -> None:
    _scale_plain(axes, panel)
    ends = panel.along[0], panel.along[-1]
    axes.plot(ends, ends, label="by chance", color=QUIET, linewidth=1, linestyle=":", zorder=1)


def _log_up(axes: Any) -> None:
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(_ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(_ticker.FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.yaxis.set_minor_locator(_ticker.NullLocator())


def _log_across(axes: Any, panel: Panel) -> None:
    axes.set_xscale("log")
    axes.set_xticks(panel.along, [f"{value:g}" for value in panel.along])
    axes.xaxis.set_minor_locator(_ticker.NullLocator())


def _scale_histogram(axes: Any, panel: Panel) -> None:
    axes.set_xlim(panel.along[0], panel.along[-1])
    axes.set_ylim(0.0, None)
    axes.locator_params(axis="x", nbins=4)
    axes.locator_params(axis="y", nbins=4, integer=True)


_SCALES: Final[Mapping[str, Callable[[Any, Panel], None]]] = {
    "amounts": _scale_amounts,
    "signed": _scale_signed,
    "shares": _scale_shares,
    "rates": _scale_rates,
    "roc": _scale_roc,
    "plain": _scale_plain,
    "square": _scale_square,
    "histogram": _scale_histogram,
}


def _draw_claim(axes: Any, panel: Panel) -> None:
    start, height = panel.claim or (0.0, 0.0)
    axes.hlines(height, start, panel.along[-1], color=WRONG, linewidth=1, linestyle=":")
    axes.annotate(
        f"paper's claim: < {height:g}",
        (panel.along[-1], height),
        (0, 4),
        textcoords="offset points",
        color=WRONG,
        fontsize=8,
        ha="right",
    )
