"""The tables of contexts: laws against enumeration, neighbours against brute force, and what a reproduction leaves."""

from __future__ import annotations

import csv
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wallflower.errors import SourceError
from wallflower.noise import system_noise
from wallflower.papers import PAPERS, page, pcor2021
from wallflower.papers.data import registers
from wallflower.papers.data.registers import Register
from wallflower.papers.facts import printed_facts, printed_table
from wallflower.papers.pcor2021 import margins
from wallflower.papers.pcor2021.exact import DOUBT, Margins, Outlier, outliers
from wallflower.papers.pcor2021.margins import with_margin
from wallflower.papers.pcor2021.neighbours import Match, matches, with_chosen, without
from wallflower.papers.pcor2021.reference import find_outliers, has_file
from wallflower.papers.pcor2021.searches import (
    BFS,
    DFS,
    GUIDED,
    HALF,
    LARGEST,
    LAZY,
    NOT_DP,
    OURS,
    PRINTED,
    TIGHT,
    Ground,
    Run,
    Runs,
    bit_weights,
    draw_distinct,
    overlap_runs,
    runs,
    walk_as_printed,
)
from wallflower.queries.explain import modes
from wallflower.queries.explain.detectors import Detector, Distance, Grubbs, Histogram, Lof
from wallflower.queries.explain.draws.walks import ContextScores
from wallflower.queries.explain.exact import Evaluation
from wallflower.queries.explain.space.contexts import Space
from wallflower.queries.explain.space.ranked_table import rank_table
from wallflower.synthetic import salaries

FAR = 4.5  # standard errors: once in more than 100,000 runs by chance


def made(n: int = 2000, sizes: tuple[int, ...] = (4, 4, 4), seed: int = 1) -> Register:
    codes, metric, _ = salaries(n=n, sizes=sizes, seed=seed)
    return Register(name="made-up", codes=codes, sizes=sizes, metric=metric, low=5e4, high=4e5, most=n)


@pytest.fixture(scope="module")
def tiny() -> Register:
    return made(n=60, sizes=(3, 2))


def brute(register: Register, row: int, detector: Detector, removed: set[int] = frozenset()) -> dict[int, int]:  # type: ignore[assignment]
    """Valid contexts and their populations, by the definition: every choice of values, every record looked at."""
    table = rank_table(register.codes, register.sizes, register.metric, row)
    kept = [at for at in range(register.n) if at not in removed]
    found = {}
    for chosen in product(*(subsets(size) for size in register.sizes)):
        if not all(code in here for code, here in zip(register.codes[row], chosen, strict=True)):
            continue
        inside = [at for at in kept if all(c in here for c, here in zip(register.codes[at], chosen, strict=True))]
        if detector.outlier(register.metric[inside], inside.index(row)):
            bits = "".join(
                "01"[v in here] for size, here in zip(register.sizes, chosen, strict=True) for v in range(size)
            )
            found[table.space.index(bits)] = len(inside)
    return found


def subsets(size: int) -> list[set[int]]:
    return [{value for value in range(size) if chosen >> value & 1} for chosen in range(1, 1 << size)]


def an_outlier(register: Register, detector: Detector, seed: int = 0) -> Outlier:
    (found,) = outliers(register, detector, 1, seed=seed)
    return found


# Exact laws


@pytest.mark.parametrize("detector", [Grubbs(), Histogram(0.05), Lof(k=4, threshold=1.2), Distance(3, 9000.0)])
def test_a_direct_draw_has_the_utility_that_enumeration_gives(tiny: Register, detector: Detector) -> None:
    outlier = an_outlier(tiny, detector)
    populations = np.array(list(brute(tiny, outlier.row, detector).values()))
    weights = np.exp(0.3 * (populations - populations.max()))
    assert outlier.highest == populations.max()
    assert outlier.chance == pytest.approx(populations.mean() / populations.max())
    assert outlier.drawn(0.3) == pytest.approx((weights * populations).sum() / weights.sum() / populations.max())


