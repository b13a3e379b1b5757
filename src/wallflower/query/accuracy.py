"""Accuracy statements: noise, interval and conditions are three facts, and each has one rule, which is here.

Noise       how large the noise is beside the number that is shown and beside the records; public
Interval    which ends are proved
Conditions  public facts that speak against reading an answer at face value, each with a remedy; any of them makes the
            verdict *check first*

Comparisons follow the same principle: *higher* is said only if a test at 95 % on released numbers supports it. All of
this is post-processing of released numbers and public facts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Self

from wallflower.errors import ParameterError
from wallflower.machine.lazy import Lazy
from wallflower.schema import Schema
from wallflower.schema.column import is_identifier_like
from wallflower.schema.columns import list_names
from wallflower.text import Message, join, t

if TYPE_CHECKING:
    import numpy as _np
else:
    _np = Lazy("numpy")

NoiseLabel = Literal["low noise", "moderate noise", "mostly noise"]
ProofLabel = Literal["two-sided", "upper end only", "not proved"]
CHECK_FIRST: Final = "check first"

CONFIDENCE: Final = 0.95
LOW: Final = (0.1, 0.01)  # the half-width as a share of the number shown, and as a share of the records
MODERATE: Final = (0.5, 0.1)
SLACK_NEIGHBOURS: Final = 10  # from this many neighbours on, a slack below them overcounts
UNLIKE_RANGES: Final = 10  # times: public ranges further apart than this make one column decide alone


@dataclass(frozen=True, slots=True)
class Quality:
    """How accurate an answer is: three facts that are never mixed.

    noise       low noise, moderate noise or mostly noise
    rule        the figures that the noise label rests on
    interval    which ends of the interval are proved: two-sided, upper end only, not proved
    conditions  what to check before the answer is read at face value, each with a remedy
    """

    noise: NoiseLabel
    rule: str
    interval: ProofLabel = "not proved"
    conditions: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """*check first* where a condition speaks against the answer, the noise label otherwise."""
        return CHECK_FIRST if self.conditions and self.noise != "mostly noise" else self.noise

    def to_json(self) -> dict[str, Any]:
        """The three facts and the verdict, as plain JSON."""
        return {
            "verdict": self.verdict,
            "noise": self.noise,
            "rule": self.rule,
            "interval": self.interval,
            "conditions": list(self.conditions),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """The quality that `to_json` described."""
        return cls(stored["noise"], stored["rule"], stored["interval"], tuple(stored["conditions"]))

    @property
    def text(self) -> Message:
        """The conditions to check first, and the noise, in sentences."""
        noise = t("{noise}: {rule}.", noise=_NOISE_TEXTS[self.noise], rule=self.rule)
        if not self.conditions:
            return noise
        return t("Check first: {conditions} {noise}", conditions=join(" ", self.conditions), noise=noise)

    def __str__(self) -> str:
        return self.text


_NOISE_TEXTS: Final[Mapping[NoiseLabel, Message]] = {
    "low noise": t("Low noise"),
    "moderate noise": t("Moderate noise"),
    "mostly noise": t("Mostly noise"),
}


# Noise


def label_noise(half_width: float, *, number: float, records: float) -> NoiseLabel:
    """Compare the half-width of the noise (95 %) with the number that is shown, and with the records it is about.

    >>> label_noise(4, number=80, records=1000), label_noise(24, number=22, records=367)
    ('low noise', 'mostly noise')
    """
    shares = half_width / max(1.0, number), half_width / max(1.0, records)
    if shares[0] <= LOW[0] and shares[1] <= LOW[1]:
        return "low noise"
    return "moderate noise" if shares[0] <= MODERATE[0] and shares[1] <= MODERATE[1] else "mostly noise"


def label_errors(share: float) -> NoiseLabel:
    """The same limits for an answer that is a choice: the share of it that is expected to be wrong.

    >>> label_errors(0.02), label_errors(0.3), label_errors(0.6)
    ('low noise', 'moderate noise', 'mostly noise')
    """
    return "low noise" if share <= LOW[0] else "moderate noise" if share <= MODERATE[0] else "mostly noise"


_COUNT: Final = t("the count")


def rate_number(
    half_width: float,
    *,
    number: float,
    records: float,
    interval: ProofLabel,
    name: str = _COUNT,
    conditions: tuple[str, ...] = (),
) -> Quality:
    """The quality of one released number."""
    of_number, of_records = half_width / max(1.0, number), half_width / max(1.0, records)
    rule = t(
        "the noise (±{half_width:.3g}, 95 %) is {of_number} of {name} and {of_records} of the records; low noise is at "
        "most {low} and {low_of_records}, moderate noise {moderate} and {moderate_of_records}",
        half_width=half_width,
        of_number=percent(of_number),
        name=name,
        of_records=percent(of_records),
        low=percent(LOW[0]),
        low_of_records=percent(LOW[1]),
        moderate=percent(MODERATE[0]),
        moderate_of_records=percent(MODERATE[1]),
    )
    return Quality(label_noise(half_width, number=number, records=records), rule, interval, conditions)


def rate_groups(
    half_width: float, groups: Sequence[tuple[float, float]], *, interval: ProofLabel, conditions: tuple[str, ...] = ()
) -> Quality:
    """The quality of one number a group: the label is that of the worst group. `groups` are (number, size)."""
    labels = [label_noise(half_width, number=number, records=size) for number, size in groups]
    order: tuple[NoiseLabel, ...] = ("mostly noise", "moderate noise", "low noise")
    worst: NoiseLabel = next((label for label in order if label in labels), "mostly noise")
    counted = [
        t("{noise} in {n:,}", noise=_NOISE_TEXTS[noise], n=labels.count(noise))
        for noise in reversed(order)
        if noise in labels
    ]
    rule = t(
        "the noise (±{half_width:.3g}, 95 %) beside the count and the size of each group: {counted} of {n:,} groups",
        half_width=half_width,
        counted=join(", ", counted),
        n=len(labels),
    )
    return Quality(worst, rule, interval, conditions)


def rate_errors(
    share: float, rule: str, *, interval: ProofLabel = "not proved", conditions: tuple[str, ...] = ()
) -> Quality:
    """The quality of a choice, a share of which is expected to be wrong."""
    return Quality(label_errors(share), rule, interval, conditions)


def percent(share: float) -> Message:
    """A share for readers, never rounded to nothing.

    >>> percent(1.0909), percent(0.0654), percent(0.00004), percent(0.0)
    ('109 %', '6.5 %', 'under 0.1 %', '0 %')
    """
    if 0 < share < 0.001:
        return t("under {share} %", share=0.1)
    percentage = 100 * share
    return t("{share:,.0f} %", share=percentage) if share >= 0.1 or share == 0 else t("{share:.1f} %", share=percentage)


# Conditions


class DistanceColumns(Protocol):
    """Columns that distances are taken over, with their public facts."""

    @property
    def columns(self) -> tuple[str, ...]: ...

    @property
    def schema(self) -> Schema: ...


def check_distances(points: DistanceColumns, scale: object = None) -> tuple[str, ...]:
    """Conditions on the columns of a distance: identifiers among them, columns without a scale, unlike ranges."""
    names = points.columns
    known = {column.name: column for column in points.schema.columns or () if column.name in names}
    found = []
    aside = points.schema.columns_set_aside
    if aside and set(names) == set(points.schema.default_distance_columns):
        found.append(
            t(
                "{names} was left out of distances, because its name is that of an identifier. Name it in `columns` "
                "if it is a measurement.",
                names=list_names(aside),
            )
        )
    if likely := [name for name in names if is_identifier_like(name) and not _is_label(known.get(name))]:
        found.append(
            t(
                "{names} looks like an identifier and takes part in distances: remove it from `columns`.",
                names=list_names(likely),
            )
        )
    if scale is not None or len(names) < 2:
        return tuple(found)
    reaches = {
        name: (column.high - column.low) / column.scale
        for name, column in known.items()
        if column.low is not None and column.high is not None
    }
    bare = [
        name for name in names if name not in reaches and not _is_label(known.get(name)) and _scale_of(known, name) == 1
    ]
    measures = {known[name].measure if name in known else "" for name in names}
    if bare and (len(measures) > 1 or not all(measures)):
        if len(bare) == len(names):
            which = t("no column has a scale")
        else:
            which = t("no scale is stated for {names}", names=list_names(bare))
        found.append(
            t(
                "Nothing public says how the columns compare: {which}. If units differ, release `scale` first, or "
                "state a scale or bounds in the schema.",
                which=which,
            )
        )
    wide, narrow = max(reaches, key=reaches.__getitem__, default=""), min(reaches, key=reaches.__getitem__, default="")
    if not bare and reaches and reaches[wide] > UNLIKE_RANGES * reaches[narrow]:
        found.append(
            t(
                "{wide} reaches over {times:,.0f} times the public range of {narrow}, so distances are nearly those of "
                "{wide} alone: give each column a scale in the schema.",
                wide=wide,
                narrow=narrow,
                times=reaches[wide] / reaches[narrow],
            )
        )
    return tuple(found)


def _is_label(column: Any) -> bool:
    return column is not None and column.kind == "category"


def _scale_of(known: Mapping[str, Any], name: str) -> float:
    return float(known[name].scale) if name in known else 1.0


def show_chance(share: float) -> Message:
    """A share in words, never rounded to all, and to none only where it is 0. A float of 1 is a chance just below 1.

    >>> show_chance(0.9313), show_chance(0.00049), show_chance(0.99997), show_chance(1.0)
    ('93.1%', '0.049%', 'over 99.9%', 'over 99.9%')
    >>> show_chance(8.8e-27)
    'under 0.01%'
    """
    if share > 0.999:
        return t("over {share:.1%}", share=0.999)
    if 0 < share < 0.0001:
        return t("under {share:.2%}", share=0.0001)
    return t("{share:.1%}", share=share) if share >= 0.001 or share == 0 else t("{share:.2g}%", share=100 * share)


def check_slack_size(
    slack: int | None, neighbours: int, *, is_least: bool = False, wide_noise: float | None = None
) -> tuple[str, ...]:
    """The condition on the slack: below the number of neighbours it overcounts, from ten neighbours on.

    `is_least` says that the query chooses its slack when it is answered, and that this is the smallest it can choose.
    `wide_noise` is the half-width of the 95 % noise with a slack of all neighbours: what following the advice costs.
    """
    if slack is None or neighbours < SLACK_NEIGHBOURS or slack >= neighbours:
        return ()
    if is_least:
        bias = t(
            "The slack may be as low as {slack}, below the {neighbours} neighbours: the count may be far too high.",
            slack=slack,
            neighbours=neighbours,
        )
    else:
        bias = t(
            "A slack of {slack} is below the {neighbours} neighbours: the count may be far too high.",
            slack=slack,
            neighbours=neighbours,
        )
    if wide_noise is None:
        remedy = t("Ask with a slack of {neighbours}, or fewer neighbours.", neighbours=neighbours)
    else:
        remedy = t(
            "A slack of {neighbours} rarely has this bias; its noise is within ±{noise:,.3g} (95 %). Ask with it, or "
            "with fewer neighbours.",
            neighbours=neighbours,
            noise=wide_noise,
        )
    return (join(" ", (bias, remedy)),)


def check_share(share: Fraction, count: int, records: int, reach: float) -> tuple[str, ...]:
    """The condition that a wanted share was not met: the released count is further off than its noise explains."""
    if abs(count - float(share * records)) <= reach:
        return ()
    missed = t(
        "{wanted} was asked for, about {released} came out: the drawn radius does not have the share. Scale the "
        "columns, or ask for another share.",
        wanted=percent(float(share)),
        released=percent(count / max(1, records)),
    )
    return (missed,)


def unverified_share(radii: Sequence[float]) -> str:
    """The condition under which a radius that is drawn for a share has any accuracy at all."""
    return t(
        "Nothing verifies that the share is crossed between the radii {low:.3g} and {high:.3g}; else the radius is "
        "drawn at random. Count at the radius to see, or ask for the count with the share at once.",
        low=min(radii),
        high=max(radii),
    )


# Comparisons


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseLaw:
    """The known law of the noise of a released number: discrete Laplace or discrete Gaussian, `scale` steps wide."""

    law: str
    scale: Fraction
    step: Fraction

    @classmethod
    def of(cls, noise: Any) -> Self:
        """That of an additive mechanism."""
        return cls(law=noise.law, scale=Fraction(noise.scale), step=Fraction(noise.step))

    def to_json(self) -> dict[str, str]:
        return {"law": self.law, "scale": str(self.scale), "step": str(self.step)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        return cls(law=stored["law"], scale=Fraction(stored["scale"]), step=Fraction(stored["step"]))

    @property
    def rounding(self) -> Fraction:
        """How far a released whole number may lie from the noisy one."""
        return Fraction(0) if self.step.denominator == 1 else Fraction(1, 2)

    def masses(self) -> tuple[Any, Any]:
        """Places in steps, and their probabilities; what lies further out is below 1e-17."""
        scale = float(self.scale)
        reach = math.ceil((40 if self.law == "laplace" else 9) * scale) + 1
        at = _np.arange(-reach, reach + 1)
        exponents = _np.abs(at) / scale if self.law == "laplace" else (at / scale) ** 2 / 2
        weights = _np.exp(-exponents)
        return at, weights / weights.sum()


def difference_tail(first: NoiseLaw, second: NoiseLaw, least: Fraction | float) -> float:
    """P(Z - Y >= least) for independent noise Z of the first law and Y of the second.

    >>> law = NoiseLaw(law="laplace", scale=Fraction(4), step=Fraction(1))
    >>> round(difference_tail(law, law, 0) + difference_tail(law, law, 1), 9)
    1.0
    """
    unit = _common_step(first.step, second.step)
    wide, narrow = int(first.step / unit), int(second.step / unit)
    edge = math.ceil(Fraction(least) / unit)
    at, masses = first.masses()
    places, others = second.masses()
    tails = _np.append(_np.cumsum(others[::-1])[::-1], 0.0)  # P(Y >= place), and 0 beyond the last
    needed = -((wide * at - edge) // narrow)  # Y is symmetric: P(Y <= k) = P(Y >= -k)
    return float(masses @ tails[_np.clip(needed - places[0], 0, len(places))])


def _common_step(one: Fraction, other: Fraction) -> Fraction:
    denominator = math.lcm(one.denominator, other.denominator)
    return Fraction(math.gcd(int(one * denominator), int(other * denominator)), denominator)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two released numbers, and how often noise alone puts equal ones this far apart.

    first    name and number
    second   name and number
    p_value  two-sided, of the hypothesis that both are equal without noise
    note     what the test does not cover
    """

    first: tuple[str, int]
    second: tuple[str, int]
    p_value: float
    note: str = ""

    @property
    def is_beyond_noise(self) -> bool:
        """Whether noise explains the difference in fewer than one of twenty cases."""
        return self.p_value <= 1 - CONFIDENCE

    @property
    def text(self) -> str:
        """The comparison as a sentence; it ranks only where the test supports that."""
        (one, count), (other, rest) = sorted((self.first, self.second), key=lambda each: -each[1])
        chance = t("p = {p:.2g}", p=self.p_value) if self.p_value >= 1e-6 else t("p < {p:.6f}", p=1e-6)
        if not self.is_beyond_noise:
            return t(
                "{one} {count:,}, {other} {rest:,}: the difference is within the noise ({chance}).",
                one=one,
                count=count,
                other=other,
                rest=rest,
                chance=chance,
            )
        higher = t(
            "{one} {count:,}, {other} {rest:,}: the count of {one} is higher by more than the noise explains "
            "({chance}).",
            one=one,
            count=count,
            other=other,
            rest=rest,
            chance=chance,
        )
        return join(" ", (higher, self.note)) if self.note else higher

    def to_json(self) -> dict[str, Any]:
        """The numbers, the p-value and the sentence, as plain JSON."""
        return {
            "first": list(self.first),
            "second": list(self.second),
            "p_value": self.p_value,
            "is_beyond_noise": self.is_beyond_noise,
            "text": self.text,
        }

    def __str__(self) -> str:
        return self.text


