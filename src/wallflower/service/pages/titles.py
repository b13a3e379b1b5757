"""What the settings of a query are called in a form: a title, a unit and a sentence with an example.

A setting without an entry here has the name and the help that a program knows it by, so that a new query needs none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from wallflower.text import Message, t


@dataclass(frozen=True, slots=True)
class Title:
    """How a setting is shown: its title, a sentence with an example, and the unit of its number."""

    title: Message
    text: Message
    unit: Message | None = None


_RECORDS: Final = t("records")
_OBSERVATIONS: Final = t("observations")

# The queries that mean the same by a setting, the setting, and its title.
_STATED: Final[tuple[tuple[str, str, Title], ...]] = (
    (
        "count subspaces radius profile",
        "neighbours",
        Title(
            t("Similar records needed nearby"),
            t("A record with fewer similar records nearby is an outlier. Example: 5, for at least 5 similar patients."),
            _RECORDS,
        ),
    ),
    (
        "count subspaces",
        "radius",
        Title(
            t("How far “nearby” reaches"),
            t("Two records are near if their columns differ by at most this on average. Example: 1.3."),
        ),
    ),
    (
        "count",
        "share",
        Title(
            t("Wanted share of outliers"),
            t("Instead of a distance: the one at which this share are outliers. Half of ε finds it. Example: 2%."),
        ),
    ),
    (
        "radius",
        "share",
        Title(
            t("Wanted share of outliers"),
            t("The answer is the distance at which about this share are outliers. Example: 2%."),
        ),
    ),
    (
        "count subspaces radius profile detector",
        "columns",
        Title(
            t("Columns to compare"),
            t("Records are compared in these columns. Example: tick age and pulse, leave out the rest."),
        ),
    ),
    (
        "count flags",
        "by",
        Title(
            t("Count in each group of"),
            t("Each group is counted, at the cost of one answer. Example: one count for each region."),
        ),
    ),
    (
        "subspaces",
        "size",
        Title(
            t("Columns in a combination"),
            t("Every combination of this many columns is tried. Example: 2, so all pairs."),
            t("columns"),
        ),
    ),
    (
        "explain",
        "size",
        Title(
            t("Public bound on the number of records"),
            t("Empty: the number of records that the schema states. Example: 500."),
            _RECORDS,
        ),
    ),
    (
        "subspaces",
        "top",
        Title(
            t("How many to name"),
            t("The best ones are named, in their order. More names share the same ε. Example: 3."),
        ),
    ),
    (
        "count subspaces radius profile detector",
        "scale",
        Title(
            t("Spread of each column, from"),
            t("Columns are compared in units of a spread that was released before. Example: release 4."),
        ),
    ),
    (
        "watch",
        "threshold",
        Title(
            t("Flag from this distance on"),
            t("An observation this far from the centre is flagged. Example: 8 °C from a centre of 19 °C."),
        ),
    ),
    (
        "watch shift baseline",
        "low",
        Title(
            t("Lowest possible value"),
            t("Values below count as this. Choose it without looking at the data. Example: 30 for a pulse."),
        ),
    ),
    (
        "watch shift baseline",
        "high",
        Title(
            t("Highest possible value"),
            t("Values above count as this. Choose it without looking at the data. Example: 220 for a pulse."),
        ),
    ),
    (
        "watch shift baseline",
        "change",
        Title(
            t("Largest change of one value"),
            t("One entry is assumed to change by no more than this. Example: 5 for a temperature."),
        ),
    ),
    (
        "watch shift",
        "centre",
        Title(t("Usual value, if it is public"), t("Distances are measured from here. Example: 19 for a room in °C.")),
    ),
    (
        "watch baseline",
        "variance",
        Title(
            t("Usual variance, if it is public"),
            t("Only the preview uses it. Example: 4 for a standard deviation of 2."),
        ),
    ),
    (
        "watch shift baseline",
        "level",
        Title(
            t("Who is protected"),
            t("One entry, or one person with all entries. A person needs more noise. Example: entry."),
        ),
    ),
    (
        "watch shift",
        "time",
        Title(t("Column of times"), t("Observations are ordered and listed by it. Example: date of admission.")),
    ),
    (
        "watch shift",
        "baseline",
        Title(
            t("What is usual, from"),
            t("Values are compared with a seasonal baseline that was released before. Example: release 7."),
        ),
    ),
    (
        "watch shift",
        "cutoff",
        Title(
            t("Stop after this many flags"),
            t("The budget covers this many flags; then the watch ends. Example: 3."),
            t("flags"),
        ),
    ),
    (
        "watch shift",
        "window",
        Title(
            t("Length of protected stays"),
            t("A person is protected over this many observations in a row. Example: 24."),
            _OBSERVATIONS,
        ),
    ),
    (
        "watch",
        "steps",
        Title(
            t("Observations to watch"), t("With δ or ρ: the watch ends after this many. Example: 365."), _OBSERVATIONS
        ),
    ),
    (
        "explain",
        "record",
        Title(
            t("Record to explain"),
            t("The identifier of one record, or its row. The answer is about this record. Example: 3."),
        ),
    ),
    (
        "explain",
        "context",
        Title(
            t("Columns that describe a context"),
            t("The answer names values of these columns, among which the record stands out. Example: region."),
        ),
    ),
    (
        "count",
        "metric",
        Title(t("How differences are measured"), t("The distance of two records. Example: euclidean.")),
    ),
    (
        "explain",
        "metric",
        Title(t("Column in which it stands out"), t("The record is unusual in this column. Example: costs.")),
    ),
    (
        "flags who tally threshold",
        "detector",
        Title(
            t("Detector"),
            t("A detector that was released before; it decides which records are unusual. Example: release 5."),
        ),
    ),
    (
        "explain",
        "detector",
        Title(
            t("Rule for “unusual”"),
            t("Which rule decides whether the record is an outlier in a context. Example: tukey."),
        ),
    ),
    (
        "detector threshold",
        "contamination",
        Title(t("Share of records to flag"), t("About this share is flagged as unusual. Example: 2%.")),
    ),
    (
        "who",
        "most",
        Title(
            t("Names to ask for"),
            t("At most this many records are named for review; each counts towards the allowance. Example: 10."),
            _RECORDS,
        ),
    ),
    ("who", "show", Title(t("Also show of those named"), t("Nothing of other records is shown. Example: score."))),
    (
        "who",
        "identifier",
        Title(t("Column that identifies a record"), t("Records are named by this column. Example: patient number.")),
    ),
    ("tally", "every", Title(t("Length of a period"), t("One running total for each period. Example: 1 week."))),
    (
        "tally",
        "periods",
        Title(t("Number of periods"), t("The total is released after each of them. Example: 12."), t("periods")),
    ),
    (
        "shift",
        "direction",
        Title(t("Direction of the shift"), t("Which shifts of the mean raise an alarm. Example: up.")),
    ),
    (
        "shift",
        "run_length",
        Title(
            t("Observations between false alarms"),
            t("On average one false alarm in this many. Example: 1000."),
            _OBSERVATIONS,
        ),
    ),
    (
        "baseline",
        "guess",
        Title(
            t("Your guess of the usual value"),
            t("The nearer, the less noise. Choose it without looking at the data. Example: 19."),
        ),
    ),
    (
        "baseline",
        "season",
        Title(
            t("Season"),
            t("What is usual is estimated for each part of the season. Example: hour-of-day, so 24 values."),
        ),
    ),
    (
        "profile",
        "radii",
        Title(t("Distances"), t("The number of outliers is released at each of them. Example: 0.5, 1, 2.")),
    ),
    (
        "profile",
        "shares",
        Title(
            t("Wanted shares of outliers"), t("Instead of distances: one for each of these shares. Example: 1%, 5%.")
        ),
    ),
    (
        "scale",
        "units",
        Title(
            t("Columns of one unit"),
            t("They share one spread and cost as much as one column. Example: systolic, diastolic."),
        ),
    ),
    (
        "scale",
        "location",
        Title(
            t("Release the middle of each column too"),
            t("The median costs half of ε. Example: yes, to set bounds for a watch."),
        ),
    ),
)
LOSS_TITLES: Final[Mapping[str, Title]] = {
    "epsilon": Title(
        t("ε, the privacy loss"), t("More ε is a more accurate answer and less protection. Example: 0.5.")
    ),
    "delta": Title(
        t("δ, a small chance of failure"),
        t("With δ the guarantee may fail with this probability. Example: 1e-6; empty: never."),
    ),
    "rho": Title(
        t("ρ, another unit of the privacy loss"),
        t("Instead of ε, for many answers on one budget. Example: 0.05; empty: use ε."),
    ),
}
_TITLES: Final[Mapping[tuple[str, str], Title]] = {
    (kind, name): title for kinds, name, title in _STATED for kind in kinds.split()
}


def title_of(kind: str, name: str) -> Title | None:
    """Return how a setting of a query is shown; None where the name that programs use must do."""
    return _TITLES.get((kind, name))
