"""Mutants of what joins the parts of an answer: a room, a case of its accounts, and how it is broken.

The first fifteen were once let through by all audits and tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import wallflower.mechanisms.choice as mechanism_choice
import wallflower.mechanisms.choice as together
import wallflower.mechanisms.continual as continual
import wallflower.mechanisms.cube as cube
import wallflower.neighbours.noisy_count as noisy_count
import wallflower.neighbours.radii as radii
import wallflower.queries.count as count
import wallflower.queries.count.at_radius as at_radius
import wallflower.queries.count.at_share as at_share
import wallflower.queries.count.by_group as by_group
import wallflower.queries.count.two_sided as two_sided
import wallflower.queries.detector.detector as detector
import wallflower.queries.detector.flags as flags
import wallflower.queries.detector.tally as tally
import wallflower.queries.explain as explain
import wallflower.queries.explain.draws.dp as dp
import wallflower.queries.explain.draws.ocdp as ocdp
import wallflower.queries.profile.profile as profile
import wallflower.queries.radius.radius as radius
import wallflower.queries.scale.scale as scale
import wallflower.queries.subspaces.choice as choice
import wallflower.queries.subspaces.subspaces as subspaces
import wallflower.queries.watch.baseline as baseline
import wallflower.queries.watch.detectors as detectors
import wallflower.queries.watch.levels as levels
import wallflower.queries.watch.seasons.estimates as estimates
from wallflower.mechanisms import Cube, Factorisation, calibrate
from wallflower.neighbours.radii import Tally
from wallflower.privacy import Loss
from wallflower.queries.scale.locations import Cells
from wallflower.queries.watch.seasons.learner import Relearning
from wallflower.query import Query

Mutate = Callable[[pytest.MonkeyPatch], None]
TENTH = Fraction(10, 9)


def put(place: Any, name: str, value: Any) -> Mutate:
    return lambda patch: patch.setattr(place, name, value)


def wrap(place: Any, name: str, change: Callable[..., Any]) -> Mutate:
    """Replace a function by one that gets the function first, and then its arguments."""

    def mutate(patch: pytest.MonkeyPatch) -> None:
        before = getattr(place, name)
        patch.setattr(place, name, lambda *asked, **more: change(before, *asked, **more))

    return mutate


def spending(factor: Any) -> Callable[..., Any]:
    """The same function of a query that spends more."""

    def spent(function: Any, query: Any, *asked: Any, **more: Any) -> Any:
        return function(replace(query, loss=Loss(query.loss.amount * factor)), *asked, **more)

    return spent


def at_epsilon(factor: Any) -> Callable[..., Any]:
    return lambda function, *asked, epsilon, **more: function(*asked, epsilon=epsilon * factor, **more)


def claiming(part: int) -> Any:
    """A claim of ε²/part."""
    return lambda query, facts: replace(Query.claim(query, facts), rho=query.loss.epsilon**2 / part)


def by_rank(data: Any, pairs: Any) -> Any:
    """Pairs of ranks instead of places."""
    order = np.argsort(data.values[:, 0], kind="stable")
    return order[pairs[0]], order[pairs[1]]


def one_draw_for_all_radii(made: Cube, noise: Any) -> list[int]:
    level = cube._level(made.size, made.scale, noise)
    return [noise.below(2 * level + 1) - level] * made.size


def level_without_one(size: int, scale_of_noise: Fraction, noise: Any) -> int:
    shares = np.array(cube._shares(size), dtype=object)
    start, _ = cube.exponential_level(np.arange(size + 1), shares, rate=1 / scale_of_noise, noise=noise)
    return int(start + sum(cube._geometric(scale_of_noise, noise) for _ in range(size)))


def grid_by_curve(pick: Any, curve: Any, n: int, grid: Any, *asked: Any, **more: Any) -> Any:
    return pick(curve, n, [radius * (1 + 1e-9 * int(curve.sum())) for radius in grid], *asked, **more)


def halves_unequal(query: Any) -> tuple[Loss, Loss]:
    return Loss(query.loss.amount), Loss(query.loss.amount / 2, delta=query.loss.delta)


def thresholds_by_data(choose: Any, thresholds: Any, above: Any, *asked: Any) -> Any:
    return choose(thresholds + 1e-9 * above.sum(), above, *asked)


SURVIVORS: dict[str, tuple[str, str, Mutate]] = {
    "location at the whole loss": ("scale", "spreads and locations", wrap(scale.Scale, "_locate", spending(2))),
    "spreads at the whole loss, with locations": (
        "scale",
        "spreads and locations",
        wrap(scale.Scale, "choose", spending(2)),
    ),
    "spreads of pairs by rank": (
        "scale",
        "spreads",
        wrap(scale, "gap_counts", lambda found, data, cut, pairs: found(data, cut, by_rank(data, pairs))),
    ),
    "equal pairs without noise": (
        "scale",
        "spreads and equal pairs",
        wrap(
            scale.Scale,
            "_equal_noise",
            lambda law, query, groups: SimpleNamespace(draw=lambda noise: [0] * groups, reach=law(query, groups).reach),
        ),
    ),
    "equal pairs a tenth short": (
        "scale",
        "spreads and equal pairs",
        wrap(
            scale.Scale,
            "_equal_noise",
            lambda law, query, groups: replace(law(query, groups), scale=law(query, groups).scale * Fraction(9, 10)),
        ),
    ),
    "equal pairs on top of the whole loss": (
        "scale",
        "spreads and equal pairs",
        put(scale.Scale, "spread_epsilon", lambda query, n, dimension: query.loss.epsilon),
    ),
    "ρ of spreads halved": ("scale", "spreads", put(scale.Scale, "claim", claiming(16))),
    "ρ of a curve quartered": ("profile", "two radii", put(profile.Profile, "claim", claiming(8))),
    "one draw for all radii": ("profile", "two radii", put(Cube, "draw", one_draw_for_all_radii)),
    "a level lacks one geometric number": ("profile", "two radii", put(cube, "_level", level_without_one)),
    "cube a tenth short in its draw": (
        "profile",
        "two radii",
        wrap(Cube, "draw", lambda draw, made, noise: draw(replace(made, scale=made.scale / TENTH), noise)),
    ),
    "shares of a profile at twice the loss": (
        "profile",
        "a radius for a share",
        wrap(profile, "choose_radii", at_epsilon(2)),
    ),
    "the number at a radius a tenth short": (
        "radius",
        "a radius",
        wrap(radius, "calibrate", lambda calibrate, moves, loss, **more: calibrate(9 * moves // 10, loss, **more)),
    ),
    "the number at a radius without noise": (
        "radius",
        "a radius",
        wrap(radius.Radius, "count_noise", lambda law, *asked: SimpleNamespace(draw=lambda noise: 0)),
    ),
    "a choice of radii a tenth dearer": ("radius", "a radius", wrap(radii, "pick_radii", at_epsilon(TENTH))),
    "a grid of radii by the curve": ("radius", "a radius", wrap(radii, "pick_radii", grid_by_curve)),
    "a curve without the step of the solver": (
        "radius",
        "a radius",
        put(Tally, "sensitivity", property(lambda tally: ((tally.slack or 0) + 1) * tally.unit)),
    ),
    "a share's radius at the whole loss": (
        "count",
        "at a share",
        put(at_share.CountAtShare, "halves", property(halves_unequal)),
    ),
    "thresholds by the data": (
        "detector",
        "detector by the schema, with a threshold",
        wrap(detector, "choose_threshold", thresholds_by_data),
    ),
    "a detector's pairs by rank": (
        "detector",
        "detector",
        wrap(detector, "gap_counts", lambda found, data, cut, pairs: found(data, cut, by_rank(data, pairs))),
    ),
}


# Invented afterwards


def scale_by_data(steps: Any, points: Any, *asked: Any, **more: Any) -> int:
    *before, loss, noise = asked
    exact = noisy_count.exact_steps(points, *before, **more)
    return steps(points, *before, Loss(loss.amount * (1 + Fraction(exact, 10**6)), delta=loss.delta), noise, **more)


def sizes_without_noise(query: Any) -> Any:
    return None


def last_radius_without_noise(draw: Any, made: Cube, noise: Any) -> list[int]:
    return [*draw(made, noise)[:-1], 0]


def half_the_draws(draw: Any, made: Cube, noise: Any) -> list[int]:
    return (draw(replace(made, size=(made.size + 1) // 2), noise) * 2)[: made.size]


def telling_pairs(patch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    pair_up, answer = scale.pair_up, scale.Scale.answer
    patch.setattr(scale, "pair_up", lambda n, noise: told.append(pair_up(n, noise)) or told[-1])

    def tell(query: Any, data: Any, noise: Any) -> Any:
        return answer(query, data, noise) | {"pairing": told[-1][0].tolist()}

    patch.setattr(scale.Scale, "answer", tell)


def key_by_data(kind: Any) -> Mutate:
    """A public key that is made of the records."""

    class Keyed:
        def __init__(self, noise: Any, data: Any) -> None:
            self.noise, self.data = noise, data

        def below(self, bound: int) -> int:
            return int(abs(self.data.values.sum())) if bound == 2**128 else self.noise.below(bound)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.noise, name)

    return wrap(kind, "answer", lambda answer, query, data, noise: answer(query, data, Keyed(noise, data)))


def cells_by_data(cells: Any, query: Any, data: Any, widths: Any) -> Any:
    first = float(data.values.min())
    return [Cells(first + cell.start, cell.step, cell.size) for cell in cells(query, data, widths)]


def overlapping(pair_up: Any, n: int, noise: Any) -> Any:
    first, second = pair_up(n, noise)
    return np.concatenate([first, second]), np.concatenate([second, np.roll(first, 1)])


def dearer_later(peel: Any, choose: Any, scores: Any, h: int, **more: Any) -> Any:
    turns = iter(range(1, h + 1))

    def chosen(left: Any, *, epsilon: Fraction, **rest: Any) -> int:
        return int(choose(left, epsilon=epsilon * next(turns), **rest))

    return peel(chosen, scores, h, **more)


def only_those_with_outliers(choose: Any, query: Any, scores: Any, unit: int, made: Any, noise: Any) -> Any:
    some = [place for place, score in enumerate(scores) if score > min(scores)] or list(range(len(scores)))
    return [some[at] for at in choose(query, [scores[place] for place in some], unit, made, noise)]


def noise_where_somebody_is(blur: Any, counts: Any, law: Any, noise: Any) -> Any:
    return np.where(counts > 0, blur(counts, law, noise), counts)


def one_noise_for_all_grids(blur: Any, counts: Any, law: Any, noise: Any) -> Any:
    first = blur(counts[:1], law, noise)
    return counts + (first - counts[:1])


def split_that_adds_up_to_more(split: Any, query: Any, n: int, dimension: int, labels: int = 0) -> Any:
    found = split(query, n, dimension, labels)
    return replace(found, counts=found.counts + Loss(found.threshold))


def widths_by_data(patch: pytest.MonkeyPatch) -> None:
    answer = detector.Detector.answer
    lay = detector.lay_grids

    def spied(query: Any, data: Any, noise: Any) -> Any:
        wide = 1 + 1e-6 * float(data.values.sum())
        patch.setattr(
            detector, "lay_grids", lambda spreads, *more: lay({at: wide * s for at, s in spreads.items()}, *more)
        )
        return answer(query, data, noise)

    patch.setattr(detector.Detector, "answer", spied)


class Quiet:
    """Noise on every other draw."""

    def __init__(self, noise: Any) -> None:
        self.noise, self.turn = noise, 0

    def laplace(self, scale_of_noise: Fraction) -> int:
        self.turn += 1
        drawn = self.noise.laplace(scale_of_noise)
        return drawn if self.turn % 2 else 0


class Echo:
    """Every other draw is the one before."""

    def __init__(self, noise: Any) -> None:
        self.noise, self.last = noise, None

    def laplace(self, scale_of_noise: Fraction) -> int:
        if self.last is None:
            self.last = self.noise.laplace(scale_of_noise)
            return int(self.last)
        drawn, self.last = self.last, None
        return int(drawn)


def through(noise_of: Any) -> Callable[..., Any]:
    return lambda answer, query, data, noise: answer(query, data, noise_of(noise))


def cap_by_data(by_margin: Any, table: Any, detector_of: Any, *, cap: Fraction, **more: Any) -> Any:
    return by_margin(table, detector_of, cap=cap, **more | {"epsilon": more["epsilon"] * (1 + Fraction(table.n, 1000))})


def first_rank(gaps: Any, counts: Any, *, rate: Fraction, noise: Any) -> tuple[int, int]:
    place = mechanism_choice._draw(np.maximum(gaps - gaps[counts > 0].min(), 0), counts, rate, noise)
    return place, 0


def unshuffled(scores: Any, *, sensitivity: int, epsilon: Fraction, noise: Any) -> int:
    unit = Fraction(epsilon) / (2 * max(1, sensitivity))
    gaps = mechanism_choice._gaps(scores, epsilon)
    mechanism_choice.note_choice(noise, "permute-and-flip", unit, gaps, [1] * len(gaps))
    heads = [noise.flip(unit * gap) for gap in gaps]
    return heads.index(True)


def noise_in_filled_cells(draws: Any, noise: Any, law: str, scale_of_noise: Any, size: int) -> Any:
    return np.concatenate([draws(noise, law, scale_of_noise, size - 1), [0]])


def one_secret_distance(
    decide: Any, found: Any, distances: Any, secret: Any, spent: int, noise: Any, **more: Any
) -> Any:
    return decide(found, distances, secret, spent, Echo(noise), **more)


def entry(place: Any, key: Any, value: Any) -> Mutate:
    return lambda patch: patch.setitem(place, key, value)


INVENTED: dict[str, tuple[str, str, Mutate]] = {
    # count
    "floor at the whole loss": (
        "count",
        "two-sided interval",
        put(two_sided.TwoSidedCount, "floor_noise", lambda query, *facts: noisy_count.count_noise(1, query.loss)),
    ),
    "floor moves by less": (
        "count",
        "two-sided interval",
        put(
            two_sided.TwoSidedCount,
            "floor_noise",
            lambda query, *facts: noisy_count.count_noise(0, query.loss_per_number),
        ),
    ),
    "noise by the data": ("count", "extension", wrap(at_radius, "noisy_steps", scale_by_data)),
    "no noise on sizes": ("count", "by group", put(by_group.CountByGroup, "size_law", property(sizes_without_noise))),
    "sizes at the whole loss": (
        "count",
        "by group",
        put(by_group.CountByGroup, "size_law", property(lambda query: calibrate(2, query.loss, step=Fraction(1)))),
    ),
    "a count claims ε²/8": ("count", "extension", put(count.Count, "claim", claiming(8))),
    "a count at a share at the whole loss": (
        "count",
        "at a share",
        wrap(
            at_share.CountAtShare,
            "at_radius",
            lambda at_radius, query, radius: replace(at_radius(query, radius), loss=query.loss),
        ),
    ),
    "ρ of groups without those that stay": (
        "count",
        "by group",
        put(by_group.CountByGroup, "rho_at", lambda query, n: Fraction(205, 1000) * query.loss.epsilon**2),
    ),
    # profile and radius
    "a curve's last number without noise": ("profile", "two radii", wrap(Cube, "draw", last_radius_without_noise)),
    "half as many draws as radii": ("profile", "two radii", wrap(Cube, "draw", half_the_draws)),
    "ρ of a radius halved": ("radius", "a radius", put(radius.Radius, "claim", claiming(16))),
    "errors of radii count twice": (
        "radius",
        "a radius",
        wrap(radii, "radius_errors", lambda errors, *asked: 2 * errors(*asked)),
    ),
    # scale
    "the pairing is told": ("scale", "spreads", telling_pairs),
    "the key of columns by the data": ("scale", "spreads of a random column", key_by_data(scale.Scale)),
    "locations begin at the least record": (
        "scale",
        "spreads and locations",
        wrap(scale.Scale, "cells", cells_by_data),
    ),
    "records in two pairs": ("scale", "spreads", wrap(scale, "pair_up", overlapping)),
    # subspaces
    "later choices are dearer": ("subspaces", "two subspaces", wrap(subspaces, "peel", dearer_later)),
    "ρ of permute-and-flip as of a choice by weights": (
        "subspaces",
        "a subspace",
        entry(choice._RANGES, "permute-and-flip", 8),
    ),
    "only subspaces with outliers": (
        "subspaces",
        "a subspace",
        wrap(subspaces.Subspaces, "choose", only_those_with_outliers),
    ),
    # detector and flags
    "no noise in empty cells": ("detector", "detector", wrap(detector, "blur", noise_where_somebody_is)),
    "one noise for all grids": ("detector", "detector", wrap(detector, "blur", one_noise_for_all_grids)),
    "a split that adds up to more": (
        "detector",
        "detector with a threshold",
        wrap(detector.Detector, "split", split_that_adds_up_to_more),
    ),
    "widths of grids by the data": ("detector", "detector", widths_by_data),
    "the key of grids by the data": ("detector", "detector", key_by_data(detector.Detector)),
    "Laplace noise for the root of the squares": (
        "detector",
        "detector at δ",
        wrap(detector, "calibrate_counts", lambda calibrated, moved, loss: calibrated(6, Loss(loss.epsilon))),
    ),
    "cells at ρ as if a record only left": (
        "detector",
        "detector at ρ",
        wrap(detector, "calibrate_counts", lambda calibrated, moved, loss: calibrated(moved // 2, loss)),
    ),
    "δ of cells forgotten": (
        "detector",
        "detector at δ",
        put(detector.Detector, "cost", lambda query: Loss(query.loss.amount)),
    ),
    "spreads at δ paid for with the counts": (
        "detector",
        "detector at δ",
        wrap(detector.Detector, "split", lambda split, query, *facts: replace(split(query, *facts), counts=query.loss)),
    ),
    "a choice at ρ as if it were pure": (
        "detector",
        "detector at ρ",
        wrap(detector.Detector, "_epsilon_of", lambda epsilon_of, query, part: 3 * epsilon_of(query, part)),
    ),
    "new counts without noise beside earlier ones that have it": (
        "detector",
        "detector that grows",
        wrap(detector, "blur", lambda blur, counts, law, noise: counts),
    ),
    "a detector that grows at twice its ε": (
        "detector",
        "detector that grows",
        wrap(
            detector.Detector,
            "split",
            lambda split, query, *facts: replace(half := split(query, *facts), counts=half.counts + half.counts),
        ),
    ),
    "others without noise": ("detector", "flags of groups", wrap(flags.Flags, "answer", through(Quiet))),
    "one draw for flagged and others": ("detector", "flags of groups", wrap(flags.Flags, "answer", through(Echo))),
    "ρ of a detector without its grids": (
        "detector",
        "detector",
        put(detector.Detector, "claim", claiming(32)),
    ),
    "ρ of flags halved": ("detector", "flags of groups", put(flags.Flags, "claim", claiming(8))),
    "a detector tells a record": (
        "detector",
        "detector by the schema",
        wrap(
            detector.Detector,
            "answer",
            lambda answer, query, data, noise: answer(query, data, noise) | {"total": float(data.values.sum())},
        ),
    ),
    "flags tell an exact size": (
        "detector",
        "flags of groups",
        wrap(
            flags.Flags,
            "answer",
            lambda answer, query, data, noise: [
                row | {"size": int(sum(held))}
                for row, held in zip(answer(query, data, noise), data.counts().tolist(), strict=True)
            ],
        ),
    ),
    # tally
    "running totals: the factor is forgotten": (
        "detector",
        "running totals",
        put(continual.Factorisation, "square", property(lambda factors: int(factors.steps[0]) ** 2)),
    ),
    "running totals: times taken for public": (
        "detector",
        "running totals",
        put(tally.Tally, "factors", property(lambda query: Factorisation(query.periods))),
    ),
    "running totals: a record in two periods": (
        "detector",
        "running totals",
        wrap(tally, "count_periods", lambda count, periods, numbers: np.cumsum(count(periods, numbers))),
    ),
    "running totals: beside them the exact one": (
        "detector",
        "running totals, a flag more",
        wrap(
            tally.Tally,
            "answer",
            lambda answer, query, data, noise: replace(
                answer(query, data, noise), rows=[{"flagged": int(data.counts().sum())}]
            ),
        ),
    ),
    # explain
    "each context at the whole loss": (
        "explain",
        "dp, two contexts",
        put(explain.Explain, "parts", lambda query: (query.loss.epsilon * query.doubt, query.loss.epsilon)),
    ),
    "contexts by the size of the table": (
        "explain",
        "dp, never none",
        wrap(dp, "draw_by_margin", cap_by_data),
    ),
    "ρ of none as of a choice": (
        "explain",
        "dp, none or a context",
        wrap(
            explain.Explain,
            "claim",
            lambda claim, query, facts: replace(claim(query, facts), rho=sum(part**2 for part in query.parts()) / 8),
        ),
    ),
    "no noise in the last cell": ("explain", "ocdp, guided", wrap(ocdp, "draws", noise_in_filled_cells)),
    # watch
    "deciding at the whole loss beside learning": (
        "watch",
        "event, by a season that is re-estimated",
        put(levels.EntryLevel, "deciding_epsilon", property(lambda level: level.loss.epsilon)),
    ),
    "learning at twice its part": (
        "watch",
        "event, by a season that is re-estimated",
        put(
            Relearning,
            "learner",
            property(
                lambda drift, learner=Relearning.learner: replace(learner.fget(drift), loss=Loss(2 * drift.epsilon))
            ),
        ),
    ),
    "paper: one draw for two distances": (
        "watch",
        "paper",
        wrap(detectors.PaperDetector, "decide", one_secret_distance),
    ),
    "a window claims too little": (
        "watch",
        "window of three",
        wrap(
            levels.WindowLevel,
            "claimed_loss",
            lambda loss, level: Loss(loss(level).amount / 2, neighbours=loss(level).neighbours),
        ),
    ),
    "a season's width at twice its part": (
        "watch",
        "baseline by season",
        wrap(estimates, "exponential", at_epsilon(2)),
    ),
    "a season's parts at more than all": (
        "watch",
        "baseline by season",
        entry(estimates.SHARES, "spread", Fraction(2, 5)),
    ),
    "a baseline claims ε²/8": ("watch", "baseline", put(baseline.Baseline, "claim", claiming(8))),
    "columns together: each at the whole part": (
        "watch",
        "baseline by season, columns together",
        wrap(
            estimates.Cells,
            "sum_up",
            lambda sum_up, cells, amounts, reach, epsilon, noise: sum_up(
                cells, amounts, reach, epsilon * Fraction(4, 3), noise
            ),
        ),
    ),
    # mechanisms
    "always the first of a level": ("scale", "spreads", put(together, "exponential_level", first_rank)),
    "permute-and-flip without a permutation": (
        "subspaces",
        "a subspace",
        entry(choice.CHOOSERS, "permute-and-flip", unshuffled),
    ),
}
