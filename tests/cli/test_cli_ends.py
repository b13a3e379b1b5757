"""How a command ends: declined, interrupted at a prompt, or with an output that cannot carry the answer."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import pytest

from wallflower.cli import main
from wallflower.ledger import Ledger

CALL = "import sys; from wallflower.cli import main; sys.exit(main())"
COUNT = ("count", "ward.csv", "--neighbours", "3", "--radius", "9", "--epsilon", "0.5", "--force")
SECONDS_BETWEEN_KEYS = 2.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ward.csv").write_text("a,b\n" + "".join(f"{row},{row * row}\n" for row in range(60)))
    return tmp_path


def environment(folder: Path, **more: str) -> dict[str, str]:
    own = {"WALLFLOWER_LEDGER": str(folder / "ledger.db"), "WALLFLOWER_ANALYST": "ana", "HOME": str(folder)}
    return os.environ | own | more


def run(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", CALL, *arguments]
    return subprocess.run(command, cwd=folder, env=environment(folder, **more), capture_output=True, check=False)


def answer_prompt(folder: Path, keys: bytes, prompt: bytes, *arguments: str) -> tuple[int, str]:
    """Run a command in a terminal of its own, press keys once it asks, and return exit code and all it printed.

    Python loses a Ctrl-C that arrives between the prompt and its read, as it does for a person at a keyboard. The keys
    are therefore pressed again while the command neither prints nor ends.
    """
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", CALL, *arguments],
        cwd=folder,
        env=environment(folder, TERM="dumb"),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that Ctrl-C is a signal
    )
    os.close(slave)
    seen = b""
    try:
        while True:
            is_readable, _, _ = select.select([master], [], [], SECONDS_BETWEEN_KEYS if prompt in seen else None)
            if is_readable:
                chunk = os.read(master, 4096)
                if not chunk:
                    break
                is_asked = prompt in seen
                seen += chunk
                if is_asked or prompt not in seen:
                    continue
            os.write(master, keys)
    except OSError:  # Linux reports the end of a terminal so
        pass
    finally:
        os.close(master)
    return process.wait(), seen.decode()


GRANT = ("budget", "grant", "zzz", "--epsilon", "1", "--reason", "pilot")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keys", "prompt", "arguments", "code"),
    [
        (b"n\r", b"zzz", GRANT, 1),
        (b"\x03", b"zzz", GRANT, 130),
        (b"\x04", b"zzz", GRANT, 130),
        (b"\x03", b"bounds LOW,HIGH", ("init", "ward.csv"), 130),
        (b"\x04", b"Column of the context", ("data", "domain", "-o", "domain.toml"), 130),
    ],
)
def test_no_and_ctrl_c_and_ctrl_d_at_a_prompt_end_normally(
    folder: Path, keys: bytes, prompt: bytes, arguments: tuple[str, ...], code: int
) -> None:
    ended, seen = answer_prompt(folder, keys, prompt, *arguments)
    assert "Nothing was changed." in seen
    assert "internal error" not in seen
    assert ended == code
    assert not list(folder.glob("*.toml"))
    with Ledger.open(str(folder / "ledger.db")) as ledger:
        assert ledger.history() == []


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "ascii"])
def test_an_answer_reaches_a_terminal_that_lacks_its_letters(folder: Path, encoding: str) -> None:
    done = run(folder, *COUNT, "--json", PYTHONIOENCODING=encoding)
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert "ε = 0.5" in json.loads(done.stdout)["guarantee"]["text"]
    read = run(folder, "release", "show", "1", PYTHONIOENCODING=encoding)
    assert read.returncode == 0, read.stderr
    assert rb"\u03b5 = 0.5" in read.stdout


@pytest.mark.slow
def test_a_closed_output_is_refused_before_the_charge(folder: Path) -> None:
    script = 'exec "$0" -c "$1" count ward.csv --neighbours 3 --radius 9 --epsilon 0.5 --force >&-'
    done = subprocess.run(
        ["sh", "-c", script, sys.executable, CALL],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, b"Nothing was charged" in done.stderr) == (4, True)
    with Ledger.open(str(folder / "ledger.db")) as ledger:
        assert ledger.history(event="charge") == []


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_names_the_answer_that_was_paid_for(folder: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-c", CALL, *COUNT, "--json"]
        done = subprocess.run(
            command, cwd=folder, env=environment(folder), stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert b"wallflower release show 1" in done.stderr
    assert done.returncode == 4
    shown = run(folder, "release", "show", "1", "--json")
    assert json.loads(shown.stdout)["ledger_id"] == 1


def test_release_show_prints_an_earlier_answer_again(folder: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setenv("WALLFLOWER_LEDGER", str(folder / "ledger.db"))
    assert main([*COUNT, "--json"]) == 0
    paid = json.loads(capsys.readouterr().out)
    for entry in (paid["ledger_id"], paid["ledger_id"] + 1):  # the charge, or the release that follows it
        assert main(["release", "show", str(entry), "--json", "--csv", "answer.csv"]) == 0
        assert json.loads(capsys.readouterr().out) == paid
    assert (folder / "answer.csv").exists()
    with Ledger.open(str(folder / "ledger.db")) as ledger:
        assert len(ledger.history(event="charge")) == 1
    assert main(["release", "show", "99"]) == 2
    assert "no answer under 99" in capsys.readouterr().err


def test_init_names_a_data_set_so_that_it_can_be_asked(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setenv("WALLFLOWER_LEDGER", str(tmp_path / "ledger.db"))
    rows = "a,b\n" + "".join(f"{row},{row * row}\n" for row in range(60))
    name = "Covid Labor 2020 – März"
    (tmp_path / f"{name}.csv").write_text(rows)
    assert main(["init", f"{name}.csv", "--bounds", "a=0,60", "--bounds", "b=0,4000"]) == 0
    assert 'name = "covid-labor-2020-maerz"' in (tmp_path / f"{name}.toml").read_text()
    assert main([*COUNT[:1], f"{name}.csv", "--schema", f"{name}.toml", *COUNT[2:]]) == 0
    (tmp_path / "患者.csv").write_text(rows)
    capsys.readouterr()
    assert main(["init", "患者.csv"]) == 2
    assert "--dataset" in capsys.readouterr().err
    assert not (tmp_path / "患者.toml").exists()
    assert main(["init", "患者.csv", "--dataset", "patients"]) == 0
