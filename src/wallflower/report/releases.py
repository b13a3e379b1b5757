"""Cards and HTML pages of releases: nothing here sees data, only what was released and what is public."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any, Final

from wallflower.drawing import cards, svg
from wallflower.drawing.canvas import cell_text
from wallflower.drawing.picture import Dot, Picture, Ranks
from wallflower.errors import ParameterError
from wallflower.ledger import Ledger
from wallflower.ledger.chain import Entry, Verification
from wallflower.machine.files import write_text
from wallflower.query import Plan
from wallflower.query.accuracy import CHECK_FIRST
from wallflower.release import Release
from wallflower.release.text import readable, rows_of
from wallflower.report import plots
from wallflower.report.plans import plan_chart_of
from wallflower.report.plots import picture_of, plan_of
from wallflower.report.scores import draw_contributions, draw_map, draw_scores
from wallflower.text import join

__all__ = ["card", "figure", "page", "write", "write_one"]

_MAX_VALUE_LETTERS: Final = 72  # a longer value is read from the picture
_MAX_ROWS: Final = 24
_SHADES: Final[Mapping[str, str]] = {
    "low noise": "good",
    "moderate noise": "care",
    CHECK_FIRST: "care",
    "mostly noise": "bad",
}


def figure(release: Release[Any], /, **asked: Any) -> Any:
    """What was released, with its interval; of what can be used on records, what is `asked` for instead.

    A detector draws the scores of `records`, what each column adds to that of one `record`, or how unusual pairs of
    values of two `columns` are, `between` public ends.
    """
    if not asked:
        return plots.figure(release)
    draw = next((draw for name, draw in _DETECTOR.items() if name in asked), None)
    if draw is None or not release.is_model:
        raise ParameterError(
            f"plot: {', '.join(asked)} cannot be drawn of a release of {release.kind}. A detector takes records, a "
            "record, or two columns; other releases take nothing."
        )
    try:
        return draw(release.model, **asked)
    except TypeError:
        raise ParameterError(f"plot: {', '.join(asked)} do not go together. Ask for one picture.") from None


_DETECTOR: Final[Mapping[str, Callable[..., Any]]] = {
    "records": draw_scores,
    "record": draw_contributions,
    "columns": draw_map,
}


def card(release: Release[Any]) -> str:
    """A release as a piece of HTML, for notebooks."""
    return cards.frame("release", _inside(release))


def page(releases: Sequence[Release[Any]], entries: Sequence[Entry], verified: Verification) -> str:
    """One HTML page, complete in itself: no script, no other file."""
    names = sorted({release.dataset for release in releases})
    return Template(_PAGE).substitute(
        title=escape(", ".join(names) or "wallflower"),
        style=cards.PAGE_STYLE,
        releases="".join(map(_section, releases)),
        ledger=Template(_LEDGER).substitute(entries=_entries(entries), count=verified.entries, head=verified.head),
        version=escape(releases[-1].version if releases else ""),
    )


def write(path: Path, releases: Sequence[Release[Any]], ledger: Ledger) -> None:
    """The page about these releases, with the ledger's entries of their data sets."""
    names = {release.dataset for release in releases}
    entries = [entry for entry in ledger.history() if entry.dataset in names]
    write_text(path, page(releases, entries, ledger.verify()))


def write_one(path: Path, release: Release[Any]) -> None:
    """The page about one release, without its ledger."""
    page = Template(_PAGE).substitute(
        title=escape(release.dataset),
        style=cards.PAGE_STYLE,
        releases=_section(release),
        ledger=f"<section><h2>The ledger</h2><p>Entry {release.ledger_id} of the ledger is its charge. "
        "To check it against that ledger: <code>wallflower ledger verify</code></p></section>",
        version=escape(release.version),
    )
    write_text(path, page)


