"""Tables, pictures and the page of a reproduction; what is not private is red and dashed, and says so."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape, unescape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, Final

from wallflower.machine.lazy import Lazy
from wallflower.papers.facts import Comparison
from wallflower.papers.methods import INVALID, NOT_PRIVATE, CurveLabel
from wallflower.report.colours import ACCENT, INK, QUIET
from wallflower.report.drawing import svg

if TYPE_CHECKING:
    import matplotlib as _matplotlib
    import matplotlib.figure as _figures
    import matplotlib.ticker as _ticker
else:
    _matplotlib = Lazy("matplotlib")
    _figures = Lazy("matplotlib.figure")
    _ticker = Lazy("matplotlib.ticker")

WRONG: Final = "#d9480f"
_STYLE: Final[Any] = {
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A table: numbers stay exact in the file and are shortened for people."""

    heading: tuple[str, ...]
    rows: tuple[tuple[str | float, ...], ...]

    def write(self, path: Path) -> None:
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([self.heading, *self.rows])

    def text(self) -> str:
        """Columns aligned by blanks, numbers to the right."""
        cells = [self.heading, *(tuple(map(short, row)) for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        words = [isinstance(cell, str) for cell in self.rows[0]]
        lines = (
            "  ".join(
                f"{cell:<{width}}" if word else f"{cell:>{width}}"
                for cell, width, word in zip(row, widths, words, strict=True)
            )
            for row in cells
        )
        return "\n".join(line.rstrip() for line in lines)

    def html(self) -> str:
        head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in self.heading)
        body = "".join(_row(row) for row in self.rows)
        return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One figure or table of the paper, drawn again, with so many panels `across`."""

    name: str
    title: str
    caption: str
    sheet: Sheet
    panels: tuple[Panel, ...] = ()
    across: int = 2


def first_section(rows: Sequence[Comparison]) -> Section:
    """The table a page opens with: what the paper defines, prints and claims, each beside what is here."""
    return Section(
        name="compared",
        title="What is printed, and what is here",
        caption="Every definition, algorithm, theorem, experiment and claim of the paper. An item works as printed, "
        "works and is improved, or deviates, and then the reason is given.",
        sheet=Sheet(
            heading=("item", "where", "printed", "ours", "status", "why they differ"),
            rows=tuple((row.item, row.fact.where, row.fact.value, row.ours, row.status, row.why) for row in rows),
        ),
    )


def leave(folder: Path, section: Section, say: Callable[[str], None]) -> Iterator[Path]:
    """Write the table and the picture of a section, and say the table."""
    path = folder / f"{section.name}.csv"
    section.sheet.write(path)
    say(f"{section.title}\n{section.sheet.text()}\n")
    yield path
    if section.panels:
        path = folder / f"{section.name}.png"
        with _matplotlib.rc_context(_STYLE):
            draw_panels(section.panels, section.across).savefig(path, dpi=150, facecolor="white")
        yield path


def write_page(path: Path, title: str, lead: str, sections: Sequence[Section]) -> Path:
    """One HTML page, complete in itself: no script, no other file."""
    return _write(path, title, lead, "".join(map(_section, sections)))


def write_index(path: Path, pages: Mapping[str, Path]) -> Path:
    """A page that leads to the page of every paper, by its title."""
    links = "".join(
        f'<li><a href="{escape(page.relative_to(path.parent).as_posix())}">{escape(title)}</a></li>'
        for title, page in pages.items()
    )
    lead = "What each paper defines, prints and claims, beside ours. Every page opens with a table of it."
    return _write(path, "The papers, beside ours", lead, f"<ul>{links}</ul>")


def page_title(path: Path) -> str:
    """The title of a page that `write_page` wrote."""
    return unescape(path.read_text(encoding="utf-8").partition("<title>")[2].partition("</title>")[0])


def _write(path: Path, title: str, lead: str, body: str) -> Path:
    filled = Template(_PAGE).substitute(title=escape(title), lead=escape(lead), style=_CSS, body=body)
    path.write_text(filled, encoding="utf-8")
    return path


def draw_panels(panels: Sequence[Panel], across: int = 2) -> Any:
    """The panels side by side, `across` in a row, one legend below them."""
    columns = min(across, len(panels))
    rows = -(-len(panels) // columns)
    with _matplotlib.rc_context(_STYLE):
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


def short(cell: str | float) -> str:
    """A number as people read it.

    >>> short(591.23), short(6.0766), short(1000000), short("text")
    ('591', '6.08', '1,000,000', 'text')
    """
    match cell:
        case str():
            return cell
        case int():
            return f"{cell:,}"
        case _:
            return f"{cell:,.0f}" if abs(cell) >= 100 else f"{cell:.3g}"


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


def _row(row: Sequence[str | float]) -> str:
    is_wrong = any(cell in (INVALID, NOT_PRIVATE) for cell in row)
    cells = "".join(
        f"<td>{escape(cell)}</td>" if isinstance(cell, str) else f'<td class="number">{escape(short(cell))}</td>'
        for cell in row
    )
    return f'<tr class="wrong">{cells}</tr>' if is_wrong else f"<tr>{cells}</tr>"


def _section(section: Section) -> str:
    picture = (
        f'<figure class="wide">{svg(draw_panels(section.panels, section.across))}</figure>' if section.panels else ""
    )
    lines = {line.label: line for panel in section.panels for line in panel.curves}
    wrong = "".join(
        f'<li class="wrong"><strong>{escape(label)}</strong>: {escape(line.why)}.</li>'
        for label, line in lines.items()
        if line.why
    )
    return (
        f"<section><h2>{escape(section.title)}</h2>{picture}<p>{escape(section.caption)}</p>"
        f"<ul>{wrong}</ul>{section.sheet.html()}</section>"
    )


_CSS: Final = """
:root { --ink: #22303c; --quiet: #6b7a87; --accent: #0b7285; --page: #fbfcfd; --line: #dde3e8; --wrong: #c92a2a;
  color-scheme: light dark; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #dfe7ec; --quiet: #93a3af; --accent: #4cc3d6; --page: #12181d; --line: #2d3943; --wrong: #ff8787; } }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, "DejaVu Sans", sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 2rem 1.25rem; } section { margin: 2.5rem 0; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.15rem; } .lead { color: var(--quiet); } figure { margin: 1rem 0; }
.plot { width: 100%; min-width: 36rem; max-width: 56rem; height: auto; } .wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; } ul:empty { display: none; }
th, td { text-align: left; vertical-align: top; padding: .3rem 1rem .3rem 0; border-top: 1px solid var(--line); }
th { color: var(--quiet); font-weight: 600; max-width: 8rem; } td:first-child { white-space: nowrap; }
.number { font-variant-numeric: tabular-nums; }
.wrong { color: var(--wrong); }
"""

_PAGE: Final = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title><style>$style</style></head>
<body><main>
<h1>$title</h1>
<p class="lead">$lead</p>
$body
</main></body></html>
"""
