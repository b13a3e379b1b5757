"""The tables that the detector is tried on: records with labels that say which of them are outliers.

Read from the folder named by `$WALLFLOWER_DATA`; where there is none, one table is made up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import SourceError
from wallflower.machine.lazy import Lazy
from wallflower.papers.data.tables import find_file
from wallflower.synthetic import mixture

if TYPE_CHECKING:
    import pyarrow.csv as _csv
else:
    _csv = Lazy("pyarrow.csv")

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

CHOSEN_ON: Final = {
    "cardio": "6_cardio",
    "thyroid": "38_thyroid",
    "satimage-2": "31_satimage-2",
    "pendigits": "28_pendigits",
    "annthyroid": "2_annthyroid",
    "mammography": "23_mammography",
    "shuttle": "32_shuttle",
    "Pima": "29_Pima",
    "WDBC": "43_WDBC",
    "Ionosphere": "18_Ionosphere",
}
MADE_UP: Final = "made up"
QUICK: Final = ("WDBC", MADE_UP)
SENSORS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelledTable:
    """Records, and which of them are outliers; `reporting` if it is not among those that constants were chosen on."""

    name: str
    values: Floats
    outliers: Flags
    reporting: bool = False


def _adbench(name: str) -> LabelledTable:
    with np.load(find_file(f"adbench/{CHOSEN_ON[name]}.npz")) as stored:
        values, labels = stored["X"].astype(np.float64), stored["y"].ravel() == 1
    return LabelledTable(name=name, values=values, outliers=labels)


def _pump() -> LabelledTable:
    """Eight sensors of a water pump, a record a second; an outlier is a second of a staged fault."""
    table = _csv.read_csv(find_file("skab/skab.csv.gz"))
    names = table.column_names[3 : 3 + SENSORS]
    values = np.column_stack([np.asarray(table[name], dtype=np.float64) for name in names])
    labels = np.nan_to_num(np.asarray(table["anomaly"], dtype=np.float64)) > 0
    return LabelledTable(name="SKAB", values=values, outliers=labels, reporting=True)


def _motes() -> LabelledTable:
    """Humidity and temperature at four motes; an outlier is a reading during a staged event."""
    table = _csv.read_csv(find_file("wsn_single_hop/single_hop_sensor_network.csv"))
    values = np.column_stack([np.asarray(table[name], dtype=np.float64) for name in ("humidity", "temperature")])
    return LabelledTable(name="motes", values=values, outliers=np.asarray(table["label"]) == 1, reporting=True)


def _mixture() -> LabelledTable:
    """2,000 records of a Gaussian in five columns, the last 40 of them five times as wide."""
    values = mixture(2000, 5, seed=0, share=0.02, spread=5.0)
    return LabelledTable(name=MADE_UP, values=values, outliers=np.arange(2000) >= 1960, reporting=True)


TABLES: Final[Mapping[str, Callable[[], LabelledTable]]] = {
    **{name: partial(_adbench, name) for name in CHOSEN_ON},
    "SKAB": _pump,
    "motes": _motes,
    MADE_UP: _mixture,
}


@cache
def table_of(name: str) -> LabelledTable:
    """The table of a name, or a refusal that says what is missing."""
    return TABLES[name]()


def available(quick: bool, say: Callable[[str], None]) -> Iterator[LabelledTable]:
    """The tables that can be had here; says which cannot, and why. Of real tables alone, none is made up."""
    found = False
    for name in QUICK if quick else TABLES:
        if name == MADE_UP and found and not quick:
            return
        try:
            yield table_of(name)
        except SourceError as reason:
            say(f"skipped: {reason}")
        else:
            found = True
