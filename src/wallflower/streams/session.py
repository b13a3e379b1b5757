"""Sessions of a watch: what is charged, what is remembered, and which observations a process may look at.

A session is one charge and the decisions made for it. Its `Checkpoint` is a SQLite file with the secret, what was spent
and every decision that was released; one process at a time has it. A decision is on disk when `keep` returns. The lock
file holds the number of decisions, so that a copy put in place of the file alone is detected.

A checkpoint can be copied, restored and run on two machines, and the ledger cannot know which copy looked at what. So a
process writes an intent to the ledger before it looks (`IntentLog`): up to which observation it will, and how far its
checkpoint had come. A checkpoint that has not come so far is an older copy; one that has come further than all intents
does not belong to this ledger. Either way its session is closed. Observations that an earlier process covered by an
intent and this checkpoint does not know are skipped: they may have been released.

Why a watch may be charged as one step, whatever is asked while it runs: proof.md of `ledger`, (I) and (B).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Protocol

from wallflower.errors import KeyConflict, SessionClosed, StateError
from wallflower.ledger import Block, Declaration, Ledger
from wallflower.ledger.chain import canonical
from wallflower.machine.sqlite_file import FileFormat, SqliteFile
from wallflower.machine.vault import OpenVault, SealedStore, Vault
from wallflower.privacy import Chargeable
from wallflower.units import Claim

OBSERVATIONS_PER_INTENT: Final = 256  # of this many decided, one is covered ahead: a crash skips no more
_NEXT: Final = """
SELECT 1 + max((SELECT coalesce(max(number), 0) FROM sessions), (SELECT coalesce(max(session), 0) FROM decisions))
"""
_FORMAT: Final = FileFormat(
    application_id=0x77666C32,
    tables="""
CREATE TABLE sessions (
    number INTEGER PRIMARY KEY,
    about TEXT NOT NULL,
    secret TEXT,
    checksum TEXT,
    memory TEXT NOT NULL,
    block INTEGER NOT NULL,
    spent INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('open', 'exhausted', 'closed'))
);
CREATE TABLE decisions (
    session INTEGER NOT NULL,
    observation INTEGER NOT NULL,
    flag INTEGER CHECK (flag IN (0, 1)),
    score INTEGER,
    PRIMARY KEY (session, observation)
) WITHOUT ROWID;
""",
    content="the checkpoint of a watch",
    replace_hint="Move the file away or name another; a new checkpoint starts a session, which is charged.",
    retry_hint="Free some disk space, then open the watch again: it resumes, and skips what it looked at meanwhile.",
    key_option="checkpoint_key, --checkpoint-key",
)

Row = tuple[int | None, int | None]  # a flag and a score; no flag: it was not looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One charge and what was decided for it.

    `about` is public: the charge, the data set, the question and its columns. `memory` is what the detector remembers
    of observations, such as the sum of a block that is not complete: sealed like the secret. `block` is the number of
    the note in the ledger under which the latest decisions were made.
    """

    number: int
    about: dict[str, Any]
    secret: tuple[int, ...] = field(repr=False)
    block: int = 0
    spent: int = field(default=0, repr=False)
    exhausted: bool = False
    position: int = 0
    memory: tuple[int, ...] = field(default=(), repr=False)


