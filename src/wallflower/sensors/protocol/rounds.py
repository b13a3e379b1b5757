"""The rounds of a window between the two servers, mode by mode, and what each then reports to the stream owner.

The analyst asks and the correction server answers, one step after another; the steps of a mode are public:

`exact`   none, or `counts` if the threshold is chosen privately: noisy shares of a histogram, both ways
`grid`    `bins`: the ring of each perturbed distance
`paper`   `presumed`: which readings the detector flags; the answer is d_TP. Then `layers`: which readings are far out

Every step is a function of what was agreed and received, except for the noise of `counts`: a step that is repeated must
repeat the bytes it was first taken with.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import DataError
from wallflower.noise import Noise
from wallflower.sensors import comparison, correction, threshold
from wallflower.sensors.comparison import Keys
from wallflower.sensors.detectors import DBSCAN, Detector, load_detector, outside_biggest_cluster, run_detector
from wallflower.sensors.parameters import Direct, Exact, Grid, Paper, Parameters
from wallflower.sensors.perturbation import distances
from wallflower.sensors.protocol.frames import Array, Frame, FrameError, Ids, Kind

Role = Literal["analyst", "correction"]
FramesByStep = Mapping[str, Frame]  # the frames of the steps so far, by name
FrameSource = Callable[[], Iterable[Frame]]  # the frames of a window, from the first one, at every call
Positions = NDArray[np.int64]

PARTY_NUMBERS: Final[Mapping[Role, int]] = {"analyst": 0, "correction": 1}
TRUE_POSITIVE, LAYERS = 1, (2, 3, 4)  # how a verdict names presumed outliers that stay, and the layers of others


@dataclass(frozen=True, slots=True, eq=False)
class ReadingList:
    """Every reading of a window at one server, sorted by id; ids that came twice are omitted.

    `values` are perturbed readings at the analyst and d_diff at the correction server; zeros in mode exact.
    """

    ids: Ids
    sensors: Ids
    values: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Holdings:
    """What one server holds of the readings that both have, in the order of sorted ids.

    `batches` yields the keys of mode exact batch by batch, each with the positions of its readings in that order.
    `detector` replaces the one of mode paper.
    """

    parameters: Parameters
    role: Role
    window: int
    ids: Ids
    sensors: Ids
    values: Array
    batches: Callable[[], Iterator[tuple[Positions, Keys]]]
    detector: Detector | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def distances(self) -> NDArray[np.int64]:
        """Return the distances of perturbed readings from the centre, in steps."""
        return distances(self.values, self.parameters.centre_steps)

    def make_report(self, kind: Kind, arrays: dict[str, Array], *, columns: int = 0, seq: int = 0) -> Frame:
        """Return a frame for the stream owner."""
        return Frame(
            kind=kind,
            parameters=self.parameters.hash,
            window=self.window,
            columns=columns,
            seq=seq,
            count=len(arrays["ids"]),
            arrays=arrays,
        )

    def make_verdict(self, positions: Array, layers: Array) -> Frame:
        """Return a report that lists these readings, each with its layer."""
        arrays = {"ids": self.ids[positions], "sensors": self.sensors[positions], "layer": layers[positions]}
        return self.make_report(Kind.VERDICT, arrays)


def list_readings(parameters: Parameters, role: Role, frames: Iterable[Frame]) -> ReadingList:
    """Collect all readings of a window."""
    width = len(parameters.columns)
    ids, sensors = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
    values: list[Array] = [np.empty((0, width) if role == "analyst" else 0, np.int64)]
    for frame in frames:
        ids.append(frame["ids"])
        sensors.append(np.full(frame.count, frame.sensor, dtype=np.uint64))
        if role == "analyst":
            values.append(frame["perturbed"].astype(np.int64))
        else:
            has_moves = frame.kind is Kind.MOVES
            values.append(frame["moved"].astype(np.int64) if has_moves else np.zeros(frame.count, dtype=np.int64))
    every = np.concatenate(ids)
    order = unique_positions(every)
    return ReadingList(every[order], np.concatenate(sensors)[order], np.concatenate(values)[order])


def hold_common(
    parameters: Parameters, role: Role, window: int, readings: ReadingList, present: Array, frames: FrameSource
) -> Holdings:
    """Return the holdings of the readings that both servers have."""
    ids = readings.ids[present]
    return Holdings(
        parameters=parameters,
        role=role,
        window=window,
        ids=ids,
        sensors=readings.sensors[present],
        values=readings.values[present],
        batches=lambda: _key_batches(parameters, ids, frames),
    )


def unique_positions(ids: Ids) -> Positions:
    """Return the positions of ids that occur once, in the order of sorted ids."""
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    is_unique = np.ones(len(ids), dtype=np.bool_)
    if len(ids) > 1:
        is_repeated = ordered[1:] == ordered[:-1]
        is_unique[1:] &= ~is_repeated
        is_unique[:-1] &= ~is_repeated
    return order[is_unique]


def read_keys(frame: Frame, settings: Exact) -> Keys:
    """Return the keys in a frame, or raise FrameError."""
    try:
        return Keys.from_bytes(frame.rest, frame.count, settings.bits, tagged=settings.tags)
    except DataError as error:
        raise FrameError(str(error)) from None


def _key_batches(parameters: Parameters, ids: Ids, frames: FrameSource) -> Iterator[tuple[Positions, Keys]]:
    settings = parameters.settings
    if not isinstance(settings, Exact) or not len(ids):
        return
    for frame in frames():
        at = np.searchsorted(ids, frame["ids"])
        rows = np.flatnonzero((at < len(ids)) & (ids[np.minimum(at, len(ids) - 1)] == frame["ids"]))
        if len(rows):
            yield at[rows], read_keys(frame, settings).select(rows)


Compute = Callable[[Holdings, FramesByStep, FramesByStep, Noise], dict[str, Array]]  # from requests, responses so far


@dataclass(frozen=True, slots=True)
class Step:
    """One request of the analyst and its response: their kinds, and how each is computed."""

    name: str
    asks: Kind
    answers: Kind
    ask: Compute
    answer: Compute


def allowed_rows(kind: Kind, held: Holdings) -> tuple[int, ...]:
    """Return how many rows a frame of a step may have."""
    settings = held.parameters.settings
    if kind is Kind.COUNTS and isinstance(settings, Exact):
        return (settings.places,)
    return {Kind.CUT: (0, 1), Kind.DONE: (0,)}.get(kind, (len(held),))


class Rounds(ABC):
    """The steps of one mode, and the report of each server after them."""

    @property
    @abstractmethod
    def steps(self) -> tuple[Step, ...]:
        """The steps, in their order."""

    @abstractmethod
    def conclude(self, held: Holdings, requests: FramesByStep, responses: FramesByStep) -> Frame | None:
        """Return what a server reports of the readings that both have; None if no threshold could be chosen.

        In modes grid and paper the analyst lists the readings that took part, the correction server the outliers.
        """


def rounds_of(parameters: Parameters) -> Rounds:
    """Return the rounds of a parameter set.

    >>> from wallflower.sensors.parameters import Grid
    >>> from types import SimpleNamespace
    >>> from fractions import Fraction
    >>> settings = Grid(bound=Fraction(4), step=Fraction(2))
    >>> [step.name for step in rounds_of(SimpleNamespace(settings=settings)).steps]
    ['bins']
    """
    match parameters.settings:
        case Exact() as exact:
            return ExactRounds(exact)
        case Grid() as grid:
            return GridRounds(grid)
        case Paper() as paper:
            return PaperRounds(paper)
        case Direct():
            raise DataError("mode direct: the servers take no part in it. Send bits to the stream owner.")


class ExactRounds(Rounds):
    """Mode exact: each server evaluates its keys at the threshold, agreed or chosen from a noisy histogram."""

    def __init__(self, settings: Exact) -> None:
        self._settings = settings

    @property
    def steps(self) -> tuple[Step, ...]:
        if self._settings.thresholds:
            return ()
        return (Step("counts", Kind.COUNTS, Kind.COUNTS, self._count, self._count),)

    def conclude(self, held: Holdings, requests: FramesByStep, responses: FramesByStep) -> Frame | None:
        scores = self._settings.scores or self._choose(requests["counts"], responses["counts"])
        return None if scores is None else self._evaluate(held, scores)

    def _count(self, held: Holdings, _: FramesByStep, __: FramesByStep, noise: Noise) -> dict[str, Array]:
        edges = self._edges()
        total = np.zeros(len(edges), dtype=np.uint32)
        for _positions, keys in held.batches():
            total = total + threshold.share_counts(PARTY_NUMBERS[held.role], keys, edges)
        return {"counts": threshold.add_noise(total, self._settings.choice_epsilon or 0, noise)}

    def _choose(self, request: Frame, response: Frame) -> tuple[int, ...] | None:
        shares = (np.asarray(frame["counts"], dtype=np.uint32) for frame in (request, response))
        epsilon = self._settings.choice_epsilon or 0
        histogram = threshold.combine_counts(*shares)
        gap = threshold.choose_gap(histogram, self._edges(), epsilon, bits=self._settings.bits)
        return None if gap is None else (gap.threshold,)

    def _edges(self) -> tuple[int, ...]:
        return threshold.bin_edges(self._settings.bits, self._settings.places)

    def _evaluate(self, held: Holdings, scores: tuple[int, ...]) -> Frame:
        lanes = 2 if self._settings.tags else 1
        shares = np.zeros((len(held), lanes * len(scores)), dtype=np.uint32)
        party = PARTY_NUMBERS[held.role]
        for positions, keys in held.batches():
            for at, score in enumerate(scores):
                if self._settings.tags:
                    shares[positions, 2 * at : 2 * at + 2] = comparison.evaluate_tagged(party, keys, score)
                else:
                    shares[positions, at] = comparison.evaluate(party, keys, score)
        chosen = 0 if self._settings.scores else scores[0]
        arrays: dict[str, Array] = {"ids": held.ids, "sensors": held.sensors, "shares": shares}
        return held.make_report(Kind.SHARES, arrays, columns=shares.shape[1], seq=chosen)


class GridRounds(Rounds):
    """Mode grid: the analyst sends rings, the correction server compares them with d_diff."""

    def __init__(self, settings: Grid) -> None:
        self._settings = settings

    @property
    def steps(self) -> tuple[Step, ...]:
        return (Step("bins", Kind.BINS, Kind.DONE, self._send_rings, _send_nothing),)

    def conclude(self, held: Holdings, requests: FramesByStep, responses: FramesByStep) -> Frame | None:
        if held.role == "analyst":
            return _list_all(held)
        rings = requests["bins"]["bins"].astype(np.int64)
        step, bound = (held.parameters.to_steps(length) for length in (self._settings.step, self._settings.bound))
        flags = correction.flag_by_rings(held.values, rings, step, bound)
        return held.make_verdict(np.flatnonzero(flags), flags.astype(np.uint8))

    def _send_rings(self, held: Holdings, _: FramesByStep, __: FramesByStep, ___: Noise) -> dict[str, Array]:
        return {"bins": correction.ring_numbers(held.distances(), held.parameters.to_steps(self._settings.step))}


class PaperRounds(Rounds):
    """Mode paper: the correction of [Boe17], between the two servers."""

    def __init__(self, settings: Paper) -> None:
        self._settings = settings

    @property
    def steps(self) -> tuple[Step, ...]:
        return (
            Step("presumed", Kind.PRESUMED, Kind.CUT, self._presume, self._send_d_tp),
            Step("layers", Kind.LAYERS, Kind.DONE, self._send_candidates, _send_nothing),
        )

    def conclude(self, held: Holdings, requests: FramesByStep, responses: FramesByStep) -> Frame | None:
        if held.role == "analyst":
            return _list_all(held)
        presumed = np.flatnonzero(requests["presumed"]["presumed"])
        cut, d_tp = correction.find_cut(held.values[presumed], gap=self._settings.gap)
        second, third = (np.flatnonzero(requests["layers"][name]) for name in ("second", "third"))
        layers = np.zeros(len(held), dtype=np.uint8)
        missed = correction.layers(held.values, presumed, second, third, d_tp, self._width(held))
        for layer, positions in reversed([*zip(LAYERS, missed, strict=True)]):
            layers[positions] = layer
        if cut is not None:
            layers[presumed[held.values[presumed] <= cut]] = TRUE_POSITIVE
        return held.make_verdict(np.flatnonzero(layers), layers)

    def _presume(self, held: Holdings, _: FramesByStep, __: FramesByStep, ___: Noise) -> dict[str, Array]:
        settings = self._settings
        if not len(held):
            return {"presumed": np.zeros(0, dtype=np.bool_)}
        points = held.values.astype(np.float64)
        if held.detector is not None or settings.detector != DBSCAN:
            detector = held.detector or load_detector(settings.detector)
            return {"presumed": run_detector(points * float(held.parameters.grid), detector)}
        radius = float(settings.radius / held.parameters.grid)
        return {"presumed": outside_biggest_cluster(points, radius, settings.neighbours)}

    def _send_d_tp(self, held: Holdings, requests: FramesByStep, _: FramesByStep, __: Noise) -> dict[str, Array]:
        _cut, d_tp = correction.find_cut(held.values[requests["presumed"]["presumed"]], gap=self._settings.gap)
        return {"cut": np.array([] if d_tp is None else [d_tp], dtype=np.float64)}

    def _send_candidates(
        self, held: Holdings, requests: FramesByStep, responses: FramesByStep, _: Noise
    ) -> dict[str, Array]:
        presumed, cut = np.flatnonzero(requests["presumed"]["presumed"]), responses["presumed"]["cut"]
        d_tp = float(cut[0]) if len(cut) else None
        second, third = correction.candidates(held.distances(), presumed, d_tp, self._width(held))
        marks = np.zeros((2, len(held)), dtype=np.bool_)
        marks[0, second] = marks[1, third] = True
        return {"second": marks[0], "third": marks[1]}

    def _width(self, held: Holdings) -> float:
        return float(self._settings.width / held.parameters.grid)


def _send_nothing(_: Holdings, __: FramesByStep, ___: FramesByStep, ____: Noise) -> dict[str, Array]:
    return {}


def _list_all(held: Holdings) -> Frame:
    return held.make_verdict(np.arange(len(held)), np.zeros(len(held), dtype=np.uint8))
