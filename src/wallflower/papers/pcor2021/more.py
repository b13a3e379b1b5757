"""Beyond the paper's tables: our searches, the detectors on the full registers, and what examining everything takes."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, median

from wallflower.papers.facts import printed_table
from wallflower.papers.page import Section, Sheet
from wallflower.papers.pcor2021.exact import DETECTORS
from wallflower.papers.pcor2021.searches import BFS, LAZY, OURS, TIGHT, Runs, runs
from wallflower.papers.pcor2021.surveys import LOSS, SAMPLES, Survey
from wallflower.papers.pcor2021.tables import PAPER


def own_searches(survey: Survey, *, lazy: int) -> Section:
    """Other readings of the paper's searches, and ours, with LOF; best-first for the first `lazy` outliers."""
    found = {search.label: survey.runs(search) for search in (BFS, *OURS) if search is not LAZY}
    if lazy:
        found[LAZY.label] = runs(LAZY, survey.grounds("LOF")[:lazy], epsilon=LOSS, samples=SAMPLES, repetitions=1)
    return Section(
        name="searches",
        title=f"Other searches with LOF, ε={LOSS}, n={SAMPLES}",
        caption=f"{survey.words}. Not in the paper. Searches book twice what they spend by the paper's accounting; at "
        "its true cost a search may weigh twice as sharply. A public order tries the largest contexts first and after "
        "16,384 starts from an even valid one, as a release does. Guided search looks at no more than n contexts, and "
        "where none is valid releases nothing, which counts 0. Best-first draws by the law of the direct approach.",
        sheet=Sheet(
            heading=("search", "runs", "utility_NOT_DP", "ci90_from", "ci90_to", "t_min_s", "t_max_s", "t_avg_s"),
            rows=tuple((label, *_figures(each)) for label, each in found.items()),
        ),
    )


def _figures(found: Runs) -> tuple[float, ...]:
    return len(found.all), found.utility, *found.interval, *found.seconds


def by_detector(survey: Survey, name: str) -> Section:
    """Breadth first and a direct draw on a full register."""
    rows: list[tuple[str | float, ...]] = []
    for detector in DETECTORS:
        asked = survey.outliers(detector)
        found, tight = survey.runs(BFS, detector), survey.runs(TIGHT, detector)
        drawn = [outlier.expected_utility(float(LOSS)) for outlier in asked]
        chance = mean(outlier.chance for outlier in asked)
        utility = (found.utility, *found.interval, tight.utility, mean(drawn), min(drawn))
        rows.append((detector, len(asked), chance, *utility))
    heading = ("detector", "outliers", "by_chance", "bfs_NOT_DP", "ci90_from", "ci90_to", "bfs_true_cost_NOT_DP")
    return Section(
        name=name,
        title=f"Breadth first by detector, {survey.register.name}, ε={LOSS}, n={SAMPLES}",
        caption=f"{survey.words}. The paper prints no such table; it says that homicides follow the same pattern. "
        "direct: expected utility of a draw from all valid contexts, exactly, and the least over outliers. by chance: "
        "of a valid context taken evenly.",
        sheet=Sheet(heading=(*heading, "direct_NOT_DP", "least"), rows=tuple(rows)),
    )


def direct(survey: Survey, printed: str) -> Section:
    """All contexts of a record examined, beside the paper's reference file."""
    rows: list[tuple[str | float, ...]] = []
    for detector in DETECTORS:
        asked = survey.outliers(detector)
        utilities = [outlier.expected_utility(float(LOSS)) for outlier in asked]
        seconds = median(outlier.seconds for outlier in asked)
        rows.append((detector, asked[0].table.space.count, printed, seconds, mean(utilities), min(utilities)))
    heading = ("detector", "contexts", "printed_reference_file", "seconds_per_record", "utility_NOT_DP", "least")
    return Section(
        name="direct",
        title=f"The direct approach: all contexts, ε={LOSS}",
        caption=f"{survey.words}. The paper's three days are its reference file: all contexts, with the outliers of "
        "each, for every record at once (6.2), and it gives them as the time of the direct approach too. Here all "
        "contexts of the one record that is asked about are examined: the median over records, on this machine.",
        sheet=Sheet(heading=heading, rows=tuple(rows)),
    )


def locality(surveys: Sequence[Survey]) -> Section:
    """5.2 supposes that contexts beside a valid one are valid more often than others."""
    rows: list[tuple[str | float, ...]] = []
    for survey in surveys:
        for detector in DETECTORS:
            beside, overall = zip(*(outlier.locality for outlier in survey.outliers(detector)), strict=True)
            rows.append((survey.register.name, detector, len(beside), mean(beside), mean(overall)))
    return Section(
        name="locality",
        title="Locality (5.2): are contexts valid beside valid ones?",
        caption="The share of valid contexts among those that differ from a valid one in one value, and among all that "
        "contain the record, on average over outliers. The paper supposes it and gives no figures.",
        sheet=Sheet(heading=("data", "detector", "outliers", "valid_beside_valid", "valid_of_all"), rows=tuple(rows)),
    )


def inconsistencies() -> Section:
    """Where the paper prints two things of one."""
    rows = printed_table(PAPER, "inconsistencies")
    return Section(
        name="inconsistencies",
        title="Where the paper disagrees with itself",
        caption="Two printed statements about one thing, so that no reproduction can agree with both.",
        sheet=Sheet(heading=tuple(rows[0]), rows=tuple(tuple(row.values()) for row in rows)),
    )
