"""The planner: the form of a question, made from the schema of its data set, and what the answer would be worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from wallflower.curator.api.bodies import Find
from wallflower.curator.desk.access.tokens import new_id
from wallflower.curator.desk.datasets.views import DatasetView
from wallflower.curator.desk.problems import Refusal, problem
from wallflower.curator.desk.questions.tradeoffs import Tradeoffs
from wallflower.curator.pages.analyst.offers import obstacle_of
from wallflower.curator.pages.analyst.samples import Samples
from wallflower.curator.pages.figures import charts
from wallflower.curator.pages.forms import fields
from wallflower.curator.pages.forms.faults import EmptyFields, faults_of
from wallflower.curator.pages.forms.scales import OWN, asides
from wallflower.curator.pages.forms.translation import chosen_columns
from wallflower.curator.pages.visitors.visits import BASE, Visit, page, place
from wallflower.curator.pages.words.standing import ADVICE, factor_words
from wallflower.errors import ParameterError, PrivacyError
from wallflower.ledger import Quote
from wallflower.privacy import Kind
from wallflower.query import Plan, Query, Tradeoff
from wallflower.query.forms import LOSS_HELP, Question, blanks
from wallflower.release import Release
from wallflower.release.guarantee import certainty
from wallflower.release.words import rough, rows_of, symbol

_LONGEST: Final = 8000  # characters of an address, and of one setting in it
RANGE: Final = (0.01, 10.0)  # of the slider, as long as there is no curve


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """A plan as it is shown: what it promises, what it costs here, and how often the budget affords it."""

    query: Query[Any, Any]
    plan: Plan
    letter: str
    rows: list[tuple[str, ...]]
    quote: Quote
    factor: str | None
    sure: str | None
    range: tuple[float, float]
    marks: list[tuple[float, str]]
    curve: Markup | None
    tradeoff: Markup | None
    tradeoff_at: str
    offers_tradeoff: bool
    sample: str | None
    offers_sample: bool
    expected: list[tuple[str, str]]


def routes() -> list[Route]:
    """The pages of a plan."""
    return [
        Route("/datasets/{dataset}/plan/{kind}", page(planner, computes=True)),
        Route("/datasets/{dataset}/plan/{kind}", page(plan_sent_form, computes=True), methods=["POST"]),
    ]


def planner(visit: Visit) -> Response:
    """The form of a question, with its plan; the address may fill it in."""
    return show_form(visit, read_address(visit))


def plan_sent_form(visit: Visit) -> Response:
    """The same for a form that was sent: an address that holds it, or only the plan for a page that is open."""
    question, shown = topic_of(visit)
    if "x-fragment" in visit.request.headers:
        at = plan_at(shown, question)
        return visit.render("plan.html", plan_at=at, **outlook_of(visit, shown, question, visit.form))
    address = f"{plan_at(shown, question)}?{urlencode(settings_in(question, visit.form))}"
    if {"tradeoff", "example"} & visit.form.keys() or len(address) > _LONGEST:
        return show_form(visit, visit.form)
    return RedirectResponse(address, 303)


def show_form(visit: Visit, given: Mapping[str, str], *, sent: bool = False) -> Response:
    """The page of a form with its plan; one that was sent is told of what is empty, too."""
    question, shown = topic_of(visit)
    obstacle = obstacle_of(visit.desk, visit.by, shown, question)
    table = table_of(visit, shown.name, question)
    entries = fields.entries(question, given, table)
    values = {entry.name: entry.value for entry in entries}
    told = outlook_of(visit, shown, question, values | {"anyway": given.get("anyway", "")})
    faults = told["faults"] if told["begun"] or sent else {}
    entries = [replace(entry, fault=faults.get(entry.field, "")) for entry in entries]
    return visit.render(
        "planner.html",
        422 if sent else 200,
        question=question,
        shown=shown,
        entries=entries,
        obstacle=obstacle,
        nonce=nonce_of(given) or new_id(),
        plan_at=plan_at(shown, question),
        tables=any(blank.hint == tuple[tuple[str, ...], ...] for blank in blanks(question)),
        columns=[column["name"] for column in shown.facts["columns"]],
        slider=RANGE if told["outlook"] is None else told["outlook"].range,
        **told,
    )


def topic_of(visit: Visit) -> tuple[Question, DatasetView]:
    """What is asked of which data set, as the address says."""
    shown = visit.desk.dataset(visit.by, visit.path("dataset"))
    try:
        return visit.desk.question(visit.path("kind")), shown
    except ParameterError:
        raise Refusal(
            "not-found", "There is no question of this name. The page of the data set has them all."
        ) from None


def plan_at(shown: DatasetView, question: Question) -> str:
    """Where the planner of a question is."""
    return BASE + place("datasets", shown.name, "plan", question.kind)


def read_address(visit: Visit) -> dict[str, str]:
    """What the address says of the fields; boxes that are ticked have one name."""
    found: dict[str, str] = {}
    for name, value in visit.request.query_params.multi_items():
        text = value[:_LONGEST]
        found[name] = f"{found[name]}, {text}" if name in found else text
    return found


def settings_in(question: Question, form: Mapping[str, str]) -> dict[str, str]:
    """What was typed into the fields of a question, and nothing else of the form."""
    own = [blank.name for blank in blanks(question)]
    known = {*LOSS_HELP, *own, *(f"{name}{OWN}" for name in own), "anyway"}
    return {name: value for name, value in form.items() if name in known and value}


def nonce_of(form: Mapping[str, str]) -> str:
    """What tells one form from another, whoever sends it."""
    return "".join(letter for letter in form.get("nonce", "")[:40] if letter.isalnum() and letter.isascii())


def table_of(visit: Visit, dataset: str, question: Question) -> fields.Table:
    """What a form may offer: a steward may name any record, so none are listed for them."""
    records = () if visit.by.is_steward else visit.desk.shelf.find(dataset).records
    return fields.Table(
        schema=visit.desk.public_schema(dataset), records=records, released=bases(visit, dataset, question)
    )


def bases(visit: Visit, dataset: str, question: Question) -> list[Release[Any]]:
    """What was released of a data set that a question may build on, such as scales: to an analyst their own."""
    if not any(map(fields.takes_release, blanks(question))):
        return []
    return visit.desk.releases(visit.by, dataset)


def read(visit: Visit, shown: DatasetView, question: Question, form: Mapping[str, str]) -> Query[Any, Any]:
    """The question that a form asks of a data set."""
    find: Find = partial(visit.desk.release, visit.by)
    return fields.read_form(question, form, find, visit.desk.public_schema(shown.name))


def outlook_of(visit: Visit, shown: DatasetView, question: Question, form: Mapping[str, str]) -> dict[str, Any]:
    """The plan of what a form asks, or why there is none."""
    schema, chosen = visit.desk.public_schema(shown.name), chosen_columns(question, form)
    told: dict[str, Any] = {"outlook": None, "words": None, "begun": True, "faults": {}, "advice": ADVICE}
    told |= {"asides": asides(blanks(question), form, schema, chosen), "anyway": form.get("anyway") == "yes"}
    try:
        query = read(visit, shown, question, form)
        plan = visit.desk.plan(visit.by, shown.name, query)
        quote = visit.desk.quote(visit.by, shown.name, query)
    except PrivacyError as refusal:
        words = problem(refusal)["detail"]
        begun = not isinstance(refusal, EmptyFields)
        return told | {"words": words, "begun": begun, "faults": faults_of(refusal, question, words)}
    sample = _sample(visit, shown.name, query, plan) if "example" in visit.form else None
    return told | {"outlook": _outlook(visit, query, plan, quote, sample)}


def _sample(visit: Visit, name: str, query: Query[Any, Any], plan: Plan) -> str | None:
    """An answer to read before one is paid for, of made-up records."""
    samples = samples_of(visit)
    known = visit.desk.public_schema(name)
    return samples.words(name, known, query, plan) or "" if samples.is_offered(query, plan) else None


def _outlook(visit: Visit, query: Query[Any, Any], plan: Plan, quote: Quote, sample: str | None) -> Outlook:
    chosen = next((option for option in plan.options if option.mechanism == plan.chosen), None)
    figures = {} if chosen is None else chosen.figures
    tradeoff, marks = _tradeoff(visit, query, plan), marks_of(plan, quote)
    return Outlook(
        query=query,
        plan=plan,
        letter=symbol(plan.cost),
        rows=list(rows_of(plan)),
        quote=quote,
        factor=factor_words(quote),
        sure=None if quote.booked is None else certainty(quote.booked),
        range=(plan.curve[0][0], plan.curve[-1][0]) if len(plan.curve) > 1 and plan.curve[0][0] > 0 else RANGE,
        marks=marks,
        curve=charts.curve(plan, marks),
        tradeoff=charts.tradeoff(tradeoff) if tradeoff else None,
        tradeoff_at=tradeoff.amount if tradeoff else "",
        sample=sample,
        offers_sample=sample is None and samples_of(visit).is_offered(query, plan),
        offers_tradeoff=curves_of(visit).find(query, plan.facts.get("dimension", 1)) is None,
        expected=[(words, rough(figures[name])) for name, words in plan.headings.items() if name in figures],
    )


def marks_of(plan: Plan, quote: Quote) -> list[tuple[float, str]]:
    """Amounts of the loss that decide: from where on it is of use, and up to where the budget goes."""
    found = []
    if plan.smallest_useful_epsilon:
        found.append((float(plan.smallest_useful_epsilon), "useful from here"))
    price = quote.price
    if price is not None and price.factor and quote.left.kind is not Kind.ZCDP and plan.cost.kind is not Kind.ZCDP:
        found.append((float(quote.left.amount / price.factor), "all that is left"))
    return [(amount, words) for amount, words in found if amount > 0]


def _tradeoff(visit: Visit, query: Query[Any, Any], plan: Plan) -> Tradeoff | None:
    """The curve at about this loss, if it is known, or asked for: it can take seconds, so the plan comes first."""
    dimension, amount = plan.facts.get("dimension", 1), float(plan.cost.amount)
    curves = (curves_of(visit).make if "tradeoff" in visit.form else curves_of(visit).find)(query, dimension)
    return charts.nearest_to(amount, curves) if curves and amount else None


def curves_of(visit: Visit) -> Tradeoffs:
    """The trade-off curves that are known."""
    curves: Tradeoffs = visit.request.app.state.tradeoffs
    return curves


def samples_of(visit: Visit) -> Samples:
    """The made-up tables of the service."""
    samples: Samples = visit.request.app.state.samples
    return samples
