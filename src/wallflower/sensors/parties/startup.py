"""Starting a party: its socket first, so that whoever waits learns the address, then its store, then calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from wallflower.errors import ParameterError, StateError
from wallflower.machine.listener import bind_socket
from wallflower.sensors.parties.analyst import Analyst
from wallflower.sensors.parties.correction import CorrectionServer
from wallflower.sensors.parties.keys import Identity
from wallflower.sensors.parties.owner import Owner
from wallflower.sensors.parties.parameter_file import ParameterFile
from wallflower.sensors.parties.party import Party
from wallflower.sensors.parties.web import serve
from wallflower.sensors.protocol.seals import Forgery

ROLES: Final[Mapping[str, Any]] = {"analyst": Analyst, "correction": CorrectionServer, "owner": Owner}
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


def run_party(
    role: str,
    identity: Identity,
    signed: ParameterFile,
    store: Path,
    where: tuple[str, int, bool],
    own: Mapping[str, Any],
    told: Callable[[str], object],
) -> None:
    """Run one party until a signal comes; `told` hears where it listens."""
    host, port, tls = where
    if identity.name != role or identity.public != getattr(signed.parameters, role):
        raise Forgery(f"{identity.folder}: not the keys of the {role} in the parameter set. Name the right folder.")
    if not tls and host not in LOOPBACK:
        raise ParameterError(f"--host {host}: without TLS only loopback is served. Leave --no-tls out.")
    party: Party = ROLES[role](identity, signed, store, **own)
    try:
        listening = bind_socket(host, port)
    except OSError as error:
        party.stop()
        raise StateError(f"{host}:{port}: {error.strerror}. Choose another port.") from None
    shown = f"[{host}]" if ":" in host else host
    told(f"{role} listens at {'https' if tls else 'http'}://{shown}:{listening.getsockname()[1]}")
    serve(party, listening, tls=tls)