@pytest.mark.parametrize("detector", [Distance(3, 9000.0), Lof(k=4, threshold=1.2)])
def test_an_overlap_is_with_the_start_which_has_the_highest_score(tiny: Register, detector: Detector) -> None:
    outlier = an_outlier(tiny, detector)
    own, space = Ground(outlier), outlier.table.space
    for start in outlier.valid[:5].tolist():
        ground = Ground(outlier, start)
        assert ground.highest == own.examine(start)[1]
        assert ground.even_start() == start
        for index in outlier.valid.tolist():
            both = space.members(tiny.codes, index) & space.members(tiny.codes, start)
            assert ground.examine(index) == (True, both.sum())
    found = overlap_runs(DFS, [outlier], epsilon="0.2", samples=4, repetitions=9)
    assert all(0 < run.utility <= 1 for run in found.all)


def test_locality_is_counted_over_pairs_that_differ_in_one_value(tiny: Register) -> None:
    outlier = an_outlier(tiny, Distance(3, 9000.0))
    valid, bits = set(outlier.valid.tolist()), range(outlier.table.space.length)
    beside = [index ^ (1 << bit) in valid for index in valid for bit in bits]
    assert outlier.locality == pytest.approx((np.mean(beside), len(valid) / outlier.table.space.count))


@pytest.mark.parametrize("detector", [Grubbs(), Histogram(0.05)])
def test_the_reference_file_holds_the_outliers_of_all_contexts(tiny: Register, detector: Detector) -> None:
    assert has_file(tiny, detector)
    found = find_outliers(tiny, detector)
    assert found.tolist() == [bool(brute(tiny, row, detector)) for row in range(tiny.n)]
    assert 0 < found.sum() < tiny.n
    assert not has_file(made(sizes=(9, 8, 8)), detector)
    assert not has_file(tiny, Lof())


@pytest.mark.parametrize("name", ["Tukey", "clamped Grubbs", "fixed bins"])
def test_the_private_law_is_that_of_a_release(name: str) -> None:
    register = made(n=2000, sizes=(3, 3))
    detector, row = with_margin(register)[name], int(register.metric.argmax())
    table = rank_table(register.codes, register.sizes, register.metric, row)
    found, loss, draws = Margins(table, detector, register.most), "0.5", 250
    law, noise = found.law(loss), system_noise()
    whole = Fraction(loss)
    query = SimpleNamespace(mode="dp", top=1, parts=lambda: (whole * DOUBT, whole * (1 - DOUBT)))
    seen = Counter(
        drawn[0] if drawn else None
        for drawn in (modes.draw_contexts(query, table, register.most, detector, noise) for _ in range(draws))
    )
    none, released = seen.pop(None, 0), [each for each in seen.elements() if each is not None]
    assert abs(none / draws - law.none) < FAR * spread(law.none, draws) + 0.01  # whole-number noise
    if not released:  # then the law says none nearly always, as was just compared
        return
    assert abs(float(found.valid[released].mean()) - law.valid) < FAR * spread(law.valid, len(released))
    got = found.populations[released] * found.valid[released] / found.populations[found.valid].max()
    assert abs(float(got.mean()) - law.utility) < FAR * spread(law.utility, len(released))


def spread(share: float, draws: int) -> float:
    """The most that the mean of so many draws between 0 and 1 deviates, if it is `share` on average."""
    return math.sqrt(max(share * (1 - share), 1e-4) / max(draws, 1))


def test_the_bundled_record_is_explained_privately() -> None:
    laws = {name: found.law("0.2") for name, found in margins.bundled_margins() if name == "Tukey"}
    assert laws["Tukey"].is_clear
    assert laws["Tukey"].valid >= 0.99
    assert laws["Tukey"].utility >= 0.9


# Neighbours


