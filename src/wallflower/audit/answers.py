"""Audits of the real `answer`: what it draws, what its law is, and what `claim` states of it.

Attacks on the parts of an answer do not see how `answer` joins them. A query therefore declares a `Case` for each of
its modes: two adjacent tables, and by hand every draw that `answer` makes, with the part of ε (or ρ) that it spends.

Draws   `Recorder` is a noise that reads its numbers from a script and writes down what was drawn. Both tables must
        draw the same laws at the same scales and rates, among as many candidates; the draws must be those of the
        account; the account must add up to the cost of the query; every noisy number must have a draw of its own.
Laws    `law_of` adds up the law of the answer over one draw (or a few), with all others read from the script. The
        loss that two adjacent tables show must not exceed the part, and must come near it: an audit without power
        fails too.
Claim   what `claim` states (ε, δ, ρ) must be what the case says.

Each case is tried again with nine tenths of the noise, which must be caught.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.audit.attacks import Finding, Way
from wallflower.audit.laws import EXACT, Law, law_of, loss_between
from wallflower.audit.scripts import Draw
from wallflower.data import Points
from wallflower.errors import PrivacyError
from wallflower.noise import Noise
from wallflower.privacy import Kind, Loss
from wallflower.query import Query
from wallflower.units import Claim

Amount = Fraction | int | str
Seen = Callable[[Any], Hashable]

WORD: Final = 2**128  # the bound of one word of an exponential choice, and of a public key
SCALE_ERROR: Final = Fraction(1, 10**8)  # a scale is rounded up by no more than this share
DELTA_ERROR: Final = Fraction(1, 200)  # the same for Gaussian noise at δ, whose scale is a bound
SAMPLED_DRAWS: Final = 6  # noisy draws of an answer that are moved one by one
FAR_STEPS: Final = 256  # added to four scales, so that a number moves wherever it is rounded
BROKEN_FACTOR: Final = Fraction(10, 9)  # of ε, where a tenth of the noise is missing
NEGLIGIBLE: Final = 1e-13  # levels of a choice that are less likely are not tried
INFINITE: Final = 1e300  # JSON has no infinity


@dataclass(frozen=True, slots=True)
class DrawRecord:
    """One draw. `scale` is that of additive noise, the rate of a choice, the bound of a uniform number; `size` is the
    number of candidates of a choice, or of words."""

    law: str
    scale: Fraction = Fraction(0)
    size: int = 1

    def __str__(self) -> str:
        return f"{self.law} {float(self.scale):.6g}" + (f" of {self.size:,}" if self.size > 1 else "")


class Recorder:
    """Noise that reads its numbers from a script, and writes down what is drawn.

    Draws are counted from 0. Those in `free` come from `noise` instead, so that `law_of` can try all their values.
    `numbers` are the scripted values of additive draws (default: `usual`); a choice takes the first candidate, or level
    of candidates, whose weight is not 0; uniform numbers and words depend on their place alone.
    """

    def __init__(
        self,
        *,
        noise: Noise | None = None,
        free: Iterable[int] = (),
        numbers: Mapping[int, int] | None = None,
        usual: int = 0,
        is_halved: bool = False,
    ) -> None:
        self.noise, self.free, self.numbers, self.usual = noise, frozenset(free), numbers or {}, usual
        self.is_halved = is_halved  # how records are paired
        self.draws: list[DrawRecord] = []
        self.errors: dict[int, tuple[list[int], list[int]]] = {}  # of a choice: how far from the best, and how many
        self._weights: list[float] = []
        self._choice: tuple[str, int] | None = None  # what the next words decide, and how many numbers are left of it

    @property
    def _is_free(self) -> bool:
        return self.noise is not None and len(self.draws) - 1 in self.free

    def note_choice(self, law: str, rate: Fraction, gaps: Sequence[int], counts: Sequence[int]) -> None:
        candidates = sum(counts)
        if law != "rank":
            self.draws.append(DrawRecord(law, rate, candidates))
            self.errors[len(self.draws) - 1] = list(gaps), list(counts)
        self._choice = law, max(1, candidates - 1) if law == "permute-and-flip" else 1
        self._weights = [
            count * math.exp(-min(700.0, float(rate * gap))) for gap, count in zip(gaps, counts, strict=True)
        ]

    def laplace(self, scale: Fraction) -> Any:
        return self._add("laplace", scale)

    def gaussian(self, scale: Fraction) -> Any:
        return self._add("gaussian", scale)

    def _add(self, law: str, scale: Fraction) -> Any:
        self._choice = None
        if self._is_free and getattr(self.noise, "below_zero", None) == (law, scale):
            return getattr(self.noise, law)(scale)  # the same number, drawn again because it was below 0
        self.draws.append(_additive(law, scale))
        if self._is_free:
            return getattr(self.noise, law)(scale)
        return self.numbers.get(len(self.draws) - 1, self.usual)

    def below(self, bound: int) -> int:
        if self._choice is not None:
            law, left = self._choice
            self._choice = (law, left - 1) if left > 1 else None
            if self.noise is None or not self._is_free:
                return 0
            return self._choose(self.noise, bound) if law == "exponential" else self.noise.below(bound)
        self.draws.append(DrawRecord("uniform", Fraction(bound)))
        if self.noise is not None and self._is_free:
            return self.noise.below(bound)
        usual = int.from_bytes(self._hash(len(self.draws)), "big")
        return self.numbers.get(len(self.draws) - 1, usual) % bound

    def _choose(self, noise: Any, bound: int) -> int:
        """A word that leads to a level, each with its own chance, so that there are no more branches than levels."""
        total = sum(self._weights)
        chances = [weight / total for weight in self._weights]
        likely = [index for index, chance in enumerate(chances) if chance > NEGLIGIBLE]
        draw = Draw(
            first=0,
            last=len(likely) - 1,
            chance=lambda a, b: sum(chances[index] for index in likely[a : b + 1]),
            word=likely.__getitem__,
            apart=True,
        )
        index = noise.next(draw)
        middle = sum(map(Fraction, chances[:index])) + Fraction(chances[index]) / 2
        return int(middle * bound)

    def sample(self, bound: int, size: int) -> NDArray[np.int64]:
        """All even places, then all odd ones: neighbours in the table are paired. Or the first half with the second."""
        self._choice = None
        self.draws.append(DrawRecord("sample", Fraction(bound), size))
        places = np.arange(bound)
        order = places if self.is_halved else np.concatenate([places[::2], places[1::2]])
        return order[:size]

    def flip(self, exponent: Fraction) -> bool:
        if self._choice is None:
            self.draws.append(DrawRecord("flip", exponent))
        if self.noise is not None and self._is_free:
            return self.noise.flip(exponent)
        return exponent == 0

    def words(self, size: int) -> Any:
        self._choice = None
        self.draws.append(DrawRecord("words", size=size))
        words = getattr(self.noise, "words", None)
        if self._is_free and words is not None:
            return words(size)
        numbers: NDArray[np.uint64] = np.frombuffer(
            b"".join(self._hash(len(self.draws), at)[:8] for at in range(size)), dtype=np.uint64
        )
        return numbers

    def _hash(self, *places: int) -> bytes:
        return hashlib.sha256(repr(places).encode()).digest()


@lru_cache(maxsize=64)
def _additive(law: str, scale: Fraction) -> DrawRecord:
    return DrawRecord(law, Fraction(scale))


# The account


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Draws that follow each other in an answer, and what they spend together: an ε, or a ρ."""

    name: str
    spends: Fraction
    draws: tuple[DrawRecord, ...]
    over: Fraction = SCALE_ERROR  # by which share a scale may exceed that of the account
    is_epsilon: bool = True  # whether it spends an ε, and not a ρ
    delta: Fraction | None = None  # that goes with this ε, where it is not that of the query
    noisy: tuple[int, ...] = ()  # places, within the part, of draws that each move a number of the answer


