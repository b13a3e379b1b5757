"""Commands of sensor streams: keys, the signed parameter set, each party as a process, a demo and an export."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Final, Literal

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from wallflower.cli.options import DATA, OUTPUT, PRIVACY, JsonOption, names
from wallflower.cli.show import notice, show, show_json
from wallflower.data.lines import stream
from wallflower.errors import ParameterError, PrivacyError, SourceError
from wallflower.machine.files import replacement
from wallflower.machine.heavy import pyarrow as _pa
from wallflower.machine.heavy import pyarrow_csv as _pa_csv
from wallflower.machine.heavy import pyarrow_parquet as _parquet
from wallflower.machine.lazy import Lazy, load
from wallflower.machine.strict_reader import load_table
from wallflower.machine.vault import make_key, read_vault
from wallflower.schema.columns import Selection

if TYPE_CHECKING:
    import wallflower.sensors.parties as _parties
else:
    _parties = Lazy("wallflower.sensors.parties")  # cryptography and the web server: no other command waits for them

sensors = typer.Typer(no_args_is_help=True)

_REQUIRED_PACKAGES: Final = ("cryptography", "httptools", "starlette", "uvicorn")

EXPORT_FORMATS: Final = (".csv", ".parquet")
NETWORK: Final = "Network"
_MISSING_PACKAGE: Final = "sensors need more packages. Install them: pip install 'wallflower[sensors]'."

KeysOption = Annotated[
    Path, typer.Option("--keys", metavar="DIR", help="folder with the keys of this party", rich_help_panel=DATA)
]
ParametersOption = Annotated[
    Path, typer.Option("--parameters", metavar="FILE", help="signed parameter set", rich_help_panel=DATA)
]
StoreOption = Annotated[
    Path,
    typer.Option(
        "--store", metavar="FILE", help="SQLite file in which this party stores its state", rich_help_panel=DATA
    ),
]
StoreKeyOption = Annotated[
    Path | None,
    typer.Option(
        "--store-key",
        metavar="FILE",
        help="key that seals the store, made by `sensors store-key`",
        rich_help_panel=DATA,
    ),
]
SetOption = Annotated[
    Path | None,
    typer.Option(
        "--parameters",
        metavar="FILE",
        help="signed parameter set [default: fetched from the analyst]",
        rich_help_panel=DATA,
    ),
]
StreamOption = Annotated[
    str | None,
    typer.Option("--stream", metavar="NAME", help="stream to join, if no parameter set is named", rich_help_panel=DATA),
]
WindowOption = Annotated[
    int | None,
    typer.Option(min=0, help="window of all readings [default: their column `window`]", rich_help_panel=DATA),
]
BatchOption = Annotated[int, typer.Option(min=1, max=100_000, help="readings in a frame", rich_help_panel=DATA)]
BudgetOption = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER", help="total ε of all readings that this sensor may ever send", rich_help_panel=PRIVACY
    ),
]
HostOption = Annotated[str, typer.Option(metavar="NAME", help="address to listen at", rich_help_panel=NETWORK)]
PortOption = Annotated[
    int, typer.Option(min=0, max=65535, help="port to listen at; 0: any free port", rich_help_panel=NETWORK)
]
TlsOption = Annotated[
    bool,
    typer.Option(
        "--tls/--no-tls",
        help="use TLS with client certificates; without it, only loopback is allowed",
        rich_help_panel=NETWORK,
    ),
]


@sensors.callback()
def require_packages() -> None:
    """Outliers among readings that are perturbed at the source, judged by two servers together."""
    try:
        for package in _REQUIRED_PACKAGES:
            load(package)
    except ModuleNotFoundError:
        raise ParameterError(_MISSING_PACKAGE) from None


def _url(party: str, condition: str = "") -> Any:
    return typer.Option(metavar="URL", help=f"URL of the {party}{condition}", rich_help_panel=NETWORK)


@sensors.command(epilog="Example: wallflower sensors keys keys --sensors 2")
def keys(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="folder to write to; each party gets a folder in it")],
    count: Annotated[int, typer.Option("--sensors", min=0, max=100_000, help="number of sensors")] = 1,
    host: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="host names of the parties, besides localhost")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a certificate authority and keys for every party. Existing keys stay, so sensors can be added later."""
    hosts = (*_parties.DEFAULT_HOSTS, *(names(host) if host else ()))
    folders = _parties.make_keys(folder, sensors=count, hosts=hosts)
    if as_json:
        show_json({"made": [str(path) for path in folders]})
        return
    notice(f"Give each party its own folder; keep {folder / 'authority'} apart: it admits sensors.")
    show(folders)


