"""The steward's key for fingerprints: thirty-two bytes in a file that nobody else can read.

It is in the data home of the person who loads tables, and never in a ledger, an export or a service: with it and with
the tags in a ledger, guesses about records could be tried. Without it, older tags say nothing any more, to anybody.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from wallflower.data.fingerprints import KEY_BYTES
from wallflower.errors import SourceError
from wallflower.noise import secret

NAME: Final = "fingerprint.key"


def steward_key() -> bytes:
    """The key of this account on this machine, made when it is first wanted."""
    path = _home() / NAME
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            _make(path)
        with path.open("rb") as file:
            facts, key = os.fstat(file.fileno()), file.read(KEY_BYTES + 1)
    except OSError as error:
        raise SourceError(
            f"{path}: {error.strerror}. The key of fingerprints is kept in this file. Make its directory one that you "
            "may write, or set $XDG_DATA_HOME."
        ) from None
    if facts.st_mode & 0o077 or facts.st_uid != os.geteuid():
        raise SourceError(
            f"{path}: others may read it, or it is not yours. With the key of fingerprints, guesses about records can "
            f"be tried. Delete it if others may have read it, and load your tables again; else chmod 600 it."
        )
    if len(key) != KEY_BYTES:
        raise SourceError(
            f"{path}: it is damaged. The key of fingerprints has {KEY_BYTES} bytes. Restore it from a copy, or delete "
            "it and load your tables again."
        )
    return key


def _home() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "wallflower"


def _make(path: Path) -> None:
    """Write a draft and give it the name, which only one process can: the file is whole from its first moment."""
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{NAME}.")  # mode 0600, under a name of its own
    try:
        with open(handle, "wb") as file:
            file.write(secret(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        os.unlink(draft)
