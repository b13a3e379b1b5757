"""The tables the papers looked at, with the question asked of each.

Synthetic 1 and 2 are made here and WDBC comes with scikit-learn. The others are read from the folder named by
`$WALLFLOWER_DATA`; nothing is copied. Adult and Ionosphere are scaled by their own mean and variance, as [Oka15, 6.1]
prints it: these tables are public, and a release must take public constants instead, as WDBC does here. Registers, with
people in categories, are in `registers.py`.
"""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from wallflower.demo import MALIGNANT, REFERENCE
from wallflower.errors import SourceError
from wallflower.machine.heavy import sklearn_datasets as _sklearn
from wallflower.neighbours.pairs import Floats
from wallflower.papers import DATA_FOLDER
from wallflower.papers.facts import printed_table
from wallflower.queries.count.exact import count_outliers
from wallflower.synthetic import mixture, synthetic1, synthetic2

# [Oka15] removes "fnlwgt" and "category", which is no column of the table, and does not name the seven that remain.
# These are the five other numbers, and the two columns with the fewest values, each as 1 for its most frequent value.
ADULT_NUMBERS: Final = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
ADULT_FLAGS: Final[Mapping[str, str]] = {"sex": "Male", "race": "White"}
BAD: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """Records and the question asked of them."""

    name: str
    values: Floats
    neighbours: int
    radius: float

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def dimension(self) -> int:
        return int(self.values.shape[1])

    @property
    def outliers(self) -> int:
        return count_outliers(self.values, self.radius, self.neighbours)


def printed_cells(data: str) -> Mapping[str, float]:
    """What Table 1 or Table 2 of [Oka15] prints about a data set: N, d, k, r, inliers, outliers."""
    rows = [row for table in ("table1", "table2") for row in printed_table("okada2015", table) if data in row]
    return {row[""]: float(row[data]) for row in rows}


def printed_sample(name: str, values: Floats) -> Sample:
    """Records of a data set of [Oka15], with the question that is printed for it."""
    cells = printed_cells(name)
    return Sample(name=name, values=values, neighbours=int(cells["k"]), radius=cells["r"])


def standardise(values: Floats) -> Floats:
    """Every column to mean 0 and variance 1; one that never varies is 0.

    >>> standardise(np.array([[1.0, 5.0], [3.0, 5.0]])).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    spread = values.std(axis=0)
    scaled: Floats = (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return scaled


def synthetic1_sample(seed: int = 0) -> Sample:
    """Synthetic 1 of [Oka15]."""
    return printed_sample("Synthetic 1", synthetic1(seed))


def synthetic2_sample(seed: int = 0, radius: float | None = None) -> Sample:
    """Synthetic 2 of [Oka15], at the printed radius or another; the outliers show in its first two columns."""
    sample = printed_sample("Synthetic 2", synthetic2(seed))
    return sample if radius is None else replace(sample, radius=radius)


def mixture_sample(n: int, dimension: int, radius: float, seed: int = 0) -> Sample:
    """A contaminated Gaussian of the accuracy table."""
    name = f"mixture N={n:,}, d={dimension}"
    return Sample(name=name, values=mixture(n, dimension, seed=seed), neighbours=5, radius=radius)


def tumours(seed: int = 0) -> Sample:
    """WDBC: the 357 benign records and the first 10 malignant ones. There is one such table, whatever the seed."""
    table = _sklearn.load_breast_cancer()
    rows = np.vstack([table.data[table.target == 1], table.data[table.target == 0][:MALIGNANT]])
    center, scale = np.array(list(REFERENCE.values())).T
    return Sample(name="WDBC", values=(rows - center) / scale, neighbours=5, radius=1.3)


def adult1() -> Sample:
    """Adult 1 of [Oka15]: the first 45 records above 50K of the training part and the first 5 others."""
    return _adult("Adult 1")


def adult2() -> Sample:
    """Adult 2 of [Oka15]: the first 369 records above 50K of the training part and the first 10 others."""
    return _adult("Adult 2")


def ionosphere() -> Sample:
    """Ionosphere of [Oka15], scaled as printed."""
    return printed_sample("Ionosphere", standardise(_returns()))


def ionosphere_ja() -> Sample:
    """Ionosphere of [Oka15ja], as it comes: all columns already lie in [-1, 1]."""
    return Sample(name="Ionosphere", values=_returns(), neighbours=5, radius=0.3)


def _returns() -> Floats:
    """The 225 good returns and the first 10 bad ones."""
    path = find_file("ionosphere/ionosphere.csv")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    good = [row[:-1] for row in rows if row[-1] == "g"]
    bad = [row[:-1] for row in rows if row[-1] == "b"][:BAD]
    return np.array(good + bad, dtype=np.float64)


def _adult(name: str) -> Sample:
    path = find_file("adult/adult.csv.gz")
    cells = printed_cells(name)
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["split"] == "train"]
    above = [row for row in rows if row["income"] == ">50K"][: int(cells["inliers"])]
    below = [row for row in rows if row["income"] != ">50K"][: int(cells["outliers"])]
    return printed_sample(name, standardise(np.array([_adult_values(row) for row in above + below])))


def _adult_values(row: Mapping[str, str]) -> list[float]:
    numbers = [float(row[name]) for name in ADULT_NUMBERS]
    return numbers + [float(row[name] == usual) for name, usual in ADULT_FLAGS.items()]


def available(makers: Iterable[Callable[[], Sample]], say: Callable[[str], None]) -> list[Sample]:
    """The samples that can be had here; says which cannot, and why."""
    samples = []
    for make in makers:
        try:
            samples.append(make())
        except SourceError as reason:
            say(f"skipped: {reason}")
    return samples


def find_file(name: str) -> Path:
    """Where a file of the data folder is: `$WALLFLOWER_DATA`, or what `reproduce --data` named."""
    stated = os.environ.get(DATA_FOLDER)
    if stated is None:
        raise SourceError(f"{name}: no folder of data is named. Set {DATA_FOLDER} or pass --data.")
    path = Path(stated) / name
    if not path.is_file():
        raise SourceError(f"{name} is not in the folder of data. Set {DATA_FOLDER} or pass --data.")
    return path
