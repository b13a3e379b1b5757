"""Which parameters of a watch go together, whom each way protects, and who decides then."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from wallflower.errors import LossMismatch, ParameterError
from wallflower.machine.lazy import Lazy
from wallflower.privacy import Kind, Loss, Neighbours, zcdp_of_epsilon
from wallflower.queries.watch.gauge import STATISTICS, Bounds
from wallflower.queries.watch.parameters import OwnBounds, WatchSettings
from wallflower.query import require_settings_of_mode
from wallflower.schema import Column, Schema

if TYPE_CHECKING:
    import wallflower.queries.watch.detectors as _detectors
    from wallflower.queries.watch.detectors import Detector
else:
    _detectors = Lazy("wallflower.queries.watch.detectors")

_ROUNDING: Final = 1e-9  # relative: bounds that were scaled elsewhere may differ from ours in the last digits
MAX_KAPPA: Final = 1e6  # standard deviations
MAX_VARIANCE: Final = 1e200
SUMS: Final = ("sum", "weighted")  # statistics with a variance of their own
LEVELS: Final = ("event", "person", "paper")


def bounds_of(query: OwnBounds, dimension: int, schema: Schema | None) -> Bounds:
    """The public bounds of every column: the question's own, or where it has none the schema's, scaled as the numbers
    are. So what a plan says, which knows no schema, holds for the answer too."""
    stated = {column.name: column for column in (schema.columns or ())} if schema is not None else {}
    found = list(stated.values()) if len(stated) == dimension else [None] * dimension
    ends = [(query.low, query.high) if column is None else _ends(query, column) for column in found]
    if any(low is None or high is None for low, high in ends):
        raise ParameterError(
            "low, high: the entries of an observation need public bounds, which are enforced by clipping. Pass both, "
            "or state them for each column in the schema."
        )
    return Bounds(low=tuple(float(low) for low, _ in ends), high=tuple(float(high) for _, high in ends))  # type: ignore[arg-type]


def require_bounds_in_schema(query: OwnBounds, dimension: int, schema: Schema | None) -> None:
    """Refuse bounds of the query outside the range that the schema makes public, as the numbers are scaled: clipping
    would move entries to where no column has any, and the answer would be of the bounds, not of the data.

    One pair of bounds holds for all columns. It may lie within their ranges taken together, which clips, or contain
    them all, which does nothing; and it must meet the range of every column."""
    columns = (schema.columns or ()) if schema is not None else ()
    if len(columns) != dimension or (query.low is None and query.high is None):
        return
    ranges = [_scaled_range(column) for column in columns]
    lowest, highest = min(low for low, _ in ranges), max(high for _, high in ranges)
    bottom = lowest if query.low is None else query.low
    top = highest if query.high is None else query.high
    slack = _ROUNDING * max(1.0, abs(bottom), abs(top)) if math.isfinite(bottom) and math.isfinite(top) else 0.0
    is_within = lowest - slack <= bottom and top <= highest + slack
    is_around = bottom <= lowest + slack and highest - slack <= top
    for column, (low, high) in zip(columns, ranges, strict=True):
        if not (is_within or is_around) or bottom >= high or top <= low:
            raise ParameterError(
                f"low, high: {_span(query.low, query.high)} is outside the public range of {column.name}, which is "
                f"{_span(low, high)}{_scale_words(column)}. Pass bounds within the public range, on the same scale."
            )


def _scaled_range(column: Column) -> tuple[float, float]:
    """The public range of a column as its numbers are read; infinite where the schema has no bound."""
    center, scale = float(column.center), float(column.scale)
    low = -math.inf if column.low is None else (column.low - center) / scale
    high = math.inf if column.high is None else (column.high - center) / scale
    return low, high


def _span(low: float | None, high: float | None) -> str:
    known_low, known_high = (None if end is None or math.isinf(end) else end for end in (low, high))
    if known_low is None:
        return f"up to {known_high:g}"
    return f"from {known_low:g}" if known_high is None else f"{known_low:g} to {known_high:g}"


def _scale_words(column: Column) -> str:
    """How the schema reads the numbers of a column, and its range as it is written."""
    if (column.center, column.scale) == (0, 1):
        return f" {column.measure}" if column.measure else ""
    shift = f"subtracting {column.center:g} and " if column.center else ""
    measure = f" {column.measure}" if column.measure else ""
    return f" after {shift}dividing by {column.scale:g} ({_span(column.low, column.high)}{measure} as written)"


def _ends(query: OwnBounds, column: Column) -> tuple[float | None, float | None]:
    center, scale = float(column.center), float(column.scale)
    low = query.low if query.low is not None or column.low is None else (column.low - center) / scale
    high = query.high if query.high is not None or column.high is None else (column.high - center) / scale
    return low, high


def check_numbers(query: WatchSettings) -> None:
    if query.level not in LEVELS:
        raise ParameterError(f"level: {query.level!r} is not known; it is one of {', '.join(LEVELS)}.")
    if query.statistic not in STATISTICS:
        raise ParameterError(f"statistic: {query.statistic!r} is not known; it is one of {', '.join(STATISTICS)}.")
    if query.statistic == "weighted" and query.weights is None:
        raise ParameterError("weights: the weighted statistic needs one for each column. Pass them.")
    for name in ("threshold", "centre"):
        value = getattr(query, name)
        if value is not None and not -1e100 <= value <= 1e100:
            raise ParameterError(f"{name}: {value!r} is not a finite number; pass one from -1e100 to 1e100.")
    for name in ("variance", "outlier_from", "change"):
        value = getattr(query, name)
        if value is not None and not 0 < value <= MAX_VARIANCE:
            raise ParameterError(f"{name}: {value!r} is not a positive number; pass one, or leave it out.")
    if query.outlier_share is not None and not 0 < query.outlier_share < 1:
        raise ParameterError(f"outlier_share: {query.outlier_share!r} is not a share; pass one between 0 and 1.")
    if query.low is not None and query.high is not None and not query.low < query.high:
        raise ParameterError(
            f"low, high: {query.low!r} is not below {query.high!r}; pass the public range of an entry."
        )
    for name in ("cutoff", "window", "steps", "relearn"):
        value = getattr(query, name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10**9):
            raise ParameterError(f"{name}: {value!r} is not a whole number from 1 to 1,000,000,000; pass one.")


def check_threshold(query: WatchSettings) -> None:
    """Refuse a watch without a threshold, with two, or with a level `kappa` of a deviation that is not known."""
    if query.threshold is not None and query.kappa is not None:
        raise ParameterError(
            "threshold, kappa: both are given. A watch has one threshold: a distance from the centre, or kappa "
            "standard deviations. Omit one of them."
        )
    if query.kappa is None:
        if query.threshold is None:
            raise ParameterError(
                "threshold: none is given. Pass threshold, a distance from the centre; or kappa, in standard "
                "deviations, with the variance, the covariance or a baseline."
            )
        return
    if not 0 < query.kappa <= MAX_KAPPA:
        raise ParameterError(
            f"kappa: {query.kappa!r} is not a level. It is a positive number of standard deviations. Pass one, such "
            "as 3."
        )
    if query.statistic not in SUMS:
        raise ParameterError(
            f"kappa: the statistic {query.statistic} is measured in standard deviations already. Only sum and "
            "weighted have a variance to take kappa of. Pass the same number as threshold."
        )
    if query.variance is None and query.covariance is None and query.baseline is None:
        raise ParameterError(
            "kappa: the standard deviation of the statistic is not known. It follows from variance, covariance or a "
            "baseline, which must be public. Pass one of them, or pass threshold."
        )
    distance_to_flag(query)


def distance_to_flag(query: WatchSettings) -> float:
    """The threshold as a distance: `kappa` is the level of an outlier in deviations of the sum.  [Deg20, Def 1]"""
    if query.threshold is not None:
        return query.threshold
    assert query.kappa is not None
    return query.kappa * math.sqrt(_variance_of_sum(query))


def _variance_of_sum(query: WatchSettings) -> float:
    """The variance that is stated, or w'Σw; with a baseline by phase entries are independent and their spreads 1."""
    if query.variance is not None:
        return query.variance
    if query.covariance is None:
        return math.fsum(weight * weight for weight in query.weights or ())
    rows, weights = query.covariance, query.weights or (1.0,) * len(query.covariance)
    if {len(row) for row in rows} != {len(weights)} or len(rows) != len(weights):
        raise ParameterError(f"covariance: {len(weights)} rows of as many numbers are needed, one for each column.")
    variance = math.fsum(
        left * entry * right
        for left, row in zip(weights, rows, strict=True)
        for right, entry in zip(weights, row, strict=True)
    )
    if not 0 < variance <= MAX_VARIANCE:
        raise ParameterError(
            "covariance: the variance that follows for the statistic is not a positive number. kappa needs one that "
            "is. Correct the covariance, or pass threshold."
        )
    return variance


