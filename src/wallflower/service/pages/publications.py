"""Public releases: pages and files that need no token, and the forms by which a steward publishes and withdraws.

A citation leads to `/public/NUMBER` for good: to the release, or to the notice that it was withdrawn. The page for
frames of other sites is the only one that may be framed. It has no form; like the files, it sets no cookie and reads no
session.
"""

from __future__ import annotations

from html import escape
from typing import Any, Final

from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from wallflower.errors import PrivacyError
from wallflower.release import Release
from wallflower.release.answer import citation, day_words
from wallflower.service.api.responses import FiniteJSONResponse
from wallflower.service.core.problems import MEDIA, Refusal, make_document, problem_document
from wallflower.service.core.publications import MAX_REASON_LETTERS, Publication, public_document
from wallflower.service.pages.display import MEDIA_TYPES, Display, Displays, Layout, is_brief
from wallflower.service.pages.language import environment_of
from wallflower.service.pages.sign_in import act_route
from wallflower.service.pages.visit import BASE, EMBED_POLICY, FILE_POLICY, Visit, entry_number, page, redirect
from wallflower.text import t

_GONE: Final = 410
_MAX_SEARCH_LETTERS: Final = 200
_FILE_HEADERS: Final = {"access-control-allow-origin": "*"}  # a program on any site may read what is public


def routes() -> list[Route]:
    """Pages and files for everybody, and forms for stewards."""
    return [
        Route("/public", page(show_publications, "anybody")),
        Route("/public.json", page(publications_json, "public")),
        Route("/public/{number}.json", page(publication_json, "public")),
        Route("/public/{number}.csv", page(publication_csv, "public")),
        Route("/public/{number}.svg", page(publication_svg, "public")),
        Route("/public/{number}/embed", page(embed, "public")),
        Route("/public/{number}", page(show_publication, "anybody")),
        Route("/releases/{number}/publish", page(confirm_publication, "steward")),
        act_route("/releases/{number}/publish", publish),
        Route("/releases/{number}/withdraw", page(confirm_withdrawal, "steward")),
        act_route("/releases/{number}/withdraw", withdraw),
    ]


def show_publications(visit: Visit) -> Response:
    """Every public release with its date and method, those that were withdrawn too."""
    search = visit.request.query_params.get("search", "").strip()[:_MAX_SEARCH_LETTERS]
    publications = visit.core.publications.all()
    rows = [_readable_part(visit, publication) for publication in publications]
    listed = [row for row in rows if _matches(visit, *row, search)]
    return visit.render("publications.html", all=publications, listed=listed, search=search)


def publications_json(visit: Visit) -> Response:
    """The same list for programs."""
    rows = [_row(visit, *_readable_part(visit, publication)) for publication in visit.core.publications.all()]
    return FiniteJSONResponse({"releases": rows}, headers=_FILE_HEADERS)


def show_publication(visit: Visit) -> Response:
    """A public release, or the notice that it was withdrawn."""
    publication, made = _find(visit)
    if made is None:
        return visit.render("withdrawn.html", _GONE, publication=publication)
    shown, link = _display(visit, made), _link(visit, publication)
    publisher = visit.core.settings.office.name
    return visit.render(
        "publication.html",
        publication=publication,
        made=made,
        shown=shown,
        brief=is_brief(made.value),
        day=day_words(made),
        link=link,
        citation=citation(made, publisher=publisher, link=link),
    )


def publication_json(visit: Visit) -> Response:
    """What is public of a release, for programs."""
    publication, made = _find(visit)
    if made is None:
        return _gone_document(publication)
    body = public_document(made) | {"published": publication.published_on, "link": _link(visit, publication)}
    return FiniteJSONResponse(body, headers=_FILE_HEADERS)


def publication_csv(visit: Visit) -> Response:
    """The value as a table."""
    publication, made = _find(visit)
    if made is None:
        return _gone_document(publication)
    headers = _FILE_HEADERS | {"content-disposition": f'attachment; filename="release-{publication.number}.csv"'}
    return Response(made.to_csv(), media_type="text/csv; charset=utf-8", headers=headers)


def publication_svg(visit: Visit) -> Response:
    """The picture, or the notice as a picture: a page that shows it must not go on as if nothing had happened."""
    publication, made = _find(visit)
    headers = _FILE_HEADERS | {"content-security-policy": FILE_POLICY}
    if made is None:
        return Response(_notice_svg(visit, publication), _GONE, headers, MEDIA_TYPES["svg"])
    return Response(_displays(visit).file(made, Layout(form="svg")), media_type=MEDIA_TYPES["svg"], headers=headers)


