"""Honest and hostile people who call a service at once, each in a thread of their own, and what they saw of it."""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any

from soak_check import Delivery, Evidence, Failure
from soak_service import SLOWEST, STREAM, TIGHT, WIDE, Answer, call

ASK = {"neighbours": 3, "radius": 0.5, "force": True}
WATCH = {"threshold": 2.0, "low": -5.0, "high": 5.0, "epsilon": "1/20", "force": True}
EPSILON = "1/10000"
LIMITS = ("9", "19/2")  # of the wide table, as stewards set it by turns
LOST = "409 key-conflict"  # charged, and its answer lost with whoever was killed, or still on its way
STRANGE = (
    "401 unauthenticated",
)  # all that is said to whoever has no valid token, but for what may be said at any time
BACKWARD = ("503", "429")  # may be said at any time, if it is said when to come again
PAUSE = 0.2


@dataclass(slots=True)
class Scene:
    """Where it happens: the machines of the service, when calls begin no more, and what was seen."""

    urls: tuple[str, ...]
    roots: tuple[str, ...]
    tokens: dict[str, str]
    until: float
    seen: Evidence = field(default_factory=Evidence)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def choose(self, chance: random.Random) -> str:
        """One of the machines."""
        return chance.choice(self.urls)

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self.until

    def deliver(self, analyst: str, key: str | None, told: dict[str, Any], *, replayed: bool | None = None) -> None:
        made = Delivery(
            analyst=analyst,
            dataset=told["dataset"],
            key=key,
            charge=told["ledger_id"],
            value=told["value"],
            booked=told["booked"]["amount"],
            replayed=told["replayed"] if replayed is None else replayed,
        )
        with self.lock:
            self.seen.deliveries.append(made)


class Person:
    """Somebody with a token, or without a valid one, who notes what comes back."""

    may_break = frozenset[str]()  # acts that are refused before all of it was sent, so that the connection may break

    def __init__(self, scene: Scene, name: str, seed: str) -> None:
        self.scene, self.name = scene, name
        self.token = scene.tokens.get(name, name)
        self.chance = random.Random(f"{seed} {name}")  # noqa: S311 - traffic, and the seed is printed
        self.keys: list[str] = []
        self.turn = 0

    def acts(self) -> Sequence[Callable[[], None]]:
        raise NotImplementedError

    def live(self) -> None:
        """Do one thing after another until it is over."""
        while not self.scene.is_over:
            act = self.chance.choice(self.acts())
            self.turn += 1
            try:
                act()
            except Exception as error:  # noqa: BLE001 - a thread that dies in silence would hide what it met
                self._surprise(act.__name__, f"{type(error).__name__}: {error}")

    def call(
        self,
        act: str,
        method: str,
        path: str,
        *expected: str,
        body: Any = None,
        with_token: bool = True,
        **more: str,
    ) -> Answer | None:
        """One call to one of the machines; None if it broke. What is not expected is noted."""
        began, url = time.monotonic(), self.scene.choose(self.chance)
        try:
            answer = call(url, method, path, token=self.token if with_token else None, body=body, **more)
        except (OSError, HTTPException) as error:
            if act not in self.may_break:
                self._fail(act, type(error).__name__, began, url)
            time.sleep(PAUSE)
            return None
        with self.scene.lock:
            self.scene.seen.statuses[act, answer.said] += 1
        is_retryable = "retry-after" in answer.headers
        if answer.status >= 500:
            self._fail(act, answer.said, began, url, is_retryable=is_retryable)
        elif not (answer.said in expected or (answer.said[:3] in BACKWARD and is_retryable)):
            self._surprise(act, answer.said)
        return answer

    def settle(self, act: str, method: str, path: str, *expected: str, **more: Any) -> Answer | None:
        """The same call until it has an outcome, as whoever uses a key may; None if it has none when it is over."""
        while True:
            answer = self.call(act, method, path, *expected, **more)
            if answer is not None and answer.said[:3] not in BACKWARD:
                return answer
            if self.scene.is_over and time.monotonic() > self.scene.until + 60:
                self._surprise(act, "no outcome a minute after the last kill")
                return None
            time.sleep(PAUSE)

    def new_key(self) -> str:
        return f"{self.name.replace(' ', '-')}-{self.turn}"

    def _fail(self, act: str, what: str, began: float, at: str, *, is_retryable: bool = False) -> None:
        ended = time.monotonic()
        failure = Failure(act=act, what=what, began=began, ended=ended, is_retryable=is_retryable, at=at)
        with self.scene.lock:
            self.scene.seen.failures.append(failure)

    def _surprise(self, act: str, words: str) -> None:
        with self.scene.lock:
            self.scene.seen.surprises.append(f"{self.name}, {act}: {words}")


