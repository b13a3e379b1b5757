"""The languages of the pages: message catalogues in the format of gettext, one file each, read when the process starts.

A language is there when its file is: `catalogues/de.po` is German. A message that a catalogue does not have is told in
English. What questions say of themselves in Python is translated where the catalogue has it, whole or but for the names
and numbers in it; else it stays English, and is marked so that a screen reader knows.
"""

from __future__ import annotations

import ast
import gettext
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

ENGLISH: Final = "en"
CATALOGUES: Final = Path(__file__).parents[1] / "catalogues"
_LINE: Final = re.compile(r'(?:(msgid|msgid_plural|msgstr)(?:\[(\d+)\])?\s+)?("(?:[^"\\]|\\.)*")')
_PLURALS: Final = re.compile(r"Plural-Forms:[^;]*;\s*plural=([^;\n]+)")
_NAMES: Final = re.compile(r"X-Language-Name: ([^\n]+)")
_RANGE: Final = re.compile(r"\s*([A-Za-z]{1,8})(?:-[A-Za-z0-9-]*)?\s*(?:;\s*q=([01](?:\.\d{0,3})?))?\s*")


_HOLE: Final = re.compile(r"%\((\w+)\)s")
_COMPOSED: Final = "#. put together in Python"
_MARKED: Final = Markup('<span lang="en">{}</span>')
_LONGEST: Final = 2000


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The messages of one language: by their English, in as many forms as the language has plurals."""

    code: str = ENGLISH
    name: str = "English"
    messages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    plural: Callable[[int], int] = field(default=lambda count: int(count != 1))

    composed: tuple[tuple[re.Pattern[str], str], ...] = ()

    def gettext(self, message: str) -> str:
        found = self.messages.get(message)
        return found[0] if found and found[0] else message

    def ngettext(self, one: str, many: str, count: int) -> str:
        found = self.messages.get(one)
        form = self.plural(count)
        if found and form < len(found) and found[form]:
            return found[form]
        return one if count == 1 else many

    def tell(self, words: object) -> str | Markup:
        """Words that were put together in Python: translated if the catalogue has them, else marked as English."""
        text = str(words)
        if self.code == ENGLISH or not text.strip():
            return text
        found = self.gettext(text)
        return found if found != text else self._translate_composed(text[:_LONGEST]) or _MARKED.format(text)

    def _translate_composed(self, text: str) -> str | None:
        """A sentence of which the catalogue has all but the names and numbers in it."""
        for pattern, form in self.composed:
            found = pattern.fullmatch(text)
            if found:
                return _HOLE.sub(partial(_fill_hole, found.groupdict()), form)
        return None

    def thousands(self, number: int) -> str:
        """A whole number; beyond English in groups that nobody takes for a decimal sign."""
        return f"{number:,}" if self.code == ENGLISH else f"{number:,}".replace(",", "\u202f")


def read_catalogue(path: Path) -> Catalogue:
    """The catalogue in a file; entries that are marked fuzzy are left out, as gettext leaves them out."""
    messages: dict[str, tuple[str, ...]] = {}
    composed: list[tuple[re.Pattern[str], str]] = []
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        lines = [line for line in block.splitlines() if not line.startswith("#")]
        if any(line.startswith("#,") and "fuzzy" in line for line in block.splitlines()):
            continue
        entry = _entry(lines)
        if "msgid" in entry:
            forms = sorted((name, text) for name, text in entry.items() if name.startswith("msgstr"))
            messages[entry["msgid"]] = tuple(text for _, text in forms)
            if _COMPOSED in block and _HOLE.search(entry["msgid"]):
                composed.append((_pattern(entry["msgid"]), entry["msgstr"]))
    head = messages.pop("", ("",))[0]
    name, plural = _NAMES.search(head), _PLURALS.search(head)
    rule: Any = gettext.c2py(plural[1].strip()) if plural else (lambda count: int(count != 1))
    return Catalogue(path.stem, name[1].strip() if name else path.stem, messages, rule, tuple(composed))


def catalogues(folder: Path = CATALOGUES) -> dict[str, Catalogue]:
    """Every language there is, English first."""
    found = {path.stem: read_catalogue(path) for path in sorted(folder.glob("*.po"))}
    return {ENGLISH: Catalogue()} | found


def best_of(accepted: str, known: Iterable[str]) -> str | None:
    """The language that a browser likes best of those there are [RFC 9110, 12.5.4].

    >>> best_of("fr, de-AT;q=0.8, en;q=0.5", ["en", "de"])
    'de'
    """
    ranked: list[tuple[float, str]] = []
    for part in accepted[:500].split(","):
        found = _RANGE.fullmatch(part)
        if found:
            ranked.append((-float(found[2] or 1), found[1].lower()))
    offered = set(known)
    return next((code for weight, code in sorted(ranked, key=lambda one: one[0]) if weight and code in offered), None)


def _pattern(message: str) -> re.Pattern[str]:
    """What a message looks like once its holes are filled.

    >>> _pattern("Share of %(who)s taken back.").fullmatch("Share of ana taken back.")["who"]
    'ana'
    """
    pieces = _HOLE.split(message)
    return re.compile(
        "".join(f"(?P<{piece}>.+?)" if at % 2 else re.escape(piece) for at, piece in enumerate(pieces)), re.DOTALL
    )


def _fill_hole(values: Mapping[str, str], hole: re.Match[str]) -> str:
    return values[hole[1]]


def _entry(lines: Iterable[str]) -> dict[str, str]:
    entry: dict[str, str] = {}
    name = ""
    for line in lines:
        found = _LINE.fullmatch(line.strip())
        if found is None:
            continue
        name = f"{found[1]}{found[2] or ''}" if found[1] else name
        entry[name] = entry.get(name, "") + ast.literal_eval(found[3])
    return entry
