"""Modules that are imported when first used, so that `wallflower --help` answers at once.

A module that is slow to load is named twice: imported under `TYPE_CHECKING`, where mypy checks every use of it and the
import contracts see it, and as a `Lazy` of the same name at run time. `tests/test_imports.py` keeps the two alike.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from wallflower.errors import PackageMissing


class Lazy:
    """Stands for a module until an attribute of it is read; `extra` has its package, if the core does not.

    >>> Lazy("math").sqrt(4.0)
    2.0
    """

    def __init__(self, name: str, *, extra: str | None = None) -> None:
        self._name, self._extra = name, extra

    def __getattr__(self, attribute: str) -> Any:
        try:
            value = getattr(import_module(self._name), attribute)
        except ModuleNotFoundError:
            if self._extra is None:
                raise
            raise PackageMissing(self._name.partition(".")[0], extra=self._extra) from None
        setattr(self, attribute, value)
        return value


def load(name: str) -> Any:
    """The module of a name that is only known at run time: a question's audit, a paper, a plugin.

    >>> load("math").sqrt(4.0)
    2.0
    """
    return import_module(name)


def is_there(name: str) -> bool:
    """Whether there is a module of this name, in a package that is loaded.

    >>> is_there("json.decoder"), is_there("json.audit")
    (True, False)
    """
    return find_spec(name) is not None
