"""Who runs the service, as its pages say: the name of the office, its logo, whom to write to, and its statements.

Texts are plain: paragraphs with empty lines between them, and headings that begin with `## `.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urlsplit

from wallflower.errors import ParameterError, SourceError
from wallflower.query.forms import closest
from wallflower.schema.columns import call_or_refuse

LOGOS: Final[Mapping[str, str]] = {".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg"}
_LOGO_BYTES: Final = 2**18
_TEXT_BYTES: Final = 2**17
DEFAULT_PORTS: Final[Mapping[str, int]] = {"http": 80, "https": 443}
_HOST: Final = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_PORT: Final = re.compile(r":[0-9]{1,5}$")
_FILES: Final = ("logo", "accessibility", "privacy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A piece of a statement."""

    heading: str | None
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Office:
    """What the settings say of whoever runs the service. `logo`, `accessibility` and `privacy` are files; `contact` is
    an address to write to, in words; `language` is that of visitors whose browser asks for none that there is.

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
    def read(cls, folder: Path, stated: Mapping[str, Any]) -> Self:
        """What is stated, with its files beside the settings."""
        known = tuple(asdict(cls()))
        for name, value in stated.items():
            if name not in known:
                raise ParameterError(
                    f"office: {name} is not known; there are {', '.join(known)}. {closest(name, known)}"
                )
            if not isinstance(value, str) or not value.strip() or not value.isprintable():
                raise ParameterError(f"office: {name} is not a line of text. Correct the settings.")
        if "address" in stated:
            stated = {**stated, "address": parse_address(stated["address"])}
        placed = {name: str(folder / stated[name]) for name in _FILES if name in stated}
        made = cls(**{**stated, **placed})
        made.require_files()
        return made

    def require_files(self) -> None:
        """Refuse a logo that no browser shows, and what is too large or cannot be opened, before anybody listens."""
        if self.logo is not None and Path(self.logo).suffix.lower() not in LOGOS:
            raise ParameterError(f"office: logo ends in one of {', '.join(LOGOS)}. Convert it.")
        self.logo_bytes()
        self.statement("accessibility")
        self.statement("privacy")

    def logo_bytes(self) -> tuple[bytes, str] | None:
        """The logo and its type; None: there is none."""
        if self.logo is None:
            return None
        return _read(self.logo, "logo", _LOGO_BYTES), LOGOS[Path(self.logo).suffix.lower()]

    def statement(self, name: str) -> list[Part] | None:
        """The parts of a statement; None: the office has made none."""
        place = getattr(self, name)
        if place is None:
            return None
        refusal = SourceError(f"office: {name} is no text in UTF-8. Correct the file.")
        text = call_or_refuse(lambda: _read(place, name, _TEXT_BYTES).decode("utf-8-sig"), lambda _: refusal)
        return parts_of(text)


UNNAMED: Final = Office()


def parse_address(text: str) -> str:
    """Return the origin that a URL names, without the default port of its scheme.

    >>> parse_address("https://Stats.example:443/"), parse_address("http://10.0.0.5:8080")
    ('https://stats.example', 'http://10.0.0.5:8080')

    Raises:
        ParameterError: it is not `https://HOST` or `http://HOST`, or it has a path, a query or a user.
    """
    refusal = ParameterError(
        f"office: address {text!r} is not the public URL of a service. It is https://HOST or https://HOST:PORT, "
        "without a path. Correct the settings."
    )
    url = call_or_refuse(lambda: urlsplit(text), lambda _: refusal)
    host = call_or_refuse(lambda: normalise_host(url.netloc, url.scheme), lambda _: refusal)
    if url.scheme not in DEFAULT_PORTS or url.path not in ("", "/") or url.query or url.fragment or not host:
        raise refusal
    return f"{url.scheme}://{host}"


def normalise_host(host: str, scheme: str) -> str:
    """Return `HOST` or `HOST:PORT` in lower case, without the default port of the scheme; an empty text if it is
    neither.

    >>> normalise_host("Stats.example:443", "https"), normalise_host("a@b", "http")
    ('stats.example', '')
    """
    if not _HOST.fullmatch(host):
        return ""
    name, _, port = host.lower().rpartition(":") if _PORT.search(host) else (host.lower(), "", "")
    return name if not port or int(port) == DEFAULT_PORTS.get(scheme) else f"{name}:{int(port)}"


def parts_of(text: str) -> list[Part]:
    """A text as its paragraphs, each with the heading before it, if there is one.

    >>> [(part.heading, part.words) for part in parts_of("One.\\n\\n## Two\\nthree\\nfour")]
    [(None, 'One.'), ('Two', 'three four')]
    """
    found: list[Part] = []
    for block in text.replace("\r\n", "\n").split("\n\n"):
        lines = [line.strip() for line in block.splitlines() if line.strip()]
        heading = lines.pop(0).removeprefix("##").strip() if lines and lines[0].startswith("## ") else None
        if heading or lines:
            found.append(Part(heading=heading, words=" ".join(lines)))
    return found


def _read(place: str, name: str, most: int) -> bytes:
    refusal = SourceError(f"office: {name} cannot be opened. Check the file that the settings name.")
    content: bytes = call_or_refuse(lambda: Path(place).read_bytes(), lambda _: refusal)
    if len(content) > most:
        raise SourceError(f"office: {name} has more than {most:,} bytes. Make the file smaller.")
    return content
