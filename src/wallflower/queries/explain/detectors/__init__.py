"""What makes a record an outlier among the records of a context: one class in one file for each detector.

Those with a margin serve mode dp: `Tukey`, `Distance`, `FixedBins`, `ClampedGrubbs`, and a function of your own with
`CustomMarginDetector`. The others serve mode ocdp alone. `registry.DETECTORS` lists those that have a name.
"""

from wallflower.queries.explain.detectors.base import Detector, MarginDetector
from wallflower.queries.explain.detectors.bins import FixedBins
from wallflower.queries.explain.detectors.custom import CustomDetector, CustomMarginDetector, Pyod
from wallflower.queries.explain.detectors.distance import Distance
from wallflower.queries.explain.detectors.grubbs import ClampedGrubbs, Grubbs
from wallflower.queries.explain.detectors.histogram import Histogram
from wallflower.queries.explain.detectors.lof import Lof
from wallflower.queries.explain.detectors.tukey import Tukey

__all__ = [
    "ClampedGrubbs",
    "CustomDetector",
    "CustomMarginDetector",
    "Detector",
    "Distance",
    "FixedBins",
    "Grubbs",
    "Histogram",
    "Lof",
    "MarginDetector",
    "Pyod",
    "Tukey",
]
