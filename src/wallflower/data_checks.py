"""Checks for pipelines: is too much of new data unusual, by a detector or a count that was released?

Nothing is charged here and no ledger is opened: a check is made of what was released and of the records at hand. Its
result on the records at hand is exact and not private; it belongs to their holder.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from wallflower.errors import CheckFailed, ParameterError, SourceError
from wallflower.privacy import Exact, exact
from wallflower.queries.detector.model import Model
from wallflower.release import Release

__all__ = ["CheckResult", "check_records", "check_release", "flag_records", "read_release"]

MAX_BYTES: Final = 1 << 26  # of a stored release


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The result of a check.

    passed   whether the value is at most the limit
    value    the share of flagged records, or the upper end of a released interval
    limit    the largest value that passes
    records  how many records were checked; None for a release
    text     the result as a sentence
    """

    passed: bool
    value: float
    limit: float
    records: int | None
    text: str

    def require(self) -> None:
        """Raise `CheckFailed` unless the check passed."""
        if not self.passed:
            raise CheckFailed(self.text)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def flag_records(model: Model | Release[Any] | str | Path, records: object) -> list[bool]:
    """Return for each record whether a released detector flags it: a plain function for DQX, dbt or your own code.

    model    a released detector: a Model, a Release of `detector`, or the path of what `detector fit --model` wrote
    records  a file, a frame, an Arrow table, a relation of DuckDB or rows of numbers
    """
    return [bool(flag) for flag in _read_model(model).predict(records)]


def check_records(model: Model | Release[Any] | str | Path, records: object, *, max_share: Exact) -> CheckResult:
    """Check that a released detector flags at most a share of new records.

    model      a released detector, as to `flag_records`
    records    what `wf.load` reads, with the columns of the detector
    max_share  the largest share that passes: "0.05"
    """
    most = _share(max_share)
    flags = flag_records(model, records)
    if not flags:
        raise ParameterError("records: there are none, so no share can be checked. Pass at least one.")
    flagged = sum(flags)
    passed = Fraction(flagged, len(flags)) <= most
    share = flagged / len(flags)
    text = f"{flagged:,} of {len(flags):,} records are flagged ({share:.2%}); the limit is {float(most):.2%}."
    return CheckResult(passed=passed, value=share, limit=float(most), records=len(flags), text=text)


def check_release(release: Release[Any] | str | Path, *, at_most: float) -> CheckResult:
    """Check that a released number is at most a limit, by the upper end of its interval.

    release  a Release of one number, such as a count, or the path of its JSON
    at_most  the largest upper end that passes
    """
    made = release if isinstance(release, Release) else read_release(release)
    if made.interval is None or not isinstance(made.value, int | float):
        raise ParameterError(f"release: {made.kind} releases no number with an interval. Pass a release of count.")
    high = float(made.interval[1])
    text = f"At most {high:g} by the release ({made.covers}); the limit is {at_most:g}."
    return CheckResult(passed=high <= at_most, value=high, limit=float(at_most), records=None, text=text)


def read_release(path: str | Path) -> Release[Any]:
    """Read a release that was stored as JSON: by `--json`, `--model` or `Release.to_json`."""
    place = Path(path)
    try:
        if place.stat().st_size > MAX_BYTES:
            raise SourceError(f"{place.name}: the file is too large for a release. Check the path.")
        return Release.from_dict(json.loads(place.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError):
        raise SourceError(f"{place.name}: the file cannot be read. Check the path.") from None
    except (ValueError, KeyError, TypeError):
        raise ParameterError(f"{place.name}: the file holds no release. Pass what --json or --model wrote.") from None


def _read_model(model: Model | Release[Any] | str | Path) -> Model:
    if isinstance(model, Model):
        return model
    return Model.of((model if isinstance(model, Release) else read_release(model)).value)


def _share(stated: Exact) -> Fraction:
    most = exact(stated, "max_share")
    if most > 1:
        raise ParameterError("max_share: a share is from 0 to 1, such as 0.05. Correct it.")
    return most