def laplace(name: str, *, moves: int, epsilon: Amount, draws: int = 1, is_released: bool = True) -> Part:
    """Laplace noise on `draws` numbers that one change moves by `moves` steps in all. Numbers that only decide
    something are not released."""
    part = Fraction(epsilon)
    return Part(
        name=name,
        spends=part,
        draws=(DrawRecord("laplace", moves / part),) * draws,
        noisy=_noisy_range(draws, is_released),
    )


def gaussian(name: str, *, moves: int, rho: Amount, draws: int = 1, is_released: bool = True) -> Part:
    """Gaussian noise on `draws` numbers that one change moves by a vector of length `moves` steps."""
    part = Fraction(rho)
    drawn = DrawRecord("gaussian", _root(moves**2 / (2 * part)))
    noisy = _noisy_range(draws, is_released)
    return Part(name=name, spends=part, draws=(drawn,) * draws, is_epsilon=False, noisy=noisy)


def gaussian_at_delta(name: str, *, moves: int, epsilon: Amount, delta: Amount) -> Part:
    """Gaussian noise with the least scale that keeps (ε, δ), found here from the definition."""
    part = Fraction(epsilon)
    scale = _least_gaussian_scale(moves, float(part), float(Fraction(delta)))
    return Part(
        name=name,
        spends=part,
        draws=(DrawRecord("gaussian", Fraction(scale)),),
        over=DELTA_ERROR,
        delta=Fraction(delta),
        noisy=(0,),
    )


def gaussian_counts_at_delta(name: str, *, moves: int, epsilon: Amount, delta: Amount, draws: int) -> Part:
    """Gaussian noise on `draws` counts, of which one change moves `moves` by 1 each, with the least scale that keeps
    (ε, δ), found here from the definition."""
    part = Fraction(epsilon)
    scale = _least_counts_scale(moves, float(part), float(Fraction(delta)))
    drawn = DrawRecord("gaussian", Fraction(scale))
    return Part(
        name=name,
        spends=part,
        draws=(drawn,) * draws,
        over=DELTA_ERROR,
        delta=Fraction(delta),
        noisy=tuple(range(draws)),
    )


