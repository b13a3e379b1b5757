"""The part of a table that an explanation looks at, checked by public facts and read only once it is paid for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wallflower.data import Points, Table, TiledTable
from wallflower.errors import DataError
from wallflower.queries.explain.detectors import HUGE, Detector
from wallflower.queries.explain.space.cells import CellTable
from wallflower.queries.explain.space.contexts import Domain
from wallflower.queries.explain.space.ranked_table import RankedTable, rank_table
from wallflower.schema.columns import pick


@dataclass(frozen=True, eq=False, repr=False)
class Case:
    """One record among the others. `n` is the public bound: how many records there are is protected."""

    data: Table | Points
    domains: tuple[Domain, ...]
    metric: str
    row: int
    n: int

    def __post_init__(self) -> None:
        require_columns(self.data, self.domains, self.metric)

    @property
    def columns(self) -> tuple[str, ...]:
        return (*(domain.name for domain in self.domains), self.metric)

    @property
    def dimension(self) -> int:
        return len(self.columns)

    def table(self) -> RankedTable:
        """The records as the engines see them; made when first looked at."""
        return self._table

    def table_for(self, detector: Detector) -> RankedTable | CellTable:
        """What a detector needs of the records."""
        return self.table()

    @cached_property
    def _table(self) -> RankedTable:
        codes = np.stack([_codes(self.data, domain) for domain in self.domains], axis=1)
        sizes = [len(domain.labels) for domain in self.domains]
        return rank_table(codes, sizes, hold_metric(_numbers(self.data, self.metric)), self.row)

    def __repr__(self) -> str:
        return f"Case(at most {self.n} records, columns={self.columns!r})"


def require_columns(data: Table | Points | TiledTable, domains: Sequence[Domain], metric: str) -> None:
    """Refuse a table that was not read with these domains, by its public facts."""
    pick([metric], data.columns if isinstance(data, Points) else data.numbers)
    for domain in domains:
        _require(data, domain)


def _require(data: Table | Points | TiledTable, domain: Domain) -> None:
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
        return cut_numbers(domain, _numbers(data, domain.name))
    return data.codes(domain.name) if isinstance(data, Table) else domain.encode(_numbers(data, domain.name))


def cut_numbers(domain: Domain, values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Where numbers lie between public edges; what is beyond the outer ones belongs to the outer places."""
    return domain.encode(np.clip(values, domain.edges[0], domain.edges[-1]))


def hold_metric(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """What is beyond could overflow, and would tell."""
    return np.clip(values, -HUGE, HUGE)


def _numbers(data: Table | Points, name: str) -> NDArray[np.float64]:
    return data.subspace([name]).values[:, 0] if isinstance(data, Points) else data.cells(name)
