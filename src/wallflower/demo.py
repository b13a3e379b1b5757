"""A tour on public medical data: the Wisconsin breast-cancer table, 357 benign tumours and 10 malignant ones.

Each step has a title, a sentence on what it means, and something to show.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from wallflower.data import Schema
from wallflower.dataset import Dataset, open_dataset
from wallflower.errors import BudgetExhausted
from wallflower.ledger import Ledger
from wallflower.machine.heavy import sklearn_datasets as _datasets
from wallflower.machine.lazy import Lazy
from wallflower.privacy import Loss
from wallflower.queries.count import Count
from wallflower.queries.subspaces import Subspaces
from wallflower.synthetic import WARDS, patients

if TYPE_CHECKING:
    import wallflower.report as _report
else:
    _report = Lazy("wallflower.report")

NAME: Final = "tumours"
PATIENTS: Final = "patients"  # made up: a larger table, to go on with
NUMBER_OF_PATIENTS: Final = 9000
STEWARD: Final = "steward"
ANALYST: Final = "analyst"
MALIGNANT: Final = 10
QUESTION: Final = Count(neighbours=5, radius=1.3, loss=Loss("1"))
WHERE: Final = Subspaces(neighbours=5, radius=0.2, size=1, top=3, loss=Loss("1"))
TOO_MUCH: Final = Count(neighbours=5, radius=1.3, loss=Loss("3"))

# Centre and scale of each column, fixed here. They are the rounded mean and deviation of these very 367 rows, as the
# paper standardises them, which is harmless only because the table is published. For private data take constants from
# elsewhere: the sample's own would let one record move all others, and void the guarantee.
REFERENCE: Final[Mapping[str, tuple[float, float]]] = {
    "mean radius": (12.3, 1.95),
    "mean texture": (17.9, 3.99),
    "mean perimeter": (78.8, 13.0),
    "mean area": (473.0, 157.0),
    "mean smoothness": (0.0931, 0.014),
    "mean compactness": (0.0828, 0.0386),
    "mean concavity": (0.0497, 0.0492),
    "mean concave points": (0.0276, 0.0197),
    "mean symmetry": (0.175, 0.0255),
    "mean fractal dimension": (0.0631, 0.00711),
    "radius error": (0.292, 0.126),
    "texture error": (1.21, 0.583),
    "perimeter error": (2.05, 0.876),
    "area error": (22.3, 12.8),
    "smoothness error": (0.0072, 0.00303),
    "compactness error": (0.0219, 0.0167),
    "concavity error": (0.0264, 0.0327),
    "concave points error": (0.01, 0.00571),
    "symmetry error": (0.0207, 0.00723),
    "fractal dimension error": (0.00369, 0.00294),
    "worst radius": (13.6, 2.32),
    "worst texture": (23.6, 5.53),
    "worst perimeter": (88.2, 16.0),
    "worst area": (578.0, 216.0),
    "worst smoothness": (0.126, 0.021),
    "worst compactness": (0.192, 0.114),
    "worst concavity": (0.176, 0.156),
    "worst concave points": (0.078, 0.0417),
    "worst symmetry": (0.273, 0.0493),
    "worst fractal dimension": (0.0805, 0.0164),
}


FEATURES: Final[Mapping[str, str]] = {
    "radius": "distance from the centre to the edge",
    "texture": "spread of the grey values",
    "perimeter": "length of the edge",
    "area": "area",
    "smoothness": "how little the radius varies from place to place",
    "compactness": "squared perimeter over area, less 1",
    "concavity": "how deep the dents of the edge are",
    "concave points": "how many dents the edge has",
    "symmetry": "how unlike the two halves are",
    "fractal dimension": "how rough the edge is",
}
# Public by the instruments and a textbook: bounds of what is measured, and what counts as one unit of distance.
VITALS: Final[Mapping[str, tuple[float, float, float]]] = {
    "age": (0, 100, 20),
    "pulse": (20, 220, 15),
    "pressure": (40, 260, 20),
    "oxygen": (50, 100, 2),
    "stay": (0, 60, 5),
}
WORDS: Final[Mapping[str, Any]] = {
    "title": "Breast tumours, Wisconsin",
    "owner": "University of Wisconsin; published by the UCI Machine Learning Repository",
    "period": "published in 1995",
    "population": f"fine needle aspirates of breast masses: 357 benign and {MALIGNANT} malignant ones",
    "licence": "CC BY 4.0",
    "description": "Ten features of the cell nuclei in a digitised image, as mean, standard error and worst value.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One stop of the tour."""

    title: str
    words: str
    shown: Any


