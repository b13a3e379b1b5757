"""Print docs/cli.md: every command and option, from the same words that `--help` shows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from wallflower.cli import build
from wallflower.queries import QUERIES

OPENING = """\
# The command line

Written by `make docs` from the help texts; do not edit it by hand.

Answers go to stdout, notices and errors to stderr. Exit codes: 0 ok, 1 declined at a prompt or an audit
that fails, 2 usage, 3 refused (budget, unit, mostly noise), 4 ledger or I/O, 5 not allowed, 130 interrupted.
"""


def page() -> str:
    """The whole page."""
    sections = (section(name, command) for name, command in commands("wallflower", get_command(build(QUERIES))))
    return "\n".join([OPENING, *sections])


def commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """The command and those below it, with their full names."""
    yield name, command
    for word, below in getattr(command, "commands", {}).items():
        yield from commands(f"{name} {word}", below)


def section(name: str, command: Any) -> str:
    """What one command does and takes."""
    lines = [f"## {name}", "", *(command.help or "").strip().splitlines(), ""]
    if command.epilog:
        lines += [command.epilog.replace("Example: ", "Example: `", 1) + "`", ""]
    rows = [row(item) for item in command.params if item.name != "help"]
    if rows:
        lines += ["| Takes | Means |", "|---|---|", *rows, ""]
    return "\n".join(lines)


def row(item: Any) -> str:
    """One argument or option."""
    if item.param_type_name == "argument":
        return f"| `{item.metavar or item.name.upper()}` | {escaped(item.help)} |"
    names = ", ".join(f"`{name}`" for name in (*item.opts, *item.secondary_opts))
    mode = str(item.rich_help_panel or "").partition(", ")[2]  # settings of one mode have a panel of their own
    words = f"*{mode}*: {item.help}" if mode else item.help
    return f"| {names} | {escaped(words)}{' (required)' if item.required else ''} |"


def escaped(words: str | None) -> str:
    return (words or "").replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(page())
