"""A second factor for stewards: codes that change every half minute [RFC 6238], each of them taken once.

The secret of a factor is kept encrypted under the token that it belongs to, and of the token only a hash is kept: a
copy of the database holds neither, and the service itself can check a code only while the token is before it.
"""

from __future__ import annotations

import base64
import hmac
import time
from typing import Any, Final
from urllib.parse import quote, urlencode

from wallflower.curator.desk.access.tokens import Token, new_id, new_secret, token_id
from wallflower.curator.desk.problems import Refusal
from wallflower.curator.desk.records import FACTORS, Records
from wallflower.errors import ParameterError

STEP: Final = 30  # seconds that a code is shown for
DIGITS: Final = 6
_SKEW: Final = 1  # so many steps may the clocks of the two differ
_SECRET_BYTES: Final = 20  # what RFC 4226 advises; SHA-256 pads it in one piece
_FREE: Final = 5  # so many wrong codes in a row, then each further one doubles the wait
_LONGEST_WAIT: Final = 900


class Factors:
    """The second factors of one service, by the id of their token."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def enrol(self, token: Token, text: str) -> str:
        """A new second factor for a steward's token, as the address that an authenticator reads; never shown again."""
        if token.scope != "steward":
            raise ParameterError("a second factor is for stewards, and this token is none's. Enrol a steward's token.")
        secret, nonce = new_secret(_SECRET_BYTES), new_id()
        row = {"id": token.id, "nonce": nonce, "sealed": _mask(secret, text, nonce).hex()}
        if not self._records.add(FACTORS, row):
            raise Refusal("conflict", "This token has a second factor already. Remove it first.")
        stated = {"secret": base64.b32encode(secret).decode(), "issuer": "wallflower", "digits": DIGITS, "period": STEP}
        return f"otpauth://totp/wallflower:{quote(token.name, safe='')}?{urlencode(stated)}"

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
        """Refuse whoever holds a token with a second factor and does not show a code of it that is new.

        An attempt is counted before the code is looked at, and only one of those that come at once is: whoever guesses
        at many places has no more guesses.
        """
        row = self._records.find(FACTORS, token_id(text))
        if row is None:
            return
        if not code:
            raise Refusal("second-factor", "This token has a second factor. Give the code that it shows now.")
        self._begin(row)
        step = _step_of(_mask(bytes.fromhex(row["sealed"]), text, row["nonce"]), code)
        is_new = step is not None and step > int(row["used"] or 0)
        if not is_new or not self._records.swap(FACTORS, row["id"], {"used": row["used"]}, used=str(step), wrong="0"):
            raise Refusal("second-factor", "The code is wrong, too old, or was used before. Give the next one.")

    def _begin(self, row: dict[str, Any]) -> None:
        wrong, now = int(row["wrong"] or 0), time.time()
        wait = min(_LONGEST_WAIT, 2 ** (min(wrong, 99) - _FREE)) if wrong >= _FREE else 0
        before = {name: row[name] for name in ("used", "wrong", "tried")}
        is_due = not 0 <= now - float(row["tried"] or 0) < wait
        if not is_due or not self._records.swap(FACTORS, row["id"], before, wrong=str(wrong + 1), tried=f"{now:.6f}"):
            raise Refusal("too-many-attempts", "Too many codes that were wrong, or two at once. Wait, and try again.")


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
    now = int(time.time()) // STEP
    given = code.replace(" ", "").encode("utf-8", "surrogatepass")
    steps = range(now - _SKEW, now + _SKEW + 1)
    fitting = [step for step in steps if hmac.compare_digest(code_at(secret, step).encode(), given)]
    return max(fitting, default=None)


def _mask(secret: bytes, text: str, nonce: str) -> bytes:
    """The secret under a pad of its own, or out of it: 256 random bits of the token and a nonce make the pad."""
    pad = hmac.digest(text.encode(), f"second factor {nonce}".encode(), "sha256")
    return bytes(one ^ other for one, other in zip(secret, pad, strict=False))
