"""What is broken in the released code does not get past `wallflower audit --quick`.

Every mutant names a room and the attacks of its quick audit that notice it: only these are run. A room's `findings` are
all its attacks, one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
import pytest

import wallflower.evidence as evidence
import wallflower.mechanisms as mechanisms
import wallflower.mechanisms.additive as additive
import wallflower.mechanisms.continual as continual
import wallflower.neighbours.noisy_count as noisy_count
import wallflower.neighbours.radii as radii
import wallflower.queries.count as count
import wallflower.queries.count.at_radius as at_radius
import wallflower.queries.count.at_share as at_share
import wallflower.queries.count.audit as count_audit
import wallflower.queries.count.audit.at_radius as broken_bounds
import wallflower.queries.count.by_group as by_group
import wallflower.queries.count.two_sided as two_sided
import wallflower.queries.detector.audit as detector_audit
import wallflower.queries.detector.detector as detector
import wallflower.queries.detector.flags as flags
import wallflower.queries.detector.threshold as other_threshold
import wallflower.queries.explain as explain
import wallflower.queries.explain.audit.attacks as explain_audit
import wallflower.queries.explain.detectors.grubbs as grubbs
import wallflower.queries.explain.draws.dp as dp
import wallflower.queries.explain.draws.ocdp as ocdp
import wallflower.queries.profile.audit as profile_audit
import wallflower.queries.profile.profile as profile
import wallflower.queries.radius.audit as radius_audit
import wallflower.queries.scale.audit as scale_audit
import wallflower.queries.scale.scale as scale
import wallflower.queries.shift.audit as shift_audit
import wallflower.queries.shift.charts as charts
import wallflower.queries.subspaces.audit as subspaces_audit
import wallflower.queries.subspaces.choice as choice
import wallflower.queries.subspaces.subspaces as subspaces
import wallflower.queries.watch.audit as watch_audit
import wallflower.queries.watch.audit.seasons as audit_seasons
import wallflower.queries.watch.baseline as baseline
import wallflower.queries.watch.detectors as detectors
import wallflower.queries.watch.detectors.additive as noisy_distances
import wallflower.queries.watch.detectors.sparse as sparse_vector
import wallflower.queries.watch.detectors.staircase as staircase
import wallflower.queries.watch.levels as levels
import wallflower.queries.watch.seasons.estimates as estimates
import wallflower.queries.watch.watch as watch
import wallflower.queries.who.audit as who_audit
import wallflower.queries.who.who as who
import wallflower.sensors.audit as sensors_audit
import wallflower.sensors.comparison as comparison
import wallflower.sensors.perturbation as perturbation
import wallflower.sensors.threshold as threshold
from mutants_of_answers import INVENTED, SURVIVORS
from wallflower.audit import Finding, Way
from wallflower.audit.answers import audit_cases
from wallflower.neighbours.radii import Tally
from wallflower.privacy import Kind, Loss, zcdp_of_epsilon
from wallflower.queries.explain.detectors import ClampedGrubbs, Distance, FixedBins, Grubbs, Tukey
from wallflower.queries.watch.detectors.staircase import Table
from wallflower.queries.watch.seasons import SeasonalBaseline
from wallflower.queries.watch.seasons.learner import SeasonLearner
from wallflower.queries.watch.statistics import Bounds

pytestmark = pytest.mark.slow

Mutate = Callable[[pytest.MonkeyPatch], None]
ROOMS = {
    "count": count_audit,
    "subspaces": subspaces_audit,
    "watch": watch_audit,
    "explain": explain_audit,
    "sensors": sensors_audit,
    "scale": scale_audit,
    "radius": radius_audit,
    "profile": profile_audit,
    "detector": detector_audit,
    "who": who_audit,
    "shift": shift_audit,
}
COUNT, SUBSPACES, WATCH, EXPLAIN, SENSORS, SCALE, RADIUS, PROFILE, DETECTOR, WHO, SHIFT = ROOMS
TENTH, FIFTH = Fraction(10, 9), Fraction(10, 8)  # by what a loss grows when so much of the noise is missing
HALF = Fraction(1, 2)


def put(place: Any, name: str, value: Any) -> Mutate:
    return lambda patch: patch.setattr(place, name, value)


def wrap(place: Any, name: str, change: Callable[..., Any]) -> Mutate:
    """Replace a function by one that is handed the function first, and then what it is asked."""

    def mutate(patch: pytest.MonkeyPatch) -> None:
        before = getattr(place, name)
        patch.setattr(place, name, lambda *asked, **more: change(before, *asked, **more))

    return mutate


def entry(place: Any, key: Any, value: Any) -> Mutate:
    return lambda patch: patch.setitem(place, key, value)


def shorter(less: Fraction) -> Callable[..., Any]:
    def calibrated(calibrate: Any, size: int, loss: Any, *, step: Fraction) -> Any:
        return replace(found := calibrate(size, loss, step=step), scale=found.scale / less)

    return calibrated


def drawn_shorter(less: Fraction) -> Callable[..., Any]:
    return lambda draws, noise, kind, scale, size: draws(noise, kind, scale / less, size)


def chosen_dearer(choose: Any, errors: Any, *, sensitivity: int, epsilon: Fraction, noise: Any) -> Any:
    return choose(errors, sensitivity=sensitivity, epsilon=epsilon * TENTH, noise=noise)


def half_as_far(calibrate: Any, size: int, loss: Any, *, step: Fraction) -> Any:
    return calibrate(size // 2, loss, step=step)


def named_with(epsilon: Fraction) -> Fraction:
    """The loss at which a coin names with this probability."""
    return Fraction(-math.log1p(-float(epsilon)))


def ranked(view: Any, bar: float | None) -> list[int]:
    """The rows of a tiny world, in the order of the list."""
    return [candidate.row for candidate in view._best(bar, 10)]


def middle_score(view: Any) -> float:
    return float(np.median([-candidate.descending for candidate in view._best(None, 10)]))


def coin_for_two(walk: Any, ranked: Any, most: int, epsilon: Fraction, noise: Any) -> Any:
    records, named = list(ranked), []
    for at in range(0, len(records), 2):
        named += [] if noise.flip(epsilon) else records[at : at + 2]
    return named[:most]


def beside_the_list(tell: Callable[[Any, list[int], float | None], Any]) -> Mutate:
    """The list, and something more that is released beside it."""

    def answer(before: Any, query: Any, view: Any, noise: Any) -> Any:
        rows = before(query, view, noise)
        named = [row["record"] for row in rows]
        return [*rows, {"record": "more", "more": tell(view, named, query.above)}]

    return wrap(who.Who, "answer", answer)


def with_scaled_scores(describe: Any, view: Any, named: Any, show: Any) -> Any:
    greatest = max(abs(candidate.descending) for candidate in view._best(None, 10))
    return [
        row | {"score": -candidate.descending / greatest}
        for row, candidate in zip(describe(view, named, show), named, strict=True)
    ]


def times(factor: Any) -> Callable[..., Any]:
    return lambda function, *asked, **more: function(*asked, **more) * factor


def draws_shorter(less: Fraction) -> Callable[..., Any]:
    return lambda draws, noise, law, scale, size: draws(noise, law, scale / less, size)


def cube_shorter(less: Fraction) -> Callable[..., Any]:
    def calibrated(calibrate: Any, size: int, moves: int, loss: Any, *, step: Fraction) -> Any:
        return replace(found := calibrate(size, moves, loss, step=step), scale=found.scale / less)

    return calibrated


def chosen_at(more: Fraction) -> Callable[..., Any]:
    def chosen(choose: Any, errors: Any, *, sensitivity: int, epsilon: Fraction, noise: Any) -> Any:
        return choose(errors, sensitivity=sensitivity, epsilon=epsilon * more, noise=noise)

    return chosen


# count


def hidden_steps(steps: Callable[[int], int]) -> Callable[[int, Any], Any]:
    """Noise of the extension that hides so many steps at a slack."""
    return lambda slack, loss, gap=0: mechanisms.calibrate(steps(slack) + gap, loss, step=Fraction(1, 128))


def count_by_value(values: Any, radius: float, neighbours: int, **more: Any) -> int:
    values = np.asarray(values)
    gaps = np.sqrt(((values[:, None] - values) ** 2).sum(axis=2))
    return int(np.count_nonzero(np.count_nonzero((gaps > 0) & (gaps <= radius), axis=1) < neighbours))


def smooth_by(cover: Any) -> Callable[..., float]:
    def bound(values: Any, radius: float, neighbours: int, *, beta: float, normalise: bool) -> float:
        return broken_bounds.smooth_maximum(values, radius, beta, cover=cover)

    return bound


def capped_half_the_time(values: Any, radius: float, neighbours: int, *, beta: float, normalise: bool) -> float:
    return broken_bounds._broken_cap(values, radius, beta)


def gaussian_without_delta(size: int, loss: Any) -> Any:
    return "gaussian", mechanisms.gaussian_scale(size, loss.epsilon, HALF)


def gaussian_a_fifth_short(size: int, loss: Any) -> Any:
    law, scale = additive._calibrate_concentrated(size, loss)
    return law, scale / FIFTH


# subspaces


def one_unit(query: Any, found: list[int], family: Any, n: int) -> tuple[list[int], int]:
    return found, 1


def each_times(factor: Fraction) -> Callable[..., Any]:
    return lambda draws, *asked: replace(found := draws(*asked), each=found.each * factor)


def each_without_delta(mechanism: str, loss: Any, top: int) -> Fraction:
    return mechanisms.epsilon_each(loss.epsilon, HALF, top)


def concentrated_a_fifth_short(calibrate: Any, size: int, loss: Any, *, step: Fraction) -> Any:
    less = FIFTH if loss.kind is Kind.ZCDP else Fraction(1)
    return shorter(less)(calibrate, size, loss, step=step)


class OneNumber:
    """A noise that draws one number and says it again."""

    def __init__(self, noise: Any) -> None:
        self.noise, self.number = noise, None

    def laplace(self, scale: Fraction) -> int:
        self.number = int(self.noise.laplace(scale)) if self.number is None else self.number
        return self.number

    def gaussian(self, scale: Fraction) -> int:
        self.number = int(self.noise.gaussian(scale)) if self.number is None else self.number
        return self.number


def at_the_whole_loss(at_radius: Any, query: Any, radius: float) -> Any:
    return replace(at_radius(query, radius), loss=query.loss)


def one_draw_for_both_numbers(patch: pytest.MonkeyPatch) -> None:
    answer = two_sided.TwoSidedCount.answer
    patch.setattr(two_sided.TwoSidedCount, "answer", lambda query, data, noise: answer(query, data, OneNumber(noise)))


def one_draw_for_all_counts(patch: pytest.MonkeyPatch) -> None:
    noisy_steps, last = subspaces.noisy_steps, [OneNumber(None)]

    def steps(*asked: Any, **more: Any) -> int:
        *before, noise = asked
        if last[0].noise is not noise:
            last[0] = OneNumber(noise)
        return noisy_steps(*before, last[0], **more)

    patch.setattr(subspaces, "noisy_steps", steps)


# watch


TABLE = Table.of


def window_at_the_whole(level: Any, threshold: int, sensitivity: int) -> Any:
    return detectors.Staircase(threshold=threshold, sensitivity=sensitivity, epsilon=level.loss.epsilon)


def paper_at_its_own(level: Any, threshold: int, sensitivity: int) -> Any:
    return detectors.PaperDetector(threshold=threshold, sensitivity=sensitivity, epsilon=4 * level.loss.epsilon)


def one_threshold(sparse: Any, noise: Any) -> Any:
    return (detectors.draw_geometric(sparse.fineness / sparse.parts[0], noise),) * (2 if sparse.two_sided else 1)


def no_noise_on_thresholds(sparse: Any, noise: Any) -> Any:
    return (0,) * (2 if sparse.two_sided else 1)


def never_over(decide: Any) -> Callable[..., Any]:
    def decided(sparse: Any, distances: Any, secret: Any, spent: int, noise: Any) -> Any:
        found = [decide(sparse, distances[at : at + 1], secret, 0, noise).flags for at in range(len(distances))]
        return detectors.Output(np.concatenate(found), 0)

    return decided


def whole_loss_every_step(per_step: Any, loss: Loss, steps: int) -> Loss:
    return per_step(loss, 1)


def words_twice(words: Any, noise: Any, size: int) -> Any:
    return np.repeat(words(noise, (size + 1) // 2), 2)[:size]


def moves_of(change: Callable[[int], int]) -> Callable[..., Any]:
    return lambda make, *asked, **more: replace(
        statistic := make(*asked, **more), sensitivity=change(statistic.sensitivity)
    )


def noises_of(change: Callable[[Any], Any]) -> Mutate:
    """The noise of a baseline, made for another question."""
    noises = baseline.HistoryLearner._noises
    return put(baseline.HistoryLearner, "_noises", lambda asked, n, dimension: noises(change(asked), n, dimension))


def one_draw_for_both_sums(patch: pytest.MonkeyPatch) -> None:
    answer = baseline.Baseline.answer
    patch.setattr(baseline.Baseline, "answer", lambda query, data, noise: answer(query, data, OneNumber(noise)))


def in_two_phases(means: Any) -> Callable[..., Any]:
    def doubled(cells: Any, amounts: Any, *asked: Any) -> Any:
        both = replace(cells, buckets=np.concatenate([cells.buckets, (cells.buckets + 1) % cells.n_buckets]))
        return means(both, np.concatenate([amounts, amounts]), *asked)

    return doubled


def both_at_the_whole(epsilon: Fraction, moves: int) -> tuple[Fraction, Fraction]:
    return epsilon, epsilon


# explain


def times_three(kind: type) -> Callable[..., Any]:
    def margins_in_blocks(blocks: Any, table: Any, detector: Any, reduce: Any) -> Any:
        factor = 3 if isinstance(detector, kind) else 1
        return blocks(table, detector, lambda first, found, counts: reduce(first, found * factor, counts))

    return margins_in_blocks


def undivided(scales: Any, detector: Any, own: float) -> Any:
    found = scales(detector, own)
    return found / abs(found[:, :1])


def part_times(deciding: int, each: int) -> Callable[..., Any]:
    parts = explain.Explain.parts
    return lambda query: tuple(part * factor for part, factor in zip(parts(query), (deciding, each), strict=True))


def parts_unshared(query: Any) -> tuple[Fraction, Fraction]:
    return query.loss.epsilon * query.doubt, query.loss.epsilon * (1 - query.doubt)


class Silence:
    """No noise at all."""

    def laplace(self, scale: Fraction) -> int:
        return 0


# sensors


def one_draw_for_all_columns(points: Any, *, ranges: Any, epsilons: Any, step: Any, noise: Any) -> Any:
    places = perturbation._check_points(points)
    drawn = perturbation.draw_laplace(perturbation.noise_scale(ranges[0], epsilons[0], step), len(places), noise)
    return places + np.stack([drawn] * places.shape[1], axis=1)


def minus_zero_is_zero(keep: Any, drawn: Any, scale: Any, columns: int, noise: Any, *more: Any) -> Any:
    if columns > 1:
        return keep(drawn, scale, columns, noise, *more)
    lengths = keep(drawn & ~np.uint64(1), scale, columns, noise, *more)
    return np.where(drawn & np.uint64(1), -lengths, lengths)


def no_box(readings: Any, *, mean: Any, deviation: Any, low: Any, high: Any, step: Any) -> Any:
    return np.floor(np.asarray(readings) / float(step) + 0.5).astype(np.int64)


def bits_missing(words: Any, noise: Any, size: int) -> Any:
    return words(noise, size) & ~np.uint64(1 << (sensors_audit.BITS - 1))


def look_first(query: Any, points: Any, ledger: Any, *, force: bool) -> None:
    evidence._broken_look_first(query, points, ledger)


MUTANTS: dict[str, tuple[str, str, Mutate]] = {
    "looks, then pays": (COUNT, "order", put(evidence, "release", look_first)),
    # count
    "pure noise a tenth short": (
        COUNT,
        "noise",
        entry(additive._CALIBRATIONS, Kind.PURE, lambda size, loss: ("laplace", size / loss.epsilon / TENTH)),
    ),
    "zCDP noise a fifth short": (
        COUNT,
        "noise",
        entry(additive._CALIBRATIONS, Kind.ZCDP, gaussian_a_fifth_short),
    ),
    "delta forgotten": (COUNT, "noise", entry(additive._CALIBRATIONS, Kind.APPROXIMATE, gaussian_without_delta)),
    "extension: a tenth short": (COUNT, "extension", wrap(noisy_count, "calibrate", shorter(TENTH))),
    "extension: moves by 1": (COUNT, "extension", put(noisy_count, "count_noise", hidden_steps(lambda slack: 128))),
    "extension: moves by its slack": (
        COUNT,
        "extension",
        put(noisy_count, "count_noise", hidden_steps(lambda slack: 128 * slack + 1)),
    ),
    "extension: half as far": (COUNT, "extension", wrap(noisy_count, "calibrate", half_as_far)),
    "extension: no step for the solver": (
        COUNT,
        "extension",
        put(noisy_count, "count_noise", hidden_steps(lambda slack: 128 * (slack + 1))),
    ),
    "extension: delta forgotten": (
        COUNT,
        "extension",
        entry(additive._CALIBRATIONS, Kind.APPROXIMATE, gaussian_without_delta),
    ),
    "global: a tenth short": (COUNT, "global", wrap(at_radius, "calibrate", shorter(TENTH))),
    "global: half as far": (COUNT, "global", wrap(at_radius, "calibrate", half_as_far)),
    "global: moves by 1": (
        COUNT,
        "global",
        put(at_radius, "rounding_bound", lambda n, dimension, neighbours: 1),
    ),
    "smooth: a tenth short": (
        COUNT,
        "smooth",
        wrap(
            at_radius,
            "smooth_additive",
            lambda made, bound, *asked, **more: made(bound / 10 * 9, *asked, **more),
        ),
    ),
    "smooth: the whole loss for the value": (
        COUNT,
        "smooth",
        wrap(
            at_radius,
            "smooth_additive",
            lambda made, bound, epsilon, *, step: made(bound, 2 * epsilon, step=step),
        ),
    ),
    "smooth: the bound is 1": (
        COUNT,
        "smooth",
        put(at_radius._sensitivity, "rounded_smooth_bound", lambda *asked, **more: 1.0),
    ),
    "smooth: delta forgotten": (
        COUNT,
        "smooth",
        wrap(at_radius, "smooth_beta", lambda beta, epsilon, delta, **more: beta(epsilon, HALF, **more)),
    ),
    "smooth: skips the last record": (
        COUNT,
        "smooth",
        put(at_radius._sensitivity, "rounded_smooth_bound", smooth_by(broken_bounds._broken_skip_last)),
    ),
    "smooth: looks around records only": (
        COUNT,
        "smooth",
        put(at_radius._sensitivity, "rounded_smooth_bound", smooth_by(broken_bounds._broken_at_records)),
    ),
    "smooth: rough where many are": (
        COUNT,
        "smooth",
        put(at_radius._sensitivity, "rounded_smooth_bound", smooth_by(broken_bounds._broken_switch)),
    ),
    "smooth: capped half the time": (
        COUNT,
        "smooth",
        put(at_radius._sensitivity, "rounded_smooth_bound", capped_half_the_time),
    ),
    "duplicates are no neighbours": (COUNT, "exact", put(broken_bounds, "count_outliers", count_by_value)),
    "two-sided: a tenth short": (COUNT, "two-sided", wrap(noisy_count, "calibrate", shorter(TENTH))),
    "two-sided: both numbers at the whole loss": (
        COUNT,
        "two-sided",
        put(two_sided.TwoSidedCount, "loss_per_number", property(lambda query: query.loss)),
    ),
    "two-sided: one draw for both numbers": (COUNT, "two-sided", one_draw_for_both_numbers),
    "share: the count at the whole loss": (
        COUNT,
        "share",
        wrap(at_share.CountAtShare, "at_radius", at_the_whole_loss),
    ),
    "groups: a tenth short": (COUNT, "groups", wrap(by_group, "calibrate", shorter(TENTH))),
    "groups: half as far": (COUNT, "groups", wrap(by_group, "calibrate", half_as_far)),
    "groups: a record stays in its own": (
        COUNT,
        "groups",
        put(by_group.CountByGroup, "law", property(lambda query: noisy_count.count_noise(query.cap, query.loss))),
    ),
    "groups: one number for all": (COUNT, "groups", put(by_group, "exact_steps", lambda *asked, **more: 0)),
    # subspaces
    "masses move by 1": (SUBSPACES, "bounds", put(subspaces.Subspaces, "_comparable", one_unit)),
    "counts move by 1": (SUBSPACES, "choices", put(subspaces, "rounding_bound", lambda n, dimension, neighbours: 1)),
    "choices: a tenth short": (SUBSPACES, "choices", wrap(subspaces, "draws", each_times(TENTH))),
    "choices at ρ: a fifth short": (
        SUBSPACES,
        "choices",
        entry(
            choice._EACH,
            Kind.ZCDP,
            lambda mechanism, loss, top: FIFTH * choice._each_concentrated(mechanism, loss, top),
        ),
    ),
    "choices at δ: delta forgotten": (
        SUBSPACES,
        "choices",
        entry(
            choice._EACH,
            Kind.APPROXIMATE,
            lambda mechanism, loss, top: mechanisms.epsilon_each(loss.epsilon, HALF, top),
        ),
    ),
    "choices: each at the whole loss": (
        SUBSPACES,
        "choices",
        wrap(subspaces, "draws", lambda draws, mechanism, loss, top: draws(mechanism, loss, 1)),
    ),
    "choices: twice the loss": (SUBSPACES, "choices", wrap(subspaces, "draws", each_times(Fraction(2)))),
    "choice and counts at the whole loss": (
        SUBSPACES,
        "counts",
        wrap(subspaces, "parts", lambda parts, loss, share: (loss, loss)),
    ),
    "counts: each at the whole loss": (
        SUBSPACES,
        "counts",
        wrap(subspaces, "count_loss", lambda count_loss, loss, top, slack: count_loss(loss, 1, slack)),
    ),
    "counts: a tenth short": (SUBSPACES, "counts", wrap(noisy_count, "calibrate", shorter(TENTH))),
    "counts at ρ: a fifth short": (SUBSPACES, "counts", wrap(noisy_count, "calibrate", concentrated_a_fifth_short)),
    "counts: one draw for all": (SUBSPACES, "counts", one_draw_for_all_counts),
    # scale
    "spreads: a tenth short": (SCALE, "choice", wrap(scale, "choose_together", chosen_at(TENTH))),
    "spreads: errors move by a half": (SCALE, "choice", wrap(scale, "choose_together", chosen_at(Fraction(2)))),
    "spreads: a unit is not divided": (
        SCALE,
        "choice",
        wrap(scale, "quantile_errors", lambda quantile_errors, found, share, columns: quantile_errors(found, share, 1)),
    ),
    # radius
    "shift: a tenth short": (SHIFT, "sums", wrap(charts, "draws", drawn_shorter(TENTH))),
    "shift: distances are not clipped": (SHIFT, "sums", put(charts.Limits, "clip", lambda self, distances: distances)),
    "shift: a width of half the limits": (
        SHIFT,
        "sums",
        wrap(charts.Limits, "width", lambda width, *of: width(*of) // 2),
    ),
    "shift: the memory is longer than the noise pays for": (
        SHIFT,
        "exact",
        wrap(charts.BoundedChart, "value", lambda value, chart, window: value(chart, [*window, *window])),
    ),
    "radii: a tenth short": (RADIUS, "choice", wrap(radii, "choose_together", chosen_at(TENTH))),
    "radii: the sensitivity is forgotten": (
        RADIUS,
        "choice",
        put(Tally, "sensitivity", property(lambda tally: tally.unit)),
    ),
    "radii: the curve moves by its slack": (
        RADIUS,
        "curve",
        put(Tally, "sensitivity", property(lambda tally: (tally.slack or 1) * tally.unit)),
    ),
    # profile
    "profile: a tenth short": (PROFILE, "noise", wrap(profile, "calibrate_cube", cube_shorter(TENTH))),
    "profile: moves by 1": (PROFILE, "curve", put(Tally, "sensitivity", property(lambda tally: tally.unit))),
    # detector
    "detector: counts a tenth short": (DETECTOR, "counts", wrap(detector, "draws", drawn_shorter(TENTH))),
    "detector: Gaussian cells a tenth short": (
        DETECTOR,
        "counts",
        wrap(
            detector_audit,
            "calibrate_counts",
            lambda calibrated, *facts: replace(law := calibrated(*facts), scale=law.scale / TENTH),
        ),
    ),
    "detector: noise for one table": (DETECTOR, "counts", wrap(detector, "draws", drawn_shorter(Fraction(4)))),
    "detector: threshold a tenth short": (DETECTOR, "threshold", wrap(detector, "choose_together", chosen_dearer)),
    "detector: spreads a tenth short": (DETECTOR, "spreads", wrap(detector, "choose_together", chosen_dearer)),
    "another threshold: a tenth short": (
        DETECTOR,
        "another threshold",
        wrap(detector, "choose_together", chosen_dearer),
    ),
    "another threshold: a ρ as an ε": (
        DETECTOR,
        "another threshold",
        put(other_threshold, "epsilon_of_range", lambda rho: Fraction(3, 2)),
    ),
    "flags: a tenth short": (DETECTOR, "flags", wrap(flags, "calibrate", shorter(TENTH))),
    "flags: half as far": (DETECTOR, "flags", wrap(flags, "calibrate", half_as_far)),
    "tally: a tenth short": (DETECTOR, "tally", wrap(continual, "draws", drawn_shorter(TENTH))),
    "tally: columns one step too short": (
        DETECTOR,
        "tally",
        put(continual.Factorisation, "square", property(lambda factors: int((factors.steps**2).sum()) - 1)),
    ),
    # watch
    "bits: a tenth short": (
        WATCH,
        "answer",
        put(Table, "of", staticmethod(lambda epsilon: TABLE(epsilon * TENTH))),
    ),
    "bits: one draw for two": (WATCH, "event", wrap(staircase, "words", words_twice)),
    "scores: a tenth short": (WATCH, "event", wrap(staircase, "draws", draws_shorter(TENTH))),
    "window: every step at the whole loss": (
        WATCH,
        "person",
        put(levels.WindowLevel, "detector", window_at_the_whole),
    ),
    "person: one threshold for both sides": (WATCH, "person", put(detectors.Sparse, "secret", one_threshold)),
    "person: no noise on thresholds": (WATCH, "person", put(detectors.Sparse, "secret", no_noise_on_thresholds)),
    "person: no cutoff": (WATCH, "person", put(detectors.Sparse, "decide", never_over(detectors.Sparse.decide))),
    "person: a flag costs half": (
        WATCH,
        "person",
        wrap(detectors.Sparse, "_costs", lambda costs, *asked: np.minimum(costs(*asked), 1)),
    ),
    "person: queries a tenth short": (
        WATCH,
        "person",
        wrap(sparse_vector, "_scale", times(1 / TENTH)),
    ),
    "person: thresholds a tenth short": (
        WATCH,
        "person",
        wrap(sparse_vector, "draw_geometric", lambda drawn, scale, noise: drawn(scale / TENTH, noise)),
    ),
    "person: threshold and flags at the whole loss": (WATCH, "person", put(sparse_vector, "_parts", both_at_the_whole)),
    "person: moves one way": (WATCH, "person", put(detectors.Sparse, "_moves", property(lambda sparse: sparse.cutoff))),
    "person, one sign: half a move": (
        WATCH,
        "person",
        put(detectors.Sparse, "_moves", property(lambda sparse: sparse.cutoff * (HALF if sparse.two_sided else 2))),
    ),
    "gaussian: a tenth short": (WATCH, "gaussian", wrap(noisy_distances, "calibrate", shorter(TENTH))),
    "gaussian: a fifth short": (WATCH, "gaussian", wrap(noisy_distances, "calibrate", shorter(FIFTH))),
    "gaussian: every step at the whole loss": (
        WATCH,
        "gaussian",
        wrap(levels, "loss_per_step", whole_loss_every_step),
    ),
    "gaussian: delta forgotten": (
        WATCH,
        "gaussian",
        put(levels, "convert_to_zcdp", lambda loss: Fraction(zcdp_of_epsilon(float(loss.epsilon), 0.5))),
    ),
    "paper: a tenth short": (WATCH, "paper", wrap(noisy_distances, "draws", draws_shorter(TENTH))),
    "paper: at its own ε": (
        WATCH,
        "paper",
        put(levels.PaperLevel, "detector", paper_at_its_own),
    ),
    "statistic: moves by 1": (
        WATCH,
        "statistic",
        wrap(watch, "make_statistic", moves_of(lambda move: 1)),
    ),
    "statistic: moves half as far": (
        WATCH,
        "statistic",
        wrap(watch, "make_statistic", moves_of(lambda move: move // 2)),
    ),
    "statistic: entries are not clipped": (WATCH, "statistic", put(Bounds, "clip", lambda bounds, rows: rows)),
    "baseline: a tenth short": (WATCH, "baseline", wrap(baseline, "calibrate", shorter(TENTH))),
    "baseline: moves by 1": (
        WATCH,
        "baseline",
        put(baseline, "calibrate", lambda size, loss, *, step: mechanisms.calibrate(1, loss, step=step)),
    ),
    "baseline: half as far": (WATCH, "baseline", wrap(baseline, "calibrate", half_as_far)),
    "baseline: both sums at the whole loss": (
        WATCH,
        "baseline",
        noises_of(lambda asked: replace(asked, loss=Loss(2 * asked.loss.epsilon))),
    ),
    "baseline: one observation of a person": (
        WATCH,
        "baseline",
        noises_of(lambda asked: replace(asked, level="entry", loss=Loss(asked.loss.epsilon))),
    ),
    "baseline: one draw for both sums": (WATCH, "baseline", one_draw_for_both_sums),
    "seasons: a tenth short": (WATCH, "seasons", wrap(estimates, "calibrate", shorter(TENTH))),
    "seasons: moves by 1": (
        WATCH,
        "seasons",
        put(estimates, "calibrate", lambda size, loss, *, step: mechanisms.calibrate(1, loss, step=step)),
    ),
    "seasons: every part at the whole loss": (
        WATCH,
        "seasons",
        put(audit_seasons, "SHARES", dict.fromkeys(estimates.SHARES, Fraction(1))),
    ),
    "seasons: an observation in two phases": (
        WATCH,
        "seasons",
        put(estimates.Cells, "sum_up", in_two_phases(estimates.Cells.sum_up)),
    ),
    "pool: the whole a tenth short": (WATCH, "pool", wrap(estimates, "calibrate", shorter(TENTH))),
    "pool: cells at the whole loss": (
        WATCH,
        "pool",
        wrap(estimates.Cells, "sum_up", lambda own, *asked: own(*asked[:3], asked[3] * Fraction(4, 3), asked[4])),
    ),
    "seasons: learnt anew of all that came before": (
        WATCH,
        "seasons",
        wrap(SeasonLearner, "learn", lambda learn, *asked, **more: learn(*asked[:3], slice(0, asked[3].stop), **more)),
    ),
    "seasons: a change in spreads of the widest phase": (
        WATCH,
        "seasons",
        put(SeasonalBaseline, "change_in_spreads", lambda season, change, reach: change / max(map(max, season.spread))),
    ),
    # who
    "who: cut first, tossed afterwards": (
        WHO,
        "lists",
        wrap(who, "name_in_order", lambda walk, ranked, most, *rest: walk(islice(ranked, most), most, *rest)),
    ),
    "who: named with probability ε": (
        WHO,
        "lists",
        wrap(who, "name_in_order", lambda walk, ranked, most, loss, noise: walk(ranked, most, named_with(loss), noise)),
    ),
    "who: coins a tenth short": (
        WHO,
        "lists",
        wrap(who, "name_in_order", lambda walk, ranked, most, loss, noise: walk(ranked, most, loss * TENTH, noise)),
    ),
    "who: half of the loss": (
        WHO,
        "answers",
        wrap(who, "name_in_order", lambda walk, ranked, most, loss, noise: walk(ranked, most, loss / 2, noise)),
    ),
    "who: a sample of fixed size": (
        WHO,
        "lists",
        wrap(who, "name_in_order", lambda walk, ranked, most, *rest: list(islice(ranked, most))),
    ),
    "who: one coin for two records": (WHO, "lists", wrap(who, "name_in_order", coin_for_two)),
    "who: a walk that starts anew": (
        WHO,
        "lists",
        wrap(who, "name_in_order", lambda walk, ranked, *rest: walk(kept := list(ranked), *rest) or walk(kept, *rest)),
    ),
    "who: tells how many are flagged": (WHO, "lists", beside_the_list(lambda view, named, bar: len(ranked(view, bar)))),
    "who: tells how many were passed over": (
        WHO,
        "lists",
        beside_the_list(lambda view, named, bar: sum(one not in named for one in ranked(view, bar))),
    ),
    "who: tells the rank among all": (
        WHO,
        "lists",
        beside_the_list(lambda view, named, bar: [ranked(view, None).index(one) for one in named]),
    ),
    "who: tells the best that is not named": (
        WHO,
        "lists",
        beside_the_list(lambda view, named, bar: next((r for r in ranked(view, None) if r not in named), None)),
    ),
    "who: a bar at a quantile of the records": (
        WHO,
        "lists",
        wrap(who.WhoView, "ranked", lambda walk, view, bar, first: walk(view, middle_score(view), first)),
    ),
    "who: positions in a sorted file": (
        WHO,
        "lists",
        wrap(who.WhoView, "_name", lambda name, view, one: ranked(view, None)[::-1].index(one.row)),
    ),
    "who: scores divided by the greatest": (
        WHO,
        "lists",
        wrap(who.WhoView, "describe", with_scaled_scores),
    ),
    # explain
    "dp: a score moves by 1 step": (EXPLAIN, "dp", put(dp, "STEPS", 1)),
    "dp: a tenth short": (EXPLAIN, "dp", put(dp, "STEPS", dp.STEPS / TENTH)),
    "dp: contexts at twice the loss": (
        EXPLAIN,
        "dp",
        put(explain.Explain, "parts", part_times(1, 2)),
    ),
    "dp: none at twice the loss": (EXPLAIN, "none", put(explain.Explain, "parts", part_times(2, 1))),
    "dp: none and contexts at the whole loss": (
        EXPLAIN,
        "none",
        put(explain.Explain, "parts", lambda query: (query.loss.epsilon, query.loss.epsilon)),
    ),
    "dp: several at the whole loss": (
        EXPLAIN,
        "several",
        put(
            explain.Explain,
            "parts",
            lambda query: (query.loss.epsilon * query.doubt, query.loss.epsilon * (1 - query.doubt)),
        ),
    ),
    "dp: none a tenth short": (
        EXPLAIN,
        "none",
        wrap(
            dp,
            "stands_out",
            lambda found, table, detector, epsilon, noise: found(table, detector, epsilon * TENTH, noise),
        ),
    ),
    "dp: none without noise": (
        EXPLAIN,
        "none",
        wrap(
            dp,
            "stands_out",
            lambda found, table, detector, epsilon, noise: found(table, detector, epsilon, Silence()),
        ),
    ),
    "dp: margins of distance times 3": (EXPLAIN, "worlds", wrap(dp, "margins_in_blocks", times_three(Distance))),
    "dp: margins of bins times 3": (EXPLAIN, "worlds", wrap(dp, "margins_in_blocks", times_three(FixedBins))),
    "dp: margins of tukey times 3": (EXPLAIN, "worlds", wrap(dp, "margins_in_blocks", times_three(Tukey))),
    "dp: margins of clamped Grubbs times 3": (
        EXPLAIN,
        "worlds",
        wrap(dp, "margins_in_blocks", times_three(ClampedGrubbs)),
    ),
    "dp: margins are not divided": (EXPLAIN, "worlds", wrap(grubbs, "scales", undivided)),
    "dp: the metric is not clamped": (EXPLAIN, "dp", put(ClampedGrubbs, "divide", Grubbs.divide)),
    "ocdp: a tenth short": (
        EXPLAIN,
        "ocdp",
        wrap(ocdp.Search, "rate", times(TENTH)),
    ),
    "ocdp: twice the price": (
        EXPLAIN,
        "ocdp",
        wrap(ocdp.Search, "rate", times(2)),
    ),
    "ocdp: every step of dfs at the whole loss": (
        EXPLAIN,
        "ocdp",
        entry(ocdp.SEARCHES, "dfs", replace(ocdp.SEARCHES["dfs"], choices_per_sample=0)),
    ),
    "ocdp: every step of bfs at the whole loss": (
        EXPLAIN,
        "ocdp",
        entry(ocdp.SEARCHES, "bfs", replace(ocdp.SEARCHES["bfs"], choices_per_sample=0)),
    ),
    "ocdp: guided, a tenth short": (EXPLAIN, "ocdp", wrap(ocdp, "draws", draws_shorter(TENTH))),
    "ocdp: best-first, a tenth short": (
        EXPLAIN,
        "answers: ocdp, best-first",
        wrap(ocdp.Search, "rate", times(TENTH)),
    ),
    # sensors
    "devices: a tenth short": (
        SENSORS,
        "laws",
        wrap(perturbation, "noise_scale", times(1 / TENTH)),
    ),
    "devices: a scale of 1/2": (SENSORS, "laws", put(perturbation, "noise_scale", lambda *asked: HALF)),
    "devices: one draw for all columns": (
        SENSORS,
        "laws",
        put(perturbation, "add_column_noise", one_draw_for_all_columns),
    ),
    "devices: minus zero is zero": (SENSORS, "laws", wrap(perturbation, "accept_candidates", minus_zero_is_zero)),
    "devices: no box": (SENSORS, "devices", put(perturbation, "clip", no_box)),
    "histogram: a reading moves one bin": (SENSORS, "laws", put(threshold, "_SENSITIVITY", 1)),
    "histogram: a tenth short": (SENSORS, "laws", wrap(threshold, "draws", draws_shorter(TENTH))),
    "keys: masks one bit short": (SENSORS, "keys", wrap(comparison, "words", bits_missing)),
    "keys: one mask for two": (SENSORS, "keys", wrap(comparison, "words", words_twice)),
}


# What joins the parts of an answer; such a mutant names the case of its room's accounts that notices it.
ANSWERS = "answers: "
MUTANTS |= {name: (room, ANSWERS + case, mutate) for name, (room, case, mutate) in (SURVIVORS | INVENTED).items()}


@pytest.fixture(autouse=True)
def fresh_caches() -> Iterator[None]:
    """What was computed before a mutant, or by one, is not remembered."""
    caches = (sparse_vector._parts, sparse_vector._fineness, sparse_vector._scale)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


def attack(room: str, name: str) -> Iterator[Finding]:
    if name == "order":
        return evidence.order_findings(count.Count.example())
    if name.startswith(ANSWERS):
        cases = [case for case in ROOMS[room].ACCOUNTS.cases if case.name == name.removeprefix(ANSWERS)]
        assert cases, f"{room} has no account of {name}"
        return audit_cases(cases)
    return iter(ROOMS[room].ATTACKS[name](True))


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    room, where, mutate = MUTANTS[name]
    mutate(monkeypatch)
    found = next((finding for finding in attack(room, where) if not finding.ok), None)
    assert found is not None, f"{room}: nothing noticed that {name}"


@pytest.mark.parametrize("room", ROOMS)
def test_a_quick_audit_is_all_attacks_of_its_room(room: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = [Finding(name=name, way=Way.WORLD, claimed=None, lower=None, caught=False, text="") for name in "ab"]
    asked: list[bool] = []
    attacks = {each.name: lambda quick, each=each: [each] if asked.append(quick) is None else [] for each in shown}
    monkeypatch.setattr(ROOMS[room], "ATTACKS", attacks)
    assert list(ROOMS[room].findings(quick=True)) == shown
    assert asked == [True, True]