class Checkpoint:
    """The file of one watch, locked for this process."""

    def __init__(self, path: str | Path, vault: Vault | OpenVault | None = None) -> None:
        """Open or create the file. With a vault the secret of a session is sealed; decisions are released anyway."""
        self._file = SqliteFile(path, _FORMAT, vault=vault)
        try:
            self._file.check_integrity()
        except BaseException:
            self._file.close()
            raise

    def newest(self) -> Session | None:
        """The latest session, or None in a new file. Raises SessionClosed when it cannot go on."""
        with self._file.transaction() as db:
            row = db.execute("SELECT * FROM sessions ORDER BY number DESC LIMIT 1").fetchone()
            if row is None and db.execute("SELECT count(*) FROM decisions").fetchone()[0] == 0:
                return None
            place = 0 if row is None else row["number"]
            found = "SELECT count(*), max(observation) FROM decisions WHERE session = ?"
            count, last = db.execute(found, (place,)).fetchone()
        if row is None or row["status"] == "closed" or _checksum(row["about"], row["secret"]) != row["checksum"]:
            raise self.close_session("what it must remember is damaged or was given up")
        about = json.loads(row["about"])
        if count != (last or 0) or self._read_witness(about) > count:
            raise self.close_session("it is an older copy: more was decided than it knows of")
        return Session(
            number=place,
            about=about,
            secret=tuple(json.loads(self._unseal_secret(row["secret"], row["about"]))),
            block=row["block"],
            spent=row["spent"],
            exhausted=row["status"] == "exhausted",
            position=count,
            memory=tuple(json.loads(self._unseal_secret(row["memory"], row["about"]))) if row["memory"] else (),
        )

    def begin(self, about: dict[str, Any], secret: tuple[int, ...]) -> Session:
        """Start a session that is charged; it and its secret are on disk when this returns."""
        words = canonical(about)
        kept = self._seal_secret(json.dumps(list(secret)), words)
        with self._file.transaction() as db:
            db.execute("UPDATE sessions SET status = 'closed' WHERE status = 'open'")
            (number,) = db.execute(_NEXT).fetchone()
            row = (number, words, kept, _checksum(words, kept))
            db.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, '', 0, 0, 'open')", row)
        return Session(number=number, about=about, secret=secret)

    def keep(self, session: Session, decisions: Sequence[Row]) -> None:
        """Keep the latest decisions of a session and where it stands after them: all of it is on disk, or nothing."""
        first = session.position - len(decisions) + 1
        rows = ((session.number, first + place, *decision) for place, decision in enumerate(decisions))
        about = canonical(session.about)
        memory = self._seal_secret(json.dumps(list(session.memory)), about) if session.memory else ""
        with self._file.transaction() as db:
            db.executemany("INSERT INTO decisions VALUES (?, ?, ?, ?)", rows)
            status = "exhausted" if session.exhausted else "open"
            stands = (memory, session.block, session.spent, status, session.number)
            db.execute("UPDATE sessions SET memory = ?, block = ?, spent = ?, status = ? WHERE number = ?", stands)
        self._file.write_lock_note(f"{session.about['session']} {session.position:020}\n".encode("ascii"))

    def position_of(self, session: Session) -> int:
        """Return how many decisions of a session are on disk, even if a commit was not acknowledged."""
        asked = "SELECT coalesce(max(observation), 0) FROM decisions WHERE session = ?"
        with self._file.transaction() as db:
            return int(db.execute(asked, (session.number,)).fetchone()[0])

    def recall(self, session: Session, first: int, count: int) -> list[Row]:
        """Return stored decisions."""
        asked = (
            "SELECT flag, score FROM decisions WHERE session = ? AND observation BETWEEN ? AND ? ORDER BY observation"
        )
        with self._file.transaction() as db:
            return [tuple(row) for row in db.execute(asked, (session.number, first, first + count - 1))]

    def close_session(self, why: str) -> SessionClosed:
        """Close the latest session for good; gives the error to raise."""
        with self._file.transaction() as db:
            db.execute("UPDATE sessions SET status = 'closed' WHERE number = (SELECT max(number) FROM sessions)")
        return SessionClosed(
            f"{self._file.path}: {why}. Resuming could release more than was charged, so the session is closed. "
            "Start a new one, which is charged (renew=True, --renew)."
        )

    def _seal_secret(self, secret: str, about: str) -> str:
        vault = self._file.vault
        return secret if isinstance(vault, OpenVault) else vault.seal(secret.encode("ascii"), about).hex()

    def _unseal_secret(self, stored: str, about: str) -> str:
        vault = self._file.vault
        if isinstance(vault, OpenVault):
            return stored
        try:
            return vault.unseal(bytes.fromhex(stored), about).decode("ascii")
        except (SealedStore, ValueError):
            raise SealedStore(
                f"{self._file.path}: its session is sealed with another key. Name that key (checkpoint_key, "
                "--checkpoint-key)."
            ) from None

    def close(self) -> None:
        self._file.close()

    def abandon(self) -> None:
        """In a forked child: let go of the file, which stays with the parent."""
        self._file.abandon()

    def _read_witness(self, about: dict[str, Any]) -> int:
        """The number of decisions of this session that were released at least; 0 if it is not known."""
        name, _, count = self._file.read_lock_note().decode("ascii", "replace").partition(" ")
        return int(count) if name == about["session"] and count.strip().isdigit() else 0


