"""Draw the pictures of docs/accuracy.md: answers of real runs on made-up and public tables, small enough for a page.

Run `python scripts/gallery.py`; it takes about a minute. Answers are noisy, so every run draws other pictures of
the same kind; nothing compares them.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
from PIL import Image

import wallflower as wf
from wallflower.queries.count.exact import count_outliers
from wallflower.synthetic import mixture, pick_labels

FOLDER: Final = Path(__file__).parents[1] / "docs" / "images"
WIDTH: Final = 1000
PAPER: Final = {
    "figure1.png": "paper-bounds.png",
    "figure3.png": "paper-noise.png",
    "figure5.png": "paper-subspaces.png",
}
DRAWN: Final = ("counts.png", "profile.png", "groups.png", "detector-map.png", *PAPER.values())
LOSSES: Final = ("0.1", "0.3", "1", "3")


def main() -> None:
    """Draw every picture."""
    with tempfile.TemporaryDirectory() as folder:
        for name, path in made(Path(folder)):
            shrink(path, FOLDER / name)
            sys.stdout.write(f"{FOLDER / name}\n")


def made(folder: Path) -> Iterator[tuple[str, Path]]:
    """Names, and pictures as large as they come."""
    for name, figure in {"counts.png": counts(folder), **releases(folder)}.items():
        figure.savefig(folder / name, dpi=160)
        plt.close(figure)
        yield name, folder / name
    program = "import sys; from wallflower.cli import main; sys.exit(main())"
    paper = ["reproduce", "okada2015", "--quick", "--out", str(folder)]
    subprocess.run([sys.executable, "-c", program, *paper], check=True, stdout=subprocess.DEVNULL)
    for drawn, name in PAPER.items():
        yield name, folder / drawn


def counts(folder: Path) -> Any:
    """Thirty releases of one count at each loss, beside the truth."""
    table = mixture(5000, 3, seed=4, share=0.02)
    true = count_outliers(table, 0.35, 5, normalise=True)
    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    for row, epsilon in enumerate(LOSSES):
        released = [_open(table, folder, f"counts-{row}-{time}").count(**_asked(epsilon)).value for time in range(30)]
        axes.plot(released, np.full(30, row) + np.linspace(-0.22, 0.22, 30), "o", alpha=0.6, color="#0a5fa8")
    axes.axvline(true, color="#b23a08", label=f"without privacy: {true}")
    axes.set_yticks(range(len(LOSSES)), [f"ε = {epsilon}" for epsilon in LOSSES])
    axes.set_xlabel("outliers among 5,000 records, as released, 30 times each")
    axes.legend()
    return figure


def releases(folder: Path) -> dict[str, Any]:
    """Answers as they draw themselves."""
    table = mixture(20_000, 2, seed=4, share=0.03)
    people = _open(table, folder, "people")
    labels = {"ward": ["surgery", "heart", "children", "maternity"], "age": ["young", "middle", "old"]}
    cells: dict[str, Any] = {"pulse": table[:, 0], "weight": table[:, 1]}
    cells |= {name: pick_labels(20_000, known, seed=at) for at, (name, known) in enumerate(labels.items())}
    schema = wf.Schema.of(["pulse", "weight", *labels], categories=labels)
    wards = wf.open(pa.table(cells), schema=schema, name="wards", ledger=str(folder / "wards.db"))
    found = people.detector(epsilon="0.5", contamination="2%")
    return {
        "profile.png": people.profile(neighbours=5, epsilon="0.5").plot(),
        "groups.png": wards.count(neighbours=5, radius=0.25, by=("ward", "age"), epsilon="1").plot(),
        "detector-map.png": found.plot(columns=("x0", "x1"), between=((-6, 6), (-6, 6))),
    }


def shrink(path: Path, goal: Path) -> None:
    """Keep a picture small: so many pixels wide, and few colours."""
    with Image.open(path) as picture:
        height = round(picture.height * WIDTH / picture.width)
        small = picture.convert("RGB").resize((WIDTH, height), Image.Resampling.LANCZOS)
        small.quantize(64).save(goal, optimize=True)


def _open(table: Any, folder: Path, name: str) -> Any:
    columns = [f"x{place}" for place in range(table.shape[1])]
    points = wf.Points.from_array(table, columns=columns, name=name)
    book = wf.Ledger.open(folder / f"{name}.db")
    book.grant(name, wf.Loss("5"), by="gallery", reason="pictures of made-up records")
    return wf.open(points, ledger=book)


def _asked(epsilon: str) -> dict[str, Any]:
    return {"neighbours": 5, "radius": 0.35, "epsilon": epsilon, "force": True}


if __name__ == "__main__":
    main()
