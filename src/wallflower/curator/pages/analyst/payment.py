"""Before anything is paid: what is asked, which account pays, what is left afterwards. Then the question is asked, and
whoever has to wait for the answer sees its job."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import urlencode

from anyio.to_thread import run_sync
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from wallflower.curator.desk.access.tokens import new_id
from wallflower.curator.desk.datasets.views import DatasetView
from wallflower.curator.desk.desk import FORM_KEY
from wallflower.curator.pages.analyst import planner
from wallflower.curator.pages.forms import fields
from wallflower.curator.pages.visitors.visits import BASE, Visit, page, place, problem_page, refusal_page, to
from wallflower.errors import AnswerPending, PrivacyError
from wallflower.ledger.chain import canonical
from wallflower.query import Query
from wallflower.query.forms import LOSS_HELP, Question
from wallflower.release import Release


def routes() -> list[Route]:
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
    question, shown = planner.topic_of(visit)
    told = planner.outlook_of(visit, shown, question, visit.form)
    if told["outlook"] is None:
        return planner.show_form(visit, visit.form, sent=True)
    given = planner.settings_in(question, visit.form) | {"nonce": planner.nonce_of(visit.form) or new_id()}
    return RedirectResponse(f"{confirm_at(shown, question)}?{urlencode(given)}", 303)


def confirmation(visit: Visit) -> Response:
    """What would be paid, from which account, and what would be left."""
    question, shown = planner.topic_of(visit)
    given = planner.read_address(visit)
    told = planner.outlook_of(visit, shown, question, given)
    if told["outlook"] is None:
        return planner.show_form(visit, given, sent=True)
    typed = planner.settings_in(question, given)
    return visit.render(
        "payment.html",
        question=question,
        shown=shown,
        settings=list(settings_of(visit, shown, question, given)),
        typed=typed | {"nonce": planner.nonce_of(given) or new_id()},
        again=f"{planner.plan_at(shown, question)}?{urlencode(typed)}",
        **told,
    )


async def ask(visit: Visit) -> Response:
    """Pay and answer. A form that is sent twice is paid once; while another process computes its answer, the page of
    the release waits for it."""
    question, shown = await run_sync(planner.topic_of, visit)
    caller, desk, name = visit.by, visit.desk, shown.name
    try:
        query = await run_sync(planner.read, visit, shown, question, visit.form)
        key = form_key(visit, query)
        admitted = await run_sync(partial(desk.admit, anyway=is_ticked(visit)), caller, name, query, key)
        work, later = partial(desk.ask, admitted), admitted.is_long
        found = await visit.jobs.answer(work, caller, name, query.kind, later=later)
    except AnswerPending as pending:
        return to(f"/releases/{pending.charge}")
    except PrivacyError as refusal:
        again = f"{planner.plan_at(shown, question)}?{urlencode(planner.settings_in(question, visit.form))}"
        return refusal_page(visit, refusal, again=again, dataset=name, question=question.kind)
    return to(f"/releases/{found.ledger_id}" if isinstance(found, Release) else f"/jobs/{found.id}")


def job(visit: Visit) -> Response:
    """A question on its way: the page looks again by itself until there is an answer."""
    found = visit.jobs.find(visit.by, visit.path("job"))
    if found.release is not None:
        return to(f"/releases/{found.release}")
    if found.problem is not None:
        return problem_page(visit, found.problem, dataset=found.dataset)
    return visit.render("job.html", job=found)


def is_ticked(visit: Visit) -> bool:
    """Whether the box was ticked that asks for an answer of no use."""
    return visit.form.get("anyway") == "yes"


def confirm_at(shown: DatasetView, question: Question) -> str:
    """Where it is asked whether a question is meant."""
    return BASE + place("datasets", shown.name, "confirm", question.kind)


def settings_of(
    visit: Visit, shown: DatasetView, question: Question, given: Mapping[str, str]
) -> list[tuple[str, str]]:
    """What was set, in words and units, without the loss."""
    entries = fields.entries(question, given, planner.table_of(visit, shown.name, question))
    stated = [entry for entry in entries if given.get(entry.name) and not entry.away and entry.name not in LOSS_HELP]
    return [(entry.label, f"{entry.value} {entry.unit}".strip()) for entry in stated]


def form_key(visit: Visit, query: Query[Any, Any]) -> str:
    """One key for one form and one question: sent twice, it is paid once; changed, it is another."""
    asked = hashlib.sha256(canonical(query.to_json()).encode("ascii")).hexdigest()[:16]
    return f"{FORM_KEY}{planner.nonce_of(visit.form) or new_id()}-{asked}"
