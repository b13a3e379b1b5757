"""The owner's page: what was found in each window, complete in itself, without script and without any other file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from html import escape
from string import Template
from typing import Any, Final

from wallflower.sensors.parameters import Parameters
from wallflower.sensors.protocol.batches import losses
from wallflower.sensors.protocol.findings import LEARNS

MOST_SHOWN: Final = 200  # ids of a list; the JSON has all


def page(parameters: Parameters, results: Sequence[Mapping[str, Any]], windows: Iterable[tuple[int, str]]) -> str:
    """One HTML page about all windows so far, the latest first."""
    waiting = [number for number, state in windows if not any(one["window"] == number for one in results)]
    return Template(_PAGE).substitute(
        title=escape(parameters.stream),
        style=_STYLE,
        summary=_summary(results, waiting),
        windows="".join(_window(one) for one in sorted(results, key=lambda one: -one["window"])),
        sensors=_sensors(results),
        parameters=_parameters(parameters),
        learns=_learns(parameters),
        hash=parameters.hash.hex(),
    )


def _summary(results: Sequence[Mapping[str, Any]], waiting: Sequence[int]) -> str:
    outliers, judged = (sum(count(one) for one in results) for count in (_outliers, lambda one: one["judged"]))
    unjudged = sum(len(one["unjudged"]) for one in results)
    figures = (
        (f"{outliers:,}", "outliers"),
        (f"{judged:,}", "readings judged"),
        (f"{unjudged:,}", "unjudged"),
        (f"{len(results):,}", "windows finished"),
        (f"{len(waiting):,}", "windows under way"),
    )
    return "".join(f"<div><strong>{figure}</strong><span>{words}</span></div>" for figure, words in figures)


def _outliers(result: Mapping[str, Any]) -> int:
    return len(result["outliers"])


def _window(result: Mapping[str, Any]) -> str:
    judged, unjudged = result["judged"], result["unjudged"]
    share = f" of {judged:,} judged" if judged else ""
    at = f", threshold {_number(result['threshold'])}" if result["threshold"] else ""
    parts = [
        f"<h2>Window {result['window']}</h2>",
        f'<p class="answer"><strong>{_outliers(result):,}</strong> <span>outliers{share}{at}</span></p>',
        _layers(result["outliers"]),
        _ids("Outliers", result["outliers"], ("id", "sensor", "layer", "level")),
    ]
    if unjudged:
        reasons = Counter(one["reason"] for one in unjudged)
        said = "; ".join(f"{count:,}: {escape(reason)}" for reason, count in reasons.most_common())
        parts.append(f'<p class="warning">{len(unjudged):,} readings are unjudged. {said}.</p>')
        parts.append(_ids("Unjudged", unjudged, ("id", "sensor", "reason")))
    parts.append(_doubts(result.get("doubts", ())))
    return f"<section>{''.join(parts)}</section>"


def _doubts(doubts: Sequence[Mapping[str, Any]]) -> str:
    """What servers say of sensors that the sensors' own words do not bear out."""
    if not doubts:
        return ""
    rows = [{"sensor": one["sensor"], "told by": one["server"] or "", "reason": one["reason"]} for one in doubts]
    said = "What the servers forward does not agree with what the sensors signed."
    return f'<p class="warning">{said}</p>' + _ids("Doubts", rows, ("sensor", "told by", "reason"))


def _layers(outliers: Sequence[Mapping[str, Any]]) -> str:
    found = Counter(one["layer"] for one in outliers if "layer" in one)
    if not found:
        return ""
    return "<p>" + ", ".join(f"{count:,} {escape(layer)}" for layer, count in sorted(found.items())) + "</p>"


def _ids(words: str, rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    """A list that is folded away; every id is in the JSON file beside the page."""
    if not rows:
        return ""
    own = [name for name in names if any(name in row for row in rows)]
    shown = rows[:MOST_SHOWN]
    more = "" if len(shown) == len(rows) else f"<p>The first {len(shown):,}; the JSON has all {len(rows):,}.</p>"
    cells = ([str(row.get(name, "")) for name in own] for row in shown)
    opened = " open" if len(rows) <= 12 else ""
    return f"<details{opened}><summary>{words}: {len(rows):,}</summary>{more}{_table(own, cells)}</details>"


def _sensors(results: Sequence[Mapping[str, Any]]) -> str:
    """The latest word of each sensor on what it has spent, and how many readings it committed."""
    spent: dict[int, Fraction] = {}
    readings: Counter[int] = Counter()
    for result in results:
        for name, said in result["sensors"].items():
            spent[int(name)] = max(spent.get(int(name), Fraction()), Fraction(said["spent"]))
            readings[int(name)] += said["readings"]
    rows = ([f"sensor-{name}", f"{readings[name]:,}", f"ε={_number(str(spent[name]))}"] for name in sorted(spent))
    return _table(("sensor", "readings committed", "spent in its whole life"), rows)


def _parameters(parameters: Parameters) -> str:
    settings = parameters.settings
    own = {name: value for name, value in parameters.to_json()["settings"].items() if name != "mode"}
    facts = [
        ("mode", settings.mode),
        *((name, _words(value)) for name, value in own.items() if value not in (None, [])),
        ("loss of a reading", _loss(parameters)),
        ("noise", parameters.noise),
        ("centre", _words([str(place) for place in parameters.centre])),
        ("grid", _number(str(parameters.grid))),
        ("window", f"{_number(str(parameters.length))} s, {_number(str(parameters.grace))} s grace"),
    ]
    columns = (
        [column.name, *(_number(str(getattr(column, name))) for name in ("center", "scale", "range", "low", "high"))]
        for column in parameters.columns
    )
    heading = ("column", "center", "scale", "range", "low", "high")
    return _facts(facts) + "<h3>Columns</h3>" + _table(heading, columns)


def _loss(parameters: Parameters) -> str:
    if not parameters.loss.amount:
        return "none: no perturbed reading leaves a sensor"
    usual, extreme = (loss.amount for loss in losses(parameters))
    said = f"ε={_number(str(usual))} between usual readings, ε={float(extreme):.4g} between any two in the box"
    choice = getattr(parameters.settings, "choice_epsilon", None)
    return said if choice is None else f"{said}; ε={_number(str(choice))} more for the choice of a threshold"


def _learns(parameters: Parameters) -> str:
    names = ("The analyst", "The correction server", "The owner")
    told = list(zip(names, LEARNS[parameters.settings.mode], strict=True))
    together = "everything: the distance of every reading from the centre"
    if parameters.settings.mode == "direct":
        return _facts(told)
    return _facts([*told, ("Both servers together", together)])


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(_words, value)) if isinstance(value, list) else _number(str(value))


def _number(text: str) -> str:
    """A fraction as people write it, when that is short."""
    try:
        number = Fraction(text)
    except ValueError:
        return text
    short = f"{float(number):.10g}"
    return short if Fraction(short) == number else text


def _facts(rows: Iterable[tuple[str, str]]) -> str:
    body = "".join(f"<tr><th>{escape(name)}</th><td>{escape(words)}</td></tr>" for name, words in rows)
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
<section><h2>Parameters</h2><p>Public, signed by the owner: <code>$hash</code></p>$parameters</section>
<section><h2>Who learns what</h2>$learns</section>
<footer>An id is random and says nothing by itself; the sensor that sent a reading knows which it was.</footer>
</main></body></html>
"""
