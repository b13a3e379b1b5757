"""The ranges of usual readings, from a history that is public: the percentiles of [Boe17, eq. 1].

A range is what the noise is scaled by and what ε is stated for. Taken from the readings that it shall protect it would
tell about them, so the history is of other readings, which everybody may know.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Context
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wallflower.errors import DataError, ParameterError
from wallflower.privacy import Exact, exact

_CLEAN: Final = Context(prec=12)  # the difference of two floats has no more good digits
_DIGITS: Final = Context(prec=6, rounding=ROUND_CEILING)
_LEAST, _MOST = 1e-9, 1e9  # what a parameter set can write down with six digits


def usual_ranges(history: ArrayLike, *, outlier_share: Exact) -> tuple[str, ...]:
    """How far apart usual readings are in each column of a public history: a `range` for each, as text.

    Half of `outlier_share` is left out at either end, so that 0.1 takes the span between percentiles 5 and 95. Spans
    are rounded up to six digits: a wider range means more noise. Where readings lie between two ranks, percentiles are
    interpolated, as numpy and R do it.

    >>> usual_ranges([[20.0, 40.0], [21.0, 44.0], [22.5, 45.0], [24.0, 48.0]], outlier_share="0.1")
    ('3.625', '6.95')
    """
    share, values = exact(outlier_share, "outlier_share"), _matrix(history)
    if share >= 1:
        raise ParameterError("outlier_share: a share is below 1, and 0.1 means one in ten; pass such a number as text.")
    cut = float(50 * share)
    low, high = np.percentile(values, (cut, 100 - cut), axis=0)
    return tuple(_text(place, span) for place, span in enumerate((high - low).tolist(), start=1))


def outlier_width(history: ArrayLike, is_outlier: ArrayLike, *, centre: ArrayLike | None = None) -> str:
    """How wide the region of past outliers is: the `width` of mode paper, w_O of [Boe17, 6.1], as text.

    The distance from the centre of the furthest outlier of the history less that of the nearest, rounded up to six
    digits. The history is public, in scaled units, and of other readings than those to be protected.

    history     rows of numbers, one for each reading, in scaled units: (value - center) / scale
    is_outlier  whether each reading was an outlier
    centre      the centre of the stream, in scaled units; default: 0 in every column

    >>> outlier_width([[0.0, 1.0], [3.0, 4.0], [6.0, 8.0], [0.0, -7.5]], [False, True, True, True])
    '5'
    """
    values, flags = _matrix(history), np.asarray(is_outlier)
    if flags.shape != (len(values),) or flags.dtype != np.bool_:
        raise DataError("is_outlier: not one truth value for each reading of the history. Pass True or False for each.")
    middle = np.zeros(values.shape[1]) if centre is None else np.asarray(centre, dtype=np.float64)
    if middle.shape != (values.shape[1],) or not np.isfinite(middle).all():
        raise ParameterError(f"centre: {values.shape[1]} finite numbers are needed, one for each column. Pass them.")
    if flags.sum() < 2:
        raise DataError(
            "history: fewer than two of its readings are outliers, and a width needs two. Pass a longer history, or "
            "state the width from what is known of the sensor."
        )
    distances = np.sqrt(((values[flags] - middle) ** 2).sum(axis=1))
    span = float(distances.max() - distances.min())
    if span > _MOST:
        raise DataError("history: its outliers are too far apart for a width. Pass scaled units.")
    return f"{_DIGITS.create_decimal(_CLEAN.create_decimal_from_float(span)).normalize():f}"


def _matrix(history: ArrayLike) -> NDArray[np.float64]:
    try:
        values = np.asarray(history, dtype=np.float64)
    except (ValueError, TypeError):
        raise DataError("history: not all of it are numbers. Pass rows of numbers, one for each reading.") from None
    if values.ndim != 2 or len(values) < 2 or not values.shape[1] or not np.isfinite(values).all():
        raise DataError("history: not a table of finite numbers. Pass two rows or more, one for each reading.")
    return values


def _text(place: int, span: float) -> str:
    if not _LEAST <= span <= _MOST:
        raise DataError(
            f"history: the percentiles of column {place} are too near or too far apart for a range. "
            "Pass a longer history, another unit, or state the range from what is known of the sensor.",
            column=str(place),
        )
    return f"{_DIGITS.create_decimal(_CLEAN.create_decimal_from_float(span)).normalize():f}"
