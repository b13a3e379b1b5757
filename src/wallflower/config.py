"""The file of a project, `wallflower.toml`: where its data sets, its ledger and its schemas are, and who asks.

An option says it first, then the environment, then this file, then what is built in. The file is looked for here and
upwards, so it may be found by chance: it can state no loss and no service, its user is told, and one that
somebody else could have written is refused. Paths in it are relative to it.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from wallflower.errors import ConfigError

VARIABLE: Final = "WALLFLOWER_CONFIG"
LEDGER: Final = "WALLFLOWER_LEDGER"
ANALYST: Final = "WALLFLOWER_ANALYST"
FILE: Final = "wallflower.toml"
NONE: Final = "none"

_NAME: Final = re.compile(r"\w[\w-]*")
_PLACE: Final = re.compile(r"(\w+):///(?!/)([^?]*)(.*)", re.DOTALL)  # a URL with a path that begins nowhere
_LOSSES: Final = ("epsilon", "delta", "rho", "loss")


class ConfigNotice(UserWarning):
    """Something is taken from a file that was found; the message ends with its path."""


@dataclass(frozen=True, slots=True)
class Source:
    """A data set that the file names: where it is, what is public about it, who keeps it and which ledger pays."""

    source: str
    schema: str | None = None
    engine: str | None = None
    ledger: str | None = None
    separator: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    sheet: str | None = None
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Config:
    """What a file says."""

    path: Path
    ledger: str | None = None
    analyst: str | None = None
    engine: str | None = None
    neighbours: int | None = None
    datasets: Mapping[str, Source] = field(default_factory=dict)

    def tell(self, words: str) -> None:
        """Report that something was taken from this file."""
        warnings.warn(f"{words} is taken from {self.path}", ConfigNotice, stacklevel=4)


WAYS: Final = ("separator", "encoding", "decimal", "thousands", "sheet", "without")
_PLACES: Final = ("source", "schema", "ledger")
_TOP: Final = ("ledger", "analyst", "defaults", "datasets")
_DEFAULTS: Final = ("engine", "neighbours")


def find_config() -> Config | None:
    """The file in force: that of $WALLFLOWER_CONFIG, or the nearest from here upwards, as far as your home."""
    named = os.environ.get(VARIABLE)
    if named == NONE:
        return None
    if named:
        return read_config(Path(named).expanduser().absolute())
    return next((read_config(path) for path in _upwards() if _is_ours(path)), None)


def read_config(path: Path) -> Config:
    """What a file says, held to what a file may say."""
    try:
        stored = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(path, "", f"is not TOML: {error}", "Correct it") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise ConfigError(path, "", f"cannot be read: {reason}", f"Check the path, or ${VARIABLE}") from None
    _require_known(path, "", stored, _TOP)
    told = _part(path, "defaults", stored.get("defaults", {}))
    _require_known(path, "defaults", told, _DEFAULTS)
    named = _part(path, "datasets", stored.get("datasets", {}))
    return Config(
        path,
        ledger=_text(path, "ledger", stored.get("ledger")),
        analyst=_text(path, "analyst", stored.get("analyst")),
        engine=_text(path, "defaults.engine", told.get("engine")),
        neighbours=_number(path, "defaults.neighbours", told.get("neighbours")),
        datasets={name: _source(path, name, said) for name, said in named.items()},
    )


def find_source(source: object) -> tuple[Config, Source] | None:
    """The data set that the file names so, if it names one; a path of that name is refused, as either may be meant."""
    if not isinstance(source, str) or not _NAME.fullmatch(source):
        return None
    config = find_config()
    if config is None or source not in config.datasets:
        return None
    if Path(source).exists():
        raise ConfigError(
            config.path,
            f"datasets.{source}",
            "is the name of a data set, and there is a path of that name here",
            f"Write ./{source} for the path, or rename one of them",
        )
    config.tell(f"the data set {source}")
    return config, config.datasets[source]


def resolve_source(said: Mapping[str, Any], name_of: Callable[[Any], str | None]) -> dict[str, Any]:
    """What was said about a source, and, where nothing was, what the file says of the data set that it names so.

    The budget is tracked under the name in the file. A schema that states another (`name_of` reads it) is refused: a
    table must
    not get a new budget by being named in a file.
    """
    name = said["source"]
    found = find_source(name)
    if found is None:
        is_place = isinstance(name, str | Path)
        return {**said, "engine": said["engine"] or (find_engine() if is_place else None)}
    config, own = found
    schema = said["schema"] or own.schema
    stated = name_of(schema) if schema is not None and not said["dataset"] else None
    if stated not in (None, name):
        raise ConfigError(
            config.path, f"datasets.{name}", f"has a schema that names it {stated}", f"Write [datasets.{stated}]"
        )
    ways = {way: said.get(way) or getattr(own, way) for way in WAYS}
    return {
        **said,
        **{way: told for way, told in ways.items() if told},
        "source": own.source,
        "schema": schema,
        "engine": said["engine"] or own.engine or config.engine,
        "dataset": said["dataset"] or name,
        "ledger": said["ledger"] or os.environ.get(LEDGER) or own.ledger or config.ledger,
    }


def find_ledger(dataset: str | None = None) -> str | None:
    """Where the file says that the ledger is: of this data set, or of all."""
    config = find_config()
    if config is None:
        return None
    own = config.datasets.get(dataset) if dataset is not None else None
    found = (own.ledger if own is not None else None) or config.ledger
    if found is not None:
        config.tell("the ledger")
    return found


def find_analyst() -> str | None:
    """Who asks, by the file."""
    config = find_config()
    if config is None or config.analyst is None:
        return None
    config.tell("the analyst's name")
    return config.analyst


def find_engine() -> str | None:
    """Who keeps the records, by the file, where nobody says so."""
    config = find_config()
    if config is None or config.engine is None:
        return None
    config.tell("the engine")
    return config.engine


def _upwards() -> Iterator[Path]:
    try:
        here = Path.cwd()
    except OSError:  # the folder is gone
        return
    home = Path(os.path.expanduser("~"))
    for folder in (here, *here.parents):
        if (folder / FILE).is_file():
            yield folder / FILE
        if folder == home:
            return


def _is_ours(path: Path) -> bool:
    """True, or a refusal: a ledger or an analyst that somebody else names would be theirs to choose."""
    facts, link = (
        path.stat(),
        path.lstat(),
    )  # a link of somebody else may lead to a file of ours that is meant elsewhere
    is_foreign = hasattr(os, "getuid") and not {facts.st_uid, link.st_uid} <= {os.getuid(), 0}
    if is_foreign or (os.name == "posix" and facts.st_mode & stat.S_IWOTH):
        who = "belongs to somebody else" if is_foreign else "can be written by anybody"
        raise ConfigError(
            path,
            "",
            f"{who}, and a file that is found on the way is used only if it is yours alone",
            f"Name it (${VARIABLE}={path}) if it is meant, or say ${VARIABLE}={NONE}",
        )
    return True


def _source(path: Path, name: str, said: object) -> Source:
    where = f"datasets.{name}"
    if not _NAME.fullmatch(name):
        raise ConfigError(path, where, "is no name; it has letters, digits, _ and -", "Rename it")
    told = _part(path, where, said)
    _require_known(path, where, told, tuple(each.name for each in fields(Source)))
    if "source" not in told:
        raise ConfigError(path, f"{where}.source", "is not there, and a data set has one", "Add a path or a URL")
    made: dict[str, Any] = {
        key: _text(path, f"{where}.{key}", value) for key, value in told.items() if key != "without"
    }
    made |= {key: _resolve(path, made[key]) for key in _PLACES if made.get(key)}
    return Source(**made, without=_texts(path, f"{where}.without", told.get("without", [])))


def _resolve(path: Path, text: str) -> str:
    """A path, or the path of a URL of a file, relative to the config and not to the reader's folder."""
    if found := _PLACE.fullmatch(text):
        return f"{found[1]}:///{path.parent / found[2]}{found[3]}" if found[2] else text
    return text if "://" in text else str(path.parent / Path(text).expanduser())


def _text(path: Path, key: str, value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(path, key, "is not a text", 'Write it in quotes, as "..."')
    return _resolve(path, value) if key == "ledger" else value


def _texts(path: Path, key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ConfigError(path, key, "is not a list of texts", 'Write it as ["a", "b"]')
    return tuple(value)


def _number(path: Path, key: str, value: object) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise ConfigError(path, key, "is not a whole number above zero", "Correct it")
    return value


def _part(path: Path, key: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(path, key, "is not a table", f"Write [{key}] and its keys below")
    return value


def _require_known(path: Path, where: str, told: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in told:
        full = f"{where}.{key}" if where else key
        if key in _LOSSES:
            raise ConfigError(path, full, "is a loss, which no file may set", "Say it with each question")
        if key not in known:
            near = get_close_matches(key, known, n=1)
            remedy = f"Did you mean {near[0]}?" if near else "Leave it out"
            raise ConfigError(path, full, f"is not known; there are {', '.join(known)}", remedy)
