"""A second factor for people: codes that change every half minute [RFC 6238], each of them taken once.

A token with a second factor needs a code whatever it is used for. A code buys a *pass*, which stands for it for some
minutes; it is signed with a secret of the service and bound to the token and to the factor.

The secret of a factor is kept encrypted under the token that it belongs to, and of the token only a hash is kept: a
copy of the database holds neither, and the service itself can check a code only while the token is before it.
"""

from __future__ import annotations

import base64
import hmac
import time
from typing import Any, Final
from urllib.parse import quote, urlencode

from wallflower.errors import ParameterError
from wallflower.service.core.access.tokens import Token, new_id, new_secret, shared_secret, token_id
from wallflower.service.core.problems import Refusal
from wallflower.service.core.records import FACTORS, Records

STEP_SECONDS: Final = 30  # seconds that a code is shown for
DIGITS: Final = 6
_MAX_SKEW_STEPS: Final = 1  # between the clocks of authenticator and service
_SECRET_BYTES: Final = 20  # what RFC 4226 advises; SHA-256 pads it in one piece
_FREE_ATTEMPTS: Final = 5  # wrong codes in a row; each further one doubles the wait
_MAX_WAIT_SECONDS: Final = 900


class Factors:
    """The second factors of one service, by the id of their token."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def enrol(self, token: Token, text: str) -> str:
        """A new second factor for a token, as the address that an authenticator reads; never shown again."""
        secret = new_factor_secret()
        self._keep(token, text, secret)
        return authenticator_address(token.name, secret)

    def enrol_with_code(self, token: Token, text: str, secret: bytes, code: str) -> None:
        """Enrol a secret that an authenticator has, as a code of it shows."""
        step = _step_of(secret, code)
        if step is None:
            raise Refusal("second-factor", "The code is not what the authenticator shows now. Nothing was changed.")
        self._keep(token, text, secret, used=str(step))

    def _keep(self, token: Token, text: str, secret: bytes, **more: str) -> None:
        if token.scope == "monitor":
            raise ParameterError("second factor: a program reads the metrics, and has none. Enrol a person's token.")
        if token.scope == "agent":
            raise ParameterError("second factor: an agent has none, a person confirms for it. Enrol a person's token.")
        nonce = new_id()
        row = {"id": token.id, "nonce": nonce, "sealed": _mask(secret, text, nonce).hex(), **more}
        if not self._records.add(FACTORS, row):
            raise Refusal("conflict", "This token has a second factor already. Remove it first.")

    def make_pass(self, key: str, seconds: float) -> tuple[str, int]:
        """A text that stands for a code of this token's factor, and until when, in seconds since 1970."""
        row = self._records.find(FACTORS, key)
        if row is None:
            raise Refusal("not-found", "This token has no second factor, so it needs no code.")
        until = int(time.time() + seconds)
        return f"{until}.{self._sign(row, until)}", until

    def _sign(self, row: dict[str, Any], until: int) -> str:
        secret = shared_secret(self._records, "second factors")
        return hmac.digest(secret, f"{row['id']} {row['nonce']} {until}".encode(), "sha256").hex()

    def _is_pass(self, row: dict[str, Any], text: str) -> bool:
        until, _, signature = text.partition(".")
        if not (until.isascii() and until.isdigit() and len(until) < 20):
            return False
        is_signed = hmac.compare_digest(self._sign(row, int(until)).encode(), signature.encode("utf-8", "replace"))
        return is_signed and time.time() < int(until)

    def holders(self) -> frozenset[str]:
        """The ids of the tokens that have one."""
        return frozenset(row["id"] for row in self._records.all(FACTORS))

    def is_enrolled(self, key: str) -> bool:
        return self._records.find(FACTORS, key) is not None

    def remove(self, key: str) -> None:
        """Take the second factor of a token away."""
        if not self._records.remove(FACTORS, key):
            raise Refusal("not-found", "This token has no second factor, or there is no such token.")

    def require(self, text: str, code: str | None) -> None:
        """Refuse a token with a second factor without a fresh code or a pass.

        An attempt is counted before the code is checked, and of simultaneous attempts only one is accepted: guessing in
        parallel gains nothing.
        """
        row = self._records.find(FACTORS, token_id(text))
        if row is None:
            return
        if not code:
            raise Refusal("second-factor", "This token has a second factor. Give the code that it shows now.")
        if is_pass(code):
            if self._is_pass(row, code):
                return
            raise Refusal("second-factor", "The pass has expired, or is not of this token. Give a code for a new one.")
        self._begin(row)
        step = _step_of(_mask(bytes.fromhex(row["sealed"]), text, row["nonce"]), code)
        is_new = step is not None and step > int(row["used"] or 0)
        if not is_new or not self._records.swap(FACTORS, row["id"], {"used": row["used"]}, used=str(step), wrong="0"):
            raise Refusal("second-factor", "The code is wrong, too old, or was used before. Give the next one.")

    def _begin(self, row: dict[str, Any]) -> None:
        wrong, now = int(row["wrong"] or 0), time.time()
        wait = min(_MAX_WAIT_SECONDS, 2 ** (min(wrong, 99) - _FREE_ATTEMPTS)) if wrong >= _FREE_ATTEMPTS else 0
        before = {name: row[name] for name in ("used", "wrong", "tried")}
        is_due = not 0 <= now - float(row["tried"] or 0) < wait
        if not is_due or not self._records.swap(FACTORS, row["id"], before, wrong=str(wrong + 1), tried=f"{now:.6f}"):
            raise Refusal("too-many-attempts", "Too many codes that were wrong, or two at once. Wait, and try again.")


def is_pass(text: str) -> bool:
    """Whether a text is a pass, valid or not, and no code."""
    return "." in text


def new_factor_secret() -> bytes:
    """A secret for an authenticator."""
    return new_secret(_SECRET_BYTES)


def authenticator_address(name: str, secret: bytes) -> str:
    """The address that an authenticator reads."""
    stated = {
        "secret": base64.b32encode(secret).decode(),
        "issuer": "wallflower",
        "digits": DIGITS,
        "period": STEP_SECONDS,
    }
    return f"otpauth://totp/wallflower:{quote(name, safe='')}?{urlencode(stated)}"


def code_at(secret: bytes, step: int, *, digits: int = DIGITS, method: str = "sha1") -> str:
    """The code of this step [RFC 4226, section 5.3].

    >>> code_at(b"12345678901234567890", 1, digits=8)
    '94287082'
    """
    found = hmac.digest(secret, step.to_bytes(8, "big"), method)
    at = found[-1] & 15
    number = int.from_bytes(found[at : at + 4], "big") & 0x7FFF_FFFF
    return str(number % 10**digits).zfill(digits)


def _step_of(secret: bytes, code: str) -> int | None:
    """The step near now that has this code; every candidate is compared, in constant time."""
    now = int(time.time()) // STEP_SECONDS
    given = code.replace(" ", "").encode("utf-8", "surrogatepass")
    steps = range(now - _MAX_SKEW_STEPS, now + _MAX_SKEW_STEPS + 1)
    fitting = [step for step in steps if hmac.compare_digest(code_at(secret, step).encode(), given)]
    return max(fitting, default=None)


def _mask(secret: bytes, text: str, nonce: str) -> bytes:
    """The secret under a pad of its own, or out of it: 256 random bits of the token and a nonce make the pad."""
    pad = hmac.digest(text.encode(), f"second factor {nonce}".encode(), "sha256")
    return bytes(one ^ other for one, other in zip(secret, pad, strict=False))
