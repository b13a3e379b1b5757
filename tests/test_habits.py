"""Habits that files outside the package keep: hooks, how to report, how to cite, what a change brings along."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

import wallflower

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"
FORMS = ("bug.yml", "question.yml")
PAPERS = {"Oka15", "Oka15ja", "Deg20", "Sha21", "Boe17"}  # those that `wallflower reproduce` draws again


def read(*place: str) -> str:
    return ROOT.joinpath(*place).read_text(encoding="utf-8")


def loaded(*place: str) -> Any:
    return yaml.safe_load(read(*place))


# Hooks


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_hooks_run_what_make_lint_runs() -> None:
    hooks = [hook for source in loaded(".pre-commit-config.yaml")["repos"] for hook in source["hooks"]]
    done = subprocess.run(["make", "-n", "lint"], cwd=ROOT, capture_output=True, text=True, check=True)
    linted = [line for line in done.stdout.splitlines() if re.match(r"\.venv/bin/(ruff|mypy|lint-imports)\b", line)]
    assert [hook["entry"] for hook in hooks] == linted
    assert len(linted) == 4


def test_hooks_fetch_nothing() -> None:
    for source in loaded(".pre-commit-config.yaml")["repos"]:
        assert source["repo"] == "local"
        for hook in source["hooks"]:
            assert hook["language"] == "system"
            assert hook["pass_filenames"] is False


# Citation


def test_the_citation_is_that_of_the_package() -> None:
    cited = loaded("CITATION.cff")
    assert cited["cff-version"] == "1.2.0"
    assert (cited["title"], cited["type"]) == ("wallflower", "software")
    assert str(cited["version"]) == wallflower.__version__
    assert cited["license"] == "Apache-2.0"
    assert cited["authors"] == [{"name": "wallflower maintainers"}]
    assert cited["message"]


def test_cited_papers_are_those_of_the_references() -> None:
    entries = re.split(r"^@", read("docs", "references.bib"), flags=re.MULTILINE)[1:]
    known = {entry.partition("{")[2].partition(",")[0]: entry for entry in entries}
    wanted = {plain(field(known[key], "title")): known[key] for key in PAPERS}
    told = {paper["title"]: paper for paper in loaded("CITATION.cff")["references"]}
    assert set(told) == set(wanted)
    for title, paper in told.items():
        entry = wanted[title]
        assert {"type", "title", "authors"} <= set(paper)
        assert str(paper.get("year", "")) == field(entry, "year")
        assert paper.get("doi", "") == field(entry, "doi")
        for author in paper["authors"]:
            assert author["family-names"] in plain(field(entry, "author"))


def field(entry: str, name: str) -> str:
    """What a reference says of itself, or nothing."""
    found = re.search(rf"^ *{name} *= \{{(.*?)\}},?$", entry, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def plain(text: str) -> str:
    return text.replace('{\\"o}', "ö").replace("{", "").replace("}", "")


# Reports and changes


def test_a_leak_is_reported_privately_with_made_up_tables() -> None:
    page = read("SECURITY.md")
    for words in ("privately", "two made-up tables and an event", "no real records", "What counts", "supported"):
        assert words in page
    for kind in ("A privacy leak", "A way around the budget", "A hole in the service"):
        assert f"**{kind}**" in page
    for path in (ROOT / "SECURITY.md", *GITHUB.rglob("*.*")):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"[\w.]+@[\w-]+\.\w+|https?://", text), f"{path.name} names an address"


@pytest.mark.parametrize("name", FORMS)
def test_forms_ask_for_something_and_say_why(name: str) -> None:
    form = loaded(".github", "ISSUE_TEMPLATE", name)
    assert form["name"]
    assert form["description"]
    asked = [part for part in form["body"] if part["type"] != "markdown"]
    assert len({part["id"] for part in asked}) == len(asked)
    for part in asked:
        assert part["attributes"]["label"]
        assert part["type"] == "checkboxes" or part["attributes"]["description"]


def test_a_leak_is_sent_on_from_the_issues() -> None:
    assert "SECURITY.md" in read(".github", "ISSUE_TEMPLATE", "privacy-leak.md")
    assert "SECURITY.md" in read(".github", "ISSUE_TEMPLATE", "bug.yml")
    assert "SECURITY.md" in read("LIMITATIONS.md")


def test_a_new_question_is_proposed_with_its_evidence() -> None:
    form = loaded(".github", "ISSUE_TEMPLATE", "question.yml")
    required = {part["id"] for part in form["body"] if part.get("validations", {}).get("required")}
    assert required == {"question", "theorem", "proof", "oracle", "audit", "picture", "page"}


def test_a_change_speaks_of_privacy_first_and_brings_everything_along() -> None:
    text = read(".github", "pull_request_template.md")
    assert text.startswith("## Privacy\n")
    assert re.findall(r"^- \[ \] \*\*(\w+)\*\*", text, re.MULTILINE) == ["Code", "Test", "Docs", "Proof", "Changelog"]


# Statements that were false


FALSE_STATEMENTS = (
    "always a valid context",  # mode ocdp can find none, and charges for it
    r"whatever else (they|anybody|anyone) knows?",  # records of twins tell of each other
    r"may fail altogether|(?<!is not )the chance that ε fails|up to a probability of δ|the chance δ",
    r"\breliable:|quality reliable|\bzuverlässig\b",  # a label that measured noise only
)


@pytest.mark.parametrize("statement", FALSE_STATEMENTS)
def test_no_page_or_message_makes_a_statement_that_was_false(statement: str) -> None:
    package, docs = ROOT / "src" / "wallflower", ROOT / "docs"
    kinds = ("*.py", "*.md", "*.html", "*.po", "*.csv")
    texts = [*ROOT.glob("*.md"), *docs.rglob("*.md"), *(path for kind in kinds for path in package.rglob(kind))]
    assert len(texts) > 500
    pattern = re.compile(statement, re.IGNORECASE)
    found = [str(path.relative_to(ROOT)) for path in texts if pattern.search(path.read_text(encoding="utf-8"))]
    assert found == []
