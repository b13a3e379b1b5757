"""What the paper's ε pays for: one column of one normal reading, and no more; and the constants all this rests on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import mean
from typing import Final

from wallflower.papers.boehler2017.modes import EPSILONS, Run
from wallflower.papers.data.readings import SensorStream
from wallflower.papers.page import Section, Sheet
from wallflower.sensors.perturbation import columns_losses, diagonal, planar_losses

EPSILON: Final = EPSILONS[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedStream:
    """A stream with its runs at ε=0.1 a column, in every column and planar."""

    stream: SensorStream
    columns: Sequence[Run]
    planar: Sequence[Run]


def meaning(priced: Sequence[PricedStream]) -> Section:
    """What one reading costs in truth, and how much noise that is."""
    heading = ("stream", "normal", "extremes_columns", "extremes_planar", "noise_columns", "noise_planar")
    return Section(
        name="meaning",
        title=f"What ε={EPSILON} a column means",
        caption="Metric privacy towards the analyst, for one reading. normal: the ε between two readings within the "
        "ranges of all columns, which is the sum over columns and not the paper's ε. extremes: between any two in the "
        "public box; without a box there is no bound. noise: its root mean square, as a multiple of scale; planar "
        "noise is 13 % smaller for the same promise. auc: how often a perturbed distance is larger for an outlier than "
        "for another reading, .5 by chance. readings: what one sensor sends, and all what it pays for them together, "
        "since readings add up; made-up readings are taken to be of one sensor each. Losses grow with ε, noise with "
        "1/ε.",
        sheet=Sheet(
            heading=(*heading, "auc_columns", "auc_planar", "readings", "all"),
            rows=tuple(_loss_row(each) for each in priced),
        ),
    )


def constants(streams: Sequence[SensorStream]) -> Section:
    """Everything public that a stream is judged by."""
    heading = ("stream", "column", "centre", "scale", "range", "low", "high", "threshold", "bound", "ring", "width")
    return Section(
        name="constants",
        title="Public constants",
        caption="centre, scale, range and the box (low, high) in the units of a column; threshold (exact), bound and "
        "ring (grid) and width (paper, w_O) as multiples of scale. Of made-up readings they are the generator's: its "
        "deviation, and the range between its percentiles 5 and 95, a little less than the 12.9 that those which are "
        "no outliers span; w_O is ours. Where a sensor takes its own mean and deviation, as the paper has it, they are "
        "not private; ranges it takes from historical data, and so does usual_ranges. "
        "Those of motes 1 and 4 are rounded from motes 2 and 3, which are taken as public. Those of meters, and all "
        "thresholds and widths of real streams, are round numbers, chosen with these public readings in view.",
        sheet=Sheet(heading=heading, rows=tuple(row for stream in streams for row in _constants(stream))),
    )


def _loss_row(each: PricedStream) -> tuple[str | float, ...]:
    stream = each.stream
    ranges, count = stream.ranges, len(stream.columns)
    total, across = count * Fraction(EPSILON), diagonal(ranges)
    normal, far = columns_losses(ranges, [EPSILON] * count, stream.widths)
    _, far_planar = planar_losses(across, total, stream.widths)
    in_columns = math.sqrt(2 * sum(float(usual) ** 2 for usual in ranges)) / float(EPSILON)
    planar = math.sqrt(count * (count + 1)) * float(across / total)
    aucs = [mean(one.auc for one in runs) for runs in (each.columns, each.planar)]
    losses = [float(loss.epsilon) for loss in (normal, far, far_planar)]
    return stream.name, *losses, in_columns, planar, *aucs, stream.most, stream.most * losses[0]


def _constants(stream: SensorStream) -> list[tuple[str | float, ...]]:
    shared = [float(length) for length in (stream.threshold, stream.bound, stream.ring, stream.width)]
    return [
        (stream.name, c.name, *(float(each) for each in (c.centre, c.scale, c.range, c.low, c.high)), *shared)
        for c in stream.columns
    ]
