"""Write tests/surface.json: every public name, so that a test notices when one vanishes.

Names of `wallflower`, commands and options, routes and fields of the service, keys of what is stored as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from typer.main import get_command

import wallflower as wf
from wallflower.cli import build
from wallflower.ledger import Ledger
from wallflower.privacy import Loss
from wallflower.queries import COMPANIONS, QUERIES
from wallflower.query.parameter import list_parameters
from wallflower.service.app import application
from wallflower.service.settings import Settings
from wallflower.synthetic import mixture

ROOT: Final = Path(__file__).parents[1]
FILE: Final = ROOT / "tests" / "surface.json"
_METHODS: Final = ("get", "post", "put", "patch", "delete")


def surface(folder: Path) -> dict[str, list[str]]:
    """Return every public name, by where it is public."""
    return {
        "python": sorted(wf.__all__),
        "queries": sorted(_parameters()),
        "command line": sorted(_commands("wallflower", get_command(build(QUERIES)))),
        "http": sorted(_routes(folder)),
        "json": sorted(_keys(folder)),
    }


def missing(known: dict[str, list[str]], now: dict[str, list[str]]) -> list[str]:
    """Return the names that were public and are not any more."""
    return [f"{part}: {name}" for part, names in known.items() for name in names if name not in set(now.get(part, ()))]


def main() -> None:
    """Write the names of today."""
    with TemporaryDirectory() as folder:
        FILE.write_text(json.dumps(surface(Path(folder)), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.stdout.write(f"wrote {FILE.relative_to(ROOT)}\n")


def _parameters() -> list[str]:
    return [f"{asked.kind}.{one.name}" for asked in (*QUERIES, *COMPANIONS) for one in list_parameters(asked)]


def _commands(path: str, command: Any) -> list[str]:
    options = [f"{path} {word}" for one in command.params for word in one.opts if word.startswith("--")]
    inner = getattr(command, "commands", {})
    return [path, *options, *(word for name, one in inner.items() for word in _commands(f"{path} {name}", one))]


def _routes(folder: Path) -> list[str]:
    described = application(Settings(ledger=str(folder / "service.db"))).openapi()
    items = described["paths"].items()
    routes = [f"{method.upper()} {path}" for path, item in items for method in item if method in _METHODS]
    models = described["components"]["schemas"]
    return routes + [f"{name}.{field}" for name, model in models.items() for field in model.get("properties", {})]


def _keys(folder: Path) -> list[str]:
    with Ledger.open(folder / "ledger.db") as ledger:
        people = wf.open(wf.Points.from_array(mixture(500, 2, seed=1), name="people"), ledger=ledger, analyst="ana")
        release = people.count(neighbours=5, radius=0.5, loss=Loss("0.5"), force=True)
        stored = {
            "release": release.to_dict(),
            "plan": people.plan.count(neighbours=5, radius=0.5, epsilon="0.5").to_json(),
            "account": people.budget().to_json(),
            "entry": next(iter(ledger.export())),
        }
    return [key for name, table in stored.items() for key in _nested(name, table)]


def _nested(path: str, table: Any) -> list[str]:
    if not isinstance(table, dict) or path.endswith(
        (".parameters", ".messages", ".extras", ".members", ".spenders", ".figures")
    ):
        return []
    return [word for key, value in table.items() for word in (f"{path}.{key}", *_nested(f"{path}.{key}", value))]


if __name__ == "__main__":
    main()
