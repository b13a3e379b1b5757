"""Calls to another party: HTTP over TLS with this party's certificate, or plain on loopback for tests and benchmarks.

A call that gets no answer raises `Unreachable`; whoever calls decides how long to try again.
"""

from __future__ import annotations

import socket
import ssl
from base64 import b64encode
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import ClassVar, Final
from urllib.parse import urlsplit

from wallflower.errors import ParameterError, PrivacyError
from wallflower.noise import Noise
from wallflower.sensors.parties.keys import Identity, who
from wallflower.sensors.parties.parameter_file import ParameterFile
from wallflower.sensors.protocol.seals import Forgery, signature

SIGNATURE: Final = "wallflower-signature"
CERTIFICATE: Final = "wallflower-certificate"
_TIMEOUT: Final = 30.0  # seconds without a byte
_FIRST, _LONGEST = 0.05, 5.0  # seconds between two tries
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


class Unreachable(PrivacyError):
    """The other party gave no answer, or one that says to try again."""

    exit_code: ClassVar[int] = 4


class Link:
    """One kept connection to one party, for one thread at a time."""

    def __init__(self, url: str, *, to: str, identity: Identity, signed: ParameterFile | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or not parts.port:
            raise ParameterError(f"{url!r} is not where a party is. Write https://host:port.")
        if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
            raise ParameterError(f"{url!r}: without TLS only loopback is called. Write https://.")
        self.to, self._identity, self._signed = to, identity, signed
        self._host, self._port, self._secure = parts.hostname, parts.port, parts.scheme == "https"
        self._connection: HTTPConnection | None = None

    def call(self, method: str, path: str, body: bytes = b"", *, signed: bytes | None = None) -> tuple[int, bytes]:
        """Status and body of the answer. What is sent is signed, now or when it was made."""
        headers = {"content-type": "application/octet-stream"}
        if body:
            proof = signature(self._identity.key, body) if signed is None else signed
            headers[SIGNATURE] = b64encode(proof).decode("ascii")
        if not self._secure:
            headers[CERTIFICATE] = b64encode(self._identity.certificate).decode("ascii")
        try:
            connection = self._connect()
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, HTTPException):
            self.close()
            raise Unreachable(f"{self.to}: no answer. See whether it runs and can be reached.") from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _connect(self) -> HTTPConnection:
        if self._connection is not None:
            return self._connection
        if not self._secure:
            made = HTTPConnection(self._host, self._port, timeout=_TIMEOUT)
        else:
            context = self._identity.client_context()
            made = HTTPSConnection(self._host, self._port, timeout=_TIMEOUT, context=context)
        made.connect()
        self._connection = made
        made.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if isinstance(made.sock, ssl.SSLSocket):
            self._require(made.sock.getpeercert(binary_form=True))
        return made

    def _require(self, certificate: bytes | None) -> None:
        peer = who(certificate or b"", self._identity.authority)
        if self._signed is not None:
            self._signed.require(peer)
        if peer.name != self.to:
            self.close()
            raise Forgery(f"{self.to}: {peer.name} answers there. Check the address.")


def pauses(noise: Noise) -> Iterator[float]:
    """Seconds to wait before each next try: twice as long each time, up to a limit, and never quite the same."""
    longest = _FIRST
    while True:
        yield longest * (0.5 + noise.below(2**20) / 2**21)
        longest = min(2 * longest, _LONGEST)
