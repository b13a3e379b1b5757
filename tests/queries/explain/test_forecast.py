"""What the plan says of none and of valid contexts, against tables that are made as it assumes."""

from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy.stats import binom

import wallflower as wf
from wallflower.errors import ParameterError
from wallflower.mechanisms import Additive
from wallflower.noise import system_noise
from wallflower.queries.explain.detectors import ClampedGrubbs, Distance, FixedBins, Tukey
from wallflower.queries.explain.detectors.grubbs import kappas, kappas_at
from wallflower.queries.explain.draws import dp
from wallflower.queries.explain.draws.dp import FULL_SCORE, population_scale, sufficient_score
from wallflower.queries.explain.exact import evaluate, margins
from wallflower.queries.explain.forecast import spread_evenly
from wallflower.queries.explain.space.tables import rank_table

pytestmark = pytest.mark.slow  # together more than `make check` has room for

GRID = tuple(np.linspace(0.0, 100.0, 101).tolist())
DETECTORS = {
    "tukey": Tukey(GRID),
    "bins": FixedBins(GRID),
    "many bins": FixedBins(GRID, 0.05),
    "full bins": FixedBins(GRID, 0.7),
    "distance": Distance(3, 1.0),
    "far distance": Distance(300, 1.0),
    "grubbs": ClampedGrubbs(0.0, 100.0, 20_000),
    "strict grubbs": ClampedGrubbs(0.0, 100.0, 20_000, alpha=1e-9),
}


def alone(n):
    """One record at the end of the range, and all others at the other end."""
    return np.append(np.zeros(n - 1), 100.0)


@pytest.mark.parametrize("name", DETECTORS)
def test_no_margin_is_above_the_greatest_and_a_lonely_record_has_it(name):
    detector = DETECTORS[name]

    def margin(values):
        return margins(rank_table(np.zeros(len(values), np.int64), [1], values, len(values) - 1), detector)[0][0]

    for n in (1, 2, 3, 4, 5, 50, 3000):
        assert margin(alone(n)) == pytest.approx(detector.greatest_margins(np.array([float(n)]))[0], abs=1e-9)
    for n in (1, 2, 3, 4, 5):
        most = detector.greatest_margins(np.array([float(n)]))[0]
        for others in combinations_with_replacement((-7.0, 0.0, 30.0, 99.0, 100.0, 800.0), n - 1):
            for own in (0.0, 31.0, 100.0):
                assert margin(np.array([*others, own])) <= most + 1e-9


def test_single_kappas_are_those_of_the_table():
    for alpha in (1e-12, 0.05, 0.5):
        many = np.array([1, 2, 3, 4, 64, 65, 1000, 70_000])
        assert kappas_at(alpha, many.astype(float)) == pytest.approx(kappas(alpha, 70_000)[many], rel=1e-11)
        assert np.diff(kappas(alpha, 70_000)[1:]).max() <= 1 + 1e-9


def test_contexts_are_counted_by_population():
    model = spread_evenly((4, 3, 2))
    sizes = [a * b * c / 24 for a in range(1, 5) for b in range(1, 4) for c in range(1, 3)]
    assert np.unique(np.round(sizes, 12)) == pytest.approx(model.shares)
    assert np.exp(model.logs).sum() == pytest.approx(64) == model.contexts
    assert [model.shares[model.position(rank)] for rank in (1, 2, 4, 5, 64)] == pytest.approx(
        [1, 3 / 4, 3 / 4, 2 / 3, 1 / 24]
    )
    assert np.isfinite(spread_evenly((5000,)).logs).all()
    many = spread_evenly((40, 40, 40, 40))
    assert many.shares[-1] == 1
    assert np.log(np.exp(many.logs - many.logs.max()).sum()) + many.logs.max() == pytest.approx(156 * np.log(2))


def made_as_assumed(sizes, each):
    """A table with as many records in every cell, one of which stands out as far as any can, and its domain."""
    names = [f"a{place}" for place in range(len(sizes))]
    cells = np.array(np.meshgrid(*map(range, sizes), indexing="ij")).reshape(len(sizes), -1).T
    codes = np.repeat(cells, each, axis=0)
    cut = {name: tuple(range(1, size)) for name, size in zip(names, sizes, strict=True)}
    domain = wf.Schema.of([*names, "x"], edges=cut, bounds={"x": (0, 100)})
    points = wf.Points.from_array(np.column_stack([codes, alone(len(codes))]), columns=[*names, "x"], name="even")
    return points, domain, codes


def question(points, domain, **given):
    usual = {"record": str(points.n - 1), "metric": "x", "context": points.columns[:-1], "size": points.n, "clear": 1.0}
    return wf.Explain(domain=domain, **usual | given)


def drawn_settings(many):
    draw = np.random.default_rng(14)
    for _ in range(many):
        sizes = tuple(draw.integers(2, 5, draw.integers(1, 4)).tolist())
        each, epsilon = int(draw.choice([1, 2, 5, 20, 100])), f"{10 ** draw.uniform(-1.5, 2):.3f}"
        doubt, name = str(draw.choice(["0", "1/10", "1/2", "9/10"])), str(draw.choice(list(DETECTORS)))
        yield sizes, each, {"loss": wf.Loss(epsilon), "doubt": doubt, "detector": DETECTORS[name]}


