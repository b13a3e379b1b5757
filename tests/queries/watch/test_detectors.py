"""Detectors decide by the law that is proved: forced through every branch, and added up over every outcome."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from wallflower.errors import ParameterError
from wallflower.noise import system_noise
from wallflower.privacy import Loss
from wallflower.queries.watch.audit.oracle import law, loss_between
from wallflower.queries.watch.detectors import COARSE_STEPS, GaussianPerStep, PaperDetector, Sparse, Staircase
from wallflower.queries.watch.detectors.sparse import PassTable
from wallflower.queries.watch.detectors.staircase import WHOLE, Table

KINDS = [
    pytest.param({"two_sided": two_sided, "adaptive": adaptive}, id=f"{two_sided=}, {adaptive=}")
    for two_sided, adaptive in product((False, True), repeat=2)
]
NEVER, ALWAYS = WHOLE - 1, 0  # words


def sparse(**changes):
    return Sparse(**{"threshold": 10, "sensitivity": 5, "epsilon": Fraction(1), "cutoff": 1, **changes})


class Forced:
    """Says these words, and for draws these numbers; notes the scales it was asked for."""

    def __init__(self, words=(), draws=()):
        self.queue, self.draws, self.scales = list(words), list(draws), []

    def below(self, bound):
        assert bound == WHOLE
        return self.queue.pop(0)

    def laplace(self, scale):
        self.scales.append(scale)
        return self.draws.pop(0)

    gaussian = laplace


class Always(Forced):
    def below(self, bound):
        return self.queue[0]


# The oracle: a sparse vector as it is described, one observation after the other


def chances(detector, stream, secret):
    """The whole number out of 2^64 that each question of each observation passes with, in the order asked."""
    scale, fine, move = detector.scale, detector.fineness, detector.sensitivity
    for distance in stream:
        sides = (distance, -distance) if detector.two_sided else (abs(distance),)
        asked = []
        for side, above in zip(sides, secret, strict=True):
            gap = detector.threshold * fine // move + above - side * fine // move
            if detector.adaptive:
                asked.append((1, int(PassTable.of(2 * scale).probability(gap + math.ceil(4 * scale)) * WHOLE)))
            asked.append((2, int(PassTable.of(scale).probability(gap) * WHOLE)))
        yield asked


def outcomes(detector, stream, secret):
    """Every outcome of all questions: what they say, and with what probability."""
    asked = list(chances(detector, stream, secret))
    entries = [entry for questions in asked for _, entry in questions]
    for verdicts in product((True, False), repeat=len(entries)):
        pairs = zip(verdicts, entries, strict=True)
        weight = math.prod((entry if verdict else WHOLE - entry) / WHOLE for verdict, entry in pairs)
        if weight:
            grouped = [verdicts[i * len(asked[0]) : (i + 1) * len(asked[0])] for i in range(len(asked))]
            yield asked, grouped, weight


def reading(asked, grouped, limit):
    flags, spent = [], 0
    for questions, verdicts in zip(asked, grouped, strict=True):
        if spent >= limit - 1:
            break
        said = [cost for (cost, _), verdict in zip(questions, verdicts, strict=True) if verdict]
        flags.append(bool(said))
        spent += said[0] if said else 0
    return tuple(flags), spent


def words_for(detector, asked, grouped):
    """The last word that passes, or the first that does not, in the order `decide` draws them."""
    order = []
    for side in range(2 if detector.two_sided else 1):
        for cost in (2, 1) if detector.adaptive else (2,):
            for questions, verdicts in zip(asked, grouped, strict=True):
                each = len(questions) // (2 if detector.two_sided else 1)
                places = [side * each + i for i in range(each) if questions[side * each + i][0] == cost]
                entry, verdict = questions[places[0]][1], verdicts[places[0]]
                order.append(entry - 1 if verdict else entry)
    return order


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cutoff", [1, 2])
def test_decisions_follow_the_questions_word_by_word(kind, cutoff):
    detector = sparse(**kind, cutoff=cutoff, epsilon=Fraction(3))
    most = {0: 4, 1: 3, 2: 2}[sum(kind.values())]
    for stream in ((9, -9, 3)[:most], (-4, 12), (0, 10, 7, 30)[:most]):
        for secret in product((0, 37), repeat=2 if detector.two_sided else 1):
            for asked, grouped, _ in outcomes(detector, stream, secret):
                noise = Forced(words_for(detector, asked, grouped))
                found = detector.decide(np.array(stream), secret, 0, noise)
                flags, spent = reading(asked, grouped, 2 * cutoff)
                assert (tuple(found.flags.tolist()), found.spent, found.count) == (flags, spent, len(flags))
                assert noise.queue == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("cutoff", "stream"), [(1, (9, -12)), (2, (12, 9, -7)), (2, (-11, 4)), (1, (30,))])
def test_the_law_of_outcomes_is_that_of_the_questions_under_every_secret(kind, cutoff, stream):
    detector = sparse(**kind, cutoff=cutoff, epsilon=Fraction(500 if all(kind.values()) else 200))
    stream = stream[: 2 if all(kind.values()) else 3]
    script = Forced(draws=[0, 0])
    secrets = detector.secret(script)
    keep = [math.exp(-1 / scale) for scale in script.scales]
    expected = {}
    for secret in product(range(math.ceil(45 / -math.log(max(keep)))), repeat=len(secrets)):
        chance = math.prod((1 - k) * k**t for k, t in zip(keep, secret, strict=True))
        if chance > 1e-18:
            for asked, grouped, weight in outcomes(detector, stream, secret):
                flags, _ = reading(asked, grouped, 2 * cutoff)
                expected[flags] = expected.get(flags, 0.0) + chance * weight
    found = law(detector, stream)
    assert sum(found.values()) == pytest.approx(1, rel=1e-12)
    for flags in found.keys() | expected.keys():
        assert found.get(flags, 0.0) == pytest.approx(expected.get(flags, 0.0), rel=1e-9, abs=1e-15)


# Privacy, over all neighbours


def worst(detector, starts, length, steps):
    laws, largest = {}, 0.0
    for stream, moved in product(product(starts, repeat=length), product(steps, repeat=length)):
        other = tuple(a + b for a, b in zip(stream, moved, strict=True))
        for each in (stream, other):
            laws[each] = laws.get(each) or law(detector, each)
        largest = max(largest, loss_between(laws[stream], laws[other])[0])
    return largest


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cutoff", [1, 2])
@pytest.mark.parametrize("epsilon", ["1/2", "3"])
def test_one_person_over_the_whole_stream_is_within_epsilon(kind, cutoff, epsilon):
    detector = sparse(**kind, cutoff=cutoff, epsilon=Fraction(epsilon))
    steps = (0, 2, 5) if detector.two_sided else (-5, -1, 0, 5)
    starts = (-14, -8, 9) if detector.two_sided else (3, 9, 16)
    found = worst(detector, starts, 2, steps)
    assert 0.35 * float(detector.epsilon) < found <= float(detector.epsilon) * (1 + 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS[:3])
@pytest.mark.parametrize("cutoff", [1, 2])
def test_so_are_streams_of_four(kind, cutoff):
    detector = sparse(**kind, cutoff=cutoff)
    steps, starts = ((0, 5), (-12, 9)) if detector.two_sided else ((-5, 5), (5, 10))
    assert 0.6 < worst(detector, starts, 4, steps) <= 1 + 1e-12


def test_the_plain_bound_is_reached():
    assert worst(sparse(), (5, 10), 3, (-5, 0, 5)) > 1 - 1e-9


def test_a_change_of_both_signs_is_not_what_monotone_protects_from():
    assert worst(sparse(two_sided=True), (30, 35), 2, (0, 5)) < 1
    assert worst(sparse(two_sided=True), (30, 35), 2, (-5, 5)) > 1.4


def test_a_change_of_more_than_a_move_is_not_protected():
    assert worst(sparse(), (5, 11), 2, (-6, 6)) > 1.1


@pytest.mark.parametrize("epsilon", ["1/10", "1", "4"])
def test_one_entry_changes_the_staircase_by_epsilon_and_no_more(epsilon):
    epsilon = Fraction(epsilon)
    detector, table = Staircase(threshold=10, sensitivity=5, epsilon=epsilon), Table.of(epsilon)
    for stream in product((-16, 3, 9, 14), repeat=2):
        steps = [(abs(distance) - 10) // 5 + 1 for distance in stream]
        for flags, chance in law(detector, stream).items():
            odds = [table.probability(k) for k in steps]
            parts = [p if flag else 1 - p for p, flag in zip(odds, flags, strict=True)]
            assert chance == pytest.approx(float(parts[0] * parts[1]), rel=1e-14)
    losses = [
        loss_between(law(detector, (9, start)), law(detector, (9, start + step)))[0]
        for start in range(-12, 30)
        for step in (-5, -2, 1, 5)
    ]
    assert max(losses) == pytest.approx(float(epsilon), rel=1e-9)
    assert max(losses) <= float(epsilon) * (1 + 1e-12)


def test_the_printed_algorithm_costs_one_entry_its_epsilon_for_all_flags():
    detector = PaperDetector(threshold=10, sensitivity=5, epsilon=Fraction(1, 2))
    losses = [
        loss_between(law(detector, (9, start, 11)), law(detector, (9, start + step, 11)))[0]
        for start in (0, 9, 25)
        for step in (-5, 5)
    ]
    assert 0.45 < max(losses) <= 0.5 * (1 + 1e-12)


# When it ends


@pytest.mark.parametrize("kind", KINDS[::2])
@pytest.mark.parametrize("cutoff", [1, 3])
def test_near_flags_exhaust_after_the_cutoff(kind, cutoff):
    detector, far = sparse(**kind, cutoff=cutoff), 10**6
    found = detector.decide(np.full(20, 40), (1,) * (1 + kind["two_sided"]), 0, Always([ALWAYS]))
    assert (found.count, found.flags.tolist(), found.spent) == (cutoff, [True] * cutoff, 2 * cutoff)
    quiet = detector.decide(np.array([0, 0, far, 0, far, far]), (0,) * (1 + kind["two_sided"]), 0, Always([NEVER]))
    assert quiet.count == {1: 3, 3: 6}[cutoff]
    assert quiet.flags.sum() == cutoff
    after = detector.decide(np.array([far]), (0,) * (1 + kind["two_sided"]), quiet.spent, Always([ALWAYS]))
    assert (after.count, after.spent) == (0, 2 * cutoff)


@pytest.mark.parametrize("cutoff", [1, 2, 5])
def test_far_flags_cost_half_and_another_near_one_is_always_affordable(cutoff):
    detector = sparse(cutoff=cutoff, adaptive=True)
    found = detector.decide(np.full(20, 10**6), (0,), 0, Always([NEVER]))
    assert (found.count, found.spent) == (2 * cutoff - 1, 2 * cutoff - 1)
    assert detector.decide(np.full(5, 10**6), (0,), found.spent, Always([ALWAYS])).count == 0


@pytest.mark.parametrize("spent", [0, 1, 2, 3, 4])
def test_what_is_spent_counts_in_the_next_batch(spent):
    found = sparse(cutoff=2, adaptive=True).decide(np.array([10**6] * 3), (0,), spent, Always([NEVER]))
    assert found.count == max(0, 3 - spent)
    assert found.spent == max(3, spent)


def test_batches_decide_as_one_stream_does():
    detector, draw = sparse(cutoff=4), np.random.default_rng(3)
    stream, words = draw.integers(-8, 12, 40), draw.integers(0, 2**64, 40, dtype=np.uint64).tolist()
    whole = detector.decide(stream, (5,), 0, Forced(words))
    assert 4 < whole.count < 40
    flags, spent = [], 0
    for start in range(0, 40, 7):
        part = detector.decide(stream[start : start + 7], (5,), spent, Forced(words[start : start + 7]))
        flags, spent = flags + part.flags.tolist(), part.spent
    assert (flags, spent) == (whole.flags.tolist(), whole.spent)


@pytest.mark.parametrize("kind", KINDS)
def test_never_more_flags_than_the_cutoff_allows(kind):
    detector = sparse(**kind, cutoff=3, epsilon=Fraction(5))
    draw, most = np.random.default_rng(), 0
    for _ in range(200):
        noise = system_noise()
        found = detector.decide(draw.integers(-30, 30, 60), detector.secret(noise), 0, noise)
        most = max(most, int(found.flags.sum()))
        assert found.count == 60 or found.flags[-1]
        assert found.spent <= detector.limit
    assert most == 3 if not detector.adaptive else 3 < most <= 5


# What is drawn


@pytest.mark.parametrize(("cutoff", "two_sided", "moves"), [(1, False, 2), (10, False, 20), (10, True, 10)])
def test_scales_are_those_of_the_proof(cutoff, two_sided, moves):
    detector, noise = sparse(cutoff=cutoff, two_sided=two_sided), Forced(draws=[-3, 4, 7])
    threshold, flags = detector.parts
    assert threshold + flags == 1
    assert float(flags / threshold) == pytest.approx(moves ** (2 / 3))
    assert detector.scale == moves * detector.fineness / flags
    assert detector.secret(noise) == ((4, 7) if two_sided else (4,))
    assert set(noise.scales) == {detector.fineness / threshold}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("epsilon", "cutoff"), [("1/100", 1), ("1", 2000), ("1/2", 500), ("1000000", 1)])
def test_noise_fits_its_table_at_any_loss(kind, epsilon, cutoff):
    detector = sparse(**kind, epsilon=Fraction(epsilon), cutoff=cutoff)
    assert 1 <= detector.fineness <= COARSE_STEPS
    assert detector.scale >= cutoff * detector.fineness / detector.epsilon
    wide = detector.scale * (2 if detector.adaptive else 1)
    assert Fraction(1, 64) <= wide <= 44_444


def test_a_huge_loss_still_decides():
    detector, noise = sparse(epsilon=Fraction(10**6), cutoff=2), system_noise()
    found = detector.decide(np.array([0, 9, 10, 3, 11, 50]), detector.secret(noise), 0, noise)
    assert found.flags.tolist() == [False, False, True, False, True]


def test_more_noise_than_a_table_holds_is_refused():
    with pytest.raises(ParameterError, match="Lower the cutoff"):
        sparse(epsilon=Fraction(1, 1000), cutoff=10**6)


def test_scores_are_steps_with_one_draw_each_and_flags_follow_from_them():
    detector, noise = (
        Staircase(threshold=10, sensitivity=5, epsilon=Fraction(1, 3), scores=True),
        Forced(draws=[0, -1, 2, 0]),
    )
    found = detector.decide(np.array([10, 10, 0, -15]), (), 0, noise)
    assert found.scores.tolist() == [1, 0, 1, 2]
    assert found.flags.tolist() == [True, False, True, True]
    assert noise.scales == [3, 3, 3, 3]
    assert (detector.secret(noise), detector.limit, found.spent) == ((), None, 0)


@pytest.mark.parametrize("steps", [None, 3])
def test_gaussian_noise_is_calibrated_to_a_move_and_ends_after_its_steps(steps):
    detector = GaussianPerStep(threshold=10, sensitivity=5, loss=Loss.zcdp("1/8"), steps=steps)
    noise = Forced(draws=[0, -1, 64, 63, 0])
    found = detector.decide(np.array([10, 10, 5, -5, 99]), (), 0, noise)
    assert found.flags.tolist() == [True, False, True, False, True][: steps or 5]
    assert found.spent == (steps or 0)
    assert [float(scale) for scale in noise.scales] == pytest.approx(
        [COARSE_STEPS * 2] * (steps or 5)
    )  # move / sqrt(2 rho)
    assert min(noise.scales) >= COARSE_STEPS * 2
    assert detector.decide(np.array([99]), (), found.spent, Forced(draws=[0])).count == (0 if steps else 1)


def test_the_printed_noise_is_the_papers():
    """Lap(2 rho / ε) on the threshold and Lap(4 rho / ε) on a distance, where the paper's ε is four of ours."""
    detector, noise = PaperDetector(threshold=10, sensitivity=5, epsilon=Fraction(1, 2)), Forced(draws=[-7, 0, -8, -7])
    secret = detector.secret(noise)
    found = detector.decide(np.array([9, 10, -10]), secret, 0, noise)
    assert (secret, noise.scales) == ((-7,), [COARSE_STEPS, 2 * COARSE_STEPS, 2 * COARSE_STEPS, 2 * COARSE_STEPS])
    assert found.flags.tolist() == [False, False, True]
    assert detector.limit is None


def test_the_question_that_costs_half_has_twice_the_noise(monkeypatch):
    asked = []
    made = PassTable.of
    monkeypatch.setattr(PassTable, "of", staticmethod(lambda scale: asked.append(scale) or made(scale)))
    detector = sparse(adaptive=True)
    detector.decide(np.array([0]), (0,), 0, system_noise())
    assert asked == [detector.scale, 2 * detector.scale]
