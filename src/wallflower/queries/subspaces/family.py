"""Which subspaces are asked about: a public list of column sets, whose length is known before it is made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Final

from wallflower.errors import DataError, ParameterError
from wallflower.schema.columns import list_names

Subspace = tuple[int, ...]

LIMIT: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """All subspaces of `size` columns, all of up to `upto`, those `among` a list, or all there are.

    >>> Family(size=2).count(34), Family(upto=2).count(34), Family().count(7)
    (561, 595, 127)
    """

    size: int | None = None
    upto: int | None = None
    among: tuple[tuple[str, ...], ...] | None = None

    def __post_init__(self) -> None:
        stated = {"size": self.size, "upto": self.upto, "among": self.among}
        given = [name for name, value in stated.items() if value is not None]
        if len(given) > 1:
            raise ParameterError(
                f"{list_names(given)}: the subspaces are stated more than once. Keep one of size, upto and among."
            )
        for name in ("size", "upto"):
            value = stated[name]
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
                raise ParameterError(f"{name}: {value!r} is not a whole number of columns from 1 on; pass 1 or more.")
        if self.among is not None:
            _check_list(self.among)

    def sizes(self, dimension: int) -> range:
        """How many columns the subspaces of a family made by rule have."""
        most = self.size or self.upto or dimension
        return range(self.size or 1, most + 1)

    def widest(self, dimension: int) -> int:
        """The most columns a subspace has."""
        return max(map(len, self.among)) if self.among else self.sizes(dimension)[-1]

    def count(self, dimension: int) -> int:
        """How many subspaces there are, without listing them."""
        if self.among is not None:
            return len(self.among)
        return sum(math.comb(dimension, size) for size in self.sizes(dimension))

    def check(self, dimension: int) -> int:
        """How many subspaces there are, or a refusal that says how to narrow them."""
        for name, value in (("size", self.size), ("upto", self.upto)):
            if value is not None and value > dimension:
                raise ParameterError(
                    f"{name}: {value} columns were asked for, the table has {dimension}. Pass {dimension} or less."
                )
        found = self.count(dimension)
        if found > LIMIT:
            raise ParameterError(
                f"{self.words(dimension)} are {found:,}, and at most {LIMIT:,} are looked at. {_narrower(dimension)}"
            )
        return found

    def subspaces(self, columns: Sequence[str]) -> list[Subspace]:
        """The subspaces as places of columns, each in the order of the table."""
        if self.among is None:
            rule = (combinations(range(len(columns)), size) for size in self.sizes(len(columns)))
            return list(chain.from_iterable(rule))
        place = {name: at for at, name in enumerate(columns)}
        unknown = sorted({name for names in self.among for name in names} - set(place))
        if unknown:
            raise DataError(
                f"among: {list_names(unknown)} is not a number column of the table; it has {list_names(columns)}. "
                "Choose among these."
            )
        return [tuple(sorted(place[name] for name in names)) for names in self.among]

    def words(self, dimension: int) -> str:
        """The family in words.

        >>> Family(upto=2).words(10)
        'all subspaces of up to 2 of 10 columns'
        """
        if self.among is not None:
            return f"the {len(self.among):,} subspaces named"
        how = f"up to {self.upto}" if self.upto else str(self.size) if self.size else "any"
        return f"all subspaces of {how} of {dimension} columns"


def _check_list(among: tuple[tuple[str, ...], ...]) -> None:
    well = isinstance(among, tuple) and all(isinstance(names, tuple) for names in among)
    if not well or not among or not all(names and all(isinstance(name, str) for name in names) for names in among):
        raise ParameterError(
            'among: pass one column set or more, each with a column or more: (("age",), ("age", "sex")).'
        )
    for names in among:
        if len(set(names)) < len(names):
            raise ParameterError(f"among: {' × '.join(names)} names a column twice. Name each column once.")
    if len(set(map(frozenset, among))) < len(among):
        raise ParameterError("among: a subspace is named twice. Name each once, in any order of its columns.")


def _narrower(dimension: int) -> str:
    """The largest families that are small enough."""
    size = 0
    while Family(upto=size + 1).count(dimension) <= LIMIT:
        size += 1
    if size == 0:
        return "Name the ones you care about with among."
    rules = {"upto": Family(upto=size), "size": Family(size=size)}
    ways = [f"{name}={size} ({family.count(dimension):,})" for name, family in rules.items()]
    return f"Pass {' or '.join(ways)}, or name the ones you care about with among."
