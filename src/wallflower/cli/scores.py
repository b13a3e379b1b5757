"""Score records with a detector that was released: some at a time, so that any number of them will do.

Nothing is charged here and no ledger is opened: scores are made of what was released and of the records at hand.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import quote

import numpy as np
import typer

from wallflower.cli.options import OUTPUT, SOURCE, JsonOption, SchemaOption, facts_of
from wallflower.cli.show import notice, show, show_json
from wallflower.data import Column, load
from wallflower.errors import ParameterError, SourceError
from wallflower.machine.files import replacement, write_private
from wallflower.machine.heavy import pyarrow as _pa
from wallflower.machine.heavy import pyarrow_parquet as _parquet
from wallflower.machine.lazy import Lazy
from wallflower.queries.detector import OWN_RECORDS
from wallflower.queries.detector.grids import Floats
from wallflower.queries.detector.model import Model
from wallflower.queries.who.letters import Letter, write_letters

if TYPE_CHECKING:
    import wallflower.report.scores as _scores
else:
    _scores = Lazy("wallflower.report.scores")

LARGEST: Final = 1 << 26  # bytes of a detector
PLOTS: Final = (".png", ".svg", ".pdf")
MAX_NAME_LETTERS: Final = 200  # of a file in a folder of letters

PLOT: Final = "draw it: .png, .svg or .pdf"

Columns = dict[str, Any]
ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="what `detector fit --model` wrote")]


def add(group: typer.Typer) -> None:
    """`score`, `drift`, `why`, `map` and `letters` beside `fit`."""
    group.command("score", epilog="Example: wallflower detector score people.json new.csv --csv")(score)
    group.command("drift", epilog="Example: wallflower detector drift people.json monday.csv tuesday.csv")(drift)
    group.command("why", epilog="Example: wallflower detector why people.json new.csv --row 2 --plot why.png")(why)
    group.command("map", epilog="Example: wallflower detector map people.json --columns age,hours --plot map.png")(
        map_columns
    )
    group.command(
        "letters", epilog="Example: wallflower detector letters people.json people.csv --identifier id --out letters"
    )(letters)


def score(
    model: ModelArgument,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help=SOURCE)],
    json_lines: Annotated[
        bool, typer.Option("--json-lines", help="a JSON object for each record", rich_help_panel=OUTPUT)
    ] = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="a line for each record; the default", rich_help_panel=OUTPUT)
    ] = False,
    parquet: Annotated[
        bool, typer.Option("--parquet", help="a Parquet file; needs --out", rich_help_panel=OUTPUT)
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="write there; default: standard output", rich_help_panel=OUTPUT)
    ] = None,
    contributions: Annotated[
        bool, typer.Option("--contributions", help="what each column adds to the score", rich_help_panel=OUTPUT)
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="draw how many have which score: .png, .svg or .pdf", rich_help_panel=OUTPUT),
    ] = None,
) -> None:
    """Score records with a detector: how unusual each is, and whether it is flagged. Costs nothing.

    Scores of new records, or a person's own score, may be shown. A list of scores of the records that the detector was
    fitted to is not private, with or without names.
    """
    if json_lines + as_csv + parquet > 1:
        raise ParameterError("--json-lines, --csv, --parquet: the scores are written in one way. Choose one.")
    if parquet and out is None:
        raise ParameterError("--parquet: a Parquet file has parts that are written last. Name it with --out FILE.")
    _require_plot(plot)
    detector = read_model(model)
    tally = _scores.Tally.of(detector) if plot is not None else None
    write = _write_parquet if parquet else _write_lines if json_lines else _write_csv
    notice(OWN_RECORDS)
    with _place(out) as file:
        write(file, _parts(detector, source, tally, contributions=contributions))
    if tally is not None and plot is not None:
        _save(tally.figure(), plot)
    if out is not None:
        show(f"Scores are in {out}.")


def drift(
    model: ModelArgument,
    sources: Annotated[list[str], typer.Argument(metavar="SOURCE...", help=f"batches: {SOURCE}")],
    as_json: JsonOption = False,
) -> None:
    """Check for drift: compare each batch's flag rate with the rate the detector was fitted for. Costs nothing.

    The flag rate is a number about the new records: show it only to people who may see them.
    """
    detector = read_model(model)
    detector.require_threshold()
    drifts = {source: detector.drift(source) for source in sources}
    if as_json:
        show_json({"batches": [{"source": source, **batch.to_json()} for source, batch in drifts.items()]})
        return
    for source, batch in drifts.items():
        show(f"{source}: {batch.text}")


def why(
    model: ModelArgument,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help=SOURCE)],
    row: Annotated[int, typer.Option(min=1, help="which record, from 1")] = 1,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help=PLOT, rich_help_panel=OUTPUT)] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what each column adds to the score of one record. Costs nothing."""
    _require_plot(plot)
    detector = read_model(model)
    record = _row_of(detector, source, row)
    parts = dict(zip(detector.columns, detector.split_score(record)[0].tolist(), strict=True))
    score = float(detector.score(record)[0])
    if as_json:
        show_json({"row": row, "score": score, "threshold": detector.threshold, "contributions": parts})
    else:
        show(f"score {score:.4g}" + ("" if detector.threshold is None else f", flagged above {detector.threshold:.4g}"))
        name, part = max(parts.items(), key=lambda item: item[1])
        if part > score:
            show(f"{name} alone adds {part:.4g}, more than the score: ordinary values of the others take it away.")
        for name, part in sorted(parts.items(), key=lambda item: -item[1]):
            show(f"  {part:+.4f}  {name}")
    if plot is not None:
        _save(_scores.draw_parts(detector, detector.split_score(record)[0]), plot)


