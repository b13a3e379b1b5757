"""Print docs/cli.md: every command and option, from the same words that `--help` shows."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from typer.main import get_command

from wallflower.cli import build
from wallflower.queries import QUERIES

MIN_COMMANDS: Final = 4  # an option that so many commands share is explained once, among the common options
OPENING: Final = """\
# The command line

Written by `make docs` from the help texts; do not edit it by hand.

Answers go to stdout, notices and errors to stderr. Exit codes: 0 ok, 1 declined at a prompt or an audit
that fails, 2 usage, 3 refused (budget, unit, mostly noise), 4 ledger or I/O, 5 not allowed, 6 check not passed,
130 interrupted.
`wallflower COMMAND --help` shows one command with all its options.
"""
COMMON: Final = "## Common options\n\nEvery command below lists those that it takes.\n"
HEAD: Final = ("| Takes | Means |", "|---|---|")


def page() -> str:
    """Return the whole page."""
    known = dict(commands("wallflower", get_command(build(QUERIES))))
    shared = common_rows(known)
    table = "\n".join([COMMON, *HEAD, *sorted(shared.values()), ""])
    return "\n".join([OPENING, table, *(section(name, known, shared) for name in known)])


def commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Yield the command and those below it, with their full names."""
    yield name, command
    for word, below in getattr(command, "commands", {}).items():
        yield from commands(f"{name} {word}", below)


def common_rows(known: Mapping[str, Any]) -> dict[str, str]:
    """Return the rows that many commands share, word for word, by the name of the option."""
    rows = Counter(row(item) for command in known.values() for item in options(command))
    shared = {}
    for command in known.values():
        for item in options(command):
            if rows[row(item)] >= MIN_COMMANDS:
                shared.setdefault(first_name(item), row(item))
    return shared


def section(name: str, known: Mapping[str, Any], shared: Mapping[str, str]) -> str:
    """Describe one command: what it does, what it alone takes, and which common options."""
    command = known[name]
    lines = [f"## {name}", "", *(command.help or "").strip().splitlines(), ""]
    if command.epilog:
        lines += [command.epilog.replace("Example: ", "Example: `", 1) + "`", ""]
    planned = known.get(name.replace("wallflower plan ", "wallflower ", 1)) if " plan " in name else None
    elsewhere = {row(item) for item in options(planned)} if planned else set()
    items = [item for item in options(command) if row(item) not in elsewhere]
    own = [row(item) for item in items if shared.get(first_name(item)) != row(item)]
    common = [f"`{first_name(item)}`" for item in items if shared.get(first_name(item)) == row(item)]
    if own:
        lines += [*HEAD, *own, ""]
    if planned:
        lines += [f"Also the parameters of `{name.replace('plan ', '', 1)}`.", ""]
    if common:
        lines += [f"Common options: {', '.join(common)}.", ""]
    return "\n".join(lines)


def options(command: Any) -> list[Any]:
    return [item for item in command.params if item.name != "help"]


def first_name(item: Any) -> str:
    """Return the name by which an option is listed; an argument has that of its place."""
    return str(item.metavar or item.name.upper()) if item.param_type_name == "argument" else str(item.opts[0])


def row(item: Any) -> str:
    """Describe one argument or option."""
    if item.param_type_name == "argument":
        return f"| `{first_name(item)}` | {escaped(item.help)} |"
    names = ", ".join(f"`{name}`" for name in (*item.opts, *item.secondary_opts))
    mode = str(item.rich_help_panel or "").partition(", ")[2]  # settings of one mode have a panel of their own
    words = f"*{mode}*: {item.help}" if mode else item.help
    return f"| {names} | {escaped(words)}{' (required)' if item.required else ''} |"


def escaped(words: str | None) -> str:
    return (words or "").replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(page())
