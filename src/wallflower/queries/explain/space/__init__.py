"""Contexts, and the table seen from one record: in order, as a cube of cells, as bits, in blocks."""
