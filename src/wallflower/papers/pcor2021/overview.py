"""The table that the page opens with: every item of the paper beside what is here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from wallflower.papers.facts import (
    DEVIATES,
    IMPROVED,
    TOO_FEW_RUNS,
    WORKS,
    Comparison,
    Fact,
    judge,
    printed_facts,
    printed_table,
)
from wallflower.papers.page import Section, short
from wallflower.papers.pcor2021.tables import PAPER

Sections = Mapping[str, Section]
Said = tuple[str, str, str]  # ours, status, why they differ

PRICE: Final = "what one record more does to a count goes one way, so a choice costs half of what is printed"
NONE: Final = "none: the register is missing"
NEARLY: Final = 0.02
WANTED: Final = int(printed_facts(PAPER)["repetitions"].number)  # releases behind a figure of the paper
CLAIMED: Final = 0.9  # of the highest utility, by BFS
ONE_RECORD: Final = "the 3 days are for all records at once; about one of them, all contexts take seconds and are best"
HIGH: Final = 0.8  # near what the paper prints of all detectors
RISING: Final = f"it counts as rising while no value falls by more than {NEARLY:g}"
FIGURES: Final = ("our_t_avg_s", "our_utility_NOT_DP", "our_equal")  # what of ours a row is told by
SHOWN: Final = {"t_avg": "mean time", "utility": "utility", "delta_1": "match, one record removed"}
SPREAD: Final = "registers, starts, levels of LOF and Grubbs are chosen here; the paper prints none of them"
MACHINE: Final = "another machine, and engines of our own"


def compare(sections: Sections) -> list[Comparison]:
    """One row for every printed fact, table, figure and disagreement."""
    said = _definitions() | _settings(sections) | _claims(sections)
    facts = [Comparison(item, fact, *said[item]) for item, fact in printed_facts(PAPER).items()]
    return [*facts, *_tables(sections), *_figures(sections)]


def _definitions() -> dict[str, Said]:
    return {
        "contexts": ("the same bits; a search steps to connected ones", WORKS, ""),
        "example of a context": ("101001010, held by a doctest", WORKS, ""),
        "public domain": ("stated in a schema, never read off the data; a label outside is refused", IMPROVED, ""),
        "verification and enumeration": ("every context examined exactly, in blocks, on all cores", IMPROVED, ""),
        "private contextual outlier reporting": (
            "mode ocdp: always valid; mode dp: private against every neighbour, rarely invalid, or none",
            IMPROVED,
            "",
        ),
        "output-constrained privacy": ("mode ocdp, off until a steward allows it; the default is ε-DP", IMPROVED, ""),
        "exponential mechanism": (
            "exp(ε u/(sensitivity)) for counts, drawn by exact coins; tables of the paper here use exp(eps1 u)",
            IMPROVED,
            PRICE,
        ),
        "utility: population": ("utility population, the default", WORKS, ""),
        "utility: overlap": ("utility overlap: give `start` and `near` the same bits", IMPROVED, "near may differ"),
        "Algorithm 1: direct": ("search direct, and best-first with the same law; ε, not 2 ε", IMPROVED, PRICE),
        "Algorithm 2: uniform": (
            "search uniform (p=1/2, n contexts); any p on this page",
            WORKS,
            "a release takes p=1/2 alone: where all contexts can be examined, direct is better than any p",
        ),
        "Algorithm 3: random walk": (
            "the multiset on this page; search walk keeps distinct contexts",
            DEVIATES,
            "a context met twice tells nothing new, so a release goes on to n different ones; both are on this page",
        ),
        "Algorithm 4: depth first": (
            "search dfs: the visited contexts, not the last one; n+1 choices share ε",
            IMPROVED,
            "line 7 never flips a bit back and the loop may not end: mended; " + PRICE,
        ),
        "Algorithm 5: breadth first": (
            "search bfs; n+1 choices share ε",
            IMPROVED,
            "line 9 never flips a bit back: mended; " + PRICE,
        ),
        "starting context": (
            "drawn evenly among the valid ones here; a release takes the first in a public order, then an even one",
            DEVIATES,
            "a start found by looking at utilities would leak; which one the paper took is not printed",
        ),
        "detectors": ("the same three, and four with a margin for mode dp", IMPROVED, ""),
        "histogram detector": ("the same", WORKS, ""),
        "LOF k and threshold; Grubbs level": (
            "k=20, threshold 1.5, level 0.05",
            DEVIATES,
            "not printed, so chosen here",
        ),
        "any utility and any detector": ("a function of your own, each; PyOD's detectors", WORKS, ""),
    }


def _settings(sections: Sections) -> dict[str, Said]:
    runs = short(_cell(sections["table3"], "BFS", "runs"))
    enough = runs == printed_facts(PAPER)["repetitions"].value.split()[0]
    return {
        "salary records, full": (
            _register(sections, "table3"),
            DEVIATES,
            _or_quick(sections, "table3", "which values were taken is not printed, and the lists at hand end in 2013"),
        ),
        "salary attributes": ("job titles, employers, years 2006 to 2013; incomes above 100,000", WORKS, ""),
        "homicide records, full": (
            _register(sections, "homicides"),
            DEVIATES,
            _or_quick(
                sections, "homicides", "of the public file ten western states are at hand, of which six are taken"
            ),
        ),
        "homicide attributes": ("the most frequent agencies, states and weapons; the victim's age", WORKS, ""),
        "salary reduced": (
            _register(sections, "table12"),
            DEVIATES,
            "which 14 values is not printed: of the most frequent, those nearest to the size",
        ),
        "homicide reduced": (
            _register(sections, "table13"),
            DEVIATES,
            "which 12 values is not printed: of the most frequent, those nearest to the size",
        ),
        "machine": ("the one that wrote this page", DEVIATES, "times are ours"),
        "repetitions": (
            f"{runs} releases behind a figure; 90 % intervals over outliers",
            WORKS if enough else DEVIATES,
            "" if enough else "a quick page releases less",
        ),
        "utility reported": ("the same, from all contexts of the outlier", WORKS, ""),
        "direct approach / reference file": (
            f"all contexts of one record: {_direct(sections)}",
            IMPROVED,
            f"of one record, not of all at once; {MACHINE}",
        ),
        "samples n": ("50", WORKS, ""),
        "epsilon total": ("0.2; eps1 = 0.2/(2·51) in DFS and BFS, 0.1 in the others", WORKS, ""),
        "COE match": (
            f"{_column(sections['table12'], 'neighbours')} neighbours for each number removed; equal and shared",
            DEVIATES,
            "fewer neighbours, so that it takes minutes; what a match is, is not printed, so both are given",
        ),
        "ratio experiment": _ratios(sections),
    }


def _ratios(sections: Sections) -> Said:
    over, unequal = (_cells(sections["ratios"], name) for name in ("over", "unequal"))
    ours = (
        f"above e^0.2 for {sum(over):.0f} of {sum(unequal):.0f} unequal random neighbours; for a chosen record up to e "
        f"to the {max(_cells(sections['chosen'], 'largest_log')):.0f}"
    )
    if not any(unequal):
        return ours, TOO_FEW_RUNS, "no random neighbour here has other valid contexts, so no ratio was seen"
    if not any(over):
        return ours, IMPROVED, "a chosen record stands beside it"
    return ours, DEVIATES, f"a record that makes the largest context valid or invalid moves all; {SPREAD}"


def _claims(sections: Sections) -> dict[str, Said]:
    beside, overall = (_column(sections["locality"], name) for name in ("valid_beside_valid", "valid_of_all"))
    losses, samples = _numbers(sections["table9"]), _numbers(sections["table11"])
    best = _numbers(sections["table3"])[-1]
    return {
        "locality": (
            f"valid beside a valid one {beside}; of all {overall}",
            *_agrees(
                sections["locality"],
                all(float(row[3]) > float(row[4]) for row in sections["locality"].sheet.rows),
                SPREAD,
            ),
        ),
        "claim": (
            f"BFS {best:.2f} of the highest utility; direct, all contexts of one record: {_direct(sections)}",
            *_agrees(sections["table3"], best >= CLAIMED - NEARLY, SPREAD, ONE_RECORD, better=IMPROVED),
        ),
        "claim: the best search": (
            _series(sections["table3"]),
            *_agrees(sections["table3"], _is_best_last(_numbers(sections["table3"])), SPREAD, RISING),
        ),
        "claim: another utility": (
            _series(sections["table5"]),
            *_agrees(sections["table5"], _is_rising(_numbers(sections["table5"])), SPREAD, RISING),
        ),
        "claim: any detector": (
            _series(sections["table7"]),
            *_agrees(
                sections["table7"],
                min(_numbers(sections["table7"])) > HIGH,
                SPREAD,
                f"it counts as high above {HIGH:g}",
            ),
        ),
        "claim: the loss": (
            _series(sections["table9"]),
            *_agrees(sections["table9"], _is_rising(losses[:3]), SPREAD, f"{RISING}, up to 0.2"),
        ),
        "claim: the number of samples": (
            _series(sections["table11"]),
            *_agrees(
                sections["table11"], _is_rising(samples[:3]) and samples[3] < samples[2], SPREAD, f"{RISING}, up to 100"
            ),
        ),
        "claim: homicides": (
            f"BFS {_column(sections['homicides'], 'bfs_NOT_DP')} with Grubbs, histogram, LOF"
            if "homicides" in sections
            else NONE,
            *_homicides(sections),
        ),
        "claim: the relaxation is mild": (
            (
                f"equal for {_column(sections['full-match'], 'equal')} of random neighbours with one record less; for "
                f"{_column(sections['chosen'], 'delta_over_0.5')} of outliers a chosen record makes impossible what "
                "was more likely than not"
            ),
            DEVIATES,
            "a guarantee must hold for the neighbour that somebody chooses, not for most",
        ),
    }


def _agrees(section: Section, does: bool, why: str, within: str = "", better: str = WORKS) -> tuple[str, str]:
    """Whether what a section shows agrees with a claim, or has too few runs to say that it does not."""
    status, reason = judge(does, why, runs=_runs(section), wanted=WANTED, within=within)
    return (better, reason) if does else (status, reason)


def _runs(section: Section) -> int:
    """The fewest releases behind a figure of a section; as many as the paper has, where none are drawn."""
    if "runs" not in section.sheet.heading:
        return WANTED
    place = section.sheet.heading.index("runs")
    return min(int(row[place]) for row in section.sheet.rows)


def _homicides(sections: Sections) -> tuple[str, str]:
    """Whether BFS does as well on the other register; nothing is shown without it."""
    if "homicides" not in sections:
        return TOO_FEW_RUNS, "the register is missing, so nothing was run"
    high = min(_cells(sections["homicides"], "bfs_NOT_DP")) > HIGH
    return _agrees(sections["table3"], high, SPREAD, f"it counts as high above {HIGH:g}")


def _is_best_last(numbers: Sequence[float]) -> bool:
    """Whether BFS comes before DFS, and both before uniform, which is the first of them."""
    uniform, *_, depth, breadth = numbers
    return _is_rising([uniform, depth, breadth])


def _is_rising(numbers: Sequence[float]) -> bool:
    """Whether the numbers rise, as far as so few runs can tell."""
    return all(one <= other + NEARLY for one, other in pairwise(numbers))


def _tables(sections: Sections) -> Iterator[Comparison]:
    for number in range(2, 14):
        name = f"table{number}"
        printed = printed_table(PAPER, name)
        column = next(each for each in ("t_avg", "utility", "delta_1") if each in printed[0])
        value = "; ".join(f"{_head(row)} {row[column]}" for row in printed)
        ours = _series(sections[name]) if name in sections else NONE
        status, why = DEVIATES, MACHINE if column == "t_avg" else SPREAD
        if column == "utility" and name in sections:
            status, why = judge(False, SPREAD, runs=_runs(sections[name]), wanted=WANTED)
        yield Comparison(f"Table {number}: {SHOWN[column]}", Fact(value, f"Table {number}"), ours, status, why)


def _figures(sections: Sections) -> Iterator[Comparison]:
    for number in range(1, 6):
        runs = sum(int(cell) for row in sections[f"figure{number}"].sheet.rows for cell in row[3:]) // 2
        fact = Fact("histograms of utility and time", f"appendix, Figure {number}")
        yield Comparison(f"Figure {number}", fact, f"the same, of {runs} runs here", WORKS)


def _head(row: Mapping[str, str]) -> str:
    return next(iter(row.values()))


def _cell(section: Section, head: str, column: str) -> str | float:
    return next(row[section.sheet.heading.index(column)] for row in section.sheet.rows if row[0] == head)


def _column(section: Section, column: str) -> str:
    """A column as people read it; what is repeated is said once."""
    return ", ".join(dict.fromkeys(short(row[section.sheet.heading.index(column)]) for row in section.sheet.rows))


def _ours(section: Section) -> tuple[list[tuple[str | float, ...]], int]:
    """The rows, one removed where records are, and the place of our figure."""
    heading = section.sheet.heading
    rows = [row for row in section.sheet.rows if "removed" not in heading or row[1] == 1]
    return rows, next(heading.index(each) for each in FIGURES if each in heading)


def _series(section: Section) -> str:
    rows, place = _ours(section)
    unit = " s" if section.sheet.heading[place].endswith("_s") else ""
    return "; ".join(f"{row[0]} {short(row[place])}{unit}" for row in rows)


def _numbers(section: Section) -> list[float]:
    rows, place = _ours(section)
    return [float(row[place]) for row in rows]


def _cells(section: Section, column: str) -> list[float]:
    return [float(row[section.sheet.heading.index(column)]) for row in section.sheet.rows]


def _direct(sections: Sections) -> str:
    return "; ".join(f"{row[0]} {short(row[3])} s" for row in sections["direct"].sheet.rows)


def _register(sections: Sections, name: str) -> str:
    """Which register a section is about, as its caption opens."""
    return sections[name].caption.partition("values")[0].strip() + " values" if name in sections else NONE


def _or_quick(sections: Sections, name: str, why: str) -> str:
    """Why a register deviates, or that it is not the full one."""
    return "a quick page takes the reduced register" if _register(sections, name).startswith("reduced") else why
