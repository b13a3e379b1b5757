"""More people of a soak: visitors of the pages with sessions, a registrar of files, and senders of hostile heads."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlencode

from soak_service import STREAM, TIMEOUT, WIDE, Answer
from soak_traffic import EPSILON, PAUSE, Person, Scene

FORM = {"neighbours": "3", "radius": "0.5", "epsilon": EPSILON, "force": "yes"}
_COOKIE = re.compile(r"wallflower=([^;]+)")
_PROOF = re.compile(rb'name="proof" value="([0-9a-f]+)"')
_FLOOD_CALLS = 12
_REGISTERED_ROWS = 20


class Visitor(Person):
    """Signs in on the pages, asks by forms on any machine, sends some twice, floods the planner, and signs out."""

    def __init__(self, scene: Scene, name: str, seed: str) -> None:
        super().__init__(scene, name, seed)
        self.cookie, self.proof = "", ""

    def acts(self) -> Sequence[Callable[[], None]]:
        return (self.ask,) * 4 + (self.ask_twice, self.ask_twice, self.look_around, self.flood_planner, self.sign_out)

    def live(self) -> None:
        self.sign_in()
        super().live()

    def sign_in(self) -> None:
        """Sign in, as often as it takes while machines are killed."""
        while not self.scene.is_over:
            self.cookie = ""
            page = self.visit("sign-in page", "GET", "/ui/sign-in", "200")
            if page is None or page.status != 200:
                continue
            answer = self.visit("sign in", "POST", "/ui/sign-in", "303", form={"token": self.token})
            if answer is not None and answer.status == 303 and self.visit("home", "GET", "/ui/", "200") is not None:
                return

    def ask(self) -> None:
        self._ask_by_form("form", self._new_form())

    def ask_twice(self) -> None:
        """Send one form twice at once, to whichever machines: charged once, and both lead to the same release."""
        form = self._new_form()
        with ThreadPoolExecutor(2) as pool:
            charges = set(pool.map(lambda _: self._ask_by_form("form twice", form), range(2))) - {None}
        if len(charges) > 1:
            self._surprise("form twice", f"two charges, {sorted(filter(None, charges))}")

    def look_around(self) -> None:
        for path in ("/ui/", f"/ui/datasets/{WIDE}", "/ui/releases", "/ui/requests", f"/ui/datasets/{WIDE}/plan/count"):
            self.visit("page", "GET", path, "200")

    def flood_planner(self) -> None:
        """Ask for many trade-off curves at once, each of which takes processor time."""

        def draw_curve(number: int) -> None:
            form = {"threshold": f"{2 + self.turn / 1000 + number / 100_000}", "low": "-5", "high": "5"}
            form |= {"variance": "1", "epsilon": "1", "tradeoff": "1"}
            self.visit("trade-off", "POST", f"/ui/datasets/{STREAM}/plan/watch", "200", form=form)

        with ThreadPoolExecutor(_FLOOD_CALLS) as pool:
            list(pool.map(draw_curve, range(_FLOOD_CALLS)))

    def sign_out(self) -> None:
        """Sign out; the cookie opens no machine any more."""
        before = self.cookie
        answer = self.visit("sign out", "POST", "/ui/sign-out", "303", form={})
        if answer is not None and answer.status == 303:
            self.cookie = before
            again = self.visit("after sign-out", "GET", "/ui/releases", "303")
            if again is not None and again.status == 303 and "sign-in" not in again.headers.get("location", ""):
                self._surprise("after sign-out", "the session goes on")
        self.sign_in()

    def visit(
        self, act: str, method: str, path: str, *expected: str, form: dict[str, str] | None = None
    ) -> Answer | None:
        """One request of a browser: its cookie goes along and comes back."""
        body = None if form is None else urlencode({"proof": self.proof, **form}).encode()
        more = {"content_type": "application/x-www-form-urlencoded"} if form is not None else {}
        if self.cookie:
            more["cookie"] = f"wallflower={self.cookie}"
        answer = self.call(act, method, path, *expected, body=body, with_token=False, **more)
        if answer is not None:
            kept = _COOKIE.match(answer.headers.get("set-cookie", ""))
            self.cookie = kept[1].strip('"') if kept else self.cookie
            proof = _PROOF.search(answer.content)
            self.proof = proof[1].decode() if proof else self.proof
        return answer

    def _new_form(self) -> dict[str, str]:
        return FORM | {"nonce": f"{self.name.replace(' ', '')}{self.turn}"}

    def _ask_by_form(self, act: str, form: dict[str, str]) -> int | None:
        """Send a form until it leads somewhere; return the charge whose answer was read, if one was."""
        while True:
            answer = self.visit(act, "POST", f"/ui/datasets/{WIDE}/ask/count", "303", form=form)
            if answer is not None and answer.status == 303:
                return self._follow(act, answer.headers["location"])
            if answer is not None and answer.status < 429:
                return None  # noted as a surprise
            if self.scene.is_over and time.monotonic() > self.scene.until + 60:
                return None
            time.sleep(PAUSE)

    def _follow(self, act: str, place: str) -> int | None:
        """Wait on the page that the form led to, but not for ever: the answer may have been lost in a kill."""
        patience = time.monotonic() + 20
        while time.monotonic() < patience:
            if "sign-in" in place:
                return None
            page = self.visit(f"{act}, page", "GET", place, "200", "202", "303", "500")
            if page is not None and page.status == 303:
                place = page.headers["location"]
                continue
            if page is not None and page.status == 200 and place.startswith("/ui/releases/"):
                return self._read(place)
            time.sleep(PAUSE)
        return None

    def _read(self, place: str) -> int | None:
        answer = self.visit("release file", "GET", f"{place}/json", "200")
        if answer is None or answer.status != 200:
            return None
        self.scene.deliver(self.name, None, answer.json, replayed=True)
        return int(answer.json["ledger_id"])


class Registrar(Person):
    """Registers files, breaks them, and retires them; the list of data sets is never refused for it."""

    _guard = threading.Lock()

    def acts(self) -> Sequence[Callable[[], None]]:
        return (self.register, self.look, self.look)

    def register(self) -> None:
        name = f"file-{self.name}-{self.turn}"
        rows = "".join(f"{self.turn * 1000 + row},{row % 7}\n" for row in range(_REGISTERED_ROWS))
        files = [Path(root) / f"{name}.csv" for root in self.scene.roots]
        for file in files:
            file.write_text(f"a,b\n{rows}")
        body = {"name": name, "source": f"{name}.csv", "schema": {"columns": ["a", "b"]}}
        made = self.settle("register", "POST", "/v1/datasets", "201", "409 conflict", "422 parameter", body=body)
        if made is None or made.status == 422:
            return
        with suppress(OSError):
            self.chance.choice(files).unlink()  # one machine has lost its file
        for _ in range(3):
            self.look()
            time.sleep(PAUSE)
        self.settle("retire", "DELETE", f"/v1/datasets/{name}", "200", "404 not-found")
        for file in files:
            file.unlink(missing_ok=True)

    def look(self) -> None:
        for path in ("/v1/datasets", f"/v1/datasets/{WIDE}"):
            self.call("list", "GET", path, "200")
        time.sleep(PAUSE)


class HeadSender(Person):
    """Sends heads that are too large, too many, or for another host; each is refused, and nobody else notices."""

    _REFUSALS = (
        ("head too large", b"431"),
        ("many headers", b"431"),
        ("long URL", b"414"),
        ("no host", b"400"),
        ("two hosts", b"400"),
        ("another host", b"421"),
    )

    def acts(self) -> Sequence[Callable[[], None]]:
        return (self.send_head,)

    def send_head(self) -> None:
        kind, status = self.chance.choice(self._REFUSALS)
        began, url = time.monotonic(), self.scene.choose(self.chance)
        try:
            answer = self._exchange(url, kind)
        except OSError as error:
            if kind not in ("head too large", "many headers"):  # refused before all of it was sent: it may be reset
                self._fail(kind, type(error).__name__, began, url)
            time.sleep(PAUSE)
            return
        code = answer.split(b" ", 2)[1:2]
        with self.scene.lock:
            self.scene.seen.statuses[kind, code[0].decode() if code else "closed"] += 1
        if not code:
            self._fail(kind, "closed", began, url, is_retryable=kind in ("head too large", "many headers"))
        elif code[0] != status and code[0] not in (b"503", b"429"):
            self._surprise(kind, answer[:60].decode("latin-1"))
        time.sleep(PAUSE)

    def _exchange(self, url: str, kind: str) -> bytes:
        host, _, port = url.removeprefix("http://").partition(":")
        start = {
            "head too large": b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * 300_000,
            "many headers": b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n" + b"x: a\r\n" * 500,
            "long URL": b"GET /healthz?" + b"a" * 20_000 + b" HTTP/1.1\r\nhost: localhost\r\n",
            "no host": b"GET /ui/sign-in HTTP/1.1\r\n",
            "two hosts": b"GET /ui/sign-in HTTP/1.1\r\nhost: localhost\r\nhost: localhost\r\n",
            "another host": b"GET /ui/sign-in HTTP/1.1\r\nhost: evil.example\r\n",
        }[kind]
        with socket.create_connection((host, int(port)), timeout=TIMEOUT) as line:
            line.sendall(start + b"connection: close\r\n\r\n")
            return line.recv(4096)
