"""Somebody at the pages without a real browser: a cookie, forms that are sent, and what a page says."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import unescape
from html.parser import HTMLParser
from urllib.parse import urlencode

from served import Answer, Caller, Service

COUNT = {"neighbours": "3", "radius": "0.5", "epsilon": "0.01", "force": "yes"}
EVIL = "<img src=x onerror=alert(1)>\"'&"


@dataclass
class Browser:
    """Somebody at the pages, with a cookie."""

    service: Service
    cookie: str = ""
    proof: str = ""
    name: str = "wallflower"
    always: dict[str, str] = field(default_factory=dict)
    last: Answer = field(default_factory=lambda: Answer(0, {}, b""))

    def get(self, path: str, **headers: str) -> Answer:
        return self._send("GET", path, None, headers)

    def post(
        self, path: str, form: dict[str, str] | None = None, *, proof: str | None = None, **headers: str
    ) -> Answer:
        given = {"proof": self.proof if proof is None else proof, **(form or {})}
        headers.setdefault("content_type", "application/x-www-form-urlencoded")
        return self._send("POST", path, urlencode(given).encode(), headers)

    def sign_in(self, token: str | None) -> Browser:
        self.get("/ui/sign-in")
        assert self.post("/ui/sign-in", {"token": str(token)}).status == 303
        self.get("/ui/")
        return self

    def _send(self, method: str, path: str, raw: bytes | None, headers: dict[str, str]) -> Answer:
        if self.cookie:
            headers["cookie"] = f"{self.name}={self.cookie}"
        self.last = Caller(self.service.url)(method, path, raw=raw, **self.always, **headers)
        kept = re.match(r"((?:__Host-)?wallflower)=([^;]*)", self.last.headers.get("set-cookie", ""))
        self.name, self.cookie = (kept[1], kept[2].strip('"')) if kept else (self.name, self.cookie)
        found = re.search(r'name="proof" value="([0-9a-f]+)"', text(self.last))
        self.proof = found[1] if found else self.proof
        return self.last


def text(answer: Answer) -> str:
    return answer.content.decode("utf-8", "replace")


def words(answer: Answer) -> str:
    return " ".join(unescape(text(answer)).split())


class Tags(HTMLParser):
    """Every tag of a page with its attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def assert_nothing_inline(answer: Answer) -> None:
    for tag, attributes in Tags(text(answer)).found:
        assert tag not in ("style", "iframe", "object", "embed", "base")
        assert tag != "img" or str(attributes["src"]).partition("?")[0] == "/ui/static/icon.svg"
        assert tag != "script" or str(attributes["src"]).startswith("/ui/static/")
        assert not [name for name in attributes if name == "style" or name.startswith("on")], (tag, attributes)
        for name in ("src", "href", "action", "formaction", "xlink:href"):
            assert (attributes.get(name) or "/")[0] in "/#", (tag, attributes)
