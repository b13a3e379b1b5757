"""A sensor stream in one process: readings are simulated, perturbed as by a sensor, and judged as by two servers.

These are the functions that the parties of `wallflower sensors` run. In one process every party knows what the others
know, and nothing is charged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wallflower.errors import DataError, ParameterError
from wallflower.machine.lazy import Lazy
from wallflower.noise import system_noise, words
from wallflower.privacy import Exact
from wallflower.sensors.constants import SENSOR, WINDOW, Columns, state
from wallflower.sensors.parameters import MOST_BATCH, Paper, Parameters
from wallflower.sensors.results import Judgement, PerturbedReadings, Simulation
from wallflower.synthetic import Floats, push_outliers

if TYPE_CHECKING:
    import cryptography.hazmat.primitives.asymmetric.x25519 as _x25519

    import wallflower.sensors.protocol.batches as _batches
    import wallflower.sensors.protocol.findings as _findings
    import wallflower.sensors.protocol.frames as _frames
    import wallflower.sensors.protocol.holdings as _holdings
    import wallflower.sensors.protocol.rounds as _rounds
    import wallflower.sensors.protocol.seals as _seals
else:
    _x25519 = Lazy("cryptography.hazmat.primitives.asymmetric.x25519")
    _batches = Lazy("wallflower.sensors.protocol.batches")
    _findings = Lazy("wallflower.sensors.protocol.findings")
    _frames = Lazy("wallflower.sensors.protocol.frames")
    _holdings = Lazy("wallflower.sensors.protocol.holdings")
    _rounds = Lazy("wallflower.sensors.protocol.rounds")
    _seals = Lazy("wallflower.sensors.protocol.seals")

_SERVERS: Final[tuple[_rounds.Role, ...]] = ("analyst", "correction")
_SPREAD: Final = 3
_COLUMN: Final = {"center": "0", "scale": str(_SPREAD), "range": "12", "low": "-60", "high": "60"}


def simulate(n: int, *, seed: int, share: float = 0.05, separation: float = 30.0) -> Simulation:
    """Readings of two columns around 0, some of them pushed out: nobody's, so seeded.

    n           how many readings
    seed        the same seed makes the same readings
    share       which share of them, the outermost, is pushed out
    separation  by how much

    >>> made = simulate(1000, seed=7)
    >>> made.readings.shape, int(made.outliers.sum())
    ((1000, 2), 50)
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1 or not 0 <= share <= 1 or not 0 <= separation < math.inf:
        raise ParameterError(
            f"simulate: n={n}, share={share}, separation={separation} make no readings; "
            "n is 1 or more, share between 0 and 1, separation 0 or more."
        )
    readings, outliers = push_outliers(n, separation, seed=seed, share=share, spread=float(_SPREAD))
    return Simulation(readings=readings, outliers=outliers, columns={"x": _COLUMN, "y": _COLUMN})


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
    """Clip readings, add noise and deal keys, as a sensor does. Each call draws anew, and costs as much again.

    The words are those of docs/sensors.md. None of them may come from the readings, so none is guessed.

    readings   rows of numbers, one for each reading
    columns    what is public of each column, as text: `center` and `scale`, the `range` of usual readings, and `low`
               and `high` to which they are clipped
    epsilon    the loss of one reading, as far as usual readings are apart, as text
    threshold  from this distance from the centre on, in scaled units, a reading is an outlier
    settings   for another mode: its settings, as in a parameter file, instead of a threshold
    centre     the centre in scaled units; default: 0 in every column
    grid       how finely readings are rounded, in scaled units
    noise      planar: one draw for all columns; columns: one for each

    >>> box = {"center": "20", "scale": "3", "range": "12", "low": "-40", "high": "85"}
    >>> perturb([[21.5], [80.0]], columns={"temperature": box}, threshold="5", epsilon="0.2")
    PerturbedReadings(2 readings of temperature; mode exact, ε=1/5 a reading)
    """
    owner = _x25519.X25519PrivateKey.generate()
    parameters = state(
        columns=columns,
        epsilon=epsilon,
        threshold=threshold,
        settings=settings,
        centre=centre,
        grid=grid,
        noise=noise,
        seal=_seals.public(owner).hex(),
    )
    return _send(parameters, _matrix(readings, len(columns)), owner)


