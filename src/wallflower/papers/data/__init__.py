"""The tables, registers, streams and readings that the papers looked at, or ones like them."""
