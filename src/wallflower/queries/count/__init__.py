"""How many records are distance-based outliers.

A record is an outlier when fewer than `neighbours` others lie within `radius` [KN98]. One person can flip many
records, so noise goes on a Lipschitz extension of the count whose sensitivity is `slack` + 1 whatever the dimension.

Released    one whole number in [0, N]               Neighbours  replace one record, N public
Guarantee   pure ε-DP, (ε, δ)-DP or ρ-zCDP           Arithmetic  whole-number noise on a grid of 1/128
Proof       proof.md, labels (E) (C1) (C2) (N); the paper's own: (G) (U) (S) (L)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from wallflower.data import Points
from wallflower.errors import ParameterError
from wallflower.lazy import Lazy
from wallflower.mechanisms import Additive, calibrate, smooth_additive, smooth_beta
from wallflower.neighbours.limits import check_loss, check_neighbours, check_radius, rounding_bound, view_points
from wallflower.neighbours.noisy_count import STEP, SURE, count_noise, interval, noisy_steps, usual_slack, whole
from wallflower.noise import Noise
from wallflower.privacy import Kind, Loss
from wallflower.query import Option, Plan, PublicFacts, Query, Reading, Status, least_amount

if TYPE_CHECKING:
    import wallflower.queries.count.exact as _exact
    import wallflower.queries.count.sensitivity as _sensitivity
else:
    _exact = Lazy("wallflower.queries.count.exact")
    _sensitivity = Lazy("wallflower.queries.count.sensitivity")


USEFUL: Final = 0.1  # an interval that reaches further than this share of the records says little
EPSILONS: Final = ("0.1", "0.2", "0.3", "0.5", "0.7", "1", "1.5", "2", "3", "5")


@dataclass(frozen=True, slots=True, kw_only=True)
class Count(Query[Points, int]):
    """Count the outliers.

    >>> Count(radius=0.5, neighbours=3, loss=Loss("0.5")).cost()
    Loss(ε=1/2)
    """

    kind: ClassVar[str] = "count"
    label: ClassVar[str] = "outlier-count/1"
    question: ClassVar[str] = "How many outliers are there?"
    proof: ClassVar[str] = "queries/count/proof.md"
    status: ClassVar[Status] = Status.WHOLE_NUMBERS
    unpictured: ClassVar[str] = "a number, which the report draws with its interval"

    neighbours: int = field(metadata={"help": "with fewer than this many others near, a record is an outlier"})
    radius: float = field(
        metadata={"help": "records at most this far apart (root of the mean squared difference) are near"}
    )
    loss: Loss = field(metadata={"help": "privacy loss to spend, as text"})
    columns: tuple[str, ...] | None = field(
        default=None, metadata={"help": "the columns distances are taken over; all number columns unless given"}
    )
    mechanism: str = field(
        default="extension",
        metadata={
            "help": "extension: noise independent of the dimension; global, smooth: the paper's, done right",
            "choices": ("extension", "global", "smooth"),
        },
    )
    slack: int | None = field(
        default=None, metadata={"help": "how much of the others one record may carry; chosen from public facts"}
    )
    normalise: bool = field(
        default=True, metadata={"help": "distances per column (as in the papers) rather than plain Euclid"}
    )

    def __post_init__(self) -> None:
        check_neighbours(self.neighbours)
        check_radius(self.radius)
        if self.mechanism not in _NOISE:
            allowed = ", ".join(_NOISE)
            raise ParameterError(f"mechanism: {self.mechanism!r} is not known; it is one of {allowed}.")
        if self.slack is not None and not 2 <= self.slack <= 10**6:
            raise ParameterError(
                f"slack: {self.slack!r} is outside 2 to 1,000,000. With less, even a dense crowd is crowded; "
                "2 or 3 suits most tables."
            )
        check_loss(self.kind, self.loss)
        if self.mechanism == "smooth" and self.loss.kind is not Kind.APPROXIMATE:
            raise ParameterError("delta: smooth noise needs one above 0; pass one such as '1e-6', or use extension.")

    def cost(self) -> Loss:
        return self.loss

    def view(self, data: Any) -> Points:
        return view_points(data, self.columns, self.neighbours)

    def answer(self, data: Points, noise: Noise) -> int:
        steps = _ANSWERS[self.mechanism](self, data, noise)
        return whole(steps, data.n)

    def reading(self, value: int, facts: PublicFacts) -> Reading:
        noise = self.noise(facts.n, facts.dimension)
        low, high = interval(value, facts.n, noise)
        return Reading(
            mechanism=self.mechanism,
            interval=(float(low), float(high)),
            words=f"About {value:,} of {facts.n:,} records are outliers (95 % interval {low:,} to {high:,}).",
            extras={"any": any_outlier(value, noise)} | self._extension_facts(facts.n),
        )

    def plan(self, *, n: int, dimension: int) -> Plan:
        options = tuple(option for option in (self._option(name, n, dimension) for name in _NOISE) if option)
        width = next(option.figures["half_width"] for option in options if option.mechanism == self.mechanism)
        useful = width <= USEFUL * n
        smallest = self._smallest_useful(n, dimension)
        limit = f"±{width:.3g} (95 %) among {n:,} records"
        advice = (
            f"; from {self._symbol} = {smallest} on it would be" if smallest else "; no reasonable loss makes it so"
        )
        return Plan(
            query=self.kind,
            cost=self.cost(),
            facts={"n": n, "dimension": dimension},
            chosen=self.mechanism,
            headings=_HEADINGS,
            options=options,
            useful=useful,
            verdict=f"useful: {limit}" if useful else f"not useful: {limit}{advice}",
            smallest_useful_epsilon=smallest,
            curve=tuple((float(e), self._at(e).noise(n, dimension).half_width(SURE)) for e in EPSILONS),
            measure="half-width of the 95 % interval",
        )

    def noise(self, n: int, dimension: int) -> Additive:
        """The noise from public facts; for `smooth`, the most it can be."""
        return _NOISE[self.mechanism](self, n, dimension)

    def slack_for(self, n: int) -> int:
        """The slack asked for, or one that suits tables of this size: the more records, the less noise matters."""
        return self.slack if self.slack is not None else usual_slack(n, self.neighbours, self.loss)

    @classmethod
    def example(cls) -> Self:
        return cls(neighbours=5, radius=1.3, loss=Loss("0.5"))

    @property
    def _symbol(self) -> str:
        return "ρ" if self.loss.kind is Kind.ZCDP else "ε"

    def _at(self, amount: str) -> Self:
        loss = self.loss
        return replace(self, loss=Loss(amount, delta=loss.delta, kind=loss.kind, neighbours=loss.neighbours))

    def _extension_facts(self, n: int) -> dict[str, int]:
        return {"slack": self.slack_for(n)} if self.mechanism == "extension" else {}

    def _option(self, name: str, n: int, dimension: int) -> Option | None:
        if name == "smooth" and self.loss.kind is not Kind.APPROXIMATE:
            return None
        noise = replace(self, mechanism=name).noise(n, dimension)
        figures = (noise.mean_error(), noise.half_width(SURE), noise.deviation())
        return Option(mechanism=name, figures=dict(zip(_HEADINGS, figures, strict=True)), note=_NOTES[name])

    def _smallest_useful(self, n: int, dimension: int) -> str | None:
        """The least amount, to two digits, at which the interval stays within the useful share of the records."""
        return least_amount(lambda amount: self._at(amount).noise(n, dimension).half_width(SURE) <= USEFUL * n)


def any_outlier(value: int, noise: Additive) -> dict[str, Any]:
    """Scenario 1, is there any outlier at all: read off the released count, which costs nothing more.

    `says` is yes from `threshold` on. Without any outlier it says yes with probability `false_alarm`; with at least
    `found_from` of them it says no with probability 1 - `SURE` at most. `p_value` is how often a count this high or
    higher is released when there is none. (Sparse data can raise the count, never lower it, before noise.)
    """
    threshold = max(1, math.ceil(noise.half_width(1 - 2 * (1 - SURE)) + 0.5))
    return {
        "says": value >= threshold,
        "threshold": threshold,
        "false_alarm": noise.upper_tail(threshold - 0.5),
        "found_from": 2 * threshold,
        "p_value": noise.upper_tail(value - 0.5),
    }


def _extension_noise(query: Count, n: int, dimension: int) -> Additive:
    return count_noise(query.slack_for(n), query.loss)


def _global_noise(query: Count, n: int, dimension: int) -> Additive:
    return calibrate(rounding_bound(n, dimension, query.neighbours), query.loss, step=Fraction(1))


def _smooth_noise(query: Count, n: int, dimension: int) -> Additive:
    most = max(1, rounding_bound(n, dimension, query.neighbours))
    return smooth_additive(float(most), query.loss.epsilon, step=STEP)


def _extension_answer(query: Count, data: Points, noise: Noise) -> Fraction:
    slack = query.slack_for(data.n)  # (P) (E) (C1) (C2) (N)
    normalise = query.normalise
    steps = noisy_steps(data.values, query.radius, query.neighbours, slack, query.loss, noise, normalise=normalise)
    return Fraction(steps)


def _global_answer(query: Count, data: Points, noise: Noise) -> Fraction:
    count: int = _exact.count_outliers(data.values, query.radius, query.neighbours, normalise=query.normalise)
    return (count + _global_noise(query, data.n, data.dimension).draw(noise)) / STEP  # (G)


def _smooth_answer(query: Count, data: Points, noise: Noise) -> Fraction:
    count: int = _exact.count_outliers(data.values, query.radius, query.neighbours, normalise=query.normalise)
    beta = smooth_beta(query.loss.epsilon, query.loss.delta, least=1, step=STEP)
    bound = _sensitivity.rounded_smooth_bound(
        data.values, query.radius, query.neighbours, beta=beta, normalise=query.normalise
    )  # (U) (L) (S)
    return count / STEP + smooth_additive(max(1.0, bound), query.loss.epsilon, step=STEP).draw(noise)


_NOISE: Final[Mapping[str, Callable[[Count, int, int], Additive]]] = {
    "extension": _extension_noise,
    "global": _global_noise,
    "smooth": _smooth_noise,
}
_ANSWERS: Final[Mapping[str, Callable[[Count, Points, Noise], Fraction]]] = {
    "extension": _extension_answer,
    "global": _global_answer,
    "smooth": _smooth_answer,
}
_HEADINGS: Final[Mapping[str, str]] = {
    "error": "typical error ±",
    "half_width": "95 % within ±",
    "deviation": "deviation",
}
_NOTES: Final[Mapping[str, str]] = {
    "extension": "may overcount where many records have barely enough neighbours",
    "global": "noise grows with the dimension and the number of neighbours",
    "smooth": "the most it can be; calm data get less",
}
