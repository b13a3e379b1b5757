"""A query from the form to the answer: accuracy preview, confirmation of the cost, and the job that computes it."""

from __future__ import annotations

import hashlib
import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Any, Final
from urllib.parse import urlencode

from anyio.to_thread import run_sync
from markupsafe import Markup
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from wallflower.data import Table
from wallflower.drawing.charts import roc_chart
from wallflower.errors import AnswerPending, ParameterError, PrivacyError
from wallflower.ledger import Quote
from wallflower.ledger.chain import canonical
from wallflower.ledger.decision import booking_note
from wallflower.privacy import Kind
from wallflower.query import Plan, Query, Tradeoff
from wallflower.query.parameter import LOSS_HELP, Question, list_parameters
from wallflower.rehearsal import make_up, sample_words
from wallflower.release import Release
from wallflower.release.guarantee import certainty
from wallflower.release.text import rough, rows_of, rows_of_value, symbol
from wallflower.schema import Schema
from wallflower.service.api.bodies import FindRelease
from wallflower.service.core.access.tokens import new_id
from wallflower.service.core.catalog import DatasetView
from wallflower.service.core.facade import FORM_KEY_PREFIX
from wallflower.service.core.previews import Tradeoffs
from wallflower.service.core.problems import Refusal, problem_document
from wallflower.service.pages import fields
from wallflower.service.pages.budget_text import ADVICE, conversion_text
from wallflower.service.pages.choices import OWN, asides, chosen_columns
from wallflower.service.pages.datasets import obstacle_of
from wallflower.service.pages.display import as_markup, plan_curve
from wallflower.service.pages.fields import EmptyFields, faults_of
from wallflower.service.pages.visit import BASE, Visit, page, place, problem_page, redirect, refusal_page
from wallflower.text import Message, t

_MAX_CACHED_TABLES: Final = 8  # tables that are kept
_ROWS: Final = 20_000  # records of one
_SECONDS: Final = 2.0  # that an answer may take, by public facts
_SHOWN: Final = 300  # characters of it


class Samples:
    """Made-up tables, one for each data set and size, and what questions say of them."""

    def __init__(self) -> None:
        self._tables: OrderedDict[tuple[str, int], Table] = OrderedDict()
        self._lock = Lock()

    def is_offered(self, query: Query[Any, Any], plan: Plan) -> bool:
        """Whether an answer can be made up in no time; never where a question rests on a release, or names a record."""
        n, dimension = plan.facts.get("n", 0), plan.facts.get("dimension", 1)
        if not 1 < n <= _ROWS or query.releases() or getattr(query, "identifier", None) is not None:
            return False
        return query.effort(n=n, dimension=dimension).seconds <= _SECONDS

    def words(self, name: str, schema: Schema, query: Query[Any, Any], plan: Plan) -> str | None:
        """How an answer could read; None where even made-up records do not suit."""
        try:
            said = sample_words(query, self._table(name, schema, plan.facts["n"]))
        except PrivacyError:
            return None
        return said if len(said) <= _SHOWN else f"{said[:_SHOWN].rpartition(' ')[0]} …"

    def _table(self, name: str, schema: Schema, n: int) -> Table:
        key = (name, n)
        with self._lock:
            found = self._tables.get(key)
            if found is None:
                found = self._tables[key] = make_up(schema, n, name)
                while len(self._tables) > _MAX_CACHED_TABLES:
                    self._tables.popitem(last=False)
            return found


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
    marks: list[tuple[float, Message]]
    curve: Markup | None
    tradeoff: Markup | None
    tradeoff_at: str
    offers_tradeoff: bool
    sample: str | None
    offers_sample: bool
    expected: list[tuple[str, Message]]


