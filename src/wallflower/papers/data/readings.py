"""The readings that sensors are tried on, with the public constants of each stream.

Figure 3 of [Boe17] has made-up readings. Real ones are read from where `tables.found` looks; nothing is copied. All
constants are written down here, none is computed from the readings they are used for: of made-up readings they are
those of the generator, of motes those of another mote nearby that is not judged, of meters round numbers and a fuse.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np

from wallflower.errors import SourceError
from wallflower.machine.heavy import pyarrow_csv as _csv
from wallflower.machine.heavy import pyarrow_parquet as _parquet
from wallflower.papers.data.tables import find_file
from wallflower.sensors import perturbation
from wallflower.sensors.parameters import Column
from wallflower.synthetic import Flags, Floats, Ints, pick_rows, push_outliers

STEP: Final = Fraction(1, 4096)  # of the grid that readings are put on, in scaled units
BITS: Final = 16
# Radius and neighbours of DBSCAN, in scaled units, and w_O, in the units of the readings. The paper prints none of
# them: they are ours.
RADIUS, NEIGHBOURS = 0.5, 15
WIDE: Final = Fraction(6)
# Of the generator, by separation: the deviation of a column, and its range between percentiles 5 and 95.
GENERATOR: Final[Mapping[int, tuple[str, str]]] = {
    50: ("13.1", "11.9"),
    120: ("28.7", "12.3"),
    220: ("51", "12.5"),
    400: ("91.2", "12.6"),
}
INNER: Final = Fraction("6.44")  # nine in ten readings of the generator are nearer to the centre, before any is pushed
MARGIN: Final = 20  # of the box beyond the separation: one reading in 4·10⁹ is further from where it was pushed off
# Indoors from mote 2 and outdoors from mote 3, which saw no events: rounded means, deviations, and ranges between
# percentiles 5 and 95. The box is what such sensors can measure.
MOTES: Final[Mapping[int, tuple[tuple[str, str, str], tuple[str, str, str]]]] = {
    1: (("46", "1.3", "3.7"), ("28", "0.48", "1.6")),
    4: (("46", "5.7", "19.5"), ("27", "2.8", "9.1")),
}
INDOORS: Final = 1
BOXES: Final = {"humidity": ("0", "100"), "temperature": ("-10", "60")}
FUSE: Final = 7.25  # kWh that 63 A at 230 V give in half an hour
FAULT: Final = (8.0, 12.0)  # kWh that a faulty meter shows for half an hour
FAULTY: Final = 100  # readings of which one is faulty
SEED: Final = 17
UNLABELLED: Final = "meters as recorded"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SensorStream:
    """Readings, which of them are outliers, and what is public; lengths are in scaled units.

    `grid` never flags below `bound` and always from `bound` + `ring` on; `width` is how wide the outliers' region is
    taken to be by the paper's correction. `most` is how many readings one sensor sends.
    """

    name: str
    columns: tuple[Column, ...]
    values: Floats
    truth: Flags
    threshold: Fraction
    bound: Fraction
    ring: Fraction
    width: Fraction
    most: int = 1

    @property
    def points(self) -> Ints:
        """The readings clipped to the box, in steps of the grid."""
        own = self.columns
        return perturbation.clip(
            self.values,
            mean=[float(column.centre) for column in own],
            deviation=[float(column.scale) for column in own],
            low=[float((column.low - column.centre) / column.scale) for column in own],
            high=[float((column.high - column.centre) / column.scale) for column in own],
            step=STEP,
        )

    @property
    def ranges(self) -> list[Fraction]:
        return [column.range / column.scale for column in self.columns]

    @property
    def widths(self) -> list[Fraction]:
        """The widths of the box."""
        return [(column.high - column.low) / column.scale for column in self.columns]

    @property
    def unit(self) -> int:
        """How many steps a score counts in: the least power of two with which the corners of the box fit."""
        reach = max(max(c.high - c.centre, c.centre - c.low) / c.scale for c in self.columns)
        corner = float(reach / STEP) * math.sqrt(len(self.columns))
        return int(2 ** max(0, math.ceil(math.log2(corner / (2 ** (BITS - 1) - 1)))))


def steps(length: Fraction) -> int:
    """A length in whole steps of the grid; those stated here are whole."""
    return int(length / STEP)


def make_stream(separation: int, points: int, seed: int) -> SensorStream:
    """Figure 3: the outermost tenth is pushed outwards by the separation; threshold and bound are in the empty ring."""
    values, truth = push_outliers(points, float(separation), seed=seed)
    deviation, usual = map(Fraction, GENERATOR[separation])
    edge = Fraction(separation + MARGIN)
    column = {"centre": Fraction(), "scale": deviation, "range": usual, "low": -edge, "high": edge}
    return SensorStream(
        name=f"separation {separation}",
        columns=(Column(name="x", **column), Column(name="y", **column)),
        values=values,
        truth=truth,
        threshold=_round((INNER + Fraction(separation, 2)) / deviation),
        bound=_round((INNER + Fraction(separation, 4)) / deviation),
        ring=_round(Fraction(separation, 2) / deviation),
        width=WIDE / deviation,
    )


def motes() -> list[SensorStream]:
    """Humidity and temperature at two motes, every five seconds for six hours, and when events were staged there."""
    table = _csv.read_csv(find_file("wsn_single_hop/single_hop_sensor_network.csv"))
    values = np.column_stack([np.asarray(table[name].to_numpy(), dtype=np.float64) for name in BOXES])
    mote, events = table["mote_id"].to_numpy(), table["label"].to_numpy() == 1
    return [_mote(which, values[mote == which], events[mote == which]) for which in MOTES]


def meters() -> list[SensorStream]:
    """Ten households, hour by hour, in kWh of both halves: with faults put in, and as recorded, which nobody labelled.

    A faulty meter shows more than a fuse of 63 A lets through, so the border is empty for a public reason. As recorded,
    right is by definition what lies 3 kWh or more from the centre.
    """
    table = _parquet.read_table(find_file("smart_meter10/smart_meter10.parquet"))
    values, most = _hours(table)
    column = {"centre": Fraction("0.25"), "scale": Fraction("0.4"), "range": Fraction("0.95")}
    box = {"low": Fraction(), "high": Fraction(15)}
    recorded = SensorStream(
        name=UNLABELLED,
        columns=(Column(name="first half", **column, **box), Column(name="second half", **column, **box)),
        values=values,
        truth=np.zeros(len(values), dtype=np.bool_),
        threshold=Fraction(3) / column["scale"],
        bound=Fraction("2.5") / column["scale"],
        ring=Fraction("0.5") / column["scale"],
        width=Fraction(6) / column["scale"],
        most=most,
    )
    far = perturbation.distances(recorded.points, [0, 0]) >= steps(recorded.threshold)
    return [_with_faults(recorded), replace(recorded, truth=far)]


def available(makers: Iterable[Callable[[], list[SensorStream]]], say: Callable[[str], None]) -> Iterator[SensorStream]:
    """Every stream that can be had here; says which cannot, and why."""
    for make in makers:
        try:
            yield from make()
        except SourceError as reason:
            say(f"skipped: {reason}")


def _round(length: Fraction) -> Fraction:
    """A length rounded to a multiple of 1/64, which is a whole number of steps and of units."""
    return Fraction(round(64 * length), 64)


def _mote(which: int, values: Floats, events: Flags) -> SensorStream:
    columns = tuple(
        Column(name=name, centre=Fraction(c), scale=Fraction(s), range=Fraction(r), low=Fraction(lo), high=Fraction(hi))
        for (name, (lo, hi)), (c, s, r) in zip(BOXES.items(), MOTES[which], strict=True)
    )
    return SensorStream(
        name=f"mote {which}, {'indoors' if which == INDOORS else 'outdoors'}",
        columns=columns,
        values=values,
        truth=events,
        threshold=Fraction(5),
        bound=Fraction(4),
        ring=Fraction(1),
        width=Fraction(50) if which == INDOORS else Fraction(5),
        most=len(values),
    )


def _hours(table: Any) -> tuple[Floats, int]:
    """Both halves of every full hour, and how many hours the household with most has."""
    used = np.asarray(table["general_supply_kwh"].to_numpy(), dtype=np.float64)
    halves = table["reading_datetime"].to_numpy().astype("datetime64[m]").astype(np.int64) // 30
    owners = np.unique(np.array(table["customer_id"].to_pylist()), return_inverse=True)[1]
    order = np.lexsort((halves, owners))
    used, halves, owners = used[order], halves[order], owners[order]
    first = np.flatnonzero((halves[:-1] % 2 == 0) & (np.diff(halves) == 1) & (np.diff(owners) == 0))
    return np.column_stack([used[first], used[first + 1]]), int(np.bincount(owners[first]).max())


def _with_faults(recorded: SensorStream) -> SensorStream:
    count = len(recorded.values)
    few = count // FAULTY
    truth = np.zeros(count, dtype=np.bool_)
    truth[pick_rows(count, few, SEED)] = True
    values, (low, high) = recorded.values.copy(), FAULT
    for column in (0, 1):
        values[truth, column] = low + (high - low) * pick_rows(few, few, SEED + 1 + column) / few
    scale, centre = (float(each) for each in (recorded.columns[0].scale, recorded.columns[0].centre))
    usual, fault = ((end - centre) * math.sqrt(2) / scale for end in (FUSE, low))  # where both halves are at the end
    inner, outer = Fraction(math.ceil(64 * usual), 64), Fraction(math.floor(64 * fault), 64)
    return replace(
        recorded,
        name="meters with faults",
        values=values,
        truth=truth,
        threshold=_round((inner + outer) / 2),
        bound=inner,
        ring=outer - inner,
    )
