"""What an answer comes to, and with which chance: added up from the draws it asks for, not estimated.

`law_of` answers again and again with scripted draws until every branch was taken, so a noise that is short by a hair
shows, every time. `audit_law` holds two such laws, of neighbouring tables, against a claimed loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, Final

import numpy as np

from wallflower.audit.attacks import Finding, Way
from wallflower.audit.scripts import Draw, DrawRequest, Redraw, Script
from wallflower.errors import LossMismatch, ParameterError
from wallflower.noise import Noise
from wallflower.privacy import Kind, Loss

Law = Mapping[Hashable, float]
Path = tuple[tuple[int, float], ...]  # words, and how likely each is or what is beyond it

EXACT: Final = 1e-6  # the relative error of a loss that was added up
MISSING: Final = 1e-3  # laws that lack more say too little
MAX_DRAWS: Final = 48  # per answer; two from long ranges take a second, three a minute
LONG: Final = 2**12  # words; a range this long has few runs, a shorter one may have as many as words
HINTS: Final = 16  # ends of runs that are remembered, and tried first
_ORDERS: Final = np.geomspace(1e-4, 1e3, 200)


class PartialLaw(dict[Hashable, float]):
    """A law that lacks some branches: `rest` is how likely they are together, wherever they lead."""

    def __init__(self, chances: Law, rest: float) -> None:
        super().__init__(chances)
        self.rest = rest

    def is_like(self, other: PartialLaw | None, allowed: float) -> bool:
        if other is None or self.keys() != other.keys():
            return False
        return self == other or all(abs(chance - other[output]) <= allowed for output, chance in self.items())


def law_of(answer: Callable[[Noise], Hashable], *, least: float = 0.0) -> Law:
    """The chance of every output of an answer that draws a few numbers.

    A draw from a long range must be one that outputs rise with: where two draws lead to the same, so does every draw
    between them. A number that is only found to be below 0, and drawn again at once, counts as not drawn. Branches
    less likely than `least` are left out.

    >>> from fractions import Fraction
    >>> found = law_of(lambda noise: min(1, max(0, noise.laplace(Fraction(1)) + 0)))
    >>> {output: round(chance, 6) for output, chance in found.items()}
    {0: 0.731059, 1: 0.268941}
    """
    return _Tree(answer, least).law(())


class _Tree:
    """All paths of an answer. The ends of runs that were found at one place are tried first at others as deep."""

    def __init__(self, answer: Callable[[Noise], Hashable], least: float) -> None:
        self.answer, self.least = answer, least
        self.hints: dict[tuple[int, int, int], list[int]] = {}

    def law(self, path: Path) -> PartialLaw:
        """The law of the answer whose first draws are these."""
        if len(path) > MAX_DRAWS:
            raise ParameterError(
                f"the answer draws more than {MAX_DRAWS} numbers. Draw its outputs, and pass them to `audit`."
            )
        script = Script(path, self.least)
        try:
            output = self.answer(script)
        except DrawRequest as asked:
            return self._branches(path, asked.draw)
        script.finish()
        return PartialLaw({output: 1.0 - script.lost}, script.lost)

    def _branches(self, path: Path, draw: Draw) -> PartialLaw:
        chances: dict[Hashable, float] = {}
        rest, again = draw.beyond, 0.0
        for first, last, law, off in self._runs(path, draw):
            weight = draw.chance(first, last)
            again += weight if law is None else 0.0
            rest += weight * (off if law is None else law.rest + off)
            for output, chance in (law or {}).items():
                chances[output] = chances.get(output, 0.0) + weight * chance
        if again:
            return PartialLaw({output: chance / (1 - again) for output, chance in chances.items()}, rest / (1 - again))
        return PartialLaw(chances, rest)

    def _law_at(self, path: Path, draw: Draw, at: int) -> PartialLaw | None:
        """What one draw leads to; None where it is drawn again."""
        try:
            return self.law((*path, (draw.word(at), draw.outward(at))))
        except Redraw:
            return None

    def _runs(self, path: Path, draw: Draw) -> Iterator[tuple[int, int, PartialLaw | None, float]]:
        """What draws lead to, in runs that lead to the same, and by how much that may be off."""
        known: dict[int, PartialLaw | None] = {}

        def law(at: int) -> PartialLaw | None:
            if at not in known:
                known[at] = self._law_at(path, draw, at)
            return known[at]

        if draw.apart:
            yield from ((at, at, law(at), 0.0) for at in range(draw.first, draw.last + 1))
            return
        start, last = self._likely(path, draw)
        nothing, allowed = PartialLaw({}, 1.0), 4 * self.least / math.prod(weight for _, weight in path)
        if start > draw.first:
            yield draw.first, start - 1, nothing, 0.0
        if last < draw.last:
            yield last + 1, draw.last, nothing, 0.0
        hints = self.hints.setdefault((len(path), draw.first, draw.last), [])
        # Far from the middle more is left out, so that both ends look alike whatever is in between.
        halves = [(start, -1), (0, last)] if self.least and start < 0 <= last else [(start, last)]
        for first, end in halves:
            for begin, stop in _ends_of_runs(first, end, law, allowed, hints):
                yield begin, stop, law(begin), allowed if stop > begin else 0.0

    def _likely(self, path: Path, draw: Draw) -> tuple[int, int]:
        """The first and the last draw that are likely enough; in between all are."""
        before = math.prod(weight for _, weight in path)
        middle = min(max(draw.first, 0), draw.last)

        def is_likely(at: int) -> bool:
            return before * draw.outward(at) >= self.least

        first = draw.first if is_likely(draw.first) else _edge(is_likely, middle, draw.first)
        return first, draw.last if is_likely(draw.last) else _edge(is_likely, middle, draw.last)


def _edge(holds: Callable[[int], bool], inside: int, outside: int) -> int:
    """The last place, from inside to outside, at which something holds."""
    while abs(outside - inside) > 1:
        middle = (inside + outside) // 2
        inside, outside = (middle, outside) if holds(middle) else (inside, middle)
    return inside


def _ends_of_runs(
    start: int, last: int, law: Callable[[int], PartialLaw | None], allowed: float, hints: list[int]
) -> Iterator[tuple[int, int]]:
    while start <= last:
        here = law(start)

        def same(at: int, here: PartialLaw | None = here) -> bool:
            there = law(at)
            return here.is_like(there, allowed) if here is not None else there is None

        end = last if same(last) else _end_of_run(start, last, same, hints)
        yield start, end
        start = end + 1


def _end_of_run(start: int, last: int, same: Callable[[int], bool], hints: list[int]) -> int:
    """The last draw that leads to the same as the first; the very last one does not."""
    low, high = start, last  # the same up to `low` at least, and not at `high`
    tried = sorted(hint for hint in hints if low < hint < high) if last - start >= LONG else []
    for hint in tried:
        if not same(hint):
            high = hint
            break
        low = hint
        if not same(hint + 1):
            return hint
    step = 1
    while last - start < LONG and low + step < high:
        if not same(low + step):
            high = low + step
            break
        low, step = low + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if same(middle) else (low, middle)
    if last - start >= LONG:
        hints[:] = [low, *(hint for hint in hints if hint != low)][:HINTS]
    return low


# Losses


def audit_law(first: Law, second: Law, *, claimed: Loss, name: str = "law", expected: bool = False) -> Finding:
    """Refute a claimed loss by the laws of two neighbouring tables, or show that on these it holds."""
    if max(map(_rest, (first, second))) > MISSING:
        raise ParameterError("law: nearly nothing was added up, the rest was left out. Lower `least`.")
    shown, amount = loss_between(first, second, claimed), float(claimed.amount)
    letter = "ρ" if claimed.kind is Kind.ZCDP else "ε"
    return Finding(
        name=name,
        way=Way.OUTPUTS,
        claimed=amount,
        lower=min(shown, 1e300),  # JSON has no infinity
        caught=shown > amount * (1 + EXACT),
        text=f"claims {claimed}, is {letter} = {shown:.6g} over {len({*first, *second})} outputs",
        expected=expected,
    )


def audit_laws(pairs: Iterable[tuple[Law, Law]], *, claimed: Loss, name: str, expected: bool = False) -> Finding:
    """Refute a claimed loss by the laws of several pairs of neighbours: what the worst of them shows."""
    findings = [audit_law(*pair, claimed=claimed, name=name, expected=expected) for pair in pairs]
    return max(findings, key=lambda finding: finding.lower or 0.0)


def loss_between(first: Law, second: Law, claimed: Loss) -> float:
    """What tells two laws apart at least, in the unit of the claimed loss: an ε, an ε at its δ, or a ρ.

    What was left out of a law counts as if it were wherever it hides most.
    """
    if claimed.kind is Kind.METRIC:
        raise LossMismatch(f"laws are not compared by a {claimed.kind} loss: it depends on the pair. Claim a pure one.")
    outputs = list({**first, **second})
    p, q = (np.array([law.get(output, 0.0) for output in outputs]) for law in (first, second))
    measure = _rho if claimed.kind is Kind.ZCDP else _epsilon
    delta = float(claimed.delta)
    return max(measure(p, q, _rest(second), delta), measure(q, p, _rest(first), delta))


def range_between(first: Law, second: Law) -> float:
    """How far apart the largest and the smallest log-ratio of two laws are: what bounds an exponential choice."""
    with np.errstate(divide="ignore"):
        ratios = [float(np.log(first.get(output, 0.0)) - np.log(second.get(output, 0.0))) for output in first]
    return max(ratios) - min(ratios)


def audit_parts(parts: Mapping[str, float], *, claimed: float, name: str, expected: bool = False) -> Finding:
    """Refute that parts of an answer, each measured where it shows the most, add up to no more than is claimed.

    That is what a proof by composition needs. No pair of tables need show all parts at once.
    """
    shown = sum(parts.values())
    listed = ", ".join(f"{what} {amount:.6g}" for what, amount in parts.items())
    return Finding(
        name=name,
        way=Way.OUTPUTS,
        claimed=claimed,
        lower=min(shown, 1e300),
        caught=shown > claimed * (1 + EXACT),
        text=f"claims {claimed:.6g} for all parts, and they are {listed}",
        expected=expected,
    )


def audit_numbers(
    answer: Callable[[Any, Noise], Any],
    views: Sequence[Any],
    numbers: Mapping[str, Callable[[Any], int]],
    *,
    claimed: Loss,
    name: str,
    through: Callable[[Noise], Any] = lambda noise: noise,
    expected: bool = False,
) -> Finding:
    """Refute a claimed loss by each number of an answer alone, on two neighbours: draws are independent, so that adds
    up. `numbers` says how each is read off the answer, in the order they are drawn in."""
    parts = {}
    for index, (what, read) in enumerate(numbers.items()):

        def read_alone(view: Any, noise: Noise, index: int = index, read: Callable[[Any], int] = read) -> int:
            return read(answer(view, _Alone(through(noise), index)))  # type: ignore[arg-type]

        first, second = (law_of(partial(read_alone, view)) for view in views)
        parts[what] = loss_between(first, second, claimed)
    return audit_parts(parts, claimed=float(claimed.amount), name=name, expected=expected)


class _Alone:
    """Noise for one draw of an answer; all others are 0."""

    def __init__(self, noise: Noise, place: int) -> None:
        self.noise, self.place, self.at = noise, place, -1

    def laplace(self, scale: Fraction) -> int:
        self.at += 1
        return self.noise.laplace(scale) if self.at == self.place else 0

    def gaussian(self, scale: Fraction) -> int:
        self.at += 1
        return self.noise.gaussian(scale) if self.at == self.place else 0


def _rest(law: Law) -> float:
    return law.rest if isinstance(law, PartialLaw) else 0.0


def _epsilon(p: Any, q: Any, rest: float, delta: float) -> float:
    """The least ε with P <= e^ε Q + δ for every event."""
    if not delta:
        some = p > 0
        with np.errstate(divide="ignore"):
            return float(max(0.0, (np.log(p[some]) - np.log(q[some] + rest)).max(initial=0.0)))

    def leak(epsilon: float) -> float:
        return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum()) - math.exp(epsilon) * rest

    low, high = 0.0, 1.0
    if leak(low) <= delta:
        return 0.0
    while leak(high) > delta and high < 512:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if leak(middle) > delta else (low, middle)
    return high


def _rho(p: Any, q: Any, rest: float, delta: float) -> float:
    """The largest D_α / α over many orders [BS16, Def 1.1]."""
    some = p > 0
    with np.errstate(divide="ignore"):
        logs, ratios = np.log(p[some]), np.log(p[some]) - np.log(q[some] + rest)
    if not np.isfinite(ratios).all():
        return math.inf
    sums = np.logaddexp.reduce(logs + _ORDERS[:, None] * ratios, axis=1)
    return float(max(0.0, (sums / _ORDERS / (1 + _ORDERS)).max()))
