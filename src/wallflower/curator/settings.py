"""What the steward decides before the service starts: a TOML file, and a few options of the command line.

Every place in it is relative to the folder of the file. Sources lie under one of the `roots`.
"""

from __future__ import annotations

import ipaddress
import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Final, Self

from wallflower.curator.identity import Group, OpenId, TrustedHeader, require_identity_sources
from wallflower.curator.office import UNNAMED, Office
from wallflower.errors import ParameterError, SourceError
from wallflower.names import account_name
from wallflower.privacy import exact
from wallflower.query.forms import closest
from wallflower.schema import Schema
from wallflower.schema.columns import call_or_refuse
from wallflower.units import Protection

EVERYBODY: Final = "*"
VARIABLE: Final = "WALLFLOWER_SERVICE"  # how a server tells its workers

PLACES: Final = ("ledger", "watches", "tls_cert", "tls_key", "metrics_token_file")
_RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "port": (0, 65535),
    "workers": (1, 64),
    "tick": (0, 60),
    "patience": (0, 3600),
    "job_seconds": (0, 86_400),
    "question_bytes": (2**20, 2**50),
    "grace": (1, 3600),
    "idle": (1, 86_400),
    "fresh": (0, 3600),
    "answering": (1, 64),
    "answering_each": (1, 64),
    "waiting": (1, 100_000),
    "waiting_each": (1, 100_000),
    "computing": (1, 64),
    "computing_waiting_each": (1, 100_000),
    "failures": (1, 100_000),
    "body_bytes": (1024, 2**30),
    "body_seconds": (0.1, 3600),
    "header_seconds": (0.1, 3600),
    "four_eyes_hours": (0.01, 8760),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A data set as it was registered: a file, a folder of Parquet or a database URL; without a source, a stream.

    `records` are those that analysts may name in a question; a steward may name any. `engine` keeps the records; left
    out, they are in memory, or in tiles if they are too many for it. A data set that was registered while the service
    ran has the time of that (`registered`) and a tag of its content (`fingerprint`), and its source is relative to a
    root. `analysts` may see it: names, or `*` for all; an analyst who is not among them has to be given access.
    """

    name: str
    source: str | None
    schema: Schema
    records: tuple[str, ...] = ()
    engine: str | None = None
    analysts: tuple[str, ...] = ()
    fingerprint: str | None = None
    registered: str | None = None

    def to_json(self) -> dict[str, Any]:
        own = {"name": self.name, "source": self.source, "records": list(self.records), "engine": self.engine}
        own |= {"analysts": list(self.analysts), "fingerprint": self.fingerprint}
        return own | {"schema": self.schema.to_json()}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        return cls(
            name=stored["name"],
            source=stored["source"],
            schema=Schema.from_json(stored["schema"]),
            records=tuple(stored["records"]),
            engine=stored.get("engine"),
            analysts=tuple(stored.get("analysts", ())),
            fingerprint=stored.get("fingerprint"),
            registered=stored.get("registered"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the service runs. Times are in seconds; answers leave at multiples of `tick` after the question came.

    A limit that is raised above ε = `four_eyes_above` waits up to `four_eyes_hours` for a second steward.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    workers: int = 1
    ledger: str | None = None
    roots: tuple[str, ...] = ()
    watches: str | None = None
    tick: float = 0.25
    patience: float = 20.0
    job_seconds: float = 60.0
    question_bytes: int = 2**31
    grace: int = 20
    answering: int = 2
    answering_each: int = 1
    waiting: int = 512
    waiting_each: int = 64
    computing: int = 2
    computing_waiting_each: int = 16
    failures: int = 20
    proxies: tuple[str, ...] = ()
    https: bool = False
    tls_cert: str | None = None
    tls_key: str | None = None
    idle: float = 1800.0
    fresh: float = 300.0
    body_bytes: int = 2**20
    body_seconds: float = 10.0
    header_seconds: float = 10.0
    metrics_datasets: bool = False
    metrics_token_file: str | None = None
    four_eyes_above: str | None = None
    four_eyes_hours: float = 168.0
    office: Office = UNNAMED
    groups: tuple[Group, ...] = ()
    openid: OpenId | None = None
    trusted_header: TrustedHeader | None = None
    datasets: tuple[Registration, ...] = ()

    def __post_init__(self) -> None:
        for proxy in self.proxies:
            _require_address(proxy)
        if (self.tls_cert is None) is not (self.tls_key is None):
            raise ParameterError("tls_cert, tls_key: one is given without the other. TLS needs both. Name both files.")
        for name, (low, high) in _RANGES.items():
            if not low <= getattr(self, name) <= high:
                raise ParameterError(f"{name}: it is a number from {low:,} to {high:,}. Correct the settings.")
        if self.four_eyes_above is not None:
            exact(self.four_eyes_above, "four_eyes_above")
        require_identity_sources(self.openid, self.trusted_header, address=self.office.address, proxies=self.proxies)
        names = [account_name(dataset.name) or dataset.name for dataset in self.datasets]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ParameterError(f"datasets: {', '.join(sorted(twice))} is there twice. Give each a name of its own.")

    @property
    def is_behind_tls(self) -> bool:
        """Whether visitors come over TLS that the settings know of: the service's own, or that of a proxy."""
        return self.https or self.tls_cert is not None or self.office.address.startswith("https://")

    @classmethod
    def read(cls, path: Path) -> Self:
        """The settings in a TOML file."""
        refusal = SourceError(f"{path}: the settings cannot be opened, or are no TOML. Check the file.")
        stored = call_or_refuse(lambda: tomllib.loads(path.read_text(encoding="utf-8")), lambda _: refusal)
        known = {item.name: item.default for item in fields(cls)}
        known |= {name: {} for name in ("office", "groups", "openid", "trusted_header")}
        given: dict[str, Any] = _require_known(stored, known, "the settings")
        folder = path.absolute().parent
        given["office"] = Office.read(folder, given.get("office", {}))
        given["groups"] = tuple(Group.read(name, table) for name, table in given.get("groups", {}).items())
        if "openid" in given:
            given["openid"] = OpenId.read(folder, given["openid"])
        if "trusted_header" in given:
            given["trusted_header"] = TrustedHeader.read(given["trusted_header"])
        placed: dict[str, Any] = {name: _resolve_place(folder, given[name]) for name in PLACES if name in given}
        roots = [str(folder / root) for root in given.get("roots", ["."])]
        found = tuple(_dataset(folder, one) for one in given.pop("datasets", []))
        proxies = tuple(given.get("proxies", ()))
        return cls(**given | placed | {"roots": tuple(roots), "proxies": proxies, "datasets": found})

    def but(self, **given: Any) -> Self:
        """The same settings with these changed; what is None stays as it was."""
        return replace(self, **{name: value for name, value in given.items() if value is not None})

    def to_json(self) -> str:
        """As a text, from which a worker reads them again."""
        return json.dumps({**asdict(self), "datasets": [dataset.to_json() for dataset in self.datasets]})

    @classmethod
    def from_json(cls, stored: str) -> Self:
        given = json.loads(stored)
        datasets = tuple(map(Registration.from_json, given.pop("datasets")))
        given["office"] = Office(**given.get("office", {}))
        lists: dict[str, Any] = {name: tuple(given[name]) for name in ("roots", "proxies")}
        lists["groups"] = tuple(
            Group(**{**group, "datasets": tuple(group["datasets"])}) for group in given.get("groups", ())
        )
        lists["openid"] = OpenId.from_json(given["openid"]) if given.get("openid") else None
        lists["trusted_header"] = TrustedHeader(**given["trusted_header"]) if given.get("trusted_header") else None
        return cls(**given | lists | {"datasets": datasets})


