"""Read tables of TOML or JSON into dataclasses, strictly, and write them back.

An unknown name, a missing one and a value of the wrong type are errors that name the key and show no value. Types are
those of the annotations: `str`, `int`, `float`, `bool`, `Fraction` (exact numbers, written as text), `Literal`,
`X | None`, `tuple[X, ...]`, `dict[str, X]`, other dataclasses, and unions of dataclasses that a tag tells apart.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from wallflower.errors import ParameterError, SourceError

T = TypeVar("T")
Refuse = Callable[[str, str, str], Exception]  # from a key, what is wrong with it, and what to do: the error to raise
Reader = Callable[[Any, str], Any]  # from a value and its key: what the field holds

ALIAS: Final = "alias"  # metadata of a field: another spelling of its name that is accepted
TAG: Final = "tag"  # metadata of a field: the key that chooses a class of its union, by that attribute of the class
# At most 15 digits: a longer number is a mistake, and arithmetic with it is slow.
_NUMBER: Final = re.compile(r"-?\d{1,15}(\.\d{1,15})?|-?\d{1,15}/(?=0*[1-9])\d{1,15}", re.ASCII)
_PLAIN_TYPES: Final[Mapping[Any, tuple[tuple[type, ...], str, str]]] = {
    str: ((str,), "must be text", "Put it in quotes"),
    bool: ((bool,), "must be true or false", "Write it without quotes"),
    int: ((int,), "must be a whole number", "Write it without quotes"),
    float: ((int, float), "must be a number", "Write it without quotes"),
}


def parameter_error(key: str, wrong: str, remedy: str) -> ParameterError:
    """Return the error for a key: what is wrong, what is allowed, what to do."""
    return ParameterError(f"{key}: {wrong}. {remedy}{'' if remedy.endswith('?') else '.'}")


def read_table(
    cls: type[T],
    stored: object,
    *,
    where: str = "",
    refuse: Refuse = parameter_error,
    readers: Mapping[Any, Reader] | None = None,
) -> T:
    """Make a dataclass from a table.

    `where` is the key of the table, for messages; `refuse` makes the error; `readers` reads fields of further types,
    from the value and its key.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Grid:
    ...     step: Fraction
    ...     names: tuple[str, ...] = ()
    >>> read_table(Grid, {"step": "0.25", "names": ["x", "y"]})
    Grid(step=Fraction(1, 4), names=('x', 'y'))
    >>> read_table(Grid, {"steps": "0.25"}, where="grid")
    Traceback (most recent call last):
    wallflower.errors.ParameterError: grid.steps: unknown name; allowed are step, names. Did you mean step?
    """
    value: T = _TableReader(refuse, readers or {}).read_table(cls, stored, where)
    return value


def load_table(path: Path) -> dict[str, Any]:
    """Read a file that ends in .json as JSON, any other as TOML, and return its table."""
    try:
        text = path.read_text(encoding="utf-8")
        table = json.loads(text) if path.suffix.lower() == ".json" else tomllib.loads(text)
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}. Check the path.") from None
    except (ValueError, RecursionError):
        table = None
    if not isinstance(table, dict):
        raise SourceError(f"{path}: not a table of TOML or JSON. Check the file; a .json file must hold JSON.")
    return table


def to_table(value: Any) -> Any:
    """Return a value as `read_table` reads it: dataclasses as tables with their tags, fractions as text.

    >>> to_table((Fraction(1, 4), None))
    ['1/4', None]
    """
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, tuple | list):
        return [to_table(item) for item in value]
    if isinstance(value, Mapping):
        return {name: to_table(item) for name, item in value.items()}
    if is_dataclass(value):
        return {item.name: _to_tagged_table(item, getattr(value, item.name)) for item in fields(value)}
    return value


def _to_tagged_table(item: Field[Any], value: Any) -> Any:
    table = to_table(value)
    tag = item.metadata.get(TAG)
    return table if tag is None else {tag: getattr(value, tag)} | table


class _TableReader:
    """One reading of a table, with the way it reports errors."""

    def __init__(self, refuse: Refuse, readers: Mapping[Any, Reader]) -> None:
        self._refuse, self._readers = refuse, readers

    def read_table(self, cls: Any, stored: object, where: str) -> Any:
        where_text = where or cls.__name__.lower()
        if not isinstance(stored, Mapping):
            raise self._refuse(where_text, "must be a table of names and values", "Write it as one")
        known = {item.name: item for item in fields(cls) if item.init}
        aliases = {item.metadata[ALIAS]: name for name, item in known.items() if ALIAS in item.metadata}
        values: dict[str, Any] = {}
        for key, value in stored.items():
            name = aliases.get(key, key)
            if name not in known:
                raise self._refuse(_join(where, str(key)), *_describe_unknown(str(key), known))
            if name in values:
                raise self._refuse(_join(where, name), f"is also there as {key}", "Write one of them")
            values[name] = value
        for name, item in known.items():
            if name not in values and item.default is MISSING and item.default_factory is MISSING:
                raise self._refuse(_join(where, name), f"is missing; {where_text} needs it", "Add it")
        hints = get_type_hints(cls)
        return cls(
            **{
                name: self._read_value(hints[name], value, _join(where, name), known[name].metadata.get(TAG))
                for name, value in values.items()
            }
        )

    def _read_value(self, hint: Any, value: Any, where: str, tag: str | None = None) -> Any:
        if hint in self._readers:
            return self._readers[hint](value, where)
        if hint is Fraction:
            return self._read_fraction(value, where)
        if hint in _PLAIN_TYPES:
            return self._read_plain(hint, value, where)
        if is_dataclass(hint):
            return self.read_table(hint, value, where)
        origin, arguments = get_origin(hint), get_args(hint)
        if origin in (Union, types.UnionType):
            return self._read_union(arguments, value, where, tag)
        if origin is Literal:
            if value not in arguments:
                raise self._refuse(where, f"must be one of {', '.join(map(str, arguments))}", "Write one of them")
            return value
        if origin is tuple:
            if not isinstance(value, list | tuple):
                raise self._refuse(where, "must be a list", "Write it in square brackets")
            return tuple(self._read_value(arguments[0], item, f"{where}[{at}]") for at, item in enumerate(value))
        if origin is dict:
            if not isinstance(value, Mapping):
                raise self._refuse(where, "must be a table of names and values", "Write it as one")
            return {name: self._read_value(arguments[1], item, _join(where, name)) for name, item in value.items()}
        raise TypeError(f"{where}: fields of type {hint} need a reader")

    def _read_plain(self, hint: type, value: Any, where: str) -> Any:
        allowed, wrong, remedy = _PLAIN_TYPES[hint]
        if type(value) not in allowed or (type(value) is float and not math.isfinite(value)):
            raise self._refuse(where, wrong, remedy)
        return value

    def _read_fraction(self, value: Any, where: str) -> Fraction:
        if isinstance(value, float):
            raise self._refuse(where, "must be exact, and binary floats are not", "Write it as text, as in '0.5'")
        if type(value) is int and abs(value) < 10**15:
            return Fraction(value)
        if isinstance(value, str) and _NUMBER.fullmatch(value):
            return Fraction(value)
        raise self._refuse(where, "must be an exact number, written as text", "Write it as in '0.5', '-3' or '1/3'")

    def _read_union(self, options: tuple[Any, ...], value: Any, where: str, tag: str | None) -> Any:
        if value is None and types.NoneType in options:
            return None
        options = tuple(option for option in options if option is not types.NoneType)
        if len(options) == 1:
            return self._read_value(options[0], value, where)
        if tag is None:
            raise TypeError(f"{where}: a union of classes needs a tag in the metadata of its field")
        if not isinstance(value, Mapping):
            raise self._refuse(where, "must be a table of names and values", "Write it as one")
        classes = {str(getattr(option, tag)): option for option in options}
        chosen = value.get(tag)
        if not isinstance(chosen, str) or chosen not in classes:
            raise self._refuse(_join(where, tag), f"must be one of {', '.join(classes)}", "Write one of them")
        return self.read_table(classes[chosen], {name: item for name, item in value.items() if name != tag}, where)


def _join(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _describe_unknown(name: str, known: Mapping[str, Any]) -> tuple[str, str]:
    near = get_close_matches(name, known, n=1)
    return f"unknown name; allowed are {', '.join(known)}", f"Did you mean {near[0]}?" if near else "Remove it"