@sensors.command(epilog="Example: wallflower sensors revoke keys sensor-2")
def revoke(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="folder that `sensors keys` made, with the authority")],
    sensor: Annotated[
        list[str], typer.Argument(metavar="SENSOR...", help="sensors whose certificates are revoked, such as sensor-2")
    ],
    as_json: JsonOption = False,
) -> None:
    """Revoke the certificates of sensors that are lost, stolen or retired. Running parties read the new list."""
    written = _parties.revoke(folder, sensor)
    if as_json:
        show_json({"revoked": sensor, "written": [str(path) for path in written]})
        return
    notice("Copy the list into the folders of parties on other machines; it takes effect within a second.")
    show(written)


@sensors.command("store-key", epilog="Example: wallflower sensors store-key sensor-1.key")
def store_key(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="file to write; keep it apart from the store")],
) -> None:
    """Make a key that seals the store of a party from its start. Without the key the store is lost."""
    make_key(path)
    show(path)


@sensors.command(epilog="Example: wallflower sensors sign stream.toml --keys keys -o stream.json")
def sign(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="parameter set: a .toml or .json file")],
    keys: Annotated[Path, typer.Option("--keys", metavar="DIR", help="folder that `sensors keys` made")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="file to write the signed set to")],
) -> None:
    """Check a parameter set, fill in the parties' public keys, and sign it with the stream owner's key."""
    stated = load_table(source)
    owner = _parties.Identity.read(keys / "owner")
    for name in _parties.ROLES:
        stated.setdefault(name, _parties.Identity.read(keys / name).public)
    stated.setdefault("seal", owner.seal_public)
    signed = _parties.sign_parameters(_parties.Parameters.from_json(stated), owner)
    output.write_bytes(signed.body)
    parameters = signed.parameters
    notice(f"Signed version {parameters.version} of {parameters.stream}: {parameters.hash.hex()}")
    show(output)