def map_columns(
    model: ModelArgument,
    columns: Annotated[str, typer.Option(metavar="A,B", help="the two columns")],
    plot: Annotated[Path, typer.Option(metavar="FILE", help=PLOT, rich_help_panel=OUTPUT)],
    between: Annotated[
        list[str] | None,
        typer.Option(metavar="LOW,HIGH", help="the range to draw of each column; default: the schema's bounds"),
    ] = None,
) -> None:
    """Draw how unusual pairs of values of two columns are, from released numbers alone. Costs nothing."""
    _require_plot(plot)
    ranges = [_range(text) for text in between] if between else None
    _save(_scores.draw_map(read_model(model), [name.strip() for name in columns.split(",")], ranges), plot)
    show(plot)


def letters(
    model: ModelArgument,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help=SOURCE)],
    out: Annotated[
        Path,
        typer.Option(
            metavar="PLACE",
            help="a new folder for one file per person, or a new .csv or .jsonl with one row per person",
            rich_help_panel=OUTPUT,
        ),
    ],
    identifier: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="column of identifiers; default: the person of the schema"),
    ] = None,
    schema: SchemaOption = None,
) -> None:
    """Write to each person what the detector says of her own record: score, flag and contributions. Costs nothing.

    A letter is for that person alone. Files can be read by their owner only; deliver each, and show the rest to nobody.
    """
    detector = read_model(model)
    facts = None if schema is None else facts_of(schema, None)
    column = identifier or (None if facts is None or facts.person is None else facts.person.id)
    if column is None:
        raise ParameterError("--identifier: nobody said which column identifies a person. Name it.")
    if out.exists():
        raise SourceError(f"{out}: exists already. Letters are written to a new place. Name another.")
    if facts is None:
        columns = (*(detector.schema.columns or ()), Column(column, identifier=True))
        facts = replace(detector.schema, columns=columns)
    written = list(write_letters(detector, load(source, schema=facts), column))
    _write_letters(written, out)
    show(f"{len(written):,} letters are in {out}. Give each to the person it names, and to nobody else.")


def _write_letters(written: list[Letter], out: Path) -> None:
    """Write them all to one file, or each to its own in a new folder; nobody but their owner can read any."""
    if out.suffix.lower() == ".jsonl":
        lines = "".join(f"{json.dumps(letter.to_json(), ensure_ascii=False)}\n" for letter in written)
        write_private(out, lines.encode("utf-8", "surrogatepass"))
    elif out.suffix.lower() == ".csv":
        rows = io.StringIO()
        table = csv.writer(rows, lineterminator="\n")
        table.writerow(["identifier", "score", "flagged", *(f"by {name}" for name in written[0].contributions)])
        table.writerows(
            [letter.identifier, letter.score, letter.is_flagged, *letter.contributions.values()] for letter in written
        )
        write_private(out, rows.getvalue().encode("utf-8", "surrogatepass"))
    else:
        out.mkdir(mode=0o700)
        for letter in written:
            text = json.dumps(letter.to_json(), ensure_ascii=False)
            write_private(out / _letter_name(letter.identifier), text.encode("utf-8", "surrogatepass"))