def loss_at_level(query: WatchSettings) -> Loss:
    """The loss, said of whom it protects at this level."""
    loss = query.loss
    if not isinstance(loss, Loss):
        raise ParameterError("loss: pass a Loss, such as Loss('0.5').")
    if loss.amount == 0:
        raise ParameterError("epsilon: a loss of 0 allows no answer at all; pass more than 0, such as '0.1'.")
    person = Neighbours.WINDOW if query.window is not None else Neighbours.PERSON
    wanted = person if query.level == "person" else Neighbours.ENTRY
    if loss.neighbours not in (Neighbours.REPLACE_ONE, wanted):
        raise LossMismatch(f"watch at level {query.level} protects {wanted}, not {loss.neighbours}; leave it out.")
    return loss.under(wanted)


def check_mode(query: WatchSettings) -> None:
    kind, person = query.loss.kind, query.level == "person"
    if kind not in (Kind.PURE, Kind.APPROXIMATE, Kind.ZCDP) or (kind is not Kind.PURE and not person):
        raise LossMismatch(
            f"watch at level {query.level} is pure; a {kind} loss has no theorem here. Pass ε alone, or level person."
        )
    require_settings_of_mode(query)
    wrong = {
        "a window has no cutoff to be monotone or adaptive about": query.window is not None
        and (query.monotone or query.adaptive or query.steps is not None),
        "monotone needs weights of one sign": query.monotone
        and query.weights is not None
        and min(query.weights) < 0 < max(query.weights),
        "monotone needs a statistic with a sign: sum or weighted": query.monotone and query.statistic not in SUMS,
        "steps needs δ or ρ, and they need steps or a window": person
        and query.window is None
        and (kind is Kind.PURE) != (query.steps is None),
        "Gaussian noise on every step has nothing to be monotone or adaptive about": kind is not Kind.PURE
        and (query.monotone or query.adaptive),
    }
    for rule, broken in wrong.items():
        if broken:
            raise ParameterError(f"watch: {rule}. Leave out what does not belong.")


