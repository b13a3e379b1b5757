"""Compiled loops, so that every kernel releases the interpreter lock and compiles once a machine.

The compiler costs more to import than all the rest, so a kernel waits for it until its first call: a process that only
serves or plans never pays for it. A `light_kernel` waits longer: a few hundred records are through with it, as plain
Python, before the compiler would be there. Both ways give the same bits (tests/machine/test_jit.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, update_wrapper
from threading import Lock, local
from time import thread_time
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import numpy as np

from wallflower.machine.lazy import Lazy, load

if TYPE_CHECKING:
    import numba as _numba
else:
    _numba = Lazy("numba")

_turn: Final = Lock()

SMALL: Final = 1 << 15  # cells that a light kernel is given, to be run as it is
PATIENCE: Final = 0.3  # seconds of processor time that light kernels may take before all are compiled

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile `function` on first use and keep the result on disk."""
    return cast(F, Kernel(function))


def light_kernel(function: F) -> F:
    """Run `function` as it is on small arrays, until that takes longer than compiling it. It must not rely on whole
    numbers of a fixed width: here they are Python's and NumPy's, there those of the machine."""
    return cast(F, LightKernel(function))


def intrinsic(function: F) -> F:
    """Let a function stand for the one of that name in `numba.cpython.unsafe.numbers`; only kernels can call it."""
    return cast(F, Intrinsic(function))


class Kernel:
    """A function that will be compiled."""

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self._function = function

    def __call__(self, *given: Any) -> Any:
        return self._ready(*given)

    @cached_property
    def _ready(self) -> Any:
        """Compiled code cannot call a `Kernel`, so every module within reach gets what its own stand for. A name
        changes after those that its function calls: another thread may compile it as soon as the name leads there."""
        with _turn:
            modules, kernels = _within_reach(self)
            for kernel in kernels:
                for names in modules:
                    for name in [name for name, value in names.items() if value is kernel]:
                        names[name] = kernel._dispatcher
        return self._dispatcher

    @cached_property
    def _dispatcher(self) -> Any:
        """Kept beside the source, in a read-only installation in the user's cache, and nowhere if neither may be."""
        try:
            return _numba.njit(nogil=True, cache=True)(self._function)
        except RuntimeError:  # numba found no folder that it may write to
            return _numba.njit(nogil=True)(self._function)


class Intrinsic(Kernel):
    """A function of the compiler, loaded with it."""

    @cached_property
    def _dispatcher(self) -> Any:
        return getattr(load("numba.cpython.unsafe.numbers"), self._function.__name__)


def _within_reach(kernel: Kernel) -> tuple[list[dict[str, Any]], list[Kernel]]:
    """The names of all modules that a kernel leads to, and the kernels among them, each after those that it calls."""
    modules, reached = dict[int, dict[str, Any]](), [kernel]
    for each in reached:
        names = each._function.__globals__
        if id(names) not in modules:
            modules[id(names)] = names
            reached += [value for value in names.values() if isinstance(value, Kernel)]
    ordered = dict[Kernel, None]()
    for each in reached:
        _put_behind_calls(each, ordered, set())
    return list(modules.values()), list(ordered)


def _put_behind_calls(kernel: Kernel, ordered: dict[Kernel, None], callers: set[Kernel]) -> None:
    if kernel in ordered or kernel in callers:
        return
    names = kernel._function.__globals__
    for name in kernel._function.__code__.co_names:
        if isinstance(names.get(name), Kernel):
            _put_behind_calls(names[name], ordered, callers | {kernel})
    ordered[kernel] = None


class _Thread(local):
    is_inside = False  # a light kernel that is run as it is


class LightKernel(Kernel):
    """A function that will be compiled if there is much to do."""

    left = PATIENCE  # of all light kernels together
    _thread = _Thread()

    def __call__(self, *given: Any) -> Any:
        if self._thread.is_inside:
            return self._function(*given)
        if LightKernel.left <= 0 or sum(np.size(value) for value in given) > SMALL:
            LightKernel.left = 0.0
            return self._ready(*given)
        start = thread_time()
        self._thread.is_inside = True
        try:
            with np.errstate(all="ignore"):  # as compiled code does
                found = self._function(*given)
        finally:
            self._thread.is_inside = False
            LightKernel.left -= thread_time() - start
        return found.item() if isinstance(found, np.generic) else found
