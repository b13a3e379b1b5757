"""The law of the real answer notices, by itself, noise that is a little short and loss that is spent twice.

Draws are compared elsewhere with an account by hand. Here a mutant must be caught by laws alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import wallflower.mechanisms.cube as cube
import wallflower.neighbours.noisy_count as noisy_count
import wallflower.queries.explain.draws.ocdp as ocdp
import wallflower.queries.profile.profile as profile
import wallflower.queries.watch.baseline as baseline
import wallflower.queries.watch.detectors as detectors
import wallflower.queries.watch.detectors.additive as additive
import wallflower.queries.watch.detectors.sparse as sparse_vector
import wallflower.queries.watch.levels as levels
import wallflower.queries.watch.seasons.estimates as estimates
from mutants_of_answers import TENTH, Mutate, entry, level_without_one, put, wrap
from wallflower.audit.answers import Case, LawCheck, audit_law_check
from wallflower.mechanisms import Cube
from wallflower.privacy import Loss
from wallflower.queries import COMPANIONS, QUERIES
from wallflower.queries.explain.audit.accounts import CASES as EXPLAIN_CASES
from wallflower.queries.watch.detectors.sparse import PassTable

SHORT = 1 / TENTH
CASES: dict[tuple[str, str], Case] = {
    (kind.__module__.split(".")[2], case.name): case
    for kind in (*QUERIES, *COMPANIONS)
    if (accounts := kind.accounts()) is not None
    for case in accounts.cases
}


def times(factor: Fraction) -> Any:
    return lambda function, *asked, **more: function(*asked, **more) * factor


def short_calibration(function: Any, *asked: Any, **more: Any) -> Any:
    noise = function(*asked, **more)
    return replace(noise, scale=noise.scale * SHORT)


def threshold_and_flags_at_the_whole_loss(parts: Any, epsilon: Fraction, moves: int) -> tuple[Fraction, Fraction]:
    return parts(epsilon, moves)[0], epsilon


def far_question_at_the_price_of_the_near_one(detector: Any, gaps: Any, noise: Any) -> Any:
    near = 2 * PassTable.of(detector.scale).passes(gaps, sparse_vector.words(noise, len(gaps))).astype(np.int64)
    beyond = gaps + 4 * int(detector.scale)
    far = PassTable.of(detector.scale).passes(beyond, sparse_vector.words(noise, len(gaps)))
    return np.where(far, 1, near)


def whole_loss_every_step(per_step: Any, loss: Loss, steps: int) -> Loss:
    return per_step(loss, 1)


def twice_the_delta(function: Any, epsilon: float, delta: float) -> float:
    return float(function(epsilon, 2 * delta))


def paper_with_the_scales_exchanged(function: Any, noise: Any, law: str, scale: Fraction, size: int) -> Any:
    return function(noise, law, scale / 2, size)


def sum_at_the_whole_loss(query: Any, n: int, dimension: int) -> Any:
    right = NOISES(query, n, dimension)
    return replace(right[0], scale=right[0].scale / 2), right[1]


def squares_without_the_factor_2(query: Any, n: int, dimension: int) -> Any:
    right = NOISES(query, n, dimension)
    return right[0], replace(right[1], scale=right[1].scale / 2)


NOISES = baseline.HistoryLearner._noises


def clipped_sums_move_by_one_end(function: Any, cells: Any, amounts: Any, reach: int, *asked: Any) -> Any:
    is_signed = bool((amounts < 0).any())
    return function(cells, amounts, reach // 2 if is_signed else reach, *asked)


def rate_for_one_context(function: Any, search: str, epsilon: Fraction, **more: Any) -> Any:
    return function(search, epsilon, **more | {"top": 1})


def whole_loss_beside_the_test(loss: Loss, share: Fraction) -> tuple[Loss, Loss]:
    return noisy_count_split(loss, share)[0], loss


noisy_count_split = noisy_count.split_for_test

MUTANTS: dict[str, tuple[str, str, Mutate]] = {
    # watch, level person
    "two flags: coins a tenth short": ("watch", "person, two flags", wrap(sparse_vector, "_scale", times(SHORT))),
    "two flags at the price of one": ("watch", "person, two flags", put(detectors.Sparse, "_moves", 2)),
    "one sign: coins a tenth short": ("watch", "person, one sign", wrap(sparse_vector, "_scale", times(SHORT))),
    "one sign: thresholds beside flags at the whole loss": (
        "watch",
        "person, one sign, both sides",
        wrap(sparse_vector, "_parts", threshold_and_flags_at_the_whole_loss),
    ),
    "adaptive: coins a tenth short": ("watch", "person, adaptive", wrap(sparse_vector, "_scale", times(SHORT))),
    "adaptive: both questions at one scale": (
        "watch",
        "person, adaptive",
        put(detectors.Sparse, "_costs", far_question_at_the_price_of_the_near_one),
    ),
    # watch, Gaussian and as printed
    **{
        f"{mode}: {name}": ("watch", mode, mutate)
        for mode in (
            "person, Gaussian at ρ",
            "window, Gaussian at ρ",
            "person, Gaussian at δ",
            "window, Gaussian at δ",
        )
        for name, mutate in (
            ("a tenth short", wrap(additive, "calibrate", short_calibration)),
            ("every step at the whole loss", wrap(levels, "loss_per_step", whole_loss_every_step)),
        )
    },
    "Gaussian: converted at twice the δ": (
        "watch",
        "person, Gaussian at δ",
        wrap(levels, "zcdp_of_epsilon", twice_the_delta),
    ),
    "paper: a tenth short": (
        "watch",
        "paper",
        wrap(additive, "draws", lambda draw, noise, law, scale, size: draw(noise, law, scale * SHORT, size)),
    ),
    "paper: scales exchanged": ("watch", "paper", wrap(additive, "draws", paper_with_the_scales_exchanged)),
    # baselines
    **{
        f"{mode}: {name}": ("watch", mode, mutate)
        for mode in ("baseline", "baseline around a guess", "baseline, person")
        for name, mutate in (
            ("a tenth short", wrap(baseline, "calibrate", short_calibration)),
            ("sum at the whole loss", put(baseline.HistoryLearner, "_noises", sum_at_the_whole_loss)),
            ("squares without the factor 2", put(baseline.HistoryLearner, "_noises", squares_without_the_factor_2)),
        )
    },
    "season: a tenth short": ("watch", "baseline by season", wrap(estimates, "calibrate", short_calibration)),
    "season: clipped sums move by one end": (
        "watch",
        "baseline by season",
        wrap(estimates.Cells, "sum_up", clipped_sums_move_by_one_end),
    ),
    "season: a width moves by two quarters": ("watch", "baseline by season", put(estimates, "QUARTERS", 2)),
    "season: half of the loss for the rough centre": (
        "watch",
        "event, by a season that is re-estimated",
        entry(estimates.SHARES, "rough", Fraction(1, 2)),
    ),
    # profile
    "cube: a tenth short": (
        "profile",
        "two radii",
        wrap(profile, "calibrate_cube", short_calibration),
    ),
    "cube by outlier mass: a tenth short": (
        "profile",
        "two radii by outlier mass",
        wrap(profile, "calibrate_cube", short_calibration),
    ),
    "cube: a level lacks one geometric number": (
        "profile",
        "two radii by outlier mass",
        put(cube, "_level", level_without_one),
    ),
    "cube: a number evenly within half its level": (
        "profile",
        "two radii by outlier mass",
        put(Cube, "draw", lambda made, noise: half_a_level(made, noise)),
    ),
    # the degree cap by the test
    "test of crowding: the curve at the whole loss": (
        "count",
        "extension, degree cap by the test",
        put(noisy_count, "split_for_test", whole_loss_beside_the_test),
    ),
    "test of crowding: a tenth short": (
        "profile",
        "two radii, degree cap by the test",
        wrap(noisy_count, "calibrate", short_calibration),
    ),
    # searches of explain
    **{
        f"{mode}: {name}": ("explain", mode, mutate)
        for mode in (
            *("ocdp, direct", "ocdp, overlap", "ocdp, uniform", "ocdp, walk", "ocdp, dfs", "ocdp, bfs"),
            *("ocdp, bfs from a start", "ocdp, best-first"),
        )
        for name, mutate in (
            ("a tenth short", wrap(ocdp.Search, "rate", times(TENTH))),
            ("twice the price", wrap(ocdp.Search, "rate", times(Fraction(2)))),
        )
    },
    "ocdp, two contexts: each at the whole loss": (
        "explain",
        "ocdp, two contexts",
        wrap(ocdp.Search, "rate", rate_for_one_context),
    ),
    "ocdp, dfs: its steps are not paid for": (
        "explain",
        "ocdp, dfs",
        entry(ocdp.SEARCHES, "dfs", replace(ocdp.SEARCHES["dfs"], choices_per_sample=0)),
    ),
    "ocdp, bfs: its steps are not paid for": (
        "explain",
        "ocdp, bfs",
        entry(ocdp.SEARCHES, "bfs", replace(ocdp.SEARCHES["bfs"], choices_per_sample=0)),
    ),
    "ocdp, guided: a tenth short": (
        "explain",
        "ocdp, guided",
        wrap(ocdp, "draws", lambda draw, noise, law, scale, size: draw(noise, law, scale * SHORT, size)),
    ),
}


def half_a_level(made: Cube, noise: Any) -> list[int]:
    level = cube._level(made.size, made.scale, noise)
    first, *others = [noise.below(2 * level + 1) - level for _ in range(made.size)]
    return [int(first / 2), *others]


@pytest.fixture(autouse=True)
def fresh_caches() -> Iterator[None]:
    """What was computed before a mutant, or by one, is not remembered."""
    caches = (sparse_vector._parts, sparse_vector._fineness, sparse_vector._scale, noisy_count.cap_rule)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


@pytest.mark.parametrize("name", MUTANTS)
def test_a_law_by_itself_notices(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    room, mode, mutate = MUTANTS[name]
    case = CASES[room, mode]
    mutate(monkeypatch)
    is_subtle = name.endswith("a tenth short")
    assert any(notices(case, check, is_subtle) for check in case.laws), f"no law of {mode} notices: {name}"


def notices(case: Case, check: LawCheck, is_subtle: bool) -> bool:
    """Whether a law is not what it should be. Where noise is a little short it must show more than it may; where half
    of it is missing, what is unlikely may be so unlikely that the law has no power, which is a failure too."""
    finding = audit_law_check(case, check)
    assert finding.claimed is not None
    assert finding.lower is not None
    return finding.caught and (not is_subtle or finding.lower > check.most * finding.claimed)


@pytest.mark.parametrize("case", [case for case in EXPLAIN_CASES if case.varies], ids=lambda case: case.name)
def test_output_constrained_laws_are_of_tables_with_the_same_valid_contexts(case: Case) -> None:
    """Their adjacency is one record more, where all contexts that are valid in one table are valid in the other."""
    valid = []
    for table in case.tables:
        view = case.query.view(table)
        detector = case.query.detector_for(view.n)  # type: ignore[attr-defined]
        examine = detector.examine(view.table_for(detector))
        valid.append([index for index in range(view.table_for(detector).space.count) if examine(index)[0]])
    assert valid[0] == valid[1] != []


def test_a_part_without_a_law_is_named() -> None:
    kind = type(CASES["watch", "paper"].query)
    accounts = kind.accounts()
    assert accounts is not None
    cases = tuple(replace(case, laws=()) if case.name == "paper" else case for case in accounts.cases)
    assert accounts.missing_laws(kind) == []
    assert replace(accounts, cases=cases).missing_laws(kind) == ["distances of paper"]


def test_a_law_that_shows_more_than_was_once_added_up_is_refuted() -> None:
    case = CASES["watch", "person, adaptive"]
    check = next(check for check in case.laws if check.shifts)
    assert not audit_law_check(case, check).caught
    assert audit_law_check(case, replace(check, most=check.least)).caught
