"""Pages for stewards: budgets, tokens, spending, and the registration of data sets."""
