"""Build the site into build/site/VERSION, and name all versions that are there. Nothing is fetched."""

from __future__ import annotations

import argparse
import html
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
HOME: Final = "docs/index.html"
PAGE: Final = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>wallflower: {title}</title>{more}
<body style="font-family: sans-serif; max-width: 40em; margin: 3em auto; padding: 0 1em">
<h1>wallflower</h1>
{body}
</html>
"""


def main() -> int:
    """Build, then write down which versions are there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site", help="the folder of all versions")
    parser.add_argument("--version", default=_version(), help="the folder of this one; default: the version's own name")
    given = parser.parse_args()
    code = build(given.out / given.version)
    if code == 0:
        write_versions(given.out)
        sys.stdout.write(f"built {given.out / given.version / HOME}\n")
    return code


def build(folder: Path) -> int:
    """Build the site there; a warning is an error."""
    words = [
        "-q",
        "-E",
        "-W",
        "--keep-going",
        "-c",
        str(ROOT / "docs"),
        "-d",
        str(folder.parent / ".doctrees" / folder.name),
    ]
    return subprocess.run([sys.executable, "-m", "sphinx", *words, str(ROOT), str(folder)], check=False).returncode


def write_versions(out: Path) -> None:
    """The page of all versions, newest first, and the way from the front door to the newest."""
    known = sorted((page.parents[1].name for page in out.glob(f"*/{HOME}")), key=_order, reverse=True)
    lines = "".join(f'<li><a href="{name}/{HOME}">{html.escape(name)}</a></li>\n' for name in known)
    listed = PAGE.format(title="all versions", more="", body=f"<p>Documentation by version.</p>\n<ul>\n{lines}</ul>")
    (out / "versions.html").write_text(listed, encoding="utf-8")
    newest = f"{known[0]}/{HOME}"
    onwards = f'\n<meta http-equiv="refresh" content="0; url={newest}">'
    (out / "index.html").write_text(
        PAGE.format(title="documentation", more=onwards, body=f'<p><a href="{newest}">Documentation</a></p>'),
        encoding="utf-8",
    )


def _order(name: str) -> tuple[bool, list[int], str]:
    """Numbers as numbers, and whatever is no number below them."""
    return name[:1].isdigit(), [int(part) for part in re.findall(r"\d+", name)], name


def _version() -> str:
    return re.findall(
        r'^VERSION = "(.+)"$', (ROOT / "src/wallflower/machine/version.py").read_text(encoding="utf-8"), re.M
    )[0]


if __name__ == "__main__":
    raise SystemExit(main())
