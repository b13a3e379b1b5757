"""A page to choose by: slide the loss, see what can be found at which rate of alarms.

One HTML file, complete in itself: the curves are in it, a few lines of script draw them. Only public facts are on it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any, Final

from wallflower.drawing import cards
from wallflower.errors import ParameterError
from wallflower.machine.files import write_text
from wallflower.query import Query, Tradeoff
from wallflower.release.text import symbol

DIGITS: Final = 5


def write(path: Path, query: Query[Any, Any], *, dimension: int) -> None:
    """Write the page about the trade-offs of a question, or refuse when it has none."""
    curves = query.tradeoffs(dimension=dimension)
    if not curves:
        raise ParameterError(f"{query.kind}: it has no ROC curve. Omit the page.")
    write_text(path, page(query, curves))


def page(query: Query[Any, Any], curves: Sequence[Tradeoff]) -> str:
    """The page as text."""
    spent = f"{float(query.cost().amount):g}"
    at = next((place for place, curve in enumerate(curves) if curve.amount == spent), len(curves) // 2)
    facts = ", ".join(f"{name} {value}" for name, value in query.to_json().items() if _is_short(value))
    return Template(_PAGE).substitute(
        title=escape(query.question),
        facts=escape(facts),
        letter=symbol(query.cost()),
        last=len(curves) - 1,
        at=at,
        style=f"{cards.THEME}{_STYLE}",
        script=Template(_SCRIPT).safe_substitute(curves=_script_safe(curves), letter=symbol(query.cost())),
    )


def _is_short(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _script_safe(curves: Sequence[Tradeoff]) -> str:
    rows = [
        {
            "amount": curve.amount,
            "setting": [float(f"{value:.{DIGITS}g}") for value in curve.setting],
            "alarms": [float(f"{value:.{DIGITS}g}") for value in curve.alarms],
            "found": [float(f"{value:.{DIGITS}g}") for value in curve.found],
        }
        for curve in curves
    ]
    return json.dumps(rows, allow_nan=False).replace("<", "\\u003c")


_STYLE: Final = """
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, "DejaVu Sans", sans-serif; }
main { max-width: 46rem; margin: 0 auto; padding: 2rem 1.25rem; } h1 { font-size: 1.5rem; margin: 0; }
.quiet { color: var(--quiet); font-size: .9rem; }
label { display: flex; gap: 1rem; align-items: center; margin: 1rem 0; }
input { flex: 1; accent-color: var(--accent); } output { font-variant-numeric: tabular-nums; min-width: 6rem; }
svg { width: 100%; height: auto; touch-action: none; }
.grid { stroke: var(--line); } .axis { fill: var(--quiet); font-size: 12px; }
.other { fill: none; stroke: var(--line); stroke-width: 1.2; }
.own { fill: none; stroke: var(--accent); stroke-width: 3; }
.chance { stroke: var(--quiet); stroke-dasharray: 3 4; } .dot { fill: var(--accent); }
table { border-collapse: collapse; margin-top: 1rem; } td, th { text-align: left; padding: .3rem 1.2rem .3rem 0; }
td { font-variant-numeric: tabular-nums; border-top: 1px solid var(--line); }
th { color: var(--quiet); font-weight: 600; }
"""

_SCRIPT: Final = """
const curves = $curves, box = {left: 68, top: 12, size: 410};
const svg = document.querySelector("svg"), slider = document.querySelector("input");
const x = share => box.left + box.size * share, y = share => box.top + box.size * (1 - share);
const make = (kind, facts, words) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", kind);
  for (const [name, value] of Object.entries(facts)) node.setAttribute(name, value);
  if (words !== undefined) node.textContent = words;
  return svg.appendChild(node);
};
for (const share of [0, .2, .4, .6, .8, 1]) {
  make("line", {x1: x(share), x2: x(share), y1: y(0), y2: y(1), class: "grid"});
  make("line", {x1: x(0), x2: x(1), y1: y(share), y2: y(share), class: "grid"});
  make("text", {x: x(share), y: y(0) + 18, "text-anchor": "middle", class: "axis"}, 100 * share + " %");
  make("text", {x: x(0) - 8, y: y(share) + 4, "text-anchor": "end", class: "axis"}, 100 * share + " %");
}
make("text", {x: x(.5), y: y(0) + 40, "text-anchor": "middle", class: "axis"}, "false alarm rate");
const turned = {x: 12, y: y(.5), "text-anchor": "middle", class: "axis", transform: `rotate(-90 12 ${y(.5)})`};
make("text", turned, "detection rate");
make("line", {x1: x(0), y1: y(0), x2: x(1), y2: y(1), class: "chance"});
const path = curve => "M" + curve.alarms.map((share, i) => x(share) + " " + y(curve.found[i])).join("L");
curves.forEach(curve => make("path", {d: path(curve), class: "other"}));
const own = make("path", {class: "own"}), dot = make("circle", {r: 6, class: "dot"});
const rows = document.querySelector("tbody");
const percent = share => (100 * share).toFixed(share < .1 ? 2 : 1) + " %";
let pointed = .1;
const along = (curve, share) => {
  let i = curve.alarms.findIndex(value => value >= share);
  if (i < 1) i = i < 0 ? curve.alarms.length - 1 : 1;
  const low = curve.alarms[i - 1], high = curve.alarms[i];
  const part = Math.min(1, Math.max(0, high > low ? (share - low) / (high - low) : 0));
  const mix = row => row[i - 1] + part * (row[i] - row[i - 1]);
  return {alarms: mix(curve.alarms), found: mix(curve.found), setting: mix(curve.setting)};
};
const show = () => {
  const curve = curves[slider.value];
  document.querySelector("output").textContent = "$letter = " + curve.amount;
  own.setAttribute("d", path(curve));
  const here = along(curve, pointed);
  dot.setAttribute("cx", x(here.alarms)); dot.setAttribute("cy", y(here.found));
  rows.replaceChildren(...[.01, .1, pointed].map((share, i) => {
    const at = along(curve, share), row = document.createElement("tr");
    const words = [i < 2 ? "" : "pointed at", percent(at.alarms), percent(at.found), at.setting.toPrecision(4)];
    row.append(...words.map(word => Object.assign(document.createElement("td"), {textContent: word})));
    return row;
  }));
};
slider.addEventListener("input", show);
svg.addEventListener("pointermove", event => {
  const place = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / place.width;
  pointed = Math.min(.9999, Math.max(.0001, ((event.clientX - place.left) * scale - box.left) / box.size));
  show();
});
show();
"""

_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title><style>$style</style></head>
<body><main><h1>$title</h1>
<p class="quiet">Computed from public facts alone; nothing was spent. Move the slider, or point at the curve.</p>
<label>$letter <input type="range" min="0" max="$last" value="$at" aria-label="loss"> <output></output></label>
<svg viewBox="0 0 500 490" role="img" aria-label="true against false positives"></svg>
<table><thead><tr><th></th><th>false alarm rate</th><th>detection rate</th><th>threshold</th></tr></thead>
<tbody></tbody></table>
<p class="quiet">$facts</p></main>
<script>$script</script></body></html>
"""
