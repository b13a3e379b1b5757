"""The parameter set as a file: signed by the owner, and believed by whoever trusts the owner's certificate."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from typing import Any

from wallflower.errors import ParameterError
from wallflower.sensors.parameters import Parameters
from wallflower.sensors.parties.keys import Identity, Peer, who
from wallflower.sensors.protocol.seals import Forgery, require_signature, signature


@dataclass(frozen=True, slots=True)
class ParameterFile:
    """A parameter set together with the bytes that prove whose it is."""

    parameters: Parameters
    body: bytes = field(repr=False)

    def key_of(self, name: str) -> bytes | None:
        """The key that the set states for a server or the owner; sensors are known by their certificates alone."""
        stated = {"analyst": self.parameters.analyst, "correction": self.parameters.correction}
        stated["owner"] = self.parameters.owner
        return bytes.fromhex(stated[name]) if name in stated else None

    def require(self, peer: Peer) -> Peer:
        """Refuse a party whose certificate holds another key than the owner signed."""
        key = self.key_of(peer.name)
        if key is not None and key != peer.key:
            raise Forgery(f"{peer.name}: its key is not the one in the parameter set. Sign a set that names it.")
        return peer


def sign_parameters(parameters: Parameters, owner: Identity) -> ParameterFile:
    """The set with the owner's signature and certificate."""
    if owner.name != "owner" or owner.public != parameters.owner:
        raise Forgery("only the owner that the parameter set names can sign it. Use the owner's keys.")
    content = {
        "parameters": parameters.to_json(),
        "signature": b64encode(signature(owner.key, parameters.body)).decode("ascii"),
        "certificate": b64encode(owner.certificate).decode("ascii"),
    }
    return ParameterFile(parameters, (json.dumps(content, indent=1) + "\n").encode("ascii"))


def verify_parameters(body: bytes, authority: bytes) -> ParameterFile:
    """The set in a signed file, or a refusal if the owner did not sign exactly that."""
    try:
        content: dict[str, Any] = json.loads(body)
        stored, given, certificate = content["parameters"], content["signature"], content["certificate"]
        proof, der = b64decode(given, validate=True), b64decode(certificate, validate=True)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ParameterError("parameters: not a signed set. Take the file that `sensors sign` wrote.") from None
    owner = who(der, authority)
    parameters = Parameters.from_json(stored)
    if owner.name != "owner" or owner.key.hex() != parameters.owner:
        raise Forgery("the parameter set is not signed by the owner that it names. Ask the owner for the right one.")
    require_signature(owner.key, proof, parameters.body)
    return ParameterFile(parameters, body)
