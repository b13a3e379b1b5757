"""The tables of contexts: laws against enumeration, neighbours against brute force, and what a reproduction leaves."""

from __future__ import annotations

import csv
import math
from collections import Counter
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
from wallflower.papers import PAPERS, pcor2021
from wallflower.papers.data import registers
from wallflower.papers.data.registers import Register
from wallflower.papers.pcor2021 import margins
from wallflower.papers.pcor2021.exact import DETECTORS, DOUBT, Margins, Outlier, outliers
from wallflower.papers.pcor2021.margins import with_margin
from wallflower.papers.pcor2021.neighbours import Match, impossible, matches, without
from wallflower.papers.pcor2021.searches import BFS, GUIDED, LAZY, NOT_DP, OURS, PRINTED, TIGHT, Ground, Run, Runs, runs
from wallflower.papers.pcor2021.tables import PAPER, UNKNOWN, beside
from wallflower.queries.explain import modes
from wallflower.queries.explain.detectors import Detector, Distance, Grubbs, Histogram, Lof
from wallflower.queries.explain.draws.utilities import Overlap
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


def test_an_overlap_is_scored_by_the_records_shared(tiny: Register) -> None:
    outlier = an_outlier(tiny, Distance(3, 9000.0))
    bits = beside(outlier)
    assert bits == "111" + "".join("01"[value == outlier.table.space.own[1]] for value in range(2))
    scored = outlier.by(Overlap(bits))
    most = sum(tiny.codes[:, 1] == tiny.codes[outlier.row, 1])
    assert 0 < scored.highest <= most
    assert scored.counts.sum() == outlier.counts.sum()


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
    none, released = seen.pop(None, 0), list(seen.elements())
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
    assert set(np.flatnonzero(found).tolist()) == set(brute(tiny, row, detector, set(gone)))


def test_a_match_is_equality_and_never_looks_at_the_record_itself(tiny: Register) -> None:
    asked = outliers(tiny, Histogram(0.05), 3, seed=0)
    found = matches(asked, 3, 20)
    assert len(found) == 60
    assert 0 < np.mean([one.equal for one in found]) < 1
    assert all(one.shared < 1 for one in found if not one.equal)
    assert Match.of(np.zeros(3, bool), np.zeros(3, bool)) == Match(True, 1.0)


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
    assert impossible(outlier, (5e4, 4e5), 0.2) == pytest.approx(most)


def lost(one: dict[int, int], other: dict[int, int]) -> float:
    weights = {index: math.exp(0.2 * population) for index, population in one.items()}
    return sum(weight for index, weight in weights.items() if index not in other) / (sum(weights.values()) or 1)


def test_one_record_can_undo_a_test_of_distance(tiny: Register) -> None:
    assert impossible(an_outlier(tiny, Grubbs()), (4e7,), 0.2) == 1.0


# Searches


@pytest.fixture(scope="module")
def grounds() -> list[Ground]:
    return [Ground(outlier) for outlier in outliers(made(), Histogram(), 3, seed=1)]


def test_a_direct_draw_is_at_least_as_useful_as_any_search(grounds: list[Ground]) -> None:
    best = np.mean([ground.outlier.drawn(0.2) for ground in grounds])
    for search in (*PRINTED, *OURS):
        found = runs(search, grounds, epsilon="0.2", samples=20, repetitions=3)
        assert 0 <= found.utility <= best + 0.01
        assert 0 < found.seconds[0] <= found.seconds[1] <= found.seconds[3]
        assert (search.guarantee, bool(search.why)) == (NOT_DP, True)


def test_best_first_draws_by_the_law_of_direct(grounds: list[Ground]) -> None:
    for ground in grounds:
        found = [run.utility for run in runs(LAZY, [ground], epsilon="0.002", samples=1, repetitions=150).each[0]]
        error = FAR * float(np.std(found)) / math.sqrt(len(found))
        assert abs(np.mean(found) - ground.outlier.drawn(0.002)) < error + 1e-9


def test_a_start_is_valid_however_few_are(grounds: list[Ground]) -> None:
    for ground in grounds:
        starts = {ground.even_start() for _ in range(200)}
        assert all(start is not None and ground.examine(start)[0] for start in starts)
        assert len(starts) > 1 or ground.outlier.counts.sum() == 1
        first = ground.public_start()
        assert first is not None
        assert ground.examine(first)[0]


def test_more_loss_finds_more(grounds: list[Ground]) -> None:
    low, high = (runs(TIGHT, grounds, epsilon=loss, samples=20, repetitions=10).utility for loss in ("0.001", "5"))
    assert low < high
    assert runs(GUIDED, grounds, epsilon="5", samples=512, repetitions=3).utility > 0.9


def test_an_interval_is_over_records() -> None:
    found = Runs(((Run(0.2, 1.0), Run(0.4, 3.0)), (Run(0.5, 2.0), Run(0.7, 2.0))))
    assert found.utility == pytest.approx(0.45)
    assert found.interval == pytest.approx((0.45 - 1.96 * 0.15, 0.45 + 1.96 * 0.15))
    assert found.seconds == (1.0, 2.0, 2.0, 3.0)
    assert all(map(math.isnan, Runs(((Run(0.2, 1.0),),)).interval))


