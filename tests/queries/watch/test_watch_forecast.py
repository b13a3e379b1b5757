"""What a plan promises is what comes out: rates of random watches whose bounds clip, and the laws they are made of."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from wallflower import Ledger, Loss, Points, Schema, Watch, release
from wallflower.errors import ParameterError
from wallflower.noise import SystemNoise
from wallflower.queries.watch.detectors import GaussianPerStep, PaperDetector, Sparse, Staircase
from wallflower.queries.watch.detectors.sparse import PassTable
from wallflower.queries.watch.detectors.staircase import Table
from wallflower.queries.watch.forecast.plan import sample_population
from wallflower.queries.watch.forecast.rates import rates

SETTINGS = 50
SURE = 5.0  # standard errors; the draws below are the same every time
MODES: dict[str, dict[str, Any]] = {
    "event": {},
    "scores": {"scores": True},
    "paper": {"level": "paper"},
    "person": {"level": "person"},
    "monotone": {"level": "person", "monotone": True},
    "adaptive": {"level": "person", "adaptive": True},
    "both": {"level": "person", "monotone": True, "adaptive": True},
    "window": {"level": "window", "window": 3},
    "window, gaussian": {"level": "window", "window": 5},
    "gaussian": {"level": "person"},
}
SHARED = ("paper", "person", "monotone", "adaptive", "both")  # what is drawn once is drawn anew for every run
STATISTICS = ("sum", "weighted", "mahalanobis", "max")
PAIRS = [(mode, statistic) for mode in MODES for statistic in STATISTICS]


class SameNoise(SystemNoise):
    """The laws of the system's noise, the same draws every time."""

    def __init__(self, seed: int) -> None:
        self.draw = np.random.default_rng(seed)

    def words(self, size: int) -> Any:
        return self.draw.integers(0, 2**64, size, dtype=np.uint64)

    def laplaces(self, scale: Fraction, size: int) -> Any:
        falls = self.draw.geometric(-math.expm1(-1 / float(scale)), (2, size))
        return falls[0] - falls[1]

    def gaussians(self, scale: Fraction, size: int) -> Any:
        reach = math.ceil(10 * scale) + 1
        whole = np.arange(-reach, reach + 1)
        masses = np.exp(-(whole**2) / (2 * float(scale) ** 2))
        return whole[np.searchsorted(np.cumsum(masses) / masses.sum(), self.draw.random(size))]

    def laplace(self, scale: Fraction) -> int:
        return int(self.laplaces(scale, 1)[0])

    def gaussian(self, scale: Fraction) -> int:
        return int(self.gaussians(scale, 1)[0])


def covariance_of(draw: Any, columns: int) -> Any:
    """Any correlation, spreads that differ by some."""
    mixed = draw.normal(size=(columns, columns + 1))
    return mixed @ mixed.T / columns + 0.05 * np.eye(columns)


def random_watch(seed: int, mode: str, statistic: str) -> Watch:
    """Bounds that clip entries within one or two of their deviations, a threshold within reach, any loss."""
    draw = np.random.default_rng(seed)
    if MODES[mode].get("monotone") and statistic in ("mahalanobis", "max"):
        statistic = "sum"
    columns = int(draw.integers(1, 7))
    covariance, mean = covariance_of(draw, columns), draw.normal(0, 1, columns)
    spread = math.sqrt(np.diag(covariance).mean())
    weights = draw.uniform(0.3, 1.5, columns) * (1 if "monotone" in MODES[mode] else draw.choice([-1, 1], columns))
    amount = f"{math.exp(draw.uniform(math.log(0.4), math.log(8))):.3f}"
    loss = Loss.zcdp(amount) if mode.endswith("gaussian") else Loss(amount)
    own = {"cutoff": int(draw.integers(3, 9))} if MODES[mode].get("level") == "person" else {}
    if mode == "gaussian":
        own |= {"steps": 60_000, "loss": Loss.zcdp(str(600 * float(amount)))}
    public: dict[str, Any] = {
        "statistic": statistic,
        "low": float(mean.min() - draw.uniform(0.7, 2.0) * spread),
        "high": float(mean.max() + draw.uniform(0.7, 2.0) * spread),
        "mean": tuple(mean.tolist()),
        "covariance": tuple(map(tuple, covariance.tolist())),
        "loss": loss,
        "threshold": 0.1,
        **({"weights": tuple(weights.tolist())} if statistic == "weighted" else {}),
        **MODES[mode],
        **own,
    }
    if statistic in ("sum", "weighted") and draw.random() < 0.5:
        factors = weights if statistic == "weighted" else np.ones(columns)
        public["centre"] = float(factors @ mean + draw.normal(0, 0.3) * spread)
    made = Watch(**public).statistic_on(columns)
    if draw.random() < 0.5:
        public["change"] = float(draw.uniform(0.05, 0.5) * (public["high"] - public["low"]))
    distances = np.abs(made.measure(draw.multivariate_normal(mean, covariance, 2000))) * made.step
    public["threshold"] = float(np.quantile(distances, draw.uniform(0.6, 0.97)))
    if draw.random() < 0.5:
        public["outlier_from"] = float(public["threshold"] * draw.uniform(0.8, 1.2))
    return Watch(**public)


