"""How wide is each column? See `scale.py` and `proof.md`."""

from wallflower.queries.scale.scale import Scale as Scale
