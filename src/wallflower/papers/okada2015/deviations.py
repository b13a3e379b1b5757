"""The figures that both papers share: the deviation of the noise against ε, one panel a table."""

from __future__ import annotations

from collections.abc import Sequence

from wallflower.papers.data.tables import Sample
from wallflower.papers.methods import EPSILONS, OURS, Method
from wallflower.papers.page import Panel, Section, Sheet, curve


def deviations(
    name: str,
    title: str,
    caption: str,
    samples: Sequence[Sample],
    methods: Sequence[Method],
    claim: tuple[float, float] | None = None,
) -> Section:
    """The deviation of every method on every sample, as a table and as panels."""
    found = [
        {method.key: tuple(method.deviation(sample, epsilon) for epsilon in EPSILONS) for method in methods}
        for sample in samples
    ]
    rows: list[tuple[str | float, ...]] = [
        (sample.name, float(epsilon), *(values[method.key][place] for method in methods))
        for sample, values in zip(samples, found, strict=True)
        for place, epsilon in enumerate(EPSILONS)
    ]
    panels = [
        Panel(
            title=describe_sample(sample),
            along=tuple(map(float, EPSILONS)),
            curves=tuple(curve(method, values[method.key], ours=method is OURS) for method in methods),
            across="ε",
            up="standard deviation of the noise",
            claim=claim if place == 0 else None,
        )
        for place, (sample, values) in enumerate(zip(samples, found, strict=True))
    ]
    heading = ("data", "epsilon", *(method.column for method in methods))
    return Section(
        name=name, title=title, caption=caption, sheet=Sheet(heading=heading, rows=tuple(rows)), panels=tuple(panels)
    )


def describe_sample(sample: Sample) -> str:
    """The question and its true answer, which may be shown because the table is public."""
    return (
        f"{sample.name}: N={sample.n}, d={sample.dimension}, k={sample.neighbours}, r={sample.radius:g}, "
        f"{sample.outliers} outliers"
    )
