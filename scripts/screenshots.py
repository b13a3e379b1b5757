"""Take the pictures of the README: the dashboard of a service that runs, and the page of a release that was paid for.

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
from playwright.sync_api import Page, sync_playwright

from wallflower.synthetic import mixture

FOLDER: Final = Path(__file__).parents[1] / "docs" / "images"
PROGRAM: Final = [sys.executable, "-c", "import sys; from wallflower.cli import main; sys.exit(main())"]
FLAGS: Final = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PATIENCE: Final = 120_000  # milliseconds
TOLD: Final = re.compile(r"on (http://\S+);.*?steward's token +(\S+)\s+analyst's token +(\S+)", re.DOTALL)
DASHBOARD: Final = {"width": 1200, "height": 820}
RELEASE: Final = {"width": 1000, "height": 640}
QUESTION: Final = "?neighbours=5&radius=1.3&epsilon=0.5"


def main() -> None:
    """Take both, in a home of its own."""
    with tempfile.TemporaryDirectory() as home, sync_playwright() as play:
        surroundings = {**os.environ, "HOME": home, "XDG_DATA_HOME": home, "WALLFLOWER_CONFIG": "none"}
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        with serving(surroundings) as (url, token):
            page = browser.new_page(viewport=DASHBOARD, color_scheme="light")
            page.set_default_timeout(PATIENCE)
            ask(page, url, token)
            keep(page, "dashboard.png")
        page = browser.new_page(viewport=RELEASE, color_scheme="light")
        page.goto(report(Path(home), surroundings).as_uri())
        keep(page, "release.png")
        browser.close()


@contextmanager
def serving(surroundings: dict[str, str]) -> Iterator[tuple[str, str]]:
    """A demo service, its address, and the token of an analyst."""
    words = [*PROGRAM, "serve", "--demo", "--port", "0"]
    process = subprocess.Popen(words, env=surroundings, stdout=subprocess.PIPE, text=True)
    try:
        said = ""
        while not (found := TOLD.search(said)):
            line = process.stdout.readline() if process.stdout else ""
            if not line:
                raise RuntimeError(f"the service ended: {said}")
            said += line
        yield found[1], found[3]
    finally:
        process.terminate()
        process.wait()


def ask(page: Page, url: str, token: str) -> None:
    """Sign in, and look at a question before it is paid."""
    page.goto(f"{url}/")
    page.get_by_label("Your token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name="tumours", exact=True).first.click()
    page.get_by_role("link", name="How many outliers are there?").first.click()
    page.goto(page.url.partition("?")[0] + QUESTION)
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


def keep(page: Page, name: str) -> None:
    """What the window shows, in few colours."""
    page.screenshot(path=FOLDER / name)
    with Image.open(FOLDER / name) as picture:
        few = picture.convert("RGB").quantize(128)
    few.save(FOLDER / name, optimize=True)
    sys.stdout.write(f"{FOLDER / name}\n")


if __name__ == "__main__":
    main()