def _checksum(about: str, secret: str | None) -> str:
    return hashlib.sha256(canonical({"about": about, "secret": secret}).encode("ascii")).hexdigest()


class Memory(Protocol):
    """What remembers sessions: the checkpoint of a watch, or the store of a fleet."""

    def newest(self) -> Session | None: ...

    def begin(self, about: dict[str, Any], secret: tuple[int, ...]) -> Session: ...

    def close_session(self, why: str) -> SessionClosed: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSession:
    """A session to decide in, where it stands in the ledger, and whether it was there before."""

    session: Session
    block: Block
    resumed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Payer:
    """Charges a ledger, and remembers in a checkpoint if there is one."""

    query: Chargeable
    claim: Claim
    declared: Declaration | None
    dataset: str
    analyst: str
    ledger: Ledger
    checkpoint: Memory | None
    check_useful: Callable[
        [], None
    ]  # refuses, or warns of, an answer that is mostly noise; asked before the charge alone

    def open_session(
        self,
        facts: Mapping[str, Any],
        secret: Callable[[], tuple[int, ...]],
        is_over: Callable[[int], bool],
        *,
        idempotency_key: str,
        renew: bool,
    ) -> OpenSession:
        """Resume a session that was charged; else charge one, and draw its secret."""
        about = {"dataset": self.dataset, "label": self.query.label, "query": self.query.to_json(), **facts}
        found = self._find_session(json.loads(canonical(about)), is_over, renew)
        return found or self._pay(about, secret, idempotency_key)

    def _pay(self, about: dict[str, Any], secret: Callable[[], tuple[int, ...]], idempotency_key: str) -> OpenSession:
        self.check_useful()
        try:
            receipt = self.ledger.charge(
                self.dataset,
                self.query,
                analyst=self.analyst,
                idempotency_key=idempotency_key,
                claim=self.claim,
                declared=self.declared,
            )
        except KeyConflict:
            receipt = None
        if receipt is None or receipt.stored is not None:
            raise KeyConflict(
                f"{self.dataset}: key {idempotency_key!r} was charged before, and this checkpoint has no session of "
                "that charge. A watch is resumed by its checkpoint; without one it ends when it is closed. "
                "Open that checkpoint, or choose a new key, which is charged."
            ) from None
        session = self._hash(receipt.id)
        about |= {"charge": receipt.id, "session": session}
        made = Session(number=1, about=about, secret=secret())
        if self.checkpoint is not None:
            made = self.checkpoint.begin(about, made.secret)
        return OpenSession(session=made, block=Block(charge=receipt.id, session=session, hash=session), resumed=False)

    def _find_session(
        self, asked: Mapping[str, Any], is_over: Callable[[int], bool], renew: bool
    ) -> OpenSession | None:
        try:
            session = None if self.checkpoint is None else self.checkpoint.newest()
            if self.checkpoint is None or session is None:
                return None
            self._require_same(session, asked)
            block = self._require_newest(session, self.checkpoint)
        except SessionClosed:
            if not renew:
                raise
            return None
        spent = bounded_spending(block, position=session.position, number=session.block, spent=session.spent)
        session = replace(session, spent=spent, exhausted=session.exhausted or is_over(spent))
        return None if renew and session.exhausted else OpenSession(session=session, block=block, resumed=True)

    def _require_same(self, session: Session, asked: Mapping[str, Any]) -> None:
        other = sorted(name for name, value in asked.items() if session.about.get(name) != value)
        if other:
            raise StateError(
                f"{self.dataset}: the checkpoint belongs to another watch; its {', '.join(other)} differ. Open the "
                "same watch, or name another checkpoint file."
            )

    def _require_newest(self, session: Session, checkpoint: Memory) -> Block:
        block = self.ledger.latest_block(session.about["charge"], session.about["session"])
        if block is None:
            raise SessionClosed(
                f"{self.dataset}: the checkpoint was charged in another ledger. Open that ledger, or start a new "
                "session, which is charged (renew=True, --renew)."
            )
        if session.exhausted:
            return block
        if session.position < block.settled:  # (B) the process that wrote it had kept as many decisions
            raise checkpoint.close_session("it is an older copy: the ledger knows of later decisions")
        if session.position > block.last:
            raise checkpoint.close_session("it is newer than the ledger, which is an older copy")
        return block

    def _hash(self, charge: int) -> str:
        """By which the chain of the ledger knows this charge."""
        found = self.ledger.history(self.dataset, event="charge", before=charge + 1, last=1)
        return found[0].hash if found and found[0].id == charge else ""


