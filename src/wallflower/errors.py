"""Every error wallflower raises on purpose.

A message has three beats: what was asked, what is allowed, what to do. None of them ever holds a value of a
record, a count or a distance; numbers that a caller may want are attributes.
"""

from __future__ import annotations

import traceback
import types
from shlex import quote
from typing import ClassVar


class PrivacyError(Exception):
    """The root: catch this to catch everything that is ours."""

    exit_code: ClassVar[int] = 2


class ParameterError(PrivacyError, ValueError):
    """A parameter is outside its public range; nothing was looked at."""


class ConfigError(ParameterError):
    """The file of a project says what no such file may say, or cannot be trusted; nothing was looked at."""

    def __init__(self, path: object, key: str, wrong: str, remedy: str) -> None:
        said = f"{path}: {key} {wrong}" if key else f"{path}: {wrong}"
        super().__init__(f"{said}. {remedy}{'' if remedy.endswith('?') else '.'}")
        self.path, self.key = path, key


class LossMismatch(PrivacyError, TypeError):
    """Two losses of unlike guarantee or unlike neighbours were added or compared."""


class ScaleMismatch(ParameterError):
    """The release that a question takes its scales from is none, or of another data set, or of other columns."""


class EngineMismatch(ParameterError):
    """The engine that keeps a table cannot answer the question; nothing was looked at and nothing charged."""

    def __init__(self, engine: str, asked: str = "the question", instead: str = "") -> None:
        remedy = instead or "Open the table in memory (engine='memory', --engine memory) where it fits"
        super().__init__(f"{asked}: cannot be answered by the engine {engine!r}, tile by tile. {remedy}.")
        self.engine = engine


class PackageMissing(PrivacyError, ImportError):
    """A feature needs a package of an optional extra that is not installed.

    >>> str(PackageMissing("matplotlib", extra="plots"))
    "matplotlib is not installed, and this feature needs it. Install it: pip install 'wallflower[plots]'."
    """

    def __init__(self, package: str, *, extra: str) -> None:
        super().__init__(
            f"{package} is not installed, and this feature needs it. Install it: pip install 'wallflower[{extra}]'."
        )
        self.package, self.extra = package, extra


class DataError(PrivacyError, ValueError):
    """The table does not fit its public schema, or has none that would fit."""

    def __init__(self, message: str, *, column: str | None = None) -> None:
        super().__init__(message)
        self.column = column


class SourceError(PrivacyError, OSError):
    """The source could not be read: no such file, not that format, refused by the database."""

    exit_code = 4


class BudgetExhausted(PrivacyError):
    """The budget does not cover the question; nothing was charged and nothing is locked."""

    exit_code = 3

    def __init__(
        self,
        dataset: str,
        *,
        asked: object,
        left: object,
        remedy: str | None = None,
        part: str | None = None,
        why: str | None = None,
        booked: object = None,
    ) -> None:
        remedy = remedy or "Lower the loss, or ask the data owner for more budget (wallflower budget grant)."
        counts = "" if booked is None or booked == asked else f", which counts as {booked} there"
        reason = "" if why is None else f" ({why})"
        super().__init__(f"{dataset}: asked for {asked}{counts}, {left} is left{reason}. {remedy}")
        self.dataset, self.asked, self.left, self.part, self.booked = dataset, asked, left, part, booked
        self.why, self.remedy = why, remedy


class NotUseful(PrivacyError):
    """The plan predicts a mostly noisy answer; nothing was charged. Override with force=True."""

    exit_code = 3

    def __init__(self, kind: str, *, verdict: str, smallest: str | None = None) -> None:
        super().__init__(
            f"{kind}: {verdict.rstrip('.')}. Nothing was charged. Change the question, or run it anyway "
            "(force=True in Python and HTTP, --force on the command line)."
        )
        self.kind, self.verdict, self.smallest = kind, verdict, smallest


class Untranslatable(PrivacyError):
    """No theorem says what the question's loss is in the unit that the data set protects."""

    exit_code = 3

    def __init__(self, why: str, *, dataset: str | None = None, remedy: str = "") -> None:
        super().__init__(f"{f'{dataset}: ' if dataset else ''}{why}.{f' {remedy}' if remedy else ''}")
        self.why, self.dataset, self.remedy = why, dataset, remedy


class SameRecords(PrivacyError):
    """A data set holds, wholly or in part, the records of one that has an account of its own. Told to stewards only."""

    exit_code = 3

    def __init__(self, dataset: str, *, other: str) -> None:
        declare, name = f"wallflower budget declare {quote(dataset)}", quote(other)
        super().__init__(
            f"{dataset}: these are, wholly or in part, the records of {other}. Data sets that share people share one "
            f"account. Join it ({declare} --account {name} --reason WHY), or say that these are other people "
            f"({declare} --apart {name} --reason WHY)."
        )
        self.dataset, self.other = dataset, other


class LedgerError(PrivacyError):
    """The ledger could not be opened, read or written."""

    exit_code = 4


class LedgerUnreachable(LedgerError):
    """Its database does not answer or cannot be written, for want of room perhaps; later it may."""


class ChainBroken(LedgerError):
    """A row of the ledger is not the row that was written."""

    def __init__(self, message: str, *, entry: int) -> None:
        super().__init__(message)
        self.entry = entry


class KeyConflict(LedgerError):
    """An idempotency key was used before, for another question or for one whose answer was lost."""


class AnswerPending(KeyConflict):
    """The query of this key was charged and its answer is not recorded: it is being computed, or was lost in a crash.

    `charge` is the ledger entry of the charge; the release has the same number once it is recorded.
    """

    def __init__(self, message: str, *, charge: int) -> None:
        super().__init__(message)
        self.charge = charge


class EvidenceMissing(PrivacyError):
    """A question has no attack, no oracle or no test on tiny worlds to show for its claims."""


class NotAllowed(PrivacyError):
    """A service knows no such token, or the token may not do this."""

    exit_code = 5


class CheckFailed(PrivacyError):
    """A check of a pipeline did not pass: the data are more unusual than its limit allows."""

    exit_code = 6


class ServiceError(PrivacyError):
    """A service cannot be reached, does not know what was asked for, or could not answer."""

    exit_code = 4


class StateError(PrivacyError):
    """The state of a watch cannot be used: another process has it, or it is not what was asked for."""

    exit_code = 4


class StateUnreachable(StateError):
    """The state of a watch cannot be written, for want of room perhaps; later it may. What was found is not told."""


class SessionClosed(StateError):
    """The session of a watch cannot be resumed without exceeding its charge; a new one is charged."""


def error_place(trace: types.TracebackType | None) -> str:
    """Return where an error was raised, innermost frame first, as dotted modules and lines.

    Its message and its variables may hold records, so neither is shown.

    >>> try:
    ...     int("secret")
    ... except ValueError as error:
    ...     error_place(error.__traceback__).rpartition(":")[2]
    '2'
    """
    frames = list(traceback.walk_tb(trace))
    return " < ".join(f"{frame.f_globals.get('__name__', '?')}:{line}" for frame, line in reversed(frames))
