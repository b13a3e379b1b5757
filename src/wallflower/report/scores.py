"""Pictures of what a detector says: of records that are at hand, of one of them, of any values of two columns.

The first two show records, so they are for people who may see these; the third is made of released numbers alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from wallflower.drawing.palette import ACCENT, INK, MATPLOTLIB_STYLE, QUIET
from wallflower.errors import ParameterError
from wallflower.machine.heavy import matplotlib as _matplotlib
from wallflower.machine.lazy import Lazy
from wallflower.queries.detector.model import Model
from wallflower.schema.columns import pick

if TYPE_CHECKING:
    import wallflower.report.figures as _figures
else:
    _figures = Lazy("wallflower.report.figures")

BINS: Final = 60
SHADES: Final = 160  # values of each column that a map shows
ROW: Final = 0.28  # inches for a column
MOST_BARS: Final = 30
SIZE: Final = (8.4, 3.0)


@dataclass(slots=True, kw_only=True)
class Tally:
    """Scores, counted as they come."""

    edges: NDArray[np.float64]
    counts: NDArray[np.int64]
    threshold: float | None

    @classmethod
    def of(cls, model: Model) -> Self:
        """Between the least and the greatest score that a detector can give."""
        edges = np.linspace(*model.ends, BINS + 1)
        return cls(edges=edges, counts=np.zeros(BINS, dtype=np.int64), threshold=model.threshold)

    def add(self, scores: NDArray[np.float64]) -> None:
        """Count some more."""
        inside = np.clip(scores, self.edges[0], self.edges[-1])
        self.counts += np.histogram(inside, bins=self.edges)[0]

    def figure(self) -> Any:
        """A matplotlib Figure. The axis of counts is drawn by powers of ten: the few that are unusual are the point."""
        with _matplotlib.rc_context(MATPLOTLIB_STYLE):
            drawn = _figures.Figure(figsize=SIZE, layout="constrained")
            axes = drawn.subplots()
            filled = np.flatnonzero(self.counts)
            axes.bar(self.edges[:-1], self.counts, width=np.diff(self.edges), align="edge", color=ACCENT)
            if len(filled):
                axes.set_xlim(self.edges[filled[0]], self.edges[filled[-1] + 1])
            if self.threshold is not None:
                axes.axvline(self.threshold, color=QUIET, linestyle="--", label="flagged beyond this")
                axes.legend(frameon=False)
            axes.set_yscale("symlog", linthresh=1)
            axes.set(xlabel="score: the greater, the more unusual", ylabel="records", title="Scores of these records")
        return drawn


def draw_scores(model: Model, records: object) -> Any:
    """How many of these records have which score."""
    tally = Tally.of(model)
    for values in model.parts(records):
        tally.add(model.score(values))
    return tally.figure()


def draw_contributions(model: Model, record: object) -> Any:
    """What each column adds to the score of one record: bars to the right make it unusual, to the left usual."""
    first = next(iter(model.parts(record)))[:1]
    return draw_parts(model, model.split_score(first)[0])


def draw_parts(model: Model, found: NDArray[np.float64]) -> Any:
    """What columns add to a score, the largest parts of it."""
    order = np.argsort(-np.abs(found), kind="stable")[:MOST_BARS]
    order = order[np.argsort(-found[order], kind="stable")]
    with _matplotlib.rc_context(MATPLOTLIB_STYLE):
        drawn = _figures.Figure(figsize=(SIZE[0], 1.3 + ROW * len(order)), layout="constrained")
        axes = drawn.subplots()
        colours = [ACCENT if found[at] > 0 else QUIET for at in order]
        axes.barh(range(len(order)), found[order], color=colours, height=0.65)
        axes.axvline(0.0, color=INK, linewidth=0.8)
        axes.set_yticks(range(len(order)), [model.columns[at] for at in order])
        axes.set_ylim(len(order) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x")
        axes.spines[["left", "right", "top"]].set_visible(False)
        left = "" if len(order) == len(found) else f"; the {len(order)} largest of {len(found)}"
        mark = "" if model.threshold is None else f", flagged above {model.threshold:.3g}"
        axes.set(
            xlabel=f"what the column adds to the score{left}",
            title=f"Why this record has a score of {found.sum():.3g}{mark}",
        )
    return drawn


def draw_map(model: Model, columns: Sequence[str], between: Sequence[tuple[float, float]] | None = None) -> Any:
    """How unusual pairs of values of two columns are, whatever the others: from released numbers and public ranges."""
    names = pick(columns, model.columns)
    if len(names) != 2:
        raise ParameterError(f"columns: a map has two of them, and {len(names)} are named. Name two.")
    ranges = [_range_of(model, name, at, between) for at, name in enumerate(names)]
    across, up = (np.linspace(low, high, SHADES) for low, high in ranges)
    found = model.map_scores((names[0], names[1]), across, up).T
    with _matplotlib.rc_context(MATPLOTLIB_STYLE):
        drawn = _figures.Figure(figsize=(5.6, 4.4), layout="constrained")
        axes = drawn.subplots()
        shades = axes.pcolormesh(across, up, found, cmap="GnBu", shading="nearest", rasterized=True)
        drawn.colorbar(shades, ax=axes, label="what the two columns add to the score")
        said = "no pair of values is flagged by itself"
        if model.threshold is not None and found.min() < model.threshold < found.max():
            axes.contour(across, up, found, levels=[model.threshold], colors=[INK], linewidths=1.2)
            said = "line: flagged beyond it, if the other columns are as usual"
        title = "How unusual two columns are"
        axes.set(xlabel=names[0] if model.threshold is None else f"{names[0]}\n{said}", ylabel=names[1], title=title)
    return drawn


def _range_of(model: Model, name: str, at: int, between: Sequence[tuple[float, float]] | None) -> tuple[float, float]:
    (facts,) = model.schema.only([name]).columns or ()
    given = (facts.low, facts.high) if between is None else between[at] if at < len(between) else (None, None)
    low, high = given
    if low is None or high is None or not -1e300 < low < high < 1e300:
        raise ParameterError(
            f"between: {name} has no public bounds in the schema, or no range of two rising numbers, and where the "
            "records lie is not released. Pass the range to draw for each column, the lower end first."
        )
    return float(low), float(high)
