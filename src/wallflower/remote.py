"""Data sets that a service holds: the same methods as of `wf.open`, answered over HTTP.

service = wf.connect("https://curator.example.org", token)
people = service.open("people")
people.plan.count(neighbours=5, radius=1.3, epsilon="0.5")
people.count(neighbours=5, radius=1.3, epsilon="0.5")
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import quote, urlsplit

from wallflower.dataset import ANYWAY, KEY, KNOWN, Verbs
from wallflower.drawing import cards
from wallflower.errors import (
    BudgetExhausted,
    DataError,
    KeyConflict,
    LedgerError,
    NotAllowed,
    NotUseful,
    ParameterError,
    PrivacyError,
    ServiceError,
    SessionClosed,
    SourceError,
    StateError,
    Untranslatable,
)
from wallflower.ledger import Account
from wallflower.machine.lazy import Lazy
from wallflower.privacy import Loss
from wallflower.query import A, Plan, Query
from wallflower.query.parameter import Question, entries_of, fill, find, resolve_releases
from wallflower.release import Release

if TYPE_CHECKING:
    import http.client as _http

    from wallflower.verbs import Plans, Questions
else:
    _http = Lazy("http.client")
    Plans = Questions = object  # `Verbs` makes these methods, those of plugins too

VARIABLE: Final = "WALLFLOWER_TOKEN"

_PAUSE: Final = 0.25
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_ERRORS: Final[Mapping[str, Callable[[str], PrivacyError]]] = {
    "parameter": ParameterError,
    "malformed": ParameterError,
    "too-much-memory": ParameterError,
    "data": DataError,
    "source": SourceError,
    "key-conflict": KeyConflict,
    "ledger": LedgerError,
    "state": StateError,
    "session-closed": SessionClosed,
    "unauthenticated": NotAllowed,
    "second-factor": NotAllowed,
    "forbidden": NotAllowed,
    "too-many-attempts": NotAllowed,
}


class Call(Protocol):
    """One request: method, path, body and key give the status and what was answered."""

    def __call__(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, idempotency_key: str | None = None
    ) -> tuple[int, Any]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteQuote:
    """What a question would cost now.

    stated    the loss that it states
    booked    what that is in the unit that is protected
    factor    what one is multiplied by to get the other
    affords   how many such questions fit into what is left
    left      what you may still spend
    protects  whom the account protects, in words
    refusal   why it would be refused, if it would be
    text      the cost in words: stated and booked
    """

    stated: Loss
    booked: Loss | None
    factor: Fraction | None
    affords: int
    left: Loss
    protects: str
    refusal: PrivacyError | None
    text: str = ""

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> RemoteQuote:
        booked, factor, obstacle = told["booked"], told["factor"], told["obstacle"]
        return cls(
            stated=Loss.from_json(told["stated"]),
            booked=None if booked is None else Loss.from_json(booked),
            factor=None if factor is None else Fraction(factor),
            affords=told["affords"],
            left=Loss.from_json(told["left"]),
            protects=told["protects"],
            refusal=None if obstacle is None else error_of(obstacle),
            text=told.get("text", ""),
        )

    def lines(self) -> list[tuple[str, str]]:
        """What it would cost, in words."""
        booked = "nothing, since it would be refused" if self.booked is None else str(self.booked)
        refused = [("Refused", str(self.refusal))] if self.refusal is not None else []
        return [
            ("Costs", booked if self.booked == self.stated else f"{booked} (stated: {self.stated})"),
            ("Left", str(self.left)),
            ("Affords", f"{self.affords:,} such question{'' if self.affords == 1 else 's'}"),
            ("Bounded", f"the loss of {self.protects}"),
            *refused,
        ]

    def __str__(self) -> str:
        return "\n".join(f"{name.lower()}: {words}" for name, words in self.lines())

    def _repr_html_(self) -> str:
        return cards.frame("quote", cards.tell(self.lines()))


class Service:
    """A service and a token: which data sets there are, and each of them to ask questions of."""

    def __init__(self, call: Call, questions: Iterable[Question] = KNOWN) -> None:
        self._call, self._questions = call, tuple(questions)

    def datasets(self) -> list[dict[str, Any]]:
        """Every data set: its public facts, its budget, and what is left for you."""
        found: list[dict[str, Any]] = self._call("GET", "/v1/datasets")[1]["datasets"]
        return found

    def open(self, name: str) -> Remote:
        """A data set, to ask questions of it."""
        found = self._call("GET", f"/v1/datasets/{quote(name, safe='')}")[1]
        return Remote(self._call, found, self._questions)

    def __getitem__(self, name: str) -> Remote:
        return self.open(name)

    def __repr__(self) -> str:
        return "<a wallflower service; datasets() lists what it has, open(name) asks one>"


class _Planner(Verbs, Plans):
    """What each question would give, before anything is spent."""

    def __init__(self, call: Call, base: str, questions: Iterable[Question]) -> None:
        super().__init__(questions)
        self._call, self._base = call, base

    def __call__(self, kind: str, **parameters: Any) -> Plan:
        return self._verb(find(kind, self._questions))(**parameters)

    def of(self, query: Query[Any, Any]) -> Plan:
        """What to expect of this query here, and how often your budget affords it."""
        told = self._call("POST", f"{self._base}/plan/{query.kind}", entries_of(query))[1]
        return Plan.from_json({**told, "affords": told["price"]["affords"]})

    def _verb(self, question: Question) -> Callable[..., Plan]:
        return lambda **given: self.of(
            fill(question, resolve_releases(question, given, partial(_fetch_release, self._call)))
        )

    def _returns(self, question: Question) -> Any:
        return Plan


class Remote(Verbs, Questions):
    """A data set of a service. Each question is a method; `plan` has the same methods and spends nothing."""

    _extra = (KEY, ANYWAY)

    def __init__(self, call: Call, facts: Mapping[str, Any], questions: Iterable[Question]) -> None:
        super().__init__(questions)
        self.name, self.facts = str(facts["name"]), dict(facts)
        self._call, self._base = call, f"/v1/datasets/{quote(self.name, safe='')}"
        self.plan = _Planner(call, self._base, self._questions)

    def ask(self, query: Query[Any, A], *, idempotency_key: str | None = None, force: bool = False) -> Release[A]:
        """Answer a query and pay for it; this waits for a long one. One that is mostly noise only with `force`."""
        body = entries_of(query) | ({"force": True} if force else {})
        status, told = self._call("POST", f"{self._base}/ask/{query.kind}", body, idempotency_key=idempotency_key)
        return Release.from_dict(told) if status != 202 else self._await_job(told)

    def budget(self) -> Account:
        """Limit, spending and what is left, of the account that this data set spends from."""
        return Account.from_json(self._call("GET", f"{self._base}/budget")[1])

    def left(self) -> Loss:
        """What you may still spend."""
        return Loss.from_json(self._call("GET", self._base)[1]["left"])

    def quote(self, query: Query[Any, Any]) -> RemoteQuote:
        """What a query would cost here now; nothing is charged."""
        told = self._call("POST", f"{self._base}/plan/{query.kind}", entries_of(query))[1]
        return RemoteQuote.from_json(told["price"])

    def releases(self) -> list[Release[Any]]:
        """What this data set has released to you, oldest first; to a steward, everything."""
        found: list[Release[Any]] = []
        before: int | None = None
        while True:
            asked = f"{self._base}/releases" + ("" if before is None else f"?before={before}")
            told = self._call("GET", asked)[1]
            found[:0] = [Release.from_dict(each) for each in told["releases"]]
            before = told["before"]
            if before is None:
                return found

    def watching(
        self, query: Query[Any, Any], *, idempotency_key: str | None = None, force: bool = False
    ) -> RemoteWatch:
        """Open a watch, paid for once; under a key used before, the one that was opened then."""
        body = entries_of(query) | ({"force": True} if force else {})
        told = self._call("POST", f"{self._base}/watches/{query.kind}", body, idempotency_key=idempotency_key)[1]
        return RemoteWatch(self._call, told)

    def __repr__(self) -> str:
        verbs = ", ".join(question.kind for question in self._questions)
        records = "records" if self.facts["rows"] is None else f"{self.facts['rows']} records"
        return f"<{self.name}: {records}, {len(self.facts['columns'])} columns; ask {verbs}>"

    def _repr_html_(self) -> str:
        rows = self.facts["rows"]
        columns = ", ".join(str(column["name"]) for column in self.facts["columns"])
        told = [
            ("Data set", str(self.facts.get("title") or self.name)),
            ("Records", "not public" if rows is None else f"{rows:,}"),
            ("Columns", columns),
            ("Left for you", str(Loss.from_json(self.facts["left"]))),
            ("Bounded", f"the loss of {self.facts['budget']['protects']}"),
            ("Ask", ", ".join(question.kind for question in self._questions)),
        ]
        return cards.frame("dataset", cards.tell(told))

    def _verb(self, question: Question) -> Callable[..., Release[Any]]:
        def ask(*, idempotency_key: str | None = None, force: bool = False, **given: Any) -> Release[Any]:
            return self.ask(
                fill(question, resolve_releases(question, given, partial(_fetch_release, self._call))),
                idempotency_key=idempotency_key,
                force=force,
            )

        return ask

    def _await_job(self, job: Mapping[str, Any]) -> Release[Any]:
        while job["state"] in ("queued", "running"):
            time.sleep(_PAUSE)
            job = self._call("GET", f"/v1/jobs/{job['id']}")[1]
        if job["state"] == "failed":
            raise error_of(job["problem"])
        made = Release.from_dict(self._call("GET", f"/v1/releases/{job['release']}")[1])
        return replace(made, replayed=job["replayed"])


def _fetch_release(call: Call, number: int) -> dict[str, Any]:
    """What an entry of the service's ledger has paid for, if it is yours."""
    found: dict[str, Any] = call("GET", f"/v1/releases/{number}")[1]
    return found


