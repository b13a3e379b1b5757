"""The part of a table that an explanation looks at, checked by public facts and read only once it is paid for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wallflower.columns import pick
from wallflower.data import Points, Table
from wallflower.errors import DataError
from wallflower.queries.explain.detectors import HUGE
from wallflower.queries.explain.space.contexts import Domain
from wallflower.queries.explain.space.ranked_table import RankedTable, rank_table


@dataclass(frozen=True, eq=False, repr=False)
class Case:
    """One record among the others. `n` is the public bound: how many records there are is protected."""

    data: Table | Points
    domains: tuple[Domain, ...]
    metric: str
    row: int
    n: int

    def __post_init__(self) -> None:
        pick([self.metric], self.data.columns if isinstance(self.data, Points) else self.data.numbers)
        for domain in self.domains:
            _require(self.data, domain)

    @property
    def columns(self) -> tuple[str, ...]:
        return (*(domain.name for domain in self.domains), self.metric)

    @property
    def dimension(self) -> int:
        return len(self.columns)

    def table(self) -> RankedTable:
        """The records as the engines see them; made when first looked at."""
        return self._table

    @cached_property
    def _table(self) -> RankedTable:
        codes = np.stack([_codes(self.data, domain) for domain in self.domains], axis=1)
        sizes = [len(domain.labels) for domain in self.domains]
        metric = np.clip(_numbers(self.data, self.metric), -HUGE, HUGE)  # what is beyond could overflow, and would tell
        return rank_table(codes, sizes, metric, self.row)

    def __repr__(self) -> str:
        return f"Case(at most {self.n} records, columns={self.columns!r})"


def _require(data: Table | Points, domain: Domain) -> None:
    pick([domain.name], data.columns)
    if isinstance(data, Points) or domain.name in data.numbers:
        if not domain.edges:
            raise DataError(
                f"column {domain.name!r} was read as numbers, and the domain has labels for it. Load it with the "
                "domain as its schema, or cut it at edges.",
                column=domain.name,
            )
        return
    (facts,) = data.schema.only([domain.name]).columns or ()
    if domain.edges or facts.labels != tuple(map(str, domain.labels)):
        raise DataError(
            f"column {domain.name!r} was read with other categories than the domain states. Load it with the domain.",
            column=domain.name,
        )


def _codes(data: Table | Points, domain: Domain) -> NDArray[np.int64]:
    if domain.edges:
        return domain.encode(np.clip(_numbers(data, domain.name), domain.edges[0], domain.edges[-1]))
    return data.codes(domain.name) if isinstance(data, Table) else domain.encode(_numbers(data, domain.name))


def _numbers(data: Table | Points, name: str) -> NDArray[np.float64]:
    return data.subspace([name]).values[:, 0] if isinstance(data, Points) else data.cells(name)
