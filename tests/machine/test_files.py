"""Results are files of their owner alone, whole or not there at all."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import wallflower as wf
from wallflower.cli import main
from wallflower.machine.files import replacement, write_text
from wallflower.query import Tradeoff
from wallflower.report import tradeoff


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=lambda mask: f"umask-{mask:03o}")
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_the_owners_alone_from_its_first_moment(umask: int, tmp_path: Path) -> None:
    path = tmp_path / "answer.txt"
    path.write_text("old")
    path.chmod(0o666)
    with replacement(path) as file:
        (draft,) = (one for one in tmp_path.iterdir() if one != path)
        assert mode(draft) == 0o600
        file.write(b"new")
        file.flush()
        assert path.read_text() == "old"
    assert (path.read_text(), mode(path)) == ("new", 0o600)
    assert list(tmp_path.iterdir()) == [path]


def test_what_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "answer.txt"
    path.write_text("old")
    with pytest.raises(TypeError), replacement(path) as file:
        file.writelines((b"half", "and what is no bytes"))
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_one_and_a_pipe_is_written_to(tmp_path: Path) -> None:
    real, link, pipe = tmp_path / "real", tmp_path / "link", tmp_path / "pipe"
    real.write_text("old")
    link.symlink_to(real)
    write_text(link, "new")
    assert (link.is_symlink(), real.read_text(), mode(real)) == (True, "new", 0o600)
    os.mkfifo(pipe)
    heard: list[str] = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_text()))
    reader.start()
    write_text(pipe, "told")
    reader.join()
    assert (heard, pipe.is_fifo()) == (["told"], True)


@pytest.mark.slow
def test_reports_exports_plots_and_states_are_the_owners_alone(
    umask: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, ledger, page, plot = (tmp_path / name for name in ("people.csv", "l.db", "page.html", "plot.svg"))
    table.write_text("a,b\n" + "".join(f"{row},{row * row % 97}\n" for row in range(30)))
    ask = ["count", str(table), "--neighbours", "3", "--radius", "0.5", "--epsilon", "0.5", "--force"]
    assert main([*ask, "--ledger", str(ledger), "--report", str(page), "--plot", str(plot)]) == 0
    exported = tmp_path / "ledger.jsonl"
    assert main(["ledger", "export", "--ledger", str(ledger), "-o", str(exported)]) == 0
    curves = tmp_path / "curves.html"
    drawn = Tradeoff(amount="2", setting=(2.0, 1.0), alarms=(0.0, 1.0), found=(0.0, 1.0))
    monkeypatch.setattr(wf.Watch, "tradeoffs", lambda self, dimension: (drawn,))
    watch = wf.Watch(threshold=2.0, low=-5.0, high=5.0, loss=wf.Loss("1/2"))
    tradeoff.write(curves, watch, dimension=1)
    state = tmp_path / "beds.state"
    schema = wf.Schema.of(["t"])
    with (
        wf.Ledger.open(ledger) as book,
        wf.watching(watch, ledger=book, dataset="beds", schema=schema, checkpoint=state) as on,
    ):
        on.decide_many([[0.5]])
    for path in (ledger, page, plot, exported, curves, state):
        assert mode(path) == 0o600, path.name
