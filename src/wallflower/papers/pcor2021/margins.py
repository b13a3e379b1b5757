"""The same question under differential privacy: contexts drawn by margins, and how useful they are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import mean
from typing import Final

import numpy as np

from wallflower.papers.data.registers import Register, synthetic_salaries
from wallflower.papers.page import Section, Sheet
from wallflower.papers.panels import Curve, Panel
from wallflower.papers.pcor2021.exact import Margins, Private, margins_of
from wallflower.queries.explain.detectors import ClampedGrubbs, Detector, FixedBins, Tukey
from wallflower.queries.explain.space.tables import rank_table
from wallflower.synthetic import salaries

LOSSES: Final = ("0.1", "0.2", "0.4", "1")
POINTS: Final = 101  # of the grid of quartiles
BINS: Final = 100
SEED: Final = 5
ONE: Final = "made-up, one record"

Laws = Mapping[tuple[str, str], Sequence[Mapping[str, Private]]]  # by data and detector; for each record, by loss


def private(registers: Sequence[Register], count: int) -> Section:
    """What a release in mode `dp` finds, exactly, and how often it says none."""
    laws: Laws = {
        (register.name, name): [_laws(found) for found in margins_of(register, detector, count, seed=SEED)]
        for register in registers
        for name, detector in with_margin(register).items()
    } | {(ONE, name): [_laws(found)] for name, found in bundled_margins()}
    rows: tuple[tuple[str | float, ...], ...] = tuple(
        (*key, float(loss), *_row([law[loss] for law in found])) for key, found in laws.items() for loss in LOSSES
    )
    heading = ("data", "detector", "epsilon", "records", "valid", "utility", "none", "stand_out")
    return Section(
        name="private",
        title="Differential privacy by margins: ε-DP against every neighbour",
        caption="valid: how often the context drawn is valid; utility counts 0 where it is not; none: how often "
        "nothing is released instead, which a tenth of the loss decides. All from the exact law of a release. A record "
        "stands out if its best score is high enough for the bound on invalid draws (1 in 100); then: the same figures "
        f"for these alone. Quartiles are read on {POINTS} points and bins are {BINS}, evenly between public bounds. "
        "Records are drawn as above, for Tukey as for LOF. The last rows are the record of the bundled salaries that "
        "stands out. The paper has no such mode.",
        sheet=Sheet(heading=(*heading, "valid_then", "utility_then", "none_then"), rows=rows),
        panels=tuple(_panel(register.name, laws) for register in registers),
    )


def with_margin(register: Register) -> dict[str, Detector]:
    """The detectors of mode `dp`, within the public bounds of a register."""
    low, high = register.low, register.high
    return {
        "Tukey": Tukey(tuple(np.linspace(low, high, POINTS).tolist())),
        "clamped Grubbs": ClampedGrubbs(low, high, register.most),
        "fixed bins": FixedBins.equal(low, high, BINS),
    }


def bundled_margins() -> Iterator[tuple[str, Margins]]:
    """The margins of the bundled salaries' record, by detector."""
    register, (codes, metric, row) = synthetic_salaries(), salaries()
    table = rank_table(codes, register.sizes, metric, row)
    for name, detector in with_margin(register).items():
        yield name, Margins(table, detector, register.most)


def _laws(found: Margins) -> dict[str, Private]:
    return {loss: found.law(loss) for loss in LOSSES}


def _row(laws: Sequence[Private]) -> tuple[float, ...]:
    clear = [law for law in laws if law.is_clear]
    return len(laws), *_means(laws), len(clear), *_means(clear)


def _means(laws: Sequence[Private]) -> tuple[float, float, float]:
    if not laws:
        return math.nan, math.nan, math.nan
    return mean(law.valid for law in laws), mean(law.utility for law in laws), mean(law.none for law in laws)


def _panel(name: str, laws: Laws) -> Panel:
    return Panel(
        title=f"{name}, all records asked about",
        along=tuple(map(float, LOSSES)),
        curves=tuple(
            Curve(
                label=f"{detector}: ε-DP",
                values=tuple(_means([law[loss] for law in found])[1] for loss in LOSSES),
                ours=detector == "Tukey",
            )
            for (data, detector), found in laws.items()
            if data == name
        ),
        across="ε",
        up="utility, 0 where invalid",
        scale="shares",
    )