def judge(sent: PerturbedReadings, *, detector: Callable[[Floats], Any] | Any | None = None) -> Judgement:
    """Which readings are outliers: what both servers find together and the owner reads. Nothing more is spent.

    sent      what `perturb` made
    detector  in mode paper: a function of the perturbed readings, in scaled units, that returns a truth value for each;
              or an estimator with `fit_predict`, as in scikit-learn and PyOD; default: the one of the settings
    """
    if detector is not None and not isinstance(sent.parameters.settings, Paper):
        raise ParameterError(
            f"detector: mode {sent.parameters.settings.mode} compares distances and asks no detector. Omit it, or "
            "state settings of mode paper."
        )
    tally = _findings.tally_reports(sent.parameters, _exchange(sent, detector), sent.tag_key)
    result = _findings.window_result(sent.parameters, WINDOW, tally, {})
    places = {f"{name:016x}": place for place, name in enumerate(sent.ids.tolist())}
    found = sorted((places[one["id"]], one["id"]) for one in result["outliers"])
    flags = np.zeros(len(sent), dtype=np.bool_)
    flags[[place for place, _ in found]] = True
    return Judgement(
        flags=flags,
        positions=tuple(place for place, _ in found),
        ids=tuple(name for _, name in found),
        unjudged=tuple(sorted(places[one["id"]] for one in result["unjudged"])),
        judged=tally.judged,
        threshold=result["threshold"],
        mode=result["mode"],
        loss=sent.loss,
        guarantee=sent.guarantee,
    )


def _matrix(readings: ArrayLike, width: int) -> Floats:
    """One row for each reading, or a refusal that shows none of them."""
    try:
        values = np.asarray(readings, dtype=np.float64)
    except (ValueError, TypeError):
        raise DataError("readings: not all of them are numbers. Pass rows of numbers, one for each reading.") from None
    values = values[:, None] if values.ndim == 1 and width == 1 else values
    if values.ndim != 2 or values.shape[1] != width or not len(values):
        raise DataError(f"readings: {width} columns are stated. Pass one row for each reading, with as many entries.")
    return values


def _send(parameters: Parameters, values: Floats, owner: _x25519.X25519PrivateKey) -> PerturbedReadings:
    """All that leaves the sensor."""
    source = system_noise()
    key = words(source, _batches.TAG_KEY // 8).tobytes()
    starts = range(0, len(values), MOST_BATCH)
    made = [
        _batches.prepare_batch(parameters, values[start : start + MOST_BATCH], _place(seq), key, source)
        for seq, start in enumerate(starts)
    ]
    ids = np.concatenate([batch.ids for batch in made])
    spent = parameters.loss.amount * len(values)
    return PerturbedReadings(
        parameters=parameters,
        ids=ids,
        frames={role: tuple(batch.frames[role] for batch in made) for role in _batches.targets(parameters)},
        _commit=_batches.commit_frame(parameters, _place(len(made)), ids, spent, key),
        _owner=owner,
    )


def _place(seq: int) -> _batches.Place:
    return _batches.Place(sensor=SENSOR, window=WINDOW, seq=seq)


def _exchange(sent: PerturbedReadings, detector: Any = None) -> dict[str, _findings.Report]:
    """Both servers through all steps, frame by frame as on the wire, to what each reports."""
    ours, theirs = (_side(sent, role) for role in _SERVERS)
    ours = replace(ours, detector=detector)
    asked: dict[str, _frames.Frame] = {}
    answered: dict[str, _frames.Frame] = {}
    source = system_noise()
    for step in _rounds.steps(sent.parameters):
        asked[step.name] = _send_frame(sent.parameters, step.asks, step.ask(ours, asked, answered, source))
        answered[step.name] = _send_frame(sent.parameters, step.answers, step.answer(theirs, asked, answered, source))
    return {str(side.role): _report(side, _rounds.conclude(side, asked, answered)) for side in (ours, theirs)}


def _side(sent: PerturbedReadings, role: _rounds.Role) -> _rounds.Holdings:
    """What one server holds; here both have every reading."""
    every = _holdings.list_readings(sent.parameters, role, sent.decode_frames(role))
    present = np.ones(len(every.ids), dtype=np.bool_)
    return _holdings.hold(sent.parameters, role, WINDOW, every, present, lambda: sent.decode_frames(role))


def _send_frame(parameters: Parameters, kind: _frames.Kind, arrays: dict[str, NDArray[Any]]) -> _frames.Frame:
    """A frame as it comes out of the wire."""
    count = len(next(iter(arrays.values()), ()))
    frame = _frames.Frame(kind=kind, parameters=parameters.hash, window=WINDOW, count=count, arrays=arrays)
    return _frames.decode(_frames.encode(frame), parameters=parameters.hash, kinds=(kind,))


def _report(side: _rounds.Holdings, found: _frames.Frame | None) -> _findings.Report:
    left = slice(0, 0 if found is not None else None)
    arrays: dict[str, NDArray[Any]] = {"ids": side.ids[left], "sensors": side.sensors[left]}
    unjudged = _frames.Frame(
        kind=_frames.Kind.UNJUDGED,
        parameters=side.parameters.hash,
        window=WINDOW,
        count=len(arrays["ids"]),
        arrays=arrays,
    )
    return _findings.Report(found=found, unjudged=unjudged, failed="" if found is not None else "threshold")
