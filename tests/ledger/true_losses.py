"""What questions really cost, written down from the specification without the library's own table.

`factor` is infinite where nothing bounds the loss.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

from wallflower.privacy import Loss
from wallflower.units import NEIGHBOURS, Claim, Protection

UNITS = {neighbours: unit for unit, neighbours in NEIGHBOURS.items()}
PROTECTIONS = (
    Protection(),
    Protection(units_per_person=3),
    Protection(unit="membership"),
    Protection(rows="time", unit="record"),
    Protection(rows="time", unit="entry"),
    Protection(rows="time", unit="window", window=1),
    Protection(rows="time", unit="window", window=3),
    Protection(rows="time", unit="window", window=4, units_per_person=2),
    Protection(rows="time", unit="person"),
    Protection(rows="time", unit="person", times=5),
)


def steps_in_time(claim: Claim, declared: Protection) -> float:
    """How many observations that are read one person may be in."""
    known = [claim.steps, declared.times, declared.window if declared.unit == "window" else None]
    return min([steps for steps in known if steps is not None], default=math.inf)


def windows_in_time(claim: Claim, declared: Protection) -> float:
    """How many windows of the claim cover what one person may change: those of a run, or one for each observation."""
    runs = [claim.steps, declared.window if declared.unit == "window" else None]
    blocks = [math.ceil(steps / (claim.window or 1)) for steps in runs if steps is not None]
    return min([*blocks, *([] if declared.times is None else [declared.times])], default=math.inf)


def factor(claim: Claim, declared: Protection) -> float:
    """How many steps of the question's own unit lie between neighbours of the declared one."""
    own, reach, columns = UNITS[claim.loss.neighbours], steps_in_time(claim, declared), claim.columns or math.inf
    blocks = windows_in_time(claim, declared)
    table: dict[str, tuple[float, float, float, float]] = {
        # record, membership, entry, window and person
        "record": (1, math.inf, 1, reach),
        "membership": (2, 1, 2, 2 * reach),
        "entry": (columns, math.inf, 1, reach),
        "window": (columns, math.inf, 1, blocks),
        "person": (columns, math.inf, 1, 1),
    }
    place = {"record": 0, "membership": 1, "entry": 2, "window": 3, "person": 3}[declared.unit]
    signs = 1.0
    if claim.one_sign:
        both = declared.unit == "person" or (declared.unit == "window" and declared.window != 1)
        signs = math.inf if declared.unit == "membership" else 2 if both else 1
    return table[own][place] * claim.moves * signs * declared.units_per_person


def loss_in(claim: Claim, declared: Protection) -> tuple[Fraction, Fraction] | None:
    """The ε and the sum of squares that the question really costs; None where nothing bounds them."""
    times = factor(claim, declared)
    if times == math.inf:
        return None
    independent = 1
    if claim.separable and UNITS[claim.loss.neighbours] == "entry" and declared.unit in ("window", "person"):
        independent = int(steps_in_time(claim, declared))
    epsilon = claim.loss.amount
    return int(times) * epsilon, (int(times) // independent) ** 2 * independent * epsilon**2 / 2


def every_claim(epsilon: Fraction) -> Iterator[Claim]:
    """Questions of every unit, with every assumption and every public fact that a price depends on."""
    facts = itertools.product((None, 1, 3), (None, 2, 7), (1, 3), (False, True), (False, True))
    for unit, (columns, steps, moves, one_sign, separable) in itertools.product(NEIGHBOURS, list(facts)):
        if separable and unit != "entry":
            continue
        for window in (1, 2, 3) if unit == "window" else (None,):
            yield Claim(
                loss=Loss(epsilon, neighbours=NEIGHBOURS[unit]),
                window=window,
                columns=columns,
                steps=steps,
                moves=moves,
                one_sign=one_sign,
                separable=separable,
            )
