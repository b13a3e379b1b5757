"""One budget with other libraries: charge an account for a measurement that OpenDP, Tumult or a program of yours makes.

wallflower neither makes nor sees such an answer. It books the loss that you state, before the answer is computed, so
that one limit bounds everything that is told about the people in the data. You vouch for what is stated: the proof
obligation is (U9) in proof.md of `ledger`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol

from wallflower.errors import ParameterError
from wallflower.ledger import Ledger, Receipt
from wallflower.names import check_label
from wallflower.privacy import Kind, Loss
from wallflower.release import declaration_of, default_analyst
from wallflower.schema import Schema, take_schema
from wallflower.units import DELTA_GRID, Claim, round_up

__all__ = ["ExternalMeasurement", "charge_external", "opendp_loss"]

EPSILON_GRID: Final = 10**12
_ROWS_APART: Final = {  # by how much of its metric two tables differ in which one row is replaced
    "SymmetricDistance": 2,
    "InsertDeleteDistance": 2,
    "ChangeOneDistance": 1,
    "HammingDistance": 1,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalMeasurement:
    """A measurement of another library, as the ledger keeps it."""

    label: ClassVar[str] = "external-measurement/1"

    loss: Loss
    measurement: str
    library: str

    def __post_init__(self) -> None:
        if self.loss.kind not in (Kind.PURE, Kind.APPROXIMATE, Kind.ZCDP) or not (self.loss.amount or self.loss.delta):
            raise ParameterError(
                "loss must be above 0, and pure, approximate or zCDP. Another library's measurement that costs nothing "
                "has no theorem here. State what it costs."
            )
        for name in ("measurement", "library"):
            if getattr(self, name) is None:
                raise ParameterError(f"{name} must be text: the ledger keeps it for ever. Pass it.")
            check_label(getattr(self, name))

    def cost(self) -> Loss:
        return self.loss

    def to_json(self) -> dict[str, Any]:
        return {"loss": self.loss.to_json(), "measurement": self.measurement, "library": self.library}


def charge_external(
    dataset: str,
    loss: Loss,
    *,
    measurement: str,
    library: str,
    ledger: Ledger | str | Path | None = None,
    schema: Schema | str | Path | None = None,
    analyst: str | None = None,
    whole_person: bool = False,
) -> Receipt:
    """Charge a data set's account for one run of another library's measurement, or refuse and change nothing.

    The charge is on disk when this returns. Run the measurement afterwards, once. Charge again before you run it again,
    also after a crash.

    You vouch for five things, (U9): (1) the loss holds for the neighbours that it names; (2) it was chosen without the
    records; (3) the measurement reads the records that the data set's name stands for; (4) nothing but its result comes
    out, neither errors nor running times; (5) it runs at most once per charge, with fresh noise.

    dataset       data set name in the ledger
    loss          what the measurement costs, for its own neighbours; the ledger translates it into the account's unit
    measurement   what is measured, for the ledger: "mean age, Laplace, bounds 0 to 120"
    library       who measures: "opendp 0.16.0"
    ledger        a Ledger, a path or a URL; None for the default one
    schema        public facts of the data set; needed before its first query, if they declare a unit or an account
    analyst       who asks; default: $WALLFLOWER_ANALYST, the project's, or you
    whole_person  the loss covers all rows of one person, not one row

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, Ledger.open(f"{folder}/ledger.db") as book:
    ...     receipt = charge_external(
    ...         "icu", Loss("0.25"), measurement="mean age", library="opendp 0.16", ledger=book, analyst="ana"
    ...     )
    ...     receipt.booked, receipt.left
    (Loss(ε=1/4), Loss(ε=3/4))
    """
    query = ExternalMeasurement(loss=loss, measurement=measurement, library=library)
    facts = None if schema is None else take_schema(schema)
    declared = None if facts is None else declaration_of(dataset, facts)
    claim = Claim(loss=loss, whole_person=whole_person)
    book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    try:
        quoted = book.quote(dataset, query, analyst=analyst or default_analyst(), claim=claim, declared=declared)
        if quoted.protection.person is not None and not whole_person:
            raise ParameterError(
                f"{dataset}: the account protects {quoted.protection.text}. Another library reads all of a person's "
                "rows, so the loss of one row says nothing. State the loss of all rows, with whole_person."
            )
        return book.charge(dataset, query, analyst=quoted.analyst, claim=claim, declared=declared)
    finally:
        if book is not ledger:
            book.close()


class _OpenDPMeasurement(Protocol):
    @property
    def input_metric(self) -> Any: ...
    @property
    def output_measure(self) -> Any: ...
    def map(self, d_in: Any) -> Any: ...


def opendp_loss(measurement: _OpenDPMeasurement) -> Loss:
    """Return the loss of an OpenDP measurement for one replaced row, rounded up.

    It takes the measurement's own privacy map: two rows apart in a symmetric distance, one in the others. Metrics and
    measures that the ledger has no theorem for are refused. For an account that protects membership, state the loss for
    one row by hand: such a measurement must not assume a number of rows.
    """
    metric, measure = str(measurement.input_metric.type), str(measurement.output_measure.type)
    if metric not in _ROWS_APART:
        raise ParameterError(
            f"measurement: its metric {metric[:60]} counts no rows. A charge needs a measurement on rows. Chain the "
            "transformation before it, or state its loss."
        )
    d_out = measurement.map(_ROWS_APART[metric])
    match measure:
        case "MaxDivergence":
            return Loss(_round_up(d_out))
        case "ZeroConcentratedDivergence":
            return Loss.zcdp(_round_up(d_out))
        case "Approximate<MaxDivergence>":
            epsilon, delta = d_out
            return Loss(_round_up(epsilon), delta=round_up(Fraction(delta), DELTA_GRID))
    raise ParameterError(
        f"measurement: its measure {measure[:60]} has no theorem here. The ledger adds up ε, (ε, δ) and ρ. Convert the "
        "measurement to one of these."
    )


def _round_up(amount: float) -> Fraction:
    return round_up(Fraction(amount), EPSILON_GRID)
