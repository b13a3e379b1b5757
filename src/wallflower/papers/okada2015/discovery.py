"""Figures 5 to 7 of [Oka15]: how often the released subspaces of one column are true ones, against ε, for several h."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from wallflower.papers.data.tables import Sample, adult2, available, ionosphere, synthetic2_sample
from wallflower.papers.okada2015.choosers import (
    CHOOSERS,
    DEFAULT,
    Search,
    Target,
    find_best,
    find_containing,
    find_planted,
    precision,
    search,
)
from wallflower.papers.page import Section, Sheet
from wallflower.papers.panels import Panel, curve

EPSILONS: Final = (0.2, 0.4, 0.8, 1.6, 3.2)
RELEASED: Final = (1, 2, 3, 4)
REPETITIONS: Final = 1000
DRAWS: Final = 20  # of every table that is itself drawn
TABLES: Final = REPETITIONS // DRAWS
MORE: Final = 400  # releases of each table, for the table of precisions


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure on a table that is at hand or not."""

    name: str
    title: str
    caption: str
    make: Callable[[], Sample]
    target: Target


COMMON: Final = (
    "Precision is the share of true ones among the h released, recall the share of the true ones that were released. "
    "The paper's score is divided by 2k+1 = 7, as printed. Which h it drew is not printed; here they are 1 to 4."
)
FIGURES: Final = (
    Figure(
        name="figure6",
        title="Figure 6: Adult 2",
        caption="The first 369 records above 50K and the first 10 others, k=3, r=0.02. The seven columns are our "
        "choice: age, education-num, capital-gain, capital-loss, hours-per-week, sex and race. True are those that "
        "contain outliers, five of them: sex and race, as 0 or 1, contain none.",
        make=adult2,
        target=find_containing,
    ),
    Figure(
        name="figure7",
        title="Figure 7: Ionosphere",
        caption="225 good and 10 bad returns, scaled, k=3, r=0.06. All columns but the one that never varies contain "
        "outliers, 3 to 46 of them, so by the paper's measure nearly any answer is right.",
        make=ionosphere,
        target=find_containing,
    ),
    Figure(
        name="ionosphere-best",
        title="Beyond the paper: the best columns of Ionosphere",
        caption="The same table, but right are the four columns with the most outliers (46, 39, 37, and two with 34). "
        "Outlier mass ranks the columns otherwise, so by this measure the paper's score does better at large ε.",
        make=ionosphere,
        target=find_best,
    ),
)


def discoveries(quick: bool, say: Callable[[str], None]) -> Iterator[Section]:
    """Every figure whose table is at hand, then the table of precisions on Synthetic 2."""
    single = search([synthetic2_sample(seed) for seed in range(5 if quick else TABLES)], 1, find_planted)
    yield figure5(single)
    tables = {make: available((make,), say) for make in dict.fromkeys(figure.make for figure in FIGURES)}
    for figure in FIGURES:
        for sample in tables[figure.make]:
            where = search([sample], 1, figure.target)
            repetitions = 100 if quick else REPETITIONS
            yield discovery(figure.name, figure.title, f"{figure.caption} {COMMON}", where, repetitions)
    yield precisions(single, [_wider(size, radius, 2 if quick else 20) for size, radius in ((2, 0.3), (3, 0.6))])


def figure5(single: Search) -> Section:
    """Precision and recall on Synthetic 2."""
    return discovery(
        "figure5",
        "Figure 5: Synthetic 2",
        f"{len(single.scores['count'])} draws of the table and {DRAWS} releases of each. True are the two columns with "
        "planted outliers, as the paper looks for 2 of 10, so precision cannot exceed 2/h. The tails of the other "
        f"columns contain outliers too, about 9 each. {COMMON}",
        single,
        DRAWS,
    )


def discovery(name: str, title: str, caption: str, where: Search, draws: int) -> Section:
    """Precision and recall of every method for every h, as a table and as two rows of panels."""
    found = {
        (h, chooser.key): tuple(precision(chooser, where, epsilon, h, draws) for epsilon in EPSILONS)
        for h in RELEASED
        for chooser in CHOOSERS
    }
    ratio = {h: h / int(where.relevant.sum()) for h in RELEASED}
    rows: list[tuple[str | float, ...]] = [
        (where.sample.name, h, epsilon, where.chance, *precise, *(share * ratio[h] for share in precise))
        for h in RELEASED
        for place, epsilon in enumerate(EPSILONS)
        for precise in [[found[h, chooser.key][place] for chooser in CHOOSERS]]
    ]
    columns = [chooser.column for chooser in CHOOSERS]
    heading = ("data", "h", "epsilon", "chance", *columns, *(f"recall_{column}" for column in columns))
    precise = [_panel(where, h, found, "precision", 1.0) for h in RELEASED]
    recalled = [_panel(where, h, found, "recall", ratio[h]) for h in RELEASED]
    return Section(
        name=name,
        title=title,
        caption=caption,
        sheet=Sheet(heading=heading, rows=tuple(rows)),
        panels=(*precise, *recalled),
        across=len(RELEASED),
    )


def precisions(single: Search, wider: Sequence[Search]) -> Section:
    """The precision of two released subspaces of Synthetic 2, for subspaces of one, two and three columns."""
    asked = [(single, epsilon) for epsilon in EPSILONS[2:]] + [(where, EPSILONS[-1]) for where in wider]
    rows: tuple[tuple[str | float, ...], ...] = tuple(
        (
            f"{where.size} of 10, r={where.sample.radius:g}",
            len(where.relevant),
            epsilon,
            where.chance,
            *(precision(chooser, where, epsilon, 2, MORE) for chooser in CHOOSERS),
        )
        for where, epsilon in asked
    )
    return Section(
        name="precisions",
        title="Beyond the paper: precision of two released subspaces of Synthetic 2, up to three columns",
        caption=f"{len(single.scores['count'])} draws of the table for one column, {len(wider[0].scores['count'])} for "
        f"two and three; {MORE} releases of each. Of two and three columns, those with a planted one are right. "
        "printed: Algorithm 3, which can spend 2ε; honest: the same at half the exponent; flip: permute-and-flip on "
        "the paper's score; mass: wallflower's default, whose sensitivity is 2 whatever the number of columns.",
        sheet=Sheet(
            heading=("columns", "subspaces", "epsilon", "chance", *(chooser.column for chooser in CHOOSERS)), rows=rows
        ),
    )


def _wider(size: int, radius: float, tables: int) -> Search:
    return search([synthetic2_sample(seed, radius) for seed in range(tables)], size, find_planted)


def _panel(where: Search, h: int, found: dict[tuple[int, str], tuple[float, ...]], up: str, ratio: float) -> Panel:
    lines = {chooser: tuple(share * ratio for share in found[h, chooser.key]) for chooser in CHOOSERS}
    return Panel(
        title=f"{where.sample.name}: h={h} of {len(where.relevant)}" if up == "precision" else "",
        along=EPSILONS,
        curves=tuple(curve(chooser, values, ours=chooser is DEFAULT) for chooser, values in lines.items()),
        across="ε" if up == "recall" else "",
        up=up if h == RELEASED[0] else "",
        chance=where.chance * ratio,
    )
