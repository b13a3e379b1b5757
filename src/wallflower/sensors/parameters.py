"""The public parameter set of a stream: versioned, signed by the stream owner, and named by hash in every frame.

Nothing in it may come from the readings: centre, scale, ranges, box and thresholds are public constants. Numbers are
exact and written as text. Lengths are in units of the scaled columns, (value - centre) / scale. `usual_ranges` and
`outlier_width` estimate two of the constants from a history of other, public readings.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wallflower.errors import DataError, ParameterError
from wallflower.machine.strict_reader import ALIAS, TAG, read_table, to_table
from wallflower.privacy import Exact as ExactNumber
from wallflower.privacy import Kind, Loss, Neighbours, exact
from wallflower.sensors.detectors import DBSCAN, check_detector

MAX_COLUMNS: Final = 8  # planar noise is drawn for up to 8 columns
MAX_BATCH_READINGS: Final = 100_000
MAX_THRESHOLDS: Final = 16
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_KEY: Final = re.compile(r"[0-9a-f]{64}")
_ROUNDED: Final = Context(prec=12)  # the difference of two floats has no more correct digits
_SIX_DIGITS_UP: Final = Context(prec=6, rounding=ROUND_CEILING)
_MIN_RANGE, _MAX_RANGE = 1e-9, 1e9  # what a parameter set can write down with six digits


def _require(holds: bool, name: str, wrong: str, remedy: str) -> None:
    if not holds:
        raise ParameterError(f"{name}: {wrong}. {remedy}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a reading, in its own units.

    >>> Column(name="t", centre=Fraction(20), scale=Fraction(3), range=Fraction(12), low=Fraction(0), high=Fraction(99))
    ... # doctest: +ELLIPSIS
    Column(name='t', centre=Fraction(20, 1), ...)
    """

    name: str
    centre: Fraction = field(metadata={ALIAS: "center", "help": "value that the scaled column has as 0"})
    scale: Fraction = field(metadata={"help": "difference that the scaled column has as 1"})
    range: Fraction = field(metadata={"help": "how far apart usual readings are; ε is stated for this distance"})
    low: Fraction = field(metadata={"help": "readings below are clipped to it"})
    high: Fraction = field(metadata={"help": "readings above are clipped to it"})

    def __post_init__(self) -> None:
        _require(bool(self.name), "columns", "a column has no name", "Name it")
        _require(self.scale > 0 < self.range, self.name, "scale and range must be above 0", "Correct them")
        _require(self.low < self.high, self.name, "low must be below high", "Correct them")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """Mode exact: two servers compare without learning; thresholds are distances from the centre."""

    mode: ClassVar = "exact"
    bits: int = field(default=16, metadata={"help": "bits of a masked score"})
    unit: Fraction = field(metadata={"help": "distance that one step of a score stands for"})
    thresholds: tuple[Fraction, ...] = field(default=(), metadata={"help": "default: one is chosen privately"})
    limit: int = field(default=1, metadata={"help": "maximum number of thresholds evaluated in a window"})
    places: int = field(default=64, metadata={"help": "bins of the histogram that a private choice looks at"})
    choice_epsilon: Fraction | None = field(default=None, metadata={"help": "ε of a private choice"})
    tags: bool = field(default=True, metadata={"help": "detect shares that were tampered with"})

    def __post_init__(self) -> None:
        _require(4 <= self.bits <= 32, "bits", "must be 4 to 32", "16 suits most streams")
        _require(self.unit > 0, "unit", "must be above 0", "State the distance of one step")
        _require(
            2 <= self.places <= min(4096, self.max_score), "places", "must be 2 to 4096 and fit the bits", "Use 64"
        )
        _require(1 <= self.limit <= MAX_THRESHOLDS, "limit", f"must be 1 to {MAX_THRESHOLDS}", "Correct it")
        _require(len(self.thresholds) <= self.limit, "thresholds", "are more than limit allows", "State fewer")
        is_private = self.choice_epsilon is not None
        _require(
            is_private != bool(self.thresholds), "exact", "needs thresholds or choice_epsilon", "State one of them"
        )
        _require(all(a < b for a, b in pairwise(self.scores)), "thresholds", "must rise", "Sort them")
        in_domain = all(0 < score <= self.max_score for score in self.scores)
        _require(in_domain, "thresholds", "must be above 0 and fit the bits", "Use more bits or a larger unit")

    @property
    def max_score(self) -> int:
        """The largest score."""
        return int(2 ** (self.bits - 1) - 1)

    @property
    def scores(self) -> tuple[int, ...]:
        """The thresholds as scores, rounded up: a distance reaches the threshold exactly if its score does."""
        return tuple(-int(-threshold // self.unit) for threshold in self.thresholds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Mode grid, without cryptography: the analyst reports rings of width `step`, the correction server compares."""

    mode: ClassVar = "grid"
    bound: Fraction = field(metadata={"help": "no reading nearer to the centre is ever flagged"})
    step: Fraction = field(metadata={"help": "every reading from bound + step on is flagged"})

    def __post_init__(self) -> None:
        _require(self.bound > 0 < self.step, "grid", "bound and step must be above 0", "State both")


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """Mode paper: the correction of [Boe17], after a detector of outliers on perturbed readings."""

    mode: ClassVar = "paper"
    radius: Fraction = field(default=Fraction(1, 2), metadata={"help": "DBSCAN radius"})
    neighbours: int = field(default=15, metadata={ALIAS: "neighbors", "help": "DBSCAN min_samples"})
    width: Fraction = field(metadata={"help": "width of the region of the outliers"})
    gap: Literal["upper", "literal"] = field(default="upper", metadata={"help": "rule that sets the threshold"})
    detector: str = field(default=DBSCAN, metadata={"help": "dbscan, or a class of scikit-learn or PyOD"})

    def __post_init__(self) -> None:
        check_detector(self.detector)
        _require(self.radius > 0 < self.neighbours, "paper", "radius and neighbours must be above 0", "State both")
        _require(self.width >= 0, "width", "must be 0 or more", "Correct it")
        _require(self.gap in ("upper", "literal"), "gap", "must be one of upper, literal", "Write one of them")


@dataclass(frozen=True, slots=True, kw_only=True)
class Direct:
    """Mode direct: the sensor compares and seals the bit to the stream owner; no perturbed reading leaves it."""

    mode: ClassVar = "direct"
    threshold: Fraction = field(metadata={"help": "distances from here on are outliers"})

    def __post_init__(self) -> None:
        _require(self.threshold > 0, "threshold", "must be above 0", "State it")


Mode = Exact | Grid | Paper | Direct


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """The parameter set. Two that differ anywhere have different hashes; frames of one are refused under the other."""

    stream: str = field(metadata={"help": "name: lower-case letters, digits and -"})
    version: int = field(default=1, metadata={"help": "rises with every change"})
    columns: tuple[Column, ...] = field(metadata={"help": "columns of a reading"})
    centre: tuple[Fraction, ...] = field(
        metadata={ALIAS: "center", "help": "point that distances are measured from, in scaled units"}
    )
    grid: Fraction = field(metadata={"help": "readings and noise are whole numbers of this step, in scaled units"})
    epsilon: Fraction = field(metadata={"help": "ε of a reading, for usual readings a range apart in every column"})
    noise: Literal["planar", "columns"] = field(default="planar", metadata={"help": "shape of the noise"})
    settings: Mode = field(metadata={TAG: "mode", "help": "the mode and its settings"})
    starts: int = field(metadata={"help": "when window 0 opens, in seconds since 1970"})
    length: Fraction = field(metadata={"help": "seconds of a window"})
    grace: Fraction = field(metadata={"help": "seconds after its end in which a window still takes readings"})
    patience: Fraction = field(metadata={"help": "seconds after that in which the servers wait for each other"})
    sensors: int = field(default=0, metadata={"help": "commits that close a window early; 0: only the clock does"})
    analyst: str = field(metadata={"help": "Ed25519 key, in hexadecimal"})
    correction: str = field(metadata={"help": "Ed25519 key, in hexadecimal"})
    owner: str = field(metadata={"help": "Ed25519 key, in hexadecimal"})
    seal: str = field(metadata={"help": "X25519 key that results are sealed to, in hexadecimal"})

    def __post_init__(self) -> None:
        _require(
            bool(_NAME.fullmatch(self.stream)),
            "stream",
            "must be lower-case letters, digits and -",
            "Rename the stream",
        )
        _require(1 <= len(self.columns) <= MAX_COLUMNS, "columns", f"must be 1 to {MAX_COLUMNS}", "List them")
        _require(len(self.centre) == len(self.columns), "centre", "must have a number for each column", "State them")
        _require(self.version >= 1, "version", "must be 1 or more", "Correct it")
        _require(self.sensors >= 0, "sensors", "must be 0 or more", "Correct it")
        _require(0 < self.grid <= 1, "grid", "must be above 0 and at most 1", "Use a step such as '0.001'")
        for name, length in self._compared_lengths():
            _require((length / self.grid).denominator == 1, name, "must be a whole number of grid steps", "Round it")
        _require(0 < self.epsilon <= 1000, "epsilon", "must be above 0 and at most 1000", "Use one such as '0.2'")
        _require(self.noise in ("planar", "columns"), "noise", "must be one of planar, columns", "Write one of them")
        _require(self.length > 0, "length", "must be above 0", "State seconds")
        _require(self.grace >= 0 <= self.patience, "grace, patience", "must be 0 or more", "State seconds")
        for name in ("analyst", "correction", "owner", "seal"):
            is_key = bool(_KEY.fullmatch(getattr(self, name)))
            _require(is_key, name, "must be a key in hexadecimal", "Take the one that `sensors keys` made")

    @cached_property
    def body(self) -> bytes:
        """The canonical bytes of this set, which are what is signed."""
        return json.dumps(self.to_json(), sort_keys=True, separators=(",", ":")).encode("ascii")

    @cached_property
    def hash(self) -> bytes:
        """The SHA-256 by which frames name this set."""
        return hashlib.sha256(self.body).digest()

    def _compared_lengths(self) -> list[tuple[str, Fraction]]:
        """Lengths that are compared with distances, which are whole numbers of steps."""
        names = {"exact": ("unit",), "grid": ("bound", "step"), "direct": ("threshold",), "paper": ()}
        lengths = [(name, getattr(self.settings, name)) for name in names[self.settings.mode]]
        return [*(("centre", coordinate) for coordinate in self.centre), *lengths]

    def to_steps(self, length: Fraction) -> int:
        """Return a length in whole steps of the grid."""
        return int(length / self.grid)

    @property
    def centre_steps(self) -> list[int]:
        """The centre, in steps of the grid."""
        return [self.to_steps(coordinate) for coordinate in self.centre]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def loss(self) -> Loss:
        """Cost of one reading: its noise, and its part in a privately chosen threshold; 0 in mode direct.  (T)"""
        if isinstance(self.settings, Direct):
            return Loss(Fraction(), kind=Kind.METRIC, neighbours=Neighbours.READING)
        choice = getattr(self.settings, "choice_epsilon", None) or Fraction()
        return Loss(self.epsilon + choice, kind=Kind.METRIC, neighbours=Neighbours.READING)

    def to_units(self, steps: NDArray[Any]) -> NDArray[np.float64]:
        """Return points of the grid in the units of the columns."""
        centre = np.array([float(column.centre) for column in self.columns])
        scale = np.array([float(column.scale) for column in self.columns])
        return np.asarray(steps * float(self.grid) * scale + centre, dtype=np.float64)

    def accepts_from(self, window: int) -> float:
        """Return when a window starts to take readings: one length before it opens, since clocks differ."""
        return float(self.starts + (window - 1) * self.length)

    def closes_at(self, window: int) -> float:
        """Return when a window stops taking readings."""
        return float(self.starts + (window + 1) * self.length + self.grace)

    def gives_up_at(self, window: int) -> float:
        """Return when the servers stop waiting for each other."""
        return float(self.starts + (window + 1) * self.length + self.grace + self.patience)

    def to_json(self) -> dict[str, Any]:
        """Return the set as `from_json` reads it."""
        table: dict[str, Any] = to_table(self)
        return table

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Parameters:
        """Read a set strictly; raise ParameterError for unknown, missing and wrong values."""
        return read_table(Parameters, stored)


def usual_ranges(history: ArrayLike, *, outlier_share: ExactNumber) -> tuple[str, ...]:
    """Return how far apart usual readings are in each column of a public history: a `range` for each, as text.

    These are the percentiles of [Boe17, eq. 1]. Half of `outlier_share` is cut off at either end, so that 0.1 takes the
    span between percentiles 5 and 95. Spans are rounded up to six digits: a wider range means more noise. Percentiles
    between two ranks are interpolated, as numpy and R do it. Taken from the readings that it protects, a range would
    reveal something about them; so the history must be of other readings, which may be public.

    >>> usual_ranges([[20.0, 40.0], [21.0, 44.0], [22.5, 45.0], [24.0, 48.0]], outlier_share="0.1")
    ('3.625', '6.95')
    """
    share, values = exact(outlier_share, "outlier_share"), _check_history(history)
    if share >= 1:
        raise ParameterError("outlier_share: must be below 1. For one reading in ten pass '0.1'.")
    cut = float(50 * share)
    low, high = np.percentile(values, (cut, 100 - cut), axis=0)
    spans = (high - low).tolist()
    for number, span in enumerate(spans, start=1):
        if not _MIN_RANGE <= span <= _MAX_RANGE:
            raise DataError(
                f"history: the percentiles of column {number} are too near or too far apart for a range. "
                "Pass a longer history, another unit, or state the range from what is known of the sensor.",
                column=str(number),
            )
    return tuple(map(_round_up, spans))


def outlier_width(history: ArrayLike, is_outlier: ArrayLike, *, centre: ArrayLike | None = None) -> str:
    """Return how wide the region of past outliers is: the `width` of mode paper, w_O of [Boe17, 6.1], as text.

    It is the distance from the centre of the furthest outlier of the history less that of the nearest, rounded up to
    six digits. The history is public, and of other readings than those to be protected.

    history     rows of numbers, one for each reading, in scaled units: (value - centre) / scale
    is_outlier  whether each reading was an outlier
    centre      centre of the stream, in scaled units; default: 0 in every column

    >>> outlier_width([[0.0, 1.0], [3.0, 4.0], [6.0, 8.0], [0.0, -7.5]], [False, True, True, True])
    '5'
    """
    values, flags = _check_history(history), np.asarray(is_outlier)
    if flags.shape != (len(values),) or flags.dtype != np.bool_:
        raise DataError("is_outlier: must be one truth value for each reading of the history. Pass True or False.")
    origin = np.zeros(values.shape[1]) if centre is None else np.asarray(centre, dtype=np.float64)
    if origin.shape != (values.shape[1],) or not np.isfinite(origin).all():
        raise ParameterError(f"centre: must be {values.shape[1]} finite numbers, one for each column. Pass them.")
    if flags.sum() < 2:
        raise DataError(
            "history: a width needs two outliers, and it has fewer. Pass a longer history, or state the width from "
            "what is known of the sensor."
        )
    distances = np.sqrt(((values[flags] - origin) ** 2).sum(axis=1))
    span = float(distances.max() - distances.min())
    if span > _MAX_RANGE:
        raise DataError("history: its outliers are too far apart for a width. Pass scaled units.")
    return _round_up(span)


def _check_history(history: ArrayLike) -> NDArray[np.float64]:
    try:
        values = np.asarray(history, dtype=np.float64)
    except (ValueError, TypeError):
        raise DataError("history: must be numbers. Pass rows of numbers, one for each reading.") from None
    if values.ndim != 2 or len(values) < 2 or not values.shape[1] or not np.isfinite(values).all():
        raise DataError("history: must be a table of finite numbers. Pass two rows or more, one for each reading.")
    return values


def _round_up(span: float) -> str:
    return f"{_SIX_DIGITS_UP.create_decimal(_ROUNDED.create_decimal_from_float(span)).normalize():f}"
