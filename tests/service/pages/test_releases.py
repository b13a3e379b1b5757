"""The page of a release of every question, in a real browser: what is hovered is in the table, each file is read."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow.ipc as ipc
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from served import Caller, Service, run_service, settings

from browser import CHROMIUM, needs_chromium
from wallflower.privacy import Loss
from wallflower.release import Release
from wallflower.release.answer import citation
from wallflower.schema import Column, Schema
from wallflower.service.settings import Registration

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PATIENCE = 120_000
NEAR = {"neighbours": 3, "columns": ["a", "b"]}
PULSE = {"low": 0, "high": 250}
DOMAIN = {"columns": {"ward": {"categories": ["x", "y"]}, "b": PULSE}, "clip": True}
ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "count": ("count", NEAR | {"radius": 0.5, "epsilon": "1"}),
    "groups": ("count", NEAR | {"radius": 0.5, "epsilon": "1", "by": ["ward"]}),
    "map": ("count", NEAR | {"radius": 0.5, "epsilon": "1", "by": ["ward", "shift"]}),
    "order": ("subspaces", NEAR | {"radius": 0.3, "size": 1, "top": 2, "epsilon": "1"}),
    "profile": ("profile", NEAR | {"epsilon": "2"}),
    "radius": ("radius", NEAR | {"share": "0.1", "epsilon": "1"}),
    "scale": ("scale", {"columns": ["a", "b"], "epsilon": "1"}),
    "detector": ("detector", {"columns": ["a", "b"], "contamination": "0.1", "epsilon": "2"}),
    "explain": (
        "explain",
        {"record": "3", "metric": "b", "context": ["ward"], "domain": DOMAIN, "size": 200, "epsilon": "9"},
    ),
    "watch": ("watch", {"columns": ["a"], "threshold": 1, "low": -5, "high": 5, "variance": 1, "epsilon": "2"}),
}
UNDRAWN = {"radius", "scale"}  # a number alone, and figures in units of their own


@pytest.fixture(scope="module")
def service(tmp_path_factory: Any) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("releases")
    source: Path = folder / "patients.csv"
    rows = (
        f"{row % 37},{240 if row == 3 else row * row % 97},{'xy'[row % 2]},{'de'[row // 2 % 2]}" for row in range(200)
    )
    source.write_text("a,b,ward,shift\n" + "\n".join(rows) + "\n", encoding="utf-8")
    numbers = (Column("a", low=0, high=37, center=18, scale=11), Column("b", low=0, high=250, center=48, scale=28))
    labels = (Column("ward", categories=("x", "y")), Column("shift", categories=("d", "e")))
    schema = Schema(columns=(*numbers, *labels), rows=200, clip=True)
    patients = Registration(analysts=("*",), name="patients", source=str(source), schema=schema, records=("3",))
    with run_service(settings(folder, datasets=(patients,), quantum_seconds=0)) as running:
        running.app.state.core.ledger.grant("patients", Loss("1000"), by="sue")
        yield running


@pytest.fixture(scope="module")
def sue(service: Service) -> Caller:
    return service.token("sue", "steward")


@pytest.fixture(scope="module")
def releases(sue: Caller) -> dict[str, dict[str, Any]]:
    """A release of each kind."""
    found = {}
    for name, (kind, body) in ASKED.items():
        answer = sue.post(f"/v1/datasets/patients/ask/{kind}", body | {"force": True})
        assert answer.status == 200, (name, answer.content)
        found[name] = answer.json
    body = {"detector": found["detector"]["ledger_id"], "by": ["ward"], "epsilon": "1", "force": True}
    found["flags"] = sue.post("/v1/datasets/patients/ask/flags", body).json
    return found


@pytest.fixture(scope="module")
def page(service: Service, sue: Caller) -> Iterator[Page]:
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as driver:
        browser: Browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        found = browser.new_context(accept_downloads=True).new_page()
        found.set_default_timeout(PATIENCE)
        found.goto(f"{service.url}/")
        found.get_by_label("Your token").fill(str(sue.token))
        found.get_by_role("button", name="Sign in").click()
        expect(found.get_by_role("heading", name="Data sets")).to_be_visible()
        yield found
        browser.close()


def table_cells(page: Page) -> list[str]:
    """Every cell of the table under the picture, whether it is open or not."""
    return [cell.strip() for cell in page.locator("#numbers td").all_text_contents()]


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("name", [*ASKED, "flags"])
def test_a_release_is_drawn_and_told_in_a_table(
    name: str, releases: dict[str, dict[str, Any]], page: Page, service: Service
) -> None:
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type != "verbose" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(f"{service.url}/ui/releases/{releases[name]['ledger_id']}")
    expect(page.get_by_role("heading", level=1)).to_have_text(releases[name]["question"])
    drawn = name not in UNDRAWN and releases[name]["value"] != []
    expect(page.locator("svg.picture:visible")).to_have_count(int(drawn))
    if drawn:
        mark = page.locator("svg.picture:visible .mark").last
        said = mark.get_attribute("data-said")
        mark.hover(force=True)
        expect(page.locator("#tip")).to_be_visible()
        assert page.locator("#tip").text_content()
        cells = " ".join(table_cells(page))
        assert said
        numbers = [
            word.strip(",:()")
            for word in said.rpartition(": ")[2].split()
            if word.strip(",:()").replace(",", "").isdigit()
        ]
        assert all(number in cells for number in numbers), (said, cells)
    for width in (1280, 375):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert complaints == []


@pytest.mark.slow
@needs_chromium
def test_every_mark_of_a_curve_stands_in_the_table(
    releases: dict[str, dict[str, Any]], page: Page, service: Service
) -> None:
    page.goto(f"{service.url}/ui/releases/{releases['profile']['ledger_id']}")
    value, cells = releases["profile"]["value"], table_cells(page)
    rows = list(zip(*[iter(cells)] * 4, strict=True))
    assert [int(row[1].replace(",", "")) for row in rows] == value["outliers"]
    marks = page.locator("svg.on-wide .mark").evaluate_all("marks => marks.map(mark => mark.dataset.said)")
    points = [said for said in marks if said.startswith("radius ")]
    assert len(points) == len(rows)
    for said, (radius, outliers, low, high) in zip(points, rows, strict=True):
        assert said == f"radius {radius}: {outliers} outliers ({low} to {high})"


@pytest.mark.slow
@needs_chromium
def test_on_paper_a_dark_page_is_black_on_white(
    releases: dict[str, dict[str, Any]], page: Page, service: Service
) -> None:
    page.emulate_media(media="print", color_scheme="dark")
    page.goto(f"{service.url}/ui/releases/{releases['groups']['ledger_id']}")
    seen = "(at, what) => getComputedStyle(document.querySelector(at))[what]"
    colours = page.evaluate(f"() => [['body', 'backgroundColor'], ['h1', 'color']].map(([a, b]) => ({seen})(a, b))")
    page.emulate_media(media="screen", color_scheme="light")
    assert colours == ["rgb(255, 255, 255)", "rgb(17, 26, 33)"]


@pytest.mark.slow
@needs_chromium
def test_paper_has_the_data_that_a_screen_folds(
    releases: dict[str, dict[str, Any]], page: Page, service: Service
) -> None:
    page.goto(f"{service.url}/ui/releases/{releases['detector']['ledger_id']}")
    shown = "() => document.getElementById('numbers').checkVisibility({contentVisibilityAuto: true})"
    assert not page.evaluate(shown)
    page.emulate_media(media="print")
    page.wait_for_function(shown)  # styles for paper are fetched last, after the page has told that it is there
    page.emulate_media(media="screen")


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("name", ["groups", "detector"])
def test_every_file_of_a_release_is_read(
    name: str, releases: dict[str, dict[str, Any]], page: Page, service: Service
) -> None:
    page.goto(f"{service.url}/ui/releases/{releases[name]['ledger_id']}")
    files = {}
    for link in page.locator(".downloads a").all():
        with page.expect_download() as waiting:
            link.click()
        files[waiting.value.suggested_filename.rpartition(".")[2]] = Path(waiting.value.path()).read_bytes()
    assert set(files) == {"csv", "json", "arrows", "svg", "png", "pdf"}
    assert json.loads(files["json"])["value"] == releases[name]["value"]
    assert ipc.open_stream(io.BytesIO(files["arrows"])).read_all()["ledger_id"].to_pylist() == [
        releases[name]["ledger_id"]
    ]
    assert list(csv.DictReader(io.StringIO(files["csv"].decode())))
    assert ElementTree.fromstring(files["svg"]).tag.endswith("svg")
    assert files["png"].startswith(b"\x89PNG")


def test_a_release_is_cited_with_all_that_finds_it_again(releases: dict[str, dict[str, Any]], service: Service) -> None:
    found = Release.from_dict(releases["count"])
    said = citation(found, publisher="Office", link=f"{service.url}/ui/releases/{found.ledger_id}")
    for part in (
        "Office: How many",
        "patients",
        "radius 0.5",
        f"Release {found.ledger_id} ",
        found.version,
        service.url,
    ):
        assert part in said
    assert found.charged_at[:4] in said
