"""A data set as a caller sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wallflower.curator.desk.datasets.shelf import State
from wallflower.ledger import Account
from wallflower.names import account_name
from wallflower.privacy import Loss
from wallflower.units import Protection


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetView:
    """Public facts of a data set, its budget, and what the caller may still spend.

    `state` says whether it can be asked, and `reason` why not, to stewards alone. One that `is_registered` was
    registered while the service ran, and can be retired.
    """

    name: str
    facts: dict[str, Any]
    budget: Account
    left: Loss
    state: State = "ready"
    reason: str | None = None
    is_registered: bool = False

    @property
    def protection(self) -> Protection:
        """Whose loss is counted for this data set; others on the same account may count another's."""
        return self.budget.members.get(account_name(self.name) or self.name, self.budget.protection)
