"""Compiled loops: one decorator, so that every kernel releases the interpreter lock and compiles once a machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile `function` on first use and keep the result on disk."""
    return cast(F, njit(nogil=True, cache=True)(function))
