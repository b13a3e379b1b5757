"""The page of proposals: changes of budgets that wait for a second steward."""

from __future__ import annotations

from starlette.responses import Response
from starlette.routing import Route

from wallflower.curator.desk.budgets.requests import Requests
from wallflower.curator.pages.steward.acts import act_route, done_words
from wallflower.curator.pages.visitors.visits import Visit, page, to


def routes() -> list[Route]:
    """The page of proposals, and the two answers to one."""
    return [
        Route("/proposals", page(show_proposals, "reader")),
        act_route("/proposals/{proposal}/confirm", confirm_proposal),
        act_route("/proposals/{proposal}/decline", decline_proposal),
    ]


def show_proposals(visit: Visit) -> Response:
    """The proposals that wait, and those that were decided."""
    proposals = visit.desk.proposals.all()
    return visit.render(
        "proposals.html",
        waiting=[proposal for proposal in proposals if proposal.waits],
        decided=[proposal for proposal in proposals if not proposal.waits],
        done=done_words(visit),
    )


def confirm_proposal(visit: Visit) -> Response:
    """Confirm what another steward proposed."""
    requests: Requests = visit.app.state.requests
    proposal, entry = visit.desk.confirm_proposal(visit.by, visit.path("proposal"))
    requests.settle_proposal(visit.by, proposal, entry)
    return to("/proposals?done=confirmed")


def decline_proposal(visit: Visit) -> Response:
    """Refuse what another steward proposed, or take an own proposal back."""
    visit.desk.decline_proposal(visit.by, visit.path("proposal"))
    return to("/proposals?done=declined")
