"""Compiled loops: one decorator, so that every kernel releases the interpreter lock and compiles once a machine.

The compiler costs more to import than all the rest, so a kernel waits for it until its first call: a process that only
serves or plans never pays for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, update_wrapper
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from wallflower.lazy import Lazy

if TYPE_CHECKING:
    import numba as _numba
else:
    _numba = Lazy("numba")

_turn: Final = Lock()

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile `function` on first use and keep the result on disk."""
    return cast(F, Kernel(function))


class Kernel:
    """A function that will be compiled."""

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self._function = function

    def __call__(self, *given: Any) -> Any:
        return self._ready(*given)

    @cached_property
    def _ready(self) -> Any:
        """Compiled code cannot call a `Kernel`, so every module within reach gets what its own stand for."""
        with _turn:
            reached = [self]
            while reached:
                names = reached.pop()._function.__globals__
                for name, value in list(names.items()):
                    if isinstance(value, Kernel):
                        names[name] = value._compiled
                        reached.append(value)
        return self._compiled

    @cached_property
    def _compiled(self) -> Any:
        """Kept beside the source, in a read-only installation in the user's cache, and nowhere if neither may be."""
        try:
            return _numba.njit(nogil=True, cache=True)(self._function)
        except RuntimeError:  # numba found no folder that it may write to
            return _numba.njit(nogil=True)(self._function)
