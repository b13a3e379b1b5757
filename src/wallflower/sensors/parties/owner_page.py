"""The stream owner's page: the result of each window, in one HTML file without script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from html import escape
from string import Template
from typing import Any, Final

from wallflower.sensors.device import reading_losses
from wallflower.sensors.parameters import Parameters
from wallflower.sensors.protocol.findings import LEARNS

MAX_SHOWN_IDS: Final = 200  # of a list; the JSON has all


def render_page(
    parameters: Parameters, results: Sequence[Mapping[str, Any]], windows: Iterable[tuple[int, str]]
) -> str:
    """Return one HTML page about all windows so far, the latest first."""
    finished = {result["window"] for result in results}
    waiting = [number for number, _ in windows if number not in finished]
    return Template(_PAGE).substitute(
        title=escape(parameters.stream),
        style=_STYLE,
        summary=_summary(results, waiting),
        windows="".join(_window(result) for result in sorted(results, key=lambda result: -result["window"])),
        sensors=_sensors(results),
        parameters=_parameters(parameters),
        learns=_learns(parameters),
        hash=parameters.hash.hex(),
    )


def _summary(results: Sequence[Mapping[str, Any]], waiting: Sequence[int]) -> str:
    outliers, unjudged = (sum(len(result[name]) for result in results) for name in ("outliers", "unjudged"))
    judged = sum(result["judged"] for result in results)
    figures = (
        (f"{outliers:,}", "outliers"),
        (f"{judged:,}", "readings judged"),
        (f"{unjudged:,}", "unjudged"),
        (f"{len(results):,}", "windows finished"),
        (f"{len(waiting):,}", "windows in progress"),
    )
    return "".join(f"<div><strong>{figure}</strong><span>{label}</span></div>" for figure, label in figures)


def _window(result: Mapping[str, Any]) -> str:
    judged, unjudged = result["judged"], result["unjudged"]
    share = f" of {judged:,} judged" if judged else ""
    at = f", threshold {_number(result['threshold'])}" if result["threshold"] else ""
    parts = [
        f"<h2>Window {result['window']}</h2>",
        f'<p class="answer"><strong>{len(result["outliers"]):,}</strong> <span>outliers{share}{at}</span></p>',
        _layers(result["outliers"]),
        _ids("Outliers", result["outliers"], ("id", "sensor", "layer", "level")),
    ]
    if unjudged:
        reasons = Counter(row["reason"] for row in unjudged)
        text = "; ".join(f"{count:,}: {escape(reason)}" for reason, count in reasons.most_common())
        parts.append(f'<p class="warning">{len(unjudged):,} readings are unjudged. {text}.</p>')
        parts.append(_ids("Unjudged", unjudged, ("id", "sensor", "reason")))
    parts.append(_doubts(result.get("doubts", ())))
    return f"<section>{''.join(parts)}</section>"


def _doubts(doubts: Sequence[Mapping[str, Any]]) -> str:
    """Return what servers forward about sensors that the sensors did not sign."""
    if not doubts:
        return ""
    rows = [{"sensor": doubt["sensor"], "server": doubt["server"] or "", "reason": doubt["reason"]} for doubt in doubts]
    text = "The servers forward something else than the sensors signed."
    return f'<p class="warning">{text}</p>' + _ids("Doubts", rows, ("sensor", "server", "reason"))


def _layers(outliers: Sequence[Mapping[str, Any]]) -> str:
    layers = Counter(row["layer"] for row in outliers if "layer" in row)
    if not layers:
        return ""
    return "<p>" + ", ".join(f"{count:,} {escape(layer)}" for layer, count in sorted(layers.items())) + "</p>"


def _ids(title: str, rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    """Return a list that is folded away; every id is in the JSON file beside the page."""
    if not rows:
        return ""
    columns = [name for name in names if any(name in row for row in rows)]
    shown = rows[:MAX_SHOWN_IDS]
    more = "" if len(shown) == len(rows) else f"<p>The first {len(shown):,}; the JSON has all {len(rows):,}.</p>"
    cells = ([str(row.get(name, "")) for name in columns] for row in shown)
    opened = " open" if len(rows) <= 12 else ""
    return f"<details{opened}><summary>{title}: {len(rows):,}</summary>{more}{_table(columns, cells)}</details>"


def _sensors(results: Sequence[Mapping[str, Any]]) -> str:
    """Return what each sensor has spent by its latest statement, and how many readings it committed."""
    spent: dict[int, Fraction] = {}
    readings: Counter[int] = Counter()
    for result in results:
        for name, facts in result["sensors"].items():
            spent[int(name)] = max(spent.get(int(name), Fraction()), Fraction(facts["spent"]))
            readings[int(name)] += facts["readings"]
    rows = ([f"sensor-{name}", f"{readings[name]:,}", f"ε = {_number(str(spent[name]))}"] for name in sorted(spent))
    return _table(("sensor", "readings committed", "spent in its whole life"), rows)


def _parameters(parameters: Parameters) -> str:
    settings = parameters.settings
    stated = {name: value for name, value in parameters.to_json()["settings"].items() if name != "mode"}
    facts = [
        ("mode", settings.mode),
        *((name, _words(value)) for name, value in stated.items() if value not in (None, [])),
        ("cost of a reading", _cost(parameters)),
        ("noise", parameters.noise),
        ("centre", _words([str(coordinate) for coordinate in parameters.centre])),
        ("grid", _number(str(parameters.grid))),
        ("window", f"{_number(str(parameters.length))} s, {_number(str(parameters.grace))} s grace"),
    ]
    columns = (
        [column.name, *(_number(str(getattr(column, name))) for name in ("centre", "scale", "range", "low", "high"))]
        for column in parameters.columns
    )
    heading = ("column", "centre", "scale", "range", "low", "high")
    return _facts(facts) + "<h3>Columns</h3>" + _table(heading, columns)


def _cost(parameters: Parameters) -> str:
    if not parameters.loss.amount:
        return "none: no perturbed reading leaves a sensor"
    usual, extreme = (loss.amount for loss in reading_losses(parameters))
    text = f"ε = {_number(str(usual))} between usual readings, ε = {float(extreme):.4g} between any two in the box"
    choice = getattr(parameters.settings, "choice_epsilon", None)
    return text if choice is None else f"{text}; ε = {_number(str(choice))} more for the choice of a threshold"


def _learns(parameters: Parameters) -> str:
    names = ("The analyst", "The correction server", "The stream owner")
    facts = list(zip(names, LEARNS[parameters.settings.mode], strict=True))
    together = "everything: the distance of every reading from the centre"
    if parameters.settings.mode == "direct":
        return _facts(facts)
    return _facts([*facts, ("Both servers together", together)])


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(_words, value)) if isinstance(value, list) else _number(str(value))


def _number(text: str) -> str:
    """Return a fraction as a decimal, if that is exact and short."""
    try:
        number = Fraction(text)
    except ValueError:
        return text
    short = f"{float(number):.10g}"
    return short if Fraction(short) == number else text


def _facts(rows: Iterable[tuple[str, str]]) -> str:
    body = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in rows)
    return f"<table>{body}</table>"


def _table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in heading)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table class="grid"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


_STYLE: Final = """
:root { --ink: #22303c; --quiet: #6b7a87; --accent: #0b7285; --page: #fbfcfd; --card: #ffffff; --line: #dde3e8;
  --warn: #c9822b; color-scheme: light dark; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #dfe7ec; --quiet: #93a3af; --accent: #4cc3d6; --page: #12181d; --card: #1a2229; --line: #2d3943; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.55 system-ui, "DejaVu Sans", sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; margin: 0 0 .25rem; } h2 { font-size: 1.05rem; margin: 0 0 .5rem; }
h3 { font-size: .95rem; margin: 1.25rem 0 .25rem; }
.lead, footer { color: var(--quiet); } footer { font-size: .85rem; margin-top: 2rem; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1.5rem;
  margin: 1.5rem 0; }
.answer { margin: .1rem 0 .5rem; } .answer strong { font-size: 2.4rem; color: var(--accent); margin-right: .5rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(8rem, 1fr)); gap: 1rem; }
.figures strong { display: block; font-size: 1.9rem; color: var(--accent); font-variant-numeric: tabular-nums; }
.figures span { color: var(--quiet); } .warning { border-left: 4px solid var(--warn); padding-left: .8rem; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { text-align: left; vertical-align: top; padding: .38rem .9rem .38rem 0; border-top: 1px solid var(--line); }
th { font-weight: 600; color: var(--quiet); white-space: nowrap; }
.grid { font-variant-numeric: tabular-nums; } .wide { overflow-x: auto; }
details { margin: .5rem 0; } summary { cursor: pointer; color: var(--accent); }
details td:first-child { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .85rem; }
code { font-size: .85rem; overflow-wrap: anywhere; }
"""

_PAGE: Final = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sensors: $title</title><style>$style</style></head>
<body><main>
<h1>$title</h1>
<p class="lead">Outliers among readings that were perturbed at the source, found by two servers together.</p>
<section><div class="figures">$summary</div></section>
$windows
<section><h2>Sensors</h2>$sensors</section>
<section><h2>Parameters</h2><p>Public, signed by the stream owner: <code>$hash</code></p>$parameters</section>
<section><h2>Who learns what</h2>$learns</section>
<footer>An id is random and reveals nothing by itself; the sensor that sent a reading knows which it was.</footer>
</main></body></html>
"""
