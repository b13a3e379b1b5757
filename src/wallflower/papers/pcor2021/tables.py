"""Tables of utility and run time: the paper's searches beside a draw from all contexts.

The text of the paper was not at hand. What its Tables 2 to 13 compare is known in outline only, and of what it printed
no more than `PAPER` says.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import mean, median
from typing import Final

from wallflower.papers.data.registers import Register
from wallflower.papers.page import Curve, Panel, Section, Sheet
from wallflower.papers.pcor2021.exact import DETECTORS, Outlier, outliers
from wallflower.papers.pcor2021.searches import BFS, GUIDED, LAZY, NOT_DP, OURS, PRINTED, TIGHT, WHY, Ground, runs
from wallflower.queries.explain.draws.utilities import Overlap

LOSS: Final = "0.2"
LOSSES: Final = ("0.05", "0.1", "0.2", "0.4")
SAMPLES: Final = 50
MORE: Final = (25, 50, 100, 200)
SEED: Final = 3
UNKNOWN: Final = "not at hand"
# Which detector has which of the utilities .90, .86 and .89 is not sure.
PAPER: Final = {"utility": ".86 to .90", "seconds": "37 minutes", "direct": "3 days, 132 cores"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Survey:
    """A register and the outliers in it that are asked about, `slow` of them where a detector takes seconds."""

    register: Register
    count: int
    slow: int
    repetitions: int
    _grounds: dict[str, list[Ground]] = field(default_factory=dict)

    def grounds(self, detector: str) -> list[Ground]:
        if detector not in self._grounds:
            count = self.slow if detector == "LOF" else self.count
            asked = outliers(self.register, DETECTORS[detector], count, seed=SEED)
            self._grounds[detector] = [Ground(outlier) for outlier in asked]
        return self._grounds[detector]

    def outliers(self, detector: str) -> list[Outlier]:
        return [ground.outlier for ground in self.grounds(detector)]

    @property
    def words(self) -> str:
        return (
            f"{self.register.name}, {self.register.n:,} records in {' × '.join(map(str, self.register.sizes))} values"
        )


def searches(survey: Survey, *, lazy: int) -> Section:
    """The four searches of the paper, and ours, with LOF; best-first for the first `lazy` records."""
    rows: list[tuple[str | float, ...]] = []
    grounds = survey.grounds("LOF")
    asked = dict.fromkeys((*PRINTED, *OURS), grounds) | {LAZY: grounds[:lazy]}
    for search, here in asked.items():
        if here:
            repetitions = 1 if search is LAZY else survey.repetitions
            found = runs(search, here, epsilon=LOSS, samples=SAMPLES, repetitions=repetitions)
            printed = (PAPER["utility"], PAPER["seconds"]) if search is BFS else (UNKNOWN, UNKNOWN)
            measured = (found.utility, *found.interval, *found.seconds)
            rows.append((search.label, len(here), *measured, *printed))
    heading = ("search", "records", "utility_NOT_DP", "from", "to", "least_seconds", "median", "mean", "most")
    return Section(
        name="searches",
        title=f"The searches with LOF, ε={LOSS}, n={SAMPLES}",
        caption=f"{survey.words}; {survey.repetitions} releases about each record, one by best-first. By the paper's "
        "accounting searches book twice what they spend; mistakes in its pseudo-code, such as endless loops, are "
        "mended. Searches start from a valid context drawn evenly; what that takes is left out. A public order, the "
        "largest contexts first, is given up after 16,384 contexts, and guided search looks at no more than n: then "
        "nothing is released. Best-first draws by the law of the direct approach; it is slow where only small contexts "
        "are valid.",
        sheet=Sheet(heading=(*heading, "paper_utility", "paper_mean"), rows=tuple(rows)),
    )


def detectors(name: str, title: str, survey: Survey, *, paper: str) -> Section:
    """Breadth first and a direct draw, by detector; `paper` is what was printed of the former."""
    rows: list[tuple[str | float, ...]] = []
    for detector in DETECTORS:
        asked = survey.outliers(detector)
        found, tight = (
            runs(search, survey.grounds(detector), epsilon=LOSS, samples=SAMPLES, repetitions=survey.repetitions)
            for search in (BFS, TIGHT)
        )
        drawn = [outlier.drawn(float(LOSS)) for outlier in asked]
        chance = mean(outlier.chance for outlier in asked)
        utility = (found.utility, *found.interval, tight.utility, mean(drawn), min(drawn))
        rows.append((detector, len(asked), chance, *utility, found.seconds[1], paper))
    heading = ("detector", "records", "by_chance", "bfs_NOT_DP", "from", "to", "bfs_true_cost_NOT_DP")
    return Section(
        name=name,
        title=title,
        caption=f"{survey.words}; {survey.repetitions} releases about each record. direct: expected utility of a draw "
        "from all valid contexts, exactly, and the least over records. by chance: of a valid context taken evenly. "
        "seconds: the median of breadth first, by the paper's accounting, all contexts examined beforehand (with LOF "
        "one by one, where there are many).",
        sheet=Sheet(heading=(*heading, "direct_NOT_DP", "least", "seconds", "paper_bfs"), rows=tuple(rows)),
    )


def epsilons(survey: Survey) -> Section:
    """The effect of the loss."""
    rows: list[tuple[str | float, ...]] = []
    panels = []
    for detector in DETECTORS:
        asked = survey.outliers(detector)
        chance = mean(outlier.chance for outlier in asked)
        found = [_at(survey, detector, loss) for loss in LOSSES]
        rows += [(detector, float(loss), chance, *each) for loss, each in zip(LOSSES, found, strict=True)]
        printed, _, direct = zip(*found, strict=True)
        panels.append(_panel(detector, chance, printed, direct))
    return Section(
        name="epsilons",
        title=f"Utility against ε, n={SAMPLES}",
        caption=f"{survey.words}. Both lines are output-constrained privacy, not differential privacy. The paper's "
        f"values, other than at ε={LOSS}, were not at hand.",
        sheet=Sheet(
            heading=("detector", "epsilon", "by_chance", "bfs_NOT_DP", "bfs_true_cost_NOT_DP", "direct_NOT_DP"),
            rows=tuple(rows),
        ),
        panels=tuple(panels),
        across=3,
    )


def _at(survey: Survey, detector: str, loss: str) -> tuple[float, float, float]:
    grounds = survey.grounds(detector)
    printed, tight = (
        runs(search, grounds, epsilon=loss, samples=SAMPLES, repetitions=survey.repetitions).utility
        for search in (BFS, TIGHT)
    )
    return printed, tight, mean(ground.outlier.drawn(float(loss)) for ground in grounds)


def _panel(detector: str, chance: float, printed: tuple[float, ...], direct: tuple[float, ...]) -> Panel:
    return Panel(
        title=detector,
        along=tuple(map(float, LOSSES)),
        curves=(
            Curve(label=f"{BFS.label}: {NOT_DP}", values=printed, why=WHY),
            Curve(label=f"wallflower's direct draw: {NOT_DP}", values=direct, why=WHY),
        ),
        across="ε",
        up="utility" if detector == "Grubbs" else "",
        chance=chance,
    )


def samples(survey: Survey) -> Section:
    """The effect of the number of contexts that are visited, with LOF."""
    every, repetitions = (*PRINTED, TIGHT, GUIDED), -(-survey.repetitions // 2)
    rows: list[tuple[str | float, ...]] = []
    for n in MORE:
        found = (
            runs(search, survey.grounds("LOF"), epsilon=LOSS, samples=n, repetitions=repetitions) for search in every
        )
        rows.append((n, *(each.utility for each in found)))
    return Section(
        name="samples",
        title=f"Utility against n with LOF, ε={LOSS}",
        caption=f"{survey.words}; {repetitions} releases about each record. Depth and breadth first share the loss "
        "among n+1 choices, so that more contexts can make them worse; guided search pays once, for noisy counts, and "
        "uses n only to look further down the list. The paper's values were not at hand.",
        sheet=Sheet(heading=("n", *(search.column for search in every)), rows=tuple(rows)),
    )


def overlap(survey: Survey) -> Section:
    """Utility as overlap with a public context: all records that share the record's second attribute."""
    rows: list[tuple[str | float, ...]] = []
    for detector in DETECTORS:
        every = survey.outliers(detector)
        asked = every[: len(every) // 2]
        if not asked:
            continue
        grounds = [Ground(outlier.by(Overlap(beside(outlier)))) for outlier in asked]
        found = runs(BFS, grounds, epsilon=LOSS, samples=SAMPLES, repetitions=survey.repetitions)
        direct = mean(ground.outlier.drawn(float(LOSS)) for ground in grounds)
        chance = mean(ground.outlier.chance for ground in grounds)
        rows.append((detector, len(grounds), chance, found.utility, *found.interval, direct))
    heading = ("detector", "records", "by_chance", "bfs_NOT_DP", "from", "to", "direct_NOT_DP")
    return Section(
        name="overlap",
        title=f"Overlap instead of population, ε={LOSS}, n={SAMPLES}",
        caption=f"{survey.words}. The score of a context is how many records it shares with a public one, here all of "
        "the record's own employer (state); utility is the score over the highest of a valid context. Which contexts "
        "the paper chose, and its values, were not at hand.",
        sheet=Sheet(heading=heading, rows=tuple(rows)),
    )


def beside(outlier: Outlier) -> str:
    """The context of all records with the outlier's own value of the second attribute, as bits."""
    sizes, own = outlier.table.space.sizes, outlier.table.space.own
    wanted = [range(size) for size in sizes]
    wanted[1] = range(own[1], own[1] + 1)
    return "".join("01"[value in here] for size, here in zip(sizes, wanted, strict=True) for value in range(size))


def direct(survey: Survey) -> Section:
    """All contexts examined: what the paper calls the direct approach."""
    rows: list[tuple[str | float, ...]] = []
    for detector in DETECTORS:
        asked = survey.outliers(detector)
        utilities = [outlier.drawn(float(LOSS)) for outlier in asked]
        seconds = median(outlier.seconds for outlier in asked)
        rows.append((detector, asked[0].table.space.count, seconds, mean(utilities), min(utilities)))
    heading = ("detector", "contexts", "seconds", "utility_NOT_DP", "least", "paper_time")
    return Section(
        name="direct",
        title=f"The direct approach: all contexts, ε={LOSS}",
        caption=f"{survey.words}. Median seconds to examine every context of a record, and the expected utility of "
        "a draw from the valid ones, exactly. The paper needed 3 days on 132 cores; with which detector is not known.",
        sheet=Sheet(heading=heading, rows=tuple((*row, PAPER["direct"]) for row in rows)),
    )