@pytest.mark.parametrize("detector", [Grubbs(), Histogram(0.05), Lof(k=4, threshold=1.2)])
@pytest.mark.parametrize("removed", [1, 7])
def test_valid_contexts_of_a_neighbour_are_those_of_brute_force(
    tiny: Register, detector: Detector, removed: int
) -> None:
    row = an_outlier(tiny, detector).row
    gone = [at for at in range(tiny.n) if at != row][5 : 5 + removed]
    found = without(tiny, row, detector, np.array(gone))
    assert set(np.flatnonzero(found.valid).tolist()) == set(brute(tiny, row, detector, set(gone)))


def test_a_match_is_equality_and_never_looks_at_the_record_itself(tiny: Register) -> None:
    asked = outliers(tiny, Histogram(0.05), 3, seed=0)
    found = matches(asked, 3, 20, 0.1)
    assert len(found) == 60
    assert 0 < np.mean([one.equal for one in found]) < 1
    assert all((one.shared < 1, one.lost > 0) == (not one.equal, not one.equal) for one in found)


def test_ratios_and_what_is_impossible_are_those_of_the_law() -> None:
    space, populations = Space((2, 2), (0, 0)), np.array([5, 7, 9, 9], np.int32)
    one = Evaluation(space, np.array([True, True, True, False]), populations)
    other = Evaluation(space, np.array([True, True, False, True]), populations - 1)
    law = np.exp(0.1 * populations[:3]) / np.exp(0.1 * populations[:3]).sum()
    found = Match.of(one, other, 0.1)
    assert (found.equal, found.shared) == (False, 0.5)
    assert (found.above, found.below) == pytest.approx(
        (0, 0)
    )  # all populations moved alike: the laws agree where both are valid
    assert found.lost == pytest.approx(law[2])
    third = Evaluation(space, np.array([True, True, False, False]), populations)
    assert (Match.of(third, one, 0.1).above, Match.of(one, third, 0.1).below) == pytest.approx(
        2 * (-math.log(law[:2].sum()),)
    )
    assert Match.of(one, third, 0.1).above < 0 < Match.of(one, third, 0.1).excess
    nothing = Evaluation(space, np.zeros(4, bool), populations)
    assert Match.of(nothing, nothing, 0.1) == Match(True, 1.0, 0.0, 0.0, 0.0)
    assert Match.of(one, nothing, 0.1).lost == pytest.approx(1.0)


@pytest.mark.parametrize("detector", [Grubbs(), Histogram(0.05)])
def test_what_an_added_record_makes_impossible_is_what_brute_force_finds(tiny: Register, detector: Detector) -> None:
    outlier = an_outlier(tiny, detector)
    before, most = brute(tiny, outlier.row, detector), 0.0
    for metric in (5e4, 4e5):
        longer = Register(
            name="longer",
            codes=np.vstack([tiny.codes, tiny.codes[outlier.row]]),
            sizes=tiny.sizes,
            metric=np.append(tiny.metric, metric),
            low=tiny.low,
            high=tiny.high,
            most=tiny.most,
        )
        after = brute(longer, outlier.row, detector)
        most = max(most, lost(before, after), lost(after, before))
    assert max(one.lost for one in with_chosen(outlier, (5e4, 4e5), 0.2)) == pytest.approx(most)


def lost(one: dict[int, int], other: dict[int, int]) -> float:
    weights = {index: math.exp(0.2 * population) for index, population in one.items()}
    return sum(weight for index, weight in weights.items() if index not in other) / (sum(weights.values()) or 1)


def test_one_record_can_undo_a_test_of_distance(tiny: Register) -> None:
    assert [one.lost for one in with_chosen(an_outlier(tiny, Grubbs()), (4e7,), 0.2)] == [pytest.approx(1.0)]


# Searches


@pytest.fixture(scope="module")
def grounds() -> list[Ground]:
    return [Ground(outlier) for outlier in outliers(made(), Histogram(), 3, seed=1)]