def _letter_name(identifier: str) -> str:
    """Return the name of a file, which cannot lead out of its folder."""
    name = quote(identifier, safe="", errors="surrogatepass")
    return f"{name if len(name) <= MAX_NAME_LETTERS else hashlib.sha256(name.encode()).hexdigest()}.json"


def _range(text: str) -> tuple[float, float]:
    low, _, high = text.partition(",")
    try:
        return float(low), float(high)
    except ValueError:
        raise ParameterError(
            f"--between: {text!r} is not a range. Write two numbers, the lower one first: --between=-3,3."
        ) from None


def _row_of(detector: Model, source: str, row: int) -> Floats:
    before = 0
    for values in detector.parts(source):
        if row <= before + len(values):
            return values[row - before - 1 : row - before]
        before += len(values)
    raise ParameterError(f"--row: there is no record {row}. Rows are counted from 1, without the header.")


def _require_plot(plot: Path | None) -> None:
    if plot is not None and plot.suffix.lower() not in PLOTS:
        raise ParameterError(f"{plot}: cannot be drawn as that. It must end in {' or '.join(PLOTS)}. Rename it.")


def _save(figure: Any, plot: Path) -> None:
    with replacement(plot) as file:
        figure.savefig(file, dpi=200, format=plot.suffix[1:].lower())


def read_model(path: Path) -> Model:
    """Read a detector from a .json or .arrow file."""
    if path.suffix.lower() == ".arrow":
        return _read_arrow(path)
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST + 1)
        stored = json.loads(text) if len(text) <= LARGEST else None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        stored = None
    except OSError as error:
        reason = error.strerror or "cannot be used"
        raise SourceError(f"{path}: {reason}. Pass what `wallflower detector fit --model FILE` wrote.") from None
    return Model.of(stored)


def _read_arrow(path: Path) -> Model:
    try:
        if path.stat().st_size > LARGEST:
            return Model.of(None)
        with _pa.OSFile(str(path)) as file, _pa.ipc.open_file(file) as reader:
            return Model.from_arrow(reader.read_all())
    except _pa.ArrowInvalid:
        return Model.of(None)
    except OSError as error:
        reason = error.strerror or "cannot be used"
    raise SourceError(f"{path}: {reason}. Pass what `wallflower detector fit --model FILE` wrote.")


def write_arrow(detector: Model, path: Path) -> None:
    """Keep a detector as an Arrow file."""
    table = detector.to_arrow()
    options = _pa.ipc.IpcWriteOptions(compression="zstd")
    with replacement(path) as file, _pa.ipc.new_file(file, table.schema, options=options) as writer:
        writer.write_table(table)


def _parts(detector: Model, source: str, tally: Any, *, contributions: bool) -> Iterator[Columns]:
    for values in detector.parts(source):
        scores = detector.score(values)
        columns: Columns = {"score": scores}
        if detector.threshold is not None:
            columns["flagged"] = (scores > detector.threshold).astype(int)
        by_column = detector.split_score(values)
        columns |= {"largest": by_column.max(axis=1), "largest_column": _largest_names(detector, by_column)}
        if contributions:
            columns |= {f"by {name}": by_column[:, at] for at, name in enumerate(detector.columns)}
        if tally is not None:
            tally.add(scores)
        yield columns


def _largest_names(detector: Model, by_column: Floats) -> Any:
    return np.array(detector.columns)[by_column.argmax(axis=1)]


@contextmanager
def _place(out: Path | None) -> Iterator[IO[bytes]]:
    if out is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with replacement(out) as file:
        yield file


def _write_csv(file: IO[bytes], parts: Iterator[Columns]) -> None:
    is_first = True
    for columns in parts:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if is_first:
            writer.writerow(columns)
        writer.writerows(_rows(columns))
        file.write(text.getvalue().encode())
        is_first = False


def _write_lines(file: IO[bytes], parts: Iterator[Columns]) -> None:
    for columns in parts:
        lines = (json.dumps(dict(zip(columns, row, strict=True))) for row in _rows(columns))
        file.write("".join(f"{line}\n" for line in lines).encode())


def _write_parquet(file: IO[bytes], parts: Iterator[Columns]) -> None:
    writer = None
    for columns in parts:
        table = _pa.table(columns)
        writer = writer or _parquet.ParquetWriter(file, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def _rows(columns: Columns) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.tolist() for column in columns.values()), strict=True)
