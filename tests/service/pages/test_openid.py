"""Sign-in with an OpenID provider: a real one, and what it must not be possible to sign in with."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import unescape
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import pytest
import sqlalchemy as sa
from chromium_visitor import chromium, visitor  # noqa: F401
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from openid_provider import (
    CLIENT,
    OTHER_CLIENT,
    PASSWORD,
    SECRET,
    OpenIdProvider,
    needs_glewlwyd,
    new_client,
    openid_provider,
)
from playwright.sync_api import Browser, expect
from served import Caller, Service, run_service, settings, ward

from browser import AXE, needs_axe, needs_chromium
from wallflower.errors import ParameterError
from wallflower.schema import Schema
from wallflower.service.core.access import openid
from wallflower.service.core.clock import moment, now
from wallflower.service.core.problems import Refusal
from wallflower.service.core.records import PEOPLE
from wallflower.service.pages.sessions import session_key
from wallflower.service.settings import Group, Office, OpenId, Registration, Settings

pytestmark = [needs_glewlwyd, pytest.mark.slow]

GROUPS = (
    Group(name="health", datasets=("ward",)),
    Group(name="tax", datasets=("tax",)),
    Group(name="stewards", role="steward"),
    Group(name="auditors", role="auditor"),
)
CONFIRM = {
    ("person", "en"): "Confirm your identity",
    ("person", "de"): "Bestätigen Sie, dass Sie es sind",
    ("token", "en"): "Enter your token again",
    ("token", "de"): "Geben Sie Ihr Token noch einmal ein",
}
COUNT = {"neighbours": 3, "radius": 0.5, "epsilon": "0.01", "force": True}


@dataclass
class OfficeService:
    """A service, its address as people know it, and its provider."""

    service: Service
    address: str
    provider: OpenIdProvider

    def browser(self) -> httpx2.Client:
        return new_client(self.address)

    def begin(self, browser: httpx2.Client, place: str = "/ui/") -> str:
        answer = browser.get("/ui/sign-in/directory", params={"next": place})
        assert answer.status_code == 303, answer.text
        return str(answer.headers["location"])

    def sign_in(self, name: str, browser: httpx2.Client | None = None, place: str = "/ui/") -> httpx2.Client:
        browser = browser or self.browser()
        back = self.provider.authorize(self.provider.session(name), self.begin(browser, place))
        answer = browser.get(back)
        assert answer.status_code == 200, unescape(answer.text)
        assert f"url={place}" in unescape(answer.text)
        return browser

    def tokens(self, client_id: str = CLIENT, nonce: str = "n" * 32, name: str = "ana") -> dict[str, Any]:
        """What the provider gives a client for a code, without our service in between."""
        verifier = "v" * 64
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        query = httpx2.QueryParams(
            response_type="code",
            client_id=client_id,
            redirect_uri=f"{self.address}/ui/sign-in/callback",
            scope="openid",
            state="state",
            nonce=nonce,
            code_challenge=challenge,
            code_challenge_method="S256",
        )
        back = self.provider.authorize(self.provider.session(name), f"{self.provider.issuer}/auth?{query}")
        form = {"grant_type": "authorization_code", "code": parse_qs(urlsplit(back).query)["code"][0]}
        form |= {"code_verifier": verifier, "redirect_uri": f"{self.address}/ui/sign-in/callback"}
        answer = httpx2.post(f"{self.provider.issuer}/token", data=form, auth=(client_id, SECRET))
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def keys(self) -> KeySet:
        return KeySet.import_key_set(httpx2.get(f"{self.provider.issuer}/jwks").json())


def proof_in(answer: httpx2.Response) -> str:
    found = re.search(r'name="proof" value="([0-9a-f]+)"', answer.text)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def provider() -> Iterator[OpenIdProvider]:
    with openid_provider() as running:
        yield running


@contextmanager
def run_office(folder: Path, provider: OpenIdProvider, **more: Any) -> Iterator[OfficeService]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"http://localhost:{port}"
    source = folder / "tax.csv"
    source.write_text("a,b\n" + "".join(f"{row},{row % 7}.5\n" for row in range(30)))
    closed = Registration(name="ward", source=ward(folder).source, schema=Schema.of(["a", "b"]))
    tax = Registration(name="tax", source=str(source), schema=Schema.of(["a", "b"]))
    client = {"client_id": CLIENT, "client_secret": SECRET, "scopes": ("openid",)}
    stated = settings(
        folder,
        port=port,
        office=Office(address=address),
        groups=GROUPS,
        datasets=(closed, tax),
        openid=OpenId(issuer=provider.issuer, **client | more.pop("openid", {})),  # type: ignore[arg-type]
        failures=10_000,
        **more,
    )
    with run_service(stated) as service:
        yield OfficeService(service, address, provider)


@pytest.fixture(scope="module")
def office(provider: OpenIdProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OfficeService]:
    with run_office(tmp_path_factory.mktemp("openid"), provider) as running:
        for client in (CLIENT, OTHER_CLIENT):
            provider.add_client(client, running.address)
        yield running


class TestSignIn:
    def test_a_person_sees_the_data_sets_of_her_groups_and_no_other(self, office: OfficeService) -> None:
        ana, bo = office.sign_in("ana"), office.sign_in("bo")
        assert ana.get("/ui/datasets/ward").status_code == 200
        assert ana.get("/ui/datasets/tax").status_code == 404
        assert bo.get("/ui/datasets/ward").status_code == 404
        assert bo.get("/ui/datasets/tax").status_code == 200
        assert ana.get("/ui/tokens").status_code == 403

    def test_groups_give_roles(self, office: OfficeService) -> None:
        assert office.sign_in("sue").get("/ui/register").status_code == 200
        auditor = office.sign_in("aude")
        assert auditor.get("/ui/ledger").status_code == 200
        assert auditor.get("/ui/register").status_code == 403

    def test_a_person_without_a_known_group_is_refused_and_kept_nowhere(self, office: OfficeService) -> None:
        browser = office.browser()
        back = office.provider.authorize(office.provider.session("nobody"), office.begin(browser))
        assert browser.get(back).status_code == 403
        assert browser.get("/ui/").status_code == 303
        assert "nobody" not in [person.name for person in office.service.app.state.core.people.all()]

    def test_groups_that_the_settings_do_not_have_are_not_kept(self, office: OfficeService) -> None:
        office.sign_in("ana")
        assert office.service.app.state.core.people.find("ana").groups == ("health",)

    def test_what_the_provider_says_of_a_person_is_data(self, office: OfficeService) -> None:
        browser = office.browser()
        back = office.provider.authorize(office.provider.session("<b>eve</b>"), office.begin(browser))
        assert browser.get(back).status_code == 403  # the name has a /, which no name of the ledger has
        page = office.sign_in("ana").get("/ui/account")
        assert "<b>" not in page.text.replace("<body>", "")

    def test_the_cookie_of_the_session_is_new_and_for_our_pages_alone(self, office: OfficeService) -> None:
        browser = office.browser()
        browser.get("/ui/sign-in")
        before = browser.cookies["wallflower"]
        back = office.provider.authorize(office.provider.session("ana"), office.begin(browser))
        flags = browser.get(back).headers.get_list("set-cookie")
        session = next(flag for flag in flags if flag.startswith("wallflower="))
        assert before not in session
        assert "samesite=strict" in session.lower()
        assert "httponly" in session.lower()

    def test_the_address_asks_for_a_code_with_pkce_and_a_nonce(self, office: OfficeService) -> None:
        asked = parse_qs(urlsplit(office.begin(office.browser())).query)
        assert asked["response_type"] == ["code"]
        assert asked["code_challenge_method"] == ["S256"]
        assert asked["redirect_uri"] == [f"{office.address}/ui/sign-in/callback"]
        assert len(asked["code_challenge"][0]) == len(asked["nonce"][0]) == len(asked["state"][0]) == 43

    def test_a_name_belongs_to_the_account_that_had_it_first(self, office: OfficeService) -> None:
        office.sign_in("ana")
        people = office.service.app.state.core.people
        with pytest.raises(Refusal, match="Another account"):
            people.sign_in(issuer=office.provider.issuer, subject="else", name="ana", groups=GROUPS[:1], token_days=1)

    def test_no_secret_and_no_code_is_in_the_log(self, office: OfficeService, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level("INFO", "wallflower")
        browser = office.browser()
        back = office.provider.authorize(office.provider.session("ana"), office.begin(browser))
        browser.get(back)
        logged = "\n".join(record.getMessage() for record in caplog.records)
        asked = parse_qs(urlsplit(back).query)
        assert logged
        for value in (asked["code"][0], asked["state"][0], SECRET, browser.cookies["wallflower"]):
            assert value not in logged


class TestRefused:
    def test_a_state_that_is_wrong_or_missing(self, office: OfficeService) -> None:
        browser = office.browser()
        back = office.provider.authorize(office.provider.session("ana"), office.begin(browser))
        wrong = re.sub(r"state=[^&]*", "state=wrong", back, count=1)
        assert browser.get(wrong).status_code == 401
        assert browser.get("/ui/").status_code == 303
        assert browser.get(back).status_code == 401  # the refusal has ended this sign-in

    def test_a_callback_without_the_cookie_of_its_sign_in(self, office: OfficeService) -> None:
        back = office.provider.authorize(office.provider.session("ana"), office.begin(office.browser()))
        assert office.browser().get(back).status_code == 401

    def test_a_code_of_another_sign_in(self, office: OfficeService) -> None:
        """Neither nonce nor PKCE verifier of ours fits the code that somebody else was given."""
        victim, attacker = office.browser(), office.browser()
        back = office.provider.authorize(office.provider.session("ana"), office.begin(attacker))
        code = parse_qs(urlsplit(back).query)["code"][0]
        state = parse_qs(urlsplit(office.begin(victim)).query)["state"][0]
        answer = victim.get("/ui/sign-in/callback", params={"code": code, "state": state})
        assert answer.status_code == 401

    def test_a_code_twice(self, office: OfficeService) -> None:
        browser = office.browser()
        back = office.provider.authorize(office.provider.session("ana"), office.begin(browser))
        kept = dict(browser.cookies)
        assert browser.get(back).status_code == 200
        again = new_client(office.address, cookies=kept)
        assert again.get(back).status_code == 401

    def test_an_error_of_the_provider(self, office: OfficeService) -> None:
        browser = office.browser()
        state = parse_qs(urlsplit(office.begin(browser)).query)["state"][0]
        answer = browser.get("/ui/sign-in/callback", params={"error": "access_denied<b>", "state": state})
        assert answer.status_code == 401
        assert "access_denied" not in answer.text

    def test_a_cookie_that_is_forged_or_too_old(self, office: OfficeService, monkeypatch: pytest.MonkeyPatch) -> None:
        browser = office.browser()
        back = office.provider.authorize(office.provider.session("ana"), office.begin(browser))
        good = browser.cookies["wallflower-sign-in"]
        for bad in ("", "x", good[:-1] + ("0" if good[-1] != "0" else "1"), f"e30=.{good.partition('.')[2]}"):
            forged = new_client(office.address, cookies={"wallflower-sign-in": bad})
            assert forged.get(back).status_code == 401
        monkeypatch.setattr("wallflower.service.pages.openid.MAX_SIGN_IN_SECONDS", -1)
        assert browser.get(back).status_code == 401

    @pytest.mark.parametrize(
        "place", ["https://evil.test/ui/", "//evil.test/ui/", "/ui/../../x", "/ui/\\evil", "javascript:alert(1)"]
    )
    def test_a_place_that_is_not_ours_is_never_gone_to(self, office: OfficeService, place: str) -> None:
        browser = office.browser()
        back = office.provider.authorize(office.provider.session("ana"), office.begin(browser, place))
        answer = browser.get(back)
        assert "url=/ui/&#34;" in answer.text or 'url=/ui/"' in answer.text
        assert "evil" not in answer.text


class TestIdToken:
    """A real token of the provider, and what is checked of it."""

    def verify(self, office: OfficeService, text: str, **changed: Any) -> dict[str, Any]:
        token = openid.decode_signed(text, changed.pop("keys", None) or office.keys())
        expected = {"issuer": office.provider.issuer, "client_id": CLIENT, "nonce": "n" * 32, "access_token": None}
        now = token.claims["iat"] + 1
        return openid.verify_claims(token.claims, token.header, **{**expected, "now": now, **changed})

    def test_is_accepted(self, office: OfficeService) -> None:
        tokens = office.tokens()
        claims = self.verify(office, tokens["id_token"], access_token=tokens["access_token"])
        assert claims["preferred_username"] == "ana"

    def test_with_another_nonce(self, office: OfficeService) -> None:
        with pytest.raises(Exception, match="nonce"):
            self.verify(office, office.tokens()["id_token"], nonce="m" * 32)

    def test_for_another_client(self, office: OfficeService) -> None:
        with pytest.raises(Refusal):
            self.verify(office, office.tokens(OTHER_CLIENT)["id_token"])

    def test_of_another_issuer(self, office: OfficeService) -> None:
        with pytest.raises(Refusal):
            self.verify(office, office.tokens()["id_token"], issuer=f"{office.provider.issuer}/")

    def test_that_has_expired_beyond_the_skew(self, office: OfficeService) -> None:
        text = office.tokens()["id_token"]
        expires = openid.decode_signed(text, office.keys()).claims["exp"]
        self.verify(office, text, now=expires + openid.MAX_CLOCK_SKEW_SECONDS - 1)
        with pytest.raises(Exception, match="expired"):
            self.verify(office, text, now=expires + openid.MAX_CLOCK_SKEW_SECONDS + 1)

    def test_from_the_future(self, office: OfficeService) -> None:
        text = office.tokens()["id_token"]
        issued = openid.decode_signed(text, office.keys()).claims["iat"]
        with pytest.raises(Exception, match=r"iat|future|issued"):
            self.verify(office, text, now=issued - openid.MAX_CLOCK_SKEW_SECONDS - 1)

    def test_with_another_access_token(self, office: OfficeService) -> None:
        with pytest.raises(Exception, match="at_hash"):
            self.verify(office, office.tokens()["id_token"], access_token=SECRET)

    @pytest.mark.parametrize("algorithm", ["none", "None", "HS256"])
    def test_without_a_signature_of_the_provider(self, office: OfficeService, algorithm: str) -> None:
        header, body, signature = office.tokens()["id_token"].split(".")
        stated = json.loads(base64.urlsafe_b64decode(header + "=="))
        forged = base64.urlsafe_b64encode(json.dumps({**stated, "alg": algorithm}).encode()).rstrip(b"=").decode()
        for text in (f"{forged}.{body}.", f"{forged}.{body}.{signature}"):
            with pytest.raises((JoseError, ValueError)):
                self.verify(office, text)

    def test_whose_claims_were_changed(self, office: OfficeService) -> None:
        header, body, signature = office.tokens()["id_token"].split(".")
        stated = json.loads(base64.urlsafe_b64decode(body + "=="))
        changed = json.dumps({**stated, "groups": ["stewards"]}).encode()
        with pytest.raises(JoseError):
            self.verify(office, f"{header}.{base64.urlsafe_b64encode(changed).rstrip(b'=').decode()}.{signature}")


class TestKeys:
    def test_a_key_that_was_rotated_is_fetched(self, office: OfficeService, monkeypatch: pytest.MonkeyPatch) -> None:
        office.sign_in("ana")
        old = office.keys()
        office.provider.rotate_key()
        assert office.keys().as_dict() != old.as_dict()
        monkeypatch.setattr(openid, "MIN_REFETCH_SECONDS", 0.0)
        office.sign_in("ana")

    def test_an_answer_that_is_too_large_is_not_read(
        self, office: OfficeService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(openid, "MAX_ANSWER_BYTES", 100)
        client = openid.Provider(_openid_settings(office), "http://localhost/x")
        with pytest.raises(Refusal) as refusal:
            anyio.run(lambda: client.authorization_url(state="s", nonce="n", verifier="v" * 43, again=False))
        assert refusal.value.kind == "busy"

    def test_metadata_of_another_issuer_are_refused(self, office: OfficeService) -> None:
        stated = OpenId(issuer=f"{office.provider.issuer}/", client_id=CLIENT)
        client = openid.Provider(stated, "http://localhost/x")
        with pytest.raises(Refusal) as refusal:
            anyio.run(lambda: client.authorization_url(state="s", nonce="n", verifier="v" * 43, again=False))
        assert refusal.value.kind == "unauthenticated"


def _openid_settings(office: OfficeService) -> OpenId:
    stated = office.service.app.state.core.settings.openid
    assert isinstance(stated, OpenId)
    return stated


class TestSessionEnd:
    def test_signing_out_ends_the_session_here_and_leads_to_the_provider(self, office: OfficeService) -> None:
        browser = office.sign_in("ana")
        cookie = browser.cookies["wallflower"]
        answer = browser.post("/ui/sign-out", data={"proof": proof_in(browser.get("/ui/"))})
        asked = parse_qs(urlsplit(answer.headers["location"]).query)
        assert answer.headers["location"].startswith(f"{office.provider.issuer}/end_session?")
        assert asked["post_logout_redirect_uri"] == [f"{office.address}/ui/sign-in"]
        stale = new_client(office.address, cookies={"wallflower": cookie})
        assert stale.get("/ui/").status_code == 303

    def test_the_end_of_a_session_at_the_provider_ends_ours(self, office: OfficeService) -> None:
        """The provider itself calls our back channel."""
        browser, other = office.browser(), office.sign_in("bo")
        session = office.provider.session("ana")
        browser.get(office.provider.authorize(session, office.begin(browser)))
        assert browser.get("/ui/").status_code == 200
        kept = office.service.app.state.sessions.person_session(browser.cookies["wallflower"])
        office.provider.end_session(session, f"{office.provider.issuer}/end_session?id_token_hint={kept.id_token}")
        while browser.get("/ui/").status_code == 200:  # it calls in a thread of its own
            pass
        assert other.get("/ui/").status_code == 200

    @pytest.mark.parametrize("form", [{}, {"logout_token": "x"}, {"logout_token": "e30.e30."}])
    def test_a_logout_that_the_provider_did_not_sign_is_refused(
        self, office: OfficeService, form: dict[str, str]
    ) -> None:
        browser = office.sign_in("ana")
        assert httpx2.post(f"{office.address}/ui/sign-in/logout", data=form).status_code == 400
        assert browser.get("/ui/").status_code == 200

    def test_an_id_token_is_no_logout_token(self, office: OfficeService) -> None:
        text = office.tokens()["id_token"]
        assert httpx2.post(f"{office.address}/ui/sign-in/logout", data={"logout_token": text}).status_code == 400

    def test_a_session_ends_after_the_hours_of_the_settings(self, office: OfficeService) -> None:
        browser = office.sign_in("ana")
        sessions = office.service.app.state.sessions
        with sessions._store.read() as db:
            query = sa.text("SELECT expires FROM service_stays WHERE id = :id")
            expires = db.execute(query, {"id": session_key(browser.cookies["wallflower"])}).scalar_one()
        hours = (datetime.fromisoformat(expires) - moment()) / timedelta(hours=1)
        assert _openid_settings(office).session_hours - 0.1 < hours <= _openid_settings(office).session_hours
        with sessions._store.write() as db:
            stated = sa.text("UPDATE service_stays SET expires = :expires WHERE id = :id")
            db.execute(stated, {"expires": now(), "id": session_key(browser.cookies["wallflower"])})
        assert browser.get("/ui/").status_code == 303

    def test_a_disabled_person_is_out_at_once(self, office: OfficeService) -> None:
        browser, steward = office.sign_in("bo"), office.service.token("root", "steward")
        token = _own_token(browser)
        api = Caller(office.address, token)
        assert api.get("/v1/whoami").json["name"] == "bo"
        core = office.service.app.state.core
        caller = core.tokens.caller(steward.token)
        core.disable_person(caller, "bo")
        assert browser.get("/ui/").status_code == 303
        assert api.get("/v1/whoami").status == 401
        again = office.browser()
        back = office.provider.authorize(office.provider.session("bo"), office.begin(again))
        assert again.get(back).status_code == 403
        core.enable_person(caller, "bo")
        office.sign_in("bo")
        assert browser.get("/ui/").status_code == 303  # what has ended does not come back
        assert api.get("/v1/whoami").status == 401

    def test_a_name_is_given_to_another_account_by_a_steward(self, office: OfficeService) -> None:
        """As after a move to another provider. Sessions and tokens of the account before stay ended."""
        before, people = office.sign_in("bo"), office.service.app.state.core.people
        api = Caller(office.address, _own_token(before))
        steward = Caller(office.address, office.service.token("root", "steward").token)
        assert steward.post("/v1/people/bo/enable?another_account=true").problem == "conflict"
        assert steward.post("/v1/people/bo/disable").status == 200
        assert steward.post("/v1/people/bo/enable?another_account=true").status == 200
        assert before.get("/ui/").status_code == 303
        people.sign_in(issuer="https://new.example", subject="7", name="bo", groups=GROUPS[1:2], token_days=1)
        assert api.get("/v1/whoami").status == 401
        refused = office.browser()
        back = office.provider.authorize(office.provider.session("bo"), office.begin(refused))
        assert refused.get(back).status_code == 409
        steward.post("/v1/people/bo/disable")
        steward.post("/v1/people/bo/enable?another_account=true")
        office.sign_in("bo")
        assert "name given to another account" in [act["act"] for act in steward.get("/v1/acts").json["acts"]]


def _own_token(browser: httpx2.Client, scope: str = "analyst", days: str = "7") -> str:
    form = {"proof": proof_in(browser.get("/ui/account")), "scope": scope, "days": days}
    answer = browser.post("/ui/account", data=form)
    assert answer.status_code == 303, answer.text
    shown = re.search(r"wf_[0-9a-f]{12}_[A-Za-z0-9_-]{43}", browser.get("/ui/account").text)
    assert shown is not None
    return shown[0]


class TestOwnTokens:
    def test_a_token_has_the_rights_of_its_owner_and_no_more(self, office: OfficeService) -> None:
        browser = office.sign_in("ana")
        api = Caller(office.address, _own_token(browser))
        assert api.get("/v1/datasets/ward").status == 200
        assert api.get("/v1/datasets/tax").status == 404
        assert api.get("/v1/tokens").status == 403
        assert api.post("/v1/datasets/ward/ask/count", COUNT).status == 200
        form = {"proof": proof_in(browser.get("/ui/account")), "scope": "steward", "days": "7"}
        assert browser.post("/ui/account", data=form).status_code == 422
        assert browser.post("/ui/account", data={**form, "scope": "analyst", "days": "9999"}).status_code == 422

    def test_her_tokens_follow_her_groups_at_the_next_sign_in(self, office: OfficeService) -> None:
        api = Caller(office.address, _own_token(office.sign_in("ulla"), "steward"))
        assert api.get("/v1/tokens").status == 200
        office.provider.set_groups("ulla", ["health"])
        office.sign_in("ulla")
        office.service.app.state.core.tokens.forget_checks()
        assert api.get("/v1/tokens").status == 401
        office.provider.set_groups("ulla", ["stewards"])
        office.sign_in("ulla")
        assert api.get("/v1/tokens").status == 200

    def test_her_tokens_end_some_days_after_her_last_sign_in(self, office: OfficeService) -> None:
        api = Caller(office.address, _own_token(office.sign_in("ana")))
        core = office.service.app.state.core
        assert api.get("/v1/whoami").status == 200
        core.records.change(PEOPLE, "ana", tokens_until="2020-01-01T00:00:00.000+00:00")
        core.tokens.forget_checks()
        assert api.get("/v1/whoami").status == 401
        office.sign_in("ana")
        assert api.get("/v1/whoami").status == 200

    def test_she_revokes_her_own_and_nobody_elses(self, office: OfficeService) -> None:
        ana, sue = office.sign_in("ana"), office.sign_in("sue")
        text, others = _own_token(ana), _own_token(sue)
        form = {"proof": proof_in(ana.get("/ui/account"))}
        assert ana.post("/ui/account/revoke", data={**form, "token": others[3:15]}).status_code == 404
        assert ana.post("/ui/account/revoke", data={**form, "token": text[3:15]}).status_code == 303
        assert Caller(office.address, text).get("/v1/whoami").status == 401
        assert Caller(office.address, others).get("/v1/whoami").status == 200

    def test_a_token_makes_no_token(self, office: OfficeService) -> None:
        core = office.service.app.state.core
        caller = core.tokens.caller(office.service.token("ana").token)
        with pytest.raises(Refusal, match="makes no token"):
            core.issue_own_token(caller, "analyst", days=1)


class TestConfirmation:
    def test_a_change_asks_to_confirm_and_an_unproven_confirmation_is_refused(
        self, office: OfficeService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """This provider states no time of authentication, so nothing shows that it asked again."""
        browser = office.sign_in("sue")
        monkeypatch.setattr("wallflower.service.pages.sign_in._window", lambda _: timedelta(seconds=-1))
        form = {"proof": proof_in(browser.get("/ui/tokens")), "name": "zoe", "scope": "analyst", "days": "1"}
        asked = browser.post("/ui/tokens", data=form)
        assert asked.status_code == 401
        assert "/ui/sign-in/directory?again=1" in asked.text
        assert browser.post("/ui/tokens", data={**form, "again": "wf_x"}).status_code == 403
        url = str(browser.get("/ui/sign-in/directory?again=1").headers["location"])
        assert parse_qs(urlsplit(url).query)["prompt"] == ["login"]
        back = office.provider.authorize(office.provider.session("sue"), url)
        assert browser.get(back).status_code == 401

    def test_only_the_same_account_confirms_a_session(self, office: OfficeService) -> None:
        browser = office.sign_in("sue")
        sessions, people = office.service.app.state.sessions, office.service.app.state.core.people
        key, issuer = session_key(browser.cookies["wallflower"]), office.provider.issuer
        assert sessions.confirm_person(key, issuer, people.find("sue").subject)
        assert not sessions.confirm_person(key, issuer, "another")


def test_a_provider_that_is_down_is_said_and_tokens_still_sign_in(tmp_path: Path) -> None:
    with openid_provider() as provider, run_office(tmp_path, provider) as office:
        provider.add_client(CLIENT, office.address)
        browser = office.sign_in("ana")
        provider.stop()
        fresh = new_client(office.address)
        office.service.app.state.openid._metadata = None
        assert fresh.get("/ui/sign-in/directory").status_code == 503
        assert "cannot be reached" in fresh.get("/ui/sign-in?refused=busy").text
        assert browser.get("/ui/").status_code == 200
        page = fresh.get("/ui/sign-in")
        form = {"proof": proof_in(page), "token": str(office.service.token("tom").token)}
        assert fresh.post("/ui/sign-in", data=form).status_code == 303
        signed_out = browser.post("/ui/sign-out", data={"proof": proof_in(browser.get("/ui/"))})
        assert signed_out.headers["location"] == "/ui/sign-in"
        provider.start()
        office.sign_in("ana")


@needs_chromium
def test_a_person_signs_in_and_out_with_a_browser(office: OfficeService, chromium: Browser) -> None:  # noqa: F811
    """The provider is another site, so this shows that cookies, policy and redirects fit together."""
    granted = office.provider.session("ana").put(f"/api/auth/grant/{CLIENT}", json={"scope": "openid"})
    assert granted.status_code == 200
    someone = visitor(chromium, Service(office.service.app, office.address))
    page = someone.page
    page.goto(f"{office.address}/ui/datasets/ward")
    someone.shot("sign-in")
    page.get_by_role("link", name="Sign in with the account of your organisation").click()
    page.locator("#username").fill("ana")
    page.locator("#password").fill(PASSWORD)
    page.locator("#loginbut").click()
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("heading", name="ward")).to_be_visible()
    assert page.url == f"{office.address}/ui/datasets/ward"
    page.get_by_role("link", name="ana").click()
    expect(page.get_by_role("heading", name="Your account")).to_be_visible()
    someone.shot("account")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(f"{office.provider.url}/login.html*")
    someone.page.context.close()


@needs_chromium
@needs_axe
@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_no_page_of_the_sign_in_has_a_fault_that_axe_finds_or_is_wider_than_the_screen(
    office: OfficeService,
    chromium: Browser,  # noqa: F811
    language: str,
    width: int,
    scheme: str,
) -> None:
    look = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme, "locale": language}
    sue = visitor(chromium, Service(office.service.app, office.address), bypass_csp=True, **look)
    page, axe = sue.page, import_module(f"{AXE}.sync_playwright").Axe()

    def require_no_fault(name: str) -> None:
        sue.shot(f"{name}-{language}-{width}")
        violations = axe.run(page).response["violations"]
        assert [(fault["id"], fault["nodes"][0]["html"]) for fault in violations] == [], name
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        assert page.locator("html").get_attribute("lang") == language

    def forget_confirmation() -> None:
        kept = {cookie["name"]: cookie["value"] for cookie in page.context.cookies()}  # type: ignore[typeddict-item]
        with office.service.app.state.sessions._store.write() as db:
            stated = sa.text("UPDATE service_stays SET confirmed = :then WHERE id = :id")
            then = (moment() - timedelta(days=1)).isoformat(timespec="milliseconds")
            assert db.execute(stated, {"then": then, "id": session_key(kept["wallflower"])}).rowcount == 1

    for name, place in {"sign-in": "", "sign-in-refused": "?refused=unauthenticated"}.items():
        page.goto(f"{office.address}/ui/sign-in{place}")
        require_no_fault(name)
    person = office.sign_in("sue")
    _own_token(person)
    page.context.clear_cookies()
    cookie = {"name": "wallflower", "value": person.cookies["wallflower"], "domain": "localhost", "path": "/ui"}
    page.context.add_cookies([cookie])  # type: ignore[list-item]
    for name in ("account", "sign-in/confirmed", "tokens"):
        page.goto(f"{office.address}/ui/{name}")
        require_no_fault(name.replace("/", "-"))
    for by in ("person", "token"):
        if by == "token":
            page.context.clear_cookies()
            page.goto(f"{office.address}/ui/sign-in")
            page.locator("#token").fill(office.service.token("root", "steward").token or "")
            page.locator("form button.main").click()
            page.wait_for_url(f"{office.address}/ui/")
        page.goto(f"{office.address}/ui/tokens")
        forget_confirmation()
        page.locator("#name").fill("kim")
        page.locator("form button.main").click()
        expect(page.locator("h1")).to_have_text(CONFIRM[by, language])
        require_no_fault(f"confirm-{by}")
    page.context.close()


class TestSettings:
    @pytest.mark.parametrize(
        ("text", "named"),
        [
            ('[openid]\nclient_id = "x"', "openid.issuer"),
            ('[openid]\nissuer = "http://login.example.org"\nclient_id = "x"', "openid.issuer"),
            ('[openid]\nissuer = "https://login.example.org"\nclient_id = "x"', "address"),
            ('[openid]\nissuer = "https://l.example"\nclient_id = "x"\nscopes = ["groups"]', "openid.scopes"),
            ('[openid]\nissuer = "https://l.example"\nclient_id = "x"\nclient_secret = "y"', "openid.client_secret"),
            ("[trusted_header]", "proxies"),
            ('[trusted_header]\nuser = "X Remote"', "trusted_header.user"),
            ('[groups.a]\nrole = "king"', "groups.a.role"),
            ("[groups.a]\ndatasets = [1]", "groups.a.datasets"),
            ('[groups.a]\ndataset = ["x"]', "groups.a.dataset"),
        ],
    )
    def test_a_mistake_is_named(self, tmp_path: Path, text: str, named: str) -> None:
        (tmp_path / "service.toml").write_text(text)
        with pytest.raises(ParameterError, match=re.escape(named)):
            Settings.read(tmp_path / "service.toml")

    def test_settings_survive_the_way_to_a_worker(self, tmp_path: Path) -> None:
        (tmp_path / "secret").write_text(f"{SECRET}\n")
        (tmp_path / "service.toml").write_text(
            'proxies = ["127.0.0.1"]\n[office]\naddress = "https://stats.example"\n[openid]\nissuer = "https://l.example"\n'
            'client_id = "x"\nclient_secret_file = "secret"\n[groups.health]\ndatasets = ["ward"]\n'
        )
        stated = Settings.read(tmp_path / "service.toml")
        assert stated.openid is not None
        assert stated.openid.client_secret == SECRET
        assert Settings.from_json(stated.to_json()) == stated
