"""The pages in other languages: every sentence is in every catalogue, a language is a file, English is marked."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from html import unescape
from pathlib import Path
from string import Formatter
from urllib.parse import urlencode

import pytest
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po
from page_client import COUNT, Browser, assert_nothing_inline, text, words
from served import Caller, Service, run_service, settings

from wallflower.release import Release
from wallflower.service.pages.language import (
    CATALOGUES,
    ENGLISH,
    LANGUAGES,
    Catalogue,
    catalogues,
    environment_of,
    preferred_language,
)
from wallflower.service.settings import Office
from wallflower.text import Message, join, t, tn

sys.path.insert(0, str(Path(__file__).parents[3] / "scripts"))
import catalogues as script

OTHERS = [code for code in LANGUAGES if code != ENGLISH]
PLACEHOLDER = re.compile(r"%\((\w+)\)s")


@cache
def extracted() -> Catalog:
    return script.extract()


def stored(code: str) -> Catalog:
    with (CATALOGUES / f"{code}.po").open("rb") as source:
        return read_po(source, locale=code)


def arguments(text: str) -> set[str]:
    if PLACEHOLDER.search(text):
        return set(PLACEHOLDER.findall(text))
    return {name for _, name, _, _ in Formatter().parse(text) if name}


@pytest.mark.slow
@pytest.mark.parametrize("code", OTHERS)
def test_every_marked_sentence_has_a_translation(code: str) -> None:
    catalogue = stored(code)
    catalogue.update(extracted(), no_fuzzy_matching=True)
    assert len(catalogue) > 700
    assert script.missing(catalogue) == [], "translate these in catalogues/, after `make catalogues`"


@pytest.mark.parametrize("code", OTHERS)
def test_a_translation_has_the_arguments_and_the_markup_of_its_message(code: str) -> None:
    for message in stored(code):
        forms = message.string if isinstance(message.string, tuple) else (message.string,)
        template = message.id if isinstance(message.id, str) else message.id[-1]
        for form in filter(None, forms if message.id else ()):
            assert arguments(form) <= arguments(template), template
            assert PLACEHOLDER.findall(form) == [] or arguments(form) == arguments(template), template
            assert re.findall(r"</?(\w+)", form) == re.findall(r"</?(\w+)", template), template


def write_esperanto(folder: Path) -> None:
    (folder / "eo.po").write_text(
        'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=utf-8\\n"\n'
        '"Plural-Forms: nplurals=2; plural=(n > 1);\\n"\n\n'
        '# a word\nmsgid "Sign in"\nmsgstr "Ensa"\n"lutu"\n\n#, fuzzy\nmsgid "Code"\nmsgstr "Kodo?"\n\n'
        'msgid "{n:,} column"\nmsgid_plural "{n:,} columns"\nmsgstr[0] "{n:,} kolumno"\nmsgstr[1] "{n:,} kolumnoj"\n'
    )


def test_a_language_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: Service) -> None:
    write_esperanto(tmp_path)
    languages = catalogues(tmp_path)
    assert list(languages) == [ENGLISH, "eo"]
    esperanto = languages["eo"]
    assert (esperanto.name, esperanto.translate("Sign in"), esperanto.translate("Code")) == (
        "Esperanto",
        "Ensalutu",
        "Code",
    )
    columns = [esperanto.translate(tn("{n:,} column", "{n:,} columns", n=count)) for count in (0, 1, 2000)]
    assert columns == ["0 kolumno", "1 kolumno", "2.000 kolumnoj"]
    monkeypatch.setitem(LANGUAGES, "eo", esperanto)
    page = Browser(service).get("/ui/sign-in", accept_language="eo")
    assert '<html lang="eo">' in text(page)
    assert ">Ensalutu</h1>" in text(page)
    assert 'value="eo" lang="eo"' in text(page)
    environment_of.cache_clear()


def test_a_missing_message_is_english_and_marked() -> None:
    catalogue = Catalogue("xx", "xx", known=frozenset({"known {x}"}), decimal_comma=True)
    assert catalogue.markup("<b>") == '<span lang="en">&lt;b&gt;</span>'
    assert catalogue.markup(t("known {x}", x=1.5)) == "known 1,5"
    assert catalogue.markup(t("known {x}", x=t("unknown"))) == '<span lang="en">known unknown</span>'
    assert catalogue.number(12345) == "12.345"
    assert Catalogue().markup("<b>") == "<b>"
    assert not hasattr(Catalogue().markup("<b>"), "__html__")  # it is escaped where it is put into a page


def test_a_stored_release_is_translated(service: Service) -> None:
    browser = Browser(service, always={"accept_language": "de"})
    browser.sign_in(service.token("ann", "steward").token)
    made = browser.post("/ui/datasets/ward/ask/count", COUNT)
    stored = browser.get(f"{made.headers['location']}/json").json
    release = Release.from_dict(stored)
    note = next(note for note in (*release.notes, release.protects) if isinstance(note, Message))
    assert stored["messages"][str(note)]
    assert release.to_dict() == stored


def test_joined_messages_are_translated_part_by_part() -> None:
    catalogue = Catalogue("xx", "xx", known=frozenset({" and "}))
    assert catalogue.translate(join(t(" and "), ["a", "b"])) == "a and b"
    assert Message.from_json(join(" ", [t("{n} x", n=1), "y"]).to_json()) == "1 x y"


@pytest.mark.parametrize(
    ("accepted", "best"),
    [
        ("de", "de"),
        ("de-AT, en;q=0.5", "de"),
        ("fr, en;q=0.9, de;q=0.8", "en"),
        ("fr", None),
        ("de;q=0", None),
        ("", None),
        ("*", None),
        (",;q=,\x00", None),
        ("de;q=0.1, en;q=0.2", "en"),
    ],
)
def test_a_browser_says_what_it_likes(accepted: str, best: str | None) -> None:
    assert preferred_language(accepted, ["en", "de"]) == best


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with run_service(settings(tmp_path_factory.mktemp("languages"), failures=10_000)) as running:
        yield running


def test_pages_are_german_for_a_german_browser(service: Service) -> None:
    browser = Browser(service, always={"accept_language": "de-DE,de;q=0.9,en;q=0.8"})
    browser.sign_in(service.token("sue", "steward").token)
    made = browser.post("/ui/datasets/ward/ask/count", COUNT)
    pages = {
        "/ui/": "Wählen Sie den Datensatz",
        "/ui/datasets/ward": "Was möchten Sie wissen?",
        "/ui/datasets/ward/plan/count": "Wie viele Ausreißer gibt es?",
        "/ui/datasets/ward/budget": "Das Budget prüfen",
        "/ui/ledger": "Die Kette ist gültig",
        "/ui/requests": "Keine offenen Anträge.",
        "/ui/spending": "Hochrechnung",
        "/ui/streams": "Eine Überwachung öffnen",
        "/ui/register": "Schritt 1 von 3",
        "/ui/tokens": "Alle Token",
        "/ui/privacy": "höchstens zu 73,2 % sicher",
        "/ui/api": "HTTP-API",
        made.headers["location"]: "Datenschutz-Zusage",
    }
    for path, expected in pages.items():
        page = browser.get(path)
        assert page.status == 200, path
        assert '<html lang="de">' in text(page)
        assert expected in words(page), path
        english = re.findall(r'<span lang="en">(.*?)</span>', text(page))
        # parameters and starter notes of releases, and the API reference, are not marked yet
        assert not english or path == "/ui/api" or "/releases/" in path, "; ".join([path, *english])
        assert_nothing_inline(page)
    refused = browser.get("/ui/datasets/none")
    assert '<span lang="en">There is no data set of this name.' in text(refused)
    assert "Nicht gefunden" in words(refused)


def test_a_language_is_chosen_and_kept(service: Service) -> None:
    browser = Browser(service)
    page = browser.get("/ui/about?x=%22")
    at = re.findall(r'action="(/ui/language[^"]*)"', text(page))[0]
    chosen = browser.post(unescape(at), {"language": "de"})
    assert chosen.headers["location"] == "/ui/about?x=%22"
    kept = chosen.headers["set-cookie"]
    assert kept.startswith("wallflower-language=de;")
    assert all(flag in kept.lower() for flag in ("httponly", "samesite=strict", "path=/ui"))
    anybody = Caller(service.url)
    chosen = anybody.get("/ui/about", cookie="wallflower-language=de", accept_language="en")
    assert '<html lang="de">' in text(chosen)
    assert '<html lang="en">' in text(anybody.get("/ui/about", cookie="wallflower-language=../x"))


@pytest.mark.parametrize(
    "back", ["https://elsewhere.example/", "//elsewhere.example/", "", "/a\nb", "javascript:alert(1)"]
)
def test_back_leads_nowhere_else(service: Service, back: str) -> None:
    browser = Browser(service)
    browser.get("/ui/about")
    found = browser.post(f"/ui/language?{urlencode({'back': back})}", {"language": "none"})
    assert found.headers["location"].startswith("/ui/")
    assert "set-cookie" not in found.headers


def test_an_office_has_a_language(tmp_path: Path) -> None:
    with run_service(settings(tmp_path, office=Office(language="de"))) as running:
        assert '<html lang="de">' in text(Browser(running).get("/ui/about"))
        assert '<html lang="en">' in text(Browser(running).get("/ui/about", accept_language="en-GB"))
