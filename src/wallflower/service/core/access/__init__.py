"""Who may call: tokens, second factors, and what stewards did with theirs."""
