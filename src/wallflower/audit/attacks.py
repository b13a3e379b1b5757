"""Attacks on mechanisms: can what they claim be refuted?

Sampling    `audit` draws outputs on two neighbouring tables and bounds the loss from below, with confidence.
Counting    `audit_bound` tries a sensitivity bound on every table of a tiny world, and every neighbour of each.
Comparing   `audit_exact` compares an exact answer with brute force, case by case.

An audit that finds nothing proves nothing; one that finds something is a counterexample. Everything here runs on
public, made-up tables. A query package lists its attacks in its `audit`, and `evidence.audits(kind)` runs them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wallflower.errors import LossMismatch, ParameterError
from wallflower.machine.heavy import scipy_special as _special
from wallflower.noise import Noise, system_noise
from wallflower.privacy import Kind, Loss

Floats = NDArray[np.float64]
Outputs = NDArray[Any]
Sampler = Callable[[int], Outputs]
Measure = Callable[[Floats, Floats], Floats]
Site = tuple[float, ...]
Records = tuple[Site, ...]
Attack = Callable[[bool], Iterator["Finding"]]  # takes whether to be quick

TRIALS: Final = 60_000
CONFIDENCE: Final = 1 - 1e-9  # so that no sound mechanism is ever caught by chance
LEVELS: Final = 2_000  # how many outputs are tried as the edge of an event
ROUNDING: Final = 1e-12  # the relative error of a computed bound that `smooth_beta` allows for
REACH_SCALES: Final = 64  # draws beyond these have a probability below 1e-27


class Way(StrEnum):
    """How something was found."""

    ORACLE = "an exact answer beside brute force"
    WORLD = "a bound or a law on every table of a tiny world"
    OUTPUTS = "what comes out for two neighbouring tables, drawn or added up"
    ANSWER = "what `answer` itself draws and returns on two adjacent tables, and what `claim` states"
    ORDER = "whether the charge comes before the look"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What an attack found. `claimed` is the promise, `lower` what the truth was shown to be at least: an ε, a ρ, a
    sensitivity or a β. `counterexample` holds the made-up tables that refute the claim, when those were found."""

    name: str
    way: Way
    claimed: float | None
    lower: float | None
    caught: bool
    text: str
    expected: bool = False
    counterexample: tuple[Records, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether a sound mechanism held, or a broken one was caught."""
        return self.caught == self.expected


# Sampling


@dataclass(frozen=True, slots=True)
class Event:
    """A set of outputs. `swapped` says that it is the second table that makes it likelier."""

    side: str
    edge: Any
    swapped: bool

    def hits(self, outputs: Outputs) -> int:
        return int(np.count_nonzero(_SIDES[self.side](outputs, self.edge)))


_SIDES: Final[Mapping[str, Callable[[Outputs, Any], NDArray[np.bool_]]]] = {
    "outputs up to": np.less_equal,
    "outputs from": np.greater_equal,
    "outputs of": np.equal,
}


def audit(
    first: Sampler,
    second: Sampler,
    *,
    claimed: Loss,
    trials: int = TRIALS,
    confidence: float = CONFIDENCE,
    name: str = "mechanism",
    expected: bool = False,
) -> Finding:
    """Refute a claimed loss from `trials` outputs on each of two neighbouring tables, or fail to.

    One half of the outputs chooses the event that tells the tables apart best; the other half, never looked at
    before, bounds its two probabilities [CP34]. A sound mechanism is caught with probability 1 - `confidence` at most.
    """
    measure, half = _measure(claimed), trials // 2
    if half < 1 or not 0 < confidence < 1:
        raise ParameterError(
            f"trials, confidence: {trials} and {confidence} give no bound; pass 2 trials or more and less than 1."
        )
    outputs, miss = (first(2 * half), second(2 * half)), (1 - confidence) / 2
    event = _best_event(outputs[0][:half], outputs[1][:half], measure, miss / LEVELS)  # so that luck is not chosen
    likely, rare = (event.hits(sample[half:]) for sample in (outputs[::-1] if event.swapped else outputs))
    shown = max(0.0, float(measure(least(likely, half, miss), most(rare, half, miss))))
    amount, letter = float(claimed.amount), "ρ" if claimed.kind is Kind.ZCDP else "ε"
    return Finding(
        name=name,
        way=Way.OUTPUTS,
        claimed=amount,
        lower=shown,
        caught=shown > amount,
        text=f"claims {claimed}, shown {letter} >= {shown:.3g} by {event.side} {event.edge}: "
        f"{likely} against {rare} of {half}",
        expected=expected,
    )


def least(hits: Any, trials: int, miss: float) -> Floats:
    """A lower bound of a probability that fails with probability `miss` at most [CP34]."""
    hits = np.asarray(hits, dtype=np.float64)
    bounds = _special.betaincinv(np.maximum(hits, 1), trials - hits + 1, miss)
    return np.where(hits > 0, bounds, 0.0)


def most(hits: Any, trials: int, miss: float) -> Floats:
    """An upper bound of a probability that fails with probability `miss` at most [CP34]."""
    return 1.0 - least(trials - np.asarray(hits), trials, miss)


def _best_event(first: Outputs, second: Outputs, measure: Measure, miss: float) -> Event:
    """The event whose bound would be best, judged on these outputs alone."""
    samples, n = (np.sort(first), np.sort(second)), len(first)
    places = np.linspace(0, n - 1, LEVELS).astype(np.int64)
    edges = np.unique(np.concatenate([sample[places] for sample in samples]))
    below, upto = ([np.searchsorted(sample, edges, side=side) for sample in samples] for side in ("left", "right"))
    counts = {
        "outputs up to": upto,
        "outputs from": [n - before for before in below],
        "outputs of": [after - before for after, before in zip(upto, below, strict=True)],
    }
    best, chosen = -math.inf, Event("outputs up to", edges[0], False)
    for side, hits in counts.items():
        for swapped in (False, True):
            likely, rare = hits[::-1] if swapped else hits
            worth = measure(least(likely, n, miss), most(rare, n, miss))
            at = int(np.argmax(worth))
            if worth[at] > best:
                best, chosen = float(worth[at]), Event(side, edges[at], swapped)
    return chosen


def _measure(claimed: Loss) -> Measure:
    if claimed.kind is Kind.ZCDP:
        return _rho
    if claimed.kind is Kind.METRIC:
        raise LossMismatch(
            f"an audit has no test for a {claimed.kind} loss: its amount depends on the pair. Claim a pure loss."
        )
    delta = float(claimed.delta)

    def epsilon(likely: Floats, rare: Floats) -> Floats:
        return np.log(np.maximum(likely - delta, 1e-300)) - np.log(rare)

    return epsilon


def _rho(likely: Floats, rare: Floats) -> Floats:
    """The least ρ with D_α <= ρα for the event and its complement, over many orders α [BS16, Def 1.1]."""
    p = np.clip(likely, 1e-300, 1 - 1e-12)[..., None]
    q = np.clip(rare, 1e-300, 1 - 1e-12)[..., None]
    beyond = np.geomspace(1e-3, 1e3, 64)
    hit = (1 + beyond) * np.log(p) - beyond * np.log(q)
    missed = (1 + beyond) * np.log1p(-p) - beyond * np.log1p(-q)
    divergence = np.logaddexp(hit, missed) / beyond / (1 + beyond)
    return np.where(likely > rare, divergence.max(axis=-1), 0.0)


# From an answer to many outputs


class ScriptedNoise:
    """Noise that returns `word` and records the law and the scale of each draw."""

    def __init__(self, word: int = 0) -> None:
        self.word = word
        self.asked: list[tuple[str, Fraction]] = []

    def laplace(self, scale: Fraction) -> int:
        self.asked.append(("laplace", scale))
        return self.word

    def gaussian(self, scale: Fraction) -> int:
        self.asked.append(("gaussian", scale))
        return self.word

    def below(self, bound: int) -> int:
        raise _not_additive()

    def flip(self, exponent: Fraction) -> bool:
        raise _not_additive()


def replay_sampler(answer: Callable[[Noise], float]) -> Sampler:
    """Outputs of an answer that draws once and rises with what it draws, as fast as noise can be drawn.

    The answer is asked, with scripted draws, at which draws its output changes; real draws in bulk then need no more
    than a look at that list. A few are put to the answer itself, to check the list.
    """
    script = ScriptedNoise()
    answer(script)
    if len(script.asked) != 1:
        raise _not_additive()
    law, scale = script.asked[0]
    reach = math.ceil(REACH_SCALES * scale)
    ends = {word: answer(ScriptedNoise(word)) for word in (-reach, reach)}
    edges = list(_changes(lambda word: answer(ScriptedNoise(word)), (-reach, ends[-reach]), (reach, ends[reach])))
    starts = np.array([word for word, _ in edges], dtype=np.int64)
    values = np.array([ends[-reach], *(value for _, value in edges)])
    draw = {"laplace": system_noise().laplaces, "gaussian": system_noise().gaussians}[law]

    def sample(size: int) -> Outputs:
        words = np.array(draw(scale, size), dtype=np.int64)
        outputs = values[np.searchsorted(starts, words, side="right")]
        if any(answer(ScriptedNoise(int(words[i]))) != outputs[i] for i in range(min(size, 16))):
            raise _not_additive()
        return outputs

    return sample


def _changes(
    answer: Callable[[int], float], low: tuple[int, float], high: tuple[int, float]
) -> Iterator[tuple[int, float]]:
    """Where a rising answer changes, and to what."""
    if low[1] == high[1]:
        return
    if high[0] - low[0] == 1:
        yield high
        return
    word = (low[0] + high[0]) // 2
    middle = word, answer(word)
    yield from _changes(answer, low, middle)
    yield from _changes(answer, middle, high)


def _not_additive() -> ParameterError:
    return ParameterError(
        "the answer must draw one number and rise with it to be replayed; pass functions that draw outputs instead."
    )


# Counting


@dataclass(frozen=True, slots=True)
class World:
    """Every table of `size` records that stand on these sites; the order of records does not count.

    >>> len(list(World(((0.0,), (1.0,)), 3).tables()))
    4
    """

    sites: Records
    size: int

    def tables(self) -> Iterator[Records]:
        yield from combinations_with_replacement(sorted(self.sites), self.size)

    def arrays(self) -> Iterator[Floats]:
        """The tables as arrays, a row for each record."""
        return (np.array(table) for table in self.tables())

    def neighbours(self, table: Records) -> Iterator[Records]:
        """Every table with one record replaced."""
        for leaver in dict.fromkeys(table):
            at = table.index(leaver)
            for site in self.sites:
                if site != leaver:
                    yield tuple(sorted((*table[:at], site, *table[at + 1 :])))


def audit_bound(
    bound: Callable[[Floats], float],
    truth: Callable[[Floats], ArrayLike],
    world: World,
    *,
    beta: float | None = None,
    name: str = "bound",
    expected: bool = False,
) -> Finding:
    """Refute a bound on the local sensitivity of `truth`, or of each of its numbers, or fail to: is it large enough on
    every table of the world, and, where a `beta` is claimed, within a factor e^beta of itself on every neighbour?"""
    tables = {table: np.array(table) for table in world.tables()}
    answers = {table: np.asarray(truth(values), dtype=np.float64) for table, values in tables.items()}
    bounds = {table: float(bound(values)) for table, values in tables.items()}
    pairs = [(table, other) for table in tables for other in world.neighbours(table)]

    def movement(x: Records, y: Records) -> float:
        return float(np.abs(answers[x] - answers[y]).max())

    def growth(x: Records, y: Records) -> float:
        return math.log(max(bounds[x], 1e-300) / max(bounds[y], 1e-300))

    x, y = max(pairs, key=lambda pair: movement(*pair) - bounds[pair[0]])
    claimed, shown = bounds[x], movement(x, y)
    words = f"the answer moves by {shown:.6g}, the bound is {claimed:.6g}"
    if beta is not None and shown <= claimed * (1 + ROUNDING):
        x, y = max(pairs, key=lambda pair: growth(*pair))
        claimed, shown = beta, growth(x, y)
        words = f"the bound grows from {bounds[y]:.4g} to {bounds[x]:.4g}: e^{shown:.4f}, allowed is e^{beta:g}"
    caught = shown > claimed * (1 + ROUNDING)
    return Finding(
        name=name,
        way=Way.WORLD,
        claimed=claimed,
        lower=shown,
        caught=caught,
        text=f"{words}: {_format_table(x)} and {_format_table(y)}" if caught else f"{words} ({len(tables)} tables)",
        expected=expected,
        counterexample=(x, y) if caught else (),
    )


# Comparing


def audit_exact(
    exact: Callable[[Any], Any],
    brute: Callable[[Any], Any],
    cases: Iterable[Any],
    *,
    name: str = "exact answer",
    expected: bool = False,
) -> Finding:
    """Refute that an exact answer is what brute force finds, or fail to on all of these cases."""
    tried, wrong = 0, None
    for case in cases:
        tried += 1
        if not np.array_equal(answer := exact(case), known := brute(case)):
            wrong = f"{answer} where brute force finds {known}: {np.asarray(case).tolist()}"
            break
    if not tried:
        raise ParameterError("cases: there is none, so nothing was compared; pass one at least.")
    words = wrong or f"the same as brute force ({tried} cases)"
    caught = wrong is not None
    return Finding(name=name, way=Way.ORACLE, claimed=None, lower=None, caught=caught, text=words, expected=expected)


def _format_table(table: Records) -> str:
    return "{" + ", ".join(" ".join(f"{value:g}" for value in site) for site in table) + "}"
