"""Sign-in with an OpenID provider: the authorization code flow with PKCE [OpenID Connect Core, section 3.1; RFC 7636].

The provider's metadata and keys are fetched with a timeout and a size limit, and kept for some minutes; a key that is
not among them is looked for once more, so that a provider can rotate its keys at any time. Nothing that the provider
sends is logged, and no failure says more than that the sign-in failed.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

import httpx2
from anyio import Lock, fail_after
from authlib.integrations.base_client.errors import OAuthError
from authlib.integrations.httpx_client import AsyncOAuth2Client
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from wallflower.service.core.clock import moment
from wallflower.service.core.problems import Refusal
from wallflower.service.settings import OpenId, is_safe_endpoint

# Signatures that need the provider's private key: neither `none` nor a secret that this service holds too.
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
MAX_CLOCK_SKEW_SECONDS: Final = 60
MAX_ANSWER_BYTES: Final = 2**18
CALL_SECONDS: Final = 5.0
SIGN_IN_SECONDS: Final = 15.0
METADATA_SECONDS: Final = 600.0
MIN_REFETCH_SECONDS: Final = 5.0  # between two looks for an unknown key: a forged key id must not flood the provider
MAX_LOGOUT_AGE_SECONDS: Final = 600
MAX_GROUPS: Final = 10_000
_LOGOUT_EVENT: Final = "http://schemas.openid.net/event/backchannel-logout"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A person as the provider states it. Names and groups are data: nothing here is trusted as markup or as a path."""

    issuer: str
    subject: str
    name: str
    groups: tuple[str, ...]
    session: str | None
    authenticated: float | None
    id_token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Logout:
    """The sessions that the provider ended: those of a provider session, or all of a subject."""

    issuer: str
    subject: str | None
    session: str | None