def raw_statistic(query: Watch, rows: Any) -> Any:
    """What decides whether an observation is an outlier: its entries as they are, not clipped."""
    columns = rows.shape[1]
    off = rows - np.array(query.mean)
    if query.statistic == "mahalanobis":
        return np.sqrt(np.einsum("ij,jk,ik->i", off, np.linalg.inv(query.covariance), off))
    if query.statistic == "max":
        return np.max(np.abs(off) / np.sqrt(np.diag(query.covariance)), axis=1)
    weights = np.array(query.weights or (1.0,) * columns)
    centre = weights @ np.array(query.mean) if query.centre is None else query.centre
    return np.abs(rows @ weights - centre)


def simulated(query: Watch, mode: str, seed: int, size: int) -> Any:
    """Of outliers and of others: the share flagged, and its standard error over runs."""
    draw, noise = np.random.default_rng(seed), SameNoise(seed)
    runs = size // query.cutoff // 4 if mode in SHARED else 1
    rows = draw.multivariate_normal(query.mean, query.covariance, runs * query.cutoff if runs > 1 else size)
    is_outlier = raw_statistic(query, rows) >= (query.outlier_from or query.threshold)
    flags = np.zeros(len(rows), dtype=bool)
    for places in np.array_split(np.arange(len(rows)), runs):
        found = query.answer(query.view(Points.from_array(rows[places])), noise)
        assert found["decided"] == len(places)
        flags[places[np.array(found["flagged"], dtype=int) - 1]] = True
    told = {}
    for name, crowd in (("true_positive", is_outlier), ("false_positive", ~is_outlier)):
        share, total = flags[crowd].mean(), crowd.sum()
        excess = np.where(crowd, flags - share, 0.0)
        by_run = excess.reshape(runs, -1).sum(axis=1) if runs > 1 else excess
        told[name] = share, max(math.sqrt(np.sum(by_run**2)), 1.0) / total
    return told


def worst(place: int, size: int = 20_000) -> float:
    """By how many standard errors plan and simulation differ, at most."""
    mode, statistic = PAIRS[(7 * place) % len(PAIRS)]
    query = random_watch(place, mode, statistic)
    figures = query.plan(n=size, dimension=len(query.mean)).options[0].figures
    told = simulated(query, mode, 1000 + place, size)
    return max(abs(figures[name] - share) / error for name, (share, error) in told.items())


@pytest.mark.slow
@pytest.mark.parametrize(  # the first go through every mode with every statistic once
    "place", [pytest.param(place, marks=() if place < len(PAIRS) else pytest.mark.heavy) for place in range(SETTINGS)]
)
def test_planned_and_simulated_rates_agree_where_bounds_clip(place: int) -> None:
    assert worst(place) <= SURE


# The laws of detectors, against sums over everything that can be drawn

PUBLIC: dict[str, Any] = {"threshold": 1000, "sensitivity": 300}
DISTANCES = np.array([0, 1, 399, 400, 699, 700, 999, 1000, 1001, 1299, 1300, 2500, 10**6])


