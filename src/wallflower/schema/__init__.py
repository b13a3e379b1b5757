"""What is public about a table: its columns, their bounds, scales and categories, and who its rows belong to."""

from wallflower.schema.column import Column
from wallflower.schema.join import Join
from wallflower.schema.person import Person
from wallflower.schema.schema import Schema, WayToRead, take_schema

__all__ = ["Column", "Join", "Person", "Schema", "WayToRead", "take_schema"]
