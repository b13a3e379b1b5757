"""How the site is built: Sphinx reads the repository as it lies, so a link works there and on the site alike.

`make site` builds it. Nothing is fetched, at the build or by a reader: fonts are the reader's own, formulas are text
with true subscripts, pictures are SVG, and the search runs in the page.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

from docutils import nodes
from myst_parser.parsers.sphinx_ import MystParser
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

ROOT: Final = Path(__file__).parents[1]
HOME: Final = "docs/index"

project = "wallflower"
author = "the wallflower authors"
copyright = author  # noqa: A001 - the name is Sphinx's
version = release = re.findall(r'^VERSION = "(.+)"$', (ROOT / "src/wallflower/machine/version.py").read_text(), re.M)[0]

extensions = ["myst_parser"]
root_doc = HOME
include_patterns = ["*.md", "docs/**.md", "docs/**.ipynb", "src/**.md", "benchmarks/README.md"]
exclude_patterns = [".*", "README.md", "build", "docs/_site", "dist", "out", "tests", "wallflower-*"]
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]  # a console block shows what a program says, which is no language

html_theme = "furo"
html_title = f"wallflower {version}"
html_favicon = "../src/wallflower/service/pages/static/icon.svg"
html_static_path = ["_site/static"]
templates_path = ["_site/templates"]
html_css_files = ["site.css"]
html_js_files = ["copy.js"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "versions.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_show_sourcelink = False
html_copy_source = False
html_show_copyright = False
html_theme_options: dict[str, Any] = {
    "sidebar_hide_name": False,
    "light_css_variables": {"color-brand-primary": "#0b7285", "color-brand-content": "#0b7285"},
    "dark_css_variables": {"color-brand-primary": "#4cc3d6", "color-brand-content": "#4cc3d6"},
}

SIDEBAR: Final[dict[str, tuple[str, ...]]] = {
    "Start": ("docs/install", "docs/tutorial", "docs/start", "docs/faq"),
    "How to": (
        *("docs/guides/choose-epsilon", "docs/guides/choose-radius", "docs/guides/declare-unit", "docs/guides/*"),
        "docs/notebooks/README",
    ),
    "Queries": tuple(
        f"docs/{kind}"
        for kind in [
            "count",
            "profile",
            "radius",
            "scale",
            "subspaces",
            "watch",
            "mqtt",
            "shift",
            "tally",
            "explain",
            "detector",
            "who",
            "sensors",
        ]
    ),
    "Understand": (
        *(f"docs/concepts/{name}" for name in ("epsilon", "outliers", "scaling", "noise", "ledger", "*")),
        "docs/glossary",
        "LIMITATIONS",
    ),
    "Data and service": tuple(
        f"docs/{name}"
        for name in [
            "data",
            "engines",
            "ledger",
            "service",
            "steward",
            "sign-in",
            "operations",
            "upgrading",
            "security",
            "stability",
        ]
    ),
    "Reference": ("docs/cli", "docs/config", "docs/reference/README"),
    "Evidence": (
        *("docs/accuracy", "docs/benchmarks", "docs/comparison", "docs/reproduce", "docs/audit"),
        *("docs/machine-checked", "docs/references", "src/wallflower/*", "src/wallflower/ledger/*"),
        "src/wallflower/queries/*/proof",
    ),
}
# For those who work on the code: on the site, so that links lead there, but neither beside pages nor in the search.
CONTRIBUTORS: Final = (
    *("CONTRIBUTING", "SECURITY", "CHANGELOG", "benchmarks/README"),
    *("docs/adding-a-query", "docs/architecture", "docs/site", "docs/decisions/*"),
)
DEEPER: Final = {
    "docs/notebooks/README": ("docs/notebooks/[a-z]*",),
    "docs/reference/README": ("docs/reference/[a-z]*",),
}


def add_sidebar(app: Sphinx, page: str, source: list[str]) -> None:
    """Say beside the page, not in it, what stands below it: the repository shows a directive as code."""
    if page == HOME:
        shown = {name for names in [*SIDEBAR.values(), *DEEPER.values(), CONTRIBUTORS] for name in matched(app, names)}
        rest = sorted(set(app.env.found_docs) - shown - {HOME})
        source[0] += "".join(contents(app, caption, names) for caption, names in SIDEBAR.items())
        source[0] += contents(app, "More", rest)
    elif page in DEEPER:
        source[0] += contents(app, "", DEEPER[page])


def hide_contributor_page(app: Sphinx, _: nodes.document) -> None:
    """Keep a page for contributors out of the search, and from being missed in the contents."""
    page = app.env.current_document.docname
    if page in matched(app, CONTRIBUTORS):
        app.env.metadata[page] |= {"nosearch": "", "orphan": ""}


def matched(app: Sphinx, names: Any) -> list[str]:
    """The pages that these names, which may have stars, stand for."""
    known = sorted(app.env.found_docs)
    patterns = [re.compile(name.replace("*", "[^/]*")) for name in names]
    found = [page for pattern in patterns for page in known if pattern.fullmatch(page) and page != HOME]
    return list(dict.fromkeys(found))


def contents(app: Sphinx, caption: str, names: Any) -> str:
    pages = [f"/{page}" for page in matched(app, names)]
    above = [":hidden:", *([f":caption: {caption}"] if caption else [])]
    return "\n".join(["", "```{toctree}", *above, "", *pages, "```", ""]) if pages else ""


class Notebook(MystParser):
    """A notebook as a page: what is written, what is run, and what was kept of what it showed."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        cells = json.loads(inputstring)["cells"]
        super().parse("\n\n".join(cell_words(cell) for cell in cells), document)


