"""Which settings of a count make sense, and what it may be beside a number."""

from __future__ import annotations

from typing import Self

from wallflower.errors import ParameterError
from wallflower.mechanisms import smooth_beta
from wallflower.neighbours.limits import check_radius
from wallflower.neighbours.metrics import Metric, metric_name
from wallflower.neighbours.noisy_count import STEP, ChosenCap
from wallflower.privacy import Kind, Loss


class CappedCount(int):
    """A released count, and beside it the degree cap that was chosen for it; None where public facts fix the cap."""

    chosen: ChosenCap | None

    def __new__(cls, value: int, chosen: ChosenCap | None = None) -> Self:
        made = super().__new__(cls, value)
        made.chosen = chosen
        return made


class BoundedCount(CappedCount):
    """A released count, and beside it `floor`, released with it: before noise, it counts no record too many."""

    floor: int

    def __new__(cls, value: int, floor: int = 0, chosen: ChosenCap | None = None) -> Self:
        made = super().__new__(cls, value, chosen)
        made.floor = floor
        return made


def check_reach(radius: float | None, share: object) -> None:
    """Refuse a count without a radius, or with two."""
    if (radius is None) == (share is None):
        raise ParameterError(
            "radius, share: a count needs one of them and takes no more. Pass a radius, or the share of records to "
            "draw it for, such as '2%'."
        )
    if radius is not None:
        check_radius(radius)


def check_terms_of_metric(metric: Metric, *, share: object, by: object, interval: str) -> None:
    """Refuse what needs Euclid's geometry, or has no proof yet, beside another metric.  (R)"""
    unfit = {
        "interval": (interval == "two-sided", "its lower end needs the triangle inequality of Euclid's distance"),
        "share": (share is not None, "radii are drawn by Euclid's distance"),
        "by": (by is not None, "groups are counted by Euclid's distance"),
    }
    for name, (is_asked, reason) in unfit.items():
        if is_asked:
            raise ParameterError(
                f"{name}: with metric {metric_name(metric)} it is not possible, since {reason}. Omit it, or choose "
                "metric euclidean."
            )


def check_slack(slack: int | None) -> None:
    """Refuse a slack that is not a whole number of some size."""
    if slack is None:
        return
    if isinstance(slack, bool) or not hasattr(slack, "__index__") or not 2 <= slack <= 10**6:
        raise ParameterError(
            f"slack: {slack!r} is not a whole number from 2 to 1,000,000. With less, even a dense crowd is crowded; "
            "leave it out, or pass one such as 3."
        )


def check_smooth(loss: Loss) -> None:
    """Refuse a loss that smooth noise has no theorem for."""
    if loss.kind is not Kind.APPROXIMATE:
        raise ParameterError("delta: smooth noise needs one above 0; pass one such as '1e-6', or use extension.")
    smooth_beta(loss.epsilon, loss.delta, least=1, step=STEP)