@pytest.mark.parametrize(("sizes", "each", "given"), list(drawn_settings(50)))
def test_the_plan_is_the_law_of_the_answer_where_its_assumption_holds(sizes, each, given):
    points, domain, codes = made_as_assumed(sizes, each)
    query = question(points, domain, **given)
    (option,) = query.plan(n=points.n, dimension=points.dimension).options
    seen, (deciding, one) = option.figures, query.parts()
    table = rank_table(codes, sizes, points.values[:, -1], points.n - 1)
    if deciding:
        law = Additive("laplace", dp.STEPS / deciding, Fraction(1))
        lacking = law.scale * Fraction(np.log(50)) - dp.greatest_margin(table, query.detector)
        assert seen["none"] == seen["least_none"] == pytest.approx(1 - law.upper_tail(lacking), abs=1e-9)
    scale, most = (
        population_scale(query.contexts, points.n, one),
        int(dp.GRID * FULL_SCORE * sufficient_score(query.contexts, one)),
    )
    (scores,) = dp.step_scores(table, query.detector, scale, most)(lambda first, taking, here: here.astype(float))
    weights = np.exp((scores - scores.max()) * float(one) / (2 * dp.STEPS))
    weights /= weights.sum()
    found = evaluate(codes, sizes, points.values[:, -1], points.n - 1, query.detector)
    assert seen["valid"] == pytest.approx(weights[found.valid].sum(), abs=1e-6)
    assert seen["utility"] == pytest.approx((weights * found.populations / points.n)[found.valid].sum(), abs=1e-6)
    assert seen["invalid"] >= 1 - seen["valid"] - 1e-12


SIMULATED = [
    ((3, 3), 60, {"detector": "bins:fraction=0.05", "loss": wf.Loss("1"), "doubt": "1/10"}),
    ((3, 2), 3, {"detector": "tukey", "loss": wf.Loss("2"), "doubt": "1/2"}),
    ((4,), 40, {"detector": "distance:k=9,radius=1", "loss": wf.Loss("5"), "doubt": "1/10"}),
    ((2, 2), 2, {"detector": "bins:fraction=0.3", "loss": wf.Loss("1.5"), "doubt": "0"}),
]


@pytest.mark.parametrize(("sizes", "each", "given"), SIMULATED, ids=lambda item: str(item)[:30])
def test_releases_say_none_and_name_valid_contexts_as_often_as_planned(sizes, each, given, tmp_path):
    points, domain, codes = made_as_assumed(sizes, each)
    query, times = question(points, domain, **given), 400
    seen = query.plan(n=points.n, dimension=points.dimension).options[0].figures
    valid = evaluate(codes, sizes, points.values[:, -1], points.n - 1, query.detector_for(points.n)).contexts()
    with wf.Ledger.open(str(tmp_path / "ledger.db")) as book:
        book.grant("even", wf.Loss("5000"), by="owner")
        said = [wf.release(query, points, book, force=True).value]
    case = query.view(points)
    said += [query.answer(case, system_noise()) for _ in range(times - 1)]
    named = [value[0]["bits"] for value in said if value]

    def fits(hits, planned, many):
        """As many as a plan that is right gives, but for once in 10⁹ runs."""
        return min(binom.cdf(hits, many, planned), binom.sf(hits - 1, many, planned)) > 1e-10

    assert fits(times - len(named), seen["none"], times)
    assert fits(sum(bits in valid for bits in named), seen["valid"], len(named))


def test_the_bound_is_reached_where_all_other_contexts_are_as_good_as_valid():
    rows = [[0.0, 50.0], *([[0.0, 0.0]] * 9), *([[1.0, 50.0]] * 4)]  # nobody near in one context, k in the other
    points = wf.Points.from_array(rows, columns=["a", "x"], name="two")
    domain = wf.Schema.of(["a", "x"], edges={"a": (0.5,)}, bounds={"x": (0, 100)})
    query = question(points, domain, record="0", detector=Distance(4, 1.0), loss=wf.Loss("2"), doubt="0")
    one = query.parts()[1]
    scores = dp.step_scores(query.view(points).table, query.detector, population_scale(2, points.n, one), 10**6)
    (steps,) = scores(lambda first, taking, here: here.tolist())
    assert steps == [4 * dp.GRID, 0]
    chance = 1 / (1 + np.exp(float(one) * steps[0] / (2 * dp.STEPS)))
    assert query.plan(n=points.n, dimension=2).options[0].figures["invalid"] == pytest.approx(chance)


def test_what_would_be_refused_is_not_planned():
    domain = wf.Schema.of(["a", "x"], categories={"a": [f"v{at}" for at in range(80)]}, bounds={"x": (0, 1)})
    query = wf.Explain(record="1", metric="x", context=("a",), domain=domain, loss=wf.Loss("1"))
    with pytest.raises(ParameterError, match=r"2\^79 contexts"):
        query.plan(n=1000, dimension=2)


@pytest.mark.parametrize(
    ("detector", "epsilon", "least", "useful"),
    [
        ("bins", "1", 0.98, "13"),
        ("distance:k=10,radius=1000", "1", 0.97, "4.9"),
        ("tukey", "1", 0, None),
        ("clamped-grubbs", "1", 0, None),
    ],
)
def test_what_can_only_say_none_is_not_called_useful(detector, epsilon, least, useful):
    domain = wf.Schema.of(
        ["job", "salary"], categories={"job": tuple("abcde")}, bounds={"salary": (0, 500_000)}, rows=2000
    )
    given = {"record": "1", "metric": "salary", "context": ("job",), "domain": domain, "loss": wf.Loss(epsilon)}
    plan = wf.Explain(detector=detector, **given).plan(n=2000, dimension=2)
    assert plan.options[0].figures["least_none"] >= least
    assert plan.useful is (useful is None)
    if useful is not None:
        assert "even for the clearest outlier" in plan.verdict
        assert plan.smallest_useful_epsilon == useful
        enough_loss = wf.Explain(detector=detector, **given | {"loss": wf.Loss(useful)})
        assert enough_loss.plan(n=2000, dimension=2).useful
