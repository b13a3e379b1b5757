"""The steward's view of spending: over time, by analyst and by question, and when a limit would be reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from typing import Final, get_args

from starlette.responses import Response
from starlette.routing import Route

from wallflower.curator.desk.budgets.expenses import (
    WINDOW,
    By,
    Expense,
    History,
    Projection,
    expenses,
    history,
    letter_of,
    projection,
)
from wallflower.curator.desk.clock import moment
from wallflower.curator.desk.datasets.views import DatasetView
from wallflower.curator.pages.figures.bars import bars
from wallflower.curator.pages.forms.fields import decimal
from wallflower.curator.pages.visitors.visits import Visit, page
from wallflower.curator.pages.words.standing import Standing, standing_of

_PERIODS: Final[Mapping[str, int | None]] = {"30": 30, "90": 90, "365": 365, "all": None}
_BY: Final[Mapping[By, str]] = {"analyst": "analyst", "question": "question", "dataset": "data set"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """One account, in a line."""

    shown: DatasetView
    standing: Standing
    lately: str
    projection: Projection


def routes() -> list[Route]:
    """The page of spending."""
    return [Route("/spending", page(show_expenses, "reader"))]


def show_expenses(visit: Visit) -> Response:
    """Every account in a line, and the history of one of them."""
    kinds = {question.label: question.kind for question in visit.desk.questions}
    accounts: dict[str, DatasetView] = {}
    for one in visit.desk.datasets(visit.by):
        accounts.setdefault(one.budget.name, one)
    if not accounts:
        return visit.render("spending.html", overviews=[], shown=None)
    found = {name: expenses(visit.desk.ledger, one.budget, kinds) for name, one in accounts.items()}
    today = moment().date()
    overviews = [_overview(one, found[name], today) for name, one in accounts.items()]
    wanted = visit.request.query_params.get("dataset", "")
    usual = next((name for name, own in found.items() if own), next(iter(accounts)))
    chosen = next((name for name, one in accounts.items() if wanted in (name, one.name, *one.budget.members)), usual)
    by: By = next((known for known in get_args(By) if known == visit.request.query_params.get("by")), "analyst")
    period = visit.request.query_params.get("period", "")
    period = period if period in _PERIODS else "90"
    past = _history(found[chosen], accounts[chosen], by, _PERIODS[period], today)
    return visit.render(
        "spending.html",
        overviews=overviews,
        shown=accounts[chosen],
        accounts=list(accounts),
        chosen=chosen,
        by=by,
        bys=_BY,
        period=period,
        periods=_PERIODS,
        past=past,
        rows=_rows(past),
        picture=bars(past),
        decimal=decimal,
        window=WINDOW,
    )


def _overview(shown: DatasetView, found: list[Expense], today: date) -> Overview:
    seen = projection(found, shown.budget, today)
    lately = f"{letter_of(shown.budget)} = {decimal(seen.spent)}" if seen.spent else "nothing"
    return Overview(shown=shown, standing=standing_of(shown), lately=lately, projection=seen)


def _history(found: list[Expense], shown: DatasetView, by: By, days: int | None, today: date) -> History:
    began = found[0].day if found else today
    first = began if days is None else today - timedelta(days=days - 1)
    return history(found, by, letter_of(shown.budget), first=min(first, today), last=today)


def _rows(past: History) -> list[tuple[date, tuple[Fraction, ...]]]:
    """The periods in which something was spent, the latest first."""
    columns = list(past.series.values())
    rows = [(period, tuple(row[place] for row in columns)) for place, period in enumerate(past.periods)]
    return [(period, amounts) for period, amounts in reversed(rows) if any(amounts)]
