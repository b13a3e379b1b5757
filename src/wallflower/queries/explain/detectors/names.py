"""From what was asked to detectors: a name and its settings, written `lof:k=20,threshold=1.5`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cache
from typing import Any, Final, get_type_hints

import numpy as np

from wallflower.errors import ParameterError
from wallflower.names import name_callable
from wallflower.queries.explain.detectors import (
    ClampedGrubbs,
    CustomDetector,
    Detector,
    Distance,
    FixedBins,
    Grubbs,
    Histogram,
    Lof,
    Pyod,
    Tukey,
)
from wallflower.query.forms import closest
from wallflower.schema import Column

DETECTORS: Final[Mapping[str, type]] = {
    "tukey": Tukey,
    "distance": Distance,
    "bins": FixedBins,
    "clamped-grubbs": ClampedGrubbs,
    "grubbs": Grubbs,
    "histogram": Histogram,
    "lof": Lof,
    "pyod": Pyod,
}
POINTS: Final = 101  # of a grid, or edges of bins, between the public bounds of the metric
_NAMES: Final = {kind: name for name, kind in DETECTORS.items()}
_GRIDS: Final[Mapping[type, str]] = {Tukey: "grid", FixedBins: "edges"}
_BETWEEN: Final[Mapping[str, type]] = {"low": float, "high": float, "points": int}


def text_of(detector: Detector | str) -> str:
    """A detector as text; what cannot be written, such as a function, is only named.

    >>> text_of(Lof(k=5)), text_of(Tukey((0.0, 1.0, 2.5)))
    ('lof:k=5', 'tukey:grid=0.0/1.0/2.5')
    """
    if isinstance(detector, str):
        return detector
    if isinstance(detector, CustomDetector):
        return str(detector)
    kind: Any = type(detector)
    if kind not in _NAMES:
        raise ParameterError(
            f"detector: a {kind.__name__} is not a detector. It is a name with settings, an object of "
            "wallflower.queries.explain.detectors, or a function of (values, index). Pass one of them, such as "
            "wallflower.CustomDetector(function)."
        )
    stated = [item for item in fields(kind) if getattr(detector, item.name) != item.default]
    settings = ",".join(f"{item.name}={_format_value(getattr(detector, item.name))}" for item in stated)
    return f"{_NAMES[kind]}:{settings}" if settings else _NAMES[kind]


def wrap_detector(detector: object) -> object:
    """A function, or an object that keeps the protocol of a detector, as a `CustomDetector`; anything else unchanged.

    >>> str(wrap_detector(max))
    'custom:builtins.max'
    """
    if isinstance(detector, str | CustomDetector) or type(detector) in _NAMES:
        return detector
    judge = getattr(detector, "outlier", None)
    if callable(judge) and not isinstance(detector, type):
        return CustomDetector(judge, name=name_callable(detector))
    return CustomDetector(detector) if callable(detector) and not isinstance(detector, type) else detector


def name_of(detector: Detector | str) -> str:
    """The name of a detector, without its settings.

    >>> name_of("lof:k=5")
    'lof'
    """
    return text_of(detector).partition(":")[0]


def detector_of(text: str, metric: Column, size: int) -> Detector:
    """The detector that a text describes; grids and clamps without bounds take those of the metric.

    >>> detector_of("grubbs:alpha=0.01", Column("salary"), 1000)
    Grubbs(alpha=0.01)
    >>> len(detector_of("tukey:fence=3", Column("salary", low=0, high=100), 1000).grid)
    101
    """
    kind, given = _parse(text)
    if kind in _GRIDS:
        bounds = {name: given.pop(name) for name in _BETWEEN if name in given}
        if _GRIDS[kind] not in given:
            low, high = _bounds(text, bounds, metric)
            points = bounds.get("points", POINTS)
            if not 2 <= points <= 4096:
                raise ParameterError(f"detector: {points} points make no grid; pass 2 to 4096.")
            given[_GRIDS[kind]] = tuple(np.linspace(low, high, points).tolist())
    if kind is ClampedGrubbs:
        given["low"], given["high"] = _bounds(text, given, metric)
        given.setdefault("largest", max(3, size))
    missing = [item.name for item in fields(kind) if item.default is MISSING and item.name not in given]
    if missing:
        raise ParameterError(
            f"detector: {_NAMES[kind]} needs {', '.join(missing)}; write {_NAMES[kind]}:{missing[0]}=..."
        )
    made: Detector = kind(**given)
    return made


def kind_of(text: str) -> type:
    """The class of the detector that a text describes; its settings are read, and refused if they are not known."""
    return CustomDetector if text.startswith("custom:") else _parse(text)[0]


def _parse(text: str) -> tuple[type, dict[str, Any]]:
    name, _, rest = text.strip().partition(":")
    if name not in DETECTORS:
        known = ", ".join(DETECTORS)
        raise ParameterError(f"detector: {name[:40]!r} is not known; there are {known}. {closest(name, DETECTORS)}")
    kind = DETECTORS[name]
    hints = {**_hints(kind), **(_BETWEEN if kind in _GRIDS else {})}
    given = {}
    for part in filter(None, rest.split(",")):
        key, sign, value = (piece.strip() for piece in part.partition("="))
        if key not in hints or not sign:
            raise ParameterError(
                f"detector: {name} takes {', '.join(hints)}, written {name}:{next(iter(hints))}=..., "
                f"and not {part[:40]!r}. {closest(key, hints)}"
            )
        given[key] = _parse_value(key, hints[key], value)
    return kind, given


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _parse_value(key: str, hint: Any, value: str) -> Any:
    try:
        if hint in (int, float):
            return hint(value)
        return value if hint is Any else tuple(map(float, value.split("/")))
    except ValueError:
        raise ParameterError(
            f"detector: {key}={value[:40]!r} is not a number; write {key}=1, lists as 1/2/3."
        ) from None


def _bounds(text: str, given: Mapping[str, Any], metric: Column) -> tuple[float, float]:
    low, high = given.get("low", metric.low), given.get("high", metric.high)
    if low is None or high is None or not low < high:
        name = text.partition(":")[0]
        raise ParameterError(
            f"detector: {name} needs public bounds of {metric.name}. State low and high of {metric.name} in the "
            f"domain file, or write {name}:low=0,high=500000."
        )
    return float(low), float(high)


def _format_value(value: Any) -> str:
    return "/".join(map(repr, value)) if isinstance(value, tuple) else str(value)
