"""In which attributes do the outliers show? See `subspaces.py` and `proof.md`."""

from wallflower.queries.subspaces.subspaces import Subspaces as Subspaces