def steps(folder: Path) -> Iterator[Step]:
    """Walk the tour and leave its files in `folder`; it may be walked again and goes on from there."""
    folder.mkdir(parents=True, exist_ok=True)
    source, schema = write_files(folder)
    patients_source, patients_schema = write_patients(folder)
    with Ledger.open(folder / "ledger.db") as ledger:
        yield _grant_budget(ledger)
        tumours = open_dataset(source, schema=schema, ledger=ledger, name=NAME, analyst=ANALYST)
        yield Step(
            title="Plan",
            words="Before anything is spent: how far off will the answer be? Only public facts are used.",
            shown=tumours.plan.of(QUESTION),
        )
        yield Step(
            title="Ask",
            words="How many tumours have fewer than 5 others within 1.3? Charged first, then looked at, then recorded.",
            shown=tumours.ask(QUESTION),
        )
        yield Step(
            title="Plan another question",
            words="In which columns do they show? The plan says what an answer would be worth; here not its price.",
            shown=tumours.plan.of(WHERE),
        )
        yield _ask_too_much(tumours)
        yield Step(
            title="Read the ledger",
            words="Every grant, charge and release is an entry that cannot be changed without being noticed.",
            shown=ledger.history(NAME),
        )
        yield Step(
            title="Check the ledger",
            words="Each entry holds the hash of the one before it; a note of the last one finds later cuts.",
            shown=ledger.verify(),
        )
        page = folder / "report.html"
        _report.write(page, tumours.releases(), ledger)
    yield Step(
        title="Take it with you",
        words="A page to open in a browser, and the files to ask the next question yourself:",
        shown=(page, _next_command(folder, patients_source, patients_schema)),
    )


def _grant_budget(ledger: Ledger) -> Step:
    if ledger.account(NAME).starter or not ledger.can_charge(NAME, QUESTION, analyst=ANALYST):
        ledger.grant(NAME, Loss(ledger.spent(NAME).amount + 3), by=STEWARD, reason="demo")
    return Step(
        title="Grant a budget",
        words="The data steward decides how much all answers together may cost; without a grant, the budget is ε = 1.",
        shown=f"{NAME}: {ledger.remaining(NAME)} is left",
    )


def _ask_too_much(tumours: Dataset) -> Step:
    words = "Asking for more than is left is refused before anybody looks; nothing is charged and nothing is locked."
    try:
        return Step(title="Ask too much", words=words, shown=tumours.ask(TOO_MUCH))
    except BudgetExhausted as refusal:
        return Step(title="Ask too much", words=words, shown=refusal)


def write_files(folder: Path) -> tuple[Path, Path]:
    """The table and its public facts, as files."""
    table = _datasets.load_breast_cancer()
    benign = [row for row, target in zip(table.data.tolist(), table.target, strict=True) if target]
    malignant = [row for row, target in zip(table.data.tolist(), table.target, strict=True) if not target]
    source, schema = folder / f"{NAME}.csv", folder / f"{NAME}.toml"
    with source.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([REFERENCE, *benign, *malignant[:MALIGNANT]])
    center, scale = ({name: pair[place] for name, pair in REFERENCE.items()} for place in (0, 1))
    facts = Schema.of(REFERENCE, center=center, scale=scale, rows=len(benign) + MALIGNANT, name=NAME)
    columns = tuple(replace(column, meaning=_meaning(column.name)) for column in facts.columns or ())
    schema.write_text(replace(facts, columns=columns, **WORDS).to_toml(), encoding="utf-8")
    return source, schema


def write_patients(folder: Path) -> tuple[Path, Path]:
    """Write a table of made-up patients and its public facts: age and pressure do not fit in some, most in one ward."""
    records = patients(NUMBER_OF_PATIENTS)
    names = ["ward", "sex", *VITALS]
    source, schema = folder / f"{PATIENTS}.csv", folder / f"{PATIENTS}.toml"
    with source.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([names, *zip(*(records[name].tolist() for name in names), strict=True)])
    facts = Schema.of(
        names,
        categories={"ward": WARDS, "sex": ("F", "M")},
        bounds={name: (low, high) for name, (low, high, _) in VITALS.items()},
        scale={name: unit for name, (*_, unit) in VITALS.items()},
        clip=True,
        rows=NUMBER_OF_PATIENTS,
        name=PATIENTS,
    )
    schema.write_text(facts.to_toml(), encoding="utf-8")
    return source, schema


def _meaning(column: str) -> str:
    """What a column says of a tumour: the mean over its cell nuclei, its standard error, or the three largest."""
    feature = column.removeprefix("mean ").removeprefix("worst ").removesuffix(" error")
    over = {"mean": "mean over the cell nuclei", "worst": "mean of the three largest"}
    return f"{FEATURES[feature]}: {over.get(column.partition(' ')[0], 'standard error of the mean')}"


def _next_command(folder: Path, source: Path, schema: Path) -> str:
    return (
        f"wallflower {Count.kind} {source} --schema {schema} --ledger {folder / 'ledger.db'} "
        "--columns age,pressure --neighbours 5 --radius 0.15 --by ward --epsilon 1 --dry-run"
    )
