"""Earlier answers, printed again from the ledger."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from wallflower.cli.options import JsonOption, LedgerOption, option, place_of, with_signature
from wallflower.cli.questions import FILES, deliver, require_files
from wallflower.errors import ParameterError
from wallflower.ledger import Ledger
from wallflower.query.forms import REQUIRED
from wallflower.release import Release

release = typer.Typer(help="Print an earlier answer again; it costs nothing.", no_args_is_help=True)


def _show(**given: Any) -> None:
    """Print an answer that was paid for before, as it was; nothing is charged.

    N is the ledger entry that the answer names (`wallflower ledger list` shows all).
    """
    require_files(given)
    with Ledger.open(place_of(given["ledger"], None)) as ledger:
        deliver(_find(ledger, given["entry"]), given, ledger)


def _find(ledger: Ledger, entry: int) -> Release[Any]:
    """The release with this ledger entry: that of the charge, or that of the release itself."""
    found = ledger.release(entry)
    if found is None:
        entries = ledger.history(event="release", before=entry + 1, last=1)
        found = next((one.details for one in entries if one.id == entry), None)
    if found is None:
        raise ParameterError(
            f"entry: the ledger has no answer under {entry}. `wallflower ledger list` shows the entries; an answer is "
            "found by its charge."
        )
    return Release.from_dict(found)


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
