"""A release can be made again to the byte, and says what is in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from wallflower.machine.version import VERSION

ROOT = Path(__file__).parents[1]
EPOCH = "1700000000"


def script() -> Any:
    """scripts/release.py, which is no part of the package."""
    spec = spec_from_file_location("release", ROOT / "scripts" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RELEASE = script()


@pytest.mark.slow
def test_a_build_elsewhere_has_the_same_bytes(tmp_path: Path) -> None:
    """From a copy in a folder of another name, with files of another time and mode."""
    first, second, source = tmp_path / "first", tmp_path / "second", tmp_path / "else where"
    RELEASE.build(first, EPOCH)
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    for path in map(Path, filter(None, names)):
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, source / path)
        if os.access(ROOT / path, os.X_OK):
            (source / path).chmod(0o700)
    RELEASE.build(second, EPOCH, source)
    names = sorted(path.name for path in first.iterdir() if path.is_file() and not path.name.startswith("."))
    assert names == [f"wallflower-{VERSION}-py3-none-any.whl", f"wallflower-{VERSION}.tar.gz"]
    for name in names:
        assert (first / name).read_bytes() == (second / name).read_bytes(), name


def test_the_bill_of_materials_names_every_package_once() -> None:
    bill = json.loads(json.dumps(RELEASE.bill_of_materials()))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    references = [part["bom-ref"] for part in bill["components"]]
    assert len(set(references)) == len(references)
    assert {"numpy", "opendp", "fastapi", "mcp", "pyspark"} <= {part["name"] for part in bill["components"]}
    assert not {"pytest", "hypothesis", "ruff"} & {part["name"] for part in bill["components"]}
    known = {*references, bill["metadata"]["component"]["bom-ref"]}
    assert {entry["ref"] for entry in bill["dependencies"]} == known
    assert all(set(entry["dependsOn"]) <= known for entry in bill["dependencies"])


def test_every_package_states_a_licence() -> None:
    assert RELEASE.UNKNOWN not in RELEASE.licences()


def test_the_version_is_stated_in_one_place() -> None:
    stated = subprocess.run(
        ["git", "grep", "-lF", f'"{VERSION}"', "--", "*.py", "*.toml", "*.cff", ":!tests"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split()
    assert "src/wallflower/machine/version.py" in stated
    assert "pyproject.toml" not in stated


@pytest.mark.heavy
@pytest.mark.skipif(shutil.which("pyright") is None, reason="no pyright: `npm install --global pyright` installs it")
def test_pyright_finds_nothing_in_a_sample_project(tmp_path: Path) -> None:
    sample = tmp_path / "sample.py"
    sample.write_text(
        "import wallflower as wf\n\n"
        "people = wf.open('people.csv', schema='people.toml')\n"
        "answer = people.count(neighbours=5, radius=0.5, epsilon='0.5')\n"
        "number = answer.value\n"
        "batch = wf.plan_all(people, [wf.Count(neighbours=5, radius=0.5, loss=wf.Loss('0.5'))])\n"
        "print(number, batch.fits, people.budget().left.text)\n"
    )
    command = ["pyright", "--pythonpath", sys.executable, str(sample)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
