"""Figures that show themselves: a matplotlib Figure with a picture for notebooks."""

from __future__ import annotations

import io
from typing import Final

from matplotlib import figure, rc_context

from wallflower.drawing.palette import MATPLOTLIB_STYLE

_SCREEN_DPI: Final = 80


class Figure(figure.Figure):
    """A matplotlib Figure that a notebook shows as a picture, whether or not pyplot or `%matplotlib inline` is used."""

    def _repr_png_(self) -> bytes:
        """The picture that Jupyter and IPython ask for."""
        target = io.BytesIO()
        with rc_context(MATPLOTLIB_STYLE):
            self.savefig(target, format="png", dpi=_SCREEN_DPI)
        return target.getvalue()
