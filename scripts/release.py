"""Make a release in dist/: wheel and sdist, a bill of materials, a list of licences, and checksums.

The same commit gives the same bytes anywhere: times in the archives are that of the commit (SOURCE_DATE_EPOCH), and the
tools that build are pinned in constraints.txt.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any, Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT: Final = Path(__file__).parents[1]
UNKNOWN: Final = "not stated"


def main() -> None:
    """Build everything into dist/."""
    folder = ROOT / "dist"
    shutil.rmtree(folder, ignore_errors=True)
    build(folder, commit_time())
    (folder / "sbom.cdx.json").write_text(json.dumps(bill_of_materials(), indent=1) + "\n", encoding="utf-8")
    (folder / "licences.txt").write_text(licences(), encoding="utf-8")
    files = sorted(path for path in folder.iterdir() if path.is_file())
    lines = (f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)
    (folder / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")
    sys.stdout.write("".join(f"{path.name}\n" for path in sorted(folder.iterdir())))


def build(folder: Path, epoch: str, source: Path = ROOT) -> None:
    """Build wheel and sdist with what is installed."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch}
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=source, env=environment, check=True, capture_output=True)


def commit_time() -> str:
    """Return when the commit was made, in seconds since 1970."""
    stated = os.environ.get("SOURCE_DATE_EPOCH")
    if stated:
        return stated
    command = ["git", "log", "-1", "--format=%ct"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def components() -> list[Distribution]:
    """Return every package that `pip install wallflower[all]` brings, as it is installed here, by name."""
    found: dict[str, Distribution] = {}
    waiting = own_requirements()
    while waiting:
        requirement = waiting.pop()
        known = distribution(requirement.name)
        if _key(known) not in found or requirement.extras:
            found[_key(known)] = known
            waiting += [
                one for one in _requirements(known, requirement.extras) if _key(distribution(one.name)) not in found
            ]
    return [found[name] for name in sorted(found)]


def own_requirements() -> list[Requirement]:
    """Return what wallflower itself names in pyproject.toml, with the extra `all`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras, waiting, seen = project["optional-dependencies"], ["all"], set()
    found = [Requirement(text) for text in project["dependencies"]]
    while waiting:
        extra = waiting.pop()
        if extra not in seen:
            seen.add(extra)
            stated = [Requirement(text) for text in extras[extra]]
            waiting += [inner for one in stated if one.name == "wallflower" for inner in one.extras]
            found += [one for one in stated if one.name != "wallflower"]
    return found


def bill_of_materials() -> dict[str, Any]:
    """Return the bill of materials, as CycloneDX 1.6."""
    own = distribution("wallflower")
    parts = components()
    named = {_key(part): part for part in parts}
    stated = {_reference(part): _requirements(part, set()) for part in parts} | {_reference(own): own_requirements()}
    needs = [
        {"ref": reference, "dependsOn": sorted({_reference(named[canonicalize_name(one.name)]) for one in required})}
        for reference, required in stated.items()
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": _component(own) | {"type": "application"}},
        "components": [_component(part) for part in parts],
        "dependencies": needs,
    }


def licences() -> str:
    """Return a line for each package: name, version, licence."""
    return "".join(f"{part.name} {part.version}: {licence(part)}\n" for part in components())


def licence(part: Distribution) -> str:
    """Return the licence that a package states: its expression, its classifiers, or its text's first line."""
    stated = part.metadata.get("License-Expression")
    classified = [
        line.rpartition(" :: ")[2] for line in part.metadata.get_all("Classifier", []) if line.startswith("License ::")
    ]
    lines = (part.metadata.get("License") or "").strip().splitlines()
    return stated or "; ".join(classified) or (lines[0][:100] if lines else UNKNOWN)


def _component(part: Distribution) -> dict[str, Any]:
    entry = {"type": "library", "bom-ref": _reference(part), "name": part.name, "version": part.version}
    stated = part.metadata.get("License-Expression")
    shown = {"expression": stated} if stated else {"license": {"name": licence(part)}}
    return entry | {"purl": _reference(part), "licenses": [shown]}


def _reference(part: Distribution) -> str:
    return f"pkg:pypi/{_key(part)}@{part.version}"


def _key(part: Distribution) -> str:
    return canonicalize_name(part.name)


def _requirements(part: Distribution, extras: set[str]) -> list[Requirement]:
    """Return what a package needs here, with these extras of its own."""
    wanted = [Requirement(text) for text in part.requires or ()]
    return [
        one
        for one in wanted
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in ("", *extras))
    ]


if __name__ == "__main__":
    main()
