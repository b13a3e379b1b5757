"""The appendix's Figures 1 to 5: how utilities and times are spread over the runs behind Tables 2 to 11."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from wallflower.papers.page import Section, Sheet
from wallflower.papers.panels import Curve, Panel
from wallflower.papers.pcor2021.searches import NOT_DP, WHY
from wallflower.papers.pcor2021.tables import Experiment
from wallflower.synthetic import Floats

BINS: Final = 20
AXES: Final = {"utility": "utility", "seconds": "seconds, as a power of ten"}
LABEL: Final = f"runs: {NOT_DP}"


def figure(experiment: Experiment) -> Section:
    """Utilities in the first row of panels, seconds in the second, where bins grow by a factor."""
    times = [run.seconds for found in experiment.found.values() for run in found.all]
    sign = f"{experiment.unit}=" if experiment.unit else ""
    panels, rows = [], list[tuple[str | float, ...]]()
    for quantity, edges, axis in (
        ("utility", np.linspace(0.0, 1.0, BINS + 1), lambda edges: edges),
        ("seconds", np.geomspace(0.99 * min(times), 1.01 * max(times), BINS + 1), np.log10),
    ):
        counts = [
            np.histogram([getattr(run, quantity) for run in found.all], edges)[0].tolist()
            for found in experiment.found.values()
        ]
        rows += [(quantity, *each) for each in zip(edges[:-1].tolist(), edges[1:].tolist(), *counts, strict=True)]
        panels += [
            _panel(f"{sign}{name}", AXES[quantity], axis(edges), here)
            for name, here in zip(experiment.found, counts, strict=True)
        ]
    return Section(
        name=f"figure{experiment.figure}",
        title=f"Figure {experiment.figure} (appendix): {experiment.subject}, histograms",
        caption=f"Of the runs in Tables {experiment.times} and {experiment.utilities}. The paper's text gives no "
        "counts, so nothing printed stands beside them.",
        sheet=Sheet(heading=("quantity", "from", "to", *experiment.found), rows=tuple(rows)),
        panels=tuple(panels),
        across=len(experiment.found),
    )


def _panel(name: str, quantity: str, edges: Floats, counts: Sequence[int]) -> Panel:
    along, outline = tuple(np.repeat(edges, 2).tolist()), (0.0, *np.repeat(counts, 2).tolist(), 0.0)
    filled = (0.0,) * len(outline), outline
    return Panel(
        title=name,
        along=along,
        curves=(Curve(label=LABEL, values=outline, why=WHY, band=filled),),
        across=quantity,
        up="runs",
        scale="histogram",
    )
