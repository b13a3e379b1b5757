"""Noise that comes again: what is asked of it twice is told twice."""

import math
import random


class Scripted:
    """Draws from a seed, for tests that compare answers before noise by answers."""

    def __init__(self, seed=11):
        self._draw = random.Random(seed)

    def laplace(self, scale):
        return round(self._draw.expovariate(1 / float(scale))) * self._draw.choice([-1, 1])

    def gaussian(self, scale):
        return round(self._draw.gauss(0, float(scale)))

    def below(self, bound):
        return self._draw.randrange(bound)

    def flip(self, exponent):
        return self._draw.random() < math.exp(-float(exponent))


class RecordedScript(Scripted):
    """The same, with a list of what was asked for: laws, scales, bounds, and choices among how many at which rate."""

    def __init__(self, seed=11):
        super().__init__(seed)
        self.asked = []

    def laplace(self, scale):
        self.asked.append(("laplace", scale))
        return super().laplace(scale)

    def gaussian(self, scale):
        self.asked.append(("gaussian", scale))
        return super().gaussian(scale)

    def below(self, bound):
        self.asked.append(("below", bound))
        return super().below(bound)

    def flip(self, exponent):
        self.asked.append(("flip", exponent))
        return super().flip(exponent)

    def note_choice(self, law, rate, gaps, counts):
        self.asked.append((law, rate, sum(counts)))