class Provider:
    """The OpenID provider of the settings, for one process."""

    def __init__(self, settings: OpenId, redirect_uri: str) -> None:
        self._settings, self._redirect_uri = settings, redirect_uri
        self._metadata: tuple[float, dict[str, Any]] | None = None
        self._keys: tuple[float, KeySet] | None = None
        self._lock = Lock()

    async def authorization_url(self, *, state: str, nonce: str, verifier: str, again: bool) -> str:
        """Where to send the browser. `again` asks the provider to authenticate the person once more."""
        async with self._bound_calls():
            endpoint = (await self._fetch_metadata())["authorization_endpoint"]
        more = {"prompt": "login", "max_age": "1"} if again else {}
        async with self._client() as client:
            url, _ = client.create_authorization_url(endpoint, state=state, nonce=nonce, code_verifier=verifier, **more)
        return str(url)

    async def redeem(self, code: str, *, nonce: str, verifier: str) -> Identity:
        """Redeem an authorization code, and verify the ID token that it gives."""
        async with self._bound_calls():
            metadata = await self._fetch_metadata()
            async with self._client(_auth_method(metadata, self._settings)) as client:
                tokens = await client.fetch_token(
                    metadata["token_endpoint"], grant_type="authorization_code", code=code, code_verifier=verifier
                )
            text = tokens["id_token"]
            claims = await self._verify(text, nonce=nonce, access_token=tokens.get("access_token"))
            return self._identity(text, await self._complete(claims, metadata, tokens))

    async def read_logout(self, text: str) -> Logout:
        """Verify a logout token [OpenID Connect Back-Channel Logout 1.0, section 2.6]."""
        async with self._bound_calls():
            claims = (await self._decode(text)).claims
        now = moment().timestamp()
        is_for_us = claims.get("iss") == self._settings.issuer and _has_audience(claims, self._settings.client_id)
        issued = claims.get("iat")
        is_recent = isinstance(issued, int | float) and abs(now - issued) <= MAX_LOGOUT_AGE_SECONDS
        events = claims.get("events")
        is_logout = isinstance(events, dict) and _LOGOUT_EVENT in events and "nonce" not in claims
        subject, session = _text(claims.get("sub")), _text(claims.get("sid"))
        if not (is_for_us and is_recent and is_logout and (subject or session)):
            raise _failure()
        return Logout(issuer=self._settings.issuer, subject=subject, session=session)

    async def logout_url(self, *, id_token: str, return_to: str) -> str | None:
        """Where the browser ends the session at the provider; None: the provider has no such place."""
        async with self._bound_calls():
            endpoint = (await self._fetch_metadata()).get("end_session_endpoint")
        if not isinstance(endpoint, str) or not is_safe_endpoint(endpoint):
            return None
        stated = {
            "id_token_hint": id_token,
            "post_logout_redirect_uri": return_to,
            "client_id": self._settings.client_id,
        }
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(stated)}"

    async def _verify(self, text: str, *, nonce: str, access_token: str | None) -> dict[str, Any]:
        token = await self._decode(text)
        return verify_claims(
            token.claims,
            token.header,
            issuer=self._settings.issuer,
            client_id=self._settings.client_id,
            nonce=nonce,
            access_token=access_token,
            now=moment().timestamp(),
        )

    async def _decode(self, text: str) -> jwt.Token:
        """Check the signature, with keys that are fetched once more if none of the known ones fits."""
        if not isinstance(text, str) or len(text) > MAX_ANSWER_BYTES:
            raise _failure()
        known = await self._fetch_keys()
        try:
            return decode_signed(text, known)
        except JoseError:
            fresh = await self._fetch_keys(again=True)
            if fresh is known:
                raise
            return decode_signed(text, fresh)

    async def _complete(
        self, claims: dict[str, Any], metadata: Mapping[str, Any], tokens: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Add what the provider states at its userinfo endpoint alone."""
        endpoint, access = metadata.get("userinfo_endpoint"), tokens.get("access_token")
        missing = {self._settings.name_claim, self._settings.groups_claim} - set(claims)
        if not missing or not endpoint or not access:
            return claims
        stated = await self._get(endpoint, headers={"authorization": f"Bearer {access}"})
        if stated.get("sub") != claims["sub"]:
            raise _failure()
        return {**{name: stated[name] for name in missing if name in stated}, **claims}

    def _identity(self, text: str, claims: Mapping[str, Any]) -> Identity:
        name = claims.get(self._settings.name_claim)
        groups = claims.get(self._settings.groups_claim, ())
        listed = [groups] if isinstance(groups, str) else groups
        if not isinstance(name, str) or not isinstance(listed, Sequence) or len(listed) > MAX_GROUPS:
            raise _failure()
        authenticated = claims.get("auth_time")
        return Identity(
            issuer=self._settings.issuer,
            subject=str(claims["sub"]),
            name=name,
            groups=tuple(group for group in listed if isinstance(group, str)),
            session=_text(claims.get("sid")),
            authenticated=float(authenticated) if isinstance(authenticated, int | float) else None,
            id_token=text,
        )

    async def _fetch_metadata(self) -> dict[str, Any]:
        async with self._lock:
            if self._metadata is not None and time.monotonic() - self._metadata[0] < METADATA_SECONDS:
                return self._metadata[1]
            url = f"{self._settings.issuer.rstrip('/')}/.well-known/openid-configuration"
            metadata = await self._get(url)
            endpoints = [metadata.get(name) for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")]
            are_safe = all(isinstance(endpoint, str) and is_safe_endpoint(endpoint) for endpoint in endpoints)
            if metadata.get("issuer") != self._settings.issuer or not are_safe:
                raise _failure()
            userinfo = metadata.get("userinfo_endpoint")
            if not isinstance(userinfo, str) or not is_safe_endpoint(userinfo):
                metadata["userinfo_endpoint"] = None
            self._metadata = (time.monotonic(), metadata)
            return metadata

    async def _fetch_keys(self, *, again: bool = False) -> KeySet:
        metadata = await self._fetch_metadata()
        async with self._lock:
            oldest = MIN_REFETCH_SECONDS if again else METADATA_SECONDS
            if self._keys is not None and time.monotonic() - self._keys[0] < oldest:
                return self._keys[1]
            stated: Any = await self._get(metadata["jwks_uri"])
            keys = KeySet.import_key_set(stated)
            self._keys = (time.monotonic(), keys)
            return keys

    async def _get(self, url: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        async with _http_client() as client:
            answer = await client.get(url, headers={"accept": "application/json", **(headers or {})})
        if answer.status_code != 200:
            raise _unavailable()
        content = answer.json()
        if not isinstance(content, dict):
            raise _failure()
        return content

    @asynccontextmanager
    async def _client(self, method: str | None = None) -> AsyncIterator[Any]:
        settings = self._settings
        async with AsyncOAuth2Client(
            client_id=settings.client_id,
            client_secret=settings.client_secret,
            scope=" ".join(settings.scopes),
            redirect_uri=self._redirect_uri,
            token_endpoint_auth_method=method,
            code_challenge_method="S256",
            **_http_options(),
        ) as client:
            yield client

    @asynccontextmanager
    async def _bound_calls(self) -> AsyncIterator[None]:
        """Bound the time of all calls together, and turn every failure into a refusal without details."""
        try:
            with fail_after(SIGN_IN_SECONDS):
                yield
        except (httpx2.HTTPError, TimeoutError):
            raise _unavailable() from None
        except (OAuthError, JoseError, KeyError, TypeError, ValueError):
            raise _failure() from None


def decode_signed(text: str, keys: KeySet) -> jwt.Token:
    """Parse a token whose signature one of these keys has made; raises `JoseError` otherwise."""
    return jwt.decode(text, keys, algorithms=ALGORITHMS)


def verify_claims(
    claims: Mapping[str, Any],
    header: Mapping[str, Any],
    *,
    issuer: str,
    client_id: str,
    nonce: str,
    access_token: str | None,
    now: float,
) -> dict[str, Any]:
    """The claims of an ID token, if they are for this client, this sign-in and this moment; an error otherwise."""
    if claims.get("iss") != issuer or not _has_audience(claims, client_id):
        raise _failure()
    token = CodeIDToken(
        dict(claims), dict(header), params={"nonce": nonce, "client_id": client_id, "access_token": access_token}
    )
    token.validate(now=int(now), leeway=MAX_CLOCK_SKEW_SECONDS)
    return dict(token)


class _LimitedStream(httpx2.AsyncByteStream):
    """The body of an answer, up to a number of bytes."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._inner:
            size += len(piece)
            if size > MAX_ANSWER_BYTES:
                raise httpx2.ReadError("the answer of the OpenID provider is too large")
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


async def _limit_size(answer: httpx2.Response) -> None:
    answer.stream = _LimitedStream(answer.stream)


def _http_options() -> dict[str, Any]:
    """Options of every call: a timeout, a size limit, no redirects; trust is that of the machine's certificates."""
    return {
        "timeout": httpx2.Timeout(CALL_SECONDS),
        "follow_redirects": False,
        "event_hooks": {"response": [_limit_size]},
    }


def _http_client() -> httpx2.AsyncClient:
    return httpx2.AsyncClient(**_http_options())


def _auth_method(metadata: Mapping[str, Any], settings: OpenId) -> str:
    """How the client authenticates at the token endpoint [OpenID Connect Core, section 9]."""
    if settings.client_secret is None:
        return "none"
    offered = metadata.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
    return "client_secret_basic" if "client_secret_basic" in offered else "client_secret_post"


def _has_audience(claims: Mapping[str, Any], client_id: str) -> bool:
    audience = claims.get("aud")
    return client_id in audience if isinstance(audience, list) else audience == client_id


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= 255 and value.isprintable() else None


def _failure() -> Refusal:
    return Refusal("unauthenticated", "The sign-in at your office's directory was not accepted. Sign in again.")


def _unavailable() -> Refusal:
    return Refusal("busy", "Your office's directory cannot be reached. Try again, or sign in with a token.")
