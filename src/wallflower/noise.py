"""The only door to entropy.

Noise is drawn on whole numbers, by OpenDP's exact samplers or from the operating system's words; nothing here takes a
seed. Both sources ask the operating system at every draw, so a forked child never repeats its parent. Tests hand a
scripted `Noise` to `query.answer`; released answers get `system_noise()`. Which coins are released, and which must stay
secret, is listed in mechanisms.md, (O).
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import ParameterError
from wallflower.machine.lazy import Lazy

if TYPE_CHECKING:
    import opendp.domains as _domains
    import opendp.measurements as _measurements
    import opendp.metrics as _metrics
    import opendp.mod as _opendp
else:
    _domains = Lazy("opendp.domains")
    _measurements = Lazy("opendp.measurements")
    _metrics = Lazy("opendp.metrics")
    _opendp = Lazy("opendp.mod")


class Noise(Protocol):
    """Draws on whole numbers. `scale` is a lower bound: a sampler may round it up, never down."""

    def laplace(self, scale: Fraction) -> int:
        """P(z) proportional to exp(-|z|/scale)."""

    def gaussian(self, scale: Fraction) -> int:
        """P(z) proportional to exp(-z²/(2 scale²))."""

    def below(self, bound: int) -> int:
        """Uniform on 0 … bound-1."""

    def flip(self, exponent: Fraction) -> bool:
        """True with probability exp(-exponent)."""


class SystemNoise:
    """Noise fit to be released."""

    def laplace(self, scale: Fraction) -> int:
        return int(_sampler("laplace", round_up(scale))(0))

    def laplaces(self, scale: Fraction, size: int) -> list[int]:
        """`size` independent draws, for audits and simulations."""
        return list(_vector_sampler("laplace", round_up(scale))([0] * size))

    def gaussian(self, scale: Fraction) -> int:
        return int(_sampler("gaussian", round_up(scale))(0))

    def gaussians(self, scale: Fraction, size: int) -> list[int]:
        """`size` independent draws, for audits and simulations."""
        return list(_vector_sampler("gaussian", round_up(scale))([0] * size))

    def below(self, bound: int) -> int:
        return secrets.randbelow(bound)

    def flip(self, exponent: Fraction) -> bool:
        """Exact [CKS20, Algorithm 1]: whole units one by one, then the alternating series of the rest."""
        if exponent < 0:
            raise ParameterError("flip: the exponent is below 0 and exp(-exponent) above 1; pass 0 or more.")
        whole, rest = divmod(exponent, 1)
        return all(self._flip_unit(Fraction(1)) for _ in range(int(whole))) and self._flip_unit(Fraction(rest))

    def words(self, size: int) -> NDArray[np.uint64]:
        """`size` whole numbers, uniform on 0 … 2**64 - 1."""
        return np.frombuffer(secrets.token_bytes(8 * size), dtype=np.uint64)

    def sample(self, bound: int, size: int) -> NDArray[np.int64]:
        """`size` different whole numbers below `bound`, in random order; every order of every choice is equally likely.

        A large part of the numbers is the head of a random permutation, by the order of words that all differ; a small
        part is the first different ones of a sequence of independent draws.  (U)
        """
        if size > bound:
            raise ParameterError(f"sample: {size} different numbers below {bound} do not exist. Ask for fewer.")
        if 2 * size < bound:
            likely = math.ceil(-1.02 * bound * math.log1p(-size / bound))  # mostly enough to have `size` different ones
            drawn = self._indices(bound, likely)
            while len(first := np.unique(drawn, return_index=True)[1]) < size:
                drawn = np.concatenate([drawn, self._indices(bound, size)])
            chosen: NDArray[np.int64] = drawn[np.sort(first)[:size]]
            return chosen
        while True:
            words = self.words(bound)
            order = np.argsort(words)
            line = words[order]
            if not (line[1:] == line[:-1]).any():
                return order[:size]

    def _indices(self, bound: int, size: int) -> NDArray[np.int64]:
        """`size` independent whole numbers, uniform on 0 … bound-1: words cut to as many bits, those below kept."""
        span, parts, missing = 1 << (bound - 1).bit_length(), [np.empty(0, dtype=np.int64)], size
        while missing > 0:
            words = self.words(-(-missing * span // bound)) & np.uint64(span - 1)
            parts.append(words[words < bound][:missing].astype(np.int64))
            missing -= len(parts[-1])
        return np.concatenate(parts)

    def _flip_unit(self, exponent: Fraction) -> bool:
        turn = 1
        while secrets.randbelow(exponent.denominator * turn) < exponent.numerator:
            turn += 1
        return turn % 2 == 1


def words(noise: Noise, size: int) -> NDArray[np.uint64]:
    """Uniform 64-bit words: in bulk from a noise that has them, as the system's has, one by one from any other."""
    bulk = getattr(noise, "words", None)
    if bulk is not None:
        found: NDArray[np.uint64] = bulk(size)
        return found
    return np.array([noise.below(2**64) for _ in range(size)], dtype=np.uint64)


