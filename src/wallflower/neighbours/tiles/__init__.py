"""Counts of records that are cut into tiles: by tasks inside each tile, and a repair where suppliers are crowded."""
