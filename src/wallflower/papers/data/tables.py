"""The tables the papers looked at, with the question asked of each.

Synthetic 1 and 2 are made here and WDBC comes with scikit-learn. The others are read from the folder named by
`$WALLFLOWER_DATA`; nothing is copied. Columns are scaled by public constants stated below, never by the sample.
Registers, with people in categories, are in `registers.py`.
"""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from wallflower.demo import MALIGNANT, REFERENCE
from wallflower.errors import SourceError
from wallflower.lazy import Lazy
from wallflower.neighbours.pairs import Floats
from wallflower.papers import DATA_FOLDER
from wallflower.queries.count.exact import count_outliers
from wallflower.synthetic import mixture, synthetic1, synthetic2

if TYPE_CHECKING:
    import sklearn.datasets as _sklearn
else:
    _sklearn = Lazy("sklearn.datasets")

# The paper does not name its seven attributes: these are the six numbers of the table, and sex as 0 or 1.
ADULT: Final[Mapping[str, tuple[float, float]]] = {
    "age": (38.6, 13.7),
    "fnlwgt": (190_000.0, 106_000.0),
    "education-num": (10.1, 2.57),
    "capital-gain": (1080.0, 7450.0),
    "capital-loss": (87.5, 403.0),
    "hours-per-week": (40.4, 12.4),
    "sex": (0.67, 0.47),
}
# The paper does not print the radius of Adult 2. The accuracy (TP+TN)/N cannot choose it: it is highest, 369/379, where
# no record is an outlier at all. This is the radius it prints for single columns of unit spread, those of Synthetic 2.
SINGLE: Final = 0.13
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


def synthetic1_sample(seed: int = 0) -> Sample:
    """Synthetic 1 of [Oka15]."""
    return Sample(name="Synthetic 1", values=synthetic1(seed), neighbours=3, radius=1.1)


def synthetic2_sample(seed: int = 0, radius: float = SINGLE) -> Sample:
    """Synthetic 2 of [Oka15]; the outliers show in its first two columns."""
    return Sample(name="Synthetic 2", values=synthetic2(seed), neighbours=3, radius=radius)


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
    return Sample(name="Adult 1", values=_adult(45, 5), neighbours=3, radius=0.35)


def adult2() -> Sample:
    """Adult 2 of [Oka15]: the first 369 records above 50K of the training part and the first 10 others."""
    return Sample(name="Adult 2", values=_adult(369, 10), neighbours=3, radius=SINGLE)


def ionosphere(neighbours: int, radius: float) -> Sample:
    """Ionosphere: the 225 good returns and the first 10 bad ones; all columns already lie in [-1, 1]."""
    path = find_file("ionosphere/ionosphere.csv")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    good = [row[:-1] for row in rows if row[-1] == "g"]
    bad = [row[:-1] for row in rows if row[-1] == "b"][:BAD]
    values = np.array(good + bad, dtype=np.float64)
    return Sample(name="Ionosphere", values=values, neighbours=neighbours, radius=radius)


def _adult(many: int, few: int) -> Floats:
    path = find_file("adult/adult.csv.gz")
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["split"] == "train"]
    above = [row for row in rows if row["income"] == ">50K"][:many]
    below = [row for row in rows if row["income"] != ">50K"][:few]
    raw = [
        [float(row[name]) if name != "sex" else float(row[name] == "Male") for name in ADULT] for row in above + below
    ]
    center, scale = np.array(list(ADULT.values())).T
    values: Floats = (np.array(raw) - center) / scale
    return values


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
