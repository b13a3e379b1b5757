"""Releases that a steward has opened to the public, at a permanent link that needs no token.

A publication is never removed: one that is withdrawn stays in the list, and its link shows a notice. A release that
names a record, in its answer or in its parameters, cannot be published: its guarantee leaves that record out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from wallflower.errors import PrivacyError
from wallflower.ledger import Ledger
from wallflower.privacy import Loss
from wallflower.query.parameter import Question
from wallflower.release import Release
from wallflower.release.release import starter_note
from wallflower.service.core.access.tokens import Caller
from wallflower.service.core.clock import now
from wallflower.service.core.problems import Refusal
from wallflower.service.core.records import PUBLICATIONS, Records
from wallflower.text import t

MAX_REASON_LETTERS: Final = 500
# What a release says of the person who asked and of the budget, which is no part of the statistic.
PRIVATE_FIELDS: Final = frozenset({"analyst", "left", "booked", "limit", "replayed"})
_DATE_LETTERS: Final = 10

NoteAct = Callable[[str, Caller, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """A release that is or was open to the public.

    number     entry of its charge in the ledger
    dataset    name of the data set
    created    when it was published
    withdrawn  when it was withdrawn, if it was
    reason     why it was withdrawn, in words for the public
    """

    number: int
    dataset: str
    created: str
    withdrawn: str | None = None
    reason: str = ""

    @property
    def published_on(self) -> str:
        """The day of publication, as YYYY-MM-DD."""
        return self.created[:_DATE_LETTERS]

    @property
    def withdrawn_on(self) -> str:
        """The day of withdrawal, as YYYY-MM-DD; empty while the release is public."""
        return (self.withdrawn or "")[:_DATE_LETTERS]


class Publications:
    """Publications in the database of the ledger."""

    def __init__(self, records: Records, ledger: Ledger, questions: Sequence[Question], note_act: NoteAct) -> None:
        self._records, self._ledger, self._questions, self._note_act = records, ledger, questions, note_act

    def publish(self, caller: Caller, number: int) -> Publication:
        """Open a release to the public, and record the act."""
        _require_steward(caller)
        release = self._release(number)
        if release is None:
            raise _not_found()
        self.require_publishable(release)
        if not self._records.add(PUBLICATIONS, {"id": str(number), "dataset": release.dataset, "by": caller.name}):
            raise Refusal(
                "conflict",
                t("This release was published before, and one that was withdrawn stays withdrawn. Publish another."),
            )
        self._note_act("release published", caller, f"release {number} of {release.dataset}")
        return self._require(number)

    def withdraw(self, caller: Caller, number: int, reason: str) -> Publication:
        """Withdraw a publication with a notice, and record the act."""
        _require_steward(caller)
        publication, text = self._require(number), " ".join(reason.split())
        if not text or len(text) > MAX_REASON_LETTERS or not text.isprintable():
            raise Refusal(
                "parameter",
                t(
                    "The reason is missing or too long. Everybody can read it. Write 1 to {count} characters.",
                    count=MAX_REASON_LETTERS,
                ),
            )
        if not self._records.swap(PUBLICATIONS, str(number), {"withdrawn": None}, withdrawn=now(), reason=text):
            raise Refusal("conflict", t("This release is withdrawn already. Its notice stays as it is."))
        self._note_act("release withdrawn", caller, f"release {number} of {publication.dataset}")
        return self._require(number)

    def find(self, number: int) -> Publication | None:
        """Return the publication of a release, withdrawn ones included."""
        row = self._records.find(PUBLICATIONS, str(number))
        return None if row is None else _publication(row)

    def all(self) -> list[Publication]:
        """Return every publication, the latest first."""
        return [_publication(row) for row in reversed(self._records.all(PUBLICATIONS))]

    def release(self, number: int) -> tuple[Publication, Release[Any] | None]:
        """Return a publication with what the public may see of its release: nothing once it is withdrawn."""
        publication = self._require(number)
        if publication.withdrawn is not None:
            return publication, None
        release = self._release(number)
        if release is None or self.obstacle(release) is not None:
            raise _not_found()  # also where a row was written past `publish`
        return publication, public_part(release)

    def require_publishable(self, release: Release[Any]) -> None:
        """Refuse a release that can never be published."""
        obstacle = self.obstacle(release)
        if obstacle is not None:
            raise obstacle

    def obstacle(self, release: Release[Any]) -> Refusal | None:
        """Return why a release can never be published; None where it can."""
        question = next((known for known in self._questions if known.label == release.label), None)
        try:
            query = None if question is None else question.from_json(release.parameters)
        except PrivacyError:
            query = None
        if question is None or query is None:
            return Refusal(
                "conflict", t("This version cannot check whether the release names a record. It cannot be published.")
            )
        is_list = question.is_delivered_once or release.guarantee.names_records or "digest" in release.extras
        if is_list or query.record_name() is not None:
            return Refusal(
                "conflict",
                t("This release names records, and its guarantee does not cover them. It can never be published."),
            )
        return None

    def _release(self, number: int) -> Release[Any] | None:
        stored = self._ledger.release(number) if 0 < number < 2**31 else None
        return None if stored is None else Release.from_dict(stored)

    def _require(self, number: int) -> Publication:
        publication = self.find(number) if 0 < number < 2**31 else None
        if publication is None:
            raise _not_found()
        return publication


def public_part(release: Release[Any]) -> Release[Any]:
    """Return a release without the person who asked, the state of the budget, and the time of day."""
    nothing, of_budget = Loss("0"), starter_note(release.dataset)
    day = release.charged_at[:_DATE_LETTERS]
    notes = tuple(note for note in release.notes if note != of_budget)
    public = replace(release, analyst="", left=nothing, booked=None, limit=None, charged_at=day, replayed=False)
    return replace(public, notes=notes)


def public_document(release: Release[Any]) -> dict[str, Any]:
    """Return what is public of a release as JSON values."""
    return {name: value for name, value in public_part(release).to_dict().items() if name not in PRIVATE_FIELDS}


def _publication(row: dict[str, Any]) -> Publication:
    return Publication(
        number=int(row["id"]),
        dataset=row["dataset"],
        created=row["created"],
        withdrawn=row["withdrawn"],
        reason=row["reason"] or "",
    )


def _require_steward(caller: Caller) -> None:
    if not caller.is_steward:
        raise Refusal("forbidden", t("Only a data steward may do this. Ask the data steward."))


def _not_found() -> Refusal:
    return Refusal("not-found", t("No release with this number is public. See the list of public releases."))
