"""All detectors by name, and from text to detectors: a name with settings, such as `lof:k=20,threshold=1.5`."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import isabstract
from typing import Any, Final

from wallflower.errors import ParameterError
from wallflower.names import name_callable
from wallflower.queries.explain.detectors.base import CUSTOM, Detector, MarginDetector
from wallflower.queries.explain.detectors.bins import FixedBins
from wallflower.queries.explain.detectors.custom import CustomDetector, Pyod
from wallflower.queries.explain.detectors.distance import Distance
from wallflower.queries.explain.detectors.grubbs import ClampedGrubbs, Grubbs
from wallflower.queries.explain.detectors.histogram import Histogram
from wallflower.queries.explain.detectors.lof import Lof
from wallflower.queries.explain.detectors.tukey import Tukey
from wallflower.query.parameter import closest
from wallflower.schema import Column


def register(*classes: type[Detector]) -> dict[str, type[Detector]]:
    """Return the classes by name; refuse one that is incomplete or has no name of its own, also at run time."""
    registry: dict[str, type[Detector]] = {}
    for cls in classes:
        if isabstract(cls) or cls.kind == CUSTOM or cls.kind in registry:
            raise TypeError(f"{cls.__name__}: a detector has all methods, and a name of its own in `kind`.")
        registry[cls.kind] = cls
    return registry


DETECTORS: Final[Mapping[str, type[Detector]]] = register(
    Tukey, Distance, FixedBins, ClampedGrubbs, Grubbs, Histogram, Lof, Pyod
)


def list_detectors(*, with_margin: bool) -> str:
    """Return the names of the detectors with a margin, or of those without.

    >>> list_detectors(with_margin=True)
    'tukey, distance, bins or clamped-grubbs'
    """
    *names, last = (name for name, cls in DETECTORS.items() if issubclass(cls, MarginDetector) == with_margin)
    return f"{', '.join(names)} or {last}"


def take_detector(detector: object) -> str | Detector:
    """Return text and detectors as they are, and a function, or an object with a method `outlier`, as a detector.

    >>> str(take_detector(max))
    'custom:builtins.max'
    """
    if isinstance(detector, str):
        return detector
    if isinstance(detector, Detector):
        if DETECTORS.get(detector.kind, type(detector)) is not type(detector):
            raise ParameterError(
                f"detector: {type(detector).__name__} has the name {detector.kind!r}, which is taken. Give it a `kind` "
                "of its own, or none."
            )
        return detector
    function = getattr(detector, "outlier", detector)
    if not callable(function) or isinstance(detector, type):
        raise ParameterError(
            f"detector: a {type(detector).__name__} is not a detector. Pass a name with settings, an object of "
            "wallflower.queries.explain.detectors, or a function of (values, index)."
        )
    return CustomDetector(function, name=name_callable(detector))


def detector_name(detector: Detector | str) -> str:
    """Return the name of a detector, without its settings.

    >>> detector_name("lof:k=5")
    'lof'
    """
    return str(detector).partition(":")[0]


def detector_class(detector: Detector | str) -> type[Detector]:
    """Return the class of a detector; unknown settings in its text are refused."""
    if isinstance(detector, Detector):
        return type(detector)
    return CustomDetector if is_custom(detector) else _parse(detector)[0]


def is_custom(detector: Detector | str) -> bool:
    """Return whether a detector is code of the user's, which text can name and cannot make."""
    return isinstance(detector, str) and detector.startswith(f"{CUSTOM}:")


def make_detector(text: str, metric: Column, size: int) -> Detector:
    """Make the detector that text describes; grids and clamps without bounds take those of the metric.

    >>> make_detector("grubbs:alpha=0.01", Column("salary"), 1000)
    Grubbs(alpha=0.01)
    >>> len(make_detector("tukey:fence=3", Column("salary", low=0, high=100), 1000).grid)
    101
    """
    if is_custom(text):
        raise ParameterError(f"detector: {text[:40]!r} names code that text cannot make. Pass the detector itself.")
    cls, settings = _parse(text)
    return cls.from_settings(settings, metric, size)


def _parse(text: str) -> tuple[type[Detector], dict[str, Any]]:
    name, _, rest = text.strip().partition(":")
    if name not in DETECTORS:
        known = ", ".join(DETECTORS)
        raise ParameterError(f"detector: {name[:40]!r} is not known; there are {known}. {closest(name, DETECTORS)}")
    cls = DETECTORS[name]
    parameters, settings = cls.parameters(), {}
    for part in filter(None, rest.split(",")):
        key, sign, value = (piece.strip() for piece in part.partition("="))
        if key not in parameters or not sign:
            raise ParameterError(
                f"detector: {name} takes {', '.join(parameters)}, written {name}:{next(iter(parameters))}=..., "
                f"and not {part[:40]!r}. {closest(key, parameters)}"
            )
        settings[key] = _parse_value(key, parameters[key], value)
    return cls, settings


def _parse_value(key: str, kind: Any, value: str) -> Any:
    try:
        if kind in (int, float):
            return kind(value)
        return value if kind is Any else tuple(map(float, value.split("/")))
    except ValueError:
        raise ParameterError(
            f"detector: {key}={value[:40]!r} is not a number; write {key}=1, lists as 1/2/3."
        ) from None
