"""Questions about outliers in private data, answered under differential privacy."""

__version__ = "0.1.0"
