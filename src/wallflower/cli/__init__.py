"""The command line: verbs built from the list of questions.

Answers go to stdout, notices and errors to stderr. Exit codes: 0 ok, 1 declined at a prompt or an
audit that fails, 2 usage, 3 refused (budget, unit, mostly noise), 4 ledger or I/O, 5 not allowed, 130 interrupted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from wallflower.machine.garbage import load_for_good
from wallflower.machine.lazy import Lazy
from wallflower.queries import QUERIES
from wallflower.query.parameter import Question

if TYPE_CHECKING:
    from typer import Typer

    import wallflower.cli.program as _program
else:
    _program = Lazy("wallflower.cli.program")  # a worker of the service imports this with the script that started it


def build(questions: Iterable[Question]) -> Typer:
    """Build the command line for these queries."""
    return _program.build(questions)


def main(arguments: Sequence[str] | None = None, questions: Iterable[Question] = QUERIES) -> int:
    """Run the command line and return its exit code."""
    if arguments is not None:
        return _program.run(arguments, questions)
    with load_for_good():  # the process has been started for this
        run = _program.run
    return run(None, questions)
