"""How a context is drawn: what makes it useful, and the draws direct, best-first, guided and by walks."""
