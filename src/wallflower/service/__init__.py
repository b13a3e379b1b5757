"""Programs that others talk to over a network: the parties of a sensor stream, and the curator of data sets."""
