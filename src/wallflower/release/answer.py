"""What comes out of the door: a private answer, and everything that may be said about it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol

from wallflower.errors import ParameterError
from wallflower.machine.files import write_private
from wallflower.machine.heavy import pyarrow as _pa
from wallflower.machine.lazy import load
from wallflower.noise import secret
from wallflower.privacy import Loss
from wallflower.query import COVERS, A, Quality, Query
from wallflower.query.accuracy import OVERCOUNT, Comparison, comparable_law, compare_numbers
from wallflower.release.guarantee import Facts, Guarantee, certainty
from wallflower.release.text import Row, readable, rows_of_value, to_csv, to_frame
from wallflower.schema.columns import list_names
from wallflower.text import collect_messages, join, restore_messages, t

SALT_BYTES: Final = 32
LIST_BLOCK: Final = 2**16  # the size of a file with a list is a multiple of this


class Renderer(Protocol):
    """The functions of `wallflower.report` that draw a release."""

    def figure(self, release: Release[Any], /, **asked: Any) -> Any: ...

    def card(self, release: Release[Any], /) -> str: ...

    def write_one(self, path: Path, release: Release[Any], /) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Release(Generic[A]):
    """A private answer and everything that may be said about it.

    Only the value, and what is computed from it, depends on the records.

    value       the private answer: a number, a list or a mapping, by its question
    interval    its two ends, where the mechanism has one
    covers      what the interval is, as a rule a 95 % confidence interval
    text        what the value says, in a sentence
    guarantee   what was promised, and to whom
    mechanism   how it was made
    proof       where the promise is proved
    status      how far the proof reaches
    kind        the word of its question, such as count
    label       the lasting name of its question in ledgers, such as outlier-count/1
    question    its question, in words
    parameters  what was asked for, exactly, as plain JSON
    dataset     data set name; the budget is tracked under it
    facts       the public facts that it rests on
    analyst     who asked
    ledger_id   its charge in the ledger
    left        what the analyst could still spend on this data set afterwards
    booked      what the account was charged, in the unit that it protects
    limit       what the account may spend in all
    protects    whom the account protects, in words
    terms       what was asked for, in words
    charged_at  when it was charged
    quality     noise, what of the interval is proved, and the conditions to check first
    notes       caveats, in words
    extras      more that follows from the value, by name
    version     of the library that made it
    replayed    it was paid for earlier, under the same key
    brief       the value in short, where it is too long to be read
    """

    value: A
    interval: tuple[float, float] | None
    covers: str = COVERS
    text: str
    guarantee: Guarantee
    mechanism: str
    proof: str
    status: str
    kind: str
    label: str
    question: str
    parameters: Mapping[str, Any]
    dataset: str
    facts: Facts
    analyst: str
    ledger_id: int
    left: Loss
    booked: Loss | None = None
    limit: Loss | None = None
    protects: str = ""
    terms: str = ""
    charged_at: str = ""
    quality: Quality | None = None
    notes: tuple[str, ...] = ()
    extras: Mapping[str, Any] = field(default_factory=dict)
    version: str
    replayed: bool = False
    brief: str = ""

    @property
    def is_model(self) -> bool:
        """Whether the value can be used again and again, on any records."""
        return _find_query(self.kind) is not None

    @property
    def model(self) -> Any:
        """The fitted model, to be used on any records: that is post-processing and costs nothing."""
        query = _find_query(self.kind)
        if query is None:
            raise AttributeError(f"a release of {self.kind} is an answer, not a model.", name="model", obj=self)
        return query.make_model(self.value)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """What its model does, as if it were the release's own: `found.predict(records)`."""
            if name.startswith("_") or not self.is_model:
                raise AttributeError(f"a release has no {name!r}.", name=name, obj=self)
            return getattr(self.model, name)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, exact where it matters."""
        plain = {item.name: getattr(self, item.name) for item in fields(self)}
        plain |= {
            "interval": None if self.interval is None else list(self.interval),
            "guarantee": self.guarantee.to_json(),
            "parameters": dict(self.parameters),
            "facts": self.facts.to_json(),
            "left": _loss_json(self.left),
            "booked": None if self.booked is None else _loss_json(self.booked),
            "limit": None if self.limit is None else _loss_json(self.limit),
            "quality": None if self.quality is None else self.quality.to_json(),
            "notes": list(self.notes),
            "extras": dict(self.extras),
        }
        return plain | {"messages": collect_messages(plain)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Release[Any]:
        """The release that `to_dict` described; unknown entries of a newer version are ignored."""
        stored = restore_messages(stored, stored.get("messages", {}))
        known = {item.name: stored[item.name] for item in fields(cls) if item.name in stored}
        facts, interval = stored["facts"], stored["interval"]
        booked, limit, quality = stored.get("booked"), stored.get("limit"), stored.get("quality")
        return Release(
            **known
            | {
                "interval": None if interval is None else (interval[0], interval[1]),
                "guarantee": Guarantee.from_json(stored["guarantee"]),
                "facts": Facts(**{**facts, "columns": tuple(facts["columns"])}),
                "left": Loss.from_json(stored["left"]),
                "booked": None if booked is None else Loss.from_json(booked),
                "limit": None if limit is None else Loss.from_json(limit),
                "quality": None if quality is None else Quality.from_json(quality),
                "notes": tuple(stored["notes"]),
            }
        )

    @property
    def is_withheld(self) -> bool:
        """Whether the value was delivered once, to the person who asked, and is not here."""
        return "digest" in self.extras and self.value is None

    def deliver(self, value: Any) -> Release[Any]:
        """Return the release with a value that only the person who asked gets, and with a salted digest of it."""
        salt = secret(SALT_BYTES).hex()
        extras = {**self.extras, "digest": _digest(salt, value), "salt": salt}
        return replace(self, value=value, extras=extras)

    def kept(self) -> Release[Any]:
        """Return the release as the ledger keeps it: without a value that is delivered once, and without its salt.

        Values can be guessed, so a digest whose salt were kept would show them.
        """
        if "salt" not in self.extras:
            return self
        extras = {name: part for name, part in self.extras.items() if name != "salt"}
        kept: Release[Any] = self
        return replace(kept, value=None, extras=extras)

    def write_list(self, path: str | Path) -> Path:
        """Write a value that is delivered once to a new file that only its owner can read, and return where it is.

        Its size is a multiple of `LIST_BLOCK` bytes, so that it does not show how long the list is.
        """
        if "salt" not in self.extras:
            raise ParameterError(f"entry {self.ledger_id}: there is no list here to write. Pass the release itself.")
        body = {"dataset": self.dataset, "ledger_id": self.ledger_id, "notice": self.text}
        text = json.dumps({**body, "salt": self.extras["salt"], "list": self.value}, ensure_ascii=False)
        return write_private(path, pad_text(text))

    def read_list(self, path: str | Path) -> Release[Any]:
        """Return the release with the list that `write_list` wrote, if the ledger has its digest."""
        refusal = ParameterError(
            f"{path}: that is not the list of entry {self.ledger_id}, which was delivered once and is kept nowhere "
            "else. Pass the file that it was written to."
        )
        try:
            stored = json.loads(Path(path).read_bytes())
            value, salt = stored["list"], stored["salt"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            raise refusal from None
        if not isinstance(salt, str) or _digest(salt, value) != self.extras.get("digest"):
            raise refusal
        return replace(self, value=value, extras={**self.extras, "salt": salt})

    def to_json(self) -> str:
        """One JSON object, as text."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def to_arrow(self) -> Any:
        """A pyarrow Table of one row, to be stacked with others of its kind; lists and mappings are JSON in it."""
        low, high = self.interval or (None, None)
        promise, double = self.guarantee, _pa.float64()
        numbers = {"low": low, "high": high, "epsilon": promise.epsilon, "delta": promise.delta, "rho": promise.rho}
        words = {name: getattr(self, name) for name in ("mechanism", "proof", "status", "label", "analyst", "version")}
        nested = isinstance(self.value, list | Mapping)
        value = json.dumps(self.value, ensure_ascii=False) if nested else self.value
        row = {"dataset": self.dataset, "kind": self.kind, "value": value, "ledger_id": self.ledger_id, **words}
        row |= {"guarantee": str(promise.kind), "adjacency": str(promise.adjacency), "n": self.facts.n}
        row |= {"parameters": json.dumps(dict(self.parameters), sort_keys=True)}
        columns = {name: _pa.array([value]) for name, value in row.items()}
        return _pa.table(columns | {name: _pa.array([value], type=double) for name, value in numbers.items()})

    def to_csv(self) -> str:
        """The value as the text of a CSV file: a row for each part of it, with its interval where it has one."""
        return to_csv(self.rows())

    def to_pandas(self) -> Any:
        """A pandas DataFrame with the rows of `to_csv`."""
        return to_frame(self.rows())

    def report(self, path: str | Path) -> Path:
        """Write the release as one HTML page, complete in itself, and return where it is."""
        place = Path(path)
        _renderer().write_one(place, self)
        return place

    def plot(self, **asked: Any) -> Any:
        """A matplotlib Figure: the value with its interval, and what each ε would have given. A detector draws what is
        asked for: scores of `records`, why a `record` has its score, a map of two `columns`."""
        return _renderer().figure(self, **asked)

    def compare(self, a: Release[Any] | str, b: str | None = None) -> Comparison:
        """Test whether two released counts differ by more than noise: post-processing, free of charge.

        Two releases of counts: `Release.compare(first, second)`. Two groups of one release by group:
        `release.compare("north", "south")`; groups by two columns are named as `north × F`. The p-value is two-sided
        and follows from the known laws of the noise.

        a  another release of a count, or a group of this one
        b  the other group
        """
        law = comparable_law(self.extras, f"entry {self.ledger_id}")
        note = OVERCOUNT if self.mechanism == "extension" else ""
        if isinstance(a, Release):
            laws = law, comparable_law(a.extras, f"entry {a.ledger_id}")
            numbers = self._comparable_number(), a._comparable_number()
            note = OVERCOUNT if "extension" in (self.mechanism, a.mechanism) else ""
            return compare_numbers(numbers[0], numbers[1], laws, note=note)
        if b is None:
            raise ParameterError("compare: name two groups, or pass another release of a count.")
        return compare_numbers(self._comparable_group(a), self._comparable_group(b), (law, law), note=note)

    def _comparable_number(self) -> tuple[str, int]:
        if not isinstance(self.value, int):
            raise ParameterError(
                f"compare: entry {self.ledger_id} has a number for each group. Name two groups, or pass counts."
            )
        return f"{self.dataset} (entry {self.ledger_id})", int(self.value)

    def _comparable_group(self, name: str) -> tuple[str, int]:
        rows: Any = self.value if isinstance(self.value, list) else []
        by = self.parameters.get("by") or ()
        known = {" × ".join(str(row[column]) for column in by): row for row in rows if isinstance(row, Mapping)}
        if name not in known:
            raise ParameterError(f"compare: there is no group {name!r}; there are {list_names(known)}. Name two.")
        number = next(known[name][part] for part in ("outliers", "flagged") if part in known[name])
        return name, int(number)

    def rows(self) -> list[Row]:
        """The answer as rows of a table: one for each part of the value, with its interval where there is one."""
        intervals = self.extras.get("intervals") or (None if self.interval is None else [self.interval])
        return rows_of_value(self.value, intervals)

    def _repr_html_(self) -> str:
        return _renderer().card(self)

    def __repr__(self) -> str:
        return f"Release({self.kind} of {self.dataset}: {self.summary}, {self.guarantee.loss}, ledger {self.ledger_id})"

    def __str__(self) -> str:
        lines = [self.question, f"  {self.summary}", f"  {self.text}"]
        lines += [] if self.quality is None else [f"  {self.quality_text}"]
        lines += [f"  {self.guarantee.text}", f"  {self.dataset}, ledger entry {self.ledger_id}. {self.price}"]
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])

    @property
    def quality_text(self) -> str:
        """The conditions to check first and the noise, in words."""
        return "" if self.quality is None else self.quality.text

    @property
    def charged_at_text(self) -> str:
        """When it was charged, to the second."""
        return f"{self.charged_at[:19].replace('T', ' ')} UTC" if self.charged_at else ""

    @property
    def price(self) -> str:
        """What the answer took from the budget, what is left of it, and what that means for a person."""
        left = t("{left} is left for {analyst}.", left=self.left, analyst=self.analyst)
        if self.booked is None or self.limit is None:
            return left
        if (self.booked.amount, self.booked.delta) == (self.guarantee.loss.amount, self.guarantee.loss.delta):
            cost = t("It cost {cost}.", cost=self.booked)
        else:
            cost = t(
                "It was charged {cost} (requested: {stated}, converted to the unit of protection).",
                cost=self.booked,
                stated=self.guarantee.loss,
            )
        budget = t("The budget of all analysts together is {limit}.", limit=self.limit)
        meaning = certainty(self.booked)
        if meaning is not None and self.guarantee.names_records:
            meaning = t("{meaning} This holds only for people whom no answer names.", meaning=meaning)
        return join(" ", [cost, left, budget, *([] if meaning is None else [meaning])])

    @property
    def loss_text(self) -> str:
        """The loss, exactly; where rows are brought together by person, that of a person with all their rows."""
        person = self.guarantee.person_loss
        return str(self.guarantee.loss) if person is None else t("{loss} per person", loss=str(person))

    @property
    def summary(self) -> str:
        """The value and its interval, rounded for reading."""
        if self.brief:
            return self.brief
        if self.interval is None:
            return readable(self.value)
        low, high = map(readable, self.interval)
        return t(
            "{value} ({covers} {low} to {high})", value=readable(self.value), covers=self.covers, low=low, high=high
        )


