"""How the ledger's table came to be, one revision at a time."""
