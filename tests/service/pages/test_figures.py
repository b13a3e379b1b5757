"""The picture of a release as a file: one panel, the width of a journal's column, and enough dots for print."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from page_client import COUNT, Browser
from served import run_service, settings

from wallflower.service.pages.display import WIDTHS_CM

DOTS_PER_CM = 300 / 2.54


def png_size(content: bytes) -> tuple[int, float]:
    """The width in pixels, and the dots per inch that the file states."""
    width = struct.unpack(">I", content[16:20])[0]
    at = content.index(b"pHYs") + 4
    return width, struct.unpack(">I", content[at : at + 4])[0] * 0.0254


def test_a_figure_has_one_panel_unless_two_are_asked_for_and_the_width_that_is_chosen(tmp_path: Path) -> None:
    with run_service(settings(tmp_path)) as service:
        ana = Browser(service).sign_in(service.token("ana").token)
        asked = ana.post("/ui/datasets/ward/ask/count", COUNT)
        place = f"{asked.headers['location']}/picture"
        alone, both = (ana.get(f"{place}/svg{panels}").content for panels in ("", "?curve=yes"))
        assert (alone.count(b'id="axes_'), both.count(b'id="axes_')) == (1, 2)
        for name, width in WIDTHS_CM.items():
            pixels, density = png_size(ana.get(f"{place}/png?width={name}").content)
            assert pixels == pytest.approx(width * DOTS_PER_CM, abs=1)
            assert density == pytest.approx(300, abs=1)
        document = ana.get(f"{place}/pdf?width=8.5")
        assert document.content.startswith(b"%PDF-")
        assert document.headers["content-type"] == "application/pdf"
        assert ana.get(f"{place}/pdf").content == ana.get(f"{place}/pdf").content
        for wrong in ("png?width=9", "gif", "png?width=8.5cm"):
            assert ana.get(f"{place}/{wrong}").status == 404