def routes() -> list[Route]:
    """The pages of a plan."""
    return [
        Route("/datasets/{dataset}/plan/{kind}", page(planner, computes=True)),
        Route("/datasets/{dataset}/plan/{kind}", page(plan_sent_form, computes=True), methods=["POST"]),
        *_payment_routes(),
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
    obstacle = obstacle_of(visit.core, visit.by, shown, question)
    table = table_of(visit, shown.name, question)
    entries = fields.entries(question, given, table)
    values = {entry.name: entry.value for entry in entries}
    told = outlook_of(visit, shown, question, values | {"force": given.get("force", "")})
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
        tables=any(parameter.hint == tuple[tuple[str, ...], ...] for parameter in list_parameters(question)),
        columns=[column["name"] for column in shown.facts["columns"]],
        slider=RANGE if told["outlook"] is None else told["outlook"].range,
        **told,
    )


def topic_of(visit: Visit) -> tuple[Question, DatasetView]:
    """What is asked of which data set, as the address says."""
    shown = visit.core.dataset(visit.by, visit.path("dataset"))
    try:
        return visit.core.question(visit.path("kind")), shown
    except ParameterError:
        raise Refusal(
            "not-found", t("There is no query of this name. The page of the data set lists them all.")
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
    own = [parameter.name for parameter in list_parameters(question)]
    known = {*LOSS_HELP, *own, *(f"{name}{OWN}" for name in own), "force"}
    return {name: value for name, value in form.items() if name in known and value}


def nonce_of(form: Mapping[str, str]) -> str:
    """Return what tells one form from another, no matter who sends it."""
    return "".join(letter for letter in form.get("nonce", "")[:40] if letter.isalnum() and letter.isascii())


def table_of(visit: Visit, dataset: str, question: Question) -> fields.Table:
    """What a form may offer: a steward may name any record, so none are listed for them."""
    records = () if visit.by.is_steward else visit.core.catalog.find(dataset).records
    return fields.Table(
        schema=visit.core.public_schema(dataset), records=records, released=bases(visit, dataset, question)
    )


def bases(visit: Visit, dataset: str, question: Question) -> list[Release[Any]]:
    """What was released of a data set that a question may build on, such as scales: to an analyst their own."""
    if not any(map(fields.takes_release, list_parameters(question))):
        return []
    return visit.core.releases(visit.by, dataset)


def read(visit: Visit, shown: DatasetView, question: Question, form: Mapping[str, str]) -> Query[Any, Any]:
    """The question that a form asks of a data set."""
    find: FindRelease = partial(visit.core.release, visit.by)
    return fields.read_form(question, form, find, visit.core.public_schema(shown.name))


def outlook_of(visit: Visit, shown: DatasetView, question: Question, form: Mapping[str, str]) -> dict[str, Any]:
    """The plan of what a form asks, or why there is none."""
    schema, chosen = visit.core.public_schema(shown.name), chosen_columns(question, form)
    told: dict[str, Any] = {"outlook": None, "words": None, "begun": True, "faults": {}, "advice": ADVICE}
    told |= {"is_beside": False}  # whether all that is wrong stands beside a field
    told |= {"asides": asides(list_parameters(question), form, schema, chosen), "force": form.get("force") == "yes"}
    try:
        query = read(visit, shown, question, form)
        plan = visit.core.plan(visit.by, shown.name, query)
        quote = visit.core.quote(visit.by, shown.name, query)
    except PrivacyError as refusal:
        words = problem_document(refusal)["detail"]
        begun = not isinstance(refusal, EmptyFields)
        faults = faults_of(refusal, question, words)
        known = {*LOSS_HELP, *(parameter.name for parameter in list_parameters(question))}
        is_beside = bool(faults) and faults.keys() <= known
        return told | {"words": words, "begun": begun, "faults": faults, "is_beside": is_beside}
    sample = _sample(visit, shown.name, query, plan) if "example" in visit.form else None
    return told | {"outlook": _outlook(visit, query, plan, quote, sample)}


def _sample(visit: Visit, name: str, query: Query[Any, Any], plan: Plan) -> str | None:
    """An answer to read before one is paid for, of made-up records."""
    samples = samples_of(visit)
    known = visit.core.public_schema(name)
    return samples.words(name, known, query, plan) or "" if samples.is_offered(query, plan) else None


def _outlook(visit: Visit, query: Query[Any, Any], plan: Plan, quote: Quote, sample: str | None) -> Outlook:
    chosen = next((option for option in plan.options if option.mechanism == plan.chosen), None)
    figures = {} if chosen is None else chosen.figures
    tradeoff, marks = _tradeoff(visit, query, plan), marks_of(plan, quote)
    booking = booking_note(quote.claim, quote.protection)  # `factor` says the same in the visitor's language
    return Outlook(
        query=query,
        plan=replace(plan, notes=tuple(note for note in plan.notes if note != booking)),
        letter=symbol(plan.cost),
        rows=list(rows_of(plan)),
        quote=quote,
        factor=conversion_text(quote),
        sure=None if quote.booked is None else certainty(quote.booked),
        range=(plan.curve[0][0], plan.curve[-1][0]) if len(plan.curve) > 1 and plan.curve[0][0] > 0 else RANGE,
        marks=marks,
        curve=plan_curve(plan, visit.catalogue, marks),
        tradeoff=_roc_curve(visit, tradeoff) if tradeoff else None,
        tradeoff_at=tradeoff.amount if tradeoff else "",
        sample=sample,
        offers_sample=sample is None and samples_of(visit).is_offered(query, plan),
        offers_tradeoff=curves_of(visit).find(query, plan.facts.get("dimension", 1)) is None,
        expected=[(words, rough(figures[name])) for name, words in plan.headings.items() if name in figures],
    )


def marks_of(plan: Plan, quote: Quote) -> list[tuple[float, Message]]:
    """Amounts of the loss that decide: from where on it is of use, and up to where the budget goes."""
    found = []
    if plan.smallest_useful_epsilon:
        found.append((float(plan.smallest_useful_epsilon), t("useful from here")))
    price = quote.price
    if price is not None and price.factor and quote.left.kind is not Kind.ZCDP and plan.cost.kind is not Kind.ZCDP:
        found.append((float(quote.left.amount / price.factor), t("all that is left")))
    return [(amount, words) for amount, words in found if amount > 0]


def _tradeoff(visit: Visit, query: Query[Any, Any], plan: Plan) -> Tradeoff | None:
    """The curve at about this loss, if it is known, or asked for: it can take seconds, so the plan comes first."""
    dimension, amount = plan.facts.get("dimension", 1), float(plan.cost.amount)
    curves = (curves_of(visit).make if "tradeoff" in visit.form else curves_of(visit).find)(query, dimension)
    return _nearest_curve(amount, curves) if curves and amount else None


def _nearest_curve(amount: float, curves: Sequence[Tradeoff]) -> Tradeoff:
    return min(curves, key=lambda curve: abs(math.log(float(curve.amount) / amount)))


def _roc_curve(visit: Visit, tradeoff: Tradeoff) -> Markup:
    said = t("detection rate against false alarm rate, at ε = {amount}", amount=tradeoff.amount)
    return as_markup(roc_chart(tradeoff.alarms, tradeoff.found).to_svg(said, visit.catalogue.translate))


def curves_of(visit: Visit) -> Tradeoffs:
    """The trade-off curves that are known."""
    curves: Tradeoffs = visit.request.app.state.tradeoffs
    return curves


def samples_of(visit: Visit) -> Samples:
    """The made-up tables of the service."""
    samples: Samples = visit.request.app.state.samples
    return samples


def _payment_routes() -> list[Route]:
    """The pages of a question on its way to be paid."""
    return [
        Route("/datasets/{dataset}/confirm/{kind}", page(confirmation, computes=True)),
        Route("/datasets/{dataset}/confirm/{kind}", page(confirm, computes=True), methods=["POST"]),
        Route("/datasets/{dataset}/ask/{kind}", page(ask), methods=["POST"]),
        Route("/jobs/{job}", page(job)),
    ]


def confirm(visit: Visit) -> Response:
    """From a form to the page that asks whether it is meant: its address holds the form, so that Back and a reload
    keep both the settings and the one payment."""
    question, shown = topic_of(visit)
    told = outlook_of(visit, shown, question, visit.form)
    if told["outlook"] is None:
        return show_form(visit, visit.form, sent=True)
    given = settings_in(question, visit.form) | {"nonce": nonce_of(visit.form) or new_id()}
    return RedirectResponse(f"{confirm_at(shown, question)}?{urlencode(given)}", 303)


def confirmation(visit: Visit) -> Response:
    """What would be paid, from which account, and what would be left."""
    question, shown = topic_of(visit)
    given = read_address(visit)
    told = outlook_of(visit, shown, question, given)
    if told["outlook"] is None:
        return show_form(visit, given, sent=True)
    typed = settings_in(question, given)
    return visit.render(
        "payment.html",
        question=question,
        shown=shown,
        settings=list(settings_of(visit, shown, question, given)),
        typed=typed | {"nonce": nonce_of(given) or new_id()},
        again=f"{plan_at(shown, question)}?{urlencode(typed)}",
        **told,
    )


async def ask(visit: Visit) -> Response:
    """Pay and answer. A form that is sent twice is paid once; while another process computes its answer, the page of
    the release waits for it."""
    question, shown = await run_sync(topic_of, visit)
    caller, core, name = visit.by, visit.core, shown.name
    try:
        query = await run_sync(read, visit, shown, question, visit.form)
        key = form_key(visit, query)
        admitted = await run_sync(partial(core.admit, force=is_ticked(visit)), caller, name, query, key)
        work, later = partial(core.ask, admitted), admitted.is_long
        if query.is_delivered_once:
            return await run_sync(_list_page, visit, await visit.jobs.wait(work, caller))
        found = await visit.jobs.answer(work, caller, name, query.kind, later=later)
    except AnswerPending as pending:
        return redirect(f"/releases/{pending.charge}")
    except PrivacyError as refusal:
        again = f"{plan_at(shown, question)}?{urlencode(settings_in(question, visit.form))}"
        return refusal_page(visit, refusal, again=again, dataset=name, question=question.kind)
    return redirect(f"/releases/{found.ledger_id}" if isinstance(found, Release) else f"/jobs/{found.id}")


def _list_page(visit: Visit, made: Release[Any]) -> Response:
    """A value that is delivered once, on the one page that answers its form; a form that is sent again finds the rest
    of the release."""
    if made.is_withheld:
        return redirect(f"/releases/{made.ledger_id}")
    rows = rows_of_value(made.value, None)
    response = visit.render("list.html", made=made, headings=list(rows[0]) if rows else [], rows=rows)
    response.headers["cache-control"] = "no-store"
    return response


def job(visit: Visit) -> Response:
    """A question on its way: the page looks again by itself until there is an answer."""
    found = visit.jobs.find(visit.by, visit.path("job"))
    if found.release is not None:
        return redirect(f"/releases/{found.release}")
    if found.problem is not None:
        return problem_page(visit, found.problem, dataset=found.dataset)
    return visit.render("job.html", job=found)


def is_ticked(visit: Visit) -> bool:
    """Return whether the box was ticked that asks for an answer that is mostly noise."""
    return visit.form.get("force") == "yes"


def confirm_at(shown: DatasetView, question: Question) -> str:
    """Where it is asked whether a question is meant."""
    return BASE + place("datasets", shown.name, "confirm", question.kind)


def settings_of(
    visit: Visit, shown: DatasetView, question: Question, given: Mapping[str, str]
) -> list[tuple[str, str]]:
    """What was set, in words and units, without the loss."""
    entries = fields.entries(question, given, table_of(visit, shown.name, question))
    stated = [entry for entry in entries if given.get(entry.name) and not entry.away and entry.name not in LOSS_HELP]
    return [(entry.label, f"{entry.value} {entry.unit}".strip()) for entry in stated]


def form_key(visit: Visit, query: Query[Any, Any]) -> str:
    """One key for one form and one question: sent twice, it is paid once; changed, it is another."""
    asked = hashlib.sha256(canonical(query.to_json()).encode("ascii")).hexdigest()[:16]
    return f"{FORM_KEY_PREFIX}{nonce_of(visit.form) or new_id()}-{asked}"
