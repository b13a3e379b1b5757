"""The site is built without a warning, needs nothing from elsewhere, and every link in it leads somewhere."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[1]
LOADS = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "object": "data"}


class Page(HTMLParser):
    """What a page leads to, what it loads, and which places in it can be led to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.places: set[str] = set()
        self.unnamed: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = dict(attrs)
        self.places |= {value for name in ("id", "name") if (value := said.get(name))}
        if tag == "a" and said.get("href"):
            self.links.append(str(said["href"]))
        if tag == "img" and not said.get("alt"):
            self.unnamed.append(str(said.get("src")))
        if tag in LOADS and said.get(LOADS[tag]) and said.get("rel") not in ("next", "prev", "canonical"):
            self.loads.append(str(said[LOADS[tag]]))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One build for all tests of it."""
    out = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "site.py", "--out", out, "--version", "new"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr, "the build says something"
    return out / "new"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}


@pytest.mark.slow
def test_links_of_the_site_lead_somewhere(site: Path, pages: dict[Path, Page]) -> None:
    lost = [
        f"{path.relative_to(site)}: {target}"
        for path, page in pages.items()
        for target in {*page.links, *page.loads}
        if not leads(path, target, pages)
    ]
    assert not lost


def leads(path: Path, target: str, pages: dict[Path, Page]) -> bool:
    """Whether a link inside the site has a page, and a place in it, to lead to; others are not followed."""
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return True
    goal = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if goal not in pages:
        return goal.is_file()
    return not parts.fragment or unquote(parts.fragment) in pages[goal].places


@pytest.mark.slow
def test_the_site_needs_nothing_from_elsewhere(site: Path, pages: dict[Path, Page]) -> None:
    foreign = {load for page in pages.values() for load in page.loads if re.match(r"(https?:)?//", load)}
    styles = [path.read_text(encoding="utf-8") for path in site.rglob("*.css")]
    foreign |= {
        found for style in styles for found in re.findall(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//[^)]*", style)
    }
    assert not foreign


@pytest.mark.slow
def test_every_picture_of_the_site_says_what_it_shows(pages: dict[Path, Page]) -> None:
    assert not {picture for page in pages.values() for picture in page.unnamed}


@pytest.mark.slow
def test_every_page_and_proof_is_on_the_site(site: Path) -> None:
    written = [
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("docs/**/*.ipynb"),
        *ROOT.glob("src/**/*.md"),
        ROOT / "LIMITATIONS.md",
    ]
    for page in written:
        assert (site / page.relative_to(ROOT)).with_suffix(".html").exists(), f"{page.name} is not on the site"
    assert "<sub>" in (site / "src/wallflower/queries/count/proof.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_front_door_leads_to_the_newest_version(site: Path) -> None:
    for name in ("0.9.0", "0.10.0"):
        home = site.parent / name / "docs" / "index.html"
        home.parent.mkdir(parents=True)
        home.touch()
    script().write_versions(site.parent)
    listed = (site.parent / "versions.html").read_text(encoding="utf-8")
    assert re.findall(r'href="([^/]+)/', listed) == ["0.10.0", "0.9.0", "new"]
    assert 'url=0.10.0/docs/index.html"' in (site.parent / "index.html").read_text(encoding="utf-8")


def script(name: str = "site") -> Any:
    """One of the scripts, which are no part of the package; it is loaded as if it had been called."""
    spec = spec_from_file_location(f"script_{name}", ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# What is drawn and written by scripts


def test_pictures_are_fresh() -> None:
    pictures = script("pictures")
    for name, draw in pictures.PICTURES.items():
        assert (pictures.FOLDER / name).read_text(encoding="utf-8") == draw(), f"{name}: run `make docs`"


def test_the_page_of_benchmarks_is_fresh() -> None:
    made = script("benchmarks_page")
    results = json.loads(made.RESULTS.read_text(encoding="utf-8"))
    assert made.PAGE.read_text(encoding="utf-8") == made.words(results), "run `make docs`"
    assert made.PICTURE.read_text(encoding="utf-8") == made.draw(results), "run `make docs`"


def test_the_page_of_references_is_fresh() -> None:
    made = script("references_page")
    text = (made.DOCS / "references.bib").read_text(encoding="utf-8")
    assert made.PAGE.read_text(encoding="utf-8") == made.words(text), "run `make docs`"


@pytest.mark.slow
def test_citations_lead_to_the_references(site: Path) -> None:
    page = (site / "docs" / "count.html").read_text(encoding="utf-8")
    assert '[<a class="reference internal" href="references.html#oka15">Oka15</a>]' in page


def test_the_gallery_is_kept_and_small() -> None:
    page = (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8")
    for name in script("gallery").DRAWN:
        assert f"(images/{name})" in page
        assert (ROOT / "docs" / "images" / name).stat().st_size < 100_000


def test_every_picture_is_on_a_page() -> None:
    pages = "\n".join(path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
    for picture in (ROOT / "docs" / "images").iterdir():
        assert f"images/{picture.name})" in pages, f"{picture.name} is on no page"


def test_a_page_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    there, here = tmp_path / "there.html", tmp_path / "here.html"
    pages = {there: Page("<h1 id='place'></h1>"), here: Page("<img src='//elsewhere/x.png'>")}
    assert leads(here, "there.html#place", pages)
    assert not leads(here, "there.html#nowhere", pages)
    assert not leads(here, "lost.html", pages)
    assert pages[here].unnamed == pages[here].loads == ["//elsewhere/x.png"]
