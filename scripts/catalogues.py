"""Extract every marked sentence and bring the catalogues of the pages up to date: `make catalogues`.

Sentences come from Python (`t`, `tn`), from templates (gettext) and, as labels, from the registries of queries: names
of fields and choices that are shown as they are. An entry without translation is added empty; an entry that is not used
any more is removed. `tests/service/pages/test_language.py` fails while an entry is empty.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Final, get_args

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

from wallflower.queries import COMPANIONS, QUERIES
from wallflower.query import Status
from wallflower.query.accuracy import NoiseLabel, ProofLabel
from wallflower.query.parameter import list_parameters
from wallflower.schema.column import ColumnWords, TableWords
from wallflower.service.core.access.tokens import SCOPES
from wallflower.text import has_words

SOURCE: Final = Path(__file__).parents[1] / "src" / "wallflower"
CATALOGUES: Final = SOURCE / "service" / "pages" / "catalogues"
_METHODS: Final = [("**.py", "python"), ("service/pages/templates/**.html", "jinja2")]
_KEYWORDS: Final = {"t": None, "tn": (1, 2), "_": None, "gettext": None, "ngettext": (1, 2)}
_OPTIONS: Final = {"service/pages/templates/**.html": {"trimmed": "false", "newstyle_gettext": "true"}}


def extract() -> Catalog:
    """Return every message that the pages can show, without translations."""
    catalogue = Catalog(fuzzy=False)
    for path, _, message, _, _ in extract_from_dir(SOURCE, _METHODS, _OPTIONS, _KEYWORDS, strip_comment_tags=True):
        template = message if isinstance(message, str) else message[0]
        if has_words(template.replace("%(", "{").replace(")s", "}")):
            catalogue.add(message, locations=[(str(path), 0)])
    for text, place in labels():
        catalogue.add(text, locations=[(place, 0)])
    return catalogue


def labels() -> Iterator[tuple[str, str]]:
    """Return texts that are shown as they are and stand in no call of `t`, with where they come from."""
    for query in (*QUERIES, *COMPANIONS):
        place = f"queries/{query.kind}"
        yield query.question, place
        for parameter in list_parameters(query):
            yield parameter.name.replace("_", " "), place
            yield from ((choice, place) for choice in parameter.choices if choice.isalpha())
            if parameter.help:
                yield parameter.help, place
            if parameter.when is not None:
                yield parameter.when.text, place
    yield from ((scope, "service/core/access/tokens.py") for scope in SCOPES)
    for texts in (get_args(NoiseLabel), get_args(ProofLabel), map(str, Status)):
        yield from ((text, "query") for text in texts)
    for facts in (TableWords, ColumnWords):
        yield from ((field.name.capitalize(), "schema") for field in fields(facts))


def update(path: Path, template: Catalog) -> list[str]:
    """Rewrite a catalogue with the messages of today, and return those that it does not translate."""
    with path.open("rb") as source:
        catalogue = read_po(source, locale=path.stem)
    catalogue.update(template, no_fuzzy_matching=True)
    catalogue.obsolete.clear()
    with path.open("wb") as target:
        write_po(target, catalogue, width=0, sort_output=True, omit_header=False, include_lineno=False)
    return missing(catalogue)


def missing(catalogue: Catalog) -> list[str]:
    """Return the messages of a catalogue that have no translation, or not in each plural form."""
    empty = (message for message in catalogue if message.id and not all(_forms(message.string)))
    return [message.id if isinstance(message.id, str) else message.id[0] for message in empty]


def _forms(text: str | tuple[str, ...] | list[str] | None) -> tuple[str, ...]:
    return tuple(text) if isinstance(text, tuple | list) else (text or "",)


if __name__ == "__main__":
    template = extract()
    for path in sorted(CATALOGUES.glob("*.po")):
        untranslated = update(path, template)
        sys.stdout.write(f"{path.name}: {len(template)} messages, {len(untranslated)} without translation\n")
