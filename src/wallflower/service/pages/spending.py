"""Pages for stewards and auditors: spending over time, and the list of actions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from typing import Any, Final, get_args
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.responses import Response
from starlette.routing import Route

from wallflower.drawing.charts import stacked_bars
from wallflower.service.core.access.acts import ACT_FIELDS
from wallflower.service.core.catalog import DatasetView
from wallflower.service.core.clock import moment
from wallflower.service.core.spending import (
    PACE_DAYS,
    By,
    Expense,
    History,
    Projection,
    budget_symbol,
    list_expenses,
    project_exhaustion,
    summarise_expenses,
)
from wallflower.service.pages.budget_text import Standing, standing_of
from wallflower.service.pages.display import as_markup
from wallflower.service.pages.visit import Visit, csv_file, json_file, page
from wallflower.text import Message, decimal, label, t

_PERIODS: Final[Mapping[str, int | None]] = {"30": 30, "90": 90, "365": 365, "all": None}
_BY: Final[Mapping[By, str]] = {"analyst": t("analyst"), "question": t("query"), "dataset": t("data set")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """One account, in a line."""

    shown: DatasetView
    standing: Standing
    lately: Message
    projection: Projection


def routes() -> list[Route]:
    """The page of spending."""
    return [Route("/spending", page(show_expenses, "reader")), *_acts_list_routes()]


def show_expenses(visit: Visit) -> Response:
    """Every account in a line, and the history of one of them."""
    kinds = {question.label: question.kind for question in visit.core.questions}
    accounts: dict[str, DatasetView] = {}
    for one in visit.core.datasets(visit.by):
        accounts.setdefault(one.budget.name, one)
    if not accounts:
        return visit.render("spending.html", overviews=[], shown=None)
    found = {name: list_expenses(visit.core.ledger, one.budget, kinds) for name, one in accounts.items()}
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
        picture=_chart(visit, past),
        decimal=decimal,
        window=PACE_DAYS,
    )


def _overview(shown: DatasetView, found: list[Expense], today: date) -> Overview:
    seen = project_exhaustion(found, shown.budget, today)
    letter = budget_symbol(shown.budget)
    lately = t("{letter} = {spent}", letter=letter, spent=seen.spent) if seen.spent else t("nothing")
    return Overview(shown=shown, standing=standing_of(shown), lately=lately, projection=seen)


def _history(found: list[Expense], shown: DatasetView, by: By, days: int | None, today: date) -> History:
    began = found[0].day if found else today
    first = began if days is None else today - timedelta(days=days - 1)
    return summarise_expenses(found, by, budget_symbol(shown.budget), first=min(first, today), last=today)


def _chart(visit: Visit, past: History) -> Markup | None:
    """Return what was spent in each period as bars; None where nothing was spent."""
    if not past.total:
        return None
    form = "%Y-%m" if past.step == "month" else "%m-%d"
    said = t(
        "Spent per {step}, {symbol}: {names}. The table below has the numbers.",
        step=label(past.step),
        symbol=past.letter,
        names=", ".join(past.series),
    )
    drawing = stacked_bars(
        [period.strftime(form) for period in past.periods],
        past.series,
        symbol=past.letter,
        titles=[period.isoformat() for period in past.periods],
        said=said,
        translate=visit.catalogue.translate,
    )
    return as_markup(drawing)


def _rows(past: History) -> list[tuple[date, tuple[Fraction, ...]]]:
    """The periods in which something was spent, the latest first."""
    columns = list(past.series.values())
    rows = [(period, tuple(row[place] for row in columns)) for place, period in enumerate(past.periods)]
    return [(period, amounts) for period, amounts in reversed(rows) if any(amounts)]


ACTS_PER_PAGE: Final = 100
# What stewards do, as the list of actions stores it.
ACTION_TEXTS: Final[Mapping[str, Message]] = {
    text: text
    for text in (
        t("data set"),
        t("data set retired"),
        t("access given"),
        t("access taken"),
        t("token issued"),
        t("token revoked"),
        t("own token issued"),
        t("own token revoked"),
        t("person disabled"),
        t("person enabled"),
        t("name given to another account"),
        t("second factor enrolled"),
        t("second factor removed"),
        t("limit proposed"),
        t("limit confirmed"),
        t("limit declined"),
        t("allowance proposed"),
        t("allowance confirmed"),
        t("allowance declined"),
        t("release published"),
        t("release withdrawn"),
    )
}
MAX_EXPORTED_ACTS: Final = 1_000_000
_MAX_LETTERS: Final = 200


def _acts_list_routes() -> list[Route]:
    """The page of acts and its files, for stewards and auditors."""
    return [
        Route("/acts", page(show_acts, "reader")),
        Route("/acts/csv", page(acts_csv, "reader")),
        Route("/acts/json", page(acts_json, "reader")),
    ]


def show_acts(visit: Visit) -> Response:
    """The acts that are wanted, the latest first."""
    wanted = _read_filter(visit)
    before = _text(visit, "before")
    rows = list(reversed(visit.core.acts.last(ACTS_PER_PAGE, before=before, **wanted)))
    older = urlencode({**wanted, "before": rows[-1]["id"]}) if len(rows) == ACTS_PER_PAGE else None
    acts = visit.core.acts
    return visit.render(
        "acts.html",
        acts=rows,
        wanted=wanted,
        query=urlencode(wanted),
        older=older,
        kinds=acts.kinds(),
        texts=ACTION_TEXTS,
        people=acts.people(),
    )


def acts_csv(visit: Visit) -> Response:
    """The acts that are wanted, as a table."""
    return csv_file("acts", ACT_FIELDS, ([row[name] or "" for name in ACT_FIELDS] for row in _all(visit)))


def acts_json(visit: Visit) -> Response:
    """The acts that are wanted, for programs."""
    return json_file("acts", {"acts": _all(visit)})


def _all(visit: Visit) -> list[dict[str, Any]]:
    return visit.core.acts.last(MAX_EXPORTED_ACTS, **_read_filter(visit))


def _read_filter(visit: Visit) -> dict[str, str]:
    stated = {name: _text(visit, name) for name in ("act", "by")}
    return {name: value for name, value in stated.items() if value is not None}


def _text(visit: Visit, name: str) -> str | None:
    text = visit.request.query_params.get(name, "").strip()[:_MAX_LETTERS]
    return text if text and text.isprintable() else None
