"""Where somebody wanted to go before they were asked to sign in: it is kept, and only places of ours are gone to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote, urlencode, urlsplit

from starlette.requests import Request
from starlette.routing import Match

from wallflower.curator.api.callers import PAGES

NEXT: Final = "next"
TYPED: Final = "typed"  # ends the address of a page whose form was sent after the session had ended
_LONGEST: Final = 8000
_OUTSIDE: Final = ("/sign-in", "/sign-out", "/static")
_STEPS: Final = {
    "plan": "plan",
    "ask": "confirm",
    "confirm": "confirm",
}  # from where a form is sent to where it is seen
_QUESTION: Final = re.compile(rf"^{PAGES}/datasets/[^/]+/({'|'.join(_STEPS)})/[^/]+$")


def safe_place(text: str) -> str:
    """The place a text names, if it is one of our own pages; the first page otherwise.

    >>> safe_place("/ui/releases?before=3"), safe_place("https://evil.test/ui/"), safe_place("/ui/../../etc")
    ('/ui/releases?before=3', '/ui/', '/ui/')
    """
    first = f"{PAGES}/"
    if len(text) > _LONGEST or not text.startswith(first) or not text.isprintable() or "\\" in text:
        return first
    try:
        parts = urlsplit(text)
    except ValueError:
        return first
    inner = unquote(parts.path).removeprefix(PAGES)
    if parts.scheme or parts.netloc or "//" in inner or ".." in inner.split("/") or inner.startswith(_OUTSIDE):
        return first
    return parts._replace(fragment=TYPED if parts.fragment == TYPED else "").geturl()


def wanted_place(request: Request, form: Mapping[str, str]) -> str:
    """Where a request wanted to go: a page as it is, a question with what was typed, or the page that has the form."""
    path = str(request.scope.get("raw_path", b"").decode("ascii", "replace")) or request.url.path
    if request.method != "POST":
        query = request.url.query
        return safe_place(f"{path}?{query}" if query else path)
    found = _QUESTION.match(path)
    if found:
        kept = {name: value for name, value in form.items() if name not in ("proof", "tradeoff", "example") and value}
        steps = path.split("/")
        steps[-2] = _STEPS[found[1]]
        place = f"{'/'.join(steps)}?{urlencode(kept)}"
        return safe_place(place if kept and len(place) <= _LONGEST else "/".join(steps))
    return safe_place(f"{_page_of(request, path)}#{TYPED}")


def sign_in_at(place: str) -> str:
    """The page to sign in at, which leads there."""
    first = f"{PAGES}/sign-in"
    return first if place == f"{PAGES}/" else f"{first}?{urlencode({NEXT: place})}"


def _page_of(request: Request, path: str) -> str:
    """The nearest page above that can be looked at."""
    inner = path.removeprefix(PAGES)
    while inner:
        scope = {**request.scope, "method": "GET", "path": PAGES + unquote(inner), "root_path": PAGES}
        if any(route.matches(scope)[0] is Match.FULL for route in request.app.routes):
            return PAGES + inner
        inner = inner.rpartition("/")[0]
    return f"{PAGES}/"
