"""The `Host` header of a request: which names the service answers to.

Links, citations and snippets that carry a token must not lead where a stranger's header says, and a page that an
attacker's name resolves to (DNS rebinding) must not be ours.
"""

from __future__ import annotations

import re
from typing import Final

from starlette.types import Scope

from wallflower.curator.desk.problems import Refusal
from wallflower.curator.office import normalise_host

OPERATION: Final = frozenset({"/healthz", "/readyz", "/metrics"})
_PORT: Final = re.compile(r":[0-9]+$")
_LOCAL_NAMES: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})


def require_host(scope: Scope, address: str) -> None:
    """Refuse a request without exactly one `Host`, or whose `Host` is not the service's.

    With an `address` in the settings only its host is right. Without one the service answers to `localhost`, and to
    the IP address that the connection came to. Paths of `OPERATION` answer to any host: probes and scrapers reach a
    process by its own address, and these answers hold no links.
    """
    hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
    is_operation = scope["path"] in OPERATION
    if len(hosts) != 1 and not (is_operation and not hosts and scope["http_version"] == "1.0"):
        raise Refusal("malformed", "The request has no Host header, or several. Send one.")
    if is_operation:
        return
    scheme = scope["scheme"]
    if address:
        scheme, _, expected = address.partition("://")
        if normalise_host(hosts[0], scheme) != expected:
            raise Refusal("misdirected", f"This service is at {address}. Send the request there.")
    elif not _is_local(normalise_host(hosts[0], scheme), scope):
        raise Refusal(
            "misdirected",
            "The service does not know itself by this host. It answers to localhost, to the IP address that it "
            "listens on, and to the `address` in its settings ([office]). Use one of them, or state the address.",
        )


def _is_local(host: str, scope: Scope) -> bool:
    name = _PORT.sub("", host)
    server_ip, _ = scope.get("server") or ("", None)
    return name in _LOCAL_NAMES or (bool(name) and name.strip("[]") == server_ip)
