"""The help of a command in a narrow terminal: each option on a line, what it means below it over the whole width."""

from __future__ import annotations

import textwrap
from typing import Any, Final

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperCommand

WIDE: Final = 110  # columns from which a table of options has room for its words
_OPTIONS: Final = "Options"
_ARGUMENTS: Final = "Arguments"


class Command(TyperCommand):
    """A command whose help can be read in 80 columns."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        console = Console(highlight=False)
        if console.width >= WIDE:
            super().format_help(ctx, formatter)
            return
        for line in _lines(self, ctx, console.width):
            console.print(line, crop=False, soft_wrap=True)


def use_wide_help(app: typer.Typer) -> None:
    """Set `Command` as the class of every command that has no other."""
    for command in app.registered_commands:
        if command.cls is TyperCommand or command.cls is None:
            command.cls = Command
    for group in app.registered_groups:
        if group.typer_instance is not None:
            use_wide_help(group.typer_instance)


def _lines(command: TyperCommand, ctx: Any, width: int) -> list[Text]:
    lines = [Text(line) for line in _wrap(command.get_usage(ctx), width)]
    for paragraph in (command.help or "").split("\n\n"):
        lines += [Text(), *(Text(line) for line in _wrap(paragraph, width))]
    panels: dict[str, list[Any]] = {}
    for item in command.get_params(ctx):
        usual = _ARGUMENTS if item.param_type_name == "argument" else _OPTIONS
        panels.setdefault(str(getattr(item, "rich_help_panel", None) or usual), []).append(item)
    for title in sorted(panels, key=lambda title: title == _OPTIONS):
        lines += [Text(), Text(title, style="bold")]
        for item in panels[title]:
            kind = _kind(item, ctx)
            is_long = len(kind) > width // 2
            words = f"{item.help}; one of {kind.strip('<> ').replace('|', ', ')}" if is_long else item.help or ""
            lines.append(_name(item, ctx, " NAME" if is_long else kind))
            lines += [Text(line) for line in _wrap(words, width, indent=6)]
    lines += [Text(), *(Text(line) for line in _wrap(command.epilog or "", width, indent=2))]
    return lines


def _kind(item: Any, ctx: Any) -> str:
    is_word = item.param_type_name == "argument" or getattr(item, "is_flag", False)
    return "" if is_word else f" {item.display_type_rich(ctx)}"


def _name(item: Any, ctx: Any, kind: str) -> Text:
    is_argument = item.param_type_name == "argument"
    names = [item.metavar or item.name.upper()] if is_argument else [*item.opts, *item.secondary_opts]
    usual = item.get_default(ctx, call=False)
    is_told = kind and getattr(item, "show_default", False) and usual is not None and not callable(usual)
    more = "  [required]" if item.required else f"  [default: {usual}]" if is_told else ""
    return Text.assemble("  ", (", ".join(names), "bold cyan"), (kind, "yellow"), (more, "dim"))


def _wrap(words: str, width: int, *, indent: int = 0) -> list[str]:
    space = " " * indent
    return textwrap.wrap(
        " ".join(words.split()), width, initial_indent=space, subsequent_indent=space, break_on_hyphens=False
    )
