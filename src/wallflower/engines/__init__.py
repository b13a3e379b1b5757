"""Engines: where tables live that do not fit into memory, and how tasks run on their parts."""
