"""Baselines that were released, put in the place of their entries' numbers: public constants, paid for already."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from wallflower.errors import ParameterError

KIND: Final = "baseline"


def take_baseline(given: Mapping[str, Any], find: Callable[[int], Mapping[str, Any] | None]) -> dict[str, Any]:
    """The parameters of a question; of a baseline that is named by its entry, what it came to.

    `find` gives the release that an entry has paid for, as plain JSON, to whoever may have it.
    """
    number = given.get(KIND)
    if not isinstance(number, int) or isinstance(number, bool):
        return dict(given)
    stored = find(number)
    if stored is None or stored["kind"] != KIND:
        raise ParameterError(
            f"{KIND}: entry {number} of the ledger is no release of {KIND}. Ask {KIND} with a phase first, and pass "
            "what it gives."
        )
    return {**given, KIND: stored["value"]}