def exponential(
    name: str, *, epsilon: Amount, moves: int = 1, candidates: int, monotone: bool = False, law: str = "exponential"
) -> Part:
    """One choice among `candidates`, of whose scores one change moves each by `moves`."""
    part = Fraction(epsilon)
    rate = part / (moves if monotone else 2 * moves)
    return Part(name=name, spends=part, draws=(DrawRecord(law, rate, candidates),))


def bounded_range(name: str, *, rho: Amount, moves: int, candidates: int) -> Part:
    """One exponential choice that is paid for as a ρ: ε²/8."""
    part = Fraction(rho)
    return Part(
        name=name,
        spends=part,
        draws=(DrawRecord("exponential", _root(8 * part) / (2 * moves), candidates),),
        is_epsilon=False,
    )


def permute_and_flip(name: str, *, epsilon: Amount, moves: int, candidates: int) -> Part:
    """One choice by permute-and-flip."""
    return exponential(name, epsilon=epsilon, moves=moves, candidates=candidates, law="permute-and-flip")


def permute_and_flip_at_rho(name: str, *, rho: Amount, moves: int, candidates: int) -> Part:
    """One choice by permute-and-flip that is paid for as a ρ: ε²/2."""
    part = Fraction(rho)
    return Part(
        name=name,
        spends=part,
        draws=(DrawRecord("permute-and-flip", _root(2 * part) / (2 * moves), candidates),),
        is_epsilon=False,
    )


def even_choice(name: str, *, candidates: int) -> Part:
    """A choice in which all candidates weigh the same."""
    return Part(name=name, spends=Fraction(0), draws=(DrawRecord("exponential", Fraction(1), candidates),))


def cube(name: str, *, size: int, moves: int, epsilon: Amount, usual: int) -> Part:
    """Cube noise on `size` numbers, each of which one change moves by `moves`; additive draws are scripted `usual`.

    A level is drawn as a choice and `size` + 1 geometric numbers, then each number evenly within it.
    """
    part = Fraction(epsilon)
    scale = moves / part
    level = usual * (size + 1)
    start = DrawRecord("exponential", 1 / scale, 2**size * math.factorial(size))
    steps = (DrawRecord("laplace", scale),) * (size + 1)
    draws = (start, *steps, *(DrawRecord("uniform", Fraction(2 * level + 1)),) * size)
    return Part(name=name, spends=part, draws=draws, noisy=tuple(range(size + 2, 2 * size + 2)))


def coins(name: str, *, words: int, spends: Amount) -> Part:
    """Words that are compared with a table of thresholds: only their law shows what they spend."""
    return Part(name=name, spends=Fraction(spends), draws=(DrawRecord("words", size=words),))


def uniform(name: str, *bounds: int) -> Part:
    """Uniform numbers that do not depend on records, such as a key."""
    return Part(name=name, spends=Fraction(0), draws=tuple(DrawRecord("uniform", Fraction(b)) for b in bounds))


def join(name: str, *parts: Part) -> Part:
    """Parts as one, for numbers that one change moves together."""
    draws: tuple[DrawRecord, ...] = ()
    noisy: tuple[int, ...] = ()
    for part in parts:
        noisy += tuple(len(draws) + index for index in part.noisy)
        draws += part.draws
    spends = sum((part.spends for part in parts), Fraction(0))
    is_epsilon = all(part.is_epsilon for part in parts)
    return Part(name=name, spends=spends, draws=draws, is_epsilon=is_epsilon, noisy=noisy)


def secret_pairing(n: int) -> Part:
    """A secret pairing of n records: no part of the answer may tell it."""
    return Part(name="pairing", spends=Fraction(0), draws=(DrawRecord("sample", Fraction(n), n),))


