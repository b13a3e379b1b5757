"""Units of protection: what a question protects, what a data set declares, and the price between the two.

A question states its loss for neighbours of its own (`Claim`). A data set declares once whose loss it bounds
(`Protection`). `price` is the table that leads from one to the other, a factor for each pair that is a theorem and a
refusal for every other. Proofs: proof.md of `ledger`, labels (U1) (U2) (U3) (U4) (U5) (U6) (U7) (U8) (U9).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any, Final, Literal, Self

from wallflower.errors import ParameterError, Untranslatable
from wallflower.privacy import Kind, Loss, Neighbours
from wallflower.text import Message, join, t

Rows = Literal["people", "time"]
Basis = Literal["record", "membership", "entry", "window", "person"]

RHO_GRID: Final = 10**24
DELTA_GRID: Final = 10**40
MAX_COUNT: Final = 10**9

UNITS_OF_ROWS: Final[Mapping[str, tuple[str, ...]]] = {
    "people": ("record", "membership"),
    "time": ("record", "entry", "window", "person"),
}
NEIGHBOURS: Final[Mapping[str, Neighbours]] = {
    "record": Neighbours.REPLACE_ONE,
    "membership": Neighbours.ADD_REMOVE,
    "entry": Neighbours.ENTRY,
    "window": Neighbours.WINDOW,
    "person": Neighbours.PERSON,
}
BASES: Final[Mapping[Neighbours, str]] = {neighbours: unit for unit, neighbours in NEIGHBOURS.items()}

HIDDEN_SIZE: Final = t("no finite factor: the number of records is secret here, and this question shows or assumes it")
ENDLESS: Final = t("no finite factor: a person may be in every observation, and nobody said how many there are")
CONSTRAINED: Final = t("output-constrained answers are no differential privacy and have an allowance of their own")
LOCAL: Final = t("a loss that grows with the distance of a reading belongs to the sensor that spends it")
BROKEN_STEPS: Final = t("a factor that is no whole number has no rule for delta")
NO_COLUMNS: Final = t("no finite factor: how many columns the question reads was not said")
NAMES_ROWS: Final = t(
    "no theorem: an answer that names records protects others only where a record is a person's, replaced by another"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """Whose loss a data set bounds: what a row is, which change of the rows is hidden, and how often a person counts.

    A steward declares it once for each data set (`Ledger.declare`); what a question states is translated into it.

    rows              people: a row is somebody; time: a row is an observation
    unit              which change is hidden: a record replaced, a membership (somebody added or removed), one entry of
                      one observation, a window of observations, or a person over all of them
    window            with unit window: how many observations in a row
    units_per_person  in how many records or entries one person may be: every price is multiplied by it
    times             in how many observations a person may be at most: a count, wherever in the stream they are
    person            the column that identifies people, where rows of one person are brought together

    >>> Protection(rows="time", unit="window", window=24).text
    'one person over any 24 consecutive observations, one entry in each'
    >>> Protection(rows="time", unit="person", times=100).text
    'one person over the whole stream, one entry in each observation, in at most 100 observations'
    """

    rows: Rows = "people"
    unit: Basis = "record"
    window: int | None = None
    units_per_person: int = 1
    times: int | None = None
    person: str | None = None

    def __post_init__(self) -> None:
        if self.rows not in tuple(UNITS_OF_ROWS):
            raise ParameterError(f"rows: {self.rows!r} is not known. A row is one of people, or of time. Say which.")
        if self.unit not in UNITS_OF_ROWS[self.rows]:
            allowed = ", ".join(UNITS_OF_ROWS[self.rows])
            raise ParameterError(
                f"unit: {self.unit!r} cannot be protected where rows are {self.rows}. It is one of {allowed}. "
                "Choose one, or say otherwise what a row is."
            )
        if (self.window is None) != (self.unit != "window"):
            raise ParameterError("window: the unit window has a length, and no other unit has. Pass both or neither.")
        for name in ("window", "units_per_person", "times"):
            _require_count(name, getattr(self, name))
        if self.person is not None and (not isinstance(self.person, str) or not self.person or self.rows != "people"):
            raise ParameterError(
                "person must name the column that identifies people, and belongs to rows of people. Correct it."
            )

    @property
    def neighbours(self) -> Neighbours:
        """Whose change is hidden."""
        return NEIGHBOURS[self.unit]

    @property
    def text(self) -> Message:
        """Whom the account protects."""
        if self.person is not None:
            return self._person_text()
        parts = [self._change_text()]
        if self.times is not None and self.unit in ("window", "person"):
            parts.append(t("in at most {n:,} observations", n=self.times))
        if self.units_per_person > 1:
            parts.append(t("with up to {n:,} of these per person", n=self.units_per_person))
        return join(", ", parts)

    def _change_text(self) -> Message:
        match self.rows, self.unit:
            case "people", "record":
                return t("one record, whatever is in it (how many records there are is public)")
            case "people", _:
                return t("one record, and whether it is there at all")
            case _, "record":
                return t("one moment: all entries of one observation, not one person over time")
            case _, "entry":
                return t("one entry of one observation, not one person over time")
            case _, "window":
                return t("one person over any {window} consecutive observations, one entry in each", window=self.window)
            case _:
                return t("one person over the whole stream, one entry in each observation")

    def _person_text(self) -> Message:
        """Return the unit of protection where rows are brought together by person.  (Y1) (Y2)

        >>> Protection(person="patient_no").text
        'one person (all rows with the same patient_no); the number of people is public'
        """
        if self.unit == "membership":
            return t(
                "one person (all rows with the same {column}), and whether they are there at all", column=self.person
            )
        if self.units_per_person == 1:
            return t("one person (all rows with the same {column}); the number of people is public", column=self.person)
        return t(
            "one person (all rows with the same {column}, of which at most {n:,} are kept); the number of rows is "
            "public",
            column=self.person,
            n=self.units_per_person,
        )

    @property
    def unit_noun(self) -> Message:
        """Return the word for whom the account protects, as in "ε = 1.5 per person".

        >>> Protection(person="patient_no", units_per_person=3).unit_noun
        'person'
        """
        if self.person is not None or self.units_per_person > 1 or self.unit == "person":
            return t("person")
        match self.unit:
            case "window":
                return t("window of {window} observations", window=self.window)
            case "entry":
                return t("entry")
            case _:
                return t("record")

    @property
    def booking_text(self) -> Message | None:
        """Return how a cost per record is booked, by example; None where it is booked as it is stated.

        >>> Protection(person="patient_no", units_per_person=3).booking_text
        'a cost of ε = 0.5 per record is booked as ε = 1.5 per person'
        """
        if self.rows != "people" or self.units_per_person == 1:
            return None
        example = Fraction(1, 2)
        return t(
            "a cost of ε = {stated} per record is booked as ε = {booked} per person",
            stated=example,
            booked=example * self.units_per_person,
        )

    @property
    def person_change(self) -> Message | None:
        """Return the change of a person's rows that is hidden; None where rows are not brought together.  (Y1) (Y2)

        >>> Protection(person="patient_no").person_change
        'any one person (all rows with the same patient_no) replaced by any other (the number of people is public)'
        """
        if self.person is None:
            return None
        match self.unit, self.units_per_person:
            case "membership", 1:
                return t("any one person (all rows with the same {column}) added or removed", column=self.person)
            case "membership", most:
                return t(
                    "any one person (all rows with the same {column}, of which at most {n:,} are kept) added or "
                    "removed",
                    column=self.person,
                    n=most,
                )
            case _, 1:
                return t(
                    "any one person (all rows with the same {column}) replaced by any other (the number of people is "
                    "public)",
                    column=self.person,
                )
            case _, most:
                return t(
                    "any one person (all rows with the same {column}, of which at most {n:,} are kept) replaced by "
                    "any other with as many rows (the number of rows is public)",
                    column=self.person,
                    n=most,
                )

    def text_but(self, public: Iterable[str], *, named: int | None = None) -> Message:
        """Whom the account protects once queries have taken the cells of these columns for public, and once answers
        name records, the first of them by the entry `named`.

        >>> Protection(unit="membership").text_but(["ward"])
        'one record, and whether it is there at all; a change of its ward, which the schema calls public, is not hidden'
        >>> Protection().text_but([], named=17).partition("; ")[2]
        'since entry 17 answers name records, and no guarantee covers anybody who is named'
        """
        cells, parts = join(t(" or "), public), [self.text]
        if cells:
            parts.append(t("a change of its {cells}, which the schema calls public, is not hidden", cells=cells))
        if named is not None:
            parts.append(
                t("since entry {entry} answers name records, and no guarantee covers anybody who is named", entry=named)
            )
        return join("; ", parts)

    def to_json(self) -> dict[str, Any]:
        """What was declared, without what was left at its default but for rows and unit."""
        stated = {item.name: getattr(self, item.name) for item in fields(self)}
        defaults = {item.name: item.default for item in fields(self)}
        return {name: value for name, value in stated.items() if name in ("rows", "unit") or value != defaults[name]}

    @classmethod
    def from_json(cls, stored: Any) -> Self:
        """The protection that `to_json` described."""
        known = [item.name for item in fields(cls)]
        if not isinstance(stored, Mapping) or set(stored) - set(known):
            raise ParameterError(f"protects: it is a table of {', '.join(known)}. Correct it.")
        return cls(**stored)


def _require_count(name: str, value: object) -> None:
    if value is not None and (type(value) is not int or not 1 <= value <= MAX_COUNT):
        raise ParameterError(f"{name}: {str(value)[:40]!r} is not a whole number from 1 to {MAX_COUNT:,}. Pass one.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """What an answer that names records states: it protects nobody whom it names, and the steward allows it or not.

    detector   the ledger entry of the detector whose scores order the records
    most       the number of names that are requested, however many come out
    by_row     records are named by their row numbers, so the steward says that no replaced record moves another
    """

    detector: int
    most: int
    by_row: bool = False

    def __post_init__(self) -> None:
        for name in ("detector", "most"):
            _require_count(name, getattr(self, name))

    def to_json(self) -> dict[str, Any]:
        """What was stated, for the ledger."""
        return {"detector": self.detector, "most": self.most, "by_row": self.by_row}


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a question states of its own loss, from its parameters and public facts alone.

    `columns` is how many it reads of an observation; `steps` the length of the run of consecutive observations that it
    reads; `window` belongs to a loss for a window; `moves` how often an assumed change fits into the range; `one_sign`
    that a person's changes are assumed to have one sign; `separable` that one observation enters one independent
    factor. `rho` is a concentrated price with a proof of its own, `own` are factors with a proof of their own, by unit.
    `names` is a record that the question names, whom it does not protect.
    `public` are columns whose cells the question takes for public, as the schema says they are: it protects changes
    that leave these cells as they are. `whole_person` says that one change is everything of one person, so that
    `units_per_person` multiplies nothing.  (U9)
    `naming` is stated where the answer names records by itself: it protects everybody whom it does not name.  (N)
    """

    loss: Loss
    window: int | None = None
    columns: int | None = None
    steps: int | None = None
    moves: int = 1
    one_sign: bool = False
    separable: bool = False
    rho: Fraction | None = None
    own: tuple[tuple[str, Fraction], ...] = ()
    names: str | None = None
    public: tuple[str, ...] = ()
    whole_person: bool = False
    naming: Naming | None = None

    def __post_init__(self) -> None:
        for name in ("window", "columns", "steps", "moves"):
            _require_count(name, getattr(self, name))
        if self.rho is not None and self.rho < 0:
            raise ParameterError(f"rho: {self.rho} is below 0. A price in squares is 0 or more. Pass what was proved.")
        for unit, factor in self.own:
            if unit not in NEIGHBOURS or factor <= 0:
                raise ParameterError(
                    f"own: {factor} for {unit[:40]!r} is no factor. It is above 0, for one of {', '.join(NEIGHBOURS)}. "
                    "Pass what was proved."
                )

    def to_json(self) -> dict[str, Any]:
        """What was stated, for the ledger."""
        stated = {item.name: getattr(self, item.name) for item in fields(self) if item.name not in ("loss", "own")}
        defaults = {item.name: item.default for item in fields(self)}
        said = {name: value for name, value in stated.items() if value != defaults[name]}
        if self.rho is not None:
            said["rho"] = str(self.rho)
        if self.public:
            said["public"] = list(self.public)
        if self.naming is not None:
            said["naming"] = self.naming.to_json()
        own = {"own": {unit: str(factor) for unit, factor in self.own}} if self.own else {}
        return {"loss": {name: str(value) for name, value in self.loss.to_json().items()}, **said, **own}


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a question costs in a data set's unit: the factor, ε (None: the loss is ρ alone), δ and ρ (None: the answer
    names records, and no ρ bounds that)."""

    factor: Fraction
    epsilon: Fraction | None
    delta: Fraction
    rho: Fraction | None

    @property
    def loss(self) -> tuple[Fraction | None, Fraction, Fraction | None]:
        return self.epsilon, self.delta, self.rho


NOTHING: Final = Price(factor=Fraction(1), epsilon=Fraction(), delta=Fraction(), rho=Fraction())


def price(claim: Claim, declared: Protection) -> Price:
    """What the claim costs in the declared unit, or `Untranslatable` where no theorem says.

    >>> price(Claim(loss=Loss("0.25", neighbours=Neighbours.ADD_REMOVE)), Protection()).epsilon
    Fraction(1, 2)
    """
    loss = claim.loss
    if loss.kind is Kind.OUTPUT_CONSTRAINED:
        raise Untranslatable(CONSTRAINED)
    if loss.kind is Kind.METRIC or loss.neighbours not in BASES:
        raise Untranslatable(LOCAL)
    if claim.naming is not None and (declared.rows, declared.unit) != ("people", "record"):
        raise Untranslatable(NAMES_ROWS)  # (N)
    own = dict(claim.own).get(declared.unit)
    if own is None and declared.unit == "membership" and (loss.neighbours is not declared.neighbours or claim.one_sign):
        raise Untranslatable(HIDDEN_SIZE)  # (U7) whatever the loss: the number of records alone costs a record nothing
    if not loss.amount and not loss.delta:
        return NOTHING
    units = 1 if claim.whole_person else declared.units_per_person
    if own is not None:
        if loss.delta and own.denominator != 1:
            raise Untranslatable(BROKEN_STEPS)
        return _make_price(claim, grouped=own * units, apart=1)
    grouped, apart = _factors(claim, declared)
    return _make_price(claim, grouped=Fraction(grouped * units), apart=apart)


_NOUNS: Final[Mapping[Neighbours, Message]] = {
    Neighbours.REPLACE_ONE: t("record"),
    Neighbours.ADD_REMOVE: t("record added or removed"),
    Neighbours.ENTRY: t("entry"),
    Neighbours.PERSON: t("person"),
    Neighbours.WINDOW: t("window"),
    Neighbours.READING: t("reading"),
}


def basis_noun(loss: Loss) -> Message:
    """Return the word for what a query's own loss is about, as in "ε = 0.5 per record"."""
    return _NOUNS[loss.neighbours]


