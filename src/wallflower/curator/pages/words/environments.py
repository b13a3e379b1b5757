"""Templates in each language: the same files, with the words of a catalogue."""

from __future__ import annotations

from functools import cache
from typing import Final
from urllib.parse import quote

import jinja2

from wallflower.curator.api.callers import PAGES
from wallflower.curator.pages.assets import version_of
from wallflower.curator.pages.words.languages import catalogues
from wallflower.curator.pages.words.standing import author_of, event_words, loss_words, room_words
from wallflower.release.words import readable

LANGUAGES: Final = catalogues()


@cache
def environment_of(code: str) -> jinja2.Environment:
    """The templates in a language."""
    catalogue = LANGUAGES[code]
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("wallflower.curator.pages"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n"],
    )
    made.install_gettext_callables(catalogue.gettext, catalogue.ngettext, newstyle=True)  # type: ignore[attr-defined]
    made.filters |= {
        "static": lambda name: f"{PAGES}/static/{name}?v={version_of(name)}",
        "path": lambda name: quote(str(name), safe=""),
        "loss": loss_words,
        "room": room_words,
        "author": author_of,
        "event": event_words,
        "readable": readable,
        "told": catalogue.tell,
        "worded": catalogue.gettext,
        "thousands": catalogue.thousands,
    }
    return made
