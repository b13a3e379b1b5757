"""The style sheet of pages about releases and plans: light and dark, no other file."""

from __future__ import annotations

from typing import Final

PAGE_STYLE: Final = """
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
section > .wallflower-card.wallflower-card.wallflower-card { border:none; padding:0; margin:0; max-width:none;
  font-size:15px; }
code { font-size: .85rem; overflow-wrap: anywhere; }
"""
