"""Readers of files, databases and frames."""
