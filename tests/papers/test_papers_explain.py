"""The tables of contexts: laws against enumeration, neighbours against brute force, searches against their law."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from wallflower.noise import system_noise
from wallflower.papers.data.registers import Register
from wallflower.papers.pcor2021 import margins
from wallflower.papers.pcor2021.exact import DOUBT, Margins, Outlier, outliers
from wallflower.papers.pcor2021.margins import with_margin
from wallflower.papers.pcor2021.neighbours import Match, match_chosen_records, matches, without
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
from wallflower.queries.explain.detectors import Detector, Distance, Grubbs, Histogram, Lof
from wallflower.queries.explain.draws.dp import draw_contexts
from wallflower.queries.explain.draws.ocdp import ContextScores
from wallflower.queries.explain.exact import Evaluation
from wallflower.queries.explain.space.contexts import Space
from wallflower.queries.explain.space.tables import rank_table
from wallflower.synthetic import salaries

ALARM = 1e-8
FAR = 6.5  # standard errors: less than once in 10^9 runs by chance


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
    assert outlier.expected_utility(0.3) == pytest.approx(
        (weights * populations).sum() / weights.sum() / populations.max()
    )


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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Tukey", "clamped Grubbs", "fixed bins"])
def test_the_private_law_is_that_of_a_release(name: str) -> None:
    register = made(n=2000, sizes=(3, 3))
    detector, row = with_margin(register)[name], int(register.metric.argmax())
    table = rank_table(register.codes, register.sizes, register.metric, row)
    found, loss, draws = Margins(table, detector, register.most), "0.5", 250
    law, noise = found.law(loss), system_noise()
    whole = Fraction(loss)
    settings = {"size": register.most, "deciding": whole * DOUBT, "each": whole * (1 - DOUBT), "top": 1, "noise": noise}
    seen = Counter(
        drawn[0] if drawn else None for drawn in (draw_contexts(table, detector, **settings) for _ in range(draws))
    )
    none, released = seen.pop(None, 0), [each for each in seen.elements() if each is not None]
    assert is_likely(none, draws, law.none, off=0.01)  # whole-number noise
    if not released:  # then the law says none nearly always, as was just compared
        return
    assert is_likely(int(found.valid[released].sum()), len(released), law.valid, off=1e-6)
    got = found.populations[released] * found.valid[released] / found.populations[found.valid].max()
    assert abs(float(got.mean()) - law.utility) < farthest(law.utility, len(released))


def is_likely(count: int, draws: int, share: float, *, off: float) -> bool:
    """Whether so many of all draws could be of a share that is off by no more than this, exactly."""
    least, most = max(0.0, share - off), min(1.0, share + off)
    return bool(min(binom.sf(count - 1, draws, most), binom.cdf(count, draws, least)) > ALARM)


def farthest(mean: float, draws: int) -> float:
    """How far the mean of so many draws between 0 and 1 may be from its own, by Bernstein's inequality: however few
    they are, and however rarely one is far off."""
    rare = math.log(2 / ALARM)
    return math.sqrt(2 * mean * (1 - mean) * rare / draws) + 2 * rare / (3 * draws)


@pytest.mark.slow
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
    assert max(one.lost for one in match_chosen_records(outlier, (5e4, 4e5), 0.2)) == pytest.approx(most)


def lost(one: dict[int, int], other: dict[int, int]) -> float:
    weights = {index: math.exp(0.2 * population) for index, population in one.items()}
    return sum(weight for index, weight in weights.items() if index not in other) / (sum(weights.values()) or 1)


def test_one_record_can_undo_a_test_of_distance(tiny: Register) -> None:
    assert [one.lost for one in match_chosen_records(an_outlier(tiny, Grubbs()), (4e7,), 0.2)] == [pytest.approx(1.0)]


# Searches


@pytest.fixture(scope="module")
def grounds() -> list[Ground]:
    return [Ground(outlier) for outlier in outliers(made(), Histogram(), 3, seed=1)]


@pytest.mark.slow
def test_a_direct_draw_is_at_least_as_useful_as_any_search(grounds: list[Ground]) -> None:
    best = np.mean([ground.outlier.expected_utility(0.2) for ground in grounds])
    for search in (*PRINTED, *OURS):
        found = runs(search, grounds, epsilon="0.2", samples=20, repetitions=3)
        assert 0 <= found.utility <= best + 0.01
        assert 0 < found.seconds[0] <= found.seconds[2] <= found.seconds[1]
        assert (search.guarantee, bool(search.why)) == (NOT_DP, True)


def test_best_first_draws_by_the_law_of_direct(grounds: list[Ground]) -> None:
    for ground in grounds:
        found = [run.utility for run in runs(LAZY, [ground], epsilon="0.002", samples=1, repetitions=320).each[0]]
        error = FAR * float(np.std(found)) / math.sqrt(len(found))
        assert abs(np.mean(found) - ground.outlier.expected_utility(0.002)) < error + 1e-9


def test_a_start_is_valid_however_few_are(grounds: list[Ground], monkeypatch: pytest.MonkeyPatch) -> None:
    for ground in grounds:
        starts = {ground.even_start() for _ in range(200)}
        assert all(ground.examine(start)[0] for start in starts)
        assert len(starts) > 1 or ground.outlier.counts.sum() == 1
        assert ground.examine(ground.public_start())[0]
    monkeypatch.setattr("wallflower.queries.explain.draws.ocdp.first_valid", lambda ask: None)
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
    low, high = (runs(TIGHT, grounds, epsilon=loss, samples=20, repetitions=400).utility for loss in ("0.001", "5"))
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
