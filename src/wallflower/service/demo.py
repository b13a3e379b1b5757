"""A temporary service to try: public tumours, synthetic temperatures, a temporary ledger, a token for each role."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from wallflower import demo
from wallflower.ledger import Ledger
from wallflower.privacy import Loss
from wallflower.schema import Column, Schema
from wallflower.service.core.access.tokens import Tokens
from wallflower.service.core.records import Records
from wallflower.service.settings import Registration, Settings
from wallflower.units import Protection

BEDS: Final = "beds"
OPEN: Final = ("3", "360")  # records of the tumours that an analyst may name: a benign one and a malignant one
LIMITS: Final = {demo.NAME: Loss("3"), BEDS: Loss("6")}  # a single reading tells less than a person's whole record

_READINGS: Final = 240
_READINGS_PER_FEVER: Final = 100
_WORDS: Final[Mapping[str, Any]] = {
    "title": "Temperatures of a ward",
    "owner": "nobody: it is made up for this demo",
    "population": "one bed, a reading a moment",
    "description": "A slow wave with a fever now and then.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Settings to serve, and the tokens to call with."""

    settings: Settings
    steward: str
    analyst: str


@contextmanager
def trial(base: Settings) -> Iterator[Trial]:
    """A folder with everything in it, for as long as it is used."""
    with TemporaryDirectory(prefix="wallflower-serve-") as name:
        folder = Path(name)
        source, schema = demo.write_files(folder)
        tumours = Registration(
            name=demo.NAME, source=str(source), schema=explicable(Schema.read(schema)), records=OPEN, analysts=("*",)
        )
        book, watches = str(folder / "ledger.db"), str(folder / "watches")
        with Ledger.open(book) as ledger:
            for dataset, limit in LIMITS.items():
                ledger.grant(dataset, limit, by=demo.STEWARD, reason="demo")
        records = Records(book)
        tokens = Tokens(records)
        _, steward = tokens.create(demo.STEWARD, "steward", days=1)
        _, analyst = tokens.create(demo.ANALYST, "analyst", days=1)
        records.close()
        settings = base.override(ledger=book, watches=watches, roots=(name,), datasets=(tumours, beds(folder)))
        yield Trial(settings=settings, steward=steward, analyst=analyst)


def explicable(schema: Schema) -> Schema:
    """The same with what `explain` needs: public bounds of one column, and groups of another."""
    facts: Mapping[str, dict[str, Any]] = {"mean radius": {"low": 5, "high": 30}, "mean texture": {"edges": (15, 20)}}
    columns = tuple(replace(column, **facts.get(column.name, {})) for column in schema.columns or ())
    return replace(schema, columns=columns)


def beds(folder: Path) -> Registration:
    """Temperatures over time, one reading a moment, made up: a slow wave with a fever now and then."""
    source = folder / f"{BEDS}.csv"
    waves = (36.8 + 0.3 * math.sin(moment / 9) + 0.1 * math.sin(moment * 1.7) for moment in range(_READINGS))
    readings = (
        wave + (2 if moment % _READINGS_PER_FEVER == _READINGS_PER_FEVER // 2 else 0)
        for moment, wave in enumerate(waves)
    )
    source.write_text("temperature\n" + "".join(f"{reading:.2f}\n" for reading in readings), encoding="utf-8")
    said: dict[str, Any] = {"meaning": "body temperature", "measure": "°C"}
    column = Column("temperature", low=34.5, high=39.5, center=37, scale=0.5, **said)
    protects = Protection(rows="time", unit="entry")
    schema = Schema(columns=(column,), rows=_READINGS, clip=True, protects=protects, **_WORDS)
    return Registration(name=BEDS, source=str(source), schema=schema, analysts=("*",))
