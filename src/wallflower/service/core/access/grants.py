"""Access of analysts to data sets.

A data set is closed until it is opened: by `analysts` in the settings, by a group of the settings, or by a steward
while the service runs. For an analyst without access it does not exist: neither in lists, nor by name, nor as a member
of a shared account. Stewards and auditors see every data set.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from wallflower.service.core.access.tokens import Caller
from wallflower.service.core.problems import Refusal
from wallflower.service.core.records import ACCESS, Records
from wallflower.service.settings import EVERYBODY, Group, Registration

_NOT_FOUND: Final = "There is no data set of this name. See the list of data sets."


class Access:
    """The access of analysts to data sets, as the settings state it and as stewards have given it."""

    def __init__(self, records: Records, groups: Iterable[Group] = ()) -> None:
        self._records = records
        self._groups = {group.name: group for group in groups}

    def may_see(self, caller: Caller, dataset: Registration) -> bool:
        """Return whether the caller may see a data set and query it."""
        if caller.reads_all or {caller.name, EVERYBODY} & set(dataset.analysts) or self._is_in_group(caller, dataset):
            return True
        return any(self._records.find(ACCESS, _key(dataset.name, name)) for name in (EVERYBODY, caller.name))

    def visible(self, caller: Caller, datasets: Iterable[Registration]) -> list[Registration]:
        """Return the data sets that the caller may see, with one query per name."""
        if caller.reads_all:
            return list(datasets)
        granted = {
            row["dataset"] for name in (EVERYBODY, caller.name) for row in self._records.all(ACCESS, analyst=name)
        }
        names = {caller.name, EVERYBODY}
        return [
            dataset
            for dataset in datasets
            if dataset.name in granted or names & set(dataset.analysts) or self._is_in_group(caller, dataset)
        ]

    def groups_of(self, dataset: Registration) -> list[str]:
        """Return the groups of the settings whose members may see a data set."""
        return sorted(name for name, group in self._groups.items() if {dataset.name, EVERYBODY} & set(group.datasets))

    def _is_in_group(self, caller: Caller, dataset: Registration) -> bool:
        """Return whether a group of the caller may see the data set; unknown groups see none."""
        groups = (self._groups[name] for name in caller.groups if name in self._groups)
        return any({dataset.name, EVERYBODY} & set(group.datasets) for group in groups)

    def require(self, caller: Caller, dataset: Registration) -> Registration:
        """Return the data set; raise `Refusal` (not found) for a caller who may not see it."""
        if not self.may_see(caller, dataset):
            raise Refusal("not-found", _NOT_FOUND)
        return dataset

    def analysts(self, dataset: Registration) -> list[str]:
        """Return the names of analysts who may see a data set; `*` stands for every analyst."""
        granted = (row["analyst"] for row in self._records.all(ACCESS, dataset=dataset.name))
        return sorted({*dataset.analysts, *granted})

    def give(self, dataset: Registration, analyst: str, *, by: str) -> None:
        """Open a data set to an analyst, or to every analyst."""
        row = {"id": _key(dataset.name, analyst), "dataset": dataset.name, "analyst": analyst, "by": by}
        self._records.add(ACCESS, row)

    def take(self, dataset: Registration, analyst: str) -> None:
        """Close a data set to an analyst again."""
        if analyst in dataset.analysts:
            raise Refusal("conflict", "The settings of the service give this access. Change it there.")
        if not self._records.remove(ACCESS, _key(dataset.name, analyst)):
            raise Refusal("not-found", "This analyst was not given access to the data set by name.")

    def forget(self, name: str) -> None:
        """Remove all access to a retired data set."""
        for row in self._records.all(ACCESS, dataset=name):
            self._records.remove(ACCESS, row["id"])


def _key(dataset: str, analyst: str) -> str:
    return json.dumps([dataset, analyst])
