"""Attacks on explanations, and accounts of what they draw."""

from wallflower.queries.explain.audit.accounts import ACCOUNTS
from wallflower.queries.explain.audit.attacks import ATTACKS, BROKEN, SHORTENED, findings

__all__ = ["ACCOUNTS", "ATTACKS", "BROKEN", "SHORTENED", "findings"]