@sensors.command(
    epilog="Example: wallflower sensors device readings.csv --keys keys/sensor-1 --parameters stream.json "
    "--store sensor-1.db --budget 500 --window 0 --analyst https://localhost:8401 --correction https://localhost:8402"
)
def device(
    source: Annotated[
        str,
        typer.Argument(metavar="SOURCE", help="readings: a CSV, JSON lines or Parquet file, or - for standard input"),
    ],
    keys: KeysOption,
    store: StoreOption,
    parameters: SetOption = None,
    stream_name: StreamOption = None,
    window: WindowOption = None,
    batch: BatchOption = 10_000,
    budget: BudgetOption = None,
    analyst: Annotated[str | None, _url("analyst")] = None,
    correction: Annotated[str | None, _url("correction server")] = None,
    owner: Annotated[str | None, _url("stream owner", ", in mode direct only")] = None,
    store_key: StoreKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Perturb readings and send them. Run it again with the same source to resume: no noise is drawn twice."""
    identity = _parties.Identity.read(keys)
    signed = _load_parameters(parameters, stream_name, analyst, identity)
    columns = (() if window is not None else (_parties.WINDOW_COLUMN,)) + signed.parameters.names
    addresses = {"analyst": analyst, "correction": correction, "owner": owner}
    urls = _check_urls({name: addresses[name] for name in _parties.recipients(signed.parameters)})
    with _parties.Device(identity, signed, store, urls, budget=budget, vault=read_vault(store_key)) as sensor:
        sensor.check()
        rows = (piece.rows for piece in stream(source, Selection(names=columns)).batches)
        counts = _parties.send_stream(sensor, _parties.cut_batches(rows, batch, window))
        spent, left = sensor.outbox.spent, sensor.outbox.left
    if as_json:
        show_json({"sensor": identity.name, "frames": counts, "spent": str(spent), "left": str(left)})
    else:
        show("\n".join(_describe_frames(identity.name, target, states) for target, states in sorted(counts.items())))
        show(f"{identity.name}: ε = {_decimal(spent)} spent, ε = {_decimal(left)} left")
    if any("late" in states for states in counts.values()):
        notice("Late readings stay unjudged. Frames without a response are kept, in case a clock was wrong.")
    if any("refused" in states for states in counts.values()):
        raise Rejection(
            f"{identity.name}: frames were refused; their readings stay unjudged. See the logs of the servers."
        )


@sensors.command(
    epilog="Example: wallflower sensors analyst --keys keys/analyst --parameters stream.json --store analyst.db "
    "--port 8401 --correction https://localhost:8402 --owner https://localhost:8403"
)
def analyst(
    keys: KeysOption,
    parameters: ParametersOption,
    store: StoreOption,
    correction: Annotated[str, _url("correction server")],
    owner: Annotated[str, _url("stream owner")],
    host: HostOption = "127.0.0.1",
    port: PortOption = 8401,
    tls: TlsOption = True,
    store_key: StoreKeyOption = None,
) -> None:
    """Run the analyst: keep perturbed readings, and lead the servers through every window."""
    _run(
        "analyst",
        keys,
        parameters,
        store,
        (host, port, tls),
        {"correction": correction, "owner": owner, "vault": read_vault(store_key)},
    )


@sensors.command(
    epilog="Example: wallflower sensors correction --keys keys/correction --parameters stream.json "
    "--store correction.db --port 8402 --owner https://localhost:8403"
)
def correction(
    keys: KeysOption,
    parameters: ParametersOption,
    store: StoreOption,
    owner: Annotated[str, _url("stream owner")],
    host: HostOption = "127.0.0.1",
    port: PortOption = 8402,
    tls: TlsOption = True,
    store_key: StoreKeyOption = None,
) -> None:
    """Run the correction server: hold what corrects the readings, and erase it after delivery."""
    _run("correction", keys, parameters, store, (host, port, tls), {"owner": owner, "vault": read_vault(store_key)})


@sensors.command(
    epilog="Example: wallflower sensors owner --keys keys/owner --parameters stream.json --store owner.db "
    "--port 8403 --out results"
)
def owner(
    keys: KeysOption,
    parameters: ParametersOption,
    store: StoreOption,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="folder for a page and JSON files", rich_help_panel=OUTPUT),
    ] = None,
    host: HostOption = "127.0.0.1",
    port: PortOption = 8403,
    tls: TlsOption = True,
    store_key: StoreKeyOption = None,
) -> None:
    """Run the stream owner's process: unseal the reports, and publish which readings are outliers."""
    _run("owner", keys, parameters, store, (host, port, tls), {"out": out, "vault": read_vault(store_key)})


@sensors.command(
    epilog="Example: wallflower sensors export --keys keys/analyst --parameters stream.json --store analyst.db "
    "-o perturbed.csv"
)
def export(
    keys: KeysOption,
    parameters: ParametersOption,
    store: StoreOption,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help=".csv or .parquet file to write", rich_help_panel=OUTPUT),
    ],
    window: Annotated[
        int | None, typer.Option(min=0, help="export this window only [default: all]", rich_help_panel=DATA)
    ] = None,
    store_key: StoreKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Export the perturbed readings that the analyst keeps, for other analyses. Costs no further ε.

    The analyst may be running. In modes grid and paper the file must not reach the operator of the correction server.
    """
    if output.suffix not in EXPORT_FORMATS:
        raise ParameterError(f"--output: {output.name} must end in {' or '.join(EXPORT_FORMATS)}. Rename it.")
    signed = _parties.verify_parameters(_read_bytes(parameters), _parties.Identity.read(keys).authority)
    names = signed.parameters.names
    windows = _parties.read_perturbed_windows(store, signed.parameters, window=window, vault=read_vault(store_key))
    tables = (part.to_arrow(names) for part in windows)
    with replacement(output) as file:
        count = _write_tables(file, output.suffix, _parties.export_schema(names), tables)
    if as_json:
        show_json({"readings": count, "file": str(output)})
        return
    notice(
        f"{count:,} perturbed readings, which may be analysed at no further cost. Keep them from the operator of the "
        "correction server: in modes grid and paper both together reveal distances."
    )
    show(output)


def _write_tables(file: IO[bytes], suffix: str, schema: _pa.Schema, tables: Iterator[_pa.Table]) -> int:
    """Write tables of one schema to a file, one after the other; return the number of rows."""
    writer_class = _pa_csv.CSVWriter if suffix == ".csv" else _parquet.ParquetWriter
    count = 0
    with writer_class(file, schema) as writer:
        for table in tables:
            writer.write_table(table)
            count += table.num_rows
    return count


@sensors.command(epilog="Example: wallflower sensors demo --out sensors-demo")
def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="folder for the files")] = Path("wallflower-sensors"),
    mode: Annotated[Literal["exact", "grid", "paper", "direct"], typer.Option(help="how the servers judge")] = "exact",
    readings: Annotated[int, typer.Option(min=20, max=200_000, help="readings of each sensor and window")] = 1_000,
    count: Annotated[int, typer.Option("--sensors", min=1, max=20, help="number of sensors")] = 2,
    windows: Annotated[int, typer.Option(min=1, max=20, help="number of windows")] = 2,
    tls: TlsOption = True,
    as_json: JsonOption = False,
) -> None:
    """Run all parties on this machine, with synthetic readings, and show the stream owner's result."""
    plan = _parties.Plan(mode=mode, readings=readings, sensors=count, windows=windows, tls=tls)
    try:
        with _show_progress() as report:
            outcome = _parties.run_demo(out, plan, report)
    except KeyboardInterrupt:
        raise StreamInterruption(
            "Interrupted; every party was stopped. Their stores are in the folder of the demo."
        ) from None
    if as_json:
        show_json(outcome.to_json())
    else:
        show(outcome.summary)
        show(outcome.files)


