"""Whose service it is: name, logo, contact and statements from the settings, and a reference that loads nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from page_client import EVIL, Browser, assert_nothing_inline, text, words
from served import Caller, run_service, settings

from wallflower.errors import ParameterError, SourceError
from wallflower.queries import QUERIES
from wallflower.query.parameter import list_parameters
from wallflower.service.pages.reference import groups_of
from wallflower.service.pages.visit import CONTENT_POLICY
from wallflower.service.settings import Office, Settings

LOGO = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


@pytest.fixture
def office_settings(tmp_path: Path) -> Settings:
    (tmp_path / "logo.svg").write_text(LOGO)
    (tmp_path / "access.txt").write_text("We try.\n\n## Known gaps\nThe old\nreports.\n", encoding="utf-8")
    (tmp_path / "people.csv").write_text("a\n1\n2\n")
    (tmp_path / "service.toml").write_text(
        f"""
[office]
name = "Office <b>of Statistics"
logo = "logo.svg"
contact = {EVIL.replace("'", "").replace('"', "")!r}
accessibility = "access.txt"

[[datasets]]
name = "people"
source = "people.csv"
"""
    )
    return Settings.read(tmp_path / "service.toml")


def test_the_office_is_on_every_page(office_settings: Settings, tmp_path: Path) -> None:
    made = settings(tmp_path, office=Settings.from_json(office_settings.to_json()).office)
    with run_service(made) as service:
        browser = Browser(service)
        page = browser.get("/ui/sign-in")
        assert "Office &lt;b&gt;of Statistics" in text(page)
        assert 'src="/ui/logo"' in text(page)
        assert "<img src=x" not in text(page)
        assert "· Office <b>of Statistics</title>" in words(page)
        logo = browser.get("/ui/logo")
        assert logo.content.decode() == LOGO
        assert (logo.headers["content-type"], logo.headers["content-security-policy"]) == (
            "image/svg+xml",
            CONTENT_POLICY,
        )
        assert logo.headers["x-content-type-options"] == "nosniff"
        said = words(browser.get("/ui/accessibility"))
        assert "Known gaps" in said
        assert "The old reports." in said
        assert "has not published its own statement" not in said
        assert "This service is run by Office <b>of Statistics." in words(browser.get("/ui/about"))
        assert "at most 73.2 % sure" in words(browser.get("/ui/privacy"))


@pytest.mark.parametrize(
    ("office", "told"),
    [
        ('nam = "x"', "Did you mean name"),
        ("name = 3", "office.name: must be text"),
        ('name = ""', "office.name: must be one line"),
        ('logo = "logo.exe"', "logo: must end in one of"),
        ('logo = "none.svg"', "office.logo: the file cannot be read"),
        ('privacy = "none.txt"', "office.privacy: the file cannot be read"),
        ('privacy = "odd.txt"', "text in UTF-8"),
        ('logo = "large.png"', "more than 262,144 bytes"),
    ],
)
def test_what_is_wrong_with_it_is_said_at_the_start(tmp_path: Path, office: str, told: str) -> None:
    (tmp_path / "odd.txt").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "large.png").write_bytes(b"0" * 2**19)
    (tmp_path / "service.toml").write_text(f"[office]\n{office}\n")
    with pytest.raises((ParameterError, SourceError), match=told):
        Settings.read(tmp_path / "service.toml")


def test_without_an_office_there_is_wallflower(tmp_path: Path) -> None:
    with run_service(settings(tmp_path)) as service:
        browser = Browser(service)
        assert "· wallflower</title>" in text(browser.get("/ui/about"))
        assert "has not published its own statement" in words(browser.get("/ui/accessibility"))
        assert browser.get("/ui/logo").status == 404


def test_the_reference_has_every_operation_and_loads_nothing(tmp_path: Path) -> None:
    with run_service(settings(tmp_path)) as service:
        found = Caller(service.url).get("/docs")
        assert (found.status, found.headers["location"]) == (303, "/ui/api")
        page = Browser(service).get("/ui/api")
        assert_nothing_inline(page)
        described = service.app.openapi()
        shown = [f"{one.verb} {one.path}" for group in groups_of(described).values() for one in group]
        stated = [f"{verb.upper()} {path}" for path, item in described["paths"].items() for verb in item]
        assert sorted(shown) == sorted(stated)
        assert all(f"<code>{one}</code>" in text(page) for one in shown)
        helps = {parameter.help for question in QUERIES for parameter in list_parameters(question)}
        assert all(" ".join(one.split()) in words(page) for one in helps)


def test_an_office_is_read_back_as_it_was_told() -> None:
    made = Settings(office=Office(name="x", contact="y", language="de"))
    assert Settings.from_json(made.to_json()) == made