def _digest(salt: str, value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(f"{salt}\n{text}".encode()).hexdigest()


def pad_text(text: str) -> bytes:
    """Return the text with spaces and a line end, up to a multiple of `LIST_BLOCK` bytes."""
    content = text.encode("utf-8", "surrogatepass")
    return content + b" " * (-(len(content) + 1) % LIST_BLOCK) + b"\n"


def _renderer() -> Renderer:
    """Return `wallflower.report`, which imports this module and so is imported when first used."""
    renderer: Renderer = load("wallflower.report")
    return renderer


def _find_query(kind: str) -> type[Query[Any, Any]] | None:
    """Return the query of a kind whose answers are models; `wallflower.queries` is above this package."""
    queries = load("wallflower.queries")
    known: tuple[type[Query[Any, Any]], ...] = (*queries.QUERIES, *queries.COMPANIONS)
    return next((query for query in known if query.kind == kind and query.is_model), None)


def compare(a: Release[Any], b: Release[Any]) -> Comparison:
    """Test whether two released counts differ by more than noise explains, for free: a p-value by the known laws.

    a  a release of a count
    b  another one
    """
    return a.compare(b)


def _loss_json(loss: Loss) -> dict[str, Any]:
    return {**{name: str(value) for name, value in loss.to_json().items()}, "exact": loss.exact_text}


def day_words(release: Release[Any]) -> str:
    """The day of the charge, as it is written in a text; nothing where it is not known."""
    try:
        day = date.fromisoformat(release.charged_at[:10])
    except ValueError:
        return ""
    return f"{day.day} {day:%B %Y}"


def citation(release: Release[Any], *, publisher: str, link: str) -> str:
    """One text that finds the release again."""
    terms = f", {release.terms}" if release.terms else ""
    day = day_words(release)
    parts = (
        f"{publisher}: {release.question}" if publisher else release.question,
        f"Data set {release.dataset}, {release.facts}{terms}; {release.loss_text}.",
        f"Release {release.ledger_id} of its ledger{f', {day}' if day else ''}.",
        f"wallflower {release.version}.",
        link,
    )
    return " ".join(filter(None, parts))
