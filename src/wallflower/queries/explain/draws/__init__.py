"""How contexts are drawn: mode dp by margins, mode ocdp by searches among valid contexts."""
