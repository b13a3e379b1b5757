"""Tables and the page of a reproduction, figure by figure; what is not private is red, and says so."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape, unescape
from pathlib import Path
from string import Template
from typing import Final

from wallflower.machine.heavy import matplotlib as _matplotlib
from wallflower.papers.facts import Comparison
from wallflower.papers.methods import INVALID, NOT_PRIVATE
from wallflower.papers.panels import STYLE, Panel, draw_panels
from wallflower.report.plots import svg


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
    """One figure or table of the paper, drawn again, with a number of panels `across`."""

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
        "works and is improved, or deviates, and then the reason is given. Where this page has fewer runs than the "
        "paper and does not show a claim, it says so (too few runs).",
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
        with _matplotlib.rc_context(STYLE):
            draw_panels(section.panels, section.across).savefig(path, dpi=150, facecolor="white")
        yield path


def write_page(path: Path, title: str, lead: str, sections: Sequence[Section]) -> Path:
    """One HTML page, complete in itself: no script, no other file."""
    return _write(path, title, lead, _contents(sections) + "".join(map(_section, sections)))


def _contents(sections: Sequence[Section]) -> str:
    """A link to every figure and table of the page."""
    links = "".join(f'<li><a href="#{escape(each.name)}">{escape(each.title)}</a></li>' for each in sections)
    return f"<nav><ul>{links}</ul></nav>"


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
        f'<section id="{escape(section.name)}"><h2><a href="#{escape(section.name)}">{escape(section.title)}</a></h2>'
        f"{picture}<p>{escape(section.caption)}</p>"
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
.wrong { color: var(--wrong); } h2 a { color: inherit; text-decoration: none; } nav a { color: var(--accent); }
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
