"""Sensors: keys, the signed parameter set, and each party of a stream as a process of its own."""

from __future__ import annotations

import json
import logging
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from wallflower.cli.options import DATA, OUTPUT, PRIVACY, JsonOption, names
from wallflower.cli.sensors.live import show_windows
from wallflower.cli.show import notice, show, show_json
from wallflower.data.lines import stream
from wallflower.errors import ParameterError, PrivacyError, SourceError
from wallflower.machine.files import replacement
from wallflower.machine.lazy import Lazy, load
from wallflower.machine.vault import make_key, read_vault
from wallflower.schema.columns import Selection, call_or_refuse

if TYPE_CHECKING:
    import pyarrow as _pa
    import pyarrow.csv as _pa_csv
    import pyarrow.parquet as _parquet

    import wallflower.sensors.parameters as _parameters
    import wallflower.sensors.parties.demo as _demo
    import wallflower.sensors.parties.device as _device
    import wallflower.sensors.parties.keys as _keys
    import wallflower.sensors.parties.parameter_file as _signing
    import wallflower.sensors.parties.perturbed_readings as _perturbed
    import wallflower.sensors.parties.revocations as _revocations
    import wallflower.sensors.parties.startup as _starting
    import wallflower.sensors.protocol.batches as _batches
else:
    _pa = Lazy("pyarrow")
    _pa_csv = Lazy("pyarrow.csv")
    _parquet = Lazy("pyarrow.parquet")
    _demo = Lazy("wallflower.sensors.parties.demo")
    _device = Lazy("wallflower.sensors.parties.device")
    _keys = Lazy("wallflower.sensors.parties.keys")
    _revocations = Lazy("wallflower.sensors.parties.revocations")
    _signing = Lazy("wallflower.sensors.parties.parameter_file")
    _starting = Lazy("wallflower.sensors.parties.startup")
    _perturbed = Lazy("wallflower.sensors.parties.perturbed_readings")
    _batches = Lazy("wallflower.sensors.protocol.batches")
    _parameters = Lazy("wallflower.sensors.parameters")

sensors = typer.Typer(no_args_is_help=True)

_NEEDS: Final = ("cryptography", "httptools", "starlette", "uvicorn")

EXPORT_FORMATS: Final = (".csv", ".parquet")
NETWORK: Final = "Network"
_NOT_THERE: Final = "sensors need more packages than the rest: pip install 'wallflower[service]' brings them."

KeysOption = Annotated[
    Path, typer.Option("--keys", metavar="DIR", help="this party's own folder of keys", rich_help_panel=DATA)
]
ParametersOption = Annotated[
    Path, typer.Option("--parameters", metavar="FILE", help="the signed parameter set", rich_help_panel=DATA)
]
StoreOption = Annotated[
    Path, typer.Option("--store", metavar="FILE", help="what the party remembers: a SQLite file", rich_help_panel=DATA)
]
StoreKeyOption = Annotated[
    Path | None,
    typer.Option(
        "--store-key",
        metavar="FILE",
        help="the key that seals the store, made by `sensors store-key`",
        rich_help_panel=DATA,
    ),
]
SetOption = Annotated[
    Path | None,
    typer.Option("--parameters", metavar="FILE", help="the signed set; default: the analyst's", rich_help_panel=DATA),
]
StreamOption = Annotated[
    str | None, typer.Option("--stream", metavar="NAME", help="without a set: the stream to join", rich_help_panel=DATA)
]
WindowOption = Annotated[
    int | None,
    typer.Option(min=0, help="of all readings; default: their column `window` says it", rich_help_panel=DATA),
]
BatchOption = Annotated[int, typer.Option(min=1, max=100_000, help="readings of a frame", rich_help_panel=DATA)]
BudgetOption = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER", help="ε of all readings this sensor may ever send, added up", rich_help_panel=PRIVACY
    ),
]
HostOption = Annotated[str, typer.Option(metavar="NAME", help="where to listen", rich_help_panel=NETWORK)]
PortOption = Annotated[
    int, typer.Option(min=0, max=65535, help="where to listen; 0: any that is free", rich_help_panel=NETWORK)
]
TlsOption = Annotated[
    bool,
    typer.Option(
        "--tls/--no-tls", help="TLS with client certificates; without only on loopback", rich_help_panel=NETWORK
    ),
]


@sensors.callback()
def require_packages() -> None:
    """Outliers among readings that are perturbed at the source, found by two servers together."""
    try:
        for package in _NEEDS:
            load(package)
    except ModuleNotFoundError:
        raise ParameterError(_NOT_THERE) from None


def _url(who: str, when: str = "") -> Any:
    return typer.Option(metavar="URL", help=f"where the {who} is{when}", rich_help_panel=NETWORK)


