"""How many records are distance-based outliers."""
