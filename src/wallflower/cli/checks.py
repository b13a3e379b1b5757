"""`wallflower check`: an exit code for pipelines, from a released detector or count."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wallflower.cli.options import JsonOption
from wallflower.cli.show import show, show_json
from wallflower.data_checks import check_records, check_release
from wallflower.errors import ParameterError


def add(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "check", epilog="Example: wallflower check people.json new.csv --max-share 0.05", rich_help_panel="Questions"
    )(check)


def check(
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="a released detector, or a count, as JSON")],
    source: Annotated[
        str | None, typer.Argument(metavar="[SOURCE]", help="records to check with the detector: a file or a URL")
    ] = None,
    max_share: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="with a source: the largest share of flagged records that passes"),
    ] = None,
    at_most: Annotated[
        float | None, typer.Option(help="without a source: the largest upper end of the count that passes")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check new records or a released count against a limit. Exit code 0: passed; 6: not passed. Spends nothing."""
    if source is not None and max_share is not None and at_most is None:
        result = check_records(release, source, max_share=max_share)
    elif source is None and at_most is not None and max_share is None:
        result = check_release(release, at_most=at_most)
    else:
        raise ParameterError("A check is of a SOURCE with --max-share, or of a release with --at-most. Pass one pair.")
    if as_json:
        show_json(result.to_json())
    else:
        show(result.text)
    result.require()
