"""Run a file of setup vectors against the library: bins, reach, laws of choices and of noise, errors of radii, groups.

Usage: python -m wallflower.testing.setup_vectors FILE. Prints what differs and exits with 1 if anything does.
It calls:

index         wallflower.neighbours.spreads.bins_of
value         wallflower.neighbours.spreads.middle_of_bin
reach         wallflower.neighbours.spreads.quantile_errors and interval, on a histogram of bins_of
joint_law     wallflower.mechanisms.choose_together, its law added up by wallflower.audit.laws.law_of; `errors` has a
              list for each coordinate, `epsilon` and `sensitivity` (or `rate`, of the largest error) say the rest;
              `law` is a list of [places, probability] or a list of probabilities in dictionary order
cube          wallflower.mechanisms.cube: _shares, _geometric and exponential_level make the level of cube_noise; Cube
              has the mean error
radius_error  wallflower.neighbours.radii.radius_errors
groups        wallflower.neighbours.extension.inliers, for the outliers of both groups before and after
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np

from wallflower.audit.laws import law_of
from wallflower.mechanisms import Cube, choose_together, cube, exponential_level
from wallflower.neighbours.extension import inliers
from wallflower.neighbours.radii import radius_errors
from wallflower.neighbours.spreads import BINS, bins_of, interval, middle_of_bin, quantile_errors
from wallflower.noise import Noise

CLOSE: Final = 1e-9
LEVELS: Final = 2000


def differ(what: str, found: Any, wanted: Any) -> Iterator[str]:
    """What to say where two lists of numbers are not the same, up to rounding."""
    mine, theirs = np.asarray(found, dtype=np.float64), np.asarray(wanted, dtype=np.float64)
    if mine.shape != theirs.shape or not np.allclose(mine, theirs, rtol=CLOSE, atol=CLOSE):
        yield f"{what}: {mine.tolist()} and not {theirs.tolist()}"


def run_index(stated: Any) -> Iterator[str]:
    for value, place in stated:
        yield from differ(f"index of {value}", [bins_of(value)], [place])


def run_value(stated: Any) -> Iterator[str]:
    for place, value in stated:
        yield from differ(f"value of {place}", [middle_of_bin(place)], [value])


def run_reach(stated: Any) -> Iterator[str]:
    for each in stated if isinstance(stated, list) else [stated]:
        bins = bins_of(each["differences"])
        yield from differ("sorted index", sorted(bins[bins > 0].tolist()), each["sorted_index"])
        share = Fraction(each["share"]).limit_denominator(1000)
        errors = quantile_errors(np.bincount(bins, minlength=BINS + 1), share, each.get("columns", 1))
        ends = [interval(errors, level) for level in range(len(each["lo"]))]
        yield from differ("reach, lo", [low for low, _ in ends], each["lo"])
        yield from differ("reach, hi", [high for _, high in ends], each["hi"])


def run_joint_law(stated: Any) -> Iterator[str]:
    for each in stated if isinstance(stated, list) else [stated]:
        errors, sensitivity = each["errors"], int(each.get("sensitivity", 1))
        epsilon = Fraction(str(each["epsilon"])) if "epsilon" in each else 2 * Fraction(str(each["rate"])) * sensitivity
        given = {"sensitivity": sensitivity, "epsilon": epsilon}

        def choose(noise: Noise, errors: Any = errors, given: Any = given) -> Hashable:
            return choose_together(errors, noise=noise, **given)

        law = law_of(choose)
        if each["law"] and isinstance(each["law"][0], list):
            wanted = {tuple(places): chance for places, chance in each["law"]}
        else:
            places = itertools.product(*(range(len(row)) for row in errors))
            wanted = dict(zip(places, each["law"], strict=True))
        yield from differ("joint law", [law.get(each, 0.0) for each in wanted], list(wanted.values()))


def run_cube(stated: Any) -> Iterator[str]:
    for each in stated if isinstance(stated, list) else [stated]:
        size, scale = int(each["m"]), 1 / Fraction(str(each["a"]))
        counts = np.array(cube._shares(size), dtype=object)

        def draw_level(noise: Noise, counts: Any = counts, scale: Fraction = scale) -> Hashable:
            return exponential_level(np.arange(len(counts)), counts, rate=1 / scale, noise=noise)[0]

        def draw_step(noise: Noise, scale: Fraction = scale) -> Hashable:
            return cube._geometric(scale, noise)

        start, one = law_of(draw_level), law_of(draw_step)
        found = np.array([start.get(level, 0.0) for level in range(LEVELS)])
        geometric = np.array([one.get(level, 0.0) for level in range(LEVELS)])
        for _ in range(size + 1):
            found = np.convolve(found, geometric)[:LEVELS]
        wanted = next(value for name, value in each.items() if name.startswith("level_law"))
        yield from differ("cube, law of the level", found[: len(wanted)], wanted)
        yield from differ("cube, mean", [Cube(size, scale, Fraction(1)).mean_error()], [each["mean_abs"]])


def run_radius_error(stated: Any) -> Iterator[str]:
    for each in stated if isinstance(stated, list) else [stated]:
        for target, errors in each["errors"].items():
            found = radius_errors(np.array(each["curve"]), int(target))
            yield from differ(f"errors at {target}", found, errors)


def run_groups(stated: Any) -> Iterator[str]:
    for each in stated if isinstance(stated, list) else [stated]:
        example = each["example"]
        before = [example["A"], example["B"]]
        after = [example["A"][1:], [*example["B"], example["A"][0]]]
        for name, wanted in example.items():
            if name.startswith("slack"):
                slack, place = (
                    int(name.removeprefix("slack")),
                    {"radius": each["radius"], "neighbours": each["neighbours"]},
                )
                found = [
                    [
                        len(group)
                        - inliers(np.array(group, float)[:, None], place["radius"], place["neighbours"], slack=slack)
                        for group in groups
                    ]
                    for groups in (before, after)
                ]
                yield from differ_loosely(f"groups, {name}", found, wanted)


def differ_loosely(what: str, found: Any, wanted: Any) -> Iterator[str]:
    """The same for numbers that are solved for to within 1e-6."""
    yield from differ(what, np.round(np.asarray(found), 5), np.round(np.asarray(wanted, dtype=np.float64), 5))


RUNNERS: Final[Mapping[str, Callable[[Any], Iterator[str]]]] = {
    "index": run_index,
    "value": run_value,
    "reach": run_reach,
    "joint_law": run_joint_law,
    "cube": run_cube,
    "radius_error": run_radius_error,
    "groups": run_groups,
}


def differences(stated: Mapping[str, Any]) -> list[str]:
    """Everything in which the library and a file of vectors differ; parts that are not known are told too."""
    unknown = [f"{name}: nothing runs it" for name in stated if name not in RUNNERS and name != "note"]
    return unknown + [words for name, run in RUNNERS.items() if name in stated for words in run(stated[name])]


def main() -> None:
    found = differences(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    print("\n".join(found) or "No difference.")  # noqa: T201
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
