"""Who runs the service, as its pages say: the name of the office, its logo, whom to write to, and its statements.

Texts are plain: paragraphs with empty lines between them, and headings that begin with `## `.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self

from wallflower.errors import ParameterError, SourceError
from wallflower.query.forms import closest
from wallflower.schema.columns import call_or_refuse

LOGOS: Final[Mapping[str, str]] = {".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg"}
_LOGO_BYTES: Final = 2**18
_TEXT_BYTES: Final = 2**17
_FILES: Final = ("logo", "accessibility", "privacy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A piece of a statement."""

    heading: str | None
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Office:
    """What the settings say of whoever runs the service. `logo`, `accessibility` and `privacy` are files; `contact` is
    an address to write to, in words; `language` is that of visitors whose browser asks for none that there is."""

    name: str = ""
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