class StreamInterruption(PrivacyError):
    """The demo was interrupted (Ctrl-C)."""

    exit_code = 130


class Rejection(PrivacyError):
    """A server refused frames of a sensor."""

    exit_code = 4


def _run(
    role: str, keys: Path, parameters: Path, store: Path, address: tuple[str, int, bool], options: dict[str, Any]
) -> None:
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s")
    identity = _parties.Identity.read(keys)
    signed = _parties.verify_parameters(_read_bytes(parameters), identity.authority)
    _parties.run_party(role, identity, signed, store, address, options, _announce)


def _announce(sentence: str) -> None:
    show(sentence)
    sys.stdout.flush()


def _load_parameters(path: Path | None, name: str | None, analyst: str | None, identity: Any) -> Any:
    if path is not None:
        return _parties.verify_parameters(_read_bytes(path), identity.authority)
    if name is None or analyst is None:
        raise ParameterError(
            "--parameters: without it the set is fetched from the analyst. Add --stream NAME and --analyst URL."
        )
    return _parties.fetch_parameters(analyst, name, identity, to="analyst")


def _check_urls(urls: dict[str, str | None]) -> dict[str, str]:
    for name, url in urls.items():
        if url is None:
            raise ParameterError(f"--{name}: sensors of this stream send to it. Add --{name} URL.")
    return {name: url for name, url in urls.items() if url is not None}


def _describe_frames(sensor: str, target: str, states: dict[str, int]) -> str:
    return f"{sensor} to {target}: " + ", ".join(f"{count} {state}" for state, count in sorted(states.items()))


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}. Name the signed parameter set.") from None


def _decimal(epsilon: Fraction) -> str:
    return f"{float(epsilon):.6g}"


Report = Callable[[str, int | None, str], None]  # called with a party, a window and what the party did


@contextmanager
def _show_progress() -> Iterator[Report]:
    """Show on stderr what parties do: a live table on a terminal, a line for each change elsewhere."""
    console = Console(file=sys.stderr, highlight=False)
    if not console.is_terminal:
        yield lambda party, window, text: console.print(_progress_line(party, window, text), soft_wrap=True)
        return
    progress = _ProgressTable()
    with Live(progress.render(), console=console, transient=False, refresh_per_second=10) as live:

        def redraw(party: str, window: int | None, text: str) -> None:
            progress.update(party, window, text)
            live.update(progress.render())

        yield redraw


class _ProgressTable:
    """The latest message of every party about every window."""

    def __init__(self) -> None:
        self._parties: list[str] = []
        self._windows: dict[int, dict[str, str]] = {}
        self._last = ""

    def update(self, party: str, window: int | None, text: str) -> None:
        if window is None:
            self._last = f"{party}: {text}"
            return
        if party not in self._parties:
            self._parties.append(party)
        self._windows.setdefault(window, {})[party] = text

    def render(self) -> Table:
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", caption=self._last, caption_justify="left")
        table.add_column("window")
        for party in self._parties:
            table.add_column(party)
        for window in sorted(self._windows):
            texts = (self._windows[window].get(party, "") for party in self._parties)
            cells = (Text(text, style="green" if text == "purged" or "judged" in text else "cyan") for text in texts)
            table.add_row(str(window), *cells)
        return table


def _progress_line(party: str, window: int | None, text: str) -> Text:
    at = "" if window is None else f"window {window}: "
    return Text.assemble((f"{party}: ", "cyan"), f"{at}{text}")