def geometric_law(scale: Fraction) -> Any:
    decay = math.exp(-1 / scale)
    chances = (1 - decay) * decay ** np.arange(math.ceil(60 * scale))
    return chances / chances.sum()


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(7)])
def test_the_staircase_flags_as_its_table_says(epsilon: Fraction) -> None:
    detector = Staircase(**PUBLIC, epsilon=epsilon)
    stairs = (DISTANCES - 1000) // 300 + 1
    expected = [float(Table.of(epsilon).probability(int(step))) for step in stairs]
    assert detector.law()(DISTANCES) == pytest.approx(expected, abs=1e-12)
    assert replace(detector, scores=True).law()(-DISTANCES) == pytest.approx(expected, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize(("epsilon", "cutoff"), [(Fraction(6), 1), (Fraction(20), 3)])
def test_the_sparse_vector_flags_as_its_tables_say(
    epsilon: Fraction, cutoff: int, two_sided: bool, adaptive: bool
) -> None:
    detector = Sparse(**PUBLIC, epsilon=epsilon, cutoff=cutoff, two_sided=two_sided, adaptive=adaptive)
    fine, secrets = detector.fineness, geometric_law(detector.fineness / detector.parts[0])

    def passes(distance: int) -> float:
        gaps = 1000 * fine // 300 + np.arange(len(secrets)) - distance * fine // 300
        near = np.array([float(PassTable.of(detector.scale).probability(int(gap))) for gap in gaps])
        far = np.zeros(len(gaps))
        if adaptive:
            beyond = gaps + math.ceil(4 * detector.scale)
            far = np.array([float(PassTable.of(2 * detector.scale).probability(int(gap))) for gap in beyond])
        return float(secrets @ (near + far - near * far))

    near, both = [passes(abs(int(d))) for d in DISTANCES], DISTANCES
    expected = [1 - (1 - passes(int(d))) * (1 - passes(-int(d))) for d in both] if two_sided else near
    assert detector.law()(DISTANCES) == pytest.approx(expected, abs=1e-9)


def test_a_run_of_the_sparse_vector_has_the_threshold_that_was_drawn() -> None:
    detector = Sparse(**PUBLIC, epsilon=Fraction(3), cutoff=2)
    scale = detector.fineness / detector.parts[0]
    drawn = np.concatenate([[-math.log(1 - quantile) * float(scale)] for quantile in (0.05, 0.95)])
    for quantile, risen in zip((0.05, 0.95), drawn, strict=True):
        law = detector.law_in_run(quantile)
        assert law is not None
        gaps = 1000 * detector.fineness // 300 + math.floor(risen) - DISTANCES * detector.fineness // 300
        expected = [float(PassTable.of(detector.scale).probability(int(gap))) for gap in gaps]
        assert law(DISTANCES) == pytest.approx(expected, abs=1e-12)
    assert Staircase(**PUBLIC, epsilon=Fraction(1)).law_in_run(0.5) is None


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(5), Fraction(200)])
def test_the_printed_algorithm_flags_as_its_two_draws_say(epsilon: Fraction) -> None:
    detector = PaperDetector(**PUBLIC, epsilon=epsilon)
    reach = math.ceil(40 * 64 / epsilon) + 10

    def law(scale: Fraction) -> Any:
        masses = np.exp(-np.abs(np.arange(-reach, reach + 1)) / float(scale))
        return masses / masses.sum()

    both = np.convolve(law(64 / epsilon), law(32 / epsilon))
    tails = np.cumsum(both[::-1])[::-1]
    least = 1000 * 64 // 300 - DISTANCES * 64 // 300
    expected = tails[np.clip(least + 2 * reach, 0, len(tails) - 1)]
    assert detector.law()(DISTANCES)[:-1] == pytest.approx(expected[:-1], abs=1e-9)
    median = detector.law_in_run(0.5)
    assert median is not None
    single = np.cumsum(law(64 / epsilon)[::-1])[::-1]
    assert median(DISTANCES)[:-1] == pytest.approx(single[np.clip(least + reach, 0, 2 * reach)][:-1], abs=1e-9)


@pytest.mark.parametrize("rho", ["1/2", "50", "5000"])
def test_gaussian_noise_flags_as_its_draws_say(rho: str) -> None:
    detector = GaussianPerStep(**PUBLIC, loss=Loss.zcdp(rho))
    scale = 64 / math.sqrt(2 * float(Fraction(rho)))
    whole = np.arange(-20_000, 20_001)
    masses = np.exp(-(whole**2) / (2 * scale**2))
    least = 1000 * 64 // 300 - DISTANCES * 64 // 300
    expected = [masses[whole >= gap].sum() / masses.sum() for gap in least]
    assert detector.law()(DISTANCES) == pytest.approx(expected, abs=2e-5)


# Who is an outlier under the stated Gaussian


def population_of(query: Watch, dimension: int) -> Any:
    return sample_population(query.forecast(dimension).model)