def check_drift(query: WatchSettings) -> None:
    """What is learnt anew goes with a season, one entry at a time."""
    if query.relearn is None:
        return
    wrong = {
        "relearn: it learns a baseline by phase anew, and none is given. Pass one as baseline.": query.baseline is None,
        "relearn: it protects one entry of one observation, and level is another. Leave out one of them.": query.level
        != "event"
        or query.scores,
        "relearn_share: it is a part of the loss, above 0 and below 1. Pass such as '0.2'.": not 0
        < query.relearn_share
        < 1,
    }
    for words, broken in wrong.items():
        if broken:
            raise ParameterError(words)


def mode_of(query: WatchSettings) -> str:
    if query.level != "person":
        return {"event": "staircase", "paper": "paper"}[query.level]
    if query.loss.kind is not Kind.PURE:
        return "gaussian"
    return "sparse" if query.window is None else "staircase in a window"


def _every(query: WatchSettings, threshold: int, move: int) -> Detector:
    loss, spread = query.loss, query.window or query.steps or 1
    rho = loss.rho if loss.kind is Kind.ZCDP else _zcdp_of(loss)
    return _detectors.Every(threshold=threshold, move=move, loss=Loss.zcdp(rho / spread), steps=query.steps)  # (G) (W)


def _zcdp_of(loss: Loss) -> Fraction:
    return Fraction(zcdp_of_epsilon(float(loss.epsilon), float(loss.delta))) * Fraction(10**9 - 1, 10**9)


def _sparse(query: WatchSettings, threshold: int, move: int) -> Detector:
    return _detectors.Sparse(
        threshold=threshold,
        move=move,
        epsilon=query.loss.epsilon,
        cutoff=query.cutoff,
        two_sided=query.monotone,
        adaptive=query.adaptive,
    )


def _staircase_in_window(query: WatchSettings, threshold: int, move: int) -> Detector:
    assert query.window is not None
    return _detectors.Staircase(threshold=threshold, move=move, epsilon=query.loss.epsilon / query.window)  # (W)


MODES: Final[Mapping[str, Callable[[WatchSettings, int, int], Detector]]] = {
    "staircase": lambda query, threshold, move: _detectors.Staircase(
        threshold=threshold, move=move, epsilon=query.deciding_epsilon, scores=query.scores
    ),
    "staircase in a window": _staircase_in_window,
    "sparse": _sparse,
    "gaussian": _every,
    "paper": lambda query, threshold, move: _detectors.PaperDetector(
        threshold=threshold, move=move, epsilon=query.loss.epsilon
    ),
}