def test_slow_detectors_are_asked_one_by_one() -> None:
    register = made(n=1500, sizes=(7, 7, 7))
    ground = Ground(an_outlier(register, Lof()))
    assert ground.outlier.is_slow
    start = ground.even_start()
    assert start is not None
    assert ground.examine(start)[0]
    assert runs(BFS, [ground], epsilon="0.2", samples=10, repetitions=2).utility > 0


# Registers


@pytest.fixture
def borrowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of the right shape, filled with made-up records, some of them of no interest."""
    folder = tmp_path / "data"
    names = [*registers.SALARIES, "Salary Paid"]
    rows = [[*values, 1e5 + at] for at, values in enumerate(product(*registers.SALARIES.values()))]
    write(folder / "ontario_salary/ontario_salary_1996_2013.parquet", names, [*rows, ["Dean", *rows[0][1:]]])
    names = [*registers.HOMICIDES, "vic_age", "year"]
    rows = [[*values, at % 90, 1990] for at, values in enumerate(product(*registers.HOMICIDES.values()))]
    other = [[*rows[0][:3], registers.UNKNOWN, 1990], [*rows[0][:3], 50, 2018]]
    write(folder / "homicide/map_homicide_10states_1976_2018.parquet", names, rows + other)
    monkeypatch.setenv("WALLFLOWER_DATA", str(folder))
    return folder


def write(path: Path, names: list[str], rows: list[list[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(dict(zip(names, zip(*rows, strict=True), strict=True))), path)


def test_registers_are_read_as_they_are_stored(borrowed: Path) -> None:
    paid, killed = registers.ontario(), registers.homicides()
    assert (paid.n, paid.sizes, killed.n, killed.sizes) == (576, (9, 8, 8), 144, (4, 6, 6))
    assert (paid.codes[0].tolist(), paid.codes[-1].tolist()) == ([0, 0, 0], [8, 7, 7])
    assert killed.metric.max() == 89


def test_the_real_registers_are_those_described_when_at_hand() -> None:
    try:
        paid, killed = registers.ontario(), registers.homicides()
    except SourceError as reason:
        pytest.skip(str(reason))
    assert (paid.n, killed.n) == (48_364, 34_862)
    assert all(register.n <= register.most for register in (paid, killed))
    assert paid.metric.min() >= paid.low


# The reproduction


def reproduced(
    folder: Path, monkeypatch: pytest.MonkeyPatch | None = None
) -> tuple[dict[str, list[dict[str, str]]], str]:
    said: list[str] = []
    folder.mkdir()
    paths = list(PAPERS["pcor2021"](folder, True, said.append))
    assert {path.name for path in paths} == {path.name for path in folder.iterdir()}
    page = (folder / "pcor2021.html").read_text(encoding="utf-8")
    for word in (NOT_DP, UNKNOWN, PAPER["seconds"], PAPER["direct"], "by chance", "output-constrained"):
        assert word in page
    assert "<script" not in page
    tables = {}
    for path in folder.glob("*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            tables[path.stem] = list(csv.DictReader(file))
    return tables, "\n".join(said)


def check(tables: dict[str, list[dict[str, str]]]) -> None:
    for row in (*tables["detectors"], *tables.get("homicides", [])):
        assert float(row["direct_NOT_DP"]) >= 0.99
        assert float(row["by_chance"]) <= float(row["direct_NOT_DP"]) + 1e-9
        assert float(row["bfs_NOT_DP"]) <= float(row["direct_NOT_DP"]) + 0.01
    for row in tables["coe-match"]:
        assert 0 <= float(row["equal"]) <= float(row["shared"]) + 1e-9 <= 1 + 1e-8
    for row in tables["private"]:
        assert 0 <= float(row["utility"]) <= float(row["valid"]) <= 1 + 1e-9
        assert math.isnan(float(row["valid_then"])) or float(row["valid_then"]) >= 0.99
    assert [row["search"] for row in tables["searches"]][:4] == [search.label for search in PRINTED]


TABLES = {"searches", "detectors", "epsilons", "samples", "overlap", "direct", "coe-match", "chosen", "private"}


def test_without_data_the_tables_are_of_made_up_salaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WALLFLOWER_DATA", str(tmp_path / "nowhere"))
    for module in (pcor2021, margins):
        monkeypatch.setattr(module, "synthetic_salaries", made)
    monkeypatch.setattr(margins, "salaries", partial(salaries, n=2000, sizes=(4, 4, 4)))
    tables, said = reproduced(tmp_path / "out")
    check(tables)
    assert tables.keys() == TABLES
    assert said.count("Set WALLFLOWER_DATA") == 2
    assert {row["data"] for row in tables["coe-match"]} == {"made-up"}
    assert {row["detector"] for row in tables["coe-match"]} == set(DETECTORS)
    pictures = {path.name for path in (tmp_path / "out").glob("*.png")}
    assert pictures == {"epsilons.png", "coe-match.png", "private.png"}


@pytest.mark.heavy
def test_the_registers_are_reproduced_when_at_hand(tmp_path: Path) -> None:
    try:
        registers.ontario(), registers.homicides()
    except SourceError as reason:
        pytest.skip(str(reason))
    tables, said = reproduced(tmp_path / "out")
    check(tables)
    assert tables.keys() == TABLES | {"homicides"}
    assert "skipped" not in said
    tukey = [row for row in tables["private"] if row["detector"] == "Tukey" and row["epsilon"] == "0.2"]
    assert all(float(row["valid_then"]) >= 0.99 for row in tukey if int(row["stand_out"]))
