"""What may be said of an explanation, before it is paid for and after: from public facts and what was released."""

from __future__ import annotations

from typing import Final

from wallflower.queries.explain.detectors import Distance
from wallflower.queries.explain.detectors.names import name_of
from wallflower.queries.explain.parameters import Expectation, ExplainSettings, MarginSettings, SearchSettings, Settings
from wallflower.queries.explain.space.contexts import predicate
from wallflower.query import Quality, two_digits_up
from wallflower.query.accuracy import MODERATE, rate_errors

SURE: Final = 0.05  # of the contexts may be invalid
SILENT: Final = 0.2  # of the answers about a clear outlier may be none

BASELESS: Final = (
    "A context is named whether or not anything stands out, as no part of ε decides that: ask with a doubt above 0."
)

Value = list[dict[str, str]]


def says_nothing(query: ExplainSettings, size: int) -> bool:
    """Whether everybody is an outlier in every context by the question alone: no table has so many neighbours."""
    detector = query.detector_for(size)
    return isinstance(detector, Distance) and detector.k >= size


def reason(query: Settings, size: int, smallest: str | None) -> str:
    """Why a plan is useful or not."""
    if says_nothing(query, size):
        return f"of at most {size:,} records nobody has that many neighbours, so everybody is an outlier"
    said = _prospect(query, size) if query.mode == "ocdp" else _outcome(query, query.outlook(size))
    if query.is_useful(size):
        return said
    advice = f"; from ε = {smallest} on it would be useful" if smallest else "; no reasonable loss makes it useful"
    return f"{said}{advice}"


def reading(query: Settings, value: Value) -> str:
    """What was released, as a sentence."""
    if not value and query.mode == "dp":
        return "None: no context makes this record an outlier clearly enough to say so at this loss."
    if not value:
        return "None: no context was found in which this record is an outlier."
    found = "; or ".join(_among(item["context"]) for item in value)
    hedge = "" if query.mode == "ocdp" else " (unless the draw was unlucky)"
    if query.mode == "dp" and not query.doubt:
        return f"If the record is an outlier anywhere, then in {query.metric} among {found}{hedge}."
    return f"In {query.metric}, the record is an outlier among {found}{hedge}."


def notes(query: Settings, value: Value, size: int) -> tuple[str, ...]:
    """Caveats of an answer."""
    if query.mode == "ocdp":
        return ()
    if value and not query.doubt:
        return ()
    seen = query.outlook(size)
    if value:
        often = two_digits_up(max(100 * seen.baseless, 1e-9))
        return (f"Where nothing stands out, a context is named all the same in at most {often} % of answers.",)
    return (_warning(seen.least_none),) if seen.least_none >= SURE else ()


def quality(query: Settings, value: Value, size: int) -> Quality:
    """How far to rely on a context, or on none; where the record stands out as the plan assumes."""
    if says_nothing(query, size):
        return rate_errors(1.0, "by this detector everybody is an outlier, whatever the records are")
    if query.mode == "ocdp":
        return _quality_of_search(query, value, size)
    seen = query.outlook(size)
    if not value:
        rule = f"none is said {percent(seen.none)} of the time where {_clearness(query)}"
        return rate_errors(seen.none, rule)
    rule = f"it is invalid with a chance of at most {seen.invalid:.2g} where {_clearness(query)}"
    wrong = max(seen.invalid, min(seen.none, MODERATE[0]))
    return rate_errors(wrong, rule, conditions=() if query.doubt else (BASELESS,))


def percent(share: float) -> str:
    """A share in words that never call a chance certain: a float of 1 is a chance just below 1.

    >>> percent(0.994), percent(0.314), percent(2e-7), percent(1.0)
    ('over 99 %', '31 %', 'under 1 %', 'over 99.9 %')
    """
    if share > 0.99:
        return "over 99.9 %" if share > 0.999 else "over 99 %"
    return "under 1 %" if 0 < share < 0.01 else f"{100 * share:.0f} %"


def _prospect(query: SearchSettings, size: int) -> str:
    share = percent(query.expected_utility("direct", size))
    return (
        f"one of {query.contexts:,} contexts, with {share} of the records of the largest valid one expected (if "
        "records spread evenly over the values)"
    )


def _outcome(query: MarginSettings, seen: Expectation) -> str:
    if seen.least_none > SILENT:
        return f"it would say none {percent(seen.least_none)} of the time even for the clearest outlier possible"
    return (
        f"none {percent(seen.none)} of the time; else one of {query.contexts:,} contexts, invalid with a chance of at "
        f"most {seen.invalid:.2g}, with {percent(seen.utility)} of the records of the largest expected (if records "
        f"spread evenly over the values, and {_clearness(query)})"
    )


def _clearness(query: ExplainSettings) -> str:
    if issubclass(query.kind_of_detector, Distance):
        return "the record has nobody near"
    share, name = 100 * query.clear, name_of(query.detector)
    return f"the record stands out by {share:.3g} % of a context, or as far as {name} lets any"


def _warning(least: float) -> str:
    return f"At this loss none is said at least {percent(least)} of the time, however clear the outlier."


def _quality_of_search(query: SearchSettings, value: Value, size: int) -> Quality:
    if value:
        return rate_errors(0.0, "in this mode only contexts are named in which the record is an outlier")
    if query.way_of_search(size) == "direct":
        return rate_errors(0.0, "every context was examined")
    return rate_errors(MODERATE[0], "not every context need have been examined")


def _among(context: str) -> str:
    return context if context == predicate((), "") else f"records where {context}"
