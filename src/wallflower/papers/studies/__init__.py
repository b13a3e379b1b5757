"""Studies of our own: how good an answer is on public tables, beside what others give without privacy."""