@dataclass(frozen=True, slots=True, kw_only=True)
class LawCheck:
    """What the law over some draws shows of what they spend: from the share `least` to the share `most`, on the tables
    of the case or on `tables`. `parts` are names of the parts whose draws are free; `draws` picks some of theirs.

    No law may show more than all. Where the worst tables of a mechanism show less, `most` is what was added up for
    them once, so that less noise is noticed there too.
    """

    parts: tuple[str, ...]
    least: float
    most: float = 1.0
    seen: Seen | None = None
    tables: tuple[Any, Any] | None = None
    draws: tuple[int, ...] | None = None
    coupled: Callable[[Any], Sequence[int]] | None = None  # released numbers that both tables are given alike
    shifts: Mapping[int, int] | None = None  # instead of those of the case
    rare: tuple[float, float] = (0.0, 0.0)  # on each table, branches less likely than this are skipped
    law: Callable[[Any, Any], Law] | None = None  # of a query and a view, where branches are too many


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One mode of a query, with an account by hand.

    tables  two adjacent tables, as `view` takes them; `view` replaces that method where an answer needs more
    parts   all draws of an answer, in order
    rho     what `claim` states as a ρ of its own; None: nothing
    total   what the parts add up to, where it is not the amount of the cost
    laws    whose law is added up, and what it shows
    usual   the scripted value of every additive draw
    shifts  scripted noise of the second table, by the place of the draw: later draws then see the same released numbers
    claimed what `claim` states besides, where that is neither a default nor all columns and observations
    """

    name: str
    query: Query[Any, Any]
    tables: tuple[Any, Any]
    parts: tuple[Part, ...]
    rho: Fraction | None = None
    total: float | None = None
    laws: tuple[LawCheck, ...] = ()
    usual: int = 0
    shifts: Mapping[int, int] = field(default_factory=dict)
    view: Callable[[Query[Any, Any], Any], Any] = lambda query, table: query.view(table)
    claimed: Mapping[str, Any] = field(default_factory=dict)
    stated: Fraction | None = None  # the amount that `claim` states, where it is not that of the cost
    is_smoothed: bool = False  # released numbers are smoothed together, so that a draw moves several
    released: Callable[[Any], Sequence[int]] | None = (
        None  # noisy numbers of the answer, in steps, as they are drawn for
    )
    is_public: Callable[[Any], bool] | None = None  # whether what was chosen is a candidate by what is public by then
    blank: Any = None  # a table of equal records, whose answer no pairing changes
    varies: bool = False  # candidates depend on what was released before, or are the valid ones (output-constrained)
    without_law: Mapping[str, str] = field(default_factory=dict)  # parts that no law is of, and why
    drift: float = 0.0  # by which share a scale may differ between adjacent tables: 0 but for smooth sensitivity

    def answer(self, table: Any, noise: Any) -> Any:
        return self.query.answer(self.view(self.query, table), noise)

    def record(self, table: Any, numbers: Mapping[int, int] | None = None) -> tuple[Any, Recorder]:
        """The answer by the script, and what was drawn."""
        noise = Recorder(numbers=numbers, usual=self.usual)
        return self.answer(table, noise), noise

    @property
    def shows_scales(self) -> bool:
        """Whether some draw has a scale or a rate; words that are compared with a table have none."""
        return any(drawn.law != "words" for part in self.parts if part.spends for drawn in part.draws)

    def spent(self) -> float:
        return float(self.query.cost().amount) if self.total is None else self.total


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounts:
    """The accounts of a package of queries. `without_draws` names fields that change no law, scale or number of draws
    but by numbers that the account takes from the query, such as a degree cap."""

    cases: tuple[Case, ...]
    without_draws: frozenset[str] = frozenset()

    def of(self, kind: type[Query[Any, Any]]) -> tuple[Case, ...]:
        """The cases of one query."""
        return tuple(case for case in self.cases if isinstance(case.query, kind))

    def missing_modes(self, kind: type[Query[Any, Any]]) -> list[str]:
        """Modes of a query that no case has: choices, switches, optional fields, kinds of losses that it takes, and
        each of the former that is not the default with each kind of loss that it takes."""
        queries = [case.query for case in self.of(kind)]
        missing = []
        for item in fields(kind):
            used = {getattr(query, item.name) for query in queries if item.name not in self.without_draws}
            if item.name in self.without_draws:
                continue
            wanted = set(item.metadata.get("choices", ()))
            if item.type == "bool":
                wanted |= {True, False}
            missing += [f"{item.name}={choice}" for choice in sorted(wanted - used, key=str)]
            if item.default is None and not wanted:
                missing += [
                    f"{item.name}={'given' if is_given else None}"
                    for is_given in (True, False)
                    if is_given not in {value is not None for value in used}
                ]
        kinds = {query.cost().kind for query in queries}
        missing += [f"a {loss.kind} loss" for loss in LOSSES if loss.kind not in kinds and _takes(kind, loss)]
        return missing + self._missing_pairs(queries)

    def missing_laws(self, kind: type[Query[Any, Any]]) -> list[str]:
        """Parts that spend something, of which no law was added up and no reason for that is stated."""
        return [
            f"{part.name} of {case.name}"
            for case in self.of(kind)
            for part in case.parts
            if part.spends and part.name not in {name for check in case.laws for name in check.parts}
            if part.name not in case.without_law
        ]

    def _missing_pairs(self, queries: Sequence[Query[Any, Any]]) -> list[str]:
        """Settings that no case has with a kind of loss, though some case would take it."""
        known = {(setting, query.cost().kind) for query in queries for setting in self._settings(query)}
        wanted = {
            (setting, loss.kind)
            for query in queries
            for loss in LOSSES
            if _takes_instead(query, loss)
            for setting in self._settings(query)
        }
        return sorted(f"{setting} with a {kind} loss" for setting, kind in wanted - known)

    def _settings(self, query: Query[Any, Any]) -> list[str]:
        """What is not at its default."""
        settings = []
        for item in fields(query):
            value = getattr(query, item.name)
            if item.name in self.without_draws or item.default is MISSING or value == item.default:
                continue
            if item.metadata.get("choices") or item.type == "bool":
                settings.append(f"{item.name}={value}")
            elif item.default is None:
                settings.append(item.name)
        return settings


def _takes_instead(query: Query[Any, Any], loss: Loss) -> bool:
    with suppress(PrivacyError):
        return bool(replace(query, loss=loss).cost().kind is loss.kind)  # type: ignore[call-arg]
    return False


def _takes(kind: type[Query[Any, Any]], loss: Loss) -> bool:
    """Whether a query takes such a loss, in the mode of its example or in that of one of its choices."""
    example = kind.example()
    modes: list[dict[str, Any]] = [{}]
    modes += [{item.name: choice} for item in fields(kind) for choice in item.metadata.get("choices", ())]
    for mode in modes:
        with suppress(PrivacyError):
            replace(example, loss=loss, **mode)  # type: ignore[call-arg]
            return True
    return False


LOSSES: Final = (Loss("1"), Loss("1", delta="1e-6"), Loss.zcdp("1/2"))


def audit_cases(cases: Iterable[Case], *, laws: bool = True) -> Iterator[Finding]:
    """Every attack on these cases: what must hold, then the same with nine tenths of the noise."""
    for case in cases:
        yield audit_draws(case)
        yield audit_claim(case)
        if laws:
            yield from (audit_law_check(case, check) for check in case.laws)
        if case.shows_scales:
            yield audit_draws(shorten(case), name=f"broken: a tenth short, draws of {case.name}", expected=True)


def shorten(case: Case) -> Case:
    """The same account for a query that spends more than it says."""
    loss: Loss = case.query.loss  # type: ignore[attr-defined]
    more = Loss(loss.amount * BROKEN_FACTOR, delta=loss.delta, kind=loss.kind, neighbours=loss.neighbours)
    return replace(case, query=replace(case.query, loss=more), total=case.spent())  # type: ignore[call-arg]


def audit_draws(case: Case, *, name: str | None = None, expected: bool = False) -> Finding:
    """Refute that an answer draws what its account says, on both tables, and that the account adds up."""
    (first, noise), (second, other) = (case.record(table) for table in case.tables)
    reason = (
        _compare_draws(noise.draws, other.draws, case.drift)
        or _compare_account(noise.draws, case.parts)
        or _compare_total(case)
        or _moved_errors(case, noise)
        or _drawn_by_records(case, first, noise.draws)
        or _told_pairing(case)
        or _private_candidate(case, (first, second))
        or _unmoved_number(case, case.tables[0], first, noise.draws)
        or _released_beside_numbers(case, case.tables, noise.draws)
    )
    words = f"{len(noise.draws):,} draws, {len(case.parts)} parts, {case.spent():.6g} in all"
    return _make_finding(name or f"draws of {case.name}", reason or words, caught=reason is not None, expected=expected)


def audit_claim(case: Case) -> Finding:
    """Refute that `claim` states what the case says."""
    query = case.query
    views = [case.view(query, table) for table in (*case.tables, *_other_tables(case))]
    claims = [query.claim(view) for view in views]
    stated, cost = claims[0], query.cost()
    usual = {"columns": views[0].dimension, "steps": views[0].n}
    reason = None
    if any(claim != stated for claim in claims):
        reason = "the claim differs between tables with the same public facts"
    elif (stated.rho is None) != (case.rho is None) or (case.rho is not None and not _is_near(stated.rho, case.rho)):
        reason = f"claims ρ = {stated.rho}, by hand it is {case.rho}"
    elif stated.loss.amount != (case.stated or cost.amount) or stated.loss.delta != cost.delta:
        reason = f"claims {stated.loss}, and costs {cost}"
    elif wrong := _wrong_terms(stated, usual | dict(case.claimed)):
        reason = f"claims {wrong}"
    elif any(_stated_beforehand(query, view) != _stated_beforehand(query, views[0]) for view in views[1:]):
        reason = "the plan or a caution differs between tables with the same public facts"
    words = f"claims {stated.loss}" + ("" if stated.rho is None else f", ρ = {float(stated.rho):.6g}")
    return _make_finding(f"claim of {case.name}", reason or words, caught=reason is not None)


def _stated_beforehand(query: Query[Any, Any], view: Any) -> tuple[Any, ...]:
    """The plan, or why there is none, and the cautions: they are shown before the charge."""
    try:
        return query.plan_on(view), query.cautions(view)
    except PrivacyError as refusal:
        return str(refusal), query.cautions(view)


def _wrong_terms(stated: Claim, right: Mapping[str, Any]) -> str | None:
    """What a claim states besides its loss and its ρ, where that is not what the case says."""
    terms = {item.name: getattr(stated, item.name) for item in fields(stated) if item.name not in ("loss", "rho")}
    usual = {item.name: item.default for item in fields(stated)}
    wrong = {name: value for name, value in terms.items() if value != right.get(name, usual[name])}
    return ", ".join(f"{name} {value}, by hand {right.get(name, usual[name])}" for name, value in wrong.items()) or None


def audit_law_check(case: Case, check: LawCheck, *, name: str | None = None, expected: bool = False) -> Finding:
    """Refute what some parts spend by the laws of the answer on two adjacent tables."""
    claimed = sum((part.spends for part in case.parts if part.name in check.parts), Fraction(0))
    free = _places(case.parts, check)
    see = check.seen or freeze
    laws = []
    tables = check.tables or case.tables
    for table, rare in zip(tables, check.rare, strict=True):
        view = case.view(case.query, table)
        numbers = _couple(case, check, tables[0], table) | (_shifts(case, check) if table is tables[1] else {})

        def answer(noise: Noise, view: Any = view, numbers: Mapping[int, int] = numbers) -> Hashable:
            recorder = Recorder(noise=noise, free=free, usual=case.usual, numbers=numbers)
            return see(case.query.answer(view, recorder))

        laws.append(law_of(answer, least=rare) if check.law is None else check.law(case.query, view))
    lost = loss_between(laws[0], laws[1], _claimed_loss(case, check, claimed))
    other = " on tables of its own" if check.tables else ""
    name = name or f"law of {case.name}: {' and '.join(check.parts)}{other}"
    words = f"claims {float(claimed):.6g}, is {lost:.6g} over {len({**laws[0], **laws[1]})} outputs"
    if lost > check.most * float(claimed) * (1 + EXACT):
        words += "" if check.most == 1.0 else f": with the noise of the account it is at most {check.most:.2%}"
        return _make_finding(name, words, caught=True, claimed=float(claimed), lower=lost, expected=expected)
    if lost < check.least * float(claimed):
        words += f": these tables show less than {check.least:.0%}, so the audit has lost its power"
        return _make_finding(name, words, caught=not expected, claimed=float(claimed), lower=lost, expected=expected)
    return _make_finding(name, words, caught=False, claimed=float(claimed), lower=lost, expected=expected)


def _claimed_loss(case: Case, check: LawCheck, claimed: Fraction) -> Loss:
    """The kind of loss that some parts are paid for with: a ρ, or an ε with the δ of the query."""
    parts = [part for part in case.parts if part.name in check.parts]
    if _is_in_squares(case) or not all(part.is_epsilon for part in parts):
        return Loss.zcdp(claimed)
    deltas = [part.delta for part in parts if part.delta is not None]
    return Loss(claimed, delta=sum(deltas) if deltas else case.query.cost().delta)


def _shifts(case: Case, check: LawCheck) -> dict[int, int]:
    return dict(case.shifts if check.shifts is None else check.shifts)


def _couple(case: Case, check: LawCheck, first: Any, second: Any) -> dict[int, int]:
    """Noise with which the second table releases the numbers of the first."""
    return {} if check.coupled is None else _couple_numbers(case, check.coupled, first, second)


def _couple_numbers(case: Case, read: Callable[[Any], Sequence[int]], first: Any, second: Any) -> dict[int, int]:
    wanted, others = (read(case.record(table)[0]) for table in (first, second))
    return {
        index: case.usual + number - other
        for index, number, other in zip(_noisy_places(case.parts), wanted, others, strict=True)
    }


def freeze(value: Any) -> Hashable:
    """A released value as something that can be compared."""
    match value:
        case Mapping():
            return tuple((name, freeze(item)) for name, item in sorted(value.items()))
        case list() | tuple():
            return tuple(map(freeze, value))
        case _ if is_dataclass(value):  # an answer of several parts
            return tuple((item.name, freeze(getattr(value, item.name))) for item in fields(value))
        case _:
            return value  # type: ignore[no-any-return]


def _places(parts: Sequence[Part], check: LawCheck) -> list[int]:
    indices, at = [], 0
    for part in parts:
        if part.name in check.parts:
            indices += [at + index for index in (range(len(part.draws)) if check.draws is None else check.draws)]
        at += len(part.draws)
    return indices


def _compare_draws(first: Sequence[DrawRecord], second: Sequence[DrawRecord], drift: float) -> str | None:
    if len(first) != len(second):
        return f"{len(first)} draws, and {len(second)} on the adjacent table"
    for index, (drawn, other) in enumerate(zip(first, second, strict=True)):
        is_same = replace(drawn, scale=other.scale) == other and abs(drawn.scale - other.scale) <= drift * drawn.scale
        if not is_same:
            return f"draw {index} is {drawn}, and {other} on the adjacent table"
    return None


def _compare_account(draws: Sequence[DrawRecord], parts: Sequence[Part]) -> str | None:
    wanted = [(part, drawn) for part in parts for drawn in part.draws]
    if len(draws) != len(wanted):
        return f"{len(draws)} draws where the account has {len(wanted)}"
    for index, (drawn, (part, right)) in enumerate(zip(draws, wanted, strict=True)):
        is_same = replace(drawn, scale=right.scale) == right and _is_near(drawn.scale, right.scale, part.over)
        if not is_same:
            return f"{part.name}: draw {index} is {drawn}, and {right} by the account"
    return None


def _compare_total(case: Case) -> str | None:
    total, spent = float(sum(part.spends for part in case.parts)), case.spent()
    if not math.isclose(total, spent, rel_tol=EXACT):
        return f"the parts are {total:.6g}, the cost is {spent:.6g}"
    delta, stated = sum((part.delta or Fraction(0) for part in case.parts), Fraction(0)), case.query.cost().delta
    return None if delta <= stated else f"the parts spend δ = {float(delta):.6g}, the cost has {float(stated):.6g}"


def _moved_errors(case: Case, noise: Recorder) -> str | None:
    """Whether one change moves the errors of a choice further than its part pays for.

    Where one change moves each error by `moves` at most, it moves the errors in rising order by no more. The rate is
    the part over twice the moves, since the best moves too. What was released before is made the same.
    """
    numbers = dict(case.shifts) if case.released is None else _couple_numbers(case, case.released, *case.tables)
    _, other = case.record(case.tables[1], numbers)
    for index, part in _choices(case.parts):
        pairs = (zip(*recorder.errors[index], strict=True) for recorder in (noise, other))
        levels = [sorted((gap, count) for gap, count in pair if count) for pair in pairs]
        moved = max(abs(before - after) for before, after in _merge(*levels))
        if noise.draws[index].scale * moved > part.spends * (1 + SCALE_ERROR):
            return (
                f"{part.name}: errors of draw {index} move by {moved}, which costs more than {float(part.spends):.6g}"
            )
    return None


def _choices(parts: Sequence[Part]) -> Iterator[tuple[int, Part]]:
    """The places of choices that are paid for as an ε, each by a part of its own."""
    at = 0
    for part in parts:
        if len(part.draws) == 1 and part.draws[0].law in ("exponential", "permute-and-flip") and part.is_epsilon:
            yield at, part
        at += len(part.draws)


def _merge(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The errors of two tables side by side, in rising order."""
    left, right = list(first), list(second)
    while left and right:
        (gap, many), (other, more) = left[0], right[0]
        yield gap, other
        both = min(many, more)
        left[0], right[0] = (gap, many - both), (other, more - both)
        left, right = ([level for level in side if level[1]] for side in (left, right))