def _inside(release: Release[Any]) -> str:
    """The answer, its picture and its reading; what was promised and paid for below."""
    quality = release.quality
    mark = "" if quality is None else cards.mark(quality.verdict, _SHADES[quality.verdict])
    facts = [
        *([("Noise", f"{quality.noise}: {quality.rule}"), ("Interval", quality.interval)] if quality else []),
        *([("Parameters", release.terms)] if release.terms else []),
        ("Data set", f"{release.dataset}: {release.facts}"),
        ("Ledger", f"entry {release.ledger_id} by {release.analyst}. {release.price}"),
        ("Guarantee", release.guarantee.text),
    ]
    more = [
        ("Mechanism", f"{release.mechanism}; {release.proof}; {release.status}"),
        *([("Charged", release.charged_at_text)] if release.charged_at_text else []),
        *([("Protects", release.protects)] if release.protects else []),
    ]
    picture = picture_html(picture_of(release), join(" ", (release.question, release.summary)))
    return (
        f'<p class="question">{mark}{escape(release.question)}</p>'
        f"{_answer(release)}{picture}<p>{escape(release.text)}</p>"
        f"{cards.warn((*(quality.conditions if quality else ()), *release.notes))}"
        f"{cards.tell(facts)}{cards.fold('Details', cards.tell(more))}"
    )


def _answer(release: Release[Any]) -> str:
    """The value, large; where it is long, the picture and the reading say it better."""
    size = "answer" if isinstance(release.value, int | float) else "answer in-words"
    low, high = map(readable, release.interval or ("", ""))
    range_ = "" if release.interval is None else f"{escape(release.covers)} {low} to {high}"
    said = release.brief or readable(release.value)
    is_long = len(said) > _MAX_VALUE_LETTERS and not release.brief
    return "" if is_long else f'<p class="{size}"><strong>{escape(said)}</strong> <span>{range_}</span></p>'


def picture_html(picture: Picture | None, said: str) -> str:
    """Return a picture as SVG with its legend, or as a table; nothing where the value itself says as much.

    >>> picture_html(Dot(value=3, across=""), "3")
    ''
    """
    match picture:
        case None | Dot(interval=None):
            return ""
        case Ranks() if len(picture.labels) < 2:
            return ""
    drawing = svg.draw(picture, said)
    if drawing:
        return f'<div class="scroll">{drawing}</div><p class="question">{escape(svg.legend(picture))}</p>'
    table = picture.table()
    return _table(table.headings, [[cell_text(cell) for cell in row] for row in table.rows[:_MAX_ROWS]])


def _section(release: Release[Any]) -> str:
    plan = plan_of(release)
    expected = "" if plan is None else _plan(plan)
    chart = None if plan is None else plan_chart_of(plan)
    drawing = "" if chart is None else f"<figure>{chart}</figure>"
    return f"<section>{cards.bare('release', _inside(release))}{expected}{drawing}</section>"


def _plan(plan: Plan) -> str:
    heading = ("Mechanism", *(name[:1].upper() + name[1:] for name in plan.headings.values()), "")
    verdict = escape(plan.verdict[:1].upper() + plan.verdict[1:].rstrip("."))
    said = f"<p>{verdict}. Computed from public facts alone, before anything was spent.</p>"
    return f"<h2>Expected accuracy</h2>{said}{_table(heading, rows_of(plan))}"


def _entries(entries: Sequence[Entry]) -> str:
    rows = (
        (
            str(entry.id),
            entry.time.replace("T", " ").removesuffix("+00:00"),
            entry.event,
            entry.analyst or str(entry.details.get("by", "")),
            entry.label or "",
            "" if entry.loss is None else entry.loss.text,
            entry.hash[:12],
        )
        for entry in entries
    )
    return _table(("", "Time (UTC)", "Event", "By", "Query", "Cost", "Hash"), rows)


def _table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in heading)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table class="grid"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


_PAGE: Final = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Private release: $title</title><style>$style</style></head>
<body><main>
<h1>$title</h1>
<p class="lead">Queries about private records, their answers, and what they cost.</p>
$releases
$ledger
<footer>Only the answers depend on the records; everything else on this page is public. wallflower $version</footer>
</main></body></html>
"""

_LEDGER: Final = """<section><h2>The ledger</h2>
<p>Every grant and every charge, each bound to the one before it. The chain was checked when this page was written:
$count entries hold. Its head, to be noted elsewhere: <code>$head</code></p>
$entries</section>"""
