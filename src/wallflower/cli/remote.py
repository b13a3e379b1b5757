"""A question asked of a service: SOURCE is then the name of one of its data sets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from wallflower.cli.options import READING
from wallflower.cli.show import show, show_json
from wallflower.errors import ParameterError, SourceError
from wallflower.query import Query
from wallflower.remote import VARIABLE, Remote, RemoteQuote, connect
from wallflower.schema.columns import call_or_refuse

_PANEL: Final = "A service"
OPTIONS: Final[Mapping[str, Any]] = {
    "server": Annotated[
        str | None,
        typer.Option(metavar="URL", help="ask a service; SOURCE is the name of its data set", rich_help_panel=_PANEL),
    ],
    "token_file": Annotated[
        Path | None,
        typer.Option(metavar="FILE", help=f"where your token is; default: ${VARIABLE}", rich_help_panel=_PANEL),
    ],
}
_OWN: Final = (
    *READING,
    "schema",
    "dataset",
    "ledger",
    "analyst",
    "report",
    "json_lines",
    "state",
    "records",
    "dimension",
)


def open_remote(arguments: Mapping[str, Any]) -> Remote:
    """The data set of the service; options that only make sense with data at hand are refused."""
    unfit = [f"--{name.replace('_', '-')}" for name in _OWN if arguments.get(name)]
    if unfit:
        raise ParameterError(
            f"--server: the service has data and ledger of its own, so {', '.join(unfit)} does not go with it. Leave "
            "that out, or --server."
        )
    if arguments["source"] is None:
        raise ParameterError("--server: no data set is named. Give the name of one that the service has as SOURCE.")
    path = arguments["token_file"]
    refusal = SourceError(f"{path}: the token cannot be read. Check the file.")
    token = (
        None if path is None else call_or_refuse(lambda: path.read_text(encoding="utf-8").strip(), lambda _: refusal)
    )
    return connect(arguments["server"], token).open(arguments["source"])


def rehearse(query: Query[Any, Any], data: Remote, *, as_json: bool) -> None:
    """Say what it would cost and what to expect; spend nothing."""
    plan, price = data.plan.of(query), data.quote(query)
    values = {"left": price.left, "stated": price.stated, "booked": price.booked, "factor": price.factor}
    if as_json:
        texts = {name: None if value is None else str(value) for name, value in values.items()}
        show_json({"dry_run": True, "dataset": data.name, **texts, "affords": price.affords, "plan": plan.to_json()})
    else:
        show(plan)
        show(_price_words(data.name, price))
    if price.refusal is not None:
        raise price.refusal


def _price_words(name: str, price: RemoteQuote) -> str:
    if price.booked is None:
        return f"Nothing was spent. On {name} {price.left} is left."
    stated = "" if price.factor == 1 else f" ({price.text}; {name} counts the loss of {price.protects})"
    more = f"; {price.affords:,} such questions fit" if price.affords else ""
    return f"Nothing was spent. On {name} this would cost {price.booked} of {price.left}{more}{stated}."
