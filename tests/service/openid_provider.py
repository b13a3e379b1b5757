"""Debian's Glewlwyd, a real OpenID provider, as a process of its own for the tests that sign in.

Started as a program with the address of a service and a file, it writes settings for that service to the file and runs
until Ctrl-C: `python tests/service/openid_provider.py https://localhost:8443 directory.toml`.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from joserfc.jwk import RSAKey

GLEWLWYD = shutil.which("glewlwyd")
needs_glewlwyd = pytest.mark.skipif(
    GLEWLWYD is None and not os.environ.get("CI"), reason="`make test` installs Glewlwyd; it is not here yet"
)
SHARED = Path("/usr/share")
CLIENT, SECRET, PASSWORD = "wallflower", "the-secret-of-the-client", "the-password-of-everybody"
OTHER_CLIENT = "another-service"
PEOPLE = {
    "ana": ["health", "unknown-here"],
    "sue": ["stewards"],
    "ulla": ["stewards"],
    "aude": ["auditors"],
    "bo": ["tax"],
    "nobody": ["canteen"],
    "<b>eve</b>": ["health"],
}


def new_client(url: str, **more: Any) -> httpx2.Client:
    """A client with cookies that keeps no connection open, so that it need not be closed."""
    return httpx2.Client(base_url=url, timeout=60, limits=httpx2.Limits(max_keepalive_connections=0), **more)


@dataclass
class OpenIdProvider:
    """A provider with people, two clients and one key, which can be replaced."""

    port: int
    folder: Path
    process: subprocess.Popen[bytes] | None = None
    admin: httpx2.Client = field(default_factory=lambda: new_client(""))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def issuer(self) -> str:
        return f"{self.url}/api/oidc"

    def start(self) -> None:
        assert GLEWLWYD is not None
        command = [GLEWLWYD, "-c", str(self.folder / "glewlwyd.conf")]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        while True:
            try:
                if httpx2.get(f"{self.url}/config").status_code == 200:
                    return
            except httpx2.TransportError:
                assert self.process.poll() is None, (self.folder / "log").read_text()
            time.sleep(0.02)

    def stop(self) -> None:
        assert self.process is not None
        self.process.terminate()
        self.process.wait()

    def sign_in_admin(self) -> None:
        self.admin = self.session("admin", "password")

    def session(self, name: str, password: str = PASSWORD) -> httpx2.Client:
        """A browser without pages, signed in at the provider."""
        client = new_client(self.url)
        answer = client.post("/api/auth", json={"username": name, "password": password})
        assert answer.status_code == 200, answer.text
        return client

    def configure(self, key: RSAKey, method: str = "POST") -> None:
        """Set the plugin of OpenID Connect up, or give it another key."""
        path = "/api/mod/plugin/" if method == "POST" else "/api/mod/plugin/oidc"
        body = {"module": "oidc", "name": "oidc", "display_name": "oidc", "parameters": _plugin(self.issuer, key)}
        _require(self.admin.request(method, path, json=body))
        if method == "PUT":
            _require(self.admin.put("/api/mod/plugin/oidc/reset"))

    def rotate_key(self) -> None:
        """Sign with another key from now on, and forget the one before."""
        self.configure(_new_key(), "PUT")

    def add_people(self) -> None:
        module = self.admin.get("/api/mod/user/database").json()
        rule = {"multiple": True, "read": True, "write": True, "profile-read": False, "profile-write": False}
        module["parameters"]["data-format"]["groups"] = rule
        _require(self.admin.put("/api/mod/user/database", json=module))
        _require(self.admin.put("/api/mod/user/database/reset/"))
        scope = {"name": "openid", "display_name": "openid", "password_required": True, "password_max_age": 0}
        _require(self.admin.put("/api/scope/openid", json={**scope, "scheme": {}}))
        for name, groups in PEOPLE.items():
            person = {"username": name, "password": PASSWORD, "name": f"{name} & Co", "email": f"{name}@example.org"}
            scopes = ["g_profile", "openid"]
            _require(self.admin.post("/api/user/", json={**person, "scope": scopes, "groups": groups}))

    def set_groups(self, name: str, groups: list[str]) -> None:
        person = self.admin.get(f"/api/user/{name}").json()
        _require(self.admin.put(f"/api/user/{name}", json={**person, "groups": groups}))

    def add_client(self, client_id: str, address: str) -> None:
        client = {
            "client_id": client_id,
            "confidential": True,
            "client_secret": SECRET,
            "enabled": True,
            "scope": [],
            "redirect_uri": [f"{address}/ui/sign-in/callback"],
            "authorization_type": ["code"],
            "token_endpoint_auth_method": ["client_secret_basic"],
            "post_logout_redirect_uri": f"{address}/ui/sign-in",
            "backchannel_logout_uri": f"{address}/ui/sign-in/logout",
        }
        _require(self.admin.post("/api/client/", json=client))

    def authorize(self, session: httpx2.Client, url: str) -> str:
        """What the provider answers at an authorization URL, once its client is granted the scope: where it leads."""
        client_id = parse_qs(urlsplit(url).query)["client_id"][0]
        _require(session.put(f"/api/auth/grant/{client_id}", json={"scope": "openid"}))
        answer = session.get(f"{url}&g_continue")
        assert answer.status_code == 302, (answer.status_code, answer.text)
        return str(answer.headers["location"])

    def end_session(self, session: httpx2.Client, url: str) -> None:
        """Confirm the end of a session at the provider, which tells its clients."""
        lead = urlsplit(session.get(url).headers["location"])
        sid = parse_qs(lead.query)["sid"][0]
        _require(session.delete(f"/api/oidc/session/{sid}"))


def _require(answer: httpx2.Response) -> None:
    assert answer.status_code == 200, (str(answer.request.url), answer.status_code, answer.text)


def _new_key() -> RSAKey:
    key = RSAKey.generate_key(2048, {"use": "sig", "alg": "RS256"})
    key.ensure_kid()
    return key


def _plugin(issuer: str, key: RSAKey) -> dict[str, Any]:
    enabled = {f"auth-type-{name}-enabled": name in ("code", "refresh") for name in _AUTH_TYPES}
    claims = [("groups", "groups"), ("preferred_username", "username")]
    return {
        "iss": issuer,
        "jwks-private": json.dumps({"keys": [key.as_dict(private=True)]}),
        "default-kid": key.kid,
        "jwks-show": True,
        "access-token-duration": 3600,
        "refresh-token-duration": 3600,
        "code-duration": 600,
        "refresh-token-rolling": False,
        "allow-non-oidc": False,
        **enabled,
        "pkce-allowed": True,
        "pkce-required": True,
        "pkce-method-plain-allowed": False,
        "session-management-allowed": True,
        "back-channel-logout-allowed": True,
        "front-channel-logout-allowed": True,
        "session-cookie-name": "OIDC",
        "session-cookie-expiration": 3600,
        "subject-type": "public",
        "name-claim": "mandatory",
        "email-claim": "mandatory",
        "scope-claim": "no",
        "claims": [
            {"name": name, "user-property": source, "type": "string", "mandatory": True} for name, source in claims
        ],
        "scope": [],
        "additional-parameters": [],
        "allowed-scope": ["openid"],
    }


_AUTH_TYPES = ("code", "token", "id-token", "none", "password", "client", "implicit", "refresh", "device")


@contextmanager
def openid_provider() -> Iterator[OpenIdProvider]:
    """A provider with its people, until the tests are over. Clients are added by those who know their address."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        _write_files(folder, port)
        provider = OpenIdProvider(port, folder)
        provider.start()
        try:
            provider.sign_in_admin()
            provider.configure(_new_key())
            provider.add_people()
            yield provider
        finally:
            provider.stop()


