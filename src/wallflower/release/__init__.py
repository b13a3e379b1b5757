"""The only code that sees both data and ledger: charge, then look, then record."""

from wallflower.release.answer import (
    Release,
)
from wallflower.release.release import (
    Payment,
    add_booking,
    check_shared_records,
    declaration_of,
    default_analyst,
    guarantee_of,
    pay,
    plan_for,
    quote,
    release,
    require_budget,
    require_useful,
    starter_note,
    system_user,
)

__all__ = [
    "Payment",
    "Release",
    "add_booking",
    "check_shared_records",
    "declaration_of",
    "default_analyst",
    "guarantee_of",
    "pay",
    "plan_for",
    "quote",
    "release",
    "require_budget",
    "require_useful",
    "starter_note",
    "system_user",
]
