"""Compare released counts: `wallflower compare`, which costs nothing and reads the ledger alone."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from wallflower.cli.options import JsonOption, LedgerOption
from wallflower.cli.show import show, show_json
from wallflower.errors import ParameterError
from wallflower.ledger import Ledger
from wallflower.release import Release
from wallflower.schema.columns import split_list


def compare(
    first: Annotated[int, typer.Argument(metavar="ENTRY", help="ledger entry of a released count")],
    second: Annotated[int | None, typer.Argument(metavar="[ENTRY]", help="ledger entry of another one")] = None,
    groups: Annotated[str | None, typer.Option(metavar="A,B", help="two groups of a release by group instead")] = None,
    ledger: LedgerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Test whether two released counts differ by more than noise explains, with a p-value; costs nothing."""
    names = split_list(groups) if groups else []
    if (second is None) == (not names) or len(names) not in (0, 2):
        raise ParameterError("compare: pass two ledger entries, or one entry and two groups (--groups A,B).")
    with Ledger.open(ledger) as book:
        found = _find_release(book, first)
        test = found.compare(*names) if second is None else found.compare(_find_release(book, second))
    if as_json:
        show_json(test.to_json())
    else:
        show(test.words)


def add(app: typer.Typer) -> None:
    """The command `compare`."""
    epilog = "Example: wallflower compare 12 --groups north,south"
    app.command("compare", epilog=epilog, rich_help_panel="Questions")(compare)


def _find_release(book: Ledger, entry: int) -> Release[Any]:
    stored = book.release(entry)
    if stored is None:
        raise ParameterError(f"compare: the ledger has no release for entry {entry}. See `wallflower ledger list`.")
    return Release.from_dict(stored)
