"""First steps: draft a schema for a file (`init`), and try queries on made-up records (`rehearse`)."""

from wallflower.cli.start.start import add

__all__ = ["add"]
