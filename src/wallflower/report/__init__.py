"""Pages about releases: nothing here sees data, only what was released and what is public."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any, Final

from wallflower.errors import ParameterError
from wallflower.files import write_text
from wallflower.ledger import Ledger
from wallflower.ledger.chain import Entry, Verification
from wallflower.query import Plan
from wallflower.release import Release
from wallflower.release.words import readable, rows_of
from wallflower.report import drawing
from wallflower.report.drawing import plan_of, svg
from wallflower.report.scores import draw_contributions, draw_map, draw_scores

__all__ = ["card", "figure", "page", "write"]


def figure(release: Release[Any], /, **asked: Any) -> Any:
    """What was released, with its interval; of what can be used on records, what is `asked` for instead.

    A detector draws the scores of `records`, what each column adds to that of one `record`, or how unusual pairs of
    values of two `columns` are, `between` public ends.
    """
    if not asked:
        return drawing.figure(release)
    draw = next((draw for name, draw in _DETECTOR.items() if name in asked), None)
    if draw is None or release.kind not in Release.models:
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
    """A release as a piece of HTML, for notebooks and pages."""
    rows = [
        ("Reading", release.words),
        *([("Quality", release.standing)] if release.quality else []),
        *(("Note", note) for note in release.notes),
        *([("Asked", release.terms)] if release.terms else []),
        ("Guarantee", release.guarantee.words),
        ("Mechanism", f"{release.mechanism}; {release.proof}; {release.status}"),
        ("Data set", f"{release.dataset}: {release.facts}"),
        ("Ledger", f"entry {release.ledger_id} by {release.analyst}. {release.price}"),
        *([("Charged", release.moment)] if release.moment else []),
        *([("Protects", release.protects)] if release.protects else []),
    ]
    body = "".join(f"<tr><th>{escape(name)}</th><td>{escape(words)}</td></tr>" for name, words in rows)
    size = "answer" if isinstance(release.value, int | float) else "answer in-words"
    low, high = map(readable, release.interval or ("", ""))
    range_ = "" if release.interval is None else f"{escape(release.covers)} {low} to {high}"
    said = release.brief or readable(release.value)
    return (
        f'<div class="wallflower-release"><p class="question">{escape(release.question)}</p>'
        f'<p class="{size}"><strong>{escape(said)}</strong> <span>{range_}</span></p>'
        f"<table>{body}</table></div>"
    )


def page(releases: Sequence[Release[Any]], entries: Sequence[Entry], verified: Verification) -> str:
    """One HTML page, complete in itself: no script, no other file."""
    names = sorted({release.dataset for release in releases})
    return Template(_PAGE).substitute(
        title=escape(", ".join(names) or "wallflower"),
        style=_CSS,
        releases="".join(map(_section, releases)),
        entries=_entries(entries),
        count=verified.entries,
        head=verified.head,
        version=escape(releases[-1].version if releases else ""),
    )


def write(path: Path, releases: Sequence[Release[Any]], ledger: Ledger) -> None:
    """The page about these releases, with the ledger's entries of their data sets."""
    names = {release.dataset for release in releases}
    entries = [entry for entry in ledger.history() if entry.dataset in names]
    write_text(path, page(releases, entries, ledger.verify()))


def _section(release: Release[Any]) -> str:
    plan = plan_of(release)
    expected = "" if plan is None else _plan(plan)
    return f'<section>{card(release)}<figure class="wide">{svg(figure(release))}</figure>{expected}</section>'


def _plan(plan: Plan) -> str:
    heading = ("Mechanism", *(name[:1].upper() + name[1:] for name in plan.headings.values()), "")
    verdict = escape(plan.verdict[:1].upper() + plan.verdict[1:].rstrip("."))
    said = f"<p>{verdict}. From public facts alone, before anything was spent.</p>"
    return f"<h2>What was to be expected</h2>{said}{_table(heading, rows_of(plan))}"


def _entries(entries: Sequence[Entry]) -> str:
    rows = (
        (
            str(entry.id),
            entry.time.replace("T", " ").removesuffix("+00:00"),
            entry.event,
            entry.analyst or str(entry.details.get("by", "")),
            entry.label or "",
            "" if entry.loss is None else str(entry.loss),
            entry.hash[:12],
        )
        for entry in entries
    )
    return _table(("", "Time (UTC)", "Event", "By", "Question", "Loss", "Hash"), rows)


def _table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in heading)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table class="grid"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


_CSS: Final = """
:root { --ink: #22303c; --quiet: #6b7a87; --accent: #0b7285; --page: #fbfcfd; --card: #ffffff; --line: #dde3e8;
  color-scheme: light dark; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #dfe7ec; --quiet: #93a3af; --accent: #4cc3d6; --page: #12181d; --card: #1a2229; --line: #2d3943; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.55 system-ui, "DejaVu Sans", sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; margin: 0 0 .25rem; } h2 { font-size: 1.05rem; margin: 1.75rem 0 .5rem; }
h2:first-child { margin-top: 0; }
.lead, footer { color: var(--quiet); } footer { font-size: .85rem; margin-top: 2rem; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1.5rem;
  margin: 1.5rem 0; }
.question { margin: 0; color: var(--quiet); }
.answer { margin: .1rem 0 1rem; } .answer strong { font-size: 2.4rem; color: var(--accent); margin-right: .5rem; }
.answer.in-words strong { font-size: 1.3rem; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { text-align: left; vertical-align: top; padding: .38rem .9rem .38rem 0; border-top: 1px solid var(--line); }
th { font-weight: 600; color: var(--quiet); white-space: nowrap; }
.grid { font-variant-numeric: tabular-nums; } .grid td:last-child { color: var(--quiet); }
.wide { overflow-x: auto; } figure { margin: 1.5rem 0 0; } .plot { width: 100%; min-width: 34rem; height: auto; }
code { font-size: .85rem; overflow-wrap: anywhere; }
"""

_PAGE: Final = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Private release: $title</title><style>$style</style></head>
<body><main>
<h1>$title</h1>
<p class="lead">What was asked of private records, what was answered, and what it cost in privacy.</p>
$releases
<section><h2>The ledger</h2>
<p>Every grant and every charge, each bound to the one before it. The chain was checked when this page was written:
$count entries hold. Its head, to be noted elsewhere: <code>$head</code></p>
$entries</section>
<footer>Only the answers depend on the records; everything else on this page is public. wallflower $version</footer>
</main></body></html>
"""
