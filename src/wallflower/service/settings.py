"""Settings of the service: what the person who runs it decides before it starts.

They are a TOML file and a few options of the command line. Paths are relative to the folder of the file, and sources
lie under one of the `roots`. `[office]` says who runs the service, `[groups.NAME]` gives a group of the directory a
role and data sets, `[openid]` or `[trusted_header]` says how people sign in, `[agents]` what agents may ask.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, Literal, Self, get_args
from urllib.parse import urlsplit

from wallflower.errors import ParameterError, SourceError
from wallflower.machine.strict_reader import load_table, read_table, to_table
from wallflower.names import account_name
from wallflower.privacy import exact
from wallflower.schema import Person, Schema
from wallflower.schema.columns import call_or_refuse
from wallflower.units import Protection

Role = Literal["steward", "auditor", "analyst"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)  # strongest first: a person in several groups has the first

EVERYBODY: Final = "*"
VARIABLE: Final = "WALLFLOWER_SERVICE"  # environment variable with the settings of worker processes
LOGO_TYPES: Final[Mapping[str, str]] = {".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg"}
DEFAULT_PORTS: Final[Mapping[str, int]] = {"http": 80, "https": 443}
MAX_GROUP_NAME_LETTERS: Final = 200
MAX_SECRET_BYTES: Final = 4096
_MAX_LOGO_BYTES: Final = 2**18
_MAX_STATEMENT_BYTES: Final = 2**17
_SESSION_HOURS: Final = (0.01, 168.0)
_AGENT_HOURS: Final = (0.01, 720.0)
_TOKEN_DAYS: Final = (1, 365)
_HOST: Final = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_PORT: Final = re.compile(r":[0-9]{1,5}$")
_HEADER: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,60}")
_PATHS: Final = ("ledger", "watches", "tls_cert", "tls_key", "metrics_token_file")
_RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "port": (0, 65535),
    "workers": (1, 64),
    "quantum_seconds": (0, 60),
    "async_after_seconds": (0, 3600),
    "job_seconds": (0, 86_400),
    "question_bytes": (2**20, 2**50),
    "shutdown_seconds": (1, 3600),
    "idle_seconds": (1, 86_400),
    "reauth_seconds": (0, 3600),
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


# Who runs the service


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph:
    """A paragraph of a statement, with the heading before it."""

    heading: str | None
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Office:
    """Who runs the service, as its pages say.

    `logo`, `accessibility` and `privacy` are files; the last two are plain text, with empty lines between paragraphs
    and headings that begin with `## `. `contact` is an address to write to, `language` the default of the pages.
    `address` is the public URL of the service, without a path: links, citations and snippets are made from it, and
    requests to other hosts are refused.
    """

    name: str = ""
    address: str = ""
    logo: str | None = None
    contact: str = ""
    accessibility: str | None = None
    privacy: str | None = None
    language: str = "en"

    @classmethod
    def read(cls, folder: Path, stored: Any, where: str = "office") -> Self:
        """Read the table `[office]`; its files are relative to the settings, and must be readable."""
        office = read_table(cls, stored, where=where)
        for name, value in stored.items():
            if not value.strip() or not value.isprintable():
                raise ParameterError(f"{where}.{name}: must be one line of text. Correct the settings.")
        files = ("logo", "accessibility", "privacy")
        placed: dict[str, Any] = {
            name: str(folder / getattr(office, name)) for name in files if getattr(office, name) is not None
        }
        office = replace(office, **placed, address=parse_address(office.address) if office.address else "")
        office.require_files()
        return office

    def require_files(self) -> None:
        """Refuse a logo that browsers do not show, and files that are too large or cannot be read."""
        if self.logo is not None and Path(self.logo).suffix.lower() not in LOGO_TYPES:
            raise ParameterError(f"office.logo: must end in one of {', '.join(LOGO_TYPES)}. Convert it.")
        self.logo_bytes()
        self.statement("accessibility")
        self.statement("privacy")

    def logo_bytes(self) -> tuple[bytes, str] | None:
        """Return the logo and its media type; None if there is none."""
        if self.logo is None:
            return None
        return _read_file(self.logo, "office.logo", _MAX_LOGO_BYTES), LOGO_TYPES[Path(self.logo).suffix.lower()]

    def statement(self, name: str) -> list[Paragraph] | None:
        """Return the paragraphs of a statement; None if the office has made none."""
        path = getattr(self, name)
        if path is None:
            return None
        refusal = SourceError(f"office.{name}: must be text in UTF-8. Correct the file.")
        content = _read_file(path, f"office.{name}", _MAX_STATEMENT_BYTES)
        return parse_statement(call_or_refuse(lambda: content.decode("utf-8-sig"), lambda _: refusal))


def parse_statement(text: str) -> list[Paragraph]:
    """Split a text into paragraphs, each with the heading before it, if there is one.

    >>> [(part.heading, part.words) for part in parse_statement("One.\\n\\n## Two\\nthree\\nfour")]
    [(None, 'One.'), ('Two', 'three four')]
    """
    paragraphs: list[Paragraph] = []
    for block in text.replace("\r\n", "\n").split("\n\n"):
        lines = [line.strip() for line in block.splitlines() if line.strip()]
        heading = lines.pop(0).removeprefix("##").strip() if lines and lines[0].startswith("## ") else None
        if heading or lines:
            paragraphs.append(Paragraph(heading=heading, words=" ".join(lines)))
    return paragraphs


def parse_address(text: str) -> str:
    """Return the origin that a URL names, without the default port of its scheme.

    >>> parse_address("https://Outliers.Office.example:443/")
    'https://outliers.office.example'

    Raises `ParameterError` unless it is `https://HOST` or `http://HOST`, without path, query and user.
    """
    refusal = ParameterError(
        f"office.address: {text!r} is not the public URL of a service. Use https://HOST or https://HOST:PORT, without "
        "a path."
    )
    url = call_or_refuse(lambda: urlsplit(text), lambda _: refusal)
    host = call_or_refuse(lambda: normalise_host(url.netloc, url.scheme), lambda _: refusal)
    if url.scheme not in DEFAULT_PORTS or url.path not in ("", "/") or url.query or url.fragment or not host:
        raise refusal
    return f"{url.scheme}://{host}"


def normalise_host(host: str, scheme: str) -> str:
    """Return `HOST` or `HOST:PORT` in lower case, without the default port of the scheme; "" if it is neither.

    >>> normalise_host("Stats.example:443", "https"), normalise_host("a@b", "http")
    ('stats.example', '')
    """
    if not _HOST.fullmatch(host):
        return ""
    name, _, port = host.lower().rpartition(":") if _PORT.search(host) else (host.lower(), "", "")
    return name if not port or int(port) == DEFAULT_PORTS.get(scheme) else f"{name}:{int(port)}"


# Who may use it


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group of the directory, or of tokens: the role and the data sets of its members.

    `datasets` are names, or `*` for all. A person without a known group has no access.
    """

    name: str
    role: Role = "analyst"
    datasets: tuple[str, ...] = ()

    @classmethod
    def read_all(cls, stored: Any, where: str) -> tuple[Self, ...]:
        """Read the tables `[groups.NAME]`."""
        tables = _require_table(stored, where)
        for name in tables:
            if not (1 <= len(name) <= MAX_GROUP_NAME_LETTERS and name.isprintable()):
                raise ParameterError(
                    f"{where}: a name has 1 to {MAX_GROUP_NAME_LETTERS} printable letters. Correct it."
                )
        groups = (read_table(_GroupTable, table, where=f"{where}.{name}") for name, table in tables.items())
        return tuple(
            cls(name=name, role=group.role, datasets=group.datasets) for name, group in zip(tables, groups, strict=True)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _GroupTable:
    role: Role = "analyst"
    datasets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenId:
    """The OpenID provider that people sign in with, and how long that lasts.

    `client_secret` is read from a file, so that the settings hold no secret. `token_days` bounds personal tokens: they
    work until this long after the last sign-in of their owner.
    """

    issuer: str
    client_id: str
    client_secret: str | None = None
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    name_claim: str = "preferred_username"
    groups_claim: str = "groups"
    session_hours: float = 8.0
    token_days: int = 14
    label: str = ""

    @classmethod
    def read(cls, folder: Path, stored: Any, where: str = "openid") -> Self:
        """Read the table `[openid]`: the fields, with `client_secret_file` in place of the secret."""
        table = _require_table(stored, where)
        if "client_secret" in table:
            raise ParameterError(
                f"{where}.client_secret: secrets do not belong into the settings. Use client_secret_file."
            )
        path = table.pop("client_secret_file", None)
        secret = None if path is None else _read_secret(folder / str(path))
        return replace(read_table(cls, table, where=where), client_secret=secret)

    def __post_init__(self) -> None:
        if not is_safe_endpoint(self.issuer) or urlsplit(self.issuer).query or urlsplit(self.issuer).fragment:
            raise ParameterError("openid.issuer: must be the https:// URL of the provider, as its metadata state it.")
        if not self.client_id.strip():
            raise ParameterError("openid.client_id: must not be empty. Copy it from the provider.")
        if "openid" not in self.scopes:
            raise ParameterError('openid.scopes: must contain "openid". Add it.')
        _require_range("openid.session_hours", self.session_hours, *_SESSION_HOURS)
        _require_range("openid.token_days", self.token_days, *_TOKEN_DAYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedHeader:
    """The headers in which a trusted proxy names the person whom it has signed in, and her groups."""

    user: str = "X-Remote-User"
    groups: str = "X-Remote-Groups"
    session_hours: float = 8.0
    token_days: int = 14

    def __post_init__(self) -> None:
        for name, value in (("user", self.user), ("groups", self.groups)):
            if _HEADER.fullmatch(value) is None:
                raise ParameterError(f"trusted_header.{name}: must be the name of a header, such as X-Remote-User.")


def strongest_role(groups: Iterable[Group]) -> Role | None:
    """Return the role of a member of these groups: steward before auditor before analyst; None without a group."""
    roles = {group.role for group in groups}
    return next((role for role in ROLES if role in roles), None)


def is_safe_endpoint(url: str) -> bool:
    """Return whether secrets may be sent to a URL: over TLS, or on this machine.

    >>> is_safe_endpoint("https://login.example.org/x"), is_safe_endpoint("http://127.0.0.1:4593/api/oidc")
    (True, True)
    >>> is_safe_endpoint("http://login.example.org"), is_safe_endpoint("https://a@b/"), is_safe_endpoint("file:///etc")
    (False, False, False)
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if not host or "@" in parts.netloc or not url.isprintable() or " " in url:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host))


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRule:
    """What agents may do over the MCP server: which ε a person need not confirm, and how much in all.

    `unconfirmed_epsilon` is for one analyst's agents, one account and one day; 0: a person confirms every query.
    `quota_epsilon` is for one analyst's agents and one account, in all; without one only the budget bounds them. An
    unanswered question expires after `hours`.
    """

    unconfirmed_epsilon: str = "0"
    quota_epsilon: str | None = None
    hours: float = 24.0

    def __post_init__(self) -> None:
        exact(self.unconfirmed_epsilon, "agents.unconfirmed_epsilon")
        if self.quota_epsilon is not None:
            exact(self.quota_epsilon, "agents.quota_epsilon")
        _require_range("agents.hours", self.hours, *_AGENT_HOURS)

    @property
    def unconfirmed(self) -> Fraction:
        """The ε of a day that no person confirms."""
        return exact(self.unconfirmed_epsilon)

    @property
    def quota(self) -> Fraction | None:
        """The ε in all."""
        return None if self.quota_epsilon is None else exact(self.quota_epsilon)


# Data sets


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A data set as it was registered: a file, a folder of Parquet or a database URL; without a source, a stream.

    Attributes:
        records: records that analysts may name in a query; a steward may name any.
        engine: where the records are kept. Default: in memory, or in tiles if they are too many.
        analysts: who may see it: names, or `*` for all. Others have to be given access.
        fingerprint: tag of its content, if it was registered while the service ran.
        registered: the time of that registration; its source is relative to a root then.
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
        names = [item.name for item in fields(self) if item.name not in ("schema", "registered")]
        return {name: to_table(getattr(self, name)) for name in names} | {"schema": self.schema.to_json()}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        return read_table(cls, stored, readers={Schema: lambda value, _: Schema.from_json(value)})

    @classmethod
    def read(cls, folder: Path, stored: Any, where: str) -> Self:
        """Read a table `[[datasets]]`; files are relative to the settings."""
        table = read_table(_DatasetTable, stored, where=where, readers={Any: lambda value, _: value})
        where = f"datasets: {table.name!r}"
        schema = Schema() if table.schema is None else Schema.read(folder / table.schema)
        options: Any = {**table.file, "without": table.without}
        schema = schema.but_read(options)
        schema = state_account(schema, account=table.account, protects=table.protects, where=where)
        if table.source is None and schema.columns is None:
            raise ParameterError(
                f"{where} has neither a source nor a schema with columns. A table needs a source, a stream needs "
                "columns. Add one."
            )
        return cls(
            name=table.name,
            source=None if table.source is None else _resolve_path(folder, table.source),
            schema=schema,
            records=table.records,
            engine=table.engine,
            analysts=table.analysts,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _DatasetTable:
    name: str
    source: str | None = None
    schema: str | None = None
    records: tuple[str, ...] = ()
    analysts: tuple[str, ...] = ()
    file: dict[str, Any] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    account: str | None = None
    protects: dict[str, Any] | None = None
    engine: str | None = None


def state_account(schema: Schema, *, account: str | None, protects: Any, where: str, person: Any = None) -> Schema:
    """Return the schema with the account, the unit of protection and the person that are stated beside it.

    A person's unit follows from the declaration of the person; `protects` may add that membership is protected.
    """
    stated: dict[str, Any] = {
        "account": account,
        "protects": None if protects is None else Protection.from_json(protects),
        "person": None if person is None else Person.from_json(person),
    }
    for name, value in stated.items():
        known = getattr(schema, name)
        if name == "protects" and schema.person is not None and value is not None:  # the schema checks all but the unit
            known = value if known.unit in ("record", value.unit) else known
        if value is not None and known is not None and known != value:
            raise ParameterError(f"{where}: its schema has another {name}. State it once, or state the same.")
    return replace(schema, **{name: value for name, value in stated.items() if value is not None})


# The service


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of a service.

    Answers leave at multiples of `quantum_seconds` after the query came; a query that takes longer than
    `async_after_seconds` becomes a job. At most `answering` queries run at a time in a process, `answering_each` of one
    analyst; the others wait. A limit that is raised above ε = `four_eyes_above` waits up to `four_eyes_hours` for a
    second steward. docs/service.md explains each setting.

    >>> Settings(port=9000).override(port=None, workers=2).port
    9000
    """

    host: str = "127.0.0.1"
    port: int = 8080
    workers: int = 1
    ledger: str | None = None
    roots: tuple[str, ...] = ()
    watches: str | None = None
    quantum_seconds: float = 0.25
    async_after_seconds: float = 20.0
    job_seconds: float = 60.0
    question_bytes: int = 2**31
    shutdown_seconds: int = 20
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
    idle_seconds: float = 1800.0
    reauth_seconds: float = 300.0
    body_bytes: int = 2**20
    body_seconds: float = 10.0
    header_seconds: float = 10.0
    metrics_datasets: bool = False
    metrics_token_file: str | None = None
    four_eyes_above: str | None = None
    four_eyes_hours: float = 168.0
    office: Office = Office()
    groups: tuple[Group, ...] = ()
    openid: OpenId | None = None
    trusted_header: TrustedHeader | None = None
    agents: AgentRule | None = None
    datasets: tuple[Registration, ...] = ()

    def __post_init__(self) -> None:
        for proxy in self.proxies:
            _require_network(proxy)
        if (self.tls_cert is None) is not (self.tls_key is None):
            raise ParameterError("tls_cert, tls_key: one is given without the other. TLS needs both. Name both files.")
        for name, (low, high) in _RANGES.items():
            _require_range(name, getattr(self, name), low, high)
        if self.four_eyes_above is not None:
            exact(self.four_eyes_above, "four_eyes_above")
        self._require_identity_sources()
        names = [account_name(dataset.name) or dataset.name for dataset in self.datasets]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ParameterError(f"datasets: {', '.join(sorted(twice))} is there twice. Names must be unique.")

    def _require_identity_sources(self) -> None:
        """Refuse a provider without an address to return to, and a trusted header without a trusted proxy."""
        if self.openid is not None and not self.office.address:
            raise ParameterError("openid: the provider redirects people to the service. Add address to [office].")
        if self.trusted_header is not None and not self.proxies:
            raise ParameterError("trusted_header: no proxy is listed, so anybody could send it. Add proxies.")
        if self.trusted_header is not None and self.openid is not None:
            raise ParameterError("openid, trusted_header: people sign in one way. Remove one of the two.")

    @property
    def is_behind_tls(self) -> bool:
        """Whether visitors come over TLS that the settings know of: the service's own, or that of a proxy."""
        return self.https or self.tls_cert is not None or self.office.address.startswith("https://")

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the settings in a TOML file."""
        folder = path.absolute().parent
        settings = read_table(
            cls,
            {"roots": ["."], **load_table(path)},
            readers={
                Office: lambda stored, where: Office.read(folder, stored, where),
                tuple[Group, ...]: Group.read_all,
                OpenId: lambda stored, where: OpenId.read(folder, stored, where),
                Registration: lambda stored, where: Registration.read(folder, stored, where),
            },
        )
        paths = {name: getattr(settings, name) for name in _PATHS}
        placed: dict[str, Any] = {
            name: _resolve_path(folder, value) for name, value in paths.items() if value is not None
        }
        return replace(settings, **placed, roots=tuple(str(folder / root) for root in settings.roots))

    def override(self, **changes: Any) -> Self:
        """Return the settings with these changes; None changes nothing."""
        return replace(self, **{name: value for name, value in changes.items() if value is not None})

    def to_json(self) -> str:
        """Return the settings as text, from which a worker process reads them."""
        table = to_table(replace(self, datasets=()))
        return json.dumps({**table, "datasets": [dataset.to_json() for dataset in self.datasets]})

    @classmethod
    def from_json(cls, stored: str) -> Self:
        return read_table(
            cls, json.loads(stored), readers={Registration: lambda table, _: Registration.from_json(table)}
        )


def _require_table(stored: Any, where: str) -> dict[str, Any]:
    if not isinstance(stored, Mapping):
        raise ParameterError(f"{where}: must be a table of names and values. Correct the settings.")
    return dict(stored)


def _require_range(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise ParameterError(f"{name}: must be a number from {low:,} to {high:,}. Correct the settings.")


def _require_network(proxy: str) -> None:
    refusal = ParameterError(
        'proxies: each is an address or a network, such as "127.0.0.1" or "10.0.0.0/8". Correct the settings.'
    )
    call_or_refuse(lambda: ipaddress.ip_network(str(proxy)), lambda _: refusal)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _resolve_path(folder: Path, path: str) -> str:
    return path if "://" in path else str(folder / path)


def _read_file(path: str, name: str, max_bytes: int) -> bytes:
    refusal = SourceError(f"{name}: the file cannot be read. Check its name and its mode.")
    content: bytes = call_or_refuse(lambda: Path(path).read_bytes(), lambda _: refusal)
    if len(content) > max_bytes:
        raise SourceError(f"{name}: the file has more than {max_bytes:,} bytes. Make it smaller.")
    return content


def _read_secret(path: Path) -> str:
    name = "openid.client_secret_file"
    text = _read_file(str(path), name, MAX_SECRET_BYTES).decode("utf-8", "replace").strip()
    if not text or not text.isprintable():
        raise SourceError(f"{name}: must be one line with the secret of the client. Correct the file.")
    return text
