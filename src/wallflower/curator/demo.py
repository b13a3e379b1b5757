"""A service to try: the public table of tumours, a ledger that is gone afterwards, and a token for each role."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from wallflower import demo
from wallflower.curator.desk.records import Records
from wallflower.curator.desk.tokens import Tokens
from wallflower.curator.settings import Registration, Settings
from wallflower.ledger import Ledger
from wallflower.privacy import Loss, Neighbours
from wallflower.schema import Schema


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
        tumours = Registration(name=demo.NAME, source=str(source), schema=Schema.read(schema))
        book, watches = str(folder / "ledger.db"), str(folder / "watches")
        with Ledger.open(book) as ledger:
            for unit in (Neighbours.REPLACE_ONE, Neighbours.ENTRY, Neighbours.PERSON, Neighbours.ADD_REMOVE):
                ledger.grant(demo.NAME, Loss("3").under(unit), by=demo.STEWARD, reason="demo")
        records = Records(book)
        tokens = Tokens(records)
        _, steward = tokens.create(demo.STEWARD, "steward", days=1)
        _, analyst = tokens.create(demo.ANALYST, "analyst", days=1)
        records.close()
        settings = base.but(ledger=book, watches=watches, roots=(name,), datasets=(tumours,))
        yield Trial(settings=settings, steward=steward, analyst=analyst)
