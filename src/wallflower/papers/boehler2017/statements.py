"""What [Boe17] says of Figure 3, cell by cell beside ours, and how far that depends on what it does not print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

import numpy as np

from wallflower.papers.boehler2017.figure3 import ACCURACY, SEPARATIONS, SUBSET, Figure3
from wallflower.papers.boehler2017.modes import (
    ALONE,
    EPSILONS,
    EXACT,
    FACTS,
    LITERAL,
    UPPER,
    mark,
    perturb_points,
    tally,
)
from wallflower.papers.data.readings import NEIGHBOURS, RADIUS, STEP, WIDE, make_stream
from wallflower.papers.degue2020.detection import Tally
from wallflower.papers.page import Section, Sheet
from wallflower.sensors import perturbation
from wallflower.sensors.correction import correct
from wallflower.sensors.detectors import outside_biggest_cluster

LOW, MIDDLE, HIGH = EPSILONS
SEPARATED: Final = SEPARATIONS[2:]  # those the text calls 220 and more
ABOUT: Final = 0.05
UNSAID: Final = "drawn, not stated"
YES, NO = "yes", "no"
NEEDED, NEEDLESS = "needed", "not needed"
ALL: Final = 0.99
LIMIT: Final = FACTS["subset size in all cells"].number / 100
# Radius and neighbours of DBSCAN and w_O: ours first, then others.
CHOICES: Final = (
    (RADIUS, NEIGHBOURS, WIDE),
    (RADIUS, NEIGHBOURS, Fraction(1)),
    (RADIUS, NEIGHBOURS, Fraction(10)),
    (RADIUS, 30, WIDE),
    (0.3, NEIGHBOURS, WIDE),
    (0.7, NEIGHBOURS, WIDE),
    (1.0, NEIGHBOURS, WIDE),
    (1.0, 30, WIDE),
    (1.0, 100, WIDE),
)

Cell = tuple[int, str]  # separation, ε of each column
Choice = tuple[float, int, Fraction]


def statements(found: Figure3) -> Section:
    """Twelve cells: what is printed of each, and whether the printed algorithm does that here."""
    heading = ("separation", "epsilon", "printed_accuracy", LITERAL.column, UPPER.column, ALONE.column, EXACT.column)
    subsets = ("subset_literal", "subset_upper", "subset_exact", "agrees_subset")
    return Section(
        name="statements",
        title="Figure 3, cell by cell: what the text says of it, and ours",
        caption="The picture is not in the text, which says this much of it. Noise in every column. agrees: the gap "
        f"rule as printed gives what is printed, by {ABOUT:g} or less where that is about so much. At ε={HIGH} what is "
        "printed is about the correction, which is not needed where DBSCAN alone finds all outliers. Where they "
        "disagree: at 400 the printed gap rule throws correct hits away in some runs, or noise bridges the gap to the "
        "ring of outliers; at 50 DBSCAN presumes too many, or the third layer takes in too many. Both depend on the "
        "parameters of DBSCAN and on w_O, which are not printed.",
        sheet=Sheet(
            heading=(*heading, "agrees_accuracy", "printed_subset", *subsets),
            rows=tuple(_statement(found, separation, epsilon) for epsilon in EPSILONS for separation in SEPARATIONS),
        ),
    )


def choices(points: int) -> Section:
    """The printed algorithm under several choices of what is not printed, one run each of the same noise."""
    tallies = _tallies(points)
    heading = ("radius", "neighbours", "w_O", "cells_that_agree", f"accuracy_{SEPARATED[0]}_{LOW}")
    return Section(
        name="choices",
        title="What is not printed: the parameters of DBSCAN and w_O",
        caption=f"One run of the printed algorithm for each cell, the same noise for all rows; the first row is ours. "
        f"cells_that_agree: of the {len(SEPARATIONS) * len(EPSILONS)} cells of Figure 3, those of which nothing that "
        "is printed is contradicted. Radius and neighbours are for scaled columns, w_O is in the units of the "
        "readings. What DBSCAN finds without noise is the same in every row.",
        sheet=Sheet(
            heading=(*heading, f"accuracy_{SEPARATED[1]}_{LOW}", f"least_accuracy_{MIDDLE}", "largest_subset"),
            rows=tuple(_choice_row(choice, tallies[choice]) for choice in CHOICES),
        ),
    )


def printed_accuracy(separation: int, epsilon: str) -> str:
    """What is printed of the accuracy of a cell."""
    if epsilon == LOW:
        about, abstract = (fact.value for item, fact in FACTS.items() if item.startswith(f"accuracy eps={LOW}"))
        return f"{about}; {abstract}" if separation in SEPARATED else UNSAID
    return FACTS[f"accuracy eps={MIDDLE}" if epsilon == MIDDLE else f"eps={HIGH}"].value


def is_accuracy_kept(separation: int, epsilon: str, accuracy: float) -> bool | None:
    """Whether an accuracy is as printed; None where nothing is printed of it.

    >>> is_accuracy_kept(220, "0.1", 0.79), is_accuracy_kept(50, "0.5", 0.9), is_accuracy_kept(50, "0.1", 0.5)
    (True, False, None)
    """
    if epsilon == HIGH or (epsilon == LOW and separation not in SEPARATED):
        return None
    if epsilon == MIDDLE:
        low, high = (float(number) / 100 for number in FACTS[f"accuracy eps={MIDDLE}"].numbers)
        return low <= accuracy <= high
    stated = [fact.number / 100 for item, fact in FACTS.items() if item.startswith(f"accuracy eps={LOW}")]
    return min(stated) - ABOUT <= accuracy <= max(stated) + ABOUT


def _statement(found: Figure3, separation: int, epsilon: str) -> tuple[str | float, ...]:
    key = ("columns", separation, epsilon)
    accuracies = [found.mean(key, mode, ACCURACY) for mode in (LITERAL, UPPER, ALONE, EXACT)]
    subsets = [found.mean(key, mode, SUBSET) for mode in (LITERAL, UPPER, EXACT)]
    return (
        separation,
        float(epsilon),
        printed_accuracy(separation, epsilon),
        *accuracies,
        _verdict(separation, epsilon, literal=accuracies[0], alone=accuracies[2]),
        FACTS["subset size in all cells"].value,
        *subsets,
        _word(subsets[0] < LIMIT),
    )


def _verdict(separation: int, epsilon: str, *, literal: float, alone: float) -> str:
    if epsilon == HIGH:
        return NEEDLESS if alone >= ALL else NEEDED
    kept = is_accuracy_kept(separation, epsilon, literal)
    return UNSAID if kept is None else _word(kept)


def _word(holds: bool) -> str:
    return YES if holds else NO


def _tallies(points: int) -> dict[Choice, dict[Cell, Tally]]:
    found: dict[Choice, dict[Cell, Tally]] = {choice: {} for choice in CHOICES}
    for separation in SEPARATIONS:
        stream = make_stream(separation, points, seed=0)
        for epsilon in EPSILONS:
            seen = perturb_points(stream, stream.points, "columns", epsilon)
            distances, moved = perturbation.distances(seen, [0, 0]), perturbation.d_diff(stream.points, seen, [0, 0])
            presumed = {
                pair: np.flatnonzero(outside_biggest_cluster(seen * float(STEP), *pair))
                for pair in {choice[:2] for choice in CHOICES}
            }
            for choice in CHOICES:
                width = float(choice[2] / stream.columns[0].scale / STEP)
                output = correct(distances, moved, presumed[choice[:2]], width, gap="literal").output
                found[choice][separation, epsilon] = tally(mark(stream, output), stream.truth)
    return found


def _choice_row(choice: Choice, cells: Mapping[Cell, Tally]) -> tuple[str | float, ...]:
    agree = sum(
        is_accuracy_kept(*cell, each.recall) is not False and each.alarms < LIMIT for cell, each in cells.items()
    )
    near = [cells[separation, LOW].recall for separation in SEPARATED]
    least = min(cells[separation, MIDDLE].recall for separation in SEPARATIONS)
    return choice[0], choice[1], float(choice[2]), agree, *near, least, _largest(list(cells.values()))


def _largest(found: Sequence[Tally]) -> float:
    return max(each.alarms for each in found)
