"""Every example runs, every word of the command line is explained, every citation and link leads somewhere."""

from __future__ import annotations

import io
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, fields
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest
from typer.main import get_command

from forks import call
from wallflower.cli import build
from wallflower.ledger.chain import Event
from wallflower.queries import QUERIES

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
TEXTS = sorted([*PAGES, *ROOT.glob("src/**/*.md"), *ROOT.glob("src/**/*.py"), *ROOT.glob("tests/**/*.py")])
NOBODY = "q7-nemo"

FENCE = re.compile(r"^```(\w*) *([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CITED = re.compile(r"\[([A-Za-z]{1,6}\d\d[a-z]*\b[^][\n]*)\]")
KEY = re.compile(r"[A-Za-z]{1,6}\d\d(?:[a-z]{2})?")
LINK = re.compile(r"\[[^][]*\]\(([^()\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A piece of a page between fences: its language, what the fence says besides, and its text."""

    language: str
    note: str
    text: str


def blocks(page: Path) -> list[Block]:
    return [Block(*found.groups()) for found in FENCE.finditer(page.read_text(encoding="utf-8"))]


def named(pages: list[Path]) -> list[Any]:
    """Pages as parameters, named by where they are."""
    return [pytest.param(page, id=str(page.relative_to(ROOT))) for page in pages]


def script() -> ModuleType:
    """scripts/cli_page.py, which is no part of the package."""
    spec = spec_from_file_location("cli_page", ROOT / "scripts" / "cli_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CLI_PAGE = script()
COMMANDS = dict(CLI_PAGE.commands("wallflower", get_command(build(QUERIES))))


# Examples


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in an empty home, a user whom no page mentions, and nothing set up."""
    for name in [name for name in os.environ if name.startswith(("WALLFLOWER_", "XDG_"))]:
        monkeypatch.delenv(name)
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, NOBODY)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "160")
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def with_examples() -> Iterator[Any]:
    for page in PAGES:
        if {"python", "console"} & {block.language for block in blocks(page)}:
            yield pytest.param(page, id=str(page.relative_to(ROOT)), marks=pytest.mark.slow)


@pytest.mark.parametrize("page", list(with_examples()))
def test_examples_run(page: Path, desk: Path) -> None:
    """The blocks of a page are one session. A `text` block after a `python` block is what it prints."""
    names: dict[str, Any] = {"__name__": "page"}
    told = blocks(page)
    for block, following in zip(told, [*told[1:], None], strict=True):
        if block.language == "python":
            printed = ran(block.text, names, page)
            if following is not None and following.language == "text":
                assert_alike(following.text, printed)
        if block.language == "console":
            typed(block)


def test_no_page_mentions_whoever_runs_them() -> None:
    assert not [page.name for page in PAGES if NOBODY in page.read_text(encoding="utf-8")]


def ran(code: str, names: dict[str, Any], page: Path) -> str:
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, page.name, "exec", dont_inherit=True), names)  # noqa: S102 - the pages are ours
    return printed.getvalue()


def typed(block: Block) -> None:
    """Run what follows each `$`, and compare what it says with what the page shows, when it shows anything."""
    code = int(block.note.removeprefix("exit=") or 0)
    for part in re.split(r"^\$ ", block.text.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        program, *arguments = shlex.split(command)
        assert program == "wallflower", f"{command}: only wallflower is run here; put other commands into `sh` blocks"
        done = call(*arguments)
        assert done.returncode == code, f"{command}: exit code {done.returncode}\n{done.stderr}"
        if shown.strip():
            assert_alike(
                shown, done.stderr if code else done.stdout, exactly=arguments[0] == "plan"
            )  # nothing in a plan is random


def assert_alike(shown: str, said: str, *, exactly: bool = False) -> None:
    """Private numbers differ from run to run, so the shape is compared; `...` on a page stands for anything, and a
    reader who says no name is shown as ana."""
    reduced, said = squeezed if exactly else shape, said.replace(NOBODY, "ana")
    pattern = ".*".join(re.escape(reduced(part)) for part in shown.split("..."))
    assert re.fullmatch(pattern, reduced(said), re.DOTALL), f"the page shows\n{shown}\nbut it says\n{said}"


def shape(words: str) -> str:
    """Words without what may vary: numbers, yes and no, noise labels, hashes, times, and where lines break."""
    words = re.sub(r"\d{4}-\d\d-\d\dT[\d:+]+|\b[0-9a-f]{12,64}\b", "#", words)
    words = re.sub(r"[\d.,]*\d(?:e[-+]?\d+)?", "#", words)
    words = re.sub(r"(?i)\b(low noise|moderate noise|mostly noise):", "#:", words)
    return squeezed(re.sub(r"\bsays (yes|no)\b|\b(True|False)\b", "#", words))


def squeezed(words: str) -> str:
    """Words without the spaces between them: tables may be wider or narrower."""
    return "".join(words.split())


def test_shapes_are_alike_only_when_the_words_are() -> None:
    assert_alike("answer  12 (p 0.5), says yes\n", "answer 1,234\n (p 3e-05), says no")
    assert_alike("first\n...\nlast 1", "first\nmiddle\nlast 2")
    for shown, said, exactly in (("answer 12", "reply 12", False), ("answer 12", "answer 13", True)):
        with pytest.raises(AssertionError, match="but it says"):
            assert_alike(shown, said, exactly=exactly)


# The command line


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_has_help(name: str) -> None:
    command = COMMANDS[name]
    assert command.help, f"{name} has no help"
    assert hasattr(command, "commands") or command.epilog.startswith("Example: wallflower"), f"{name} has no example"
    for item in command.params:
        assert item.help, f"{name}: {item.name} has no help"


def test_the_page_of_the_command_line_is_fresh() -> None:
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == CLI_PAGE.page(), "run `make docs`"


def test_the_pages_know_every_exit_code_and_every_kind_of_entry() -> None:
    codes = re.search(r"Exit codes: (.*?)\.\n", (ROOT / "docs/cli.md").read_text(encoding="utf-8"), re.DOTALL)
    assert codes is not None
    assert {int(code) for code in re.findall(r"\b(\d+) [a-z]", codes[1])} == {0, 1, 2, 3, 4, 5, 6, 130}
    ledger = (ROOT / "docs/ledger.md").read_text(encoding="utf-8")
    assert [event for event in get_args(Event) if f"`{event}`" not in ledger] == []
    assert len(re.findall(r"^\| `\w+` \| .* \| .* \|$", ledger.partition("seven kinds")[2], re.MULTILINE)) >= 7


def test_pictures_say_what_they_show() -> None:
    curves, people = ((ROOT / "docs/images" / name).read_text() for name in ("epsilon.svg", "scaling.svg"))
    assert "<title>Two Laplace curves" in curves
    places = re.findall(r'<circle [^>]*cy="([\d.]+)"', people)
    assert places.count(places[0]) == 10
    assert "<title>Ten people" in people
    assert "![Ten people" in (ROOT / "docs/concepts/scaling.md").read_text(encoding="utf-8")


def test_every_command_is_on_a_written_page() -> None:
    written = "\n".join(page.read_text(encoding="utf-8") for page in PAGES if page.name != "cli.md")
    for name, command in COMMANDS.items():
        if not hasattr(command, "commands"):
            assert name in written, f"{name} is on no page but the generated one"


# Pages


@pytest.mark.parametrize("question", QUERIES, ids=lambda question: question.kind)
def test_every_question_has_a_page_that_explains_its_parameters(question: Any) -> None:
    page = (ROOT / "docs" / f"{question.kind}.md").read_text(encoding="utf-8")
    for name in {item.name for item in fields(question)} - {"loss"}:
        assert f"`{name}`" in page, f"docs/{question.kind}.md does not explain {name}"
    assert f"({question.kind}.md)" in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")


def test_every_page_is_linked_from_another() -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        others = (other.read_text(encoding="utf-8") for other in PAGES if other != page)
        assert page.name == "index.md" or any(f"{page.name})" in text or f"{page.name}#" in text for text in others), (
            f"no page leads to {page.relative_to(ROOT)}"
        )


@pytest.mark.parametrize("page", named(PAGES))
def test_links_lead_somewhere(page: Path) -> None:
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in LINK.findall(prose):
        if "://" not in target:
            path, _, anchor = target.partition("#")
            goal = page.parent / path if path else page
            assert goal.exists(), f"{page.name}: {target} leads nowhere"
            assert not anchor or anchor in anchors(goal), f"{page.name}: {target} has no such heading"


def anchors(page: Path) -> set[str]:
    """The headings of a page, as links write them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", named(PAGES))
def test_commands_of_make_exist(page: Path) -> None:
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    for target in re.findall(r"(?:`|^|\$ )make (\w+)", page.read_text(encoding="utf-8"), re.MULTILINE):
        assert target in targets, f"{page.name}: there is no `make {target}`"


# Citations


def cited(text: str) -> set[str]:
    """The keys in [NRS07, Def 2.2] and [BW18; CKS20, Thm 7]."""
    parts = (part.strip() for inside in CITED.findall(text) for part in re.split("[;,]", inside))
    return {part for part in parts if KEY.fullmatch(part)}


def test_every_citation_is_in_the_references_and_every_reference_is_real_enough() -> None:
    entries = re.split(r"^@", (ROOT / "docs" / "references.bib").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    known = {entry.partition("{")[2].partition(",")[0]: entry for entry in entries}
    for key, entry in known.items():
        for field in ("author", "title"):
            assert re.search(rf"^ *{field} *= \{{", entry, re.MULTILINE), f"{key} has no {field}"
    for path in TEXTS:
        unknown = cited(path.read_text(encoding="utf-8")) - set(known) if path != Path(__file__) else set()
        assert not unknown, f"{path.relative_to(ROOT)} cites {', '.join(sorted(unknown))}: not in docs/references.bib"


def test_citations_are_found_in_all_their_forms() -> None:
    assert cited("[NRS07, Def 2.2] [BW18; CKS20, Thm 7] [dLV08, BV08] [Oka15ja, eqs 19-24]") == {
        *("NRS07", "BW18", "CKS20", "dLV08", "BV08", "Oka15ja")
    }
    assert not cited("x[i32] values[0] [a](b.md) [1e18]") - {"i32"}


def test_no_page_names_a_machine() -> None:
    for path in [*TEXTS, ROOT / "Makefile", ROOT / "constraints.txt", ROOT / "pyproject.toml"]:
        if path != Path(__file__):
            text = path.read_text(encoding="utf-8")
            assert str(ROOT) + os.sep not in text, f"{path.relative_to(ROOT)} names the folder it is in"
            assert "index-url" not in text, f"{path.relative_to(ROOT)} names a package index"