def cost_text(cost: Loss, booked: Loss | None, declared: Protection) -> Message:
    """Return what a query costs: what it states and, where the account is charged something else, what is booked.

    >>> cost_text(Loss("0.5"), Loss("1.5"), Protection(person="patient_no", units_per_person=3))
    'ε = 0.5 per record, booked as ε = 1.5 per person'
    >>> cost_text(Loss("0.5"), Loss("0.5"), Protection(person="patient_no"))
    'ε = 0.5 per person'
    """
    is_same = booked is not None and (booked.amount, booked.delta, booked.kind) == (cost.amount, cost.delta, cost.kind)
    if booked is None or (is_same and declared.person is None):
        return cost.text
    if is_same:
        return t("{cost} per {unit}", cost=cost.text, unit=declared.unit_noun)
    return t(
        "{cost} per {basis}, booked as {booked} per {unit}",
        cost=cost.text,
        basis=basis_noun(cost),
        booked=booked.text,
        unit=declared.unit_noun,
    )


def _factors(claim: Claim, declared: Protection) -> tuple[int, int]:
    """Steps along which losses multiply as for a group, and independent factors over which they add up."""
    basis, unit = BASES[claim.loss.neighbours], declared.unit
    if unit == "membership":
        return claim.moves, 1
    reach = _reach(claim, declared, basis)
    several = unit == "person" or (unit == "window" and declared.window != 1) or (unit == basis == "record")
    signs = 2 if claim.one_sign and several else 1  # (U5) one cell has one sign, several may have both
    steps = {"record": 1, "membership": 2}.get(basis, 1) * claim.moves * signs
    if unit == "record":
        return steps * (1 if basis in ("record", "membership") else _columns(claim)), 1
    return (steps, reach) if claim.separable and basis == "entry" else (steps * reach, 1)


