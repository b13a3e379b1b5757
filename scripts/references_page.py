"""Write docs/references.md from docs/references.bib: what the pages and proofs cite, to be read by people.

Run `python scripts/references_page.py`; a test holds the page to the file.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import Final

DOCS: Final = Path(__file__).parents[1] / "docs"
PAGE: Final = DOCS / "references.md"
OPENING: Final = """\
# References

Written by `make docs` from [references.bib](references.bib); do not edit it by hand. The pages, the proofs and the
source cite these by their keys, such as [NRS07, Def 2.2].
"""
ACCENTS: Final = {"'": "\u0301", '"': "\u0308", "`": "\u0300", "^": "\u0302", "~": "\u0303", "c": "\u0327"}
FIELD: Final = re.compile(r"^ *(\w+) *= \{(.*?)\},?$", re.MULTILINE | re.DOTALL)


def main() -> None:
    """Write the page."""
    PAGE.write_text(words((DOCS / "references.bib").read_text(encoding="utf-8")), encoding="utf-8")


def words(text: str) -> str:
    """The whole page, by key."""
    entries = dict(_entry(part) for part in re.split(r"^@", text, flags=re.MULTILINE)[1:])
    parts = [f"## {key}\n\n{entries[key]}" for key in sorted(entries, key=str.lower)]
    return "\n\n".join([OPENING.strip(), *parts]) + "\n"


def _entry(part: str) -> tuple[str, str]:
    key = part.partition("{")[2].partition(",")[0]
    told = {name: _plain(value) for name, value in FIELD.findall(part)}
    authors = told["author"].replace(" and ", ", ")
    place = told.get("journal") or told.get("booktitle") or told.get("publisher") or ""
    volume = f" {told['volume']}" if "volume" in told and "journal" in told else ""
    pages = f", {told['pages']}" if "pages" in told else ""
    lines = [f"{authors}: *{told['title']}*.", f"{place}{volume}{pages}".strip(), told.get("year", "")]
    said = " ".join([lines[0], ", ".join(line for line in lines[1:] if line) + "." if any(lines[1:]) else ""]).strip()
    doi = f" doi:{told['doi']}." if "doi" in told else ""
    note = f" {told['note'].rstrip('.')}." if "note" in told else ""
    return key, f"{said}{doi}{note}"


def _plain(value: str) -> str:
    """Words of BibTeX as they are read."""
    text = re.sub(r"\{\\(['\"`^~c]) ?\{?(\w)\}?\}", lambda found: found[2] + ACCENTS[found[1]], " ".join(value.split()))
    text = text.replace("\\_", "_").replace("\\&", "&").replace("--", "–").replace("{", "").replace("}", "")
    return unicodedata.normalize("NFC", text).replace("*", "\\*")


if __name__ == "__main__":
    main()
