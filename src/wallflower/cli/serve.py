"""The HTTP service: start it, and make, list and revoke its tokens."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer
from rich.table import Table as Grid

from wallflower.cli.options import DATA, JsonOption, LedgerOption
from wallflower.cli.show import notice, show, show_json
from wallflower.errors import NotAllowed, ParameterError
from wallflower.machine.garbage import load_for_good
from wallflower.machine.lazy import Lazy, load

if TYPE_CHECKING:
    import wallflower.release as _release
    import wallflower.service.core.access.acts as _acts
    import wallflower.service.core.access.factors as _factors
    import wallflower.service.core.access.tokens as _tokens
    import wallflower.service.core.records as _records
    import wallflower.service.demo as _demo
    import wallflower.service.server as _server
    import wallflower.service.settings as _settings
else:
    _demo = Lazy("wallflower.service.demo")
    _acts = Lazy("wallflower.service.core.access.acts")
    _factors = Lazy("wallflower.service.core.access.factors")
    _records = Lazy("wallflower.service.core.records")
    _tokens = Lazy("wallflower.service.core.access.tokens")
    _server = Lazy("wallflower.service.server")
    _settings = Lazy("wallflower.service.settings")
    _release = Lazy("wallflower.release")
_NEEDS: Final = ("fastapi", "httptools", "uvicorn")

NETWORK: Final = "Network"

serve = typer.Typer()
token = typer.Typer(help="Who may call the service: bearer tokens.", no_args_is_help=True)
serve.add_typer(token, name="token")

ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="settings and data sets: a .toml file", rich_help_panel=DATA),
]


@serve.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    config: ConfigOption = None,
    host: Annotated[str | None, typer.Option(metavar="NAME", help="where to listen", rich_help_panel=NETWORK)] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="where to listen; 0: any that is free", rich_help_panel=NETWORK),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, max=64, help="how many processes answer", rich_help_panel=NETWORK)
    ] = None,
    tls_cert: Annotated[
        str | None, typer.Option(metavar="FILE", help="certificate with its chain, as PEM", rich_help_panel=NETWORK)
    ] = None,
    tls_key: Annotated[
        str | None, typer.Option(metavar="FILE", help="its key, as PEM", rich_help_panel=NETWORK)
    ] = None,
    ledger: LedgerOption = None,
    demo: Annotated[bool, typer.Option("--demo", help="public data, a ledger for the moment, two tokens")] = False,
) -> None:
    """Run the HTTP service and dashboard until interrupted.

    Example: wallflower serve --demo
    """
    if context.invoked_subcommand is not None:
        return
    _require_packages()
    base = _settings.Settings() if config is None else _settings.Settings.read(config)
    base = base.override(host=host, port=port, workers=workers, tls_cert=tls_cert, tls_key=tls_key, ledger=ledger)
    with load_for_good():
        run_service = _server.serve
    if not demo:
        run_service(base, lambda url: notice(f"Serving on {url}; Ctrl-C ends it."))
        return
    with _demo.trial(base) as trial:
        run_service(trial.settings, lambda url: _tell(trial, url))


@token.command(epilog="Example: wallflower serve token create ana --scope analyst --days 30")
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="whose it is; the ledger knows an analyst by it")],
    scope: Annotated[
        Literal["analyst", "steward", "auditor", "monitor", "agent"], typer.Option(help="what it may do")
    ] = "analyst",
    days: Annotated[int, typer.Option(min=1, max=3650, help="how long it is valid")] = 90,
    forever: Annotated[bool, typer.Option("--forever", help="valid until it is revoked")] = False,
    group: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="group of the settings whose data sets it may see; may be repeated"),
    ] = None,
    second_factor: Annotated[
        bool, typer.Option("--second-factor", help="a token that is used with codes of an authenticator")
    ] = False,
    config: ConfigOption = None,
    ledger: LedgerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a token. Its text is shown once and never again."""
    if second_factor and scope in ("monitor", "agent"):
        raise ParameterError(f"second-factor: a token of scope {scope} has none. Choose another scope, or omit it.")
    groups = _known_groups(group or [], config)
    tokens = _open_tokens(config, ledger)
    issued, text = tokens.create(name, scope, days=None if forever else days, groups=groups)
    _note("token issued", config, ledger, f"{issued.id} for {issued.name}, {issued.scope}")
    beside = [other.id for other in tokens.others(issued)]
    address = _enrol(issued, text, config, ledger) if second_factor else None
    if as_json:
        show_json({**issued.to_json(), "text": text, "beside": beside, "authenticator": address})
        return
    show(text)
    if address is not None:
        _show_address(address)
    notice(f"A token for {name} ({scope}), valid until {issued.expires or 'it is revoked'}. It is not shown again.")
    if beside:
        notice(f"Valid under the same name: {', '.join(beside)}. Revoke what is not needed.")