def seen_by(**public: Any) -> Any:
    query = Watch(**{"threshold": 1.5, "low": -3.0, "high": 3.0, "loss": Loss("1"), **public})
    return population_of(query, len(query.mean or (0.0,)))


def test_shares_of_outliers_are_those_of_the_null_laws() -> None:
    unit = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    public = {"mean": (0.0,) * 3, "covariance": unit}
    one = math.erf(1.5 / math.sqrt(2))
    assert seen_by(variance=1.0).share == pytest.approx(1 - one, rel=1e-9)
    assert seen_by(**public).share == pytest.approx(1 - math.erf(1.5 / math.sqrt(6)), rel=1e-9)
    assert seen_by(variance=1.0, mean=(0.4,), centre=0.0).share == pytest.approx(0.13567 + 0.02872, abs=1e-5)
    chi = math.erfc(1.5 / math.sqrt(2)) + math.sqrt(2 / math.pi) * 1.5 * math.exp(-(1.5**2) / 2)
    assert seen_by(**public, statistic="mahalanobis").share == pytest.approx(chi, rel=1e-9)
    assert seen_by(**public, statistic="max").share == pytest.approx(1 - one**3, rel=2e-3)


def test_the_largest_of_entries_that_move_together_is_that_of_one() -> None:
    together = ((1.0, 1 - 1e-9), (1 - 1e-9, 1.0))
    found = seen_by(mean=(0.0, 0.0), covariance=together, statistic="max").share
    assert found == pytest.approx(math.erfc(1.5 / math.sqrt(2)), rel=1e-3)


@pytest.mark.parametrize("statistic", ["sum", "mahalanobis", "max"])
def test_crowds_are_on_their_own_side_where_nothing_clips(statistic: str) -> None:
    covariance = ((1.0, 0.6), (0.6, 2.0))
    query = Watch(
        threshold=1.5, low=-60.0, high=60.0, statistic=statistic, mean=(1.0, -1.0), covariance=covariance,
        loss=Loss("1"),
    )  # fmt: skip
    seen, step = population_of(query, 2), query.statistic_on(2).step
    assert np.abs(seen.outliers.distances).min() * step >= 1.5 - 2 * step
    assert np.abs(seen.others.distances).max() * step <= 1.5 + 2 * step
    for crowd in (seen.outliers, seen.others):
        assert crowd.weights.sum() == pytest.approx(1)
        assert 2000 < len(crowd.thin(4096).distances) <= 5000


def test_entries_may_depend_on_each_other_wholly() -> None:
    same = Watch(
        threshold=3.0, low=-5.0, high=5.0, mean=(0.0, 0.0), covariance=((1.0, 1.0), (1.0, 1.0)), loss=Loss("2")
    )
    single = Watch(threshold=1.5, low=-5.0, high=5.0, variance=1.0, loss=Loss("2"), change=5.0)
    assert population_of(same, 2).share == pytest.approx(population_of(single, 1).share, rel=1e-9)


# What is told


def plan(dimension: int = 1, **public: Any) -> Any:
    given = {"threshold": 9130.0, "low": -1e5, "high": 1e5, "change": 500.0, "variance": 3.01e7, "loss": Loss("1")}
    return Watch(**{**given, **public}).plan(n=1000, dimension=dimension)


def test_without_clipping_it_is_the_closed_form() -> None:
    figures = plan().options[0].figures
    found = rates("staircase", variance=3.01e7, truth=9130, threshold=9130, rho=500, epsilon=1)
    assert figures["true_positive"] == pytest.approx(found.true_positive, abs=2e-4)
    assert figures["false_positive"] == pytest.approx(found.false_positive, abs=2e-5)
    share = math.erfc(9130 / math.sqrt(2 * 3.01e7))
    right = share * found.true_positive / (share * found.true_positive + (1 - share) * found.false_positive)
    assert figures["right"] == pytest.approx(right, abs=1e-3)


def test_a_threshold_out_of_reach_is_refused_before_the_charge(tmp_path: Any) -> None:
    """The sum of thirty entries from 326.6 to 826.6 is never further than 7,502 from 17,300."""
    query = Watch(threshold=9130.0, low=326.6, high=826.6, centre=17300.0, variance=3.01e7, loss=Loss("1"))
    with pytest.raises(ParameterError, match=r"9130 cannot be reached.* more than 7502 from the centre"):
        query.plan(n=1000, dimension=30)
    points = Points.from_array(np.full((5, 30), 500.0), name="meters")
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.grant("meters", Loss("9"), by="owner")
        with pytest.raises(ParameterError, match="cannot be reached"):
            release(query, points, ledger)
        assert ledger.history("meters", event="charge") == []
    assert not replace(query, threshold=7501.0).plan(n=1000, dimension=30).useful