def embed(visit: Visit) -> Response:
    """The release for a frame on another site."""
    publication, made = _find(visit)
    text = (
        environment_of(visit.catalogue.code)
        .get_template("embed.html")
        .render(
            base=BASE,
            language=visit.catalogue.code,
            office=visit.core.settings.office,
            publication=publication,
            made=made,
            brief=made is not None and is_brief(made.value),
            shown=None if made is None else _display(visit, made),
            link=_link(visit, publication),
        )
    )
    return HTMLResponse(text, _GONE if made is None else 200, {"content-security-policy": EMBED_POLICY})


def confirm_publication(visit: Visit) -> Response:
    """What the public will see, before it does."""
    made = _own_release(visit)
    visit.core.publications.require_publishable(made)
    return _confirmation(visit, made)


def publish(visit: Visit) -> Response:
    """Open a release to the public."""
    publication = visit.core.publications.publish(visit.by, _number(visit))
    return redirect(f"/public/{publication.number}")


def confirm_withdrawal(visit: Visit) -> Response:
    """What a withdrawal does, and the reason that the public will read."""
    return _confirmation(visit, _own_release(visit), is_withdrawal=True)


def withdraw(visit: Visit) -> Response:
    """Withdraw a public release, with a notice."""
    made = _own_release(visit)
    try:
        publication = visit.core.publications.withdraw(visit.by, made.ledger_id, visit.form.get("reason", ""))
    except PrivacyError as refusal:
        stated = problem_document(refusal)
        return _confirmation(visit, made, stated["status"], is_withdrawal=True, words=stated["detail"])
    return redirect(f"/public/{publication.number}")


def _confirmation(
    visit: Visit, made: Release[Any], status: int = 200, *, is_withdrawal: bool = False, words: str | None = None
) -> Response:
    number = made.ledger_id
    title = (
        t("Withdraw release {number}?", number=number)
        if is_withdrawal
        else t("Publish release {number}?", number=number)
    )
    return visit.render(
        "publish.html",
        status,
        made=made,
        title=visit.catalogue.translate(title),
        is_withdrawal=is_withdrawal,
        words=words,
        given={"reason": visit.form.get("reason", "")},
        max_letters=MAX_REASON_LETTERS,
    )


def _number(visit: Visit) -> int:
    return entry_number(visit.path("number")) or 0


def _own_release(visit: Visit) -> Release[Any]:
    return visit.core.release(visit.by, _number(visit))


def _find(visit: Visit) -> tuple[Publication, Release[Any] | None]:
    return visit.core.publications.release(_number(visit))


def _readable_part(visit: Visit, publication: Publication) -> tuple[Publication, Release[Any] | None]:
    """Return a publication with its release, if the public may see it."""
    try:
        return visit.core.publications.release(publication.number)
    except Refusal:
        return publication, None


def _matches(visit: Visit, publication: Publication, made: Release[Any] | None, search: str) -> bool:
    """Return whether every word that is searched for occurs in what the list says of a publication."""
    texts = [str(publication.number), publication.dataset, publication.reason, publication.published_on]
    if made is not None:
        texts += [visit.catalogue.translate(made.question), made.kind, made.mechanism]
    known = " ".join(texts).casefold()
    return all(word in known for word in search.casefold().split())


def _row(visit: Visit, publication: Publication, made: Release[Any] | None) -> dict[str, Any]:
    about: dict[str, Any] = {
        "number": publication.number,
        "dataset": publication.dataset,
        "published": publication.published_on,
        "link": _link(visit, publication),
    }
    if made is None:
        return about | {"withdrawn": publication.withdrawn_on, "reason": publication.reason}
    return about | {"question": made.question, "mechanism": made.mechanism, "loss": made.guarantee.loss.exact_text}


def _gone_document(publication: Publication) -> Response:
    words = t(
        "Release {number} was withdrawn on {withdrawn}. Reason: {reason}",
        number=publication.number,
        withdrawn=publication.withdrawn_on,
        reason=publication.reason,
    )
    body = make_document("withdrawn", words) | {"withdrawn": publication.withdrawn_on, "reason": publication.reason}
    return FiniteJSONResponse(body, _GONE, _FILE_HEADERS, MEDIA)


def _notice_svg(visit: Visit, publication: Publication) -> str:
    words = t(
        "Release {number} was withdrawn on {withdrawn}.",
        number=publication.number,
        withdrawn=publication.withdrawn_on,
    )
    text = escape(visit.catalogue.translate(words))
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="640" height="120" viewBox="0 0 640 120" role="img">'
        f'<title>{text}</title><rect width="640" height="120" fill="#fbeceb"/>'
        f'<text x="320" y="66" text-anchor="middle" font-family="sans-serif" font-size="18" fill="#a3261b">'
        f"{text}</text>"
        "</svg>"
    )


def _link(visit: Visit, publication: Publication) -> str:
    return f"{visit.origin}{BASE}/public/{publication.number}"


def _displays(visit: Visit) -> Displays:
    displays: Displays = visit.request.app.state.displays
    return displays


def _display(visit: Visit, made: Release[Any]) -> Display:
    return _displays(visit).of(made, visit.catalogue)
