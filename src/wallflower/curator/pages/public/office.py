"""Pages that are open to everybody: who runs the service, its statements, and what programs can call."""

from __future__ import annotations

from starlette.responses import Response
from starlette.routing import Route

from wallflower.curator.desk.problems import Refusal
from wallflower.curator.pages.public.reference import groups_of
from wallflower.curator.pages.visitors.visits import Visit, page, to
from wallflower.curator.pages.words.environments import LANGUAGES


def routes() -> list[Route]:
    """What nobody has to sign in for."""
    return [
        Route("/about", page(about, "anybody")),
        Route("/accessibility", page(accessibility, "anybody")),
        Route("/privacy", page(privacy, "anybody")),
        Route("/api", page(reference, "anybody")),
        Route("/logo", page(logo, "anybody")),
        Route("/language", page(choose_language, "anybody"), methods=["POST"]),
    ]


def about(visit: Visit) -> Response:
    """Whose service it is, and whom to write to."""
    return visit.render("about.html")


def accessibility(visit: Visit) -> Response:
    """What the office says of how its pages can be used, or what is known of them."""
    return visit.render("accessibility.html", parts=visit.desk.settings.office.statement("accessibility"))


def privacy(visit: Visit) -> Response:
    """What is promised to the people in the data, and what the service keeps of its visitors."""
    return visit.render("privacy.html", parts=visit.desk.settings.office.statement("privacy"))


def reference(visit: Visit) -> Response:
    """What programs can call, from the same description that programs read."""
    return visit.render("api.html", groups=groups_of(visit.app.openapi()), origin=visit.origin)


def choose_language(visit: Visit) -> Response:
    """Keep a language, and go back to the page it was chosen on; nowhere else."""
    back = visit.request.query_params.get("back", "")[:2000]
    found = to(back if back.startswith("/") and back.isprintable() else "/")
    chosen = visit.form.get("language", "")
    if chosen in LANGUAGES:
        visit.speak(found, chosen)
    return found


def logo(visit: Visit) -> Response:
    """The logo of the office."""
    found = visit.desk.settings.office.logo_bytes()
    if found is None:
        raise Refusal("not-found", "This office has no logo.")
    content, media = found
    return Response(content, media_type=media, headers={"cache-control": "private, max-age=3600"})
