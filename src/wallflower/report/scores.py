"""How many records have which score, with the threshold of their detector: a picture of records that are at hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from wallflower.lazy import Lazy
from wallflower.queries.detector.model import Model
from wallflower.report.drawing import ACCENT, QUIET, STYLE

if TYPE_CHECKING:
    import matplotlib as _matplotlib
    import matplotlib.figure as _figures
else:
    _matplotlib = Lazy("matplotlib")
    _figures = Lazy("matplotlib.figure")

BINS: Final = 60
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
        with _matplotlib.rc_context(STYLE):
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
