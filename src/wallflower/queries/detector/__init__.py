"""Which records are unusual? A detector fitted once under privacy, its model, and counts of what it flags."""

from wallflower.queries.detector.detector import OWN_RECORDS, Detector
from wallflower.queries.detector.flags import Flags
from wallflower.queries.detector.model import Model
from wallflower.queries.detector.tally import Tally
from wallflower.queries.detector.threshold import Threshold

__all__ = ["OWN_RECORDS", "Detector", "Flags", "Model", "Tally", "Threshold"]
