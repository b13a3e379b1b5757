"""Why is this record an outlier? The query is in `explain`, detectors and contexts in packages of their own."""

from wallflower.queries.explain.explain import Explain

__all__ = ["Explain"]
