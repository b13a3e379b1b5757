"""Letters over HTTP: one token for one person, by which she reads what a detector says of her own record.

A token is `wfl_BODY.MAC`: the body names the data set, the detector, the identifier and the last moment; the MAC is
made with a secret of the service. It reads one letter and nothing else, and it is stored nowhere. It cannot be revoked,
so it expires.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from wallflower.data import Table
from wallflower.errors import EngineMismatch, ParameterError, PrivacyError
from wallflower.ledger import Ledger
from wallflower.queries.detector.model import Model
from wallflower.queries.who.letters import Letter, check_identifier, find_letter
from wallflower.service.core.access.tokens import shared_secret
from wallflower.service.core.catalog import Catalog
from wallflower.service.core.clock import moment, now
from wallflower.service.core.problems import Refusal
from wallflower.service.core.records import Records

PREFIX: Final = "wfl_"
_KEY_NAME: Final = "letters"
_MAX_TOKEN_LETTERS: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Whose letter a token reads."""

    dataset: str
    detector: int
    column: str
    identifier: str
    expires: str


class Letters:
    """The letters of one service."""

    def __init__(self, records: Records, catalog: Catalog, ledger: Ledger) -> None:
        self._records, self._catalog, self._ledger = records, catalog, ledger

    def issue(
        self, dataset: str, detector: int, column: str, identifiers: Sequence[str], *, days: int
    ) -> list[tuple[str, str]]:
        """Return a token for each identifier, for the steward to hand on. Nothing is said of who has a record."""
        model = self._model(dataset, detector)
        check_identifier(self._table(dataset), model, column)
        expires = (moment() + timedelta(days=days)).isoformat(timespec="seconds")
        return [
            (identifier, self._seal(Address(
                dataset=dataset, detector=detector, column=column, identifier=identifier, expires=expires
            )))
            for identifier in identifiers
        ]  # fmt: skip

    def read(self, token: str) -> Letter | None:
        """Return the letter of a token, or None for one that is not valid; refuse where there is no such record."""
        address = self._open(token)
        if address is None or now() >= address.expires:
            return None
        try:
            model, table = self._model(address.dataset, address.detector), self._table(address.dataset)
            letter = find_letter(model, table, address.column, address.identifier)
        except PrivacyError:
            letter = None
        if letter is None:
            raise Refusal("not-found", "There is no letter for you here. Ask the steward.")
        return letter

    def _model(self, dataset: str, detector: int) -> Model:
        stored = self._ledger.release(detector)
        if stored is None or stored["kind"] != "detector":
            raise ParameterError(f"detector: entry {detector} of the ledger is not a release of detector. Name one.")
        return Model.of(stored)

    def _table(self, dataset: str) -> Table:
        table = self._catalog.table(dataset)
        if not isinstance(table, Table):
            raise EngineMismatch(table.engine, "letters")
        return table

    def _seal(self, address: Address) -> str:
        fields = [address.dataset, address.detector, address.column, address.identifier, address.expires]
        body = base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")
        return f"{PREFIX}{body}.{self._mac(body)}"

    def _open(self, token: str) -> Address | None:
        if not token.startswith(PREFIX) or len(token) > _MAX_TOKEN_LETTERS or not token.isascii():
            return None
        body, _, mac = token.removeprefix(PREFIX).partition(".")
        if not hmac.compare_digest(self._mac(body), mac):
            return None
        try:
            fields: list[Any] = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        except (binascii.Error, ValueError):
            return None
        return Address(dataset=fields[0], detector=fields[1], column=fields[2], identifier=fields[3], expires=fields[4])

    def _mac(self, body: str) -> str:
        return hmac.new(shared_secret(self._records, _KEY_NAME), body.encode(), hashlib.sha256).hexdigest()