class IntentStore(Protocol):
    """The part of a ledger that keeps blocks."""

    def reserve(self, asked: Block, *, after: Block) -> Block: ...


class IntentLog:
    """The write-ahead intents of one open watch, from where its checkpoint stood when it was opened."""

    def __init__(self, notes: IntentStore, latest: Block, *, position: int, holder: str) -> None:
        self.block = latest
        self._notes, self._holder, self._begun_at = notes, holder, position
        self._skipped_until = latest.last  # (B) another process may have looked at these

    def count_skipped(self, position: int) -> int:
        """How many observations after this one are not looked at."""
        return max(0, self._skipped_until - position)

    def cover(
        self, position: int, last: int, spent: int, ahead: Callable[[int], int], *, reach: int | None = None
    ) -> bool:
        """Cover all after `position`, which is kept, up to `last`. Return False where another process goes on.

        `ahead` says what these looks may spend; it is noted with them, and more must not be spent. `reach` bounds how
        far beyond `position` is noted before it is needed.
        """
        if self._is_own and last <= self.block.last and spent + ahead(1) <= self.block.spent:
            return True
        share = (position - self._begun_at) // OBSERVATIONS_PER_INTENT
        end = max(last, self.block.last, position + (share if reach is None else min(share, reach)))
        looks = end - max(position, self._skipped_until)
        return self._write(settled=position, last=end, spent=spent + ahead(looks))

    def release(self, position: int, spent: int) -> None:
        """Give back what was covered and not looked at; nothing may be looked at afterwards."""
        if self._is_own:
            self._write(settled=position, last=max(position, self._skipped_until), spent=spent)

    @property
    def _is_own(self) -> bool:
        return self.block.holder == self._holder

    def _write(self, *, settled: int, last: int, spent: int) -> bool:
        said = replace(self.block, settled=settled, last=last, spent=spent, holder=self._holder, hash="")
        while not (self._is_own and self.block.is_as(said)):
            asked = replace(said, number=self.block.number + 1)
            found = self._notes.reserve(asked, after=self.block)
            if found.holder != self._holder:
                return False
            self.block = found  # it may be an earlier intent of ours whose write was reported as failed
        return True


def bounded_spending(latest: Block, *, position: int, number: int, spent: int) -> int:
    """Return what may have been spent, by a checkpoint at this position with its last decisions under block `number`.

    A checkpoint that has seen the last block to its end has seen all of its decisions; any other may lack some.  (B)
    """
    return spent if (number, position) == (latest.number, latest.last) else max(spent, latest.spent)
