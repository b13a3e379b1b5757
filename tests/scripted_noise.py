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