def _write_files(folder: Path, port: int) -> None:
    """Debian's own configuration, database and pages, with another port and place."""
    with gzip.open(SHARED / "doc/glewlwyd/database/init.sqlite3.sql.gz", "rt") as script:
        database = sqlite3.connect(folder / "glewlwyd.db")
        database.executescript(script.read())
        database.close()
    pages = folder / "webapp"  # a copy: it serves no link that leads out of the folder
    shutil.copytree(SHARED / "glewlwyd/webapp", pages, ignore=shutil.ignore_patterns("config.json"))
    stated = Path("/etc/glewlwyd/config-2.7.json")
    shutil.copy(stated / "config.json" if stated.is_dir() else stated, pages / "config.json")
    with gzip.open(SHARED / "doc/glewlwyd/glewlwyd.conf.sample.gz", "rt") as sample:
        text = sample.read()
    for old, new in (
        ("port=4593", f"port={port}"),
        ("http://localhost:4593", f"http://127.0.0.1:{port}"),
        ("/var/cache/glewlwyd/glewlwyd.db", str(folder / "glewlwyd.db")),
        ("/usr/share/glewlwyd/webapp/", f"{pages}/"),
        ("cookie_secure=1", "cookie_secure=0"),
        ('cookie_domain="localhost"', ""),
        ('#bind_address="127.0.0.1"', 'bind_address="127.0.0.1"'),
    ):
        assert old in text, old
        text = text.replace(old, new)
    (folder / "glewlwyd.conf").write_text(text)


def _settings_for(provider: OpenIdProvider, secret: Path) -> str:
    """What the settings of a service need so that people of this provider sign in."""
    return f"""
[openid]
issuer = "{provider.issuer}"
client_id = "{CLIENT}"
client_secret_file = "{secret}"
scopes = ["openid"]

[groups.health]
datasets = ["ward"]

[groups.stewards]
role = "steward"

[groups.auditors]
role = "auditor"
"""


def main(address: str, settings: Path) -> None:
    """Run a provider for the service at an address until Ctrl-C, and write the settings that the service needs."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    secret = settings.resolve().with_suffix(".secret")
    with openid_provider() as provider:
        provider.add_client(CLIENT, address)
        secret.touch(mode=0o600)
        secret.write_text(SECRET)
        settings.write_text(_settings_for(provider, secret))
        people = f"ana (analyst), sue and ulla (stewards), aude (auditor); password: {PASSWORD}"
        sys.stdout.write(f"Glewlwyd at {provider.url}. Ctrl-C ends it.\n  settings  {settings}\n  people    {people}\n")
        sys.stdout.flush()
        with suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
