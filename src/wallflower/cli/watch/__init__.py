"""A watch in a terminal: one decision for each observation of a stream, or of a fleet of streams, as it comes."""
