"""docs/upgrading.md, followed: a service is upgraded beside another, checked, and brought back."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from served import Caller, run_service, settings

from postgres import Server, _find
from wallflower.ledger.store import VERSION, open_engine

PAGE = (Path(__file__).parents[2] / "docs" / "upgrading.md").read_text(encoding="utf-8")
ASK = {"neighbours": 3, "radius": 0.5, "epsilon": "0.01", "force": True}


def run_block(name: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a block of the page, with the programs of the server and ours."""
    (code,) = re.findall(rf"^```sh {name}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    path = f"{_find()}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = ["bash", "-o", "pipefail", "-ec", code]
    environment = os.environ | variables | {"PATH": path}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_page_can_be_followed_there_and_back(postgres: Server, tmp_path: Path) -> None:
    place = postgres.fresh()
    stated = settings(tmp_path, ledger=place)
    with run_service(stated) as old:
        ana = old.token("ana")
        assert ana.post("/v1/datasets/ward/ask/count", ASK, idempotency_key="a").status == 200
        head = note_head(place, tmp_path)
        assert run_block("copy", tmp_path, WALLFLOWER_LEDGER=place).returncode == 0
        with run_service(stated) as new:  # the first service, upgraded, while the other runs on
            assert new[None].get("/readyz").status == 200
            checked = run_block("check", tmp_path, WALLFLOWER_LEDGER=place, HEAD=head)
            assert checked.returncode == 0, checked.stderr
            again = Caller(new.url, ana.token).post("/v1/datasets/ward/ask/count", ASK, idempotency_key="a")
            assert again.json["replayed"]
            assert ana.post("/v1/datasets/ward/ask/count", ASK, idempotency_key="b").status == 200
    later = note_head(place, tmp_path)
    migrate(place)
    assert run_block("check", tmp_path, WALLFLOWER_LEDGER=place, HEAD=later).returncode != 0, (
        "this version is the old one"
    )
    back = run_block("rollback", tmp_path, WALLFLOWER_LEDGER=place)
    assert back.returncode == 0, back.stderr
    assert run_block("check", tmp_path, WALLFLOWER_LEDGER=place, HEAD=head).returncode == 0
    assert run_block("check", tmp_path, WALLFLOWER_LEDGER=place, HEAD=later).returncode == 4
    with run_service(stated) as restored:
        again = Caller(restored.url, ana.token).post("/v1/datasets/ward/ask/count", ASK, idempotency_key="a")
        assert again.json["replayed"]


def test_a_process_of_an_older_version_stops_writing(place: str, tmp_path: Path) -> None:
    with run_service(settings(tmp_path, ledger=place)) as running:
        ana = running.token("ana")
        first = ana.post("/v1/datasets/ward/ask/count", ASK, idempotency_key="a")
        assert first.status == 200
        migrate(place)
        refused = ana.post("/v1/datasets/ward/ask/count", ASK, idempotency_key="b")
        assert (refused.status, refused.problem) == (503, "ledger")
        assert running[None].get("/readyz").status == 503
        assert running[None].get("/healthz").status == 200
        assert ana.get(f"/v1/releases/{first.json['ledger_id']}").status == 200, "reading goes on"
        assert len(running.app.state.core.entries(event="charge")) == 1


def note_head(place: str, folder: Path) -> str:
    noted = run_block("head", folder, WALLFLOWER_LEDGER=place)
    assert noted.returncode == 0, noted.stderr
    head = re.search(r"[0-9a-f]{64}", (folder / "head.txt").read_text())
    assert head is not None
    return head[0]


def migrate(place: str) -> None:
    """As a newer version would leave the tables."""
    engine, _ = open_engine(place)
    with engine.begin() as db:
        db.exec_driver_sql("CREATE TABLE of_a_newer_version (id TEXT)")
        db.exec_driver_sql(f"UPDATE ledger_version SET version = {VERSION + 1}")
