"""The public constants of a stream: one versioned, signed set that every party holds, and every frame names by hash.

Nothing in it comes from the readings: centre and scaling, ranges, box and thresholds are constants of the stream. All
numbers are exact and written as text. Lengths are in units of the scaled columns, (value - center) / scale.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Final, Literal, Self

from wallflower.errors import ParameterError
from wallflower.privacy import Kind, Loss, Neighbours
from wallflower.sensors.detectors import DBSCAN, check_detector

MOST_COLUMNS: Final = 8  # noise that is alike in all directions is drawn for so many
MOST_BATCH: Final = 100_000
MOST_THRESHOLDS: Final = 16
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_NUMBER: Final = re.compile(r"-?\d{1,15}(\.\d{1,15})?|-?\d{1,15}/\d{1,15}", re.ASCII)
_KEY: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a reading, in its own units."""

    name: str
    center: Fraction = field(metadata={"help": "what the scaled column has as 0"})
    scale: Fraction = field(metadata={"help": "what the scaled column has as 1"})
    range: Fraction = field(metadata={"help": "how far apart usual readings are; ε is stated for this distance"})
    low: Fraction = field(metadata={"help": "readings below are clipped to it"})
    high: Fraction = field(metadata={"help": "readings above are clipped to it"})

    def __post_init__(self) -> None:
        _require(bool(self.name), "column", "has no name", "name it")
        _require(self.scale > 0 < self.range, self.name, "has no scale or range above 0", "state both")
        _require(self.low < self.high, self.name, "has a box with no inside", "state low below high")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """Two servers compare without learning; thresholds are distances from the centre."""

    mode: ClassVar = "exact"
    bits: int = field(default=16, metadata={"help": "of a masked score"})
    unit: Fraction = field(metadata={"help": "the distance that a score counts in"})
    thresholds: tuple[Fraction, ...] = field(default=(), metadata={"help": "agreed; default: one is chosen privately"})
    limit: int = field(default=1, metadata={"help": "how many thresholds a window may be evaluated at"})
    places: int = field(default=64, metadata={"help": "thresholds that a private choice looks at"})
    choice_epsilon: Fraction | None = field(default=None, metadata={"help": "loss of a private choice"})
    tags: bool = field(default=True, metadata={"help": "whether shares that were tampered with are refused"})

    def __post_init__(self) -> None:
        _require(4 <= self.bits <= 32 and self.unit > 0, "exact", "needs 4 to 32 bits and a unit above 0", "state them")
        _require(2 <= self.places <= min(4096, self.top), "exact", "looks at too few or too many places", "state 64")
        _require(1 <= self.limit <= MOST_THRESHOLDS, "exact", f"has no limit of 1 to {MOST_THRESHOLDS}", "state one")
        _require(len(self.thresholds) <= self.limit, "exact", "has more thresholds than its limit", "state fewer")
        private = self.choice_epsilon is not None
        _require(private != bool(self.thresholds), "exact", "needs thresholds or choice_epsilon", "state one of them")
        scores = self.scores
        _require(all(a < b for a, b in pairwise(scores)), "exact", "is out of order", "sort it")
        _require(all(0 < score <= self.top for score in scores), "exact", "has thresholds beyond its bits", "add bits")

    @property
    def top(self) -> int:
        """The largest score."""
        return int(2 ** (self.bits - 1) - 1)

    @property
    def scores(self) -> tuple[int, ...]:
        """The thresholds as scores, rounded up: a distance is at least the threshold where its score is."""
        return tuple(-int(-threshold // self.unit) for threshold in self.thresholds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """No cryptography: the analyst tells rings of width `step`, the correction server compares."""

    mode: ClassVar = "grid"
    bound: Fraction = field(metadata={"help": "nothing nearer to the centre is ever flagged"})
    step: Fraction = field(metadata={"help": "everything from bound + step on is flagged"})

    def __post_init__(self) -> None:
        _require(self.bound > 0 < self.step, "grid", "needs a bound and a step above 0", "state both")


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """The correction of the paper, after a detector of outliers on perturbed readings."""

    mode: ClassVar = "paper"
    radius: Fraction = field(default=Fraction(1, 2), metadata={"help": "of DBSCAN"})
    neighbours: int = field(default=15, metadata={"help": "of DBSCAN"})
    width: Fraction = field(metadata={"help": "how wide the region of the outliers is"})
    gap: Literal["upper", "literal"] = field(default="upper", metadata={"help": "which rule sets the threshold"})
    detector: str = field(default=DBSCAN, metadata={"help": "dbscan, or a class of scikit-learn or PyOD"})

    def __post_init__(self) -> None:
        check_detector(self.detector)
        _require(self.radius > 0 and self.neighbours > 0, "paper", "needs radius and neighbours above 0", "state both")
        _require(self.width >= 0, "paper", "has a width below 0", "state 0 or more")
        _require(self.gap in ("upper", "literal"), "paper", f"knows no gap {self.gap!r}", "write upper or literal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Direct:
    """The sensor compares and seals the bit to the owner; no perturbed reading leaves it."""

    mode: ClassVar = "direct"
    threshold: Fraction = field(metadata={"help": "distances from here on are outliers"})

    def __post_init__(self) -> None:
        _require(self.threshold > 0, "direct", "needs a threshold above 0", "state it")


Mode = Exact | Grid | Paper | Direct
MODES: Final[Mapping[str, type[Mode]]] = {"exact": Exact, "grid": Grid, "paper": Paper, "direct": Direct}


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """The set. Two that differ anywhere have different hashes, and frames of one are refused under the other."""

    stream: str = field(metadata={"help": "name: small letters, digits and -"})
    version: int = field(default=1, metadata={"help": "counts up with every change"})
    columns: tuple[Column, ...] = field(metadata={"help": "of a reading"})
    centre: tuple[Fraction, ...] = field(metadata={"help": "distances are measured from it, in scaled units"})
    grid: Fraction = field(metadata={"help": "readings and noise are whole numbers of this step, in scaled units"})
    epsilon: Fraction = field(metadata={"help": "loss of a reading, for usual readings a range apart in every column"})
    noise: Literal["planar", "columns"] = field(default="planar", metadata={"help": "shape of the noise"})
    settings: Mode = field(metadata={"help": "the mode and what belongs to it"})
    starts: int = field(metadata={"help": "when window 0 opens, in seconds since 1970"})
    length: Fraction = field(metadata={"help": "seconds of a window"})
    grace: Fraction = field(metadata={"help": "seconds after its end in which a window still takes readings"})
    patience: Fraction = field(metadata={"help": "seconds more in which servers wait for each other"})
    sensors: int = field(default=0, metadata={"help": "so many commits close a window early; 0: only the clock does"})
    analyst: str = field(metadata={"help": "Ed25519 key, in hexadecimal"})
    correction: str = field(metadata={"help": "Ed25519 key, in hexadecimal"})
    owner: str = field(metadata={"help": "Ed25519 key, in hexadecimal"})
    seal: str = field(metadata={"help": "X25519 key that results are sealed to, in hexadecimal"})

    def __post_init__(self) -> None:
        _require(bool(_NAME.fullmatch(self.stream)), "stream", "is no name", "use small letters, digits and -")
        _require(1 <= len(self.columns) <= MOST_COLUMNS, "columns", f"are not 1 to {MOST_COLUMNS}", "list them")
        _require(len(self.centre) == len(self.columns), "centre", "does not fit the columns", "state one for each")
        _require(self.version >= 1 and self.sensors >= 0, "version", "or sensors is below its least", "count up from 1")
        _require(0 < self.grid <= 1, "grid", "is no step", "state one above 0 and up to 1, such as '0.001'")
        for name, part in self._lengths():
            _require((part / self.grid).denominator == 1, name, "is no whole number of grid steps", "round it to them")
        _require(0 < self.epsilon <= 1000, "epsilon", "is not above 0", "state a loss such as '0.2'")
        _require(self.noise in ("planar", "columns"), "noise", f"is not {self.noise!r}", "write planar or columns")
        _require(self.length > 0 <= self.grace and self.patience >= 0, "length", "is no time", "state seconds")
        for name in ("analyst", "correction", "owner", "seal"):
            _require(bool(_KEY.fullmatch(getattr(self, name))), name, "is no key", "take what `sensors keys` printed")

    @cached_property
    def body(self) -> bytes:
        """The one way to write this set, which is what is signed."""
        return json.dumps(_plain(self), sort_keys=True, separators=(",", ":")).encode("ascii")

    @cached_property
    def hash(self) -> bytes:
        """The hash by which frames name this set."""
        return hashlib.sha256(self.body).digest()

    def _lengths(self) -> list[tuple[str, Fraction]]:
        """Lengths that are compared with distances, which are whole numbers of steps."""
        match self.settings:
            case Exact(unit=unit):
                own = [("unit", unit)]
            case Grid(bound=bound, step=step):
                own = [("bound", bound), ("step", step)]
            case Direct(threshold=threshold):
                own = [("threshold", threshold)]
            case Paper():
                own = []
        return [*(("centre", place) for place in self.centre), *own]

    def steps(self, length: Fraction) -> int:
        """A length in whole steps of the grid."""
        return int(length / self.grid)

    @property
    def middle(self) -> list[int]:
        """The centre, in steps of the grid."""
        return [self.steps(place) for place in self.centre]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def loss(self) -> Loss:
        """What one reading costs its sensor: the noise on it, and its part in a privately chosen threshold.  (T)

        Nothing where no perturbed reading leaves it.
        """
        chosen = getattr(self.settings, "choice_epsilon", None) or Fraction()
        spent = Fraction() if isinstance(self.settings, Direct) else self.epsilon + chosen
        return Loss(spent, kind=Kind.METRIC, neighbours=Neighbours.READING)

    def opens(self, window: int) -> float:
        return float(self.starts + window * self.length)

    def earliest(self, window: int) -> float:
        """From when on a window takes readings: one length before it opens, since no two clocks agree."""
        return float(self.starts + (window - 1) * self.length)

    def closes(self, window: int) -> float:
        """From when on a window takes no readings."""
        return float(self.starts + (window + 1) * self.length + self.grace)

    def gives_up(self, window: int) -> float:
        """From when on servers wait no longer for each other."""
        return float(self.starts + (window + 1) * self.length + self.grace + self.patience)

    def to_json(self) -> dict[str, Any]:
        written: dict[str, Any] = _plain(self)
        return written

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Read a set strictly: what is missing or not known is refused."""
        given = dict(stored)
        columns, settings = given.get("columns"), given.get("settings")
        if not isinstance(columns, list) or not isinstance(settings, dict):
            raise ParameterError("parameters: columns is a list and settings a table. Write both so.")
        mode = MODES.get(str(settings.get("mode")))
        if mode is None:
            raise ParameterError(f"settings: the mode is one of {', '.join(MODES)}. Write mode = 'exact'.")
        own = {name: value for name, value in settings.items() if name != "mode"}
        given |= {"columns": tuple(_build(Column, column) for column in columns), "settings": _build(mode, own)}
        made: Self = _build(cls, given)
        return made


def _build(cls: Any, given: Any) -> Any:
    if not isinstance(given, Mapping):
        raise ParameterError(f"{cls.__name__.lower()}: it is written as a table of names and values.")
    known = {item.name: item for item in fields(cls)}
    unknown = sorted(set(map(str, given)) - set(known))
    missing = sorted(name for name, item in known.items() if item.default is MISSING and name not in given)
    if unknown or missing:
        wrong = f"{unknown[0]!r} is not known" if unknown else f"{missing[0]!r} is missing"
        raise ParameterError(f"{cls.__name__.lower()}: {wrong}; it has {', '.join(known)}. Correct it.")
    return cls(**{name: _read_value(str(known[name].type), value, name) for name, value in given.items()})


def _read_value(hint: str, value: Any, name: str) -> Any:
    """A value as its field wants it; the hints are texts, since annotations are not evaluated."""
    if hint.startswith("tuple[Fraction"):
        _require(isinstance(value, list), name, "is no list", "write a list of numbers as text")
        return tuple(_fraction(item, name) for item in value)
    if hint.startswith("Fraction"):
        return None if value is None and "None" in hint else _fraction(value, name)
    if hint in ("int", "bool"):
        _require(type(value) is {"int": int, "bool": bool}[hint], name, f"is no {hint}", "correct it")
    if hint == "str" or hint.startswith("Literal"):
        _require(isinstance(value, str), name, "is no text", "put it in quotes")
    return value


def _fraction(value: Any, name: str) -> Fraction:
    if isinstance(value, float):
        raise ParameterError(f"{name}: {value!r} is a float and only nearly what you wrote; pass '{value!r}' as text.")
    text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    try:
        if _NUMBER.fullmatch(text):
            return Fraction(text)
    except ZeroDivisionError:
        pass
    raise ParameterError(f"{name}: not a number as text. Write '0.5', '-3' or '1/3'.")


def _plain(value: Any) -> Any:
    """A value as JSON has it: fractions as text, settings with their mode."""
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Column | Mode | Parameters):
        mode = {"mode": value.mode} if isinstance(value, Mode) else {}
        return mode | {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    return value


def _require(holds: bool, name: str, fault: str, remedy: str) -> None:
    if not holds:
        raise ParameterError(f"{name}: {fault}; {remedy}.")