class Analyst(Person):
    """Asks, asks again under the same key, asks for too much, and watches a stream."""

    def __init__(self, scene: Scene, name: str, seed: str) -> None:
        super().__init__(scene, name, seed)
        self.watch: str | None = None
        self.place = 1

    def acts(self) -> Sequence[Callable[[], None]]:
        often = (self.ask_with_key,) * 4 + (self.ask_without_key, self.ask_twice_at_once, self.ask_for_later)
        return (*often, self.ask_again, self.ask_other, self.ask_too_much, self.ask_tight, self.feed, self.feed)

    def ask_with_key(self) -> None:
        self._asked("ask", self.new_key())

    def ask_without_key(self) -> None:
        answer = self.call("ask without key", "POST", _ask(WIDE), "200", "202", body=ASK | {"epsilon": EPSILON})
        self._take(answer, None)

    def ask_twice_at_once(self) -> None:
        key = self.new_key()
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda _: self._asked("ask twice", key), range(2)))

    def ask_for_later(self) -> None:
        key = self.new_key()
        answer = self.settle(
            "job",
            "POST",
            _ask(WIDE),
            "202",
            body=ASK | {"epsilon": EPSILON},
            idempotency_key=key,
            prefer="respond-async",
        )
        self._take(answer, key)

    def _take(self, answer: Answer | None, key: str | None) -> None:
        """Note an answer, or come back for it."""
        if answer is not None and answer.status == 200:
            self.scene.deliver(self.name, key, answer.json)
        elif answer is not None and answer.status == 202:
            self._come_back(answer, key)

    def _come_back(self, answer: Answer | None, key: str | None) -> None:
        while answer is not None and answer.status in (200, 202) and answer.json.get("state") in ("queued", "running"):
            time.sleep(PAUSE / 4)
            answer = self.settle("job state", "GET", f"/v1/jobs/{answer.json['id']}", "200")
        if answer is None or answer.json.get("state") != "done":
            return  # it was lost with its worker: the key says so, or asks anew
        found = self.settle("release", "GET", f"/v1/releases/{answer.json['release']}", "200")
        if found is not None and found.status == 200:
            self.scene.deliver(self.name, key, found.json, replayed=answer.json["replayed"])

    def ask_again(self) -> None:
        if self.keys:
            self._asked("ask again", self.chance.choice(self.keys))

    def ask_other(self) -> None:
        if self.keys:
            body, key = ASK | {"epsilon": "1/9999"}, self.chance.choice(self.keys)
            self.settle("other question", "POST", _ask(WIDE), LOST, body=body, idempotency_key=key)

    def ask_too_much(self) -> None:
        body = ASK | {"epsilon": self.chance.choice(("10", "900000"))}
        self._take(self.call("too much", "POST", _ask(WIDE), "202", "403 budget-exhausted", body=body), None)

    def ask_tight(self) -> None:
        """All of them together soon have spent what the starter cap allows."""
        body, key = ASK | {"epsilon": "1/16"}, self.new_key()
        expected = ("200", "202", "403 budget-exhausted", LOST)
        answer = self.settle("tight", "POST", _ask(TIGHT), *expected, body=body, idempotency_key=key)
        self._take(answer, key)

    def feed(self) -> None:
        """Post the next observations, or some that were posted before."""
        if self.watch is None:
            self._open_watch()
            return
        first = self.place if self.chance.random() < 0.7 else self.chance.randint(1, self.place)
        rows = [[self.chance.uniform(-5, 5)] for _ in range(self.chance.randint(1, 8))]
        path = f"/v1/watches/{self.watch}/observations"
        expected = ("200", "409 state", "409 session-closed")
        answer = self.settle("feed", "POST", path, *expected, body={"rows": rows, "first": first})
        if answer is None or answer.status != 200:
            self.watch = None if answer is not None and answer.said == "409 session-closed" else self.watch
            return
        told = answer.json
        with self.scene.lock:
            for place, flag in enumerate(told["outlier"], start=told["first"]):
                self.scene.seen.decisions[self.watch, place].add(flag)
        self.place = max(self.place, told["first"] + len(told["outlier"]))

    def _open_watch(self) -> None:
        path, key = f"/v1/datasets/{STREAM}/watches/watch", self.new_key()
        expected = ("201", "403 budget-exhausted", LOST)
        answer = self.settle("open watch", "POST", path, *expected, body=WATCH, idempotency_key=key)
        if answer is not None and answer.status == 201:
            self.watch, self.place = answer.json["id"], answer.json["position"] + 1

    def _asked(self, act: str, key: str) -> None:
        body = ASK | {"epsilon": EPSILON}
        answer = self.settle(act, "POST", _ask(WIDE), "200", "202", LOST, body=body, idempotency_key=key)
        if answer is not None and answer.status == 200:
            self.keys.append(key)
        self._take(answer, key)