def compare_numbers(
    first: tuple[str, int], second: tuple[str, int], laws: tuple[NoiseLaw, NoiseLaw], *, note: str = ""
) -> Comparison:
    """Test whether two released numbers are equal without noise. Rounding and clamping only make the test careful."""
    return Comparison(
        first=first, second=second, p_value=min(1.0, 2 * _one_sided(abs(first[1] - second[1]), laws)), note=note
    )


def _one_sided(difference: int, laws: tuple[NoiseLaw, NoiseLaw]) -> float:
    return difference_tail(*laws, max(Fraction(0), difference - laws[0].rounding - laws[1].rounding))


def rank_highest(counts: Iterable[tuple[str, int]], law: NoiseLaw) -> tuple[str, float] | None:
    """The group whose count is the highest beyond the noise, and the p-value of that claim; None if there is none.

    Some group is the highest without noise. To name another one, its count must exceed that group's by the observed
    lead, so that a union bound over all groups holds.
    """
    found = sorted(counts, key=lambda each: -each[1])
    if len(found) < 2:
        return None
    p_value = min(1.0, len(found) * _one_sided(found[0][1] - found[1][1], (law, law)))
    return (found[0][0], p_value) if p_value <= 1 - CONFIDENCE else None


OVERCOUNT: Final = t("Overcounting is not covered: the mechanism may count too many in either.")


def comparable_law(extras: Mapping[str, Any], what: str) -> NoiseLaw:
    """The law of the noise that a release states, or a refusal."""
    stored = extras.get("noise_law")
    if not isinstance(stored, Mapping):
        raise ParameterError(
            f"compare: {what} has no noise law that is public. Compare counts, counts by group or flags, by the "
            "mechanism extension or global."
        )
    return NoiseLaw.from_json(stored)
