"""A data set as a caller sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wallflower.ledger import Account
from wallflower.names import account_name
from wallflower.privacy import Loss
from wallflower.units import Protection


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetView:
    """Public facts of a data set, its budget, and what the caller may still spend."""

    name: str
    facts: dict[str, Any]
    budget: Account
    left: Loss

    @property
    def protection(self) -> Protection:
        """Whose loss is counted for this data set; others on the same account may count another's."""
        return self.budget.members.get(account_name(self.name) or self.name, self.budget.protection)