@sensors.command(epilog="Example: wallflower sensors keys keys --sensors 2")
def keys(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="where to leave them, a folder for each party")],
    count: Annotated[int, typer.Option("--sensors", min=0, max=100_000, help="so many sensors, counted from 1")] = 1,
    host: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="names the parties are called by, besides localhost")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """A certificate authority and keys for every party; what is there stays, so sensors can be added later."""
    hosts = (*_keys.HOSTS, *(names(host) if host else ()))
    made = _keys.make(folder, sensors=count, hosts=hosts)
    if as_json:
        show_json({"made": [str(path) for path in made]})
        return
    notice(f"Give each party its own folder; keep {folder / 'authority'} apart, it admits sensors.")
    show(made)


@sensors.command(epilog="Example: wallflower sensors revoke keys sensor-2")
def revoke(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="the folder that `sensors keys` made, with the authority")
    ],
    sensor: Annotated[list[str], typer.Argument(metavar="SENSOR...", help="whose certificates are taken back")],
    as_json: JsonOption = False,
) -> None:
    """Take back the certificates of sensors that are lost, stolen or out of use. Running parties heed the new list."""
    written = _revocations.revoke(folder, sensor)
    if as_json:
        show_json({"revoked": sensor, "written": [str(path) for path in written]})
        return
    notice("Copy the list into the folders of the parties that are elsewhere; it counts there within a second.")
    show(written)


@sensors.command("store-key", epilog="Example: wallflower sensors store-key sensor-1.key")
def store_key(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="where to leave it; keep it apart from the store")],
) -> None:
    """A key that seals a party's store from its first day on; who loses it loses the store."""
    make_key(path)
    show(path)


@sensors.command(epilog="Example: wallflower sensors sign stream.toml --keys keys -o stream.json")
def sign(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="the parameter set: a .toml or .json file")],
    keys: Annotated[Path, typer.Option("--keys", metavar="DIR", help="the folder that `sensors keys` made")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="where to leave the signed set")],
) -> None:
    """Check a parameter set, fill in the parties' public keys, and sign it with the owner's."""
    stated = _read(source)
    owner = _keys.Identity.read(keys / "owner")
    for name in _keys.PARTIES:
        stated.setdefault(name, _keys.Identity.read(keys / name).public)
    stated.setdefault("seal", owner.seal_public)
    made = _signing.sign_parameters(_parameters.Parameters.from_json(stated), owner)
    output.write_bytes(made.body)
    notice(f"Signed version {made.parameters.version} of {made.parameters.stream}: {made.parameters.hash.hex()}")
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
    owner: Annotated[str | None, _url("owner", ", in mode direct only")] = None,
    store_key: StoreKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Perturb readings and send them. Started again with the same source it goes on, and draws no noise twice."""
    identity = _keys.Identity.read(keys)
    signed = _parameter_set(parameters, stream_name, analyst, identity)
    wanted = (() if window is not None else (_device.WINDOW,)) + signed.parameters.names
    given = {"analyst": analyst, "correction": correction, "owner": owner}
    urls = _require_urls({name: given[name] for name in _batches.targets(signed.parameters)})
    with _device.Device(identity, signed, store, urls, budget=budget, vault=read_vault(store_key)) as sensor:
        sensor.check()
        rows = (piece.rows for piece in stream(source, Selection(names=wanted)).batches)
        fates = _device.send_stream(sensor, _device.cut_batches(rows, batch, window))
        spent, left = sensor.outbox.spent, sensor.outbox.left
    if as_json:
        show_json({"sensor": identity.name, "frames": fates, "spent": str(spent), "left": str(left)})
    else:
        show("\n".join(_fate(identity.name, target, states) for target, states in sorted(fates.items())))
        show(f"{identity.name}: ε={spent} spent, ε={left} left")
    if any("late" in states for states in fates.values()):
        notice("What came too late stays unjudged. Frames that no server answered are kept, in case a clock was wrong.")
    if any("refused" in states for states in fates.values()):
        raise Rejection(f"{identity.name}: frames were refused, see above; they stay unjudged. See the servers' logs.")


@sensors.command(
    epilog="Example: wallflower sensors analyst --keys keys/analyst --parameters stream.json --store analyst.db "
    "--port 8401 --correction https://localhost:8402 --owner https://localhost:8403"
)
def analyst(
    keys: KeysOption,
    parameters: ParametersOption,
    store: StoreOption,
    correction: Annotated[str, _url("correction server")],
    owner: Annotated[str, _url("owner")],
    host: HostOption = "127.0.0.1",
    port: PortOption = 8401,
    tls: TlsOption = True,
    store_key: StoreKeyOption = None,
) -> None:
    """Run the analyst: keeps perturbed readings and leads the servers through every window."""
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
    owner: Annotated[str, _url("owner")],
    host: HostOption = "127.0.0.1",
    port: PortOption = 8402,
    tls: TlsOption = True,
    store_key: StoreKeyOption = None,
) -> None:
    """Run the correction server: holds what corrects the readings, and forgets it after delivery."""
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
        typer.Option(metavar="DIR", help="leave a page and JSON there as well", rich_help_panel=OUTPUT),
    ] = None,
    host: HostOption = "127.0.0.1",
    port: PortOption = 8403,
    tls: TlsOption = True,
    store_key: StoreKeyOption = None,
) -> None:
    """Run the owner: opens what is sealed to it and says which readings were outliers."""
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
        Path, typer.Option("--output", "-o", metavar="FILE", help="a .csv or .parquet file", rich_help_panel=OUTPUT)
    ],
    window: Annotated[
        int | None, typer.Option(min=0, help="export this window only; default: all", rich_help_panel=DATA)
    ] = None,
    store_key: StoreKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Export the perturbed readings that the analyst keeps, for any other analysis. Costs no further ε.

    The analyst may be running. In modes grid and paper the file must not reach whoever runs the correction server.
    """
    if output.suffix not in EXPORT_FORMATS:
        raise ParameterError(f"--output: {output.name} is not a {' or '.join(EXPORT_FORMATS)} file. Name one.")
    signed = _signing.verify_parameters(_bytes(parameters), _keys.Identity.read(keys).authority)
    names = signed.parameters.names
    windows = _perturbed.read_perturbed_windows(store, signed.parameters, window=window, vault=read_vault(store_key))
    tables = (part.to_arrow(names) for part in windows)
    with replacement(output) as file:
        count = _write_tables(file, output.suffix, _perturbed.schema_of(names), tables)
    if as_json:
        show_json({"readings": count, "file": str(output)})
        return
    notice(
        f"{count:,} perturbed readings. They may be analysed at no further cost. Keep them from whoever runs the "
        "correction server: in modes grid and paper both together tell distances."
    )
    show(output)


