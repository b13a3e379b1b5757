"""The page of a release, as an office would sign it, and the files of it that are taken along."""

from __future__ import annotations

from datetime import datetime
from typing import Any, get_args

from starlette.responses import Response
from starlette.routing import Route

from wallflower.ledger.chain import Entry
from wallflower.query import Plan
from wallflower.release import Release
from wallflower.release.answer import citation, day_words
from wallflower.service.api.responses import FiniteJSONResponse
from wallflower.service.api.routes.analyst import release_arrow
from wallflower.service.core.clock import moment
from wallflower.service.core.problems import Refusal
from wallflower.service.pages import fields
from wallflower.service.pages.display import MEDIA_TYPES, WIDTHS_CM, Displays, Format, Layout, is_brief
from wallflower.service.pages.planner import bases
from wallflower.service.pages.visit import BASE, Visit, entry_number, page
from wallflower.text import t


def routes() -> list[Route]:
    """The page of a release, and its files."""
    return [
        Route("/releases/{number}", page(release, computes=True)),
        Route("/releases/{number}/json", page(release_json)),
        Route("/releases/{number}/csv", page(release_csv)),
        Route("/releases/{number}/arrow", page(arrow)),
        Route("/releases/{number}/picture/{form}", page(picture, computes=True)),
    ]


def release(visit: Visit) -> Response:
    """One release: the value, its picture, what was promised, how to cite it and how to ask the same again."""
    pending = visit.core.pending_charge(visit.by, entry_number(visit.path("number")) or 0)
    if pending is not None:
        return _waiting_page(visit, pending)
    made = _release(visit)
    shown = _displays(visit).of(made, visit.catalogue)
    publication = visit.core.publications.find(made.ledger_id)
    is_public = publication is not None and publication.withdrawn is None
    page_place = f"{BASE}/{'public' if is_public else 'releases'}/{made.ledger_id}"
    link = f"{visit.origin}{page_place}"
    return visit.render(
        "release.html",
        made=made,
        brief=is_brief(made.value) and not made.is_withheld,
        publication=publication,
        obstacle=visit.core.publications.obstacle(made),
        page_place=page_place,
        widths=WIDTHS_CM,
        shown=shown,
        day=day_words(made),
        link=link,
        citation=citation(made, publisher=_publisher(visit), link=link),
        texts=_texts(visit, made, shown.plan),
    )


def _waiting_page(visit: Visit, charge: Entry) -> Response:
    """The page of a release that is not recorded yet: it reloads itself until there is an answer.

    Whether the answer is being computed or was lost with its process cannot be known here, so after the time that
    every question gets (`patience`, and `grace` of a process that ends) the page says both.
    """
    limit = visit.core.settings.async_after_seconds + visit.core.settings.shutdown_seconds
    is_overdue = (moment() - datetime.fromisoformat(charge.time)).total_seconds() > limit
    return visit.render("pending.html", 202, charge=charge, is_overdue=is_overdue)


def release_json(visit: Visit) -> Response:
    """The release, as a program would get it."""
    made = _release(visit)
    return FiniteJSONResponse(made.to_dict(), headers=_attachment_headers(made, "json"))


def release_csv(visit: Visit) -> Response:
    """The value as a table: a row for each part of it, with its interval where it has one."""
    made = _release(visit)
    return Response(made.to_csv(), media_type="text/csv; charset=utf-8", headers=_attachment_headers(made, "csv"))


def arrow(visit: Visit) -> Response:
    """The release as an Arrow stream."""
    return release_arrow(_release(visit).ledger_id, visit.by, visit.core)


def picture(visit: Visit) -> Response:
    """The picture as a file, with the width and the panels that the address asks for."""
    made, form = _release(visit), visit.path("form")
    asked = visit.request.query_params
    width = asked.get("width", "")
    if form not in get_args(Format) or width not in ("", *WIDTHS_CM):
        raise Refusal(
            "not-found",
            t(
                "A picture is a file of svg, png or pdf, {widths} cm wide or as wide as it needs. Choose one of them.",
                widths=", ".join(WIDTHS_CM),
            ),
        )
    known: Format = "svg" if form == "svg" else "pdf" if form == "pdf" else "png"
    layout = Layout(form=known, width_cm=WIDTHS_CM.get(width), with_curve="curve" in asked)
    body = _displays(visit).file(made, layout)
    return Response(body, media_type=MEDIA_TYPES[known], headers=_attachment_headers(made, known))


def _release(visit: Visit) -> Release[Any]:
    return visit.core.release(visit.by, entry_number(visit.path("number")) or 0)


def _displays(visit: Visit) -> Displays:
    displays: Displays = visit.request.app.state.displays
    return displays


def _attachment_headers(made: Release[Any], suffix: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="release-{made.ledger_id}.{suffix}"'}


def _publisher(visit: Visit) -> str:
    """Who answers for the statistic, if the settings say so."""
    return visit.core.settings.office.name


def _texts(visit: Visit, made: Release[Any], plan: Plan | None) -> tuple[str, str] | None:
    """The same question from a program and from a shell."""
    question = next((one for one in visit.core.questions if one.label == made.label), None)
    if question is None or plan is None:
        return None
    query = question.from_json(made.parameters)
    given = fields.restate(query, bases(visit, made.dataset, type(query)), force=not plan.useful)
    place = (query.kind, given, visit.origin, made.dataset)
    return fields.python_text(*place), fields.command_text(*place)
