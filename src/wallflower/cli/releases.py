"""Released answers: print one again from the ledger, or compare two. Both are free."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from wallflower.cli.options import JsonOption, LedgerOption, option, place_of, with_signature
from wallflower.cli.questions import FILES, deliver, require_files
from wallflower.cli.show import show, show_json
from wallflower.errors import ParameterError
from wallflower.ledger import Ledger
from wallflower.query.parameter import REQUIRED
from wallflower.release import Release
from wallflower.schema.columns import split_list

release = typer.Typer(help="Print an earlier answer again; it costs nothing.", no_args_is_help=True)


def _show(**arguments: Any) -> None:
    """Print an answer that was paid for before, as it was; nothing is charged.

    N is the ledger entry that the answer names (`wallflower ledger list` shows all).
    """
    require_files(arguments)
    with Ledger.open(place_of(arguments["ledger"], None)) as ledger:
        deliver(_find_release(ledger, arguments["entry"]), arguments, ledger)


def _find_release(ledger: Ledger, entry: int) -> Release[Any]:
    """Return the release with this ledger entry: that of the charge, or of the release itself."""
    stored = ledger.release(entry)
    if stored is None:
        entries = ledger.history(event="release", before=entry + 1, last=1)
        stored = next((row.details for row in entries if row.id == entry), None)
    if stored is None:
        raise ParameterError(
            f"entry: the ledger has no answer under {entry}. `wallflower ledger list` shows the entries; an answer is "
            "found by its charge."
        )
    return Release.from_dict(stored)


release.command("show", epilog="Example: wallflower release show 7 --report answer.html")(
    with_signature(
        _show,
        option(
            "entry", Annotated[int, typer.Argument(metavar="N", min=1, help="ledger entry of the answer")], REQUIRED
        ),
        option("ledger", LedgerOption),
        option("as_json", JsonOption, False),
        *(option(name, kind) for name, kind in FILES.items()),
    )
)


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
        answer = _find_release(book, first)
        test = answer.compare(*names) if second is None else answer.compare(_find_release(book, second))
    if as_json:
        show_json(test.to_json())
    else:
        show(test.text)


def add(app: typer.Typer) -> None:
    """Add `release` and `compare`."""
    app.add_typer(release, name="release", rich_help_panel="Questions")
    epilog = "Example: wallflower compare 12 --groups north,south"
    app.command("compare", epilog=epilog, rich_help_panel="Questions")(compare)
