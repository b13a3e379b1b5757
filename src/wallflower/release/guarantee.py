"""What a release promises, to whom, and which public facts it rests on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, Self

from wallflower.privacy import Kind, Loss, Neighbours
from wallflower.query import PublicFacts
from wallflower.text import Message, join, t, tn
from wallflower.units import Protection

_SHOWN_AT: Final = "1e-6"


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What a release promises, and to whom.

    loss    the loss that was stated
    public  columns whose cells were taken for public: adjacent tables agree in these
    change  the change that is hidden at this loss, in words, where a query assumes one that is smaller than the public
            range; empty: the change of the loss's adjacency
    booked  with a change or a person: what the budget was charged, which covers changes within the whole public range
            and all rows of a person
    theorems  what the promise rests on, by how it was checked (`wallflower.theorems`)
    protection  where rows are brought together by person: whom the account protects
    names_records  the answer names records, and what is promised leaves these out

    >>> Guarantee(Loss("0.5")).text.split(":")[0]
    'Differential privacy with ε = 0.5'
    >>> Guarantee(Loss("0.5"), booked=Loss("0.5"), protection=Protection(person="who")).unit
    'any one person (all rows with the same who) replaced by any other (the number of people is public)'
    """

    loss: Loss
    public: tuple[str, ...] = ()
    change: str = ""
    booked: Loss | None = None
    theorems: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    protection: Protection | None = None
    names_records: bool = False

    @property
    def kind(self) -> Kind:
        """Which guarantee it is."""
        return self.loss.kind

    @property
    def epsilon(self) -> float | None:
        """ε, where it has one."""
        return None if self.kind is Kind.ZCDP else _number(self.loss.amount)

    @property
    def delta(self) -> float:
        """δ, 0 where it has none."""
        return _number(self.loss.delta)

    @property
    def rho(self) -> float | None:
        """ρ, where it is zero-concentrated."""
        return _number(self.loss.amount) if self.kind is Kind.ZCDP else None

    @property
    def adjacency(self) -> Neighbours:
        """Whose change is hidden."""
        return self.loss.neighbours

    @property
    def person_loss(self) -> Loss | None:
        """The loss of a person with all their rows: what was booked; None where rows are not brought together."""
        if self.protection is None or self.protection.person is None or self.kind is Kind.OUTPUT_CONSTRAINED:
            return None
        return self.booked or (self.loss if self.protection.units_per_person == 1 else None)

    @property
    def unit(self) -> str:
        """The change that is hidden, in words: of a person's rows, where they are brought together."""
        if self.change:
            return self.change
        person = None if self.protection is None else self.protection.person_change
        return self.adjacency.text if person is None or self._is_per_row else person

    @property
    def text(self) -> Message:
        """What it promises, in a sentence or two."""
        sentences = [*self._change_sentences()]
        if self.public and self.person_loss is not None:
            cells = join(t(" and "), self.public)
            sentences.append(t("The person keeps the {cells}, public by the schema: that is not hidden.", cells=cells))
        elif self.public:
            cells = join(t(" and "), self.public)
            sentences.append(t("The record keeps its {cells}, public by the schema: that is not hidden.", cells=cells))
        if self.change and self.booked is not None and self.person_loss is None:
            sentences.append(
                t(
                    "Larger changes, up to the whole public range, are covered by the {loss} that was charged.",
                    loss=self.booked,
                )
            )
        return join(" ", sentences)

    @property
    def _is_per_row(self) -> bool:
        """Whether only single rows are covered, though a person may have several: no theorem for the group."""
        return self.person_loss is None and self.protection is not None and self.protection.units_per_person > 1

    def _change_sentences(self) -> Iterator[Message]:
        person, change = self.person_loss, None if self.protection is None else self.protection.person_change
        if self.names_records:
            yield _naming_text(person or self.loss, change or self.unit)
            return
        if person is None or change is None:
            yield _WORDS[self.kind](self.loss, self.unit)
            if self._is_per_row and change is not None:
                yield t("This is for a single row: a person with several rows is not covered.")
            return
        yield _WORDS[person.kind](person, change)
        if self.change or (person.amount, person.delta) != (self.loss.amount, self.loss.delta):
            yield t("With {change} it is {loss}.", change=self.change or self.adjacency.text, loss=self.loss)

    @property
    def evidence(self) -> str:
        """How what it rests on was checked, in words."""
        return "; ".join(f"{name}: {', '.join(labels)}" for name, labels in self.theorems.items())

    def to_json(self) -> dict[str, Any]:
        said = {"kind": str(self.kind), "epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}
        exact = {name: str(value) for name, value in self.loss.to_json().items()}
        return said | {
            "adjacency": str(self.adjacency),
            "text": self.text,
            "exact": self.loss.exact_text,
            "loss": exact,
            **({"theorems": {name: list(labels) for name, labels in self.theorems.items()}} if self.theorems else {}),
            **({"public": list(self.public)} if self.public else {}),
            **({"change": self.change} if self.change else {}),
            **({"booked": {name: str(value) for name, value in self.booked.to_json().items()}} if self.booked else {}),
            **({"protection": self.protection.to_json()} if self.protection else {}),
            **({"names_records": True} if self.names_records else {}),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        booked, protection = stored.get("booked"), stored.get("protection")
        return cls(
            Loss.from_json(stored["loss"]),
            public=tuple(stored.get("public", ())),
            change=stored.get("change", ""),
            booked=None if booked is None else Loss.from_json(booked),
            theorems={name: tuple(labels) for name, labels in stored.get("theorems", {}).items()},
            protection=None if protection is None else Protection.from_json(protection),
            names_records=stored.get("names_records", False),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The public facts a reading may use: it never sees the records.

    n          the number of records, or a bound of it
    dimension  the number of columns that were looked at
    columns    their names
    bound      n is only a public bound: the number of records is protected itself
    """

    n: int
    dimension: int
    columns: tuple[str, ...]
    bound: bool = False

    @property
    def records(self) -> Message:
        """How many records there are, in words."""
        return t("at most {n:,} records", n=self.n) if self.bound else t("{n:,} records", n=self.n)

    @property
    def text(self) -> Message:
        """The number of records and of columns, in words."""
        columns = tn("{n} column", "{n} columns", n=self.dimension)
        return t("{records}, {columns}", records=self.records, columns=columns)

    def __str__(self) -> str:
        return self.text

    @classmethod
    def of(cls, view: PublicFacts, cost: Loss) -> Facts:
        bound = cost.neighbours is Neighbours.ADD_REMOVE
        return cls(n=view.n, dimension=view.dimension, columns=tuple(view.columns), bound=bound)

    def to_json(self) -> dict[str, Any]:
        said = {"n": self.n, "dimension": self.dimension, "columns": list(self.columns)}
        return said | ({"bound": True} if self.bound else {})


def certainty(loss: Loss) -> Message | None:
    """What a loss means: how sure somebody who was undecided can become. None where it has no plain ε.

    It holds for somebody who knows all the rest. Where records depend on each other, as those of twins, and neither is
    known, an answer tells of both. With a δ single answers may tell more, and more often than δ; what holds is the
    share of guesses that are right: how sure somebody becomes on average, (e^ε + δ) / (1 + e^ε) at most.

    >>> certainty(Loss("0.5"))
    'Even someone who knows all the other data, and is undecided (50 %) about yours, becomes at most 62.3 % sure.'
    >>> certainty(Loss(36))
    'Someone who knows all the other data, and is undecided (50 %) about yours, can become over 99.9 % sure.'
    """
    if loss.kind not in (Kind.PURE, Kind.APPROXIMATE):
        return None
    fade = math.exp(-min(float(loss.amount), 100.0))
    sure = 100 * (1 + float(loss.delta) * fade) / (1 + fade)
    shown = math.ceil(sure * 10 + 1e-9) / 10
    is_highest = shown > _HIGHEST_SHOWN
    match is_highest, bool(loss.delta):
        case True, True:
            return t(
                "Someone who knows all the other data, and is undecided (50 %) about yours, can become over {sure} % "
                "sure on average.",
                sure=_HIGHEST_SHOWN,
            )
        case True, False:
            return t(
                "Someone who knows all the other data, and is undecided (50 %) about yours, can become over {sure} % "
                "sure.",
                sure=_HIGHEST_SHOWN,
            )
        case False, True:
            return t(
                "Even someone who knows all the other data, and is undecided (50 %) about yours, becomes at most "
                "{sure:g} % sure on average.",
                sure=shown,
            )
        case _:
            return t(
                "Even someone who knows all the other data, and is undecided (50 %) about yours, becomes at most "
                "{sure:g} % sure.",
                sure=shown,
            )


_HIGHEST_SHOWN: Final = 99.9  # per cent


def _number(exact: Fraction) -> float:
    return int(exact) if exact.denominator == 1 else float(exact)


def _factor(epsilon: Fraction) -> Message:
    if epsilon > 10:
        return t("e^{epsilon:g}", epsilon=float(epsilon))
    return t("{factor:g}", factor=math.ceil(math.exp(epsilon) * 100) / 100)


def _pure_text(loss: Loss, change: str) -> Message:
    return t(
        "Differential privacy with {loss}: with {change}, the probability of every answer changes by a factor of at "
        "most {factor}.",
        loss=loss,
        change=change,
        factor=_factor(loss.amount),
    )


def _approximate_text(loss: Loss, change: str) -> Message:
    return t(
        "(ε, δ)-differential privacy with {loss}: with {change}, the probability of any set of answers is at most "
        "{factor} times what it was, plus δ.",
        loss=loss,
        change=change,
        factor=_factor(loss.amount),
    )


def _concentrated_text(loss: Loss, change: str) -> Message:
    return t(
        "Zero-concentrated differential privacy with {loss}, which implies {shown}. Adjacent data sets: {change}.",
        loss=loss,
        shown=loss.at(_SHOWN_AT),
        change=change,
    )


def _output_constrained_text(loss: Loss, change: str) -> Message:
    return t(
        "Output-constrained privacy with {loss}, which is weaker than differential privacy: with {change}, the "
        "probability of every answer changes by a factor of at most {factor}, but only where that change leaves the "
        "record an outlier in exactly the same contexts. A change that does not is not hidden at all; the answer "
        "itself proves that the record is an outlier there; and several people together are not protected as a group.",
        loss=loss,
        change=change,
        factor=_factor(loss.amount),
    )


def _naming_text(loss: Loss, change: str) -> Message:
    return t(
        "No guarantee for the records that the answer names. For every other record, {loss}: with {change}, the "
        "probability of each answer that does not name this record changes by a factor of at most {factor}.",
        loss=loss,
        change=change,
        factor=_factor(loss.amount),
    )


def _metric_text(loss: Loss, change: str) -> Message:
    return t("Metric privacy with {loss}. Adjacent data sets: {change}.", loss=loss, change=change)


_WORDS: Final[Mapping[Kind, Callable[[Loss, str], Message]]] = {
    Kind.PURE: _pure_text,
    Kind.APPROXIMATE: _approximate_text,
    Kind.ZCDP: _concentrated_text,
    Kind.OUTPUT_CONSTRAINED: _output_constrained_text,
    Kind.METRIC: _metric_text,
}
