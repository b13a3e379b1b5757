"""Build the command line, and run one command."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from types import TracebackType
from typing import Annotated, Any, Final

import typer
from rich.text import Text
from typer.main import get_command
from typer.models import CommandInfo, TyperInfo

from wallflower.cli import batches, checks, config, lab, questions, releases, start, steward
from wallflower.cli.agents import mcp
from wallflower.cli.help import use_wide_help
from wallflower.cli.sensors import sensors
from wallflower.cli.serve import serve
from wallflower.cli.show import failure, make_output_encodable, notice, show
from wallflower.cli.steward import Decline
from wallflower.config import ConfigNotice, find_config
from wallflower.errors import PrivacyError, error_place
from wallflower.machine.heavy import missing_package
from wallflower.machine.version import VERSION
from wallflower.queries import COMPANIONS
from wallflower.query.parameter import Question

COMPLETION: Final = "_WALLFLOWER_COMPLETE"  # how a shell asks what may come next
_DECLINED: Final = 1  # a confirmation was answered with no
_INTERRUPTED: Final = 130
_BROKEN_PIPE: Final = 141
_PLANS: Final = "What an answer would cost and how good it would be; spends nothing."
_OVERVIEW: Final = """\
[bold]wallflower[/] answers questions about outliers in private data, under differential privacy.

Try these two:
  [cyan]wallflower demo[/]                     a tour of two minutes on public data, with a report at the end
  [cyan]wallflower plan {kind} --help[/]         what an answer would cost and how good it would be; spends nothing