class Steward(Person):
    """Sets limits, makes tokens and ends them, and looks after the ledger."""

    def acts(self) -> Sequence[Callable[[], None]]:
        return (self.grant, self.make_token, self.verify, self.look, self.pause, self.pause, self.pause)

    def grant(self) -> None:
        """A limit that goes up and down for the wide table, and ever higher for the tight one, which all race for."""
        for dataset, epsilon in ((WIDE, self.chance.choice(LIMITS)), (TIGHT, f"{min(80, 8 + self.turn)}/8")):
            body = {"epsilon": epsilon, "reason": "soak"}
            self.settle("grant", "POST", f"/v1/datasets/{dataset}/budget/grants", "201", body=body)

    def make_token(self) -> None:
        made = self.call(
            "token", "POST", "/v1/tokens", "201", body={"name": f"guest {self.turn}", "scope": "analyst", "days": 1}
        )
        if made is not None and made.status == 201:
            self.settle("revoke", "DELETE", f"/v1/tokens/{made.json['id']}", "200")

    def verify(self) -> None:
        found = self.call("verify", "GET", "/v1/ledger/verify", "200")
        if found is not None and found.status == 200:
            with self.scene.lock:
                self.scene.seen.heads.append(found.json["head"])

    def look(self) -> None:
        for path in ("/v1/acts", "/metrics", f"/v1/datasets/{WIDE}/budget", "/v1/ledger/entries?last=20"):
            self.call("look", "GET", path, "200")

    def pause(self) -> None:
        time.sleep(PAUSE)


class Stranger(Person):
    """Has a wrong token, or an analyst's and no manners."""

    may_break = frozenset({"flood", "nest"})

    def acts(self) -> Sequence[Callable[[], None]]:
        return (self.guess, self.babble, self.flood, self.dawdle, self.hang_up, self.wander, self.nest)

    def guess(self) -> None:
        for token in ("", "wf_0", f"wf_{self.chance.getrandbits(48):012x}_{'A' * 43}"):
            self._try("guess", "GET", "/v1/datasets", token=token)

    def babble(self) -> None:
        for body in (b"\xff\xfe{", b"{" * 10, b'{"epsilon": NaN}', b'{"epsilon": "1", "epsilon": "2"}', b"[]", b'""'):
            self._try("babble", "POST", _ask(WIDE), "400 malformed", "422 parameter", body=body)

    def flood(self) -> None:
        self._try("flood", "POST", _ask(WIDE), "413 too-large", body=b" " * (2**20 + self.chance.randint(1, 2**20)))

    def dawdle(self) -> None:
        """Send the head of a request, or its body, too slowly, and wait until somebody hangs up."""
        head = f"POST {_ask(WIDE)} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {self.token}\r\n"
        whole = self.chance.random() < 0.5
        text = f"{head}content-length: 100\r\n\r\n{{" if whole else head
        with suppress(OSError), self._connected() as line:
            line.settimeout(SLOWEST * 30)
            line.sendall(text.encode())
            while line.recv(4096):
                pass

    def hang_up(self) -> None:
        """Ask, and go before the answer comes: what was charged stays charged."""
        body = json.dumps(ASK | {"epsilon": EPSILON}).encode()
        head = f"POST {_ask(WIDE)} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {self.token}\r\n"
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        with suppress(OSError), self._connected() as line:
            line.sendall(head.encode() + body[: self.chance.choice((len(body), 5))])
            time.sleep(self.chance.choice((0.0, 0.01, 0.05)))

    def wander(self) -> None:
        for path in (_ask("nowhere"), _ask("..%2Fetc"), "/v1/datasets/wide/ask/nothing", "/v2", f"/{'x' * 3000}"):
            self._try(
                "wander", "POST", path, "404 not-found", "405 method", "422 parameter", body=ASK | {"epsilon": "1"}
            )
        self._try("wander", "PUT", _ask(WIDE), "405 method", body={})
        self._try("wander", "GET", "/v1/ledger/export", "403 forbidden")

    def nest(self) -> None:
        self._try("nest", "POST", _ask(WIDE), "400 malformed", "422 parameter", body=b"[" * 100_000)

    def _try(
        self, act: str, method: str, path: str, *expected: str, token: str | None = None, body: Any = None
    ) -> None:
        kept, self.token = self.token, self.token if token is None else token
        is_known = self.token in self.scene.tokens.values()
        try:
            self.call(act, method, path, *(expected if is_known else STRANGE), body=body)
        finally:
            self.token = kept

    def _connected(self) -> socket.socket:
        host, _, port = self.scene.choose(self.chance).removeprefix("http://").partition(":")
        return socket.create_connection((host, int(port)), timeout=10)


def _ask(dataset: str) -> str:
    return f"/v1/datasets/{dataset}/ask/count"
