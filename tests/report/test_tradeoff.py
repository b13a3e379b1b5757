"""The page to choose by: complete in itself, public facts only, and alive in a browser."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from browser import needs_chromium
from wallflower import Count, Loss, Watch
from wallflower.errors import ParameterError
from wallflower.query import Tradeoff
from wallflower.report.tradeoff import page, write

QUERY = Watch(threshold=2.0, low=-1.0, high=1.0, variance=1.0, loss=Loss("1"))
CURVES = (
    Tradeoff(amount="0.5", setting=(3.0, 2.0, 1.0), alarms=(0.0, 0.1, 1.0), found=(0.0, 0.3, 1.0)),
    Tradeoff(amount="1", setting=(3.0, 2.0, 1.0), alarms=(0.0, 0.1, 1.0), found=(0.0, 0.8, 1.0)),
)


def test_the_page_needs_nothing_but_itself() -> None:
    text = page(QUERY, CURVES)
    assert not re.search(r"(src|href)=|https?://(?!www\.w3\.org/2000/svg)", text)
    assert text.count('"amount"') == 2
    assert "$" not in re.sub(r"\$\{", "", text)


def test_words_cannot_break_out_of_the_script() -> None:
    evil = (Tradeoff(amount="</script><b>", setting=(1.0,), alarms=(0.5,), found=(0.5,)),)
    assert "</script><b>" not in page(QUERY, evil)


def test_a_question_without_curves_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="no ROC curve"):
        write(tmp_path / "page.html", Count(neighbours=3, radius=1.0, loss=Loss("1")), dimension=2)
    assert list(tmp_path.iterdir()) == []


def test_curves_rise_and_more_loss_finds_more() -> None:
    curves = QUERY.tradeoffs(dimension=1)
    assert [curve.amount for curve in curves] == sorted((curve.amount for curve in curves), key=float)
    assert any(curve.amount == "1" for curve in curves)
    for curve in curves:
        assert list(curve.alarms) == sorted(curve.alarms)
        assert all(0 <= share <= 1 for share in (*curve.alarms, *curve.found))
    best = [max(f - a for f, a in zip(curve.found, curve.alarms, strict=True)) for curve in curves]
    assert best == sorted(best)


def test_a_watch_without_a_variance_has_no_curves() -> None:
    with pytest.raises(ParameterError, match="variance"):
        Watch(threshold=2.0, low=-1.0, high=1.0, loss=Loss("1")).tradeoffs(dimension=1)


@pytest.mark.slow
@needs_chromium
def test_it_draws_in_a_browser(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(page(QUERY, CURVES), encoding="utf-8")
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", path.as_uri()]
    drawn = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "<output>ε = 1</output>" in drawn
    assert drawn.count('class="other"') == 2
    assert "80.0 %" in drawn
