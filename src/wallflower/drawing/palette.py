"""Colours and letters of every drawing, card and report, light and dark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

INK: Final = "#22303c"
ACCENT: Final = "#0b7285"
QUIET: Final = "#8795a1"

_LIGHT: Final = {
    "ink": INK,
    "quiet": "#5d6b77",
    "accent": ACCENT,
    "on-accent": "#ffffff",
    "page": "#f6f8fa",
    "card": "#ffffff",
    "line": "#d9e0e6",
    "code": "#f1f4f6",
    "good": "#1b6e3c",
    "care": "#8a5300",
    "bad": "#a3261b",
}
_DARK: Final = {
    "ink": "#dfe7ec",
    "quiet": "#9badb9",
    "accent": "#4cc3d6",
    "on-accent": "#0c1519",
    "page": "#12181d",
    "card": "#1a2229",
    "line": "#2d3943",
    "code": "#131a1f",
    "good": "#7fd3a0",
    "care": "#f2b84b",
    "bad": "#f2a29b",
}


def _variables(colours: Mapping[str, str]) -> str:
    return "".join(f"--{name}:{colour};" for name, colour in colours.items())


LIGHT: Final = _variables(_LIGHT)
DARK: Final = _variables(_DARK)

# Rules for the classes that `svg` and `charts` give their shapes; `{0}` is a selector before each of them.
_SVG_RULES: Final = """
{0} .picture {{ display:block; width:100%; height:auto; }}
{0} .picture text {{ fill:var(--ink); font:13px system-ui,"DejaVu Sans",sans-serif; }}
{0} .picture .small {{ fill:var(--quiet); font-size:12px; }}
{0} .picture .axis {{ fill:var(--quiet); font-size:12.5px; }}
{0} .picture .large {{ font-size:19px; font-weight:650; }}
{0} .picture .label {{ font-weight:600; }}
{0} .picture .grid-line {{ stroke:var(--line); fill:none; }}
{0} .picture .axis-line {{ stroke:var(--quiet); fill:none; }}
{0} .picture .bar {{ fill:var(--accent); fill-opacity:.72; }}
{0} .picture .full {{ fill:var(--accent); }}
{0} .picture .soft {{ fill:var(--accent); fill-opacity:.22; }}
{0} .picture .whisker {{ stroke:var(--ink); stroke-width:1.6; fill:none; }}
{0} .picture .line {{ stroke:var(--accent); stroke-width:2; fill:none; stroke-linejoin:round; }}
{0} .picture .dashed {{ stroke:var(--quiet); stroke-width:1.4; stroke-dasharray:5 4; fill:none; }}
{0} .picture .row {{ fill:var(--code); }}
{0} .picture .first {{ fill:var(--accent); fill-opacity:.2; }}
{0} .picture .badge {{ fill:var(--accent); }}
{0} .picture .on-badge, {0} .picture .on-chip {{ fill:var(--on-accent); font-weight:650; }}
{0} .picture .chip {{ stroke:var(--accent); }}
{0} .picture .in {{ fill:var(--accent); }}
{0} .picture .out {{ fill:none; stroke:var(--quiet); stroke-dasharray:3 3; }}
{0} .picture .off-chip {{ fill:var(--quiet); }}
{0} .picture .heat {{ fill:var(--accent); }}
{0} .picture .unknown {{ fill:none; stroke:var(--line); stroke-dasharray:3 3; }}
{0} .picture .ground {{ fill:var(--code); }}
{0} .picture .spent {{ fill:var(--quiet); fill-opacity:.35; }}
{0} .picture .tick {{ stroke:var(--accent); stroke-width:2; }}
{0} .picture .many {{ stroke-width:.7; stroke-opacity:.7; }}
{0} .picture .flag {{ fill:var(--bad); }}
{0} .picture .target {{ fill:transparent; }}
{0} .chart {{ display:block; width:100%; max-width:36rem; height:auto; }}
{0} .chart text {{ fill:var(--quiet); font:12px system-ui,"DejaVu Sans",sans-serif; }}
{0} .chart .axis {{ fill:var(--ink); }}
{0} .chart path {{ fill:none; stroke-linejoin:round; }}
{0} .chart .grid-line {{ stroke:var(--line); }}
{0} .chart .line {{ stroke:var(--ink); stroke-width:2; }}
{0} .chart .dot {{ fill:var(--accent); }}
{0} .chart .here {{ stroke:var(--accent); stroke-dasharray:5 4; }}
{0} .chart .chance, {0} .chart path.mark {{ stroke:var(--quiet); stroke-dasharray:2 3; }}
"""


def svg_rules(selector: str) -> str:
    """Return the style of pictures and charts within elements that a selector matches.

    >>> ".wallflower-card .picture .bar" in svg_rules(".wallflower-card")
    True
    """
    return _SVG_RULES.format(selector)


MATPLOTLIB_STYLE: Final[Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.edgecolor": QUIET,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": QUIET,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "svg.fonttype": "none",
    "svg.hashsalt": "wallflower",
}
