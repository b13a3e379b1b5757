"""Studies of how good answers are on public tables; run with `wallflower study` from a checkout."""
