"""The service does TLS by itself: a real handshake, and nothing in the clear."""

from __future__ import annotations

import http.client
import ipaddress
import json
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from served import settings

from forks import COMMAND, Fork
from wallflower.errors import ParameterError, SourceError
from wallflower.service.server import serve


def certificate(folder: Path, lock: KeySerializationEncryption | None = None) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that vouches for itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "wallflower")])
    now, host = datetime.now(UTC), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder(issuer_name=name, subject_name=name, public_key=key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([host]), critical=False)
        .sign(key, hashes.SHA256())
    )
    cert, private = folder / "cert.pem", folder / "key.pem"
    cert.write_bytes(made.public_bytes(Encoding.PEM))
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock or NoEncryption()))
    return cert, private


class Encrypted(NamedTuple):
    host: str
    port: int
    trusted: ssl.SSLContext
    process: Fork

    def get(self, path: str, context: ssl.SSLContext) -> tuple[int, dict[str, str]]:
        """Status and headers, as soon as there are any: workers start after the socket listens."""
        while True:
            assert self.process.poll() is None, "the service has ended"
            with closing(http.client.HTTPSConnection(self.host, self.port, context=context)) as line:
                try:
                    line.request("GET", path)
                    answer = line.getresponse()
                    answer.read()
                    return answer.status, {name.lower(): value for name, value in answer.getheaders()}
                except ConnectionError:
                    time.sleep(0.02)


@contextmanager
def serve_encrypted(folder: Path, workers: int) -> Iterator[Encrypted]:
    """The service as its command starts it; where it is, and what trusts it."""
    cert, key = certificate(folder)
    command = ["serve", "--port", "0", "--workers", str(workers), "--ledger", str(folder / "ledger.db")]
    command += ["--tls-cert", str(cert), "--tls-key", str(key)]
    log = folder / "log"
    log.touch()
    with Fork(COMMAND, *command, log=str(log)) as running:
        try:
            while "\n" not in log.read_text():
                assert running.poll() is None, "the service has ended"
                time.sleep(0.02)
            place = urlsplit(log.read_text().split()[2].rstrip(";"))
            assert place.scheme == "https"
            context = ssl.create_default_context(cafile=str(cert))
            yield Encrypted(str(place.hostname), int(place.port or 0), context, running)
        finally:
            running.terminate()


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_service_with_a_certificate_speaks_tls_alone(tmp_path: Path, workers: int) -> None:
    with serve_encrypted(tmp_path, workers) as service:
        status, headers = service.get("/ui/sign-in", service.trusted)
        assert status == 200
        assert headers["set-cookie"].startswith("__Host-wallflower=")
        assert "secure" in headers["set-cookie"].lower()
        assert headers["strict-transport-security"] == "max-age=31536000"
        with pytest.raises(ssl.SSLCertVerificationError):
            service.get("/healthz", ssl.create_default_context())
        with socket.create_connection(service[:2]) as line:
            line.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
            assert b"200" not in line.recv(4096)
        plain = socket.create_connection(service[:2])
        with service.trusted.wrap_socket(plain, server_hostname=service.host) as safe:
            assert safe.version() in ("TLSv1.2", "TLSv1.3")
        assert probe_health(service.port) == 0
        weak = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
        weak.maximum_version = ssl.TLSVersion.TLSv1_2
        weak.set_ciphers("ECDHE-ECDSA-AES128-SHA256:ECDHE-ECDSA-AES256-SHA384")  # without authenticated encryption
        with pytest.raises(ssl.SSLError):
            service.get("/healthz", weak)


def probe_health(port: int) -> int:
    """What the HEALTHCHECK of the image ends with, for a service at this port."""
    text = (Path(__file__).parents[2] / "deploy" / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    command = json.loads(next(line for line in text.splitlines() if line.startswith("HEALTHCHECK")).partition("CMD")[2])
    code = command[2].replace("8080", str(port))
    return subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode


def test_a_certificate_needs_its_key(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    with pytest.raises(ParameterError, match="one is given without the other"):
        settings(tmp_path, tls_cert=str(cert))
    other = tmp_path / "other"
    other.mkdir()
    wrong = certificate(other)[1]
    for given in (key, tmp_path / "none.pem"):
        with pytest.raises(SourceError, match="cannot be opened, or are no certificate"):
            serve(settings(tmp_path, tls_cert=str(given), tls_key=str(key)), print)
    with pytest.raises(SourceError, match="Check the files"):
        serve(settings(tmp_path, tls_cert=str(cert), tls_key=str(wrong)), print)
    locked = certificate(other, BestAvailableEncryption(b"secret"))
    with pytest.raises(SourceError, match="without a password"):
        serve(settings(tmp_path, tls_cert=str(locked[0]), tls_key=str(locked[1])), print)
