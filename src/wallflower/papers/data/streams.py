"""The real streams that a watch is tried on, with the public numbers each is watched by.

They are read from where `tables.found` looks; nothing is copied. Every stream begins with a history that is taken as
public and is not judged: it gives the centre, the spread and the threshold. Bounds are round numbers that anyone could
have written down beforehand.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import SourceError
from wallflower.machine.heavy import pyarrow_csv as _csv
from wallflower.neighbours.pairs import Floats
from wallflower.papers.data.tables import find_file

Bools = NDArray[np.bool_]

DAYS: Final = 60  # of flights that are history
AIRPORTS: Final[Mapping[str, int]] = {"ATL": 500, "ORD": 500, "EWR": 100}  # and flights a day, at least
FEWEST: Final = 15  # flights a day from any of the fifty airports, at least
RANGE: Final = 300  # minutes within which the delay of one flight is taken to lie, such as -60 to 240
ROWS: Final = 400  # of a SKAB file that are history, as the benchmark itself has it
SENSORS: Final = 8
PROBATION: Final = 0.15  # of a NAB file that is history, as the benchmark itself has it
NAB: Final[Mapping[str, tuple[float, float]]] = {
    "realKnownCause/ambient_temperature_system_failure.csv": (0, 120),
    "realKnownCause/cpu_utilization_asg_misconfiguration.csv": (0, 100),
    "realKnownCause/ec2_request_latency_system_failure.csv": (0, 100),
    "realKnownCause/machine_temperature_system_failure.csv": (0, 120),
    "realKnownCause/nyc_taxi.csv": (0, 40_000),
    "realKnownCause/rogue_agent_key_hold.csv": (0, 1),
    "realKnownCause/rogue_agent_key_updown.csv": (0, 10),
    "realTraffic/TravelTime_387.csv": (0, 5_000),
    "realTraffic/TravelTime_451.csv": (0, 5_000),
    "realTraffic/occupancy_6005.csv": (0, 100),
    "realTraffic/occupancy_t4013.csv": (0, 100),
    "realTraffic/speed_6005.csv": (0, 110),
    "realTraffic/speed_7578.csv": (0, 110),
    "realTraffic/speed_t4013.csv": (0, 110),
}
TAXI: Final = "realKnownCause/nyc_taxi.csv"
RIDE: Final = 6.0  # passengers of one taxi at most


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stream:
    """Observations after their history. `labels` says which are outliers, if anyone said.

    `whole` and `part` say in words what is protected: any entry whatever it was, which the bounds enforce, or only a
    change of it by at most `change`, which is assumed.
    """

    group: str
    name: str
    history: Floats
    values: Floats
    labels: Bools | None
    low: float
    high: float
    whole: str
    part: str
    change: float
    statistic: str = "sum"

    @property
    def public(self) -> dict[str, Any]:
        """What a watch is told: the centre in three digits, or of columns scaled by their history 0 and 1."""
        if self.statistic == "sum":
            return {
                "centre": round_constant(float(self.history.sum(axis=1).mean())),
                "low": self.low,
                "high": self.high,
            }
        columns = self.history.shape[1]
        unit = tuple(tuple(float(row == column) for column in range(columns)) for row in range(columns))
        return {"mean": (0.0,) * columns, "covariance": unit, "low": self.low, "high": self.high}


def streams(say: Callable[[str], None]) -> Iterator[Stream]:
    """Every stream that can be had here; says which cannot, and why."""
    for make in (flights, skab, nab):
        try:
            yield from make()
        except SourceError as reason:
            say(f"skipped: {reason}")


def flights() -> list[Stream]:
    """Mean arrival delays by day: of the 50 busiest airports together, and of single ones. Nobody labelled them."""
    table = _csv.read_csv(find_file("flight_delays/daily_arr_delay_wide_origin_top50.csv"))
    names = [name for name in table.column_names if name != "date"]
    together = _flights("50 airports", _columns(table, names), RANGE / FEWEST, "any airport's day")
    singles = {name: flown for name, flown in AIRPORTS.items() if name in names}
    return [together] + [_flights(name, _columns(table, [name]), RANGE / n, "any day") for name, n in singles.items()]


def skab() -> list[Stream]:
    """Eight sensors of a water pump, one stream a file, each column scaled by its first 400 rows."""
    table = _csv.read_csv(find_file("skab/skab.csv.gz"))
    sensors = table.column_names[3 : 3 + SENSORS]
    values, labels = _columns(table, sensors), np.nan_to_num(_columns(table, ["anomaly"])[:, 0]) > 0
    files = np.array(
        [f"{one}/{other}" for one, other in zip(*map(_texts, (table["group"], table["file"])), strict=True)]
    )
    kept = [name for name in dict.fromkeys(files.tolist()) if not name.startswith("anomaly-free")]
    return [_skab(name, values[files == name], labels[files == name]) for name in kept]


def nab() -> list[Stream]:
    """Fourteen streams of one number each, with windows around what went wrong."""
    windows = json.loads(find_file("nab/combined_windows.json").read_text(encoding="utf-8"))
    return [_nab(name, windows[name]) for name in NAB if name in windows]


def round_constant(value: float) -> float:
    """Three digits, as a public constant would be stated.

    >>> round_constant(380.2776), round_constant(-0.0012345)
    (380.0, -0.00123)
    """
    return float(f"{value:.3g}")


def _flights(name: str, values: Floats, change: float, whole: str) -> Stream:
    return Stream(
        group="flights",
        name=name,
        history=values[:DAYS],
        values=values[DAYS:],
        labels=None,
        low=-30.0,
        high=120.0,
        whole=whole,
        part="one flight",
        change=change,
    )


def _skab(name: str, values: Floats, labels: Bools) -> Stream:
    history = values[:ROWS]
    centre, spread = (
        np.array([round_constant(value) for value in found]) for found in (history.mean(0), history.std(0))
    )
    scaled = (values - centre) / spread
    return Stream(
        group="SKAB",
        name=name,
        history=scaled[:ROWS],
        values=scaled[ROWS:],
        labels=labels[ROWS:],
        low=-10.0,
        high=10.0,
        whole="any reading",
        part="half a spread",
        change=0.5,
        statistic="max",
    )


def _nab(name: str, windows: list[list[str]]) -> Stream:
    table = _csv.read_csv(find_file(f"nab/{name}"))
    values, times = _columns(table, ["value"]), table["timestamp"].to_numpy().astype("datetime64[s]")
    ends = [[np.datetime64(end.split(".")[0]) for end in window] for window in windows]
    labels = np.any([(start <= times) & (times <= end) for start, end in ends] or [times != times], axis=0)
    cut = int(PROBATION * len(values))
    is_taxi = name == TAXI
    return Stream(
        group="NAB",
        name=name.split("/")[1].removesuffix(".csv"),
        history=values[:cut],
        values=values[cut:],
        labels=labels[cut:],
        low=float(NAB[name][0]),
        high=float(NAB[name][1]),
        whole="any value",
        part="one ride" if is_taxi else "a tenth of a spread",
        change=RIDE if is_taxi else round_constant(float(values[:cut].std()) / 10),
    )


def _columns(table: Any, names: list[str]) -> Floats:
    return np.column_stack([np.asarray(table[name].to_numpy(), dtype=np.float64) for name in names])


def _texts(column: Any) -> list[str]:
    return [str(cell) for cell in column.to_pylist()]
