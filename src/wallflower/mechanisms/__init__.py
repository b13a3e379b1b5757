"""Noise on whole numbers and private choice; every guarantee is proved in `mechanisms.md` under its label.

Nothing here knows a person: it sees a value on a public grid, scores that are whole numbers, and a sensitivity that the
caller has proved for his own notion of neighbours. Everything raised here depends on parameters, never on scores.
"""

from wallflower.mechanisms.additive import (
    Additive,
    LawName,
    calibrate,
    calibrate_counts,
    gaussian_for_norm,
    gaussian_scale,
    smooth_additive,
    smooth_beta,
)
from wallflower.mechanisms.choice import (
    Whole,
    bounded_range_pays,
    choose_together,
    epsilon_each,
    epsilon_of_range,
    exponential,
    exponential_level,
    peel,
    permute_and_flip,
)
from wallflower.mechanisms.continual import MAX_PERIODS, MAX_TOTAL, Factorisation
from wallflower.mechanisms.cube import Cube, calibrate_cube, cube_noise

__all__ = [
    "MAX_PERIODS",
    "MAX_TOTAL",
    "Additive",
    "Cube",
    "Factorisation",
    "LawName",
    "Whole",
    "bounded_range_pays",
    "calibrate",
    "calibrate_counts",
    "calibrate_cube",
    "choose_together",
    "cube_noise",
    "epsilon_each",
    "epsilon_of_range",
    "exponential",
    "exponential_level",
    "gaussian_for_norm",
    "gaussian_scale",
    "peel",
    "permute_and_flip",
    "smooth_additive",
    "smooth_beta",
]
