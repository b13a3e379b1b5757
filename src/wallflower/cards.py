"""Cards: how answers and plans look in a notebook, light and dark, without a script or another file.

The colours follow the reader's system, and the theme of JupyterLab, VS Code or a page with `data-theme` where one is
set. Where a viewer strips styles, what is left is plain tables and words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

_LIGHT: Final = (
    "--ink:#22303c;--quiet:#5d6b77;--accent:#0b7285;--card:#ffffff;--line:#dde3e8;--soft:#f1f5f7;"
    "--good:#1b6e3c;--care:#8a5300;--bad:#a3262a;"
)
_DARK: Final = (
    "--ink:#dfe7ec;--quiet:#9fb0bc;--accent:#4cc3d6;--card:#1a2229;--line:#33414c;--soft:#222c34;"
    "--good:#6fcf97;--care:#f2b84b;--bad:#ff8a80;"
)
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
{_C} .notes {{ margin:0 0 10px; padding:6px 12px; background:var(--soft); border-left:3px solid var(--care); }}
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
{_C} table.bars td.bar {{ width:45%; min-width:9rem; vertical-align:middle; }}
{_C} table.bars th {{ color:inherit; font-weight:400; white-space:normal; width:auto; }}
{_C} table.heat td.cell {{ text-align:center; border:2px solid var(--card); }}
{_C} svg {{ display:block; max-width:100%; height:auto; }} {_C} svg.wide {{ width:100%; height:12px; }}
{_C} svg text {{ fill:var(--quiet); font:11px system-ui,"DejaVu Sans",sans-serif; }}
{_C} svg .value {{ fill:var(--accent); }} {_C} svg .fill {{ fill:var(--accent); opacity:.28; }}
{_C} svg .line {{ stroke:var(--accent); fill:none; stroke-width:2; vector-effect:non-scaling-stroke; }}
{_C} svg .axis {{ stroke:var(--quiet); opacity:.5; stroke-width:1; vector-effect:non-scaling-stroke; }}
{_C} svg .here {{ stroke:var(--accent); stroke-dasharray:4 3; }}
{_C} .chip {{ display:inline-block; margin:1px 4px 1px 0; padding:0 8px; border:1px solid var(--line);
  border-radius:99px; color:var(--quiet); }}
{_C} .chip.on {{ color:var(--accent); border-color:currentColor; font-weight:600; }}
{_C} details {{ margin:0; }} {_C} summary {{ cursor:pointer; color:var(--quiet); font-size:13px; }}
{_C} summary:focus-visible {{ outline:2px solid var(--accent); }}
{_C} details table {{ margin:8px 0 0; }}
"""


def _themes(themes: Iterable[str], colours: str) -> str:
    return ",".join(f"{theme} .wallflower-card" for theme in themes) + f"{{{colours}}}"


STYLE: Final = (
    f".wallflower-card{{{_LIGHT}}}@media (prefers-color-scheme:dark){{.wallflower-card{{{_DARK}}}}}"
    f"{_themes(_LIGHT_THEMES, _LIGHT)}{_themes(_DARK_THEMES, _DARK)}{_RULES}"
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
