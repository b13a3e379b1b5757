"""Score records with a detector that was released: some at a time, so that any number of them will do.

Nothing is charged here and no ledger is opened: scores are made of what was released and of the records at hand.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Final

import typer

from wallflower.cli.options import OUTPUT, SOURCE
from wallflower.cli.show import notice, show
from wallflower.errors import ParameterError, SourceError
from wallflower.files import replacement
from wallflower.lazy import Lazy
from wallflower.queries.detector import OWN_RECORDS
from wallflower.queries.detector.model import Model

if TYPE_CHECKING:
    import pyarrow as _pa
    import pyarrow.parquet as _parquet

    import wallflower.report.scores as _scores
else:
    _pa = Lazy("pyarrow")
    _parquet = Lazy("pyarrow.parquet")
    _scores = Lazy("wallflower.report.scores")

LARGEST: Final = 1 << 26  # bytes of a detector
PLOTS: Final = (".png", ".svg", ".pdf")

Columns = dict[str, Any]


def add(group: typer.Typer) -> None:
    """`score` beside `fit`."""
    group.command("score", epilog="Example: wallflower detector score people.json new.csv --csv")(score)


def score(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="what `detector fit --model` wrote")],
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
        Path | None, typer.Option(metavar="FILE", help="write there; left out: standard output", rich_help_panel=OUTPUT)
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

    Scores of new records, or of each person's own, may be told. A list of the records that the detector was fitted to
    is not private, with or without their names.
    """
    if json_lines + as_csv + parquet > 1:
        raise ParameterError("--json-lines, --csv, --parquet: the scores are written in one way. Choose one.")
    if parquet and out is None:
        raise ParameterError("--parquet: a Parquet file has parts that are written last. Name it with --out FILE.")
    if plot is not None and plot.suffix.lower() not in PLOTS:
        raise ParameterError(f"{plot}: cannot be drawn as that. It must end in {' or '.join(PLOTS)}. Rename it.")
    made = read_model(model)
    tally = _scores.Tally.of(made) if plot is not None else None
    write = _write_parquet if parquet else _write_lines if json_lines else _write_csv
    notice(OWN_RECORDS)
    with _place(out) as file:
        write(file, _parts(made, source, tally, contributions=contributions))
    if tally is not None and plot is not None:
        with replacement(plot) as file:
            tally.figure().savefig(file, dpi=200, format=plot.suffix[1:].lower())
    if out is not None:
        show(f"Scores are in {out}.")


def read_model(path: Path) -> Model:
    """The detector that a file holds."""
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


def _parts(made: Model, source: str, tally: Any, *, contributions: bool) -> Iterator[Columns]:
    for values in made.parts(source):
        scores = made.score(values)
        columns: Columns = {"score": scores}
        if made.threshold is not None:
            columns["flagged"] = (scores > made.threshold).astype(int)
        if contributions:
            by_column = made.split_score(values)
            columns |= {f"by {name}": by_column[:, place] for place, name in enumerate(made.columns)}
        if tally is not None:
            tally.add(scores)
        yield columns


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
