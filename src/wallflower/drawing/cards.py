"""Cards: answers and plans in a notebook, light and dark, without a script or another file.

The colours follow the reader's system, and the theme of JupyterLab, VS Code or a page with `data-theme` where one is
set. A viewer that strips styles shows plain tables and texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from wallflower.drawing.palette import DARK, LIGHT, svg_rules

_LIGHT_THEMES: Final = ('[data-jp-theme-light="true"]', ".vscode-light", '[data-theme="light"]')
_DARK_THEMES: Final = ('[data-jp-theme-light="false"]', ".vscode-dark", '[data-theme="dark"]')

# Three times the class: notebooks style every table, and this must weigh more.
_C: Final = ".wallflower-card.wallflower-card.wallflower-card"
_RULES: Final = f"""
{_C} {{ color:var(--ink); background:var(--card); border:1px solid var(--line); border-radius:10px;
  padding:16px 20px; margin:4px 0; max-width:54rem; font:14px/1.5 system-ui,"DejaVu Sans",sans-serif;
  overflow-wrap:break-word; }}
{_C} p {{ margin:0 0 10px; color:inherit; }}
{_C} .question {{ color:var(--quiet); margin:0; }}
{_C} .answer {{ margin:0 0 8px; }} {_C} .answer strong {{ font-size:32px; line-height:1.25; color:var(--accent);
  margin-right:8px; }}
{_C} .answer.in-words strong {{ font-size:18px; overflow-wrap:anywhere; }}
{_C} .answer span {{ color:var(--quiet); }}
{_C} .mark {{ float:right; margin-left:12px; padding:1px 10px; border:1px solid currentColor; border-radius:99px;
  font-size:12px; font-weight:600; }}
{_C} .good {{ color:var(--good); }} {_C} .care {{ color:var(--care); }} {_C} .bad {{ color:var(--bad); }}
{_C} .notes {{ margin:0 0 10px; padding:6px 12px; background:var(--code); border-left:3px solid var(--care); }}
{_C} .notes p {{ margin:2px 0; font-size:13px; }}
{_C} .scroll {{ overflow-x:auto; }}
{_C} table {{ border-collapse:collapse; border:none; margin:0 0 10px; width:100%; table-layout:auto; font-size:13px;
  color:inherit; }}
{_C} table tr {{ background:none; border:none; }}
{_C} table th, {_C} table td {{ text-align:left; vertical-align:top; padding:5px 14px 5px 0; border:none;
  border-top:1px solid var(--line); white-space:normal; max-width:none; background:none; color:inherit; }}
{_C} table th {{ font-weight:600; color:var(--quiet); white-space:nowrap; width:1%; }}
{_C} table.grid {{ font-variant-numeric:tabular-nums; }} {_C} table.grid th {{ width:auto; white-space:normal; }}
{_C} table.grid thead th {{ border-top:none; }} {_C} table.grid td.number {{ text-align:right; white-space:nowrap; }}
{_C} table.grid th.number {{ text-align:right; }} {_C} table.grid tr.chosen td:not(.rest) {{ font-weight:600; }}
{_C} table.grid td.rest {{ color:var(--quiet); }}
{_C} table.narrow {{ width:auto; }} {_C} table.narrow th {{ white-space:nowrap; }}
{_C} .scroll > svg {{ max-width:46rem; }}
{_C} details {{ margin:0; }} {_C} summary {{ cursor:pointer; color:var(--quiet); font-size:13px; }}
{_C} summary:focus-visible {{ outline:2px solid var(--accent); }}
{_C} details table {{ margin:8px 0 0; }}
"""


def _themes(themes: Iterable[str], colours: str) -> str:
    return ",".join(f"{theme} .wallflower-card" for theme in themes) + f"{{{colours}}}"


STYLE: Final = (
    f".wallflower-card{{{LIGHT}}}@media (prefers-color-scheme:dark){{.wallflower-card{{{DARK}}}}}"
    f"{_themes(_LIGHT_THEMES, LIGHT)}{_themes(_DARK_THEMES, DARK)}{_RULES}{svg_rules(_C)}"
)


def frame(kind: str, inside: str) -> str:
    """A card by itself, with its style: what a notebook shows.

    >>> frame("plan", "<p>…</p>").endswith("</p></div>")
    True
    """
    return f"<style>{STYLE}</style>{bare(kind, inside)}"


def bare(kind: str, inside: str) -> str:
    """A card for a page that has the style once."""
    return f'<div class="wallflower-card {kind}">{inside}</div>'


def tell(rows: Iterable[tuple[str, str]]) -> str:
    """Names and what is said of each, as a table.

    >>> tell([("Ledger", "entry 3")])
    '<table><tr><th>Ledger</th><td>entry 3</td></tr></table>'
    """
    body = "".join(f"<tr><th>{escape(name)}</th><td>{escape(words)}</td></tr>" for name, words in rows)
    return f"<table>{body}</table>"


def warn(notes: Sequence[str]) -> str:
    """Notes that must not be overlooked."""
    return f'<div class="notes">{"".join(f"<p>{escape(note)}</p>" for note in notes)}</div>' if notes else ""


def fold(words: str, inside: str) -> str:
    """What can be looked up, behind a line to click."""
    return f"<details><summary>{escape(words)}</summary>{inside}</details>"


def mark(words: str, shade: str) -> str:
    """A word in a corner: `shade` is good, care or bad."""
    return f'<span class="mark {shade}">{escape(words)}</span>'


# The colours of a whole page, by the reader's system.
THEME: Final = f":root{{{LIGHT}color-scheme:light dark;}}@media (prefers-color-scheme:dark){{:root{{{DARK}}}}}"
PAGE_STYLE: Final = f"""
{THEME}
* {{ box-sizing:border-box; }}
body {{ margin:0; background:var(--page); color:var(--ink); font:16px/1.55 system-ui,"DejaVu Sans",sans-serif; }}
main {{ max-width:60rem; margin:0 auto; padding:2.5rem 1.25rem 4rem; }}
h1 {{ font-size:1.7rem; margin:0 0 .25rem; }} h2 {{ font-size:1.05rem; margin:1.75rem 0 .5rem; }}
.lead, footer {{ color:var(--quiet); }} footer {{ font-size:.85rem; margin-top:2rem; }}
section {{ background:var(--card); border:1px solid var(--line); border-radius:10px; padding:1.5rem; margin:1.5rem 0; }}
table {{ border-collapse:collapse; width:100%; font-size:.92rem; }}
th, td {{ text-align:left; vertical-align:top; padding:.38rem .9rem .38rem 0; border-top:1px solid var(--line); }}
th {{ font-weight:600; color:var(--quiet); white-space:nowrap; }}
.grid {{ font-variant-numeric:tabular-nums; }} .grid td:last-child {{ color:var(--quiet); }}
.wide {{ overflow-x:auto; }} figure {{ margin:1.5rem 0 0; }}
section > .wallflower-card.wallflower-card.wallflower-card {{ border:none; padding:0; margin:0; max-width:none;
  font-size:15px; }}
code {{ font-size:.85rem; overflow-wrap:anywhere; }}
{svg_rules("figure")}
{STYLE}
"""
