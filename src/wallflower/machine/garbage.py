"""What the garbage collector need not look at: what a process loads to start is in use until it ends."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def load_for_good() -> Iterator[None]:
    """Look for no garbage in what is loaded meanwhile nor in what was loaded before: not now, when so much is new that
    the collector would go through all of it again and again, and not when the process ends."""
    is_collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_collecting:
            gc.enable()
        gc.freeze()
