"""The laws of the released detectors, added up branch by branch, on the pairs of streams that show the most.

A detector is asked for its secret and for its decisions, by draws that are scripted; nothing here knows how it decides.
Losses are large where a secret is drawn: the move of one entry then outweighs all noise, two or three observations show
the whole loss, and few secrets are likely. A noise that is short is short by the same part at any loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np

from wallflower.audit import Finding
from wallflower.audit.calibrations import attack_conversion
from wallflower.audit.laws import Law, audit_law, audit_laws, law_of
from wallflower.audit.scripts import ShortNoise
from wallflower.data import Points
from wallflower.noise import Noise
from wallflower.privacy import Kind, Loss, zcdp_of_epsilon
from wallflower.queries.watch import Watch
from wallflower.queries.watch.detectors.sparse import draw_geometric

Stream = tuple[float, ...]  # distances, in moves

THRESHOLD: Final = 2  # moves
COLUMNS: Final = 16  # all moves are within reach


@dataclass(frozen=True, slots=True)
class Pair:
    """Streams of neighbours: the first makes some outcome likely that is unlikely on the second. `least` says which
    branches are left out of their laws: of the second, only such as are unlikely beside that outcome."""

    first: Stream
    second: Stream
    least: tuple[float, float] = (0.0, 0.0)


def watch_for(loss: Loss, **details: Any) -> Watch:
    """A watch of entries in [0, 1], with a threshold of two moves."""
    usual: dict[str, Any] = {"threshold": float(THRESHOLD), "low": 0.0, "high": 1.0, "loss": loss}
    return Watch(**usual | details)


def detector_of(query: Watch) -> Any:
    return query.detector(query.statistic_on(COLUMNS))


def laws_on(query: Watch, pair: Pair) -> tuple[Law, Law]:
    """What is decided, and when it is over, by the detector itself."""
    return _law(query, pair.first, pair.least[0]), _law(query, pair.second, pair.least[1])


def _law(query: Watch, stream: Stream, least: float, share: Fraction = Fraction(1)) -> Law:
    """The law of the flags, or of the scores where those are released."""
    detector = detector_of(query)
    distances = np.array([round(k * detector.sensitivity) for k in stream], dtype=np.int64)

    def decide(noise: Noise) -> Any:
        source = noise if share == 1 else ShortNoise(noise, share)
        found = detector.decide(distances, detector.secret(source), 0, source)
        return tuple(found.flags.tolist()) if found.scores is None else tuple(found.scores.tolist())

    return law_of(decide, least=least)


# Events


BITS: Final = (Pair((1, 1), (2, 1)), Pair((2, 2), (1, 2)), Pair((4, 1), (3, 1)))


def attack_events(quick: bool) -> Iterator[Finding]:
    for name, query in EVENTS.items():
        yield audit_laws((laws_on(query, pair) for pair in BITS), claimed=query.loss, name=f"event, {name}, by law")
    query, pair = watch_for(Loss("1")), Pair((1, 1), (2, 1))
    stuck = tuple(_law_of_stuck_words(query, stream) for stream in (pair.first, pair.second))
    yield audit_law(*stuck, claimed=query.loss, name="broken: one draw for two observations", expected=True)
    beside = tuple(_beside(stream) for stream in (pair.first[:1], pair.second[:1]))
    name = "broken: a flag from another draw beside the score"
    yield audit_law(*beside, claimed=Loss("1"), name=name, expected=True)
    for name, query in EVENTS.items():
        short = replace(query, loss=Loss(query.loss.epsilon * Fraction(10, 9)))
        name = f"broken: a tenth short, event, {name}"
        yield audit_laws((laws_on(short, pair) for pair in BITS), claimed=query.loss, name=name, expected=True)


EVENTS: Final = {"bits": watch_for(Loss("1")), "scores": watch_for(Loss("2"), scores=True)}


class _StuckNoise:
    """BROKEN: one word for two observations."""

    def __init__(self, noise: Any) -> None:
        self.noise = noise

    def words(self, size: int) -> Any:
        return np.repeat(self.noise.words(size // 2), 2)


def _law_of_stuck_words(query: Watch, stream: Stream) -> Law:
    detector = detector_of(query)
    distances = np.array(stream, dtype=np.int64) * detector.sensitivity
    return law_of(lambda noise: tuple(detector.decide(distances, (), 0, _StuckNoise(noise)).flags.tolist()))


def _beside(stream: Stream) -> Law:
    """BROKEN: a flag from the table beside a score, for the price of one."""
    detectors = [detector_of(watch) for watch in (watch_for(Loss("1"), scores=True), watch_for(Loss("1")))]

    def decide(noise: Noise) -> Any:
        found = [each.decide(np.array(stream, dtype=np.int64) * each.sensitivity, (), 0, noise) for each in detectors]
        return tuple(found[0].scores.tolist()), tuple(found[1].flags.tolist())

    return law_of(decide)


# A person


def attack_persons() -> Iterator[Finding]:
    for name, (query, pair) in PERSONS.items():
        yield audit_law(*laws_on(query, pair), claimed=query.loss, name=f"{name}, by law")
    query, pair = PERSONS["sparse, plain"]
    answered = (
        _law_of_answer(query, stream, least)
        for stream, least in zip((pair.first, pair.second), pair.least, strict=True)
    )
    yield audit_law(*answered, claimed=query.loss, name="answer, person, by law")
    short = watch_for(Loss(query.loss.epsilon * Fraction(10, 9)), level="person", cutoff=1)
    name = "broken: a tenth short, sparse"
    yield audit_law(*laws_on(short, pair), claimed=query.loss, name=name, expected=True)
    told = tuple(_law_of_told_number(k) for k in (3, 2))
    yield audit_law(*told, claimed=Loss("32"), name="broken: the noisy distance of a flag, unpaid", expected=True)


def _law_of_answer(query: Watch, stream: Stream, least: float) -> Law:
    """What is flagged, by the answer itself: as many entries are 1 as the distance has moves."""
    rows = np.array([[float(place < k) for place in range(COLUMNS)] for k in stream])
    data = Points.from_array(rows, name="made-up")

    def answer(noise: Noise) -> Any:
        found = query.answer(data, noise)
        return tuple(found["flagged"]), found["decided"]

    return law_of(answer, least=least)


def _person(epsilon: str, **details: Any) -> Watch:
    return watch_for(Loss(epsilon), **{"level": "person", "cutoff": 1} | details)


PERSONS: Final[dict[str, tuple[Watch, Pair]]] = {
    "window of three": (watch_for(Loss("3"), level="window", window=3), Pair((1, 1, 1), (2, 2, 2))),
    "sparse, plain": (_person("8"), Pair((2, 1, 1), (3, 0, 0), (1e-7, 1e-12))),
    "sparse, monotone, both sides": (_person("32", monotone=True), Pair((2, -2), (3, -1), (1e-6, 1e-18))),
    "sparse, monotone, one side": (_person("16", monotone=True), Pair((2, 2, 2), (3, 2, 2), (1e-6, 1e-12))),
    "sparse, two flags": (_person("16", cutoff=2), Pair((1, 2, 1, 1), (0, 3, 0, 0), (1e-7, 1e-16))),
    "sparse, adaptive": (_person("2", adaptive=True), Pair((2, 2), (3, 1), (1e-6, 1e-6))),
}


def _law_of_told_number(k: int) -> Law:
    """BROKEN: what was compared with the threshold is told, from the draw that was compared."""
    query = _person("32")
    detector = detector_of(query)

    def tell(noise: Noise) -> int:
        noisy = k * detector.fineness + draw_geometric(detector.scale, noise)
        threshold = THRESHOLD * detector.fineness + draw_geometric(detector.fineness / detector.parts[0], noise)
        return noisy if noisy >= threshold else -1

    return law_of(tell, least=1e-20)


# The printed algorithm


def attack_paper(quick: bool) -> Iterator[Finding]:
    query, pair = watch_for(Loss("2"), threshold=4.0, level="paper"), Pair((1,), (0,), (1e-12, 1e-12))
    yield audit_law(*laws_on(query, pair), claimed=query.loss, name="paper, by law")
    short = tuple(_law(query, stream, 1e-12, Fraction(9, 10)) for stream in (pair.first, pair.second))
    yield audit_law(*short, claimed=query.loss, name="broken: a tenth short, paper", expected=True)


# Gaussian noise


def attack_gaussians(quick: bool) -> Iterator[Finding]:
    yield from attack_conversion()
    for name, query in GAUSSIANS.items():
        yield audit_laws(_gaussian_laws(query), claimed=_in_squares(query.loss), name=f"gaussian, {name}, by law")
    for name in ("one step, δ", "two steps, δ"):
        query, name = GAUSSIANS[name], f"gaussian, {name}, as it is stated"
        yield audit_laws(_gaussian_laws(query, NEAR), claimed=query.loss, name=name)
    for name, query in GAUSSIANS.items():
        pairs, name = _gaussian_laws(query, share=Fraction(9, 10)), f"broken: a tenth short, gaussian, {name}"
        yield audit_laws(pairs, claimed=_in_squares(query.loss), name=name, expected=True)


def _in_squares(loss: Loss) -> Loss:
    """The zero-concentrated loss that noise is made for: what an ε and a δ are turned into loses some of them."""
    return (
        loss if loss.kind is Kind.ZCDP else Loss.zcdp(Fraction(zcdp_of_epsilon(float(loss.epsilon), float(loss.delta))))
    )


def _gaussian(loss: Loss, **details: Any) -> Watch:
    level = "window" if "window" in details else "person"
    return watch_for(loss, threshold=8.0, level=level, **details)


FAR_MOVES: Final = (2, 3, 4, 5, 6)
NEAR: Final = (6.0, 6.25, 6.5, 6.75, 7.0, 7.25)


_RHO, _DELTA = Loss.zcdp("4"), Loss("8", delta="1/1000")
GAUSSIANS: Final = {
    "one step, ρ": _gaussian(_RHO, steps=1),
    "two steps, ρ": _gaussian(_RHO, steps=2),
    "window of two, ρ": _gaussian(_RHO, window=2),
    "one step, δ": _gaussian(_DELTA, steps=1),
    "two steps, δ": _gaussian(_DELTA, steps=2),
    "window of two, δ": _gaussian(_DELTA, window=2),
}


def _gaussian_laws(
    query: Watch, places: tuple[float, ...] = FAR_MOVES, share: Fraction = Fraction(1)
) -> Iterator[tuple[Law, Law]]:
    """Streams that are so far below the threshold that a flag tells more than any number near to it would."""
    for place in places:
        streams = [(float(place + moved),) * (query.steps or query.window or 1) for moved in (1, 0)]
        yield tuple(_law(query, stream, 0.0, share) for stream in streams)  # type: ignore[misc]
