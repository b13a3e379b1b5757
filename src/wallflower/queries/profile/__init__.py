"""How many outliers are there at every radius? See `profile.py` and `proof.md`."""

from wallflower.queries.profile.profile import Profile as Profile
