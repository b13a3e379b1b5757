"""Tables 2 to 11 of the paper, printed beside ours: what a release takes, and its utility."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from wallflower.papers.facts import printed_table
from wallflower.papers.page import Section, Sheet
from wallflower.papers.panels import Curve, Panel
from wallflower.papers.pcor2021.searches import BFS, DFS, NOT_DP, PRINTED, WHY, Runs, overlap_runs
from wallflower.papers.pcor2021.surveys import LOSS, SAMPLES, Survey

PAPER: Final = "pcor2021"
LOSSES: Final = ("0.05", "0.1", "0.2", "0.4")
MORE: Final = ("25", "50", "100", "200")
REDUCED: Final = {"Grubbs": "Grubbs", "Histogram": "histogram"}  # as the paper writes them, and as they are called here
START: Final = "from a start of its own, a valid context drawn evenly"


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """Releases, by the first column of two printed tables: one of times and one of utilities."""

    times: int
    utilities: int
    figure: int
    subject: str
    settings: str
    found: Mapping[str, Runs]
    unit: str = ""  # what stands before a row's name where that is a number

    def sections(self) -> Iterator[Section]:
        yield self._times()
        yield self._utilities()

    def _times(self) -> Section:
        printed = printed_table(PAPER, f"table{self.times}")
        return Section(
            name=f"table{self.times}",
            title=f"Table {self.times}: {self.subject}, performance",
            caption=f"{self.settings} Printed times are the paper's, with 132 cores; ours are seconds on the machine "
            "that wrote this page, for one release once a start is known.",
            sheet=Sheet(
                heading=(*_key(printed), "printed_t_min", "printed_t_max", "printed_t_avg", "runs", *OUR_TIMES),
                rows=tuple(
                    (*_first(row), row["t_min"], row["t_max"], row["t_avg"], len(found.all), *found.seconds)
                    for row, found in self._rows(printed)
                ),
            ),
        )

    def _utilities(self) -> Section:
        printed = printed_table(PAPER, f"table{self.utilities}")
        return Section(
            name=f"table{self.utilities}",
            title=f"Table {self.utilities}: {self.subject}, utility",
            caption=f"{self.settings} Intervals hold the mean 9 times in 10: the paper's over its 200 runs, ours over "
            "records, which differ more than runs about one of them.",
            sheet=Sheet(
                heading=(*_key(printed), "printed_utility", "printed_ci90", "runs", *OUR_UTILITIES),
                rows=tuple(
                    (*_first(row), row["utility"], interval(row), len(found.all), found.utility, *found.interval)
                    for row, found in self._rows(printed)
                ),
            ),
            panels=(self._panel(printed),) if self.unit else (),
        )

    def _panel(self, printed: Sequence[Mapping[str, str]]) -> Panel:
        bounds = zip(*(found.interval for found in self.found.values()), strict=True)
        low, high = (tuple(float(row[end]) for row in printed) for end in ("ci90_low", "ci90_high"))
        return Panel(
            title=self.subject,
            along=tuple(map(float, self.found)),
            curves=(
                Curve(
                    label=f"BFS, as printed: {NOT_DP}",
                    values=tuple(float(row["utility"]) for row in printed),
                    why=WHY,
                    band=(low, high),
                ),
                Curve(
                    label=f"BFS, here: {NOT_DP}",
                    values=tuple(found.utility for found in self.found.values()),
                    why=WHY,
                    band=(next(bounds), next(bounds)),
                ),
            ),
            across=self.unit,
            up="utility, and where its mean lies 9 times in 10",
            scale="shares",
        )

    def _rows(self, printed: Sequence[Mapping[str, str]]) -> Iterator[tuple[Mapping[str, str], Runs]]:
        return ((row, self.found[next(iter(row.values()))]) for row in printed)


OUR_TIMES: Final = ("our_t_min_s", "our_t_max_s", "our_t_avg_s")
OUR_UTILITIES: Final = ("our_utility_NOT_DP", "our_ci90_from", "our_ci90_to")


def interval(row: Mapping[str, str]) -> str:
    """The printed interval of a row."""
    return f"({row['ci90_low']}, {row['ci90_high']})"


def _key(printed: Sequence[Mapping[str, str]]) -> tuple[str]:
    return (next(iter(printed[0])),)


def _first(row: Mapping[str, str]) -> tuple[str]:
    return (next(iter(row.values())),)


def experiments(large: Survey, small: Survey) -> Iterator[Experiment]:
    """The paper's five pairs of tables, on the full salaries and on the reduced ones."""
    yield from (make(large) for make in (searches, overlaps))
    yield detectors(small)
    yield from (make(large) for make in (losses, samples))


def searches(survey: Survey) -> Experiment:
    return Experiment(
        times=2,
        utilities=3,
        figure=1,
        subject="four searches with LOF",
        settings=f"{_trials(survey, 'LOF')} ε={LOSS}, n={SAMPLES}; the utility is the population. Uniform is Algorithm "
        "2 with p=1/2: its contexts are drawn from the list of valid ones, and its time is that of one try times the "
        "tries expected. Random Walk keeps a multiset, as printed.",
        found={search.label: survey.runs(search) for search in PRINTED},
    )


def overlaps(survey: Survey) -> Experiment:
    asked, repetitions = survey.outliers("LOF"), survey.repetitions("LOF")
    return Experiment(
        times=4,
        utilities=5,
        figure=2,
        subject="overlap with the starting context",
        settings=f"{_trials(survey, 'LOF')} ε={LOSS}, n={SAMPLES}; the score is how many records a context shares with "
        "the one the search started from. The start has the highest score itself, so that utility is a share of its "
        "population.",
        found={
            search.label: overlap_runs(search, asked, epsilon=LOSS, samples=SAMPLES, repetitions=repetitions)
            for search in (DFS, BFS)
        },
    )


def detectors(survey: Survey) -> Experiment:
    return Experiment(
        times=6,
        utilities=7,
        figure=3,
        subject="two other detectors, BFS, reduced salaries",
        settings=f"{_trials(survey, 'Grubbs')} ε={LOSS}, n={SAMPLES}; the utility is the population. All contexts are "
        "examined first, which is quicker than one by one and is counted. Grubbs at level 0.05, which is not printed.",
        found={written: survey.runs(BFS, name) for written, name in REDUCED.items()},
    )


def losses(survey: Survey) -> Experiment:
    return Experiment(
        times=8,
        utilities=9,
        figure=4,
        subject="the privacy parameter, BFS with LOF",
        settings=f"{_trials(survey, 'LOF')} n={SAMPLES}; the utility is the population.",
        unit="ε",
        found={loss: survey.runs(BFS, epsilon=loss) for loss in LOSSES},
    )


def samples(survey: Survey) -> Experiment:
    return Experiment(
        times=10,
        utilities=11,
        figure=5,
        subject="the number of samples, BFS with LOF",
        settings=f"{_trials(survey, 'LOF')} ε={LOSS}; the utility is the population. n+1 choices share the loss.",
        unit="n",
        found={n: survey.runs(BFS, samples=int(n)) for n in MORE},
    )


def _trials(survey: Survey, detector: str) -> str:
    repetitions, many = survey.repetitions(detector), len(survey.grounds(detector))
    return f"{survey.words}; {repetitions} releases about each of {many} outliers, each {START}."
