"""The wheel and the sdist hold all that is needed, and the wheel works where the repository is not."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import sysconfig
import zipfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "wallflower"
CHECK = """
import sys
for path in sys.stdin.read().split("\\0"):
    with open(path, "rb") as file:
        compile(file.read(), path, "exec", dont_inherit=True)
print(sys.version_info[:2])
"""


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel and an sdist, made with what is installed: nothing is fetched."""
    folder = tmp_path_factory.mktemp("dist")
    run([sys.executable, "-m", "hatchling", "build", "-d", str(folder)], ROOT)
    return folder


def run(words: list[str], folder: Path, **environment: str) -> str:
    ours = ("PIP_", "PYTHON", "WALLFLOWER_")
    known = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    done = subprocess.run(words, cwd=folder, env={**known, **environment}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_package(dist: Path) -> None:
    held = set(zipfile.ZipFile(next(dist.glob("*.whl"))).namelist())
    wanted = {path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    lost = {str(path.relative_to(ROOT / "src")) for path in wanted} - held
    assert not lost
    for part in (
        "service/pages/templates/",
        "service/pages/static/",
        "queries/count/proof.md",
    ):
        assert any(name.startswith(f"wallflower/{part}") for name in held), f"{part} is not in the wheel"


@pytest.mark.slow
def test_the_sdist_makes_the_same_wheel(dist: Path, tmp_path: Path) -> None:
    run(["tar", "-xzf", str(next(dist.glob("*.tar.gz")))], tmp_path)
    inside = next(tmp_path.iterdir())
    run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)], inside)
    again, first = next(tmp_path.glob("*.whl")), next(dist.glob("*.whl"))
    assert zipfile.ZipFile(again).namelist() == zipfile.ZipFile(first).namelist()


@pytest.mark.slow
def test_the_wheel_works_without_the_repository(dist: Path, tmp_path: Path) -> None:
    """In an environment of its own, which borrows what others wrote from the one that runs the tests."""
    fresh, desk = tmp_path / "fresh", tmp_path / "desk"
    desk.mkdir()
    run([sys.executable, "-m", "venv", "--without-pip", str(fresh)], tmp_path)
    python = fresh / "bin" / "python"
    home = Path(run([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], desk).strip())
    (home / "borrowed.pth").write_text(
        sysconfig.get_path("purelib")
    )  # its own .pth files are not read, so ours is not there
    wheel = str(next(dist.glob("*.whl")))
    install = ["install", "--quiet", "--no-deps", "--no-index", "--no-compile", wheel]
    run([sys.executable, "-m", "pip", "--python", str(python), *install], desk)
    where = run([str(python), "-c", "import wallflower; print(wallflower.__file__)"], desk)
    assert where.startswith(str(fresh))
    said = run([str(fresh / "bin" / "wallflower"), "demo"], desk, HOME=str(tmp_path), XDG_DATA_HOME=str(tmp_path))
    assert "report" in said
    assert (desk / "wallflower-demo").is_dir()


# Other Pythons


def script() -> Any:
    """scripts/pythons.py, which is no part of the package."""
    spec = spec_from_file_location("pythons", ROOT / "scripts" / "pythons.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_every_module_compiles_with_every_promised_python_at_hand() -> None:
    others = {version: program for version, program in script().interpreters() if not sys.version.startswith(version)}
    if not others:
        pytest.skip("no other Python from 3.11 to 3.13 is at hand")
    modules = "\0".join(str(path) for path in PACKAGE.rglob("*.py"))
    for version, program in others.items():
        done = subprocess.run(
            [program, "-W", "error", "-c", CHECK], input=modules, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert ast.literal_eval(done.stdout) == tuple(map(int, version.split(".")))


def test_what_is_promised_is_stated() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    for version in script().PROMISED:
        assert f'"Programming Language :: Python :: {version}"' in project
        assert version in page


def test_every_extra_is_documented() -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    extras = project.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    for line in extras.strip().splitlines():
        name = line.partition(" = ")[0]
        assert f"wallflower[{name}]" in page, f"docs/install.md does not explain the extra {name}"
