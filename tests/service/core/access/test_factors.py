"""The second factor of stewards: the codes of RFC 6238, each taken once, and few guesses."""

from __future__ import annotations

import base64
import json
import logging
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import sqlalchemy as sa
from page_client import Browser, words
from served import Caller, Service, run_service, settings

from above import Above
from wallflower import cli
from wallflower.errors import NotAllowed, ParameterError
from wallflower.remote import connect
from wallflower.service.core.access import factors as module
from wallflower.service.core.access.acts import Acts
from wallflower.service.core.access.factors import STEP_SECONDS, Factors, code_at
from wallflower.service.core.access.tokens import Tokens, token_id
from wallflower.service.core.problems import Refusal
from wallflower.service.core.records import FACTORS, Records

GRANT = {"epsilon": "2", "reason": "study 12"}
GRANTS = "/v1/datasets/ward/budget/grants"
SEED = b"1234567890" * 7
RFC_6238 = {  # appendix B: seconds since 1970, and the codes by SHA-1, SHA-256 and SHA-512
    59: ("94287082", "46119246", "90693936"),
    1111111109: ("07081804", "68084774", "25091201"),
    1111111111: ("14050471", "67062674", "99943326"),
    1234567890: ("89005924", "91819424", "93441116"),
    2000000000: ("69279037", "90698825", "38618901"),
    20000000000: ("65353130", "77737706", "47863826"),
}