def cell_words(cell: dict[str, Any]) -> str:
    text = "".join(cell["source"])
    if cell["cell_type"] != "code":
        return text
    return "\n\n".join(
        [f"````python\n{text}\n````", *(shown for out in cell["outputs"] if (shown := output_words(out)))]
    )


def output_words(output: dict[str, Any]) -> str:
    """One output; a picture stays inside the page."""
    data = output.get("data", {})
    if "text/html" in data:
        return f"````{{raw}} html\n<div class='shown'>{''.join(data['text/html'])}</div>\n````"
    if "image/png" in data:
        picture = "".join(data["image/png"]).replace("\n", "")
        return f"````{{raw}} html\n<img class='shown' alt='the plot' src='data:image/png;base64,{picture}'>\n````"
    text = "".join(output.get("text", data.get("text/plain", "")))
    return f"````text\n{text.rstrip()}\n````" if text.strip() else ""


CODE: Final = nodes.literal | nodes.literal_block | nodes.raw | nodes.title | nodes.reference


class Formulas(SphinxPostTransform):
    """`f_ij` and `10^d` of the proofs, set as the subscripts and superscripts that they are."""

    default_priority = 400
    mark = re.compile(r"(?<![\w`])([A-Za-zΑ-ω∑ΣΠ∏]′?|log|max|min|\d+|[)\]])([_^])(\{[^{}]*\}|[A-Za-z0-9Α-ω]+)")

    def run(self, **_: Any) -> None:
        if self.env.current_document.docname.startswith("src/"):
            for text in list(self.document.findall(nodes.Text)):
                if not isinstance(text.parent, CODE):
                    text.parent.replace(text, self.typeset(str(text)))

    def typeset(self, words: str) -> list[nodes.Node]:
        made: list[nodes.Node] = []
        end = 0
        for found in self.mark.finditer(words):
            below = nodes.subscript if found[2] == "_" else nodes.superscript
            made += [nodes.Text(words[end : found.end(1)]), below("", found[3].strip("{}"))]
            end = found.end()
        return [*made, nodes.Text(words[end:])]


class Citations(SphinxPostTransform):
    """`[NRS07, Def 2.2]` with a way to the entry it names; the repository shows the same words."""

    default_priority = 410  # after the formulas, and before references are resolved
    mark = re.compile(r"(?<=[\[;,] )[A-Za-z]{1,6}\d\d(?:[a-z]{2})?\b|(?<=\[)[A-Za-z]{1,6}\d\d(?:[a-z]{2})?\b")
    page = "docs/references"

    def run(self, **_: Any) -> None:
        here = self.env.current_document.docname
        if here == self.page:
            return
        keys = {key.lower() for key in re.findall(r"^@\w+\{(\w+),", (ROOT / f"{self.page}.bib").read_text(), re.M)}
        way = self.app.builder.get_relative_uri(here, self.page)
        for text in list(self.document.findall(nodes.Text)):
            if "[" in text and not isinstance(text.parent, CODE):
                text.parent.replace(text, self.linked(str(text), keys, way))

    def linked(self, words: str, keys: set[str], way: str) -> list[nodes.Node]:
        made: list[nodes.Node] = []
        end = 0
        for found in self.mark.finditer(words):
            if found[0].lower() in keys:
                link = nodes.reference("", found[0], internal=True, refuri=f"{way}#{found[0].lower()}")
                made += [nodes.Text(words[end : found.start()]), link]
                end = found.end()
        return [*made, nodes.Text(words[end:])]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(Notebook)
    app.add_post_transform(Formulas)
    app.add_post_transform(Citations)
    app.connect("source-read", add_sidebar)
    app.connect("doctree-read", hide_contributor_page)
    return {"parallel_read_safe": True}
