"""Settings that say who people are: groups with their rights, the OpenID provider, the header of a trusted proxy.

A person signs in with the account of her office. Her groups decide what she may do: `[groups.NAME]` gives a group of
the directory a role and data sets. A person without a known group has no access.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Self, get_args
from urllib.parse import urlsplit

from wallflower.errors import ParameterError, SourceError
from wallflower.query.forms import closest
from wallflower.schema.columns import call_or_refuse

Role = Literal["steward", "auditor", "analyst"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)  # strongest first: a person in several groups has the first

MAX_GROUP_NAME_LETTERS: Final = 200
MAX_SECRET_BYTES: Final = 4096
_HEADER: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,60}")
_SESSION_HOURS: Final = (0.01, 168.0)
_TOKEN_DAYS: Final = (1, 365)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group of the directory, or of tokens: its role here, and the data sets that its members may see.

    `datasets` are names, or `*` for all. A group without data sets opens none.
    """

    name: str
    role: Role = "analyst"
    datasets: tuple[str, ...] = ()

    @classmethod
    def read(cls, name: str, stated: Any) -> Self:
        """Parse one table `[groups.NAME]`."""
        where = f"groups.{name}"
        given = _require_fields(where, stated, {"role": str, "datasets": list})
        role, datasets = given.get("role", "analyst"), tuple(given.get("datasets", ()))
        if not (1 <= len(name) <= MAX_GROUP_NAME_LETTERS and name.isprintable()):
            raise ParameterError(f"groups: a name has 1 to {MAX_GROUP_NAME_LETTERS} printable letters. Correct it.")
        if role not in ROLES:
            raise ParameterError(f"{where}.role: {str(role)!r} is not valid; use {', '.join(ROLES)}. Choose one.")
        if not all(isinstance(dataset, str) for dataset in datasets):
            raise ParameterError(f'{where}.datasets: a list of names of data sets, or ["*"]. Correct the settings.')
        return cls(name=name, role=role, datasets=datasets)


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
    def read(cls, folder: Path, stated: Any) -> Self:
        """Parse the table `[openid]`; files are relative to the settings."""
        texts = dict.fromkeys(("issuer", "client_id", "client_secret_file", "name_claim", "groups_claim", "label"), str)
        known: dict[str, Any] = {**texts, "scopes": list, "session_hours": (int, float), "token_days": int}
        given = _require_fields("openid", stated, known)
        for name in ("issuer", "client_id"):
            if not given.get(name, "").strip():
                raise ParameterError(f"openid.{name}: it is required. Add it as the provider states it.")
        secret_file = given.pop("client_secret_file", None)
        secret = None if secret_file is None else _read_secret(folder / secret_file)
        scopes = tuple(given.pop("scopes", cls.__dataclass_fields__["scopes"].default))
        if "openid" not in scopes or not all(isinstance(scope, str) for scope in scopes):
            raise ParameterError('openid.scopes: a list of texts with "openid" among them. Correct the settings.')
        return cls(**given, scopes=scopes, client_secret=secret)

    def __post_init__(self) -> None:
        if not is_safe_endpoint(self.issuer) or urlsplit(self.issuer).query or urlsplit(self.issuer).fragment:
            raise ParameterError(
                "openid.issuer: the https:// address of the provider, exactly as its metadata state it. Correct it."
            )
        low, high = _SESSION_HOURS
        if not low <= self.session_hours <= high:
            raise ParameterError(f"openid.session_hours: a number from {low} to {high:g}. Correct the settings.")
        fewest, most = _TOKEN_DAYS
        if not fewest <= self.token_days <= most:
            raise ParameterError(f"openid.token_days: a number from {fewest} to {most}. Correct the settings.")

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        return cls(**{**stored, "scopes": tuple(stored["scopes"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedHeader:
    """The headers in which a listed proxy names the person whom it has signed in, and her groups."""

    user: str = "X-Remote-User"
    groups: str = "X-Remote-Groups"
    session_hours: float = 8.0
    token_days: int = 14

    @classmethod
    def read(cls, stated: Any) -> Self:
        """Parse the table `[trusted_header]`."""
        known: dict[str, Any] = {"user": str, "groups": str, "session_hours": (int, float), "token_days": int}
        made = cls(**_require_fields("trusted_header", stated, known))
        for name, value in (("user", made.user), ("groups", made.groups)):
            if _HEADER.fullmatch(value) is None:
                raise ParameterError(f"trusted_header.{name}: the name of a header, such as X-Remote-User. Correct it.")
        return made


def require_identity_sources(
    openid: OpenId | None, header: TrustedHeader | None, *, address: str, proxies: tuple[str, ...]
) -> None:
    """Refuse a provider without a public address to return to, and a trusted header that no proxy is trusted for."""
    if openid is not None and not address:
        raise ParameterError(
            "openid: the provider sends people back to the address of the service. Add address to [office]."
        )
    if header is not None and not proxies:
        raise ParameterError("trusted_header: no proxy is listed, so anybody could send it. Add proxies.")
    if header is not None and openid is not None:
        raise ParameterError("openid, trusted_header: people sign in one way. Remove one of the two.")


def is_safe_endpoint(url: str) -> bool:
    """Whether secrets may be sent to a URL: over TLS, or on this machine.

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


def strongest_role(groups: Iterable[Group]) -> Role | None:
    """The role of a member of these groups: steward before auditor before analyst; None: she has no group."""
    roles = {group.role for group in groups}
    return next((role for role in ROLES if role in roles), None)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _read_secret(path: Path) -> str:
    refusal = SourceError("openid.client_secret_file: the file cannot be read. Check its name and its mode.")
    content: bytes = call_or_refuse(path.read_bytes, lambda _: refusal)
    text = content[:MAX_SECRET_BYTES].decode("utf-8", "replace").strip()
    if not text or not text.isprintable() or len(content) > MAX_SECRET_BYTES:
        raise SourceError("openid.client_secret_file: one line with the secret of the client. Correct the file.")
    return text


def _require_fields(where: str, stated: Any, known: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(stated, dict):
        raise ParameterError(f"{where}: a table of names and values. Correct the settings.")
    for name, value in stated.items():
        if name not in known:
            raise ParameterError(
                f"{where}.{name}: not known; use {', '.join(known)}. {closest(name, tuple(known))}".strip()
            )
        if not isinstance(value, known[name]) or isinstance(value, bool):
            raise ParameterError(f"{where}.{name}: the value has the wrong type. Correct the settings.")
    return dict(stated)
