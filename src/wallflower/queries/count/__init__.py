"""How many records are distance-based outliers? See `count.py` and `proof.md`."""

from wallflower.queries.count.count import Count as Count
