"""Parquet in an object store: which files a table has there, and how each is opened, through Arrow's file systems.

An address is s3://bucket/people.parquet, or s3://bucket/people for a folder. Keys, region and endpoint are Arrow's to
find, in the environment or in a profile: an address is kept by the ledger and holds no secret.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from wallflower.errors import SourceError
from wallflower.machine.lazy import Lazy
from wallflower.schema.columns import call_or_refuse

if TYPE_CHECKING:
    import pyarrow.fs as _fs
else:
    _fs = Lazy("pyarrow.fs")

SCHEMES: Final = ("s3",)
SUFFIX: Final = ".parquet"


@dataclass(frozen=True, slots=True)
class Store:
    """The files of a table in a store, below `root` or that file itself."""

    system: Any
    root: Path
    parts: tuple[Path, ...]

    def open(self, part: Path) -> Any:
        """A file, of which ranges are fetched as they are read."""
        return self.system.open_input_file(str(part))


def is_stored(source: object) -> bool:
    """Whether this is the address of something in a store.

    >>> is_stored("s3://clinic/people"), is_stored("people.parquet"), is_stored("sqlite:///clinic.db?table=people")
    (True, False, False)
    """
    return isinstance(source, str) and source.startswith(tuple(f"{scheme}://" for scheme in SCHEMES))


def find_parts(address: str) -> Store:
    """Look up the files of a table."""
    if "@" in address or "?" in address:
        raise SourceError(
            "the address of a store holds no key and no setting, since it is written down. Leave out what is before @ "
            "and after ?, and set them in the environment (AWS_ACCESS_KEY_ID, AWS_REGION, AWS_ENDPOINT_URL)."
        )
    return call_or_refuse(lambda: _find_store(address), lambda _: _unreachable(address))


def _find_store(address: str) -> Store:
    system, place = _fs.FileSystem.from_uri(address)
    root = Path(place)
    about = system.get_file_info(place)
    if about.type == _fs.FileType.Directory:
        listed = system.get_file_info(_fs.FileSelector(place, recursive=True))
    else:
        listed = [about]
    files = {
        Path(each.path): each.size
        for each in listed
        if each.type == _fs.FileType.File and each.path.lower().endswith(SUFFIX)
    }
    parts = _least_deep(root, sorted(files))
    if not parts:
        raise SourceError(f"{address}: there is no .parquet file. Name one, or a folder that has some.")
    if not all(files[part] for part in parts):
        raise SourceError(f"{address}: a file is empty. Check how it was written.")
    return Store(system, root, parts)


def _least_deep(root: Path, files: list[Path]) -> tuple[Path, ...]:
    """The files of the folder, or if it has none those of the folders below that are called key=value: as on a disk."""
    below = {file: file.relative_to(root).parts[:-1] for file in files}
    named = [file for file in files if all("=" in name for name in below[file])]
    depth = min((len(below[file]) for file in named), default=0)
    parts = tuple(file for file in named if len(below[file]) == depth)
    if len({tuple(name.partition("=")[0] for name in below[part]) for part in parts}) > 1:
        raise SourceError(f"{root}: its folders differ in what they are named by. Name all as key=value, alike.")
    return parts


def _unreachable(address: str) -> SourceError:
    return SourceError(
        f"{address}: the store does not answer, or not to you. Check the address, and the keys, region and endpoint in "
        "the environment (AWS_ACCESS_KEY_ID, AWS_REGION, AWS_ENDPOINT_URL); its own message is withheld."
    )
