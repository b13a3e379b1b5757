"""Budgets beside the ledger: what was spent when, what an analyst sees of others, requests for more."""