def test_a_direct_draw_is_at_least_as_useful_as_any_search(grounds: list[Ground]) -> None:
    best = np.mean([ground.outlier.drawn(0.2) for ground in grounds])
    for search in (*PRINTED, *OURS):
        found = runs(search, grounds, epsilon="0.2", samples=20, repetitions=3)
        assert 0 <= found.utility <= best + 0.01
        assert 0 < found.seconds[0] <= found.seconds[2] <= found.seconds[1]
        assert (search.guarantee, bool(search.why)) == (NOT_DP, True)


def test_best_first_draws_by_the_law_of_direct(grounds: list[Ground]) -> None:
    for ground in grounds:
        found = [run.utility for run in runs(LAZY, [ground], epsilon="0.002", samples=1, repetitions=150).each[0]]
        error = FAR * float(np.std(found)) / math.sqrt(len(found))
        assert abs(np.mean(found) - ground.outlier.drawn(0.002)) < error + 1e-9


def test_a_start_is_valid_however_few_are(grounds: list[Ground], monkeypatch: pytest.MonkeyPatch) -> None:
    for ground in grounds:
        starts = {ground.even_start() for _ in range(200)}
        assert all(ground.examine(start)[0] for start in starts)
        assert len(starts) > 1 or ground.outlier.counts.sum() == 1
        assert ground.examine(ground.public_start())[0]
    monkeypatch.setattr("wallflower.queries.explain.draws.walks.first_valid", lambda ask: None)
    assert all(ground.examine(ground.public_start())[0] for ground in grounds)
    assert runs(LARGEST, grounds, epsilon="0.2", samples=20, repetitions=2).utility > 0


def test_uniform_sampling_draws_by_the_bits_that_are_set() -> None:
    indices, draws = np.array([0b00, 0b01, 0b11]), 4000
    weights = bit_weights(indices, 2, Fraction(3, 4))
    first = Counter(draw_distinct(weights, 1, system_noise())[0] for _ in range(draws))
    for place, weight in enumerate(weights / weights.sum()):
        assert abs(first[place] / draws - weight) < 6 * math.sqrt(weight * (1 - weight) / draws)
    assert set(bit_weights(indices, 2, HALF).tolist()) == {0.25}
    assert sorted(draw_distinct(weights, 5, system_noise())) == [0, 1, 2]
    assert len(set(draw_distinct(weights, 2, system_noise()))) == 2


def test_the_printed_walk_counts_a_context_as_often_as_it_is_met() -> None:
    """Only two contexts are valid, so a walk of three meets the start twice and ends there two times of three."""
    ask, draws = ContextScores(Space((3, 1), (0, 0)), lambda index: (index < 2, 1)), 1000
    given = {"start": 0, "samples": 3, "rate": Fraction(1, 10**9), "top": 1, "noise": system_noise()}
    won = sum(walk_as_printed(ask, **given) == [0] for _ in range(draws))  # type: ignore[arg-type]
    assert abs(won / draws - 2 / 3) < 6 * math.sqrt(2 / 9 / draws)
    lonely = ContextScores(Space((3, 1), (0, 0)), lambda index: (index == 2, 1))
    assert walk_as_printed(lonely, **given | {"start": 2}) == [2]  # type: ignore[arg-type]


def test_more_loss_finds_more(grounds: list[Ground]) -> None:
    low, high = (runs(TIGHT, grounds, epsilon=loss, samples=20, repetitions=10).utility for loss in ("0.001", "5"))
    assert low < high
    assert runs(GUIDED, grounds, epsilon="5", samples=512, repetitions=3).utility > 0.9


