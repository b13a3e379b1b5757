"""A sensor stream in one process: readings are simulated, perturbed as by a sensor, and judged as by two servers.

These are the functions that the parties of `wallflower sensors` run. In one process every party knows what the others
know, and nothing is charged: use it to try parameters, to teach and to test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, Literal

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from numpy.typing import ArrayLike, NDArray

from wallflower.drawing import cards
from wallflower.errors import DataError, ParameterError
from wallflower.noise import system_noise, words
from wallflower.privacy import Exact, Loss
from wallflower.sensors.comparison import TAG_KEY_BYTES
from wallflower.sensors.device import prepare_batch, prepare_commit, reading_losses, recipients
from wallflower.sensors.parameters import MAX_BATCH_READINGS, Direct, Paper, Parameters
from wallflower.sensors.protocol.findings import LEARNS, Report, tally_reports, window_result
from wallflower.sensors.protocol.frames import (
    BatchId,
    Commit,
    Frame,
    Kind,
    commit_context,
    decode,
    encode,
    public_bytes,
    unseal,
)
from wallflower.sensors.protocol.rounds import Holdings, Role, hold_common, list_readings, rounds_of
from wallflower.synthetic import Flags, Floats, push_outliers
from wallflower.text import t

Columns = Mapping[str, Mapping[str, Exact]]

_SERVERS: Final[tuple[Role, ...]] = ("analyst", "correction")
_SENSOR, _WINDOW = 1, 0  # there is one of each
_DEFAULT_BITS: Final = 16  # of a score, unless the threshold needs more
_DEVIATION: Final = 3
_SIMULATED_COLUMN: Final = {"centre": "0", "scale": str(_DEVIATION), "range": "12", "low": "-60", "high": "60"}
_NO_KEY: Final = "00" * 32  # nothing is signed in one process
_ONE_PROCESS: Final[Mapping[str, Any]] = {
    "stream": "notebook",
    "starts": 0,
    "length": "1",
    "grace": "0",
    "patience": "0",
    "sensors": 1,
    "analyst": _NO_KEY,
    "correction": _NO_KEY,
    "owner": _NO_KEY,
}
_MAX_SHOWN_POSITIONS: Final = 12  # the object has all
NOTE: Final = t(
    "All parties ran in this one process and nothing was charged: this is to try parameters, to teach and to test. "
    "To run a stream, use `wallflower sensors`."
)
_QUESTION: Final = t("Which readings are outliers?")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Simulation:
    """Simulated readings.

    readings  one row for each
    outliers  which of them are outliers
    columns   the public constants they were made with, for `perturb`
    """

    readings: Floats = field(repr=False)
    outliers: Flags = field(repr=False)
    columns: Columns


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PerturbedReadings:
    """The frames that left the sensor; they do not hold the readings as they were measured.

    Both servers' frames together, which this process has, reveal distances from the centre.

    parameters  the public parameter set
    ids         the ids of the readings, in the order of the readings
    frames      the bytes that each server gets
    """

    parameters: Parameters
    ids: NDArray[np.uint64]
    frames: Mapping[str, tuple[bytes, ...]]
    _commit: bytes
    _owner: X25519PrivateKey

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def readings(self) -> Floats:
        """The perturbed readings as the analyst has them, in their own units and in the order of the readings."""
        listed = list_readings(self.parameters, "analyst", self.decode_frames("analyst"))
        return self.parameters.to_units(listed.values[np.searchsorted(listed.ids, self.ids)])

    @property
    def loss(self) -> Loss:
        """Cost of each reading, for two usual ones: a range apart in every column."""
        return self.parameters.loss

    @property
    def furthest(self) -> Loss:
        """Cost of each reading, for any two in the box."""
        usual, furthest = reading_losses(self.parameters)
        return furthest + self.loss.less(usual)

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes that each server gets."""
        return {role: sum(map(len, bodies)) for role, bodies in self.frames.items()}

    @property
    def guarantee(self) -> str:
        """Who learns what, and what it costs, in words."""
        usual = reading_losses(self.parameters)[0]
        choice = getattr(self.parameters.settings, "choice_epsilon", None)
        analyst, correction, owner = LEARNS[self.parameters.settings.mode]
        return t(
            "Metric differential privacy with {loss} a reading{choice}: the probability of what the analyst gets "
            "changes by a factor of at most e^ε when a reading changes, with {usual} between usual readings and at "
            "most ε = {furthest} in all within the box. Costs of a sensor's readings add up. The analyst learns: "
            "{analyst}. The correction server learns: {correction}. The stream owner learns: {owner}. Both servers "
            "together learn every distance from the centre.",
            loss=str(self.loss),
            choice="" if choice is None else t(", of which ε = {choice} for choosing a threshold", choice=str(choice)),
            usual=str(usual),
            furthest=str(Decimal(math.ceil(self.furthest.amount * 100)) / 100),  # rounded up
            analyst=analyst,
            correction=correction,
            owner=owner,
        )

    def __repr__(self) -> str:
        return (
            f"PerturbedReadings({len(self):,} readings of {', '.join(self.parameters.names)}; mode "
            f"{self.parameters.settings.mode}, {self.loss} a reading)"
        )

    def decode_frames(self, role: str) -> Iterator[Frame]:
        """Yield the frames of a server, decoded."""
        return (decode(body, parameters=self.parameters.hash) for body in self.frames[role])

    def tag_key(self, _: int) -> bytes | None:
        """Return the key of the sensor's tags, which only the stream owner can read."""
        commit = Commit.from_bytes(decode(self._commit, parameters=self.parameters.hash).rest)
        context = commit_context(self.parameters.hash, _SENSOR, _WINDOW)
        return unseal(self._owner, commit.sealed_key, context) if commit.sealed_key else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Judgement:
    """The result that the stream owner gets: which readings are outliers.

    flags      whether each reading is one, in the order of the readings
    positions  positions of the outliers, counted from 0
    ids        ids of the outliers
    unjudged   positions of readings that could not be judged
    judged     number of readings that could
    threshold  distance from which on a reading is an outlier, in scaled units
    mode       mode of the servers
    loss       cost of one reading
    guarantee  who learns what, in words
    note       what to keep in mind
    """

    flags: Flags
    positions: tuple[int, ...]
    ids: tuple[str, ...]
    unjudged: tuple[int, ...]
    judged: int
    threshold: str | None
    mode: str
    loss: Loss
    guarantee: str
    note: str = NOTE

    @property
    def count(self) -> int:
        """Number of outliers."""
        return len(self.positions)

    @property
    def text(self) -> str:
        """The result in a sentence."""
        at = unjudged = ""
        if self.threshold is not None:
            distance = _format_exact(Fraction(self.threshold))
            at = t(": {distance} scaled units or more from the centre", distance=distance)
        if self.unjudged:
            unjudged = t(" {n:,} could not be judged.", n=len(self.unjudged))
        return t(
            "{count:,} of {judged:,} readings are outliers{at}.{unjudged}",
            count=self.count,
            judged=self.judged,
            at=at,
            unjudged=unjudged,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values; numbers that must be exact are text."""
        facts = {name: getattr(self, name) for name in ("mode", "judged", "threshold", "guarantee", "note", "text")}
        lists = {name: list(getattr(self, name)) for name in ("positions", "ids", "unjudged")}
        return {"count": self.count, **lists, **facts, "loss": self.loss.to_json()}

    def __repr__(self) -> str:
        return f"Judgement({self.count:,} outliers of {self.judged:,} readings, {self.loss} a reading)"

    def __str__(self) -> str:
        rows = (f"  {name:<9}  {text}" for name, text in self._rows())
        return "\n".join([_QUESTION, *rows])

    def _repr_html_(self) -> str:
        answer = f'<p class="answer"><strong>{self.count:,}</strong> <span>of {self.judged:,} readings</span></p>'
        rows = [(name[:1].upper() + name[1:], text) for name, text in self._rows()]
        return cards.frame("release", f'<p class="question">{_QUESTION}</p>{answer}{cards.tell(rows)}')

    def _rows(self) -> list[tuple[str, str]]:
        shown = ", ".join(map(str, self.positions[:_MAX_SHOWN_POSITIONS])) or "none"
        more = f" and {self.count - _MAX_SHOWN_POSITIONS:,} more" if self.count > _MAX_SHOWN_POSITIONS else ""
        return [
            ("answer", self.text),
            ("positions", shown + more),
            ("cost", f"{self.loss} a reading"),
            ("guarantee", self.guarantee),
            ("note", self.note),
        ]


def simulate(n: int, *, seed: int, share: float = 0.05, separation: float = 30.0) -> Simulation:
    """Make readings of two columns around 0, some of them pushed out. They are synthetic, so a seed is allowed.

    n           number of readings
    seed        the same seed makes the same readings
    share       share of readings, the outermost, that are pushed out
    separation  by how much

    >>> simulation = simulate(1000, seed=7)
    >>> simulation.readings.shape, int(simulation.outliers.sum())
    ((1000, 2), 50)
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1 or not 0 <= share <= 1 or not 0 <= separation < math.inf:
        raise ParameterError(
            f"simulate: n={n}, share={share}, separation={separation} are out of range. n must be 1 or more, share "
            "between 0 and 1, separation 0 or more."
        )
    readings, outliers = push_outliers(n, separation, seed=seed, share=share, spread=float(_DEVIATION))
    return Simulation(readings=readings, outliers=outliers, columns={"x": _SIMULATED_COLUMN, "y": _SIMULATED_COLUMN})


def perturb(
    readings: ArrayLike,
    *,
    columns: Columns,
    epsilon: Exact,
    threshold: Exact | None = None,
    settings: Mapping[str, Any] | None = None,
    centre: Sequence[Exact] | None = None,
    grid: Exact = "0.001",
    noise: Literal["planar", "columns"] = "planar",
) -> PerturbedReadings:
    """Clip readings, add noise and deal keys, as a sensor does. Each call draws new noise, and costs as much again.

    The parameters are explained in docs/sensors.md. None of them may come from the readings, so none has a guess.

    readings   rows of numbers, one for each reading
    columns    public constants of each column, as text: `centre` and `scale`, the `range` of usual readings, and `low`
               and `high` to which they are clipped
    epsilon    ε of one reading, between usual readings, as text
    threshold  distance from the centre, in scaled units, from which on a reading is an outlier
    settings   for another mode: its settings, as in a parameter file, instead of a threshold
    centre     the centre in scaled units; default: 0 in every column
    grid       step to which readings are rounded, in scaled units
    noise      planar: one draw for all columns; columns: one for each

    >>> box = {"centre": "20", "scale": "3", "range": "12", "low": "-40", "high": "85"}
    >>> perturb([[21.5], [80.0]], columns={"temperature": box}, threshold="5", epsilon="0.2")
    PerturbedReadings(2 readings of temperature; mode exact, ε = 0.2 a reading)
    """
    owner = X25519PrivateKey.generate()
    stated = {
        "columns": _list_columns(columns),
        "centre": ["0"] * len(columns) if centre is None else list(map(_to_text, centre)),
        "grid": _to_text(grid),
        "epsilon": _to_text(epsilon),
        "noise": noise,
        "settings": _list_settings(threshold, settings, grid),
        "seal": public_bytes(owner).hex(),
    }
    parameters = Parameters.from_json({**stated, **_ONE_PROCESS})
    if isinstance(parameters.settings, Direct):
        raise ParameterError(
            "settings: mode direct has no servers; a sensor compares by itself. State exact, grid or paper, or run "
            "`wallflower sensors demo --mode direct`."
        )
    if threshold is not None:
        _check_reachable(parameters, Fraction(_to_text(threshold)))
    return _send(parameters, _check_readings(readings, len(columns)), owner)


def judge(sent: PerturbedReadings, *, detector: Callable[[Floats], Any] | Any | None = None) -> Judgement:
    """Judge readings as both servers and the stream owner do together. Costs nothing more.

    sent      the result of `perturb`
    detector  in mode paper: a function of the perturbed readings, in scaled units, that returns a truth value for each;
              or an estimator with `fit_predict`, as in scikit-learn and PyOD; default: the one of the settings

    >>> simulation = simulate(1000, seed=7)
    >>> sent = perturb(simulation.readings, columns=simulation.columns, threshold="5", epsilon="0.2")
    >>> judge(sent)
    Judgement(50 outliers of 1,000 readings, ε = 0.2 a reading)
    """
    if detector is not None and not isinstance(sent.parameters.settings, Paper):
        raise ParameterError(
            f"detector: mode {sent.parameters.settings.mode} compares distances and uses no detector. Omit it, or "
            "state settings of mode paper."
        )
    tally = tally_reports(sent.parameters, _exchange(sent, detector), sent.tag_key)
    result = window_result(sent.parameters, _WINDOW, tally, {})
    positions = {f"{number:016x}": position for position, number in enumerate(sent.ids.tolist())}
    outliers = sorted((positions[row["id"]], row["id"]) for row in result["outliers"])
    flags = np.zeros(len(sent), dtype=np.bool_)
    flags[[position for position, _ in outliers]] = True
    return Judgement(
        flags=flags,
        positions=tuple(position for position, _ in outliers),
        ids=tuple(name for _, name in outliers),
        unjudged=tuple(sorted(positions[row["id"]] for row in result["unjudged"])),
        judged=tally.judged,
        threshold=result["threshold"],
        mode=result["mode"],
        loss=sent.loss,
        guarantee=sent.guarantee,
    )


def _list_columns(columns: Columns) -> list[dict[str, Any]]:
    if not isinstance(columns, Mapping) or not all(isinstance(facts, Mapping) for facts in columns.values()):
        raise ParameterError(
            "columns: must be a mapping from names to public constants. Pass one such as "
            "{'temperature': {'centre': '20', 'scale': '3', 'range': '12', 'low': '-40', 'high': '85'}}."
        )
    return [
        {"name": name, **{fact: _to_text(value) for fact, value in facts.items()}} for name, facts in columns.items()
    ]


def _list_settings(threshold: Exact | None, settings: Mapping[str, Any] | None, grid: Exact) -> dict[str, Any]:
    """Return the stated settings, or those of mode exact with scores in steps of the grid."""
    if (threshold is None) == (settings is None):
        raise ParameterError(
            "threshold, settings: state one of them. A threshold such as '5' is a distance from the centre in scaled "
            "units; settings are those of a mode, such as {'mode': 'grid', 'bound': '4', 'step': '2'}."
        )
    if settings is not None:
        return {
            name: [_to_text(item) for item in value] if isinstance(value, list | tuple) else _to_text(value)
            for name, value in settings.items()
        }
    bits = _DEFAULT_BITS
    with suppress(ValueError, TypeError, ZeroDivisionError):  # an error when the set is read, with its own message
        bits = max(bits, math.ceil(Fraction(_to_text(threshold)) / Fraction(_to_text(grid))).bit_length() + 1)
    return {"mode": "exact", "unit": _to_text(grid), "bits": bits, "thresholds": [_to_text(threshold)]}


def _to_text(value: Any) -> Any:
    """Return exact numbers as text, all else as it is, to be refused by the reader."""
    return str(Fraction(value)) if isinstance(value, Fraction | Decimal) else value


def _check_reachable(parameters: Parameters, threshold: Fraction) -> None:
    """Raise ParameterError for a threshold that no reading in the box can reach."""
    corners = (
        max(abs((end - column.centre) / column.scale - coordinate) for end in (column.low, column.high))
        for column, coordinate in zip(parameters.columns, parameters.centre, strict=True)
    )
    if threshold**2 > sum(corner**2 for corner in corners):
        raise ParameterError(
            "threshold: further from the centre than any corner of the box, to which readings are clipped. "
            "It is in scaled units, (value - centre) / scale: lower it, or widen low and high."
        )


def _check_readings(readings: ArrayLike, width: int) -> Floats:
    try:
        values = np.asarray(readings, dtype=np.float64)
    except (ValueError, TypeError):
        raise DataError("readings: must be numbers. Pass rows of numbers, one for each reading.") from None
    values = values[:, None] if values.ndim == 1 and width == 1 else values
    if values.ndim != 2 or values.shape[1] != width or not len(values):
        raise DataError(f"readings: must have {width} columns. Pass one row for each reading, with as many entries.")
    return values


def _send(parameters: Parameters, values: Floats, owner: X25519PrivateKey) -> PerturbedReadings:
    """Make all that leaves the sensor."""
    noise = system_noise()
    tag_key = words(noise, TAG_KEY_BYTES // 8).tobytes()
    batches = [
        prepare_batch(parameters, values[start : start + MAX_BATCH_READINGS], _batch_id(seq), tag_key, noise)
        for seq, start in enumerate(range(0, len(values), MAX_BATCH_READINGS))
    ]
    ids = np.concatenate([batch.ids for batch in batches])
    spent = parameters.loss.amount * len(values)
    return PerturbedReadings(
        parameters=parameters,
        ids=ids,
        frames={role: tuple(batch.frames[role] for batch in batches) for role in recipients(parameters)},
        _commit=prepare_commit(parameters, _batch_id(len(batches)), ids, spent, tag_key),
        _owner=owner,
    )


def _batch_id(seq: int) -> BatchId:
    return BatchId(sensor=_SENSOR, window=_WINDOW, seq=seq)


def _exchange(sent: PerturbedReadings, detector: Any = None) -> dict[str, Report]:
    """Take both servers through all steps, frame by frame as on the wire, and return what each reports."""
    analyst, correction = (_hold_all(sent, role) for role in _SERVERS)
    analyst = replace(analyst, detector=detector)
    rounds, noise = rounds_of(sent.parameters), system_noise()
    requests: dict[str, Frame] = {}
    responses: dict[str, Frame] = {}
    for step in rounds.steps:
        request = step.ask(analyst, requests, responses, noise)
        requests[step.name] = _transmit(sent.parameters, step.asks, request)
        response = step.answer(correction, requests, responses, noise)
        responses[step.name] = _transmit(sent.parameters, step.answers, response)
    return {held.role: _report(held, rounds.conclude(held, requests, responses)) for held in (analyst, correction)}


def _hold_all(sent: PerturbedReadings, role: Role) -> Holdings:
    """Return what one server holds; here both have every reading."""
    readings = list_readings(sent.parameters, role, sent.decode_frames(role))
    present = np.ones(len(readings.ids), dtype=np.bool_)
    return hold_common(sent.parameters, role, _WINDOW, readings, present, lambda: sent.decode_frames(role))


def _transmit(parameters: Parameters, kind: Kind, arrays: dict[str, NDArray[Any]]) -> Frame:
    """Return a frame as its recipient decodes it."""
    count = len(next(iter(arrays.values()), ()))
    frame = Frame(kind=kind, parameters=parameters.hash, window=_WINDOW, count=count, arrays=arrays)
    return decode(encode(frame), parameters=parameters.hash, kinds=(kind,))


def _report(held: Holdings, finding: Frame | None) -> Report:
    left = slice(0, 0 if finding is not None else None)
    unjudged = held.make_report(Kind.UNJUDGED, {"ids": held.ids[left], "sensors": held.sensors[left]})
    return Report(finding=finding, unjudged=unjudged, failed="" if finding is not None else "threshold")


def _format_exact(number: Fraction) -> str:
    """Return a decimal if that is exact, else the fraction.

    >>> _format_exact(Fraction(284, 25)), _format_exact(Fraction(1, 3))
    ('11.36', '1/3')
    """
    decimal = Decimal(number.numerator) / number.denominator
    return str(decimal) if Fraction(decimal) == number else str(number)