@pytest.mark.parametrize("statistic", STATISTICS)
def test_what_is_refused_as_out_of_reach_is_out_of_reach(statistic: str) -> None:
    draw = np.random.default_rng(4)
    for seed in range(20):
        query = random_watch(seed, "event", statistic)
        made = query.statistic_on(len(query.mean or ()))
        corners = np.where(draw.random((4000, len(query.mean or ()))) < 0.5, query.low, query.high)
        found = np.abs(made.measure(corners)).max()
        assert found <= made.max_distance <= found + 2 or len(query.mean or ()) > 10


def test_better_than_a_coin_is_asked_twice() -> None:
    """73 % found at 27 % false alarms is no use; nor are flags most of which are false."""
    coin = Watch(threshold=2.0, low=-5.0, high=5.0, variance=2.0, loss=Loss("1")).plan(n=1000, dimension=1)
    assert coin.options[0].figures["true_positive"] == pytest.approx(0.731, abs=0.001)
    assert coin.options[0].figures["false_positive"] == pytest.approx(0.269, abs=0.001)
    assert not coin.useful
    rare = plan(threshold=5 * 5486.0, change=4000.0)
    assert rare.options[0].figures["true_positive"] - rare.options[0].figures["false_positive"] > 0.7
    assert rare.options[0].figures["right"] < 0.01
    assert not rare.useful
    assert plan(threshold=5 * 5486.0, change=4000.0, outlier_share=0.05).useful


def test_a_stated_share_of_outliers_counts_instead_of_the_gaussian() -> None:
    by_half = plan(outlier_share=0.5).options[0].figures
    assert by_half["right"] == pytest.approx(
        by_half["true_positive"] / (by_half["true_positive"] + by_half["false_positive"])
    )
    for share in (0.0, 1.0, math.nan):
        with pytest.raises(ParameterError, match="outlier_share"):
            plan(outlier_share=share)


def test_a_plan_says_what_it_assumes() -> None:
    stated = {"mean": (0.0, 0.0), "covariance": ((1.0, 0.3), (0.3, 1.0)), "variance": None}
    small = {"threshold": 2.0, "low": -3.0, "high": 3.0, "change": 0.5, "dimension": 2}
    assert (
        "assumed: entries are Gaussian, independent and spread alike, their means"
        in plan(**small | {"variance": 2.6}).verdict
    )
    assert "assumed" not in plan(**small, **stated).verdict
    with pytest.raises(ParameterError, match="Omit one of them"):
        plan(**small, **stated | {"variance": 2.0})


def test_columns_that_hardly_have_one_unit_are_warned_about() -> None:
    bounds = {"age": (0, 120), "income": (0, 100_000)}
    raw = Points.from_array(np.ones((5, 2)), schema=Schema.of(["age", "income"], bounds=bounds))
    scaled = Points.from_array(
        np.ones((5, 2)), schema=Schema.of(["age", "income"], bounds=bounds, scale={"age": 20, "income": 20_000})
    )
    query = Watch(threshold=2.0, loss=Loss("1"))
    warning, *_ = query.cautions(raw)
    assert "their public ranges differ by a factor of 833" in warning
    assert not any("differ" in note for note in query.cautions(scaled))
    weighted = replace(query, statistic="weighted", weights=(800.0, 1.0))
    assert not any("differ" in note for note in weighted.cautions(raw))
    spread = replace(query, low=0.0, high=100_000.0, covariance=((1.0, 0.0), (0.0, 400.0)))
    assert "their stated spreads differ by a factor of 20" in spread.cautions(raw)[0]
    largest = replace(spread, statistic="max", mean=(0.0, 0.0))
    assert not any("differ" in note for note in largest.cautions(raw))


