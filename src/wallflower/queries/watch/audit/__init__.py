"""Attacks on the watch: the detectors we release, and broken ones that an audit has to catch.

The detectors themselves are led through every branch (`laws.py`), on pairs of streams that show the most. On all
pairs of a tiny world the loss is added up by `oracle.py`, which follows their tables. A little is drawn, to see that
real noise is what was scripted.

The broken ones are mistakes that were made in print, or nearly by us. They live here, named broken, and no release can
reach them: nothing but an audit imports this folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import chain, product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.audit import Attack, Finding, Sampler, Way, audit
from wallflower.audit.answers import audit_cases
from wallflower.data import Points
from wallflower.noise import SystemNoise, system_noise
from wallflower.privacy import Kind, Loss
from wallflower.queries.watch import Watch
from wallflower.queries.watch.audit.accounts import ACCOUNTS
from wallflower.queries.watch.audit.answers import CROSSING, attack_answers
from wallflower.queries.watch.audit.baseline import attack_baselines
from wallflower.queries.watch.audit.laws import (
    THRESHOLD,
    attack_events,
    attack_gaussians,
    attack_paper,
    attack_persons,
    watch_for,
)
from wallflower.queries.watch.audit.laws import detector_of as released_detector
from wallflower.queries.watch.audit.oracle import Flags, law, log_ratio, loss_between
from wallflower.queries.watch.audit.pool import attack_pool
from wallflower.queries.watch.audit.seasons import attack_seasons
from wallflower.queries.watch.audit.statistics import broken_statistics, sound_statistics
from wallflower.queries.watch.detectors import PaperDetector, Secret, Sparse, Staircase

Stream = tuple[int, ...]  # distances, in moves

TRIALS, QUICK_TRIALS = 12_000, 4_000
EXACT: Final = 1e-12  # the relative error of a loss that was added up
PURE, CONCENTRATED, APPROXIMATE = Loss("1"), Loss.zcdp("1/2"), Loss("1", delta="1/100")


def findings(*, quick: bool) -> Iterator[Finding]:
    """Every attack, mechanism by mechanism: what must hold, then what must be caught."""
    for attack in ATTACKS.values():
        yield from attack(quick)


# Findings


def exact(name: str, claimed: float, shown: float, words: str, *, expected: bool = False) -> Finding:
    caught = shown > claimed * (1 + EXACT)
    words = f"claims {claimed:g}, is {shown:.6g} {words}"
    return Finding(name=name, way=Way.WORLD, claimed=claimed, lower=shown, caught=caught, text=words, expected=expected)


def _worst(name: str, detector: Any, claimed: float, pairs: Iterable[tuple[Stream, Stream]]) -> Finding:
    """The largest loss over pairs of neighbouring streams, in moves."""
    laws: dict[Stream, dict[Flags, float]] = {}
    best, shown, tried = -1.0, "", 0
    for pair in pairs:
        for stream in pair:
            if stream not in laws:
                laws[stream] = law(detector, [k * detector.sensitivity for k in stream])
        found, flags = loss_between(laws[pair[0]], laws[pair[1]])
        tried += 1
        if found > best:
            best, shown = found, f"for {_bits(flags)} of {pair[0]} and {pair[1]}"
    return exact(name, claimed, best, f"{shown} ({tried} pairs)")


def _at(name: str, detector: Any, claimed: float, pair: tuple[Stream, Stream], flags: str, **more: Any) -> Finding:
    """The loss at one outcome, of streams in moves that may be long."""
    wanted = tuple(flag == "1" for flag in flags)
    one, other = (
        law(detector, [round(k * detector.sensitivity) for k in stream], only=wanted).get(wanted, 0.0)
        for stream in pair
    )
    return exact(name, claimed, log_ratio(one, other), f"at {flags}", **more)


def _bits(flags: Iterable[bool]) -> str:
    return "".join("1" if flag else "0" for flag in flags)


# Sound


def detector_of(**details: Any) -> Any:
    """Who decides for a watch of entries in [0, 1], with a threshold of two moves."""
    return released_detector(watch_for(details.pop("loss", PURE), **details))


def person(**details: Any) -> Any:
    return detector_of(**{"level": "person", "cutoff": 1} | details)


SPARSE: Final[dict[str, dict[str, Any]]] = {
    "plain": {},
    "plain, two flags": {"cutoff": 2},
    "adaptive, two flags": {"cutoff": 2, "adaptive": True},
    "monotone": {"monotone": True},
    "monotone, adaptive, two flags": {"monotone": True, "adaptive": True, "cutoff": 2},
}
# A long attack: what is usual rises to the threshold, what is flagged falls away from it.
LONG: Final = ((1,) * 30 + (2,), (2,) * 30 + (1,)), "0" * 30 + "1"
FOLDED: Final = ((1,) * 30 + (-2,), (2,) * 30 + (-1,)), "0" * 30 + "1"


def _on_worlds(quick: bool) -> Iterator[Finding]:
    length = 2 if quick else 3
    event, window = detector_of(), detector_of(level="window", window=3)
    yield _worst("event, bits", event, 1, _one_moves(length))
    yield _worst("event, bits at ε = 1/10", detector_of(loss=Loss("0.1")), 0.1, _one_moves(length))
    yield _worst("window of three, bits", window, 1, _all_move((0, 1, 2), 3, (-1, 0, 1)))
    yield _worst("paper, bits, one entry", detector_of(level="paper"), 1, _one_moves(2))
    yield _ex_post()
    for name, details in SPARSE.items():
        steps = (0, 1) if details.get("monotone") else (-1, 0, 1)
        starts = (-2, -1, 1, 2) if details.get("monotone") else (0, 1, 2, 3)
        pairs = _all_move(starts, length, steps)
        yield _worst(f"sparse, {name}", person(**details), 1, pairs)
    yield _at("sparse, plain, a long stream", person(), 1, *LONG)
    yield _at("sparse, monotone, far beyond", person(monotone=True), 1, ((6, -2), (7, -1)), "01")


def _one_moves(length: int) -> Iterator[tuple[Stream, Stream]]:
    for stream in product((0, 1, 2, 3), repeat=length):
        for at, step in product(range(length), (-1, 1)):
            yield stream, (*stream[:at], stream[at] + step, *stream[at + 1 :])


def _all_move(starts: Stream, length: int, steps: Stream) -> Iterator[tuple[Stream, Stream]]:
    for stream, moved in product(product(starts, repeat=length), product(steps, repeat=length)):
        yield stream, tuple(k + step for k, step in zip(stream, moved, strict=True))


def _ex_post() -> Finding:
    """After K flags the paper's algorithm has cost a person (K + 1) ε / 2 at most: here in units of that."""
    detector, best, words = detector_of(level="paper", loss=Loss("1/4")), 0.0, ""
    for pair in _all_move((1, 2), 3, (-1, 0, 1)):
        one, other = (law(detector, [k * detector.sensitivity for k in stream]) for stream in pair)
        for flags in one:
            share = log_ratio(one[flags], other[flags]) / ((sum(flags) + 1) / 2)
            if share > best:
                best, words = share, f"for {_bits(flags)} of {pair[0]} and {pair[1]}"
    return exact("paper, after the fact, one person", 1, best, words)


