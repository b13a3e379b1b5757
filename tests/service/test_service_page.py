"""What docs/service.md and deploy/ show: their examples run, their files can be read, a backup can be restored."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from served import Caller, run_service, settings

from above import Above
from postgres import Server, _find
from wallflower.ledger import Ledger
from wallflower.privacy import Loss
from wallflower.service.core.problems import KINDS
from wallflower.service.demo import trial
from wallflower.service.settings import Settings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "service.md").read_text(encoding="utf-8")
REFERENCE = (ROOT / "docs" / "reference" / "service.md").read_text(encoding="utf-8")
DEPLOY = ROOT / "deploy"
ASK = {"neighbours": 3, "radius": 0.5, "epsilon": "0.25", "force": True}


def blocks(language: str, page: str = PAGE) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def test_the_examples_for_a_running_service_run(monkeypatch: Any, tmp_path: Path) -> None:
    with trial(Settings(port=0, quantum_seconds=0.05)) as found, run_service(found.settings) as running:
        monkeypatch.setenv("WALLFLOWER_TOKEN", found.analyst)
        names: dict[str, Any] = {}
        for code in [*blocks("py"), *blocks("py", REFERENCE)]:
            placed = code.replace("http://127.0.0.1:8080", running.url)
            exec(compile(placed, "service.md", "exec", dont_inherit=True), names)  # noqa: S102 - the page is ours
        assert shutil.which("curl"), "curl is not here"
        for code in blocks("sh served"):
            script = f"set -e\nURL={running.url}\n{code}"
            subprocess.run(["bash", "-c", script], check=True, capture_output=True)
        asked = running.app.state.core.ledger.history("tumours", event="charge")
        keys = [entry.idempotency_key for entry in asked if entry.idempotency_key]
        assert [key for key in keys if "watch" not in key] == ["analyst/monday", "analyst/tuesday"]


def test_the_settings_on_the_page_can_be_read(tmp_path: Path) -> None:
    (stated,) = blocks("toml")
    for name in ("people", "ward"):
        (tmp_path / f"{name}.toml").write_text("[columns.a]\nlow = 0\nhigh = 1\n")
    (tmp_path / "service.toml").write_text(stated)
    assert [dataset.name for dataset in Settings.read(tmp_path / "service.toml").datasets] == ["people", "ward"]
    table = re.findall(r"^\| (`[^|]*) \| [^|]* \|", PAGE, re.MULTILINE)
    for name in {name for row in table for name in re.findall(r"`(\w+)`", row)}:
        assert name in Settings.__dataclass_fields__, name


def test_every_problem_and_every_route_is_on_the_page(tmp_path: Path) -> None:
    for kind in KINDS:
        assert f"`{kind}`" in PAGE, kind
    with run_service(settings(tmp_path)) as running:
        for path in running.app.openapi()["paths"]:
            plain = re.sub(r"/(plan|ask)/\w+$", r"/\1/KIND", path).replace("{dataset}", "NAME").replace("{number}", "N")
            shown = re.sub(r"\{\w+\}", "ID", plain)
            assert f"{shown}`" in PAGE or f"...{shown.removeprefix('/v1/datasets/NAME')}`" in PAGE, shown


# deploy/


def test_the_settings_of_deploy_start_a_service(tmp_path: Path) -> None:
    (tmp_path / "metrics.token").write_text("0123456789abcdef" * 4)
    places = {name: str(tmp_path / name) for name in ("ledger", "watches")}
    stated = Settings.read(DEPLOY / "service.toml").override(
        port=0, workers=1, metrics_token_file=str(tmp_path / "metrics.token"), **places
    )
    with run_service(stated) as running:
        host = stated.office.address.removeprefix("https://")
        answer = running.token("ana").get("/v1/datasets", host=host)
        assert [dataset["name"] for dataset in answer.json["datasets"]] == ["beds", "ward"]


def test_the_compose_file_is_sound() -> None:
    found = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    service, ledger = found["services"]["service"], found["services"]["ledger"]
    assert service["depends_on"]["ledger"]["condition"] == "service_healthy"
    assert "healthcheck" in ledger
    assert service["ports"] == ["127.0.0.1:8080:8080"]
    named = {mount.partition(":")[0] for one in (service, ledger) for mount in one["volumes"] if mount[0] != "."}
    assert named == set(found["volumes"])
    for mount in service["volumes"]:
        if mount.startswith(".") and "metrics.token" not in mount:  # which the steward makes
            assert (DEPLOY / mount.partition(":")[0]).exists()
    assert "PASSWORD:-" not in (DEPLOY / "compose.yaml").read_text(encoding="utf-8")


INSTRUCTIONS = {
    "ARG",
    "FROM",
    "WORKDIR",
    "COPY",
    "RUN",
    "ENV",
    "USER",
    "VOLUME",
    "EXPOSE",
    "HEALTHCHECK",
    "ENTRYPOINT",
    "CMD",
}


def test_the_dockerfile_is_slim_and_without_root() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line.strip() and not line.startswith("#")]
    assert {word for word, _ in lines} <= INSTRUCTIONS
    assert ["ARG", "PYTHON_IMAGE"] in lines, "the base image has no default, so it is named by its digest"
    assert all(re.fullmatch(r"\$\{PYTHON_IMAGE\}( AS \w+)?", rest) for word, rest in lines if word == "FROM")
    last = [(word, rest) for word, rest in lines if word in ("USER", "ENTRYPOINT", "CMD")]
    assert last[0] == ("USER", "10001")
    assert [tomllib.loads(f"x = {rest}")["x"][0] for _, rest in last[1:]] == ["wallflower", "serve"]
    for word, rest in lines:
        if word == "COPY" and "--from" not in rest:
            assert all((ROOT / source).exists() for source in rest.split()[:-1])


@pytest.mark.slow
def test_the_kernels_of_the_image_are_compiled(tmp_path: Path) -> None:
    cache = tmp_path / "numba"
    variables = {"NUMBA_CACHE_DIR": str(cache), "XDG_DATA_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, DEPLOY / "compile_kernels.py"],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(list(cache.rglob("*.nbi"))) > 10, done.stdout


def test_the_unit_is_sound() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(DEPLOY / "wallflower.service", encoding="utf-8")
    assert unit.sections() == ["Unit", "Service", "Install"]
    assert unit["Service"]["User"] == "wallflower"
    assert "wallflower serve --config" in unit["Service"]["ExecStart"]


# Backups


def check_copy(base: Settings, place: str, text: str, asked: dict[str, Any], head: str) -> None:
    """A service on the copy knows the tokens, the chain, the keys and the data sets."""
    with run_service(base.override(ledger=place)) as running:
        ana = Caller(running.url, text)
        assert running.app.state.core.ledger.verify(head=head).head == head
        again = ana.post("/v1/datasets/ward/ask/count", ASK, idempotency_key="k").json
        assert (again["replayed"], again["ledger_id"]) == (True, asked["ledger_id"])
        assert ana.get("/v1/datasets/new").status == 200


def fill_service(base: Settings) -> tuple[str, dict[str, Any], str]:
    with run_service(base) as running:
        ana = running.token("ana")
        asked = ana.post("/v1/datasets/ward/ask/count", ASK, idempotency_key="k").json
        new = {"name": "new", "schema": {"columns": ["x"]}}
        sue = running.token("sue", "steward")
        assert sue.post("/v1/datasets", new).status == 201
        assert sue.post("/v1/datasets/new/access", {"analyst": "*"}).status == 201
        if base.ledger and "://" not in base.ledger:
            back_up(base.ledger, f"{base.ledger}.copy")
        return str(ana.token), asked, running.app.state.core.ledger.verify().head


def back_up(source: str, copy: str) -> None:
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(copy)) as other:
        one.backup(other)


def test_a_copy_made_while_it_runs_can_be_restored(tmp_path: Path) -> None:
    base = settings(tmp_path)
    text, asked, head = fill_service(base)
    check_copy(base, f"{base.ledger}.copy", text, asked, head)


def shell(name: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a block of the page, with the programs of the server and ours."""
    programs = _find()
    assert programs is not None
    (code,) = blocks(f"sh {name}")
    path = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | variables | {"PATH": path}
    command = ["bash", "-c", f"set -e\n{code}"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_dump_can_be_restored_and_an_old_one_is_noticed(postgres: Server, tmp_path: Path) -> None:
    place = postgres.fresh()
    base = settings(tmp_path, ledger=place)
    text, asked, head = fill_service(base)
    assert shell("dump", tmp_path, WALLFLOWER_LEDGER=place).returncode == 0
    with Ledger.open(place) as ledger:
        ledger.charge("ward", Above(bar=1.0, loss=Loss("1/8")), analyst="ana")
        later, left = ledger.verify().head, ledger.remaining("ward")
    for target in (place, postgres.fresh()):  # over what is there, and into a database that is empty
        done = shell("restore", tmp_path, WALLFLOWER_LEDGER=target)
        assert done.returncode == 0, done.stderr
        assert shell("verify", tmp_path, WALLFLOWER_LEDGER=target, HEAD=head).returncode == 0
        noticed = shell("verify", tmp_path, WALLFLOWER_LEDGER=target, HEAD=later)
        assert noticed.returncode == 4
        assert "none with the head you noted" in " ".join((noticed.stdout + noticed.stderr).split())
    with Ledger.open(place) as ledger:
        assert left <= ledger.remaining("ward") != left
    check_copy(base, place, text, asked, head)