@pytest.mark.parametrize("seconds", RFC_6238)
def test_codes_are_those_of_the_standard(seconds: int) -> None:
    methods = (("sha1", 20), ("sha256", 32), ("sha512", 64))
    found = [code_at(SEED[:size], seconds // STEP_SECONDS, digits=8, method=method) for method, size in methods]
    assert tuple(found) == RFC_6238[seconds]


class Clock:
    """A time that only a test moves on, in place of the module's own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_700_000_000.0
        monkeypatch.setattr(module.time, "time", lambda: self.now)

    def code(self, address: str, steps: int = 0) -> str:
        return code_at(secret_of(address), int(self.now) // STEP_SECONDS + steps)


def secret_of(address: str) -> bytes:
    return base64.b32decode(parse_qs(urlsplit(address).query)["secret"][0])


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    class Time:
        time = staticmethod(lambda: 0.0)

    monkeypatch.setattr(module, "time", Time)
    return Clock(monkeypatch)


@pytest.fixture
def records(place: str) -> Iterator[Records]:
    records = Records(place)
    yield records
    records.close()


def enrol_steward(records: Records) -> tuple[Factors, str, str]:
    made, text = Tokens(records).create("sue", "steward")
    found = Factors(records)
    return found, text, found.enrol(made, text)


def refusal_kind(found: Factors, text: str, code: str | None) -> str:
    with pytest.raises(Refusal) as refusal:
        found.require(text, code)
    return refusal.value.kind


def test_a_code_is_taken_once_and_within_one_step(records: Records, clock: Clock) -> None:
    found, text, address = enrol_steward(records)
    for steps in (-2, 2):
        assert refusal_kind(found, text, clock.code(address, steps)) == "second-factor"
    found.require(text, clock.code(address, -1))
    assert refusal_kind(found, text, clock.code(address, -1)) == "second-factor"
    found.require(text, clock.code(address, 1))
    assert refusal_kind(found, text, clock.code(address)) == "second-factor"  # older than one that was taken
    clock.now += 2 * STEP_SECONDS
    found.require(text, clock.code(address))


def test_of_many_at_once_with_one_code_one_is_let_in(records: Records, clock: Clock) -> None:
    found, text, address = enrol_steward(records)
    code = clock.code(address)

    def let_in(_: int) -> bool:
        try:
            found.require(text, code)
        except Refusal:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(let_in, range(16))) <= 1
    assert int((records.find(FACTORS, token_id(text)) or {})["wrong"]) >= 0


def test_guesses_are_few(records: Records, clock: Clock) -> None:
    found, text, address = enrol_steward(records)
    wrong = "000000"
    waits = [0] * 5 + [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]  # 111 guesses a day: a chance of 3 in 10,000
    for wait in waits:
        if wait:
            clock.now += wait - 0.5
            assert refusal_kind(found, text, clock.code(address)) == "too-many-attempts"  # the right one, too
            clock.now += 0.5
        while is_near(clock, address, wrong):
            wrong = f"{(int(wrong) + 1) % 10**6:06}"
        assert refusal_kind(found, text, wrong) == "second-factor"
    clock.now += 900
    found.require(text, clock.code(address))
    assert refusal_kind(found, text, clock.code(address)) == "second-factor"  # and guesses are free again


def is_near(clock: Clock, address: str, code: str) -> bool:
    return code in {clock.code(address, steps) for steps in range(-2, 3)}


def test_a_copy_of_the_database_has_neither_token_nor_secret(records: Records) -> None:
    _, text, address = enrol_steward(records)
    secret = secret_of(address)
    with records._store.read() as db:
        (row,) = db.execute(sa.select(FACTORS)).mappings()
    assert row["sealed"] != secret.hex()
    assert not any(one in str(dict(row)) for one in (secret.hex(), base64.b32encode(secret).decode(), text))
    other = Tokens(records).create("eve", "steward")[1]
    assert module._mask(bytes.fromhex(row["sealed"]), other, row["nonce"]) != secret
    assert module._mask(bytes.fromhex(row["sealed"]), text, row["nonce"]) == secret


def test_a_second_factor_is_for_people_and_enrolled_once(records: Records) -> None:
    made, text = Tokens(records).create("eye", "monitor")
    with pytest.raises(ParameterError, match="a person's token"):
        Factors(records).enrol(made, text)
    made, text = Tokens(records).create("ana", "analyst")
    Factors(records).require(text, None)  # without one, no code is asked for
    Factors(records).enrol(made, text)
    with pytest.raises(Refusal, match="already"):
        Factors(records).enrol(made, text)


# Over HTTP and in the pages


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with run_service(settings(tmp_path, reauth_seconds=0), questions=(Above,)) as running:
        yield running


def with_factor(service: Service) -> tuple[Caller, str]:
    core = service.app.state.core
    made, text = core.tokens.create("sue", "steward")
    return Caller(service.url, text), core.factors.enrol(made, text)


def test_a_change_over_http_needs_a_code_that_is_new(service: Service, clock: Clock) -> None:
    sue, address = with_factor(service)
    assert sue.get("/v1/tokens").problem == "second-factor"
    missing = sue.post(GRANTS, GRANT)
    assert (missing.status, missing.problem) == (401, "second-factor")
    assert 'error="insufficient_user_authentication"' in missing.headers["www-authenticate"]
    code = clock.code(address)
    assert sue.post(GRANTS, GRANT, second_factor=code).status == 201
    assert sue.post(GRANTS, GRANT, second_factor=code).problem == "second-factor"
    assert sue.post("/v1/tokens", {"name": "cy", "scope": "steward"}).problem == "second-factor"
    assert sue("DELETE", f"/v1/tokens/{token_id(str(sue.token))}/factor").problem == "second-factor"
    assert service.token("tom", "steward").post(GRANTS, GRANT).status == 201


CALLS = [
    ("GET", "/v1/whoami"),
    ("GET", "/v1/datasets"),
    ("GET", "/v1/datasets/ward/budget"),
    ("GET", "/v1/releases/1"),
    ("GET", "/v1/requests"),
    ("POST", "/v1/datasets/ward/plan/above"),
    ("POST", "/v1/datasets/ward/ask/above"),
    ("POST", "/v1/datasets/ward/requests"),
    ("GET", "/v1/tokens"),
    ("GET", "/v1/acts"),
    ("GET", "/v1/ledger/entries"),
    ("GET", "/v1/ledger/export"),
    ("GET", "/metrics"),
]


@pytest.mark.parametrize("scope", ["analyst", "steward"])
def test_a_stolen_token_with_a_factor_reads_and_spends_nothing(service: Service, clock: Clock, scope: str) -> None:
    core = service.app.state.core
    made, text = core.tokens.create("sue", scope)
    thief, address = Caller(service.url, text), core.factors.enrol(made, text)
    body = {"bar": 7.0, "columns": ["a"], "epsilon": "0.1"}
    for method, path in CALLS:
        if scope == "steward" or path not in ("/metrics",):  # which no analyst reads in any case
            answer = thief(method, path, body if method == "POST" else None)
            assert (answer.status, answer.problem) == (401, "second-factor"), path
    assert not core.ledger.history("ward", event="charge")
    asked = thief.post("/v1/datasets/ward/ask/above", body, second_factor=clock.code(address))
    assert asked.status == 200


def test_a_code_buys_minutes(tmp_path: Path, clock: Clock) -> None:
    with run_service(settings(tmp_path, reauth_seconds=300), questions=(Above,)) as running:
        sue, address = with_factor(running)
        tom, other = with_factor(running)
        bought = sue.post("/v1/second-factor", second_factor=clock.code(address)).json["pass"]
        for _ in range(3):
            assert sue.post(GRANTS, GRANT, second_factor=bought).status == 201
        assert sue.get("/v1/ledger/export", second_factor=bought).status == 200
        assert tom.get("/v1/tokens", second_factor=bought).problem == "second-factor"  # of another token
        assert sue.post("/v1/second-factor", second_factor=bought).problem == "second-factor"
        for forged in (f"9{bought}", bought[:-1], f"{bought}0", ".", "9" * 30 + "." + "0" * 64):
            assert sue.get("/v1/tokens", second_factor=forged).status in (401, 429)
        clock.now += 299
        assert sue.get("/v1/tokens", second_factor=bought).status == 200
        clock.now += 2
        assert sue.get("/v1/tokens", second_factor=bought).problem in ("second-factor", "too-many-attempts")
        fresh = tom.post("/v1/second-factor", second_factor=clock.code(other)).json["pass"]
        key = token_id(str(tom.token))
        running.app.state.core.factors.remove(key)
        running.app.state.core.factors.enrol(running.app.state.core.tokens.find(key), str(tom.token))
        assert tom.get("/v1/tokens", second_factor=fresh).status in (401, 429)  # it was bought with another factor


def test_a_program_shows_a_code_when_it_connects(tmp_path: Path, clock: Clock) -> None:
    with run_service(settings(tmp_path, reauth_seconds=300), questions=(Above,)) as running:
        sue, address = with_factor(running)
        with pytest.raises(NotAllowed):
            connect(running.url, sue.token).datasets()
        with pytest.raises(NotAllowed):
            connect(running.url, sue.token, code="000000x")
        service = connect(running.url, sue.token, code=clock.code(address))
        assert service.datasets()
        assert service.datasets()


def test_somebody_enrols_their_own_token_in_the_browser(service: Service, clock: Clock) -> None:
    ana = service.token("ana")
    browser = Browser(service).sign_in(ana.token)
    page = words(browser.get("/ui/second-factor"))
    secret, seal = (re.search(rf'name="{name}" value="([^"]+)"', page)[1] for name in ("secret", "seal"))
    code = code_at(base64.b32decode(secret), int(clock.now) // STEP_SECONDS)
    form = {"secret": secret, "seal": seal, "token": str(ana.token), "code": code}
    for wrong in (
        {"code": "000000" if code != "000000" else "000001"},
        {"token": str(service.token("eve").token)},
        {"token": ""},
        {"secret": base64.b32encode(b"chosen by somebody else"[:20]).decode()},
        {"seal": "0" * 40},
    ):
        assert browser.post("/ui/second-factor", form | wrong).status in (401, 403)
    assert ana.get("/v1/whoami").status == 200
    assert browser.post("/ui/second-factor", form).status == 303
    assert "Your token has a second factor" in words(browser.get("/ui/second-factor"))
    assert ana.get("/v1/whoami").problem == "second-factor"
    clock.now += STEP_SECONDS
    later = code_at(base64.b32decode(secret), int(clock.now) // STEP_SECONDS)
    assert ana.get("/v1/whoami", second_factor=code).problem == "second-factor"  # it enrolled the token
    assert ana.get("/v1/whoami", second_factor=later).status == 200
    assert browser.post("/ui/second-factor", form).status in (401, 409)


def test_another_steward_removes_it_and_that_is_an_act(service: Service, caplog: Any) -> None:
    sue, _ = with_factor(service)
    tom, key = service.token("tom", "steward"), token_id(str(sue.token))
    flags = {one["id"]: one["second_factor"] for one in tom.get("/v1/tokens").json["tokens"]}
    assert flags == {key: True, token_id(str(tom.token)): False}
    assert tom("DELETE", f"/v1/tokens/{key}/factor").json["second_factor"] is False
    assert tom("DELETE", f"/v1/tokens/{key}/factor").status == 404
    (act,) = tom.get("/v1/acts").json["acts"]
    assert (act["act"], act["about"], act["by"]) == ("second factor removed", f"{key} of sue", "tom")
    assert sue.post(GRANTS, GRANT).status == 201


def test_wrong_codes_are_counted_and_logged_as_tokens_are(tmp_path: Path, clock: Clock, caplog: Any) -> None:
    with run_service(settings(tmp_path, failures=2), questions=(Above,)) as running, caplog.at_level(logging.INFO):
        logging.getLogger("wallflower.service").propagate = True
        sue, address = with_factor(running)
        found = [sue.post(GRANTS, GRANT, second_factor=clock.code(address, 5 + turn)) for turn in range(3)]
        assert [answer.status for answer in found] == [401, 401, 429]
        assert sue.post(GRANTS, GRANT, second_factor=clock.code(address)).status == 201
        text = running.token("eye", "monitor").get("/metrics").content.decode()
        assert "wallflower_authentication_failures_total 3" in text
    told = [(record.getMessage(), getattr(record, "facts", {})) for record in caplog.records]
    failed = [facts for event, facts in told if event == "second factor failed"]
    assert failed == [{"by": "sue", "token": token_id(str(sue.token)), "address": "127.0.0.1"}] * 3


def test_signing_in_and_sensitive_acts_need_a_code(service: Service, clock: Clock) -> None:
    sue, address = with_factor(service)
    browser = Browser(service)
    browser.get("/ui/sign-in")
    assert browser.post("/ui/sign-in", {"token": str(sue.token)}).status == 401
    assert "has a second factor" in words(browser.last)
    code = clock.code(address, -1)
    assert browser.post("/ui/sign-in", {"token": str(sue.token), "code": code}).status == 303
    browser.get("/ui/")
    at = "/ui/datasets/ward/budget/grants"
    asked = browser.post(at, GRANT)
    assert (asked.status, 'name="code"' in words(asked)) == (401, True)
    again = {**GRANT, "again": str(sue.token)}
    assert browser.post(at, again).status == 401
    assert browser.post(at, {**again, "code": code}).status == 401  # used at the sign-in
    assert browser.post(at, {**again, "code": clock.code(address)}).status == 303
    place = f"/ui/tokens/{token_id(str(sue.token))}/factor"
    tom = service.token("tom", "steward")
    helper = Browser(service).sign_in(tom.token)
    assert f'href="{place}"' in words(helper.get("/ui/tokens"))
    assert "Remove the second factor" in words(helper.get(place))
    assert helper.post(place, {"again": str(tom.token)}).headers["location"] == "/ui/tokens?done=factor"
    assert browser.post(at, again).status == 303


# The command line


def run(*arguments: str) -> int:
    return cli.main(arguments, (Above,))


def test_the_command_line_enrols_and_removes(place: str, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("serve", "token", "create", "eye", "--scope", "monitor", "--second-factor", "--ledger", place) == 2
    capsys.readouterr()
    command = ("serve", "token", "create", "sue", "--scope", "steward", "--second-factor", "--ledger", place, "--json")
    assert run(*command) == 0
    made = json.loads(capsys.readouterr().out)
    records = Records(place)
    found = Factors(records)
    assert refusal_kind(found, made["text"], None) == "second-factor"
    assert secret_of(made["authenticator"])
    assert run("serve", "token", "unenrol", made["id"], "--ledger", place) == 0
    found.require(made["text"], None)
    monkeypatch.setenv("WALLFLOWER_TOKEN", made["text"])
    capsys.readouterr()
    assert run("serve", "token", "enrol", "--ledger", place) == 0
    address = capsys.readouterr().out.strip()
    assert address.startswith("otpauth://totp/wallflower:sue?secret=")
    assert refusal_kind(found, made["text"], None) == "second-factor"
    assert run("serve", "token", "enrol", "--ledger", place) == 2
    monkeypatch.setenv("WALLFLOWER_TOKEN", "wf_wrong")
    assert run("serve", "token", "enrol", "--ledger", place) == 5
    assert [one["act"] for one in Acts(records).last(9)] == [
        *("token issued", "second factor enrolled", "second factor removed", "second factor enrolled"),
    ]
    records.close()