def _reach(claim: Claim, declared: Protection, basis: str) -> int:
    """How many changes of the question's own unit one change of the declared unit takes in time.

    A run of observations is cut into windows of the claim. `times` bounds how many observations change, not how far
    apart they are: in the worst case each needs a window of its own.  (U4)
    """
    if declared.unit in ("record", "entry") or basis == "person":
        return 1
    runs = [steps for steps in (claim.steps, declared.window) if steps is not None]
    length = (claim.window or 1) if basis == "window" else 1
    bounds = [-(-run // length) for run in runs] + ([] if declared.times is None else [declared.times])
    if not bounds:
        raise Untranslatable(ENDLESS)
    return min(bounds)


def _columns(claim: Claim) -> int:
    if claim.columns is None:
        raise Untranslatable(NO_COLUMNS)
    return claim.columns


def _make_price(claim: Claim, *, grouped: Fraction, apart: int) -> Price:
    loss, factor = claim.loss, grouped * apart
    own = claim.rho if not loss.delta or grouped == 1 else None  # (U8) squares of good parts do not chain by themselves
    stated = loss.amount if loss.kind is Kind.ZCDP else own if own is not None else loss.amount**2 / 2
    rho = None if claim.naming is not None else round_up(stated * grouped**2 * apart, RHO_GRID)
    if loss.kind is Kind.ZCDP:
        return Price(factor=factor, epsilon=None, delta=Fraction(), rho=rho)
    return Price(factor=factor, epsilon=factor * loss.amount, delta=_group_delta(loss, factor), rho=rho)


def _group_delta(loss: Loss, factor: Fraction) -> Fraction:
    """δ(1 + e^ε + … + e^{(k-1)ε}), rounded up: a number that every correct program finds."""
    if not loss.delta or factor == 1:
        return loss.delta
    if not loss.amount:
        return _below_one(loss.delta * factor)
    if float((factor - 1) * loss.amount) + log(loss.delta) >= 0:
        raise Untranslatable("translated, delta is 1 or more and protects nobody")
    precision = 80 + len(str(int(1 / loss.amount)))  # e^ε - 1 keeps eighty digits of its own
    while True:
        low, high = _series(loss.amount, int(factor), precision)
        least, most = round_up(loss.delta * low, DELTA_GRID), round_up(loss.delta * high, DELTA_GRID)
        if least == most:
            return _below_one(least)
        precision *= 2


def _below_one(delta: Fraction) -> Fraction:
    if delta >= 1:
        raise Untranslatable("translated, delta is 1 or more and protects nobody")
    return delta


def _series(epsilon: Fraction, count: int, precision: int) -> tuple[Fraction, Fraction]:
    (one_low, one_high), (all_low, all_high) = exp_bounds(epsilon, precision), exp_bounds(epsilon * count, precision)
    return (all_low - 1) / (one_high - 1), (all_high - 1) / (one_low - 1)


def exp_bounds(power: Fraction, precision: int) -> tuple[Fraction, Fraction]:
    """Rationals on either side of e^power; `decimal` rounds each operation correctly, so a last place covers it."""
    found = []
    for rounding, neighbour in ((ROUND_FLOOR, Context.next_minus), (ROUND_CEILING, Context.next_plus)):
        context = Context(prec=precision, rounding=rounding)
        quotient = context.divide(Decimal(power.numerator), Decimal(power.denominator))
        found.append(Fraction(neighbour(context, context.exp(quotient))))
    return found[0], found[1]


def log(number: Fraction) -> float:
    """The logarithm, of numbers too small for a float as well."""
    return math.log(number.numerator) - math.log(number.denominator)


def round_up(number: Fraction, grid: int) -> Fraction:
    """The next multiple of one over the grid, from below."""
    return Fraction(math.ceil(number * grid), grid)