def _by_draws(quick: bool) -> Iterator[Finding]:
    trials = QUICK_TRIALS if quick else TRIALS
    samplers = [_answers(Watch(threshold=2.0, low=0.0, high=1.0, loss=PURE), stream) for stream in CROSSING]
    yield audit(samplers[0], samplers[1], claimed=PURE, trials=trials, name="answer, event")
    if quick:
        return
    for loss in (CONCENTRATED, APPROXIMATE):
        every = person(loss=loss, steps=2)
        samplers = [_counts(every, k) for k in (1.5, 2.5)]
        name = f"gaussian, two steps, {'ρ' if loss.kind is Kind.ZCDP else 'δ'}, by draws"
        yield audit(samplers[0], samplers[1], claimed=loss, trials=trials, name=name)
    samplers = [_runs(detector_of(level="paper"), stream) for stream in ((2, 2, 1), (2, 1, 1))]
    yield audit(samplers[0], samplers[1], claimed=PURE, trials=trials // 4, name="paper, by draws")
    for name in SPARSE:
        yield _sparse_by_draws(name, trials // 4)


def _sparse_by_draws(name: str, trials: int) -> Finding:
    sign = -1 if SPARSE[name].get("monotone") else 1
    samplers = [_runs(person(**SPARSE[name]), (k, k, sign * last)) for k, last in ((2, 2), (3, 1))]
    return audit(samplers[0], samplers[1], claimed=PURE, trials=trials, name=f"sparse, {name}, by draws")


def _answers(query: Watch, rows: Any) -> Sampler:
    """The bits of a stream as one number; at event level one answer to many copies of it is many answers."""

    def sample(size: int) -> NDArray[Any]:
        data = Points.from_array(np.tile(rows, (size, 1)), name="made-up")
        flags = np.zeros(data.n, dtype=np.int64)
        flags[np.array(query.answer(data, system_noise())["flagged"], dtype=np.int64) - 1] = 1
        return flags.reshape(size, -1) @ (1 << np.arange(len(rows)))

    return sample


def _counts(detector: Any, k: float) -> Sampler:
    """How many of the steps are flagged, when all distances are k moves."""

    def sample(size: int) -> NDArray[Any]:
        distances = np.full(size * detector.steps, int(k * detector.sensitivity))
        found = detector.decide(distances, (), -len(distances), system_noise())
        return np.asarray(found.flags.reshape(size, -1).sum(axis=1))

    return sample


class _Ahead(SystemNoise):
    """Draws many at a time and hands them out one by one."""

    def __init__(self) -> None:
        self.kept: dict[Fraction, list[int]] = {}

    def laplace(self, scale: Fraction) -> int:
        if not self.kept.get(scale):
            self.kept[scale] = self.laplaces(scale, 1000)
        return self.kept[scale].pop()


def _runs(detector: Any, stream: Stream) -> Sampler:
    """Whole runs, each with a secret of its own: the bits behind a leading one, as a number."""
    noise, distances = _Ahead(), np.array(stream, dtype=np.int64) * detector.sensitivity

    def one() -> int:
        return int("1" + _bits(detector.decide(distances, detector.secret(noise), 0, noise).flags), 2)

    return lambda size: np.array([one() for _ in range(size)])


# Broken, on purpose


class _BareSparse(Sparse):
    """BROKEN: no noise on the threshold."""

    def secret(self, noise: Any) -> Secret:
        return (0,) * (2 if self.two_sided else 1)


class _EndlessSparse(Sparse):
    """BROKEN: the noise of one flag, and no cutoff."""

    @property
    def limit(self) -> int:
        return 10**9


class _SharpSparse(Sparse):
    """BROKEN: half the noise."""

    @property
    def scale(self) -> Fraction:
        return self._moves * self.fineness / self.parts[1] / 2


class _FoldedSparse(Sparse):
    """BROKEN: the noise of a monotone query on |s|, which falls where s rises."""

    @property
    def _moves(self) -> int:
        return self.cutoff


class _UnpaidSparse(Sparse):
    """BROKEN: as many near flags as far ones, though they cost twice as much."""

    @property
    def limit(self) -> int:
        return 4 * self.cutoff


_PUBLIC: Final[dict[str, Any]] = {"threshold": THRESHOLD, "sensitivity": 1, "epsilon": Fraction(1), "cutoff": 1}
_QUIET: Final = ((1,) * 6, (0,) * 6)
_MIXED: Final = ((1,) * 9 + (2,) * 9, (2,) * 9 + (1,) * 9), "0" * 9 + "1" * 9
_DETECTORS: Final[dict[str, tuple[Callable[[], Any], tuple[Stream, Stream], str]]] = {
    "no noise on the threshold": (lambda: _BareSparse(**_PUBLIC), _QUIET, "0" * 6),
    "no cutoff": (lambda: _EndlessSparse(**_PUBLIC), _QUIET, "1" * 6),
    "half the noise, sparse": (lambda: _SharpSparse(**_PUBLIC), *LONG),
    "|s| as if it were monotone": (lambda: _FoldedSparse(**_PUBLIC), *FOLDED),
    "adaptive, twice the limit": (
        lambda: _UnpaidSparse(**_PUBLIC, adaptive=True),
        ((1,) * 30 + (2,) * 2, (2,) * 30 + (1,) * 2),
        LONG[1] + "1",
    ),
    "half the noise, event": (lambda: _staircase(2), ((1,), (2,)), "1"),
    "a move twice as far as stated": (lambda: _staircase(1), ((1,), (3,)), "0"),
    "event level for a person": (lambda: _staircase(1), ((1,) * 2, (2,) * 2), "11"),
    "window one too long": (lambda: detector_of(level="window", window=3), ((1,) * 4, (2,) * 4), "1111"),
    "paper's ε for a person": (lambda: PaperDetector(threshold=2, sensitivity=1, epsilon=Fraction(1, 4)), *_MIXED),
}


def _staircase(epsilon: int) -> Staircase:
    return Staircase(threshold=2, sensitivity=1, epsilon=Fraction(epsilon))


def _broken_on_worlds(quick: bool) -> Iterator[Finding]:
    for name, (detector, pair, flags) in _DETECTORS.items():
        yield _at(f"broken: {name}", detector(), 1, pair, flags, expected=True)
    yield _broken_baseline()


def _broken_baseline() -> Finding:
    """BROKEN: the usual is the mean of the stream so far, so that one entry moves all distances after it."""
    detector = _staircase(1)

    def chance(stream: Sequence[float]) -> float:
        means = np.cumsum(stream) / np.arange(1, len(stream) + 1)
        distances = np.floor(np.array(stream[1:]) - means[:-1] + 0.5).astype(np.int64)
        return law(detector, distances.tolist(), only=(True,) * 3)[True, True, True]

    shown = log_ratio(chance([0.0, 2.0, 2.5, 3.0]), chance([1.0, 2.0, 2.5, 3.0]))
    return exact("broken: a baseline from the stream itself", 1, shown, "at 111", expected=True)


ATTACKS: Final[dict[str, Attack]] = {
    "answers": lambda quick: audit_cases(ACCOUNTS.cases),
    "answer": lambda quick: attack_answers(),
    "event": attack_events,
    "worlds": _on_worlds,
    "gaussian": attack_gaussians,
    "paper": attack_paper,
    "statistic": lambda quick: chain(sound_statistics(), broken_statistics()),
    "baseline": lambda quick: attack_baselines(quick, system_noise()),
    "seasons": lambda quick: attack_seasons(),
    "pool": lambda quick: attack_pool(),
    "person": lambda quick: attack_persons(),
    "draws": _by_draws,
    "broken": _broken_on_worlds,
}
