"""Contexts of a record, and the tables, sums and bit sets by which detectors examine all of them."""
