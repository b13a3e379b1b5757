"""Calls to another party: HTTP over TLS with this party's certificate, or plain on loopback for tests and benchmarks.

A call that gets no response raises `Unreachable`; the caller decides how long to retry.
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
from wallflower.sensors.parties.keys import Identity, SignedParameters, identify
from wallflower.sensors.protocol.frames import Forgery

SIGNATURE_HEADER: Final = "wallflower-signature"
CERTIFICATE_HEADER: Final = "wallflower-certificate"
LOOPBACK_HOSTS: Final = ("localhost", "127.0.0.1", "::1")
_TIMEOUT_SECONDS: Final = 30.0  # without a byte
_FIRST_DELAY_SECONDS, _MAX_DELAY_SECONDS = 0.05, 5.0  # between two tries


class Unreachable(PrivacyError):
    """The other party did not respond, or asked to retry."""

    exit_code: ClassVar[int] = 4


class Link:
    """One kept connection to one party, for one thread at a time."""

    def __init__(self, url: str, *, to: str, identity: Identity, signed: SignedParameters | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or not parts.port:
            raise ParameterError(f"{url!r} is not the address of a party. Write https://HOST:PORT.")
        if parts.scheme == "http" and parts.hostname not in LOOPBACK_HOSTS:
            raise ParameterError(f"{url!r}: only loopback is called without TLS. Write https://HOST:PORT.")
        self.to, self._identity, self._signed = to, identity, signed
        self._host, self._port, self._is_secure = parts.hostname, parts.port, parts.scheme == "https"
        self._connection: HTTPConnection | None = None

    def call(self, method: str, path: str, body: bytes = b"", *, signature: bytes | None = None) -> tuple[int, bytes]:
        """Return status and body of the response. The request is signed, unless its signature is passed."""
        headers = {"content-type": "application/octet-stream"}
        if body:
            signature = self._identity.key.sign(body) if signature is None else signature
            headers[SIGNATURE_HEADER] = b64encode(signature).decode("ascii")
        if not self._is_secure:
            headers[CERTIFICATE_HEADER] = b64encode(self._identity.certificate).decode("ascii")
        try:
            connection = self._connect()
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, HTTPException):
            self.close()
            raise Unreachable(f"{self.to}: no response. Check that it runs and can be reached.") from None
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
        if not self._is_secure:
            connection = HTTPConnection(self._host, self._port, timeout=_TIMEOUT_SECONDS)
        else:
            context = self._identity.client_context()
            connection = HTTPSConnection(self._host, self._port, timeout=_TIMEOUT_SECONDS, context=context)
        connection.connect()
        self._connection = connection
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if isinstance(connection.sock, ssl.SSLSocket):
            self._check_certificate(connection.sock.getpeercert(binary_form=True))
        return connection

    def _check_certificate(self, certificate: bytes | None) -> None:
        peer = identify(certificate or b"", self._identity.authority)
        if self._signed is not None:
            self._signed.check_peer(peer)
        if peer.name != self.to:
            self.close()
            raise Forgery(f"{self.to}: {peer.name} responds at this address. Check the address.")


def retry_delays(noise: Noise) -> Iterator[float]:
    """Yield seconds to wait before each next try: doubling up to a limit, with jitter."""
    longest = _FIRST_DELAY_SECONDS
    while True:
        yield longest * (0.5 + noise.below(2**20) / 2**21)
        longest = min(2 * longest, _MAX_DELAY_SECONDS)
