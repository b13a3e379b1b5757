"""Results as files: for their owner alone from their first moment, and never half written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replacement(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the place of `path` when it is whole: all of the old is read, or all of the new.

    Its mode is 0600, whatever the umask and the mode of what it replaces. What fails leaves the old one as it was. What
    is no file, such as a pipe, is written to as it is.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as place:
            yield place
        return
    real = path.resolve()
    handle, draft = tempfile.mkstemp(dir=real.parent, prefix=f".{real.name[:100]}.")  # mode 0600
    try:
        with open(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, real)
    except BaseException:
        os.unlink(draft)
        raise


def write_text(path: Path, text: str) -> None:
    """Write a text so, as UTF-8."""
    with replacement(path) as file:
        file.write(text.encode("utf-8"))


def write_private(path: str | Path, content: bytes) -> Path:
    """Write a new file that only its owner can read, whole or not at all; one that is there already is refused."""
    place = Path(path)
    handle, draft = tempfile.mkstemp(dir=place.absolute().parent, prefix=f".{place.name[:100]}.")  # mode 0600
    try:
        with open(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, place)  # unlike a rename it never replaces a file
    finally:
        os.unlink(draft)
    return place