def _known_groups(groups: list[str], config: Path | None) -> list[str]:
    """The groups, if the settings have each of them."""
    known = [] if config is None else [group.name for group in _settings.Settings.read(config).groups]
    for name in groups:
        if name not in known:
            listed = f"use {', '.join(known)}" if known else "the settings have none; name them with --config"
            raise ParameterError(f"group: {name!r} is not a group of the settings; {listed}. Correct it.")
    return groups


@token.command("list", epilog="Example: wallflower serve token list")
def list_(config: ConfigOption = None, ledger: LedgerOption = None, as_json: JsonOption = False) -> None:
    """Every token there ever was, without its secret."""
    tokens = _open_tokens(config, ledger).all()
    if as_json:
        show_json({"tokens": [entry.to_json() for entry in tokens]})
        return
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("id", "name", "scope", "created", "expires", "revoked", "valid"):
        grid.add_column(heading)
    for entry in tokens:
        ends = (entry.expires or "never", entry.revoked or "", "yes" if entry.is_valid else "no")
        grid.add_row(entry.id, entry.name, entry.scope, entry.created, *ends)
    show(grid)


@token.command(epilog="Example: wallflower serve token revoke 5f70bf18a086")
def revoke(
    key: Annotated[str, typer.Argument(metavar="ID", help="id of the token, as `list` shows it")],
    config: ConfigOption = None,
    ledger: LedgerOption = None,
) -> None:
    """End a token; a running service honours that within seconds."""
    ended = _open_tokens(config, ledger).revoke(key)
    _note("token revoked", config, ledger, f"{ended.id} of {ended.name}")
    notice(f"The token {ended.id} of {ended.name} is revoked.")


@token.command(epilog="Example: wallflower serve token enrol --config service.toml")
def enrol(config: ConfigOption = None, ledger: LedgerOption = None) -> None:
    """Give a token, from $WALLFLOWER_TOKEN or asked for, a second factor: codes of an authenticator."""
    tokens = _open_tokens(config, ledger)
    text = os.environ.get("WALLFLOWER_TOKEN") or typer.prompt("token", hide_input=True)
    caller = tokens.caller(text.strip())
    if caller is None:
        raise NotAllowed("token: it is unknown, expired or revoked. Give a token that is valid.")
    _show_address(_enrol(tokens.find(caller.token), text.strip(), config, ledger))


@token.command(epilog="Example: wallflower serve token unenrol 5f70bf18a086")
def unenrol(
    key: Annotated[str, typer.Argument(metavar="ID", help="id of the token, as `list` shows it")],
    config: ConfigOption = None,
    ledger: LedgerOption = None,
) -> None:
    """Take the second factor of a token away, for a steward who has lost it."""
    name = _open_tokens(config, ledger).find(key).name
    _factors.Factors(_open_records(config, ledger)).remove(key)
    _note("second factor removed", config, ledger, f"{key} of {name}")
    notice(f"The token {key} of {name} has no second factor any more.")


def _enrol(issued: Any, text: str, config: Path | None, ledger: str | None) -> str:
    address: str = _factors.Factors(_open_records(config, ledger)).enrol(issued, text)
    _note("second factor enrolled", config, ledger, f"{issued.id} of {issued.name}")
    return address


def _show_address(address: str) -> None:
    sys.stdout.write(f"{address}\n")
    notice("Put this address into an authenticator, as text or as a picture. It is not shown again.")


def _open_tokens(config: Path | None, ledger: str | None) -> Any:
    _require_packages()
    return _tokens.Tokens(_open_records(config, ledger))


def _open_records(config: Path | None, ledger: str | None) -> Any:
    location = ledger
    if location is None and config is not None:
        location = _settings.Settings.read(config).ledger
    return _records.Records(location)


def _note(act: str, config: Path | None, ledger: str | None, about: str) -> None:
    """Write down what was done at the command line, by whom this machine says it was."""
    caller = _tokens.Caller(name=f"{_release.default_analyst()} at the command line", scope="steward", token="")
    _acts.Acts(_open_records(config, ledger)).note(act, caller, about)


def _require_packages() -> None:
    try:
        for package in _NEEDS:
            load(package)
    except ModuleNotFoundError:
        raise ParameterError(
            "the service needs more packages than the rest: pip install 'wallflower[service]' brings them."
        ) from None


def _tell(trial: Any, url: str) -> None:
    first = f"wallflower count tumours --server {url} --neighbours 5 --radius 1.3 --epsilon 1"
    sys.stdout.write(
        f"Serving the public table of tumours on {url}; Ctrl-C ends it, and everything in it is gone.\n"
        f"  steward's token  {trial.steward}\n"
        f"  analyst's token  {trial.analyst}\n"
        f"Open {url} in a browser and sign in with the analyst's token. Or ask in another terminal:\n"
        f"  WALLFLOWER_TOKEN={trial.analyst} {first}\n"
    )
    sys.stdout.flush()