def _drawn_by_records(case: Case, value: Any, draws: Sequence[DrawRecord]) -> str | None:
    """Whether a table of zeros with the same public facts leads to other draws, or to more released numbers."""
    if case.varies or not (tables := _other_tables(case)):
        return None
    zeros = tables[0]
    released, noise = case.record(zeros)
    if case.drift == 0 and (reason := _compare_draws(draws, noise.draws, 0.0)):
        return reason.replace("the adjacent table", "a table of zeros")
    if case.released is not None and len(case.released(released)) != len(case.released(value)):
        return "the number of released numbers depends on the records"
    are_numbers = not any(index in noise.errors for index in range(len(draws)))
    return (
        _private_candidate(case, (released,))
        or _unmoved_number(case, zeros, released, noise.draws)
        or (_released_beside_numbers(case, (case.tables[0], zeros), draws) if are_numbers else None)
    )


def _other_tables(case: Case) -> tuple[Points, ...]:
    """Tables with the public facts of the first, where it is made of points: all records are 0, or all differ."""
    table = case.tables[0]
    if not isinstance(table, Points):
        return ()
    zeros = np.zeros_like(table.values)
    return replace(table, values=zeros), replace(table, values=zeros + np.arange(table.n)[:, None])


def _told_pairing(case: Case) -> str | None:
    """Whether the answer on equal records depends on who is paired with whom."""
    is_paired = any(drawn.law == "sample" for part in case.parts for drawn in part.draws)
    if not is_paired:
        return None
    if case.blank is None:
        return "records are paired, and the case has no table of equal records to see whether the answer tells how"
    values = [case.answer(case.blank, Recorder(usual=case.usual, is_halved=halved)) for halved in (False, True)]
    return None if freeze(values[0]) == freeze(values[1]) else "the answer tells who is paired with whom"


