"""How useful contexts are at ε = 0.2 on 51,000 made-up salaries with 4,194,304 contexts, from the exact laws."""

import numpy as np
import pytest

import wallflower as wf
from wallflower.data import Column
from wallflower.noise import system_noise
from wallflower.queries.explain.detectors import Grubbs, Histogram, Lof, Tukey
from wallflower.queries.explain.draws.dp import GRID, population_scale, sufficient_score
from wallflower.queries.explain.exact import evaluate, margins
from wallflower.queries.explain.space.tables import rank_table
from wallflower.synthetic import salaries

SIZES, SIZE = (9, 8, 8), 60_000
COLUMNS = tuple(Column(f"a{at}", edges=tuple(np.arange(1, size) - 0.5)) for at, size in enumerate(SIZES))
DOMAIN = wf.Schema(columns=(*COLUMNS, Column("salary", low=50_000, high=400_000)))


def asked(row, **given):
    usual = {"record": row, "metric": "salary", "context": ("a0", "a1", "a2"), "domain": DOMAIN, "size": SIZE}
    return wf.Explain(**usual | {"loss": wf.Loss("0.2")} | given)


@pytest.mark.slow
@pytest.mark.parametrize("detector", [Grubbs(), Histogram(), Lof()], ids=lambda it: type(it).__name__)
def test_a_direct_draw_is_nearly_the_best_context(detector):
    codes, metric, row = salaries()
    found = evaluate(codes, SIZES, metric, row, detector)
    populations = found.populations[found.valid].astype(float)
    weights = np.exp(0.2 * (populations - populations.max()))
    assert (weights * populations).sum() / weights.sum() / populations.max() >= 0.99


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_differential_privacy_leaves_a_valid_and_large_context(seed):
    codes, metric, row = salaries(seed=seed)
    query = asked(row)
    detector = query.detector_for(SIZE)
    assert isinstance(detector, Tukey)
    deciding, each = query.parts()
    table = rank_table(codes, SIZES, metric, row)
    margin, populations = margins(table, detector)
    scale, cap = (
        float(population_scale(table.space.count, SIZE, each)),
        3 * float(sufficient_score(table.space.count, each)),
    )
    scores = np.clip(np.minimum(populations / scale, margin), -cap, cap)
    weights = np.exp(float(each) / 2 * GRID / (GRID + 1) * (scores - scores.max()))
    valid, total = margin > 0, weights.sum()
    assert margin.max() > 20 / float(deciding)  # so that none is never said
    assert weights[valid].sum() / total >= 0.99
    assert (weights * populations * valid).sum() / total / populations[valid].max() >= 0.9


@pytest.mark.slow
def test_the_whole_question_at_full_size():
    codes, metric, row = salaries()
    points = wf.Points.from_array(np.column_stack([codes, metric]), columns=("a0", "a1", "a2", "salary"))
    query = asked(row)
    (item,) = query.answer(query.view(points), system_noise())
    assert len(item["bits"]) == 25
