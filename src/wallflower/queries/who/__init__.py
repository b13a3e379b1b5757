"""Which records should a person look at? Names under a promise to everybody who is not named: `who.py`, `proof.md`."""

from wallflower.queries.who.who import Who as Who
