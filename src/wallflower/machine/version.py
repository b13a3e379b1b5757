"""Which version of wallflower this is."""

VERSION = "0.1.0"
