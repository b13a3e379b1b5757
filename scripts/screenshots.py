"""Take the pictures of the README and of the pages about the service: services that run, answers that were paid.

Run `python scripts/screenshots.py` where Chromium is installed. One shows public tumours, the other made-up patients.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from wallflower.synthetic import mixture

FOLDER: Final = Path(__file__).parents[1] / "docs" / "images"
PROGRAM: Final = [sys.executable, "-c", "import sys; from wallflower.cli import main; sys.exit(main())"]
FLAGS: Final = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PATIENCE: Final = 120_000  # milliseconds
TOLD: Final = re.compile(r"on (http://\S+);.*?steward's token +(\S+)\s+analyst's token +(\S+)", re.DOTALL)
DASHBOARD: Final = {"width": 1200, "height": 820}
RELEASE: Final = {"width": 1000, "height": 640}
PHONE: Final = {"width": 390, "height": 780}
REFUSAL, SPENDING = 760, 1040  # pixels of a page that are shown, where the window has another height
QUESTION: Final = "?neighbours=5&radius=1.3&epsilon=0.5"


def main() -> None:
    """Take them all, in a home of its own."""
    with tempfile.TemporaryDirectory() as home, sync_playwright() as play:
        surroundings = {**os.environ, "HOME": home, "XDG_DATA_HOME": home, "WALLFLOWER_CONFIG": "none"}
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        with serving(surroundings) as (url, steward, analyst):
            ana, sue = sign_in(browser, url, analyst), sign_in(browser, url, steward)
            take_analyst(ana, url)
            take_steward(sue, url)
        page = browser.new_page(viewport=RELEASE, color_scheme="light")
        page.goto(report(Path(home), surroundings).as_uri())
        keep(page, "release.png")
        browser.close()


@contextmanager
def serving(surroundings: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    """A demo service: its address, and the tokens of a steward and of an analyst."""
    words = [*PROGRAM, "serve", "--demo", "--port", "0"]
    process = subprocess.Popen(words, env=surroundings, stdout=subprocess.PIPE, text=True)
    try:
        said = ""
        while not (found := TOLD.search(said)):
            line = process.stdout.readline() if process.stdout else ""
            if not line:
                raise RuntimeError(f"the service ended: {said}")
            said += line
        yield found[1], found[2], found[3]
    finally:
        process.terminate()
        process.wait()


def sign_in(browser: Browser, url: str, token: str) -> Page:
    """The first page, of somebody with a token."""
    page = browser.new_context(viewport=DASHBOARD, color_scheme="light").new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(f"{url}/")
    page.get_by_label("Your token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Data sets").wait_for()
    return page


def take_analyst(page: Page, url: str) -> None:
    """A data set, a question before it is paid, the same on a phone in the dark, an answer, and a refusal."""
    open_page(page, f"{url}/ui/datasets/tumours")
    keep(page, "dataset.png")
    open_page(page, f"{url}/ui/datasets/tumours/plan/count{QUESTION}")
    keep(page, "dashboard.png")
    pay(page, f"{url}/ui/datasets/tumours/plan/detector")
    pay(page, f"{url}/ui/datasets/tumours/plan/profile")
    keep(page, "statistic.png")
    pay(page, f"{url}/ui/datasets/tumours/plan/count?neighbours=5&radius=1.3&epsilon=2")
    keep(page, "refusal.png", height=REFUSAL)
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size(PHONE)
    open_page(page, f"{url}/ui/datasets/tumours/plan/count{QUESTION}")
    page.locator("#plan").scroll_into_view_if_needed()
    page.locator("#slider").scroll_into_view_if_needed()
    keep(page, "phone.png")


def take_steward(page: Page, url: str) -> None:
    """What was spent, and a watch that was fed."""
    open_page(page, f"{url}/ui/spending?dataset=tumours&by=question&period=30")
    keep(page, "spending.png", height=SPENDING)
    open_page(page, f"{url}/ui/datasets/beds/plan/watch")
    if (box := page.get_by_label("Run it anyway")).count():
        box.check()
    page.get_by_role("button", name="Open a watch and pay").click()
    readings = (36.8 + (2.4 if moment % 50 == 25 else 0) for moment in range(240))
    page.locator("[name=observations]").fill("temperature\n" + "".join(f"{one}\n" for one in readings))
    page.get_by_role("button", name="Decide them").click()
    page.get_by_role("status").first.wait_for()
    keep(page, "stream.png")


def pay(page: Page, place: str) -> None:
    """Ask, and see what comes of it."""
    open_page(page, place)
    page.get_by_role("button", name="Ask and pay").click()
    page.get_by_role("button", name="Pay and answer").click()
    page.locator("article.statistic, [role=alert]").first.wait_for()


def open_page(page: Page, place: str) -> None:
    """Go there, and wait until its plan has come."""
    page.goto(place)
    page.wait_for_load_state("networkidle")


def report(folder: Path, surroundings: dict[str, str]) -> Path:
    """The page of a count of made-up patients."""
    measured = mixture(9000, 3, seed=1, share=0.03, spread=5.0)
    header = "pulse,pressure,temperature"
    np.savetxt(folder / "patients.csv", measured, fmt="%.3f", delimiter=",", comments="", header=header)
    columns = "".join(f"[columns.{name}]\nlow = -20\nhigh = 20\nscale = 1.01\n" for name in header.split(","))
    (folder / "patients.toml").write_text(f"clip = true\n{columns}", encoding="utf-8")
    grant = ["budget", "grant", "patients", "--epsilon", "2", "--reason", "report", "--yes", "--ledger", "ledger.db"]
    subprocess.run([*PROGRAM, *grant], cwd=folder, env=surroundings, check=True, stdout=subprocess.DEVNULL)
    question = [
        "patients.csv",
        "--schema",
        "patients.toml",
        "--neighbours",
        "10",
        "--radius",
        "0.5",
        "--epsilon",
        "0.5",
        "--analyst",
        "ana",
    ]
    words = [*PROGRAM, "count", *question, "--ledger", "ledger.db", "--report", "answer.html"]
    subprocess.run(words, cwd=folder, env=surroundings, check=True, stdout=subprocess.DEVNULL)
    return folder / "answer.html"


def keep(page: Page, name: str, height: int | None = None) -> None:
    """What the window shows, or so much of the page, in few colours."""
    if height:
        page.set_viewport_size({"width": DASHBOARD["width"], "height": height})
    page.screenshot(path=FOLDER / name)
    with Image.open(FOLDER / name) as picture:
        few = picture.convert("RGB").quantize(128)
    few.save(FOLDER / name, optimize=True)
    sys.stdout.write(f"{FOLDER / name}\n")


if __name__ == "__main__":
    main()
