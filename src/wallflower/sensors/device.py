"""A sensor's side of the protocol: readings become finished frames. Noise is drawn once for each reading.

Readings are clipped, perturbed, given random ids and shuffled; in mode exact keys are dealt. The frames are all that
ever leaves a sensor. A frame that has to be sent again is sent as it is: preparing a batch twice would draw twice and
cost twice (proof.md, label (R)), which is why the outbox stores frames.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wallflower.errors import DataError
from wallflower.noise import Noise, words
from wallflower.privacy import Loss
from wallflower.sensors import comparison, perturbation
from wallflower.sensors.parameters import MAX_BATCH_READINGS, Direct, Exact, Parameters
from wallflower.sensors.protocol.frames import (
    BatchId,
    Commit,
    Frame,
    Ids,
    Kind,
    batch_context,
    commit_context,
    digest_ids,
    encode,
    seal,
)

Ints = NDArray[np.int64]
Content = tuple[Kind, dict[str, Any], bytes]  # of a frame: its kind, arrays besides ids, and trailing bytes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PreparedBatch:
    """Frames by recipient, and the id of each reading in the order the readings came."""

    ids: Ids
    frames: Mapping[str, bytes]


def recipients(parameters: Parameters) -> tuple[str, ...]:
    """Return the parties that get frames from sensors."""
    return ("owner",) if isinstance(parameters.settings, Direct) else ("analyst", "correction")


def prepare_batch(
    parameters: Parameters, readings: ArrayLike, batch: BatchId, tag_key: bytes, noise: Noise
) -> PreparedBatch:
    """Make the frames of one batch. Draws noise: store the result before you send any of it."""
    points = clip_readings(parameters, readings)
    ids = _draw_ids(len(points), noise)
    order = np.argsort(words(noise, len(points)), kind="stable")
    contents = _contents(parameters, batch, points[order], ids[order], tag_key, noise)
    frames = {
        recipient: encode(
            Frame(
                kind=kind,
                parameters=parameters.hash,
                columns=len(parameters.columns),
                sensor=batch.sensor,
                window=batch.window,
                seq=batch.seq,
                count=len(ids),
                arrays={"ids": ids[order]} | arrays,
                rest=rest,
            )
        )
        for recipient, (kind, arrays, rest) in contents.items()
    }
    return PreparedBatch(ids=ids, frames=frames)


def prepare_commit(parameters: Parameters, batch: BatchId, ids: Ids, spent: Fraction, tag_key: bytes) -> bytes:
    """Make the frame that ends a sensor's window; its `seq` is the number of batches."""
    sealed_key = b""
    if isinstance(parameters.settings, Exact) and parameters.settings.tags:
        context = commit_context(parameters.hash, batch.sensor, batch.window)
        sealed_key = seal(bytes.fromhex(parameters.seal), tag_key, context)
    return encode(
        Frame(
            kind=Kind.COMMIT,
            parameters=parameters.hash,
            sensor=batch.sensor,
            window=batch.window,
            seq=batch.seq,
            count=len(ids),
            rest=Commit(digest=digest_ids(ids), spent=spent, sealed_key=sealed_key).to_bytes(),
        )
    )


def clip_readings(parameters: Parameters, readings: ArrayLike) -> Ints:
    """Return readings as whole steps of the grid, within the box."""
    values = np.asarray(readings, dtype=np.float64)
    if values.ndim != 2 or not 0 < len(values) <= MAX_BATCH_READINGS:
        raise DataError(f"readings: a batch has 1 to {MAX_BATCH_READINGS:,}. Split them into several batches.")
    columns = parameters.columns
    return perturbation.clip(
        values,
        mean=[float(column.centre) for column in columns],
        deviation=[float(column.scale) for column in columns],
        low=[float((column.low - column.centre) / column.scale) for column in columns],
        high=[float((column.high - column.centre) / column.scale) for column in columns],
        step=parameters.grid,
    )


def perturb_points(parameters: Parameters, points: Ints, noise: Noise) -> Ints:
    """Add the stream's noise to points: the analyst may see the result."""
    ranges, step, epsilon = _scaled_ranges(parameters), parameters.grid, parameters.epsilon
    if parameters.noise == "columns":
        epsilons = [epsilon / len(ranges)] * len(ranges)
        return perturbation.add_column_noise(points, ranges=ranges, epsilons=epsilons, step=step, noise=noise)
    diameter = perturbation.diagonal(ranges)
    return perturbation.add_planar_noise(points, diameter=diameter, epsilon=epsilon, step=step, noise=noise)


def reading_losses(parameters: Parameters) -> tuple[Loss, Loss]:
    """Return the cost of a perturbed reading: between two usual readings, and between any two in the box."""
    ranges = _scaled_ranges(parameters)
    widths = [(column.high - column.low) / column.scale for column in parameters.columns]
    if parameters.noise == "columns":
        return perturbation.columns_losses(ranges, [parameters.epsilon / len(ranges)] * len(ranges), widths)
    return perturbation.planar_losses(perturbation.diagonal(ranges), parameters.epsilon, widths)


def _scaled_ranges(parameters: Parameters) -> list[Fraction]:
    return [column.range / column.scale for column in parameters.columns]


def _contents(
    parameters: Parameters, batch: BatchId, points: Ints, ids: Ids, tag_key: bytes, noise: Noise
) -> dict[str, Content]:
    """Return what each recipient's frame holds besides ids."""
    settings, centre = parameters.settings, parameters.centre_steps
    if isinstance(settings, Direct):
        is_outlier = perturbation.distances(points, centre) >= parameters.to_steps(settings.threshold)
        bits = np.packbits(is_outlier, bitorder="little").tobytes()
        message = seal(bytes.fromhex(parameters.seal), bits, batch_context(parameters.hash, batch, ids))
        return {"owner": (Kind.BITS, {}, message)}
    perturbed = perturb_points(parameters, points, noise)
    if isinstance(settings, Exact):
        scores = perturbation.scores(points, centre, parameters.to_steps(settings.unit), settings.bits)
        tags = comparison.derive_tags(tag_key, ids) if settings.tags else None
        analyst, correction = comparison.deal(scores, settings.bits, tags=tags, noise=noise)
        return {
            "analyst": (Kind.READINGS_AND_KEYS, {"perturbed": perturbed}, analyst.to_bytes()),
            "correction": (Kind.KEYS, {}, correction.to_bytes()),
        }
    return {
        "analyst": (Kind.READINGS, {"perturbed": perturbed}, b""),
        "correction": (Kind.MOVES, {"moved": perturbation.d_diff(points, perturbed, centre)}, b""),
    }


def _draw_ids(count: int, noise: Noise) -> Ids:
    """Draw random ids, all different."""
    while len(np.unique(ids := words(noise, count))) < count:
        pass
    return ids