def test_an_interval_is_over_records() -> None:
    found = Runs(((Run(0.5, 1.0), Run(0.7, 3.0)), (Run(0.5, 2.0), Run(0.5, 2.0)), (Run(0.55, 2.0),)))
    assert found.utility == pytest.approx(0.55)
    off = 2.919986 * 0.05 / math.sqrt(3)  # the point of Student's law with two degrees that 1 in 20 exceeds
    assert found.interval == pytest.approx((0.55 - off, 0.55 + off))
    assert found.seconds == (1.0, 3.0, 2.0)
    assert Runs(((Run(0.1, 1.0),), (Run(0.9, 1.0),))).interval == (0.0, 1.0)
    assert all(map(math.isnan, Runs(((Run(0.2, 1.0),),)).interval))


def test_slow_detectors_are_asked_one_by_one() -> None:
    register = made(n=1500, sizes=(7, 7, 7))
    ground = Ground(an_outlier(register, Lof()))
    assert ground.outlier.is_slow
    assert ground.examine(ground.even_start())[0]
    assert runs(BFS, [ground], epsilon="0.2", samples=10, repetitions=2).utility > 0


# Registers


@pytest.fixture
def borrowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of the right shape, filled with made-up records, some of them of no interest."""
    folder = tmp_path / "data"
    names = [*registers.SALARIES, "Salary Paid"]
    rows = [[*values, 100_000.5 + at] for at, values in enumerate(product(*registers.SALARIES.values()))]
    bilingual = ["Counsel / Avocat", "Attorney General / Procureur général", 2010, 5e5]
    other = [["Dean", *rows[0][1:]], [*rows[0][:3], 100_000.0], [*rows[0][:2], 1999, 2e5]]
    write(folder / "ontario_salary/ontario_salary_1996_2013.parquet", names, [*rows, bilingual, *other])
    names = [*registers.HOMICIDES, "vic_age", "year"]
    rows = [[*values, at % 90, 1990] for at, values in enumerate(product(*registers.HOMICIDES.values()))]
    write(folder / "homicide/map_homicide_10states_1976_2018.parquet", names, [*rows, [*rows[0][:3], 999, 1990]])
    monkeypatch.setenv("WALLFLOWER_DATA", str(folder))
    return folder


def write(path: Path, names: list[str], rows: list[list[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(dict(zip(names, zip(*rows, strict=True), strict=True))), path)


def test_registers_are_read_as_they_are_stored(borrowed: Path) -> None:
    paid, killed = registers.ontario(), registers.homicides()
    assert (paid.n, paid.sizes, killed.n, killed.sizes) == (577, (9, 8, 8), 144, (4, 6, 6))
    assert (paid.codes[0].tolist(), paid.codes[-2].tolist()) == ([0, 0, 0], [8, 7, 7])
    assert paid.codes[-1].tolist() == [3, 0, 4]
    assert killed.metric.max() == 89
    few, fewer = registers.fewer_salaries(), registers.fewer_homicides()
    assert (few.n, few.sizes, fewer.n, fewer.sizes) == (72, (8, 3, 3), 54, (3, 3, 6))


def test_the_values_are_as_many_as_the_paper_prints() -> None:
    facts = printed_facts("pcor2021")
    for values, item in ((registers.SALARIES, "salary attributes"), (registers.HOMICIDES, "homicide attributes")):
        assert [int(word.split()[-1]) for word in facts[item].value.split(";")[0].split(",")] == [
            *map(len, values.values())
        ]
    for values, whole, item in (
        (registers.FEWER_SALARIES, registers.SALARIES, "salary reduced"),
        (registers.FEWER_HOMICIDES, registers.HOMICIDES, "homicide reduced"),
    ):
        assert f"{sum(map(len, values.values()))} values in total" in facts[item].value
        assert all(set(values[name]) <= set(whole[name]) for name in whole)


def test_the_real_registers_are_those_described_when_at_hand() -> None:
    try:
        full, reduced = (
            (registers.ontario(), registers.homicides()),
            (registers.fewer_salaries(), registers.fewer_homicides()),
        )
    except SourceError as reason:
        pytest.skip(str(reason))
    assert [register.n for register in (*full, *reduced)] == [51_393, 42_532, 11_320, 27_973]
    for register in (*full, *reduced):
        assert register.n <= register.most
        assert all(len(np.unique(codes)) == size for codes, size in zip(register.codes.T, register.sizes, strict=True))
    assert full[0].metric.min() > full[0].low


# The reproduction

Tables = dict[str, list[dict[str, str]]]
OTHERS = {
    "compared",
    "ratios",
    "chosen",
    "inconsistencies",
    "full-match",
    "searches",
    "detectors",
    "direct",
    "locality",
}
NAMES = OTHERS | {f"table{n}" for n in range(1, 13)} | {f"figure{n}" for n in range(1, 6)} | {"private"}


def reproduced(folder: Path) -> tuple[Tables, str]:
    said: list[str] = []
    folder.mkdir()
    paths = list(PAPERS["pcor2021"](folder, True, said.append))
    assert {path.name for path in paths} == {path.name for path in folder.iterdir()}
    text = (folder / "pcor2021.html").read_text(encoding="utf-8")
    assert text.index("What is printed, and what is here") < text.index("<h2>Table 1:") < text.index("<h2>Table 2:")
    for word in (NOT_DP, "by chance", "output-constrained"):
        assert word in text
    assert "<script" not in text
    tables = {}
    for path in folder.glob("*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            tables[path.stem] = list(csv.DictReader(file))
    return tables, "\n".join(said)


def check(tables: Tables) -> None:
    for row in (*tables["detectors"], *tables.get("homicides", [])):
        assert float(row["direct_NOT_DP"]) >= 0.8
        assert float(row["by_chance"]) <= float(row["direct_NOT_DP"]) + 1e-9
        assert float(row["bfs_NOT_DP"]) <= float(row["direct_NOT_DP"]) + 0.01
    for row in (*tables["table12"], *tables.get("table13", [])):
        assert 0 <= float(row["our_equal"]) <= float(row["our_shared"]) + 1e-9 <= 1 + 1e-8
    for row in tables["private"]:
        assert 0 <= float(row["utility"]) <= float(row["valid"]) + 1e-9 <= 1 + 1e-8
        assert math.isnan(float(row["valid_then"])) or float(row["valid_then"]) >= 0.99
    for number in (3, 5, 7, 9, 11):
        assert all(0 < float(row["our_utility_NOT_DP"]) <= 1 for row in tables[f"table{number}"])
    check_printed(tables)


def check_printed(tables: Tables) -> None:
    """Every row of the files of printed values is on the page, in columns that say so."""
    for item, fact in printed_facts("pcor2021").items():
        assert [(row["printed"], row["where"]) for row in tables["compared"] if row["item"] == item] == [
            (fact.value, fact.where)
        ]
    for name in ("table1", "inconsistencies"):
        known = [*map(dict, printed_table("pcor2021", name))]
        assert [{key: row[key] for key in known[0]} for row in tables[name]] == known
    for number in range(2, 12):
        for row, printed in zip(tables[f"table{number}"], printed_table("pcor2021", f"table{number}"), strict=True):
            assert next(iter(row.values())) == next(iter(printed.values()))
            if "utility" in printed:
                assert row["printed_utility"] == printed["utility"]
                assert row["printed_ci90"] == f"({printed['ci90_low']}, {printed['ci90_high']})"
            else:
                assert [row[f"printed_t_{which}"] for which in ("min", "max", "avg")] == [
                    printed[f"t_{which}"] for which in ("min", "max", "avg")
                ]
    for number in (12, 13):
        rows = [
            (each["algorithm"], removed, each[f"delta_{removed}"])
            for each in printed_table("pcor2021", f"table{number}")
            for removed in ("1", "5", "10", "25")
        ]
        assert f"table{number}" not in tables or rows == [
            (row["algorithm"], row["removed"], row["printed_match"]) for row in tables[f"table{number}"]
        ]


@pytest.fixture
def one_panel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every picture the first panel is drawn: all of them take a minute, and a heavy test draws them."""
    draw = page.draw_panels
    monkeypatch.setattr(page, "draw_panels", lambda panels, across: draw(panels[:1], 1))


