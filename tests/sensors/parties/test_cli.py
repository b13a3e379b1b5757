"""`wallflower sensors`: what it says, what it refuses, and the whole demo with everything ended afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from stage import CALL, parameters

from browser import needs_chromium
from wallflower import cli
from wallflower.cli.sensors import _ProgressTable, _show_progress
from wallflower.sensors.parameters import Parameters
from wallflower.sensors.parties.keys import Identity, sign_parameters
from wallflower.sensors.parties.owner_page import MAX_SHOWN_IDS, render_page
from wallflower.sensors.protocol.findings import NO_EXCHANGE

SET = {
    "stream": "hall",
    "columns": [{"name": "x", "centre": "0", "scale": "3", "range": "12", "low": "-600", "high": "600"}],
    "centre": ["0"],
    "grid": "0.01",
    "epsilon": "0.2",
    "starts": 0,
    "length": "60",
    "grace": "5",
    "patience": "5",
    "settings": {"mode": "exact", "unit": "0.1", "thresholds": ["20"]},
}


@pytest.fixture
def said(capsys: Any, monkeypatch: Any, tmp_path: Path) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)

    def run(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = cli.main([str(one) for one in arguments])
        out, err = capsys.readouterr()
        return code, out, " ".join(err.split())

    return run


@pytest.mark.parametrize(
    "name", ["keys", "revoke", "store-key", "sign", "device", "analyst", "correction", "owner", "export", "demo"]
)
def test_every_command_has_help_with_an_example(said: Any, name: str) -> None:
    code, out, _ = said("sensors", name, "--help")
    assert code == 0
    assert f"wallflower sensors {name}" in " ".join(out.replace("│", " ").split())


def test_keys_and_a_signed_set(said: Any, tmp_path: Path) -> None:
    code, out, _ = said("sensors", "keys", "k", "--sensors", 2, "--json")
    assert code == 0
    assert len(json.loads(out)["made"]) == 5
    Path("set.json").write_text(json.dumps(SET))
    code, out, err = said("sensors", "sign", "set.json", "--keys", "k", "-o", "hall.json")
    assert (code, out.strip()) == (0, "hall.json")
    assert "Signed version 1 of hall" in err
    stated = Parameters.from_json(json.loads(Path("hall.json").read_text())["parameters"])
    assert stated.analyst == Identity.read(tmp_path / "k" / "analyst").public


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ({"epsilon": 0.2}, 2, "must be exact"),
        ({"epsilon": "0"}, 2, "epsilon"),
        ({"speed": "1"}, 2, "speed: unknown name"),
        ({"analyst": "00"}, 2, "must be a key"),
        ({"owner": "0" * 64}, 5, "only the stream owner"),
    ],
)
def test_a_set_that_is_wrong_is_not_signed(
    said: Any, keys: Path, change: dict[str, Any], code: int, words: str
) -> None:
    Path("set.json").write_text(json.dumps(SET | change))
    found, _, err = said("sensors", "sign", "set.json", "--keys", keys, "-o", "hall.json")
    assert found == code
    assert words in err
    assert not Path("hall.json").exists()


def test_refusals_say_what_to_do(said: Any, keys: Path) -> None:
    made = sign_parameters(parameters(keys), Identity.read(keys / "owner"))
    Path("hall.json").write_bytes(made.body)
    Path("r.csv").write_text("x,y\n1,2\n")
    there = ("--analyst", "http://127.0.0.1:9", "--correction", "http://127.0.0.1:9")
    stated = ("--parameters", "hall.json")
    device = ("sensors", "device", "r.csv", "--keys", keys / "sensor-1", "--store", "s.db")
    other = ("sensors", "device", "r.csv", "--keys", keys / "owner", "--store", "t.db", *stated)
    owner = ("sensors", "owner", "--store", "o.db", *stated, "--keys")
    for arguments, code, words in (
        (device, 2, "Add --stream NAME and --analyst URL"),
        ((*device, "--parameters", "no.json"), 4, "No such file"),
        ((*device, *stated), 2, "Add --analyst URL"),
        ((*device, *stated, "--window", 0, *there), 3, "ε = 0 is left"),
        ((*device, *stated, *there, "--budget", "5"), 2, "window"),
        ((*device, *stated, "--window", 0, "--analyst", "nowhere", *there[2:]), 2, "https://"),
        ((*other, "--window", 0, *there), 4, "not the keys of a sensor"),
        ((*owner, keys / "analyst"), 5, "keys"),
        ((*owner, "none"), 4, "sensors keys"),
        ((*owner, keys / "owner", "--host", "0.0.0.0", "--no-tls"), 2, "only loopback"),
    ):
        found, _, err = said(*arguments)
        assert (found, words in err) == (code, True), (arguments, found, err)


def result(window: int, **changes: Any) -> dict[str, Any]:
    return {
        "window": window,
        "judged": 60,
        "threshold": "20",
        "outliers": [{"id": f"{number:016x}", "sensor": 1, "level": 1} for number in range(6)],
        "unjudged": [],
        "sensors": {"1": {"readings": 60, "spent": "12"}},
    } | changes


def test_the_page_needs_nothing_but_itself_and_says_all(keys: Path) -> None:
    lost = [{"id": "f" * 16, "sensor": 2, "reason": NO_EXCHANGE}]
    many = [{"id": f"{number:016x}", "sensor": 1, "layer": "<b>"} for number in range(MAX_SHOWN_IDS + 5)]
    found = render_page(
        parameters(keys),
        [result(0), result(1, unjudged=lost, sensors={"1": {"readings": 60, "spent": "24"}}), result(2, outliers=many)],
        [(0, "purged"), (1, "purged"), (2, "purged"), (3, "collecting")],
    )
    assert "<script" not in found
    assert "http" not in found
    assert "src=" not in found
    assert "<b>" not in found
    for words in ("Window 1", NO_EXCHANGE, "ε = 24", "ε = 0.2 between usual readings", f"all {MAX_SHOWN_IDS + 5}"):
        assert words in found
    assert "<strong>1</strong><span>windows in progress</span>" in found
    assert "$" not in found


def test_progress_is_lines_without_a_terminal_and_a_table_on_one(capsys: Any) -> None:
    with _show_progress() as told:
        told("analyst", 3, "sealed")
        told("owner", None, "listens")
    assert capsys.readouterr().err.splitlines() == ["analyst: window 3: sealed", "owner: listens"]
    view = _ProgressTable()
    view.update("analyst", 0, "sealed")
    view.update("owner", 0, "told")
    view.update("owner", None, "listens")
    assert (view.render().row_count, len(view.render().columns)) == (1, 3)


@pytest.mark.slow
def test_the_demo_shows_it_all_and_leaves_nothing_running(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-c",
        CALL,
        "sensors",
        "demo",
        "--out",
        str(tmp_path / "d"),
        "--json",
        "--readings",
        "200",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    assert (said["found"], said["true"], said["outliers"], said["unjudged"]) == (40, 40, 40, 0)
    assert Path(said["page"]).exists()
    assert all(Path(path).exists() for path in said["results"])
    assert "analyst: window 0: sealed" in done.stderr
    assert not running(tmp_path)
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 4
    assert "run there before" in again.stderr


@pytest.mark.slow
def test_ctrl_c_ends_every_party(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CALL, "sensors", "demo", "--out", str(tmp_path / "d"), "--readings", "50000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("analyst: listens"):
            break
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    assert "every party was stopped" in err
    assert "Traceback" not in err
    assert not running(tmp_path)


def running(folder: Path) -> list[str]:
    """Command lines of processes that name this folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if str(folder) in line and "pytest" not in line.split("\0")[0]:
                found.append(line)
    return found


@pytest.mark.slow
@needs_chromium
def test_the_page_opens_in_a_browser(tmp_path: Path, keys: Path) -> None:
    path = tmp_path / "index.html"
    path.write_text(render_page(parameters(keys), [result(0)], [(0, "purged")]), encoding="utf-8")
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", path.as_uri()]
    drawn = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "<h2>Window 0</h2>" in drawn
    assert "0000000000000005" in drawn


@pytest.mark.heavy
def test_the_bench_measures_what_arrives() -> None:
    script = Path(__file__).parents[3] / "benchmarks" / "sensors.py"
    command = [sys.executable, str(script), "wire_grid", "--readings=2000", "--seconds=0"]
    found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert found["runs"] >= 3
    assert found["seconds"] > 0