def sample(noise: Noise, bound: int, size: int) -> NDArray[np.int64]:
    """`size` different whole numbers below `bound` in random order, exactly evenly: in bulk from a noise that has them,
    as the system's has, one by one from any other.  (U)"""
    bulk = getattr(noise, "sample", None)
    if bulk is not None:
        drawn: NDArray[np.int64] = bulk(bound, size)
        return drawn
    order = list(range(bound))
    for at in range(size):
        other = at + noise.below(bound - at)
        order[at], order[other] = order[other], order[at]
    return np.array(order[:size], dtype=np.int64)


def draws(noise: Noise, law: Literal["laplace", "gaussian"], scale: Fraction, size: int) -> NDArray[np.int64]:
    """Independent draws of one law: in bulk from the system's noise, one by one from any other."""
    if isinstance(noise, SystemNoise):
        return np.array(getattr(noise, f"{law}s")(scale, size), dtype=np.int64)
    return np.array([getattr(noise, law)(scale) for _ in range(size)], dtype=np.int64)


def note_choice(noise: Noise, law: str, rate: Fraction, gaps: Sequence[int], counts: Sequence[int]) -> None:
    """Tell a noise that keeps a record of its draws what its next words decide; no other noise listens.

    Words of a choice look alike whatever they decide. An audit needs its rate, and how many candidates are how far
    from the best.
    """
    listen = getattr(noise, "note_choice", None)
    if listen is not None:
        listen(law, rate, gaps, counts)


def system_noise() -> SystemNoise:
    """The noise that releases are made of."""
    return SystemNoise()


def secret(size: int) -> bytes:
    """Bytes that nobody can guess, to make a key of. They are no noise."""
    return secrets.token_bytes(size)


def round_up(scale: Fraction) -> float:
    """The smallest float that is not below `scale`: OpenDP reads it back exactly.

    >>> Fraction(round_up(Fraction(1, 3))) >= Fraction(1, 3)
    True
    """
    if not 0 < scale < 2**52:
        raise ParameterError("the noise scale must be positive and below 2**52; use a larger epsilon or fewer records.")
    near = float(scale)
    return near if Fraction(near) >= scale else math.nextafter(near, math.inf)


@lru_cache(maxsize=256)
def _sampler(law: str, scale: float) -> Any:
    _opendp.enable_features("contrib")
    domain, metric = _domains.atom_domain(T="i64"), _metrics.absolute_distance(T="i64")
    return getattr(_measurements, f"make_{law}")(domain, metric, scale=scale)


@lru_cache(maxsize=256)
def _vector_sampler(law: str, scale: float) -> Any:
    _opendp.enable_features("contrib")
    metric = _metrics.l1_distance(T="i64") if law == "laplace" else _metrics.l2_distance(T="i64")
    return getattr(_measurements, f"make_{law}")(
        _domains.vector_domain(_domains.atom_domain(T="i64")), metric, scale=scale
    )
