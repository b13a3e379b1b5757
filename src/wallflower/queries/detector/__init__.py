"""Which records are unusual? A detector fitted once under privacy, its model, and counts of flags by group."""

from wallflower.queries.detector.detector import OWN_RECORDS, Detector
from wallflower.queries.detector.flags import Flags
from wallflower.queries.detector.model import Model

__all__ = ["OWN_RECORDS", "Detector", "Flags", "Model"]
