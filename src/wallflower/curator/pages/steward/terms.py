"""What the forms of a budget state: a limit with its terms, a share, whose loss is counted."""

from __future__ import annotations

from datetime import date
from typing import Any, Final, get_args

from wallflower.curator.api.bodies import day
from wallflower.curator.pages.visitors.visits import Visit
from wallflower.errors import ParameterError
from wallflower.ledger.limits import Accounting
from wallflower.privacy import Loss
from wallflower.query.forms import loss_of
from wallflower.units import Protection

_LONGEST: Final = 1000
PROTECTIONS: Final = (
    ("people record", "a row is a person: one record is protected, how many there are is public"),
    ("people membership", "a row is a person: whether they are there at all is protected too"),
    ("time record", "a row is a moment: all entries of one moment are protected"),
    ("time entry", "a row is a moment: one entry of one moment is protected"),
    ("time window", "a row is a moment: one person over a window of moments is protected"),
    ("time person", "a row is a moment: one person over the whole stream is protected"),
)


def read_limit(visit: Visit) -> tuple[Loss, dict[str, Any]]:
    """The limit that a form states, and its terms."""
    terms: dict[str, Any] = {"accounting": _choice(visit, "accounting", get_args(Accounting))}
    terms |= {"pace": read_text(visit, "pace"), "expires": _last_day(visit), "confirm": "confirm" in visit.form}
    return _loss(visit, "grant"), terms


def read_share(visit: Visit) -> tuple[str, Loss]:
    """The analyst that a form names, and the share that is to be kept for them."""
    analyst = read_text(visit, "analyst") or ""
    if not (1 <= len(analyst) <= 200 and analyst.isprintable()):
        raise ParameterError("analyst: it is the name of a token. Choose one of them.")
    return analyst, _loss(visit, "allocate")


def read_protection(visit: Visit) -> Protection | None:
    """What a row is and which change of it is hidden, chosen as one; None: as it was."""
    rows, _, unit = (_choice(visit, "protects", tuple(value for value, _ in PROTECTIONS)) or "").partition(" ")
    if not rows:
        return None
    numbers = {name: _number(visit, name) for name in ("window", "units_per_person", "times")}
    given = {name: value for name, value in numbers.items() if value is not None}
    return Protection.from_json({"rows": rows, "unit": unit, **given})


def _loss(visit: Visit, asker: str) -> Loss:
    epsilon, delta, rho = (read_text(visit, name) for name in ("epsilon", "delta", "rho"))
    return loss_of(asker, epsilon=epsilon, delta=delta, rho=rho)


def read_text(visit: Visit, name: str) -> str | None:
    """What was typed into a field; None: nothing."""
    return visit.form.get(name, "").strip()[:_LONGEST] or None


def read_reason(visit: Visit) -> str:
    """Why it is done, for whoever reads the ledger later; none may be given."""
    return read_text(visit, "reason") or ""


def _choice(visit: Visit, name: str, known: tuple[str, ...]) -> Any:
    chosen = read_text(visit, name)
    if chosen is not None and chosen not in known:
        raise ParameterError(f"{name}: it is one of {', '.join(known)}. Choose one.")
    return chosen


def _last_day(visit: Visit) -> date | None:
    text = read_text(visit, "expires")
    return None if text is None else day(text)


def _number(visit: Visit, name: str) -> int | None:
    text = read_text(visit, name)
    if text is not None and not (text.isascii() and text.isdigit() and len(text) < 11):
        raise ParameterError(f"{name}: it is a whole number above zero. Correct it.")
    return None if text is None else int(text)
