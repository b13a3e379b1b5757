"""The pages in other languages: every message in every catalogue, a language is a file, what stays English says so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest
from page_client import COUNT, Browser, assert_nothing_inline, text, words
from served import Caller, Service, run_service, settings

from wallflower.curator.office import Office
from wallflower.curator.pages.words.environments import LANGUAGES, environment_of
from wallflower.curator.pages.words.languages import CATALOGUES, ENGLISH, Catalogue, best_of, catalogues, read_catalogue

TEMPLATES = sorted((CATALOGUES.parent / "templates").glob("*.html"))
OTHERS = [code for code in LANGUAGES if code != ENGLISH]
PLACEHOLDER = re.compile(r"%\((\w+)\)s")


def messages() -> Iterator[tuple[str, ...]]:
    """What the templates say: a message, or one and its plural."""
    for path in TEMPLATES:
        found = environment_of(ENGLISH).extract_translations(path.read_text(encoding="utf-8"))  # type: ignore[attr-defined]
        for _, function, stated in found:
            forms = (stated,) if isinstance(stated, str) else tuple(form for form in stated if form is not None)
            yield forms[: 2 if function == "ngettext" else 1]


@pytest.mark.parametrize("code", OTHERS)
def test_every_message_is_in_every_catalogue(code: str) -> None:
    known = LANGUAGES[code].messages
    stated = set(messages())
    assert len(stated) > 300
    missing = [forms[0] for forms in stated if not all(known.get(forms[0], ("",)))]
    assert missing == []
    short = [forms[0] for forms in stated if len(forms) == 2 and len(known[forms[0]]) < 2]
    assert short == []


@pytest.mark.parametrize("code", OTHERS)
def test_a_translation_holds_what_the_message_holds(code: str) -> None:
    for message, forms in LANGUAGES[code].messages.items():
        for form in forms:
            assert set(PLACEHOLDER.findall(form)) == set(PLACEHOLDER.findall(message)), message
            assert re.findall(r"</?(\w+)", form) == re.findall(r"</?(\w+)", message), message


def test_a_language_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: Service) -> None:
    (tmp_path / "eo.po").write_text(
        'msgid ""\nmsgstr ""\n"X-Language-Name: Esperanto\\n"\n"Plural-Forms: nplurals=2; plural=(n > 1);\\n"\n\n'
        '# a word\nmsgid "Sign in"\nmsgstr "Ensa"\n"lutu"\n\n#, fuzzy\nmsgid "Code"\nmsgstr "Kodo?"\n\n'
        'msgid "%(number)s column"\nmsgid_plural "%(number)s columns"\nmsgstr[0] "unu"\nmsgstr[1] "pluraj"\n'
    )
    found = catalogues(tmp_path)
    assert list(found) == [ENGLISH, "eo"]
    esperanto = found["eo"]
    assert (esperanto.name, esperanto.gettext("Sign in"), esperanto.gettext("Code")) == (
        "Esperanto",
        "Ensalutu",
        "Code",
    )
    assert [esperanto.ngettext("%(number)s column", "%(number)s columns", count) for count in (0, 1, 2)] == [
        "unu",
        "unu",
        "pluraj",
    ]
    monkeypatch.setitem(LANGUAGES, "eo", esperanto)
    page = Browser(service).get("/ui/sign-in", accept_language="eo")
    assert '<html lang="eo">' in text(page)
    assert ">Ensalutu</h1>" in text(page)
    assert 'value="eo" lang="eo"' in text(page)
    environment_of.cache_clear()


def test_a_message_that_is_missing_is_english(tmp_path: Path) -> None:
    catalogue = Catalogue("xx", "xx", {"one": ("",)})
    assert catalogue.gettext("one") == "one"
    assert catalogue.ngettext("one", "many", 2) == "many"
    assert catalogue.tell("<b>") == '<span lang="en">&lt;b&gt;</span>'
    assert catalogue.thousands(12345) == "12\u202f345"
    assert Catalogue().tell("<b>") == "<b>"
    (tmp_path / "zz.po").write_text('#. put together in Python\nmsgid "Share of %(who)s, 5 %"\nmsgstr "%(who)s: 5 %"\n')
    composed = read_catalogue(tmp_path / "zz.po")
    assert composed.tell("Share of <b>, 5 %") == "<b>: 5 %"  # escaped where it is put into a page
    assert not hasattr(composed.tell("Share of <b>, 5 %"), "__html__")
    (tmp_path / "yy.po").write_text('msgid "a"\nmsgstr "b"\n')
    assert read_catalogue(tmp_path / "yy.po").name == "yy"


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
    assert best_of(accepted, ["en", "de"]) == best


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with run_service(settings(tmp_path_factory.mktemp("languages"), failures=10_000)) as running:
        yield running


def test_pages_are_german_for_a_german_browser(service: Service) -> None:
    browser = Browser(service, always={"accept_language": "de-DE,de;q=0.9,en;q=0.8"})
    browser.sign_in(service.token("sue", "steward").token)
    made = browser.post("/ui/datasets/ward/ask/count", COUNT)
    said = {
        "/ui/": "Wählen Sie den Datensatz",
        "/ui/datasets/ward": "Was möchten Sie wissen?",
        "/ui/datasets/ward/plan/count": "Wie viele Ausreißer gibt es?",
        "/ui/datasets/ward/budget": "Die Grenze prüfen",
        "/ui/ledger": "Die Kette hält",
        "/ui/requests": "Nichts wartet.",
        "/ui/spending": "keine Hochrechnung",
        "/ui/streams": "Eine Wache öffnen",
        "/ui/register": "Schritt 1 von 3",
        "/ui/tokens": "Alle Token, die es je gab",
        "/ui/privacy": "höchstens zu 73.2 % sicher",
        "/ui/api": "Was Programme aufrufen können",
        made.headers["location"]: "Was zugesagt ist",
    }
    for path, told in said.items():
        page = browser.get(path)
        assert page.status == 200, path
        assert '<html lang="de">' in text(page)
        assert told in words(page), path
        assert_nothing_inline(page)
    refused = browser.get("/ui/datasets/none")
    assert '<span lang="en">There is no data set of this name.' in text(refused)
    assert "So etwas gibt es hier nicht" in words(refused)


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