class RemoteWatch:
    """A watch that a service keeps. Observations are numbered from 1, and decided once."""

    def __init__(self, call: Call, told: Mapping[str, Any]) -> None:
        self._call = call
        self.id, self.charge = str(told["id"]), int(told["charge"])
        self.columns, self.position = tuple(told["columns"]), int(told["position"])
        self.exhausted = bool(told["exhausted"])

    def __repr__(self) -> str:
        state = "exhausted" if self.exhausted else "open"
        return (
            f"<watch {self.id} over {', '.join(self.columns)}: {self.position:,} decided, {state}; entry {self.charge}>"
        )

    def decide_many(
        self, rows: Sequence[Any], *, first: int | None = None, times: Sequence[str] | None = None
    ) -> list[bool | None]:
        """Whether each of the next observations is flagged, None if skipped; fewer when the watch is exhausted.

        `first` is the number of the first row, if it is not the next; sent again, a batch is told again. `times` say
        when each was made, where the watch has a baseline by phase.
        """
        start = self.position + 1 if first is None else first
        body = {"rows": [list(row) if isinstance(row, tuple) else row for row in rows], "first": start}
        body |= {} if times is None else {"times": list(times)}
        told = self._call("POST", f"/v1/watches/{self.id}/observations", body)[1]
        flags: list[bool | None] = told["outlier"]
        self.position = max(self.position, start - 1 + len(flags))
        self.exhausted = bool(told["exhausted"])
        return flags

    def decide(self, x: Any, *, time: str | None = None) -> bool | None:
        """Whether the next observation is flagged; None when it is skipped, or the watch is exhausted."""
        found = self.decide_many([x], times=None if time is None else [time])
        return found[0] if found else None


