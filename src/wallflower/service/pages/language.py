"""The languages of the pages: message catalogues of gettext, and the templates in each of them.

A language is there when its file is: `catalogues/de.po` is German. Catalogues are compiled when the process starts, so
that a new language needs no build step. A text that a catalogue does not have stays English, and is marked as English
so that a screen reader pronounces it right.
"""

from __future__ import annotations

import gettext
import hashlib
import io
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import quote

import jinja2
from babel.core import Locale
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import get_decimal_symbol
from markupsafe import Markup, escape

from wallflower.privacy import Loss
from wallflower.release.text import readable
from wallflower.service.api.callers import PAGES_PATH
from wallflower.service.pages.budget_text import author_of, event_text, left_text
from wallflower.text import Message, decimal, label, t

ENGLISH: Final = "en"
CATALOGUES: Final = Path(__file__).parent / "catalogues"
STATIC_FILES: Final = Path(__file__).parent / "static"
_RANGE: Final = re.compile(r"\s*([A-Za-z]{1,8})(?:-[A-Za-z0-9-]*)?\s*(?:;\s*q=([01](?:\.\d{0,3})?))?\s*")
_MAX_ACCEPTED_LETTERS: Final = 500
_IN_ENGLISH: Final = Markup('<span lang="en">{}</span>')
_ABBREVIATION: Final = Markup('<abbr title="{}">{}</abbr>')


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The messages of one language.

    >>> Catalogue().translate(t("{n:,} records", n=1200))
    '1,200 records'
    """

    code: str = ENGLISH
    name: str = "English"
    translations: gettext.NullTranslations = field(default_factory=gettext.NullTranslations)
    known: frozenset[str] = frozenset()
    decimal_comma: bool = False

    def lookup(self, template: str, plural: str = "", n: int = 1) -> str | None:
        """Return the translated template, in the form for `n`; None where the catalogue does not have it."""
        if template not in self.known:
            return None
        return self.translations.ngettext(template, plural, n) if plural else self.translations.gettext(template)

    def translate(self, text: object) -> str:
        """Return a text in this language, without markup: in English where the catalogue does not have it."""
        message = label(str(text))
        return "".join(message) if self.code == ENGLISH else message.translate_with(self.lookup, **self._style())

    def markup(self, text: object) -> str | Markup:
        """Return a text in this language for a page: marked as English where the catalogue does not have it."""
        message = label(str(text))
        if self.code == ENGLISH or not message.strip() or self.has(message):
            return self.translate(message)
        return _IN_ENGLISH.format(self.translate(message))

    def has(self, message: Message) -> bool:
        """Return whether the catalogue has a message with all messages in it."""
        return all(template in self.known for template in message.templates())

    def sentence(self, text: object) -> str | Markup:
        """Return a text as a sentence: with a capital letter and a full stop."""
        sentence = _as_sentence(self.translate(text))
        return sentence if not isinstance(self.markup(text), Markup) else _IN_ENGLISH.format(sentence)

    def number(self, value: float, form: str = ",") -> str:
        """Return a number as this language writes it."""
        return t(f"{{value:{form}}}", value=value).translate_with(self.lookup, **self._style())

    def loss(self, loss: Loss) -> Markup:
        """Return a loss in decimals; where these are rounded, the exact fractions are in a tooltip."""
        return _with_exact(self.translate(loss.text), loss)

    def left(self, loss: Loss) -> Markup:
        """Return what is left of a budget, rounded down, with the exact fractions in a tooltip."""
        return _with_exact(self.translate(left_text(loss)), loss)

    def _style(self) -> dict[str, bool]:
        return {"decimal_comma": self.decimal_comma}


def read_catalogue(path: Path) -> Catalogue:
    """Compile the catalogue in a file; entries that are marked fuzzy are not used."""
    with path.open("rb") as source:
        catalogue = read_po(source, locale=path.stem)  # without a locale the plural forms are not compiled
    compiled = io.BytesIO()
    write_mo(compiled, catalogue)
    compiled.seek(0)
    known = frozenset(
        message.id if isinstance(message.id, str) else message.id[0]
        for message in catalogue
        if message.id and message.string and not message.fuzzy
    )
    locale = Locale.parse(path.stem)
    return Catalogue(
        code=path.stem,
        name=locale.get_display_name(path.stem) or path.stem,
        translations=gettext.GNUTranslations(compiled),
        known=known,
        decimal_comma=get_decimal_symbol(locale) == ",",
    )


def catalogues(folder: Path = CATALOGUES) -> dict[str, Catalogue]:
    """Return every language there is, English first."""
    return {ENGLISH: Catalogue()} | {path.stem: read_catalogue(path) for path in sorted(folder.glob("*.po"))}


LANGUAGES: Final = catalogues()


def preferred_language(accepted: str, known: Iterable[str]) -> str | None:
    """Return the language that a browser likes best of those there are [RFC 9110, 12.5.4].

    >>> preferred_language("fr, de-AT;q=0.8, en;q=0.5", ["en", "de"])
    'de'
    """
    ranked: list[tuple[float, str]] = []
    for part in accepted[:_MAX_ACCEPTED_LETTERS].split(","):
        match = _RANGE.fullmatch(part)
        if match:
            ranked.append((-float(match[2] or 1), match[1].lower()))
    offered = set(known)
    return next((code for weight, code in sorted(ranked, key=lambda pair: pair[0]) if weight and code in offered), None)


@cache
def version_of(name: str) -> str:
    """Return letters that change with the content of a static file, so that a browser may cache it forever."""
    return hashlib.sha256((STATIC_FILES / name).read_bytes()).hexdigest()[:12]


@cache
def environment_of(code: str) -> jinja2.Environment:
    """Return the templates in a language."""
    catalogue = LANGUAGES[code]
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("wallflower.service.pages"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n"],
    )
    environment.install_gettext_translations(catalogue.translations, newstyle=True)  # type: ignore[attr-defined]
    filters: dict[str, Callable[..., object]] = {
        "static": lambda name: f"{PAGES_PATH}/static/{name}?v={version_of(name)}",
        "path": lambda name: quote(str(name), safe=""),
        "tr": catalogue.markup,
        "plain": catalogue.translate,
        "sentence": catalogue.sentence,
        "capital": lambda text: f"{text[:1].upper()}{text[1:]}",
        "number": catalogue.number,
        "loss": catalogue.loss,
        "left": catalogue.left,
        "readable": lambda value: catalogue.translate(readable(value)),
        "author": author_of,
        "event": event_text,
    }
    environment.filters |= filters
    return environment


def _as_sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def _with_exact(text: str, loss: Loss) -> Markup:
    is_exact = all(Fraction(decimal(number)) == number for number in (loss.amount, loss.delta))
    return escape(text) if is_exact else _ABBREVIATION.format(loss, text)