def _private_candidate(case: Case, values: Iterable[Any]) -> str | None:
    if case.is_public is None or all(map(case.is_public, values)):
        return None
    return "something was chosen that is no candidate by what is public: candidates depend on the records"


def _unmoved_number(case: Case, table: Any, value: Any, draws: Sequence[DrawRecord]) -> str | None:
    """Whether some noisy draw moves nothing in the answer, or two draws move the same numbers."""
    places = _noisy_places(case.parts)
    moved: dict[Hashable, int] = {}
    for index in places[:: max(1, len(places) // SAMPLED_DRAWS)]:
        changes = [case.record(table, {index: end})[0] for end in _far_ends(draws[index], case.usual)]
        changed = frozenset(path for end in changes for path in _changes(value, end))
        if not changed:
            return f"draw {index} moves no number"
        if changed in moved and not case.is_smoothed:
            return f"draws {moved[changed]} and {index} move the same numbers"
        moved[changed] = index
    return None


def _released_beside_numbers(case: Case, tables: tuple[Any, Any], draws: Sequence[DrawRecord]) -> str | None:
    """Whether the answers still differ where the noise makes all noisy numbers the same, near or far."""
    if case.released is None:
        return None
    numbers = _couple_numbers(case, case.released, *tables)
    for base in _bases(case, draws):
        both = (
            case.record(table, {index: base[index] + more.get(index, case.usual) - case.usual for index in base})[0]
            for table, more in zip(tables, ({}, numbers), strict=True)
        )
        first, second = map(freeze, both)
        if first != second:
            return "with noise that makes the noisy numbers the same, the answers still differ"
    return None


def _bases(case: Case, draws: Sequence[DrawRecord]) -> list[dict[int, int]]:
    """Scripts of the noisy draws: the usual one, all of them far off to either side, and to both sides by turns."""
    places = _noisy_places(case.parts)
    ends = [_far_ends(draws[index], case.usual) for index in places]
    return [
        dict.fromkeys(places, case.usual),
        *({index: pair[side] for index, pair in zip(places, ends, strict=True)} for side in (0, 1)),
        *(
            {index: pair[(turn + at) % 2] for at, (index, pair) in enumerate(zip(places, ends, strict=True))}
            for turn in (0, 1)
        ),
    ]


def _noisy_places(parts: Sequence[Part]) -> list[int]:
    indices, at = [], 0
    for part in parts:
        indices += [at + index for index in part.noisy]
        at += len(part.draws)
    return indices


def _far_ends(drawn: DrawRecord, usual: int) -> tuple[int, int]:
    """Numbers that are far apart, for one draw."""
    if drawn.law == "uniform":
        return 0, int(drawn.scale) - 1
    far = math.ceil(4 * drawn.scale) + FAR_STEPS
    return usual + far, usual - far


def _changes(first: Any, second: Any, path: tuple[Hashable, ...] = ()) -> Iterator[tuple[Hashable, ...]]:
    first, second = (side if isinstance(side, Mapping | list | tuple) else freeze(side) for side in (first, second))
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        for name in first:
            yield from _changes(first[name], second.get(name), (*path, name))
    elif isinstance(first, list | tuple) and isinstance(second, list | tuple) and len(first) == len(second):
        for index, pair in enumerate(zip(first, second, strict=True)):
            yield from _changes(*pair, (*path, index))
    elif first != second:
        yield path


def _noisy_range(draws: int, is_released: bool) -> tuple[int, ...]:
    return tuple(range(draws)) if is_released else ()


def _is_in_squares(case: Case) -> bool:
    return case.query.cost().kind is Kind.ZCDP


def _is_near(scale: Fraction | None, right: Fraction, over: Fraction = SCALE_ERROR) -> bool:
    return scale is not None and -SCALE_ERROR * right <= scale - right <= over * right


def _root(square: Fraction) -> Fraction:
    return Fraction(math.sqrt(square))


def _least_gaussian_scale(moves: int, epsilon: float, delta: float) -> float:
    """The least scale at which P(Z = z) <= e^ε P(Z = z - moves) but for mass δ, by bisection over sums."""

    def leak(scale: float) -> float:
        at = np.arange(-math.ceil(30 * scale) - moves, math.ceil(30 * scale) + 1)
        log_weights = -((at / scale) ** 2) / 2
        shifted = -(((at + moves) / scale) ** 2) / 2
        excess = np.exp(log_weights) * -np.expm1(np.minimum(0.0, epsilon + shifted - log_weights))
        return float(excess.sum() / np.exp(log_weights).sum())

    low, high = moves * 1e-3, moves * 1e3
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if leak(middle) <= delta else (middle, high)
    return high


def sum_law(scale: float, numbers: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The law of a sum of independent discrete Gaussian numbers, added up term by term: all terms are positive, so no
    digits are lost where it is small."""
    far, reach = math.ceil(12 * scale), math.ceil(12 * scale * math.sqrt(numbers)) + numbers
    at = np.arange(-far, far + 1)
    term = np.exp(-((at / scale) ** 2) / 2)
    term /= term.sum()
    total, left = np.ones(1), numbers
    while left:
        if left % 2:
            total = _cut(np.convolve(total, term), reach)
        term, left = _cut(np.convolve(term, term), reach), left // 2
    half = len(total) // 2
    return np.arange(-half, half + 1), total


def _cut(chances: NDArray[np.float64], reach: int) -> NDArray[np.float64]:
    middle = len(chances) // 2
    return chances[max(0, middle - reach) : middle + reach + 1]


@lru_cache(maxsize=16)
def _least_counts_scale(moves: int, epsilon: float, delta: float) -> float:
    """The least scale at which the sum of the noise of `moves` counts is within e^ε of the sum shifted by `moves`, but
    for mass δ, by bisection over sums: counts that move by 1 each differ in nothing else."""

    def leak(scale: float) -> float:
        _, chances = sum_law(scale, moves)
        shifted = np.concatenate([chances[moves:], np.zeros(moves)])
        return float(np.maximum(chances - math.exp(epsilon) * shifted, 0.0).sum())

    low, high = 0.5, 8 * math.sqrt(moves * math.log(2 / delta)) * max(1.0, 1 / epsilon)
    for _ in range(30):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if leak(middle) <= delta else (middle, high)
    return high


def _make_finding(
    name: str,
    words: str,
    *,
    caught: bool,
    claimed: float | None = None,
    lower: float | None = None,
    expected: bool = False,
) -> Finding:
    lower = None if lower is None else min(lower, INFINITE)
    return Finding(
        name=name, way=Way.ANSWER, claimed=claimed, lower=lower, caught=caught, text=words, expected=expected
    )