@pytest.mark.usefixtures("one_panel")
def test_every_printed_value_stands_beside_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On small made-up registers in the place of the four."""
    for name in ("ontario", "homicides"):
        monkeypatch.setattr(pcor2021, name, partial(named, name, 2000, (4, 4, 4)))
    for name in ("fewer_salaries", "fewer_homicides"):
        monkeypatch.setattr(pcor2021, name, partial(named, name, 900, (3, 3, 3)))
    monkeypatch.setattr(margins, "synthetic_salaries", made)
    monkeypatch.setattr(margins, "salaries", partial(salaries, n=2000, sizes=(4, 4, 4)))
    tables, said = reproduced(tmp_path / "out")
    check(tables)
    assert tables.keys() == NAMES | {"table13", "homicides"}
    assert "skipped" not in said
    pictures = {path.stem for path in (tmp_path / "out").glob("*.png")}
    assert pictures == {"table9", "table11", "table12", "table13", "private"} | {f"figure{n}" for n in range(1, 6)}


def named(name: str, n: int, sizes: tuple[int, ...]) -> Register:
    return replace(made(n, sizes), name=name)


@pytest.mark.usefixtures("one_panel")
def test_without_data_the_tables_are_of_made_up_salaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WALLFLOWER_DATA", str(tmp_path / "nowhere"))
    for module in (pcor2021, margins):
        monkeypatch.setattr(module, "synthetic_salaries", made)
    monkeypatch.setattr(pcor2021, "fewer_synthetic_salaries", partial(made, 900, (3, 3, 3)))
    monkeypatch.setattr(margins, "salaries", partial(salaries, n=2000, sizes=(4, 4, 4)))
    tables, said = reproduced(tmp_path / "out")
    check(tables)
    assert tables.keys() == NAMES
    assert said.count("Set WALLFLOWER_DATA") == 2
    missing = [row["item"] for row in tables["compared"] if row["ours"].startswith("none: the register")]
    assert len(missing) == 4
    assert {row["data"] for row in tables["full-match"]} == {"made-up"}


@pytest.mark.heavy
def test_the_registers_are_reproduced_when_at_hand(tmp_path: Path) -> None:
    try:
        registers.ontario(), registers.homicides()
    except SourceError as reason:
        pytest.skip(str(reason))
    tables, said = reproduced(tmp_path / "out")
    check(tables)
    assert tables.keys() == NAMES | {"table13", "homicides"}
    assert "skipped" not in said
    tukey = [row for row in tables["private"] if row["detector"] == "Tukey" and row["epsilon"] == "0.2"]
    assert all(float(row["valid_then"]) >= 0.99 for row in tukey if int(row["stand_out"]))


COLLECTION = Path(__file__).parents[2].parent / "shared" / "papers" / "printed"


@pytest.mark.skipif(not COLLECTION.exists(), reason="the collection of printed numbers is not at hand")
def test_the_printed_values_are_those_of_the_collection() -> None:
    def collected(name: str) -> list[dict[str, str]]:
        with (COLLECTION / f"pcor_{name}.csv").open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    for name in ("table1_example", *(f"table{number}" for number in range(2, 14))):
        ours = printed_table("pcor2021", name.removesuffix("_example"))
        assert [*map(dict, ours)] == collected(name)
    facts = printed_facts("pcor2021")
    for row in collected("setup"):
        assert (facts[row["item"]].value, facts[row["item"]].where) == (row["value"], row["where"])
    listed = printed_table("pcor2021", "inconsistencies")
    assert all(row in [*map(dict, listed)] for row in collected("inconsistencies"))
