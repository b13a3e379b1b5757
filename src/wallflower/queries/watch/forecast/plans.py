"""The plan of a watch in words and figures: what it would find, how many of its flags would be right, and at what loss.

A watch is useful when it is better than a coin twice over: it flags outliers more often than others by half, and at
least half of its flags are right. Where nothing is stated of how observations spread, it is told what holds whatever
they are, and a watch is called useless only if the best case is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

import numpy as np

from wallflower.errors import ParameterError
from wallflower.privacy import Kind, Loss
from wallflower.queries.watch.forecast.chances import law_of
from wallflower.queries.watch.forecast.population import Population
from wallflower.queries.watch.forecast.worth import (
    FEW,
    LIFT,
    MOST_ALARMS,
    Outlook,
    curve,
    name_of,
    others,
    outlook,
    scene,
    true_positive_at_few_alarms,
)
from wallflower.queries.watch.gauge import FINE, Gauge
from wallflower.queries.watch.modes import mode_of
from wallflower.queries.watch.parameters import WatchSettings
from wallflower.query import Option, Plan, Quality, Tradeoff, least_amount
from wallflower.query.accuracy import MODERATE, rate_errors, show_chance

ROC_EPSILONS: Final = ("0.05", "0.1", "0.2", "0.35", "0.5", "0.75", "1", "1.5", "2", "4")
EPSILONS: Final = ("0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1", "2", "5", "10")
STAY: Final = 10  # observations for which the verdict says what a person pays
LOOKED: Final = 0.5  # of the observations: with less, the rest is a condition
PLANS: Final = 64  # that are remembered: a question is planned when it is asked for, admitted, paid and read
UNEVEN: Final = 10.0  # columns whose spreads differ by more are hardly of one unit


@lru_cache(maxsize=PLANS)
def prospect(query: WatchSettings, dimension: int) -> Outlook | None:
    """How often a watch would be right; None where too little is public."""
    if not _is_stated(query, dimension):
        return None
    return _outlook(query, query.gauge(dimension), scene(_bare(query), dimension))


def _outlook(query: WatchSettings, gauge: Gauge, seen: Population) -> Outlook:
    share = query.outlier_share if query.outlier_share is not None else seen.share
    return outlook(query.detector(gauge), seen, share)


def plan_of(query: WatchSettings, *, n: int, dimension: int) -> Plan:
    """What to expect of a watch."""
    ahead = prospect(query, dimension)
    told = _limits(query, dimension) if ahead is None else _forecast(query, dimension)
    reason = told["reason"] + _level_clause(query) + _end_clause(query, n, ahead)
    return Plan(
        query=query.kind, cost=query.cost(), facts={"n": n, "dimension": dimension}, **told | {"reason": reason}
    )


def _level_clause(query: WatchSettings) -> str:
    """The threshold that a level in standard deviations comes to."""
    return "" if query.kappa is None else f"; kappa {query.kappa:g} is a threshold of {query.flag_distance:.6g}"


def _end_clause(query: WatchSettings, n: int, ahead: Outlook | None) -> str:
    """When a watch is exhausted, where that is before the last of `n` observations: it is blind to what comes later."""
    if query.steps is not None and query.steps < n:
        after = f"after {query.steps:,}"
    elif mode_of(query) == "sparse" and ahead is not None and query.cutoff < n * ahead.flags:
        ends = (query.cutoff, 2 * query.cutoff - 1) if query.adaptive else (query.cutoff,)  # (A) half a flag is left
        flags, places = (" to ".join(f"{end / each:,.0f}" for end in ends) for each in (1, ahead.flags))
        after = f"at {flags} flags, after about {places}"
    else:
        return ""
    return f"; {after} of {n:,} observations it is exhausted, and later ones are not looked at"


def tradeoffs_of(query: WatchSettings, dimension: int) -> tuple[Tradeoff, ...]:
    """ROC curves over thresholds, at ten losses and at that of the query."""
    if not _is_stated(query, dimension):
        raise ParameterError("variance: trade-offs need the public variance of the statistic, and low and high.")
    amounts = sorted({*ROC_EPSILONS, f"{float(query.loss.amount):g}"}, key=float)
    gauge, seen = query.gauge(dimension), scene(_bare(query), dimension)
    return tuple(made for amount in amounts if (made := _tradeoff(_at(query, amount), amount, gauge, seen)))


def quality_of(query: WatchSettings, dimension: int, ahead: Outlook | None, *, decided: int, n: int) -> Quality:
    """How far flags can be relied on, by what is public and by how many observations were looked at."""
    found = _quality(query, dimension, ahead)
    if decided >= n:
        return found
    exhausted = f"The watch was exhausted after {decided:,} of {n:,} observations, and the rest was not looked at."
    return replace(
        found,
        rule=f"{found.rule}; that is of the {decided:,} of {n:,} observations that were looked at",
        conditions=(*found.conditions, *((exhausted,) if decided < LOOKED * n else ())),
    )


def _quality(query: WatchSettings, dimension: int, ahead: Outlook | None) -> Quality:
    if ahead is None:
        told = _limits(query, dimension)
        wrong = MODERATE[0] if told["useful"] else 1.0
        return rate_errors(wrong, str(told["reason"]), conditions=told["conditions"])
    wrong = 1 - min(ahead.lift, ahead.right)
    rule = (
        f"for observations as stated, {show_chance(ahead.true_positive)} of outliers and "
        f"{show_chance(ahead.false_positive)} of the others are flagged, and {show_chance(ahead.right)} of flags are "
        "right"
    )
    return rate_errors(wrong, rule)


def notes_of(query: WatchSettings, dimension: int, ahead: Outlook | None) -> tuple[str, ...]:
    """What whoever reads the flags must know."""
    if ahead is None:
        return ()
    assumed = query.statement(dimension).assumptions
    taken = f" It is assumed that {' and '.join(assumed)}." if assumed else ""
    return (f"Of flags like these {show_chance(1 - ahead.right)} are false alarms, for observations as stated.{taken}",)


def figures_of(ahead: Outlook) -> dict[str, float]:
    """What is expected of the flags, for a release."""
    return {
        "true_positive_rate": ahead.true_positive,
        "false_positive_rate": ahead.false_positive,
        "share_of_outliers": ahead.share,
        "share_of_flags_that_are_false": 1 - ahead.right,
    }


def cautions_of(query: WatchSettings, gauge: Gauge) -> tuple[str, ...]:
    """What public facts of the columns warn of, where they are added up."""
    statement = query.statement(len(gauge.bounds.low))
    if not statement.is_sum:
        return ()
    ranges = np.abs(statement.weights) * gauge.bounds.widths
    told = (
        uneven(statement.deviations or (), "what is stated of their spreads"),
        uneven(ranges.tolist(), "their public ranges"),
    )
    return tuple(words for words in told if words is not None)[:1]


def uneven(amounts: Sequence[float], what: str) -> str | None:
    """A warning where columns that are added up hardly have one unit."""
    known = [amount for amount in amounts if amount > 0]
    if not known or max(known) <= UNEVEN * min(known):
        return None
    return (
        f"The sum adds columns that hardly have one unit: {what} differ by a factor of {max(known) / min(known):.3g}, "
        "and the widest decides nearly alone. Scale them in the schema, or weight them."
    )


# Where observations are stated


def _is_stated(query: WatchSettings, dimension: int) -> bool:
    return query.low is not None and query.high is not None and query.statement(dimension).is_enough


@lru_cache(maxsize=PLANS)
def _forecast(query: WatchSettings, dimension: int) -> dict[str, Any]:
    ahead = prospect(query, dimension)
    assert ahead is not None
    gauge, seen = query.gauge(dimension), scene(_bare(query), dimension)
    rest, few = others(query.detector(gauge), gauge.step, seen, ahead.share), seen.thin(FEW)
    smallest = least_amount(lambda amount: _at_loss(query, amount, gauge, few).is_useful)
    return {
        "chosen": ahead.mechanism,
        "headings": _HEADINGS,
        "options": tuple(_option(each) for each in (ahead, *rest)),
        "useful": ahead.is_useful,
        "reason": _reason(query, dimension, ahead, smallest),
        "smallest_useful_epsilon": smallest,
        "curve": tuple((float(amount), max(0.0, _at_loss(query, amount, gauge, few).lift)) for amount in EPSILONS),
        "measure": "true less false positives",
        "scale": "linear",
    }


def _reason(query: WatchSettings, dimension: int, ahead: Outlook, smallest: str | None) -> str:
    said = (
        f"{show_chance(ahead.true_positive)} of outliers and {show_chance(ahead.false_positive)} of the others would "
        f"be flagged, and {show_chance(ahead.right)} of flags would be right"
    )
    if ahead.run is not None:
        said += f"; in one run, of the others, {show_chance(ahead.run[0])} to {show_chance(ahead.run[1])}"
    if query.level == "person" and query.window is None and ahead.false_positive > MOST_ALARMS:
        found = true_positive_at_few_alarms(query.detector(query.gauge(dimension)), scene(_bare(query), dimension))
        said += f"; with a threshold that flags {MOST_ALARMS:.0%} of the others, {show_chance(found)} of outliers"
    if (stays := query.loss_of_staying(STAY)) is not None:
        said += f"; someone present in {STAY} observations pays {stays}"
    if assumed := query.statement(dimension).assumptions:
        said += f"; assumed: {', '.join(assumed)}"
    if ahead.is_useful:
        return said
    symbol = "ρ" if query.loss.kind is Kind.ZCDP else "ε"
    advice = f"; from {symbol} = {smallest} on it would be" if smallest else "; no reasonable loss makes it so"
    return f"{said}{advice}"


def _at_loss(query: WatchSettings, amount: str, gauge: Gauge, seen: Population) -> Outlook:
    """The same watch at another loss; one that is too small for the tables of its mechanism is a coin."""
    try:
        return _outlook(_at(query, amount), gauge, seen)
    except ParameterError:
        return Outlook(mechanism="none", true_positive=0.5, false_positive=0.5, share=0.0)


def _option(ahead: Outlook) -> Option:
    figures = {"true_positive": ahead.true_positive, "false_positive": ahead.false_positive, "right": ahead.right}
    if ahead.run is not None:
        figures |= {"run_low": ahead.run[0], "run_high": ahead.run[1]}
    return Option(mechanism=ahead.mechanism, figures=figures, note=_NOTES.get(ahead.mechanism, ""))


def _tradeoff(query: WatchSettings, amount: str, gauge: Gauge, seen: Population) -> Tradeoff | None:
    try:
        drawn = curve(query.detector(gauge), seen)
    except ParameterError:  # too little for the tables of this mechanism
        return None
    setting = tuple(place * gauge.step for place in drawn.thresholds)
    return Tradeoff(amount=amount, setting=setting, alarms=drawn.false_positive, found=drawn.true_positive)


def _at(query: WatchSettings, amount: str) -> WatchSettings:
    loss = query.loss
    return replace(query, loss=Loss(amount, delta=loss.delta, kind=loss.kind, neighbours=loss.neighbours))


def _bare(query: WatchSettings) -> WatchSettings:
    """The same observations, whoever is protected and however it is decided."""
    truth = query.flag_distance if query.outlier_from is None else query.outlier_from
    if not truth > 0:
        raise ParameterError(
            f"outlier_from: every observation is {truth:g} or more from the centre. Pass from where on one is an "
            "outlier, or a threshold above 0."
        )
    public = {name: getattr(query, name) for name in _OBSERVED}
    made: type[Any] = type(query)
    bare: WatchSettings = made(threshold=truth, outlier_from=truth, loss=Loss("1"), **public)
    return bare


_OBSERVED: Final = (
    "statistic",
    "low",
    "high",
    "change",
    "centre",
    "variance",
    "weights",
    "mean",
    "covariance",
    "baseline",
)


# Where nothing is stated


def _limits(query: WatchSettings, dimension: int) -> dict[str, Any]:
    """What holds for all observations: the chance of one at the threshold, and of one just short of it."""
    gauge = None if query.low is None or query.high is None else query.gauge(dimension)
    detector = query.detector_of(FINE * FINE, FINE) if gauge is None else query.detector(gauge)
    farthest = 2**52 if gauge is None else gauge.farthest
    ends = np.array([detector.threshold, detector.threshold - 1, farthest, 0])
    found, alarms, most, least = law_of(detector)(ends).tolist()
    is_useful = most - least >= LIFT
    name = name_of(detector)
    need = "its variance, or mean and covariance" + ("" if gauge is not None else ", and low and high")
    said = (
        f"of what is beyond the threshold at least {show_chance(found)} would be flagged, of the others at most "
        f"{show_chance(alarms)}, whatever is watched"
    )
    unknown = f"How many flags would be right depends on how the statistic spreads, which nothing states: state {need}."
    return {
        "chosen": name,
        "headings": {"found": "beyond, at least", "alarms": "others, at most"},
        "options": (Option(mechanism=name, figures={"found": found, "alarms": alarms}, note=_NOTES.get(name, "")),),
        "useful": is_useful,
        "reason": said,
        "conditions": (unknown,),
        "smallest_useful_epsilon": None,
    }


_HEADINGS: Final = {
    "true_positive": "outliers flagged",
    "false_positive": "others flagged",
    "right": "flags that are right",
    "run_low": "others in one run, from",
    "run_high": "to",
}
_NOTES: Final[Mapping[str, str]] = {
    "staircase": "the best single threshold there is for one entry",
    "laplace": "plain noise on the distance",
    "paper": "as printed, at its true cost for one entry",
    "svt-exponential": "one-sided noise; stops after the cutoff",
    "svt-laplace": "the usual sparse vector; stops after the cutoff",
    "gaussian": "noise on every observation",
}
