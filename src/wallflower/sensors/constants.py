"""The public constants of a stream that one process plays alone, from what was stated."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from wallflower.errors import ParameterError
from wallflower.privacy import Exact
from wallflower.sensors.parameters import Direct, Parameters

Columns = Mapping[str, Mapping[str, Exact]]

SENSOR, WINDOW = 1, 0  # of which there is one each
_BITS: Final = 16  # of a score, unless the threshold needs more
_NOBODY: Final = "00" * 32  # in one process nobody signs
_ALONE: Final[Mapping[str, Any]] = {
    "stream": "notebook",
    "starts": 0,
    "length": "1",
    "grace": "0",
    "patience": "0",
    "sensors": 1,
    "analyst": _NOBODY,
    "correction": _NOBODY,
    "owner": _NOBODY,
}


def state(
    *,
    columns: Columns,
    epsilon: Exact,
    threshold: Exact | None,
    settings: Mapping[str, Any] | None,
    centre: Sequence[Exact] | None,
    grid: Exact,
    noise: str,
    seal: str,
) -> Parameters:
    """The parameter set, or a refusal."""
    stated = {
        "columns": _columns(columns),
        "centre": ["0"] * len(columns) if centre is None else list(map(_text, centre)),
        "grid": _text(grid),
        "epsilon": _text(epsilon),
        "noise": noise,
        "settings": _settings(threshold, settings, grid),
        "seal": seal,
    }
    parameters = Parameters.from_json({**stated, **_ALONE})
    _require_judges(parameters)
    _require_reach(parameters, threshold)
    return parameters


def _columns(columns: Columns) -> list[dict[str, Any]]:
    if not isinstance(columns, Mapping) or not all(isinstance(facts, Mapping) for facts in columns.values()):
        raise ParameterError(
            "columns: each has a name and its public facts. Pass a mapping such as "
            "{'temperature': {'center': '20', 'scale': '3', 'range': '12', 'low': '-40', 'high': '85'}}."
        )
    return [{"name": name, **{fact: _text(value) for fact, value in facts.items()}} for name, facts in columns.items()]


def _settings(threshold: Exact | None, settings: Mapping[str, Any] | None, grid: Exact) -> dict[str, Any]:
    """Those that were stated, or those of mode exact, whose scores then count in steps of the grid."""
    if (threshold is None) == (settings is None):
        raise ParameterError(
            "threshold, settings: state one of them. A threshold such as '5' is a distance from the centre in scaled "
            "units; settings are those of a mode, such as {'mode': 'grid', 'bound': '4', 'step': '2'}."
        )
    if settings is not None:
        return {name: _as_text(value) for name, value in settings.items()}
    bits = _BITS
    with suppress(ValueError, TypeError, ZeroDivisionError):  # refused where the set is read, with words of its own
        bits = max(bits, math.ceil(Fraction(_text(threshold)) / Fraction(_text(grid))).bit_length() + 1)
    return {"mode": "exact", "unit": _text(grid), "bits": bits, "thresholds": [_text(threshold)]}


def _as_text(value: Any) -> Any:
    return [_text(item) for item in value] if isinstance(value, list | tuple) else _text(value)


def _text(value: Any) -> Any:
    """Exact numbers as text; all else as it is, to be refused where it is read."""
    return str(Fraction(value)) if isinstance(value, Fraction | Decimal) else value


def _require_judges(parameters: Parameters) -> None:
    if isinstance(parameters.settings, Direct):
        raise ParameterError(
            "settings: in mode direct a sensor compares by itself, and there is nothing for two servers to judge. "
            "State exact, grid or paper here; `wallflower sensors demo --mode direct` shows it."
        )


def _require_reach(parameters: Parameters, threshold: Exact | None) -> None:
    """Refuse a threshold that no reading in the box can reach, since nothing could ever be found."""
    corners = (
        max(abs((end - column.center) / column.scale - place) for end in (column.low, column.high))
        for column, place in zip(parameters.columns, parameters.centre, strict=True)
    )
    if threshold is not None and Fraction(_text(threshold)) ** 2 > sum(corner**2 for corner in corners):
        raise ParameterError(
            "threshold: further from the centre than any corner of the box, to which readings are clipped. "
            "It is in scaled units, (value - center) / scale: lower it, or widen low and high."
        )
