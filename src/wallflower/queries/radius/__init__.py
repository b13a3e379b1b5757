"""At which radius is a wanted share of the records outliers? See `radius.py` and `proof.md`."""

from wallflower.queries.radius.radius import Radius as Radius