Then ask your own data: {kinds}. [dim]wallflower --help[/] lists everything."""


def build(available: Iterable[Question]) -> typer.Typer:
    """Build the command line for these queries."""
    known = tuple(available)
    app = typer.Typer(rich_markup_mode="rich", pretty_exceptions_enable=False)
    plans = typer.Typer(help=_PLANS, no_args_is_help=True)
    batches.add(plans, known)
    checks.add(app)
    app.callback(invoke_without_command=True)(_overview(known))
    kinds = {question.kind for question in known}
    questions.add(app, plans, (*known, *(question for question in COMPANIONS if question.companion_of in kinds)))
    app.add_typer(plans, name="plan", rich_help_panel="Questions")
    for name in ("data", "budget", "ledger"):
        app.add_typer(getattr(steward, name), name=name, rich_help_panel="Data owners")
    app.add_typer(serve, name="serve", rich_help_panel="Data owners")
    app.add_typer(mcp, name="mcp", rich_help_panel="Data owners")
    app.add_typer(sensors, name="sensors", rich_help_panel="Questions")
    releases.add(app)
    start.add(app, known)
    lab.add(app, known)
    config.add(app)
    use_wide_help(app)
    return app


def run(arguments: Sequence[str] | None, available: Iterable[Question]) -> int:
    """Run the command that the arguments name, or those of this process, and return its exit code."""
    sys.excepthook = _unforeseen
    make_output_encodable()
    try:
        words = sys.argv[1:] if arguments is None else arguments
        known = tuple(available)
        app = get_command(_prune_to_invoked(build(known), _words_to_complete() if COMPLETION in os.environ else words))
        with _announce_files_once():
            usual = _defaults(words, known)
            code = app(args=words, prog_name="wallflower", standalone_mode=False, default_map=usual)
        sys.stdout.flush()
    except PrivacyError as refusal:
        failure(str(refusal))
        return refusal.exit_code
    except ModuleNotFoundError as error:
        refused = missing_package(error)
        if refused is None:
            raise
        failure(str(refused))
        return refused.exit_code
    except typer.TyperException as misuse:
        _explain(misuse)
        return misuse.exit_code
    except Decline:
        notice("Nothing was changed.")
        return _DECLINED
    except typer.Abort:  # Ctrl-C or Ctrl-D at a prompt; prompts come before anything is charged or written
        sys.stderr.write("\n")
        notice("Interrupted. Nothing was changed.")
        return _INTERRUPTED
    except (BrokenPipeError, SystemExit) as end:  # Typer makes the second of the first, and ends so after completing
        if COMPLETION in os.environ and isinstance(end, SystemExit):
            return int(end.code or 0)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else the interpreter complains as it ends
        return _BROKEN_PIPE
    except OSError as error:
        failure(f"{error.filename or 'the file'}: {error.strerror or 'cannot be used'}. Check the path and try again.")
        return 4
    if code == _INTERRUPTED:
        failure("Interrupted; the ledger shows whatever was charged (wallflower ledger list).")
    return code if isinstance(code, int) else 0


def _defaults(words: Sequence[str], known: tuple[Question, ...]) -> dict[str, Any]:
    """Return the option defaults of the project file, with a notice if one is used."""
    asks = {*(question.kind for question in known), "plan", "rehearse"}
    if not words or words[0] not in asks or "--help" in words:
        return {}
    project = find_config()
    values = config.defaults(project, known)
    if project is not None and words[0] in values and not any(word.startswith("--neighbours") for word in words):
        project.tell("the number of neighbours")
    return values


def _words_to_complete() -> list[str]:
    """Return the words that a shell wants completed; bash passes them in its own variable."""
    return (os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")).split()[1:]


@contextmanager
def _announce_files_once() -> Iterator[None]:
    """Announce each project file once; show other warnings as usual."""
    announced: set[str] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("always", ConfigNotice)
        shown = warnings.showwarning

        def show_once(message: Warning | str, category: type[Warning], *location: Any, **more: Any) -> None:
            if not issubclass(category, ConfigNotice):
                shown(message, category, *location, **more)
            elif (path := str(message).rpartition(" from ")[2]) not in announced:
                announced.add(path)
                notice(f"Using {path}; `wallflower config` shows what it says.")

        warnings.showwarning = show_once
        yield


def _prune_to_invoked(app: typer.Typer, words: Iterable[str]) -> typer.Typer:
    """Build only the invoked command, or without one only names and summaries: building all takes longer than most
    answers."""
    left = (word for word in words if not word.startswith("-"))
    named = next(left, None)
    narrow = copy(app)
    commands = [command for command in app.registered_commands if _name(command) == named]
    groups = [group for group in app.registered_groups if group.name == named]
    if commands or groups:
        narrow.registered_commands = commands
        narrow.registered_groups = [_group(group, lambda inner: _prune_to_invoked(inner, left)) for group in groups]
    else:
        narrow.registered_commands = [_without_options(command) for command in app.registered_commands]
        narrow.registered_groups = [_group(group, _without_commands) for group in app.registered_groups]
    return narrow


def _group(group: TyperInfo, change: Callable[[typer.Typer], typer.Typer]) -> TyperInfo:
    changed = copy(group)
    changed.typer_instance = change(group.typer_instance) if group.typer_instance is not None else None
    return changed


def _without_commands(app: typer.Typer) -> typer.Typer:
    """Copy a group without its commands."""
    bare = copy(app)
    bare.registered_commands, bare.registered_groups = [], []
    return bare


def _without_options(command: CommandInfo) -> CommandInfo:
    """Copy a command without its options."""

    def nothing() -> None: ...

    nothing.__doc__ = command.callback.__doc__ if command.callback is not None else None
    title = copy(command)
    title.name, title.callback = _name(command), nothing
    return title


def _name(command: CommandInfo) -> str | None:
    return command.name or getattr(command.callback, "__name__", None)


def _overview(known: Sequence[Question]) -> Callable[..., None]:
    def overview(
        context: typer.Context,
        version: Annotated[bool, typer.Option("--version", help="show the version")] = False,
    ) -> None:
        """Questions about outliers in private data, answered under differential privacy."""
        if version:
            show(f"wallflower {VERSION}")
            raise typer.Exit
        if context.invoked_subcommand is None:
            kinds = ", ".join(f"wallflower {question.kind}" for question in known)
            show(Text.from_markup(_OVERVIEW.format(kind=known[0].kind, kinds=kinds)))

    return overview


def _explain(misuse: typer.TyperException) -> None:
    message = misuse.format_message()
    if message:  # without one, the help was shown already
        context = getattr(misuse, "ctx", None)
        stop = "" if message.endswith((".", "?")) else "."
        failure(f"{message}{stop} See {context.command_path if context else 'wallflower'} --help.")


def _unforeseen(kind: type[BaseException], _: BaseException, trace: TracebackType | None) -> None:
    """A bug. Its message and its variables may hold records, so only its place is shown."""
    failure(
        f"internal error ({kind.__name__}) at {error_place(trace)}. "
        "Please report this line; it holds none of your data."
    )
