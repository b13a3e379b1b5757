"""What the pages of both papers share: noise against ε, the pairs of tables it tells apart, printed facts and ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from wallflower.papers import printed
from wallflower.papers.data.tables import Sample
from wallflower.papers.facts import WORKS, Comparison, printed_facts
from wallflower.papers.methods import EPSILONS, OURS, Method
from wallflower.papers.page import Section, Sheet
from wallflower.papers.panels import Curve, Panel, curve
from wallflower.papers.witnesses import EPSILON, Witness

Deviations = Mapping[str, tuple[float, ...]]

TRUE_COUNT: Final = "true count of outliers"


class Ours(NamedTuple):
    """What is here, how it stands to the paper, and why it differs."""

    words: str
    status: str = WORKS
    why: str = ""


def compare(paper: str, ours: Mapping[str, Ours]) -> list[Comparison]:
    """One row for every printed fact, in the order of the paper; none may be left out."""
    return [Comparison(item, fact, *ours[item]) for item, fact in printed_facts(paper).items()]


def deviations(
    name: str,
    title: str,
    caption: str,
    sample: Sample,
    methods: Sequence[Method],
    claim: tuple[float, float] | None = None,
) -> Section:
    """The deviation of every method on a sample, as a table and as a panel, beside the true count."""
    found = measure(sample, methods)
    lines = tuple(curve(method, found[method.key], ours=method is OURS) for method in methods)
    panel = Panel(
        title=describe_sample(sample),
        along=tuple(map(float, EPSILONS)),
        curves=(*lines, _count_line(sample)),
        across="ε",
        up="standard deviation of the noise",
        claim=claim,
    )
    return Section(
        name=name, title=title, caption=caption, sheet=deviation_sheet(sample, methods, found), panels=(panel,)
    )


def spreads(name: str, title: str, caption: str, sample: Sample, methods: Sequence[Method]) -> Section:
    """The true count plus and minus the deviation of every method."""
    found = measure(sample, methods)
    panel = Panel(
        title=describe_sample(sample),
        along=tuple(map(float, EPSILONS)),
        curves=(*(line for method in methods for line in _both_ways(sample, method, found)), _count_line(sample)),
        across="ε",
        up="count ± standard deviation",
        scale="signed",
    )
    return Section(
        name=name, title=title, caption=caption, sheet=deviation_sheet(sample, methods, found), panels=(panel,)
    )


def measure(sample: Sample, methods: Sequence[Method]) -> Deviations:
    """The deviation of every method at every ε."""
    return {method.key: tuple(method.deviation(sample, epsilon) for epsilon in EPSILONS) for method in methods}


def deviation_sheet(sample: Sample, methods: Sequence[Method], found: Deviations) -> Sheet:
    """One row for every ε: the true count and the deviation of every method."""
    count = sample.outliers
    return Sheet(
        heading=("data", "epsilon", "count", *(method.column for method in methods)),
        rows=tuple(
            (sample.name, float(epsilon), count, *(found[method.key][place] for method in methods))
            for place, epsilon in enumerate(EPSILONS)
        ),
    )


def leaks(witnesses: Sequence[Witness]) -> Section:
    """What a pair of neighbouring tables needs for the printed noise, which claims δ=0.01."""
    rows: list[tuple[str | float, ...]] = []
    for witness in witnesses:
        laws = witness.laws()
        cells = (cell for law in laws for cell in (law.mean, law.deviation))
        rows.append((witness.label, len(witness.one), *cells, printed.DELTA, witness.delta()))
    heading = ("tables", "N", "count", "deviation", "count of the other", "deviation of the other")
    return Section(
        name="leaks",
        title=f"Neighbouring tables that the printed noise tells apart, ε={EPSILON}",
        caption="Both tables differ in one record. The last column is the least δ for which the two released counts, "
        "each normal around its true count, are within ε of each other: it is exact, and above what is claimed.",
        sheet=Sheet(heading=(*heading, "delta claimed", "delta needed"), rows=tuple(rows)),
    )


def describe_sample(sample: Sample) -> str:
    """The question and its true answer, which may be shown because the table is public."""
    return (
        f"{sample.name}: N={sample.n}, d={sample.dimension}, k={sample.neighbours}, r={sample.radius:g}, "
        f"{sample.outliers} outliers"
    )


def _count_line(sample: Sample) -> Curve:
    return Curve(label=TRUE_COUNT, values=(float(sample.outliers),) * len(EPSILONS))


def _both_ways(sample: Sample, method: Method, found: Deviations) -> list[Curve]:
    """The upper and the lower edge, which share a label and so a pen."""
    return [
        curve(method, tuple(sample.outliers + sign * width for width in found[method.key]), ours=method is OURS)
        for sign in (1, -1)
    ]
