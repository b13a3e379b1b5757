"""What the two servers tell each other in a window, mode by mode, and what each then tells the owner.

The analyst asks and the correction server answers, one step after another; which steps there are is public:

`exact`   none, or `counts` where the threshold is chosen privately: noisy shares of a histogram, both ways
`grid`    `bins`: the ring of each perturbed distance
`paper`   `presumed`: who is outside the biggest cluster; the answer is d_TP. Then `layers`: who is far out

Everything here is a function of what was agreed and received, except for the noise of `counts`: a step that is
repeated must repeat the bytes it was first taken with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import DataError
from wallflower.noise import Noise
from wallflower.sensors import comparison, correction, dbscan, grid, threshold
from wallflower.sensors.comparison import Keys
from wallflower.sensors.detectors import DBSCAN, Presume, detector_by_name, presume
from wallflower.sensors.parameters import Exact, Grid, Paper, Parameters
from wallflower.sensors.perturbation import distances
from wallflower.sensors.protocol.frames import Frame, FrameError, Kind

Array = NDArray[Any]
Role = Literal["analyst", "correction"]
Said = Mapping[str, Frame]  # the frames of the steps so far, by name: asked, or answered

TRUE_POSITIVE, LAYERS = 1, (2, 3, 4)  # how the owner reads a verdict's layers
_PARTY: Final[Mapping[Role, int]] = {"analyst": 0, "correction": 1}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Holdings:
    """What one server holds of the readings that both have, in the order of sorted ids.

    Perturbed readings at the analyst, d_diff at the correction server. `batches` gives the keys of mode exact batch by
    batch, each with the places of its readings in that order. `detector` replaces the one of mode paper.
    """

    parameters: Parameters
    role: Role
    window: int
    ids: NDArray[np.uint64]
    sensors: NDArray[np.uint64]
    values: Array
    batches: Callable[[], Iterator[tuple[NDArray[np.int64], Keys]]]
    detector: Presume | None = None

    def __len__(self) -> int:
        return len(self.ids)


Compute = Callable[[Holdings, Said, Said, Noise], dict[str, Array]]  # from what was asked and answered before


@dataclass(frozen=True, slots=True)
class Step:
    """One question of the analyst and its answer: their kinds, and who computes what."""

    name: str
    asks: Kind
    answers: Kind
    ask: Compute
    answer: Compute


def steps(parameters: Parameters) -> tuple[Step, ...]:
    """What the servers have to tell each other."""
    match parameters.settings:
        case Exact(thresholds=()):
            return (Step("counts", Kind.COUNTS, Kind.COUNTS, _counts, _counts),)
        case Grid():
            return (Step("bins", Kind.BINS, Kind.DONE, _bins, _say_nothing),)
        case Paper():
            return (
                Step("presumed", Kind.PRESUMED, Kind.CUT, _presume, _cut),
                Step("layers", Kind.LAYERS, Kind.DONE, _far, _say_nothing),
            )
        case _:
            return ()


def rows(step: Step, held: Holdings, *, answer: bool) -> tuple[int, ...]:
    """How many rows a frame of this step may have."""
    kind = step.answers if answer else step.asks
    if kind is Kind.COUNTS:
        return (_exact(held).places,)
    return {Kind.CUT: (0, 1), Kind.DONE: (0,)}.get(kind, (len(held),))


def conclude(held: Holdings, asked: Said, answered: Said) -> Frame | None:
    """What a server tells the owner of the readings that both have; None where no threshold could be chosen.

    In modes grid and paper the analyst lists who took part, and the correction server who is an outlier.
    """
    match held.parameters.settings:
        case Exact() as settings:
            scores = settings.scores or _choose_threshold(settings, asked["counts"], answered["counts"])
            return None if scores is None else _shares(held, settings, scores)
        case Grid() | Paper() if held.role == "analyst":
            return _verdict(held, np.arange(len(held)), np.zeros(len(held), dtype=np.uint8))
        case Grid(bound=bound, step=step):
            rings = asked["bins"]["bins"].astype(np.int64)
            found = grid.flags(held.values, rings, held.parameters.steps(step), held.parameters.steps(bound))
            return _verdict(held, np.flatnonzero(found), found.astype(np.uint8))
        case Paper():
            layers = _correct(held, asked)
            return _verdict(held, np.flatnonzero(layers), layers)
        case _:
            raise DataError("direct: the servers have no part in it. Send bits to the owner.")


def _counts(held: Holdings, __: Said, ___: Said, noise: Noise) -> dict[str, Array]:
    settings = _exact(held)
    places = threshold.edges(settings.bits, settings.places)
    total = np.zeros(len(places), dtype=np.uint32)
    for _, keys in held.batches():
        total = total + threshold.counts(_PARTY[held.role], keys, places)
    return {"counts": threshold.noisy(total, _epsilon(settings), noise)}


def _bins(held: Holdings, _: Said, __: Said, ___: Noise) -> dict[str, Array]:
    settings = held.parameters.settings
    if not isinstance(settings, Grid):
        raise DataError("bins: they belong to mode grid.")
    return {"bins": grid.bins(_distances(held), held.parameters.steps(settings.step))}


def _presume(held: Holdings, _: Said, __: Said, ___: Noise) -> dict[str, Array]:
    settings = _paper(held)
    if not len(held):
        return {"presumed": np.zeros(0, dtype=np.bool_)}
    if held.detector is not None or settings.detector != DBSCAN:
        scaled = held.values.astype(np.float64) * float(held.parameters.grid)
        return {"presumed": presume(scaled, held.detector or detector_by_name(settings.detector))}
    radius = float(settings.radius / held.parameters.grid)
    return {"presumed": dbscan.outside(held.values.astype(np.float64), radius, settings.neighbours)}


def _cut(held: Holdings, asked: Said, _: Said, __: Noise) -> dict[str, Array]:
    _kept, d_tp = correction.threshold(held.values[asked["presumed"]["presumed"]], gap=_paper(held).gap)
    return {"cut": np.array([] if d_tp is None else [d_tp], dtype=np.float64)}


def _far(held: Holdings, asked: Said, answered: Said, _: Noise) -> dict[str, Array]:
    presumed = np.flatnonzero(asked["presumed"]["presumed"])
    second, third = correction.candidates(_distances(held), presumed, _d_tp(answered), _width(held))
    marks = np.zeros((2, len(held)), dtype=np.bool_)
    marks[0, second] = marks[1, third] = True
    return {"second": marks[0], "third": marks[1]}


def _say_nothing(_: Holdings, __: Said, ___: Said, ____: Noise) -> dict[str, Array]:
    return {}


def _correct(held: Holdings, asked: Said) -> Array:
    """1 for a presumed outlier that stays, 2, 3 and 4 for the layers of those that were not presumed."""
    presumed = np.flatnonzero(asked["presumed"]["presumed"])
    kept, d_tp = correction.threshold(held.values[presumed], gap=_paper(held).gap)
    second, third = (np.flatnonzero(asked["layers"][name]) for name in ("second", "third"))
    found = np.zeros(len(held), dtype=np.uint8)
    missed = correction.layers(held.values, presumed, second, third, d_tp, _width(held))
    for layer, places in reversed([*zip(LAYERS, missed, strict=True)]):
        found[places] = layer
    if kept is not None:
        found[presumed[held.values[presumed] <= kept]] = TRUE_POSITIVE
    return found


def _choose_threshold(settings: Exact, asked: Frame, answered: Frame) -> tuple[int, ...] | None:
    shares = (np.asarray(said["counts"], dtype=np.uint32) for said in (asked, answered))
    places = threshold.edges(settings.bits, settings.places)
    gap = threshold.choose(threshold.histogram(*shares), places, _epsilon(settings), bits=settings.bits)
    return None if gap is None else (gap.threshold,)


def _shares(held: Holdings, settings: Exact, scores: tuple[int, ...]) -> Frame:
    lanes = 2 if settings.tags else 1
    found = np.zeros((len(held), lanes * len(scores)), dtype=np.uint32)
    party = _PARTY[held.role]
    for places, keys in held.batches():
        for at, score in enumerate(scores):
            if settings.tags:
                found[places, 2 * at : 2 * at + 2] = comparison.evaluate_tagged(party, keys, score)
            else:
                found[places, at] = comparison.evaluate(party, keys, score)
    chosen = 0 if settings.scores else scores[0]
    arrays: dict[str, Array] = {"ids": held.ids, "sensors": held.sensors, "shares": found}
    return _frame_for_owner(held, Kind.SHARES, arrays, columns=found.shape[1], seq=chosen)


def _verdict(held: Holdings, places: Array, layers: Array) -> Frame:
    arrays = {"ids": held.ids[places], "sensors": held.sensors[places], "layer": layers[places]}
    return _frame_for_owner(held, Kind.VERDICT, arrays)


def _frame_for_owner(held: Holdings, kind: Kind, arrays: dict[str, Array], *, columns: int = 0, seq: int = 0) -> Frame:
    count = len(arrays["ids"])
    return Frame(
        kind=kind,
        parameters=held.parameters.hash,
        window=held.window,
        columns=columns,
        seq=seq,
        count=count,
        arrays=arrays,
    )


def take_keys(keys: Keys, rows: Array) -> Keys:
    """The keys of some readings of a batch."""
    return Keys(
        keys.bits,
        keys.masked[rows],
        keys.roots[rows],
        np.ascontiguousarray(keys.seeds[:, rows]),
        np.ascontiguousarray(keys.values[:, rows]),
        keys.steps[rows],
        keys.offsets[rows],
        keys.tags[rows],
    )


def keys_of(frame: Frame, settings: Exact) -> Keys:
    """The keys in a frame, or a refusal."""
    try:
        return Keys.from_bytes(frame.rest, frame.count, settings.bits, tagged=settings.tags)
    except DataError as error:
        raise FrameError(str(error)) from None


def _distances(held: Holdings) -> NDArray[np.int64]:
    return distances(held.values, held.parameters.middle)


def _d_tp(answered: Said) -> float | None:
    cut = answered["presumed"]["cut"]
    return float(cut[0]) if len(cut) else None


def _width(held: Holdings) -> float:
    return float(_paper(held).width / held.parameters.grid)


def _exact(held: Holdings) -> Exact:
    if not isinstance(held.parameters.settings, Exact):
        raise DataError("counts: they belong to mode exact.")
    return held.parameters.settings


def _paper(held: Holdings) -> Paper:
    if not isinstance(held.parameters.settings, Paper):
        raise DataError("presumed, layers: they belong to mode paper.")
    return held.parameters.settings


def _epsilon(settings: Exact) -> Any:
    return settings.choice_epsilon or 0
