"""Exact and reference functions, for referees and for authors of plugins. It needs every extra: `wallflower[all]`.

Exact answers and bounds of `count`: `count_outliers`, `degrees`, `inliers`, `lower_count`, `global_bound`,
`local_bounds`, `smooth_bound`. Error rates of `watch`: `rates`. Contexts of `explain`: `valid_contexts`, and the
detectors. Comparison of sensors: `deal`, `evaluate`, `correct`. Mechanisms: `choose_together`, `cube_noise`.

The contract suite: every check of `CHECKS` takes a query and raises an AssertionError. The instruments of an audit:
`audit`, `audit_bound`, `audit_exact`, `audit_law`, `law_of`, `audit_cases`, with `ScriptedNoise`. `accounting_vectors`
and `setup_vectors` compare a file of vectors with the library; both run as `python -m wallflower.testing.NAME FILE`.

>>> count_outliers([[0.0], [0.1], [5.0]], radius=1.0, neighbours=1)
1
"""

from wallflower.audit import Finding, ScriptedNoise, Way, World, audit, audit_bound, audit_exact, replay_sampler
from wallflower.audit.answers import Accounts, Case, LawCheck, Part, audit_cases, audit_claim, audit_draws
from wallflower.audit.laws import audit_law, audit_laws, audit_numbers, audit_parts, law_of, loss_between
from wallflower.checks import CHECKS
from wallflower.evidence import evidence
from wallflower.mechanisms import choose_together
from wallflower.mechanisms.cube import cube_noise
from wallflower.neighbours.extension import inliers
from wallflower.neighbours.limits import global_bound
from wallflower.queries.count.exact import count_outliers, degrees
from wallflower.queries.count.lower import lower_count
from wallflower.queries.count.sensitivity import local_bounds, smooth_bound
from wallflower.queries.explain.detectors import (
    ClampedGrubbs,
    CustomDetector,
    CustomMarginDetector,
    Distance,
    FixedBins,
    Grubbs,
    Histogram,
    Lof,
    MarginDetector,
    Pyod,
    Tukey,
)
from wallflower.queries.explain.exact import valid_contexts
from wallflower.queries.watch.forecast.rates import rates
from wallflower.sensors.comparison import deal, evaluate
from wallflower.sensors.correction import correct

__all__ = [
    "CHECKS",
    "Accounts",
    "Case",
    "ClampedGrubbs",
    "CustomDetector",
    "CustomMarginDetector",
    "Distance",
    "Finding",
    "FixedBins",
    "Grubbs",
    "Histogram",
    "LawCheck",
    "Lof",
    "MarginDetector",
    "Part",
    "Pyod",
    "ScriptedNoise",
    "Tukey",
    "Way",
    "World",
    "audit",
    "audit_bound",
    "audit_cases",
    "audit_claim",
    "audit_draws",
    "audit_exact",
    "audit_law",
    "audit_laws",
    "audit_numbers",
    "audit_parts",
    "choose_together",
    "correct",
    "count_outliers",
    "cube_noise",
    "deal",
    "degrees",
    "evaluate",
    "evidence",
    "global_bound",
    "inliers",
    "law_of",
    "local_bounds",
    "loss_between",
    "lower_count",
    "rates",
    "replay_sampler",
    "smooth_bound",
    "valid_contexts",
]