def test_where_nothing_is_stated_it_is_told_what_holds_whatever_is_watched() -> None:
    unknown = plan(variance=None, low=-5.0, high=5.0, change=None, threshold=2.0)
    figures = unknown.options[0].figures
    assert figures == pytest.approx({"found": 0.7311, "alarms": 0.2689}, abs=1e-4)
    assert not unknown.useful  # 73 % against 27 % is all there can be
    assert "for any data" in unknown.verdict
    fine = plan(variance=None, low=-5.0, high=5.0, change=0.1, threshold=2.0)
    assert fine.useful
    assert fine.verdict.startswith("check first")
    assert "state its variance" in fine.conditions[0]
    assert plan(variance=None, low=None, high=None, change=None, threshold=2.0).useful


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_plan_is_quick(mode: str) -> None:
    query = random_watch(11, mode, "sum")
    query.plan(n=1000, dimension=len(query.mean or ()))  # what is slow to import is there now
    sample_population.cache_clear()
    begun = time.process_time()
    query.plan(n=1000, dimension=len(query.mean or ()))
    assert time.process_time() - begun < 5  # about 0.2


@pytest.mark.parametrize(
    ("public", "label"),
    [
        ({}, "low noise"),
        ({"loss": Loss("0.3")}, "moderate noise"),
        ({"loss": Loss("0.01")}, "mostly noise"),
        ({"variance": None}, "check first"),
        ({"variance": None, "change": None, "low": -9e3, "high": 9e3, "threshold": 9e3}, "mostly noise"),
    ],
)
def test_a_release_says_how_far_its_flags_can_be_relied_on(public: Any, label: str) -> None:
    given = {"threshold": 9130.0, "low": -1e5, "high": 1e5, "change": 500.0, "variance": 3.01e7, "loss": Loss("1")}
    query = Watch(**{**given, **public})
    reading = query.reading({"flagged": [1], "decided": 2}, Points.from_array([[0.0], [1.0]]))
    assert reading.quality is not None
    assert reading.quality.verdict == label
    assert (label == "mostly noise") is not query.plan(n=2, dimension=1).useful
    if "variance" in public:
        assert reading.notes == ()
    else:
        (note,) = reading.notes
        assert "are false alarms, for observations as stated" in note
        assert reading.extras["share_of_flags_that_are_false"] == pytest.approx(
            1 - query.plan(n=2, dimension=1).options[0].figures["right"]
        )


PERSON = {"threshold": 4.0, "low": -10.0, "high": 10.0, "change": 0.01, "variance": 1.0, "outlier_from": 6.0}
PERSON |= {"outlier_share": 0.1, "level": "person"}


@pytest.mark.parametrize(("adaptive", "ends"), [(False, (5, 5)), (True, (5, 9))])
def test_a_plan_says_when_the_cutoff_would_end_a_watch(adaptive: bool, ends: tuple[int, int]) -> None:
    query = Watch(**PERSON, cutoff=5, adaptive=adaptive, loss=Loss("4"))
    assert "exhausted" not in query.plan(n=40, dimension=1).verdict
    said = f"at {'5 to 9' if adaptive else '5'} flags, after about {'50 to 90' if adaptive else '50'} of 1,000"
    assert said in query.plan(n=1000, dimension=1).verdict
    draw = np.random.default_rng(1)
    decided = []
    for _ in range(50):
        values = np.where(draw.random(1000) < 0.1, 8.0, draw.normal(0.0, 1.0, 1000))
        found = query.answer(Points.from_array(values[:, None], name="stream"), SystemNoise())
        assert ends[0] <= len(found["flagged"]) <= ends[1]
        decided.append(found["decided"])
    assert 10 * ends[0] * 0.8 < np.mean(decided) < 10 * ends[1] * 1.2


def test_a_plan_says_when_the_steps_would_end_a_watch() -> None:
    query = Watch(**PERSON, steps=10, loss=Loss.zcdp("1"))
    assert "after 10 of 1,000 observations it is exhausted" in query.plan(n=1000, dimension=1).verdict
    assert "exhausted" not in query.plan(n=10, dimension=1).verdict
    vague = replace(query, variance=None, outlier_from=None, outlier_share=None)
    assert "after 10 of 1,000 observations it is exhausted" in vague.plan(n=1000, dimension=1).verdict


def test_what_was_hardly_looked_at_is_a_condition() -> None:
    query = Watch(**PERSON, cutoff=5, loss=Loss("4"))
    stream = Points.from_array(np.zeros((1000, 1)), name="stream")
    labels = [
        query.reading({"flagged": [], "decided": decided}, stream).quality.verdict for decided in (1000, 500, 499)
    ]
    assert labels == ["low noise", "low noise", "check first"]
