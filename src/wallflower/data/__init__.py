"""Private records held to a public schema: tables, points, and where they are read from."""

from wallflower.data.table import Points, Table, TablePoints, describe, load, points_of, survey
from wallflower.data.tiled_table import TiledPoints, TiledTable
from wallflower.schema import Column, Schema

__all__ = [
    "Column",
    "Points",
    "Schema",
    "Table",
    "TablePoints",
    "TiledPoints",
    "TiledTable",
    "describe",
    "load",
    "points_of",
    "survey",
]