def connect(url: str, token: str | None = None, *, code: str | None = None, timeout: float = 60) -> Service:
    """A service at this URL, called with a token. Without a code, nothing is called before a question is.

    url      where it is; https, or http on this machine: a token must not cross a network in the open
    token    the text itself; None for $WALLFLOWER_TOKEN
    code     of the authenticator, if the token has a second factor: it is good for the minutes that the service sets
    timeout  seconds to wait for an answer to one call; a long question is waited for by many
    """
    found = urlsplit(url)
    if found.scheme not in ("http", "https") or not found.hostname or found.query or found.fragment:
        raise ParameterError("url: a service is at https://HOST, with a port and a path if need be. Write it so.")
    if found.scheme == "http" and found.hostname not in _LOOPBACK:
        raise ParameterError(
            "url: http would show your token to everybody on the way, and is only for this machine. Use https."
        )
    text = token or os.environ.get(VARIABLE)
    if not text or not text.isascii() or not text.isprintable():
        raise NotAllowed(f"no token is given, or it is none. A steward makes one; pass it, or set ${VARIABLE}.")
    http = _Http(found.scheme, found.netloc.rpartition("@")[2], found.path.rstrip("/"), text, timeout)
    if code is not None:
        http.show_code(code)
    return Service(http)


class _Http:
    """Requests by the standard library, one connection each."""

    def __init__(self, scheme: str, host: str, path: str, token: str, timeout: float) -> None:
        self._scheme, self._host, self._path, self._timeout = scheme, host, path, timeout
        self._headers = {"authorization": f"Bearer {token}", "accept": "application/json"}

    def show_code(self, code: str) -> None:
        """Buy a pass for a code of the second factor, and send it from now on."""
        self._headers["second-factor"] = code
        _, told = self("POST", "/v1/second-factor")
        self._headers["second-factor"] = str(told["pass"])

    def __call__(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, idempotency_key: str | None = None
    ) -> tuple[int, Any]:
        headers = self._headers | ({} if idempotency_key is None else {"idempotency-key": idempotency_key})
        content = None
        if body is not None:
            headers, content = headers | {"content-type": "application/json"}, json.dumps(body).encode("utf-8")
        status, answer = self._send(method, self._path + path, content, headers)
        try:
            told = json.loads(answer)
        except ValueError:
            raise ServiceError(f"{self._host}: answered with something else than JSON. Is it a wallflower?") from None
        if status >= 400:
            raise error_of(told)
        return status, told

    def _send(self, method: str, path: str, content: bytes | None, headers: Mapping[str, str]) -> tuple[int, bytes]:
        kind = _http.HTTPSConnection if self._scheme == "https" else _http.HTTPConnection
        connection = kind(self._host, timeout=self._timeout)
        try:
            connection.request(method, path, body=content, headers=headers)
            found = connection.getresponse()
            return found.status, found.read()
        except (OSError, _http.HTTPException) as error:
            raise ServiceError(
                f"{self._host}: cannot be reached ({type(error).__name__}). If a question was on its way it may have "
                "been charged: look at releases(), or ask again under the same key."
            ) from None
        finally:
            connection.close()


def error_of(told: Any) -> PrivacyError:
    """The error that a problem stands for, with the attributes it had."""
    stated = told if isinstance(told, Mapping) else {}
    kind, words = str(stated.get("type", "")).rpartition(":")[2], str(stated.get("detail", "no reason was given"))
    if kind == "budget-exhausted" and "asked" in stated:
        asked, left = Loss.from_json(stated["asked"]), Loss.from_json(stated["left"])
        part, why = stated.get("part"), stated.get("why")
        booked = None if stated.get("booked") is None else Loss.from_json(stated["booked"])
        dataset, remedy = str(stated["dataset"]), stated.get("remedy")
        return BudgetExhausted(dataset, asked=asked, left=left, part=part, why=why, booked=booked, remedy=remedy)
    if kind == "not-useful" and "verdict" in stated:
        return NotUseful(stated["query"], verdict=stated["verdict"], smallest=stated.get("smallest"))
    if kind == "unit-refused" and "why" in stated:
        return Untranslatable(stated["why"], dataset=stated.get("dataset"), remedy=stated.get("remedy") or "")
    return _ERRORS.get(kind, ServiceError)(words)