def _write_tables(file: IO[bytes], suffix: str, schema: _pa.Schema, tables: Iterator[_pa.Table]) -> int:
    """Write tables of one schema to a file, one after the other; the number of their rows."""
    made = _pa_csv.CSVWriter if suffix == ".csv" else _parquet.ParquetWriter
    count = 0
    with made(file, schema) as writer:
        for table in tables:
            writer.write_table(table)
            count += table.num_rows
    return count


@sensors.command(epilog="Example: wallflower sensors demo --out sensors-demo")
def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="where to leave the files")] = Path("wallflower-sensors"),
    mode: Annotated[Literal["exact", "grid", "paper", "direct"], typer.Option(help="how to find outliers")] = "exact",
    readings: Annotated[int, typer.Option(min=20, max=200_000, help="of each sensor and window")] = 1_000,
    count: Annotated[int, typer.Option("--sensors", min=1, max=20, help="so many devices")] = 2,
    windows: Annotated[int, typer.Option(min=1, max=20, help="so many windows")] = 2,
    tls: TlsOption = True,
    as_json: JsonOption = False,
) -> None:
    """All parties on this machine, as processes of their own: made-up readings go in, the owner's result comes out."""
    plan = _demo.Plan(mode=mode, readings=readings, sensors=count, windows=windows, tls=tls)
    try:
        with show_windows() as told:
            ended = _demo.run(out, plan, told)
    except KeyboardInterrupt:
        raise StreamInterruption(
            "Interrupted; every party was ended. What they stored is in the folder of the demo."
        ) from None
    if as_json:
        show_json(ended.to_json())
    else:
        show(ended.words)
        show(ended.files)


class StreamInterruption(PrivacyError):
    """Ctrl-C while parties ran."""

    exit_code = 130


class Rejection(PrivacyError):
    """A server refused what a sensor sent."""

    exit_code = 4


def _run(
    role: str, keys: Path, parameters: Path, store: Path, where: tuple[str, int, bool], own: dict[str, Any]
) -> None:
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s")
    identity = _keys.Identity.read(keys)
    signed = _signing.verify_parameters(_bytes(parameters), identity.authority)
    _starting.run_party(role, identity, signed, store, where, own, _say)


def _say(words: str) -> None:
    show(words)
    sys.stdout.flush()


def _parameter_set(path: Path | None, name: str | None, analyst: str | None, identity: Any) -> Any:
    if path is not None:
        return _signing.verify_parameters(_bytes(path), identity.authority)
    if name is None or analyst is None:
        raise ParameterError(
            "--parameters: left out, so the set is the analyst's. Add --stream NAME and --analyst URL."
        )
    return _device.fetch_parameters(analyst, name, identity, to="analyst")


def _require_urls(urls: dict[str, str | None]) -> dict[str, str]:
    for name, url in urls.items():
        if url is None:
            raise ParameterError(f"--{name}: this stream's sensors send there. Add --{name} URL.")
    return {name: url for name, url in urls.items() if url is not None}


def _fate(sensor: str, target: str, states: dict[str, int]) -> str:
    return f"{sensor} to {target}: " + ", ".join(f"{count} {state}" for state, count in sorted(states.items()))


def _bytes(path: Path) -> bytes:
    return call_or_refuse(
        path.read_bytes, lambda _: SourceError(f"{path}: cannot be read. Name the signed parameter set.")
    )


def _read(path: Path) -> dict[str, Any]:
    refusal = SourceError(f"{path}: cannot be read, or is not what its name says. Write TOML or JSON.")
    parse = json.loads if path.suffix == ".json" else tomllib.loads
    stated: Any = call_or_refuse(lambda: parse(path.read_text(encoding="utf-8")), lambda _: refusal)
    if not isinstance(stated, dict):
        raise refusal
    return stated