_DATASET: Final[Mapping[str, Any]] = {
    "name": "",
    "source": None,
    "schema": None,
    "records": (),
    "analysts": (),
    "file": {},
    "without": (),
    "account": None,
    "protects": {},
    "engine": None,
}


def state_account(schema: Schema, *, account: str | None, protects: Any, where: str) -> Schema:
    """The schema, with what is said beside it of the budget: which account, and whose loss it bounds."""
    stated: dict[str, Any] = {
        "account": account,
        "protects": None if protects is None else Protection.from_json(protects),
    }
    for name, value in stated.items():
        known = getattr(schema, name)
        if value is not None and known is not None and known != value:
            raise ParameterError(f"{where}: its schema has another {name}. Say it once, or say the same.")
    return replace(schema, **{name: value for name, value in stated.items() if value is not None})


def _dataset(folder: Path, stored: Any) -> Registration:
    given = _require_known(stored, _DATASET, "a data set")
    if "name" not in given:
        raise ParameterError('datasets: one has no name, and its budget hangs on it. Add name = "...".')
    schema = given.get("schema")
    read = Schema() if schema is None else Schema.read(folder / schema)
    where = f"datasets: {given['name']!r}"
    written: Any = {**given.get("file", {}), "without": given.get("without", ())}
    read = read.but_read(written)
    facts = state_account(read, account=given.get("account"), protects=given.get("protects"), where=where)
    source = given.get("source")
    if source is None and facts.columns is None:
        raise ParameterError(
            f"{where} has neither a source nor a schema with columns. A table has a source, a "
            "stream has columns. Add one."
        )
    placed = None if source is None else _resolve_place(folder, source)
    records, engine = tuple(given.get("records", ())), given.get("engine")
    analysts = tuple(given.get("analysts", ()))
    if not all(isinstance(name, str) for name in analysts):
        raise ParameterError(f'{where}: analysts is a list of names of tokens, or ["*"]. Correct the settings.')
    return Registration(
        name=given["name"], source=placed, schema=facts, records=records, engine=engine, analysts=analysts
    )


def _require_address(proxy: Any) -> None:
    refusal = ParameterError(
        'proxies: each is an address or a network, such as "127.0.0.1" or "10.0.0.0/8". Correct the settings.'
    )
    call_or_refuse(lambda: ipaddress.ip_network(str(proxy)), lambda _: refusal)


def _resolve_place(folder: Path, place: str) -> str:
    return place if "://" in place else str(folder / place)


def _require_known(stored: Any, known: Mapping[str, Any], where: str) -> dict[str, Any]:
    """What is stated; a name that is unknown, or a value that is not of the type of its default, is refused."""
    if not isinstance(stored, dict):
        raise ParameterError(f"{where}: it is a table of names and values. Correct the settings.")
    for name, value in stored.items():
        if name not in known:
            raise ParameterError(f"{where}: {name} is not known; there are {', '.join(known)}. {closest(name, known)}")
        if not isinstance(value, _types(known[name])) or (isinstance(value, bool) and known[name] is not False):
            raise ParameterError(f"{where}: {name} is of the wrong type. Correct the settings.")
    return dict(stored)


def _types(default: object) -> tuple[type, ...]:
    match default:
        case bool() | int():
            return (type(default),)
        case float():
            return (int, float)
        case tuple() | dict():
            return (list,) if isinstance(default, tuple) else (dict,)
        case _:
            return (str,)
