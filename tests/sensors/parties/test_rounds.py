"""What the servers tell each other and the owner, without a network: every mode finds what it promises to find."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stage import EXACT, parameters, readings

from scripted_noise import Scripted
from wallflower.noise import system_noise
from wallflower.sensors.comparison import derive_tags
from wallflower.sensors.correction import correct
from wallflower.sensors.detectors import outside_biggest_cluster
from wallflower.sensors.device import clip_readings, prepare_batch
from wallflower.sensors.parameters import Exact, Grid, Paper, Parameters
from wallflower.sensors.perturbation import d_diff, distances
from wallflower.sensors.protocol.findings import (
    NO_REPORT,
    NO_THRESHOLD,
    ONE_SERVER,
    UNSOUND,
    Report,
    tally_reports,
)
from wallflower.sensors.protocol.frames import BatchId, Frame, Kind, decode, encode
from wallflower.sensors.protocol.rounds import Holdings, allowed_rows, read_keys, rounds_of

F = Fraction
TAG_KEY = bytes(range(16))
EXACTS = [
    EXACT,
    Exact(bits=12, unit=F(1, 10), thresholds=(F(20),), tags=False),
    Exact(bits=12, unit=F(1, 10), thresholds=(F(20), F(45)), limit=2),
    Exact(bits=12, unit=F(1, 10), choice_epsilon=F(5), places=64),
]


def held(stated: Parameters, role: Any, frame: Frame, chosen: np.ndarray | None = None) -> Holdings:
    order = np.argsort(frame["ids"])
    order = order if chosen is None else order[np.isin(frame["ids"][order], chosen)]
    values = frame["perturbed"] if role == "analyst" else frame.arrays.get("moved", np.zeros(frame.count))

    def batches() -> Iterator[Any]:
        assert isinstance(stated.settings, Exact)
        yield np.arange(len(order)), read_keys(frame, stated.settings).select(order)

    return Holdings(
        parameters=stated,
        role=role,
        window=frame.window,
        ids=frame["ids"][order],
        sensors=np.full(len(order), frame.sensor, np.uint64),
        values=values[order].astype(np.int64),
        batches=batches,
    )


def talked(ours: Holdings, theirs: Holdings, noise: Any = None) -> dict[str, Report]:
    """Both servers through all steps, frame by frame as on the wire."""
    noise, asked, answered = noise or system_noise(), {}, {}
    for step in rounds_of(ours.parameters).steps:
        asked[step.name] = wired(ours, step.asks, step.ask(ours, asked, answered, noise))
        assert asked[step.name].count in allowed_rows(step.asks, theirs)
        answered[step.name] = wired(ours, step.answers, step.answer(theirs, asked, answered, noise))
        assert answered[step.name].count in allowed_rows(step.answers, ours)
    return {
        side.role: report(side, rounds_of(side.parameters).conclude(side, asked, answered)) for side in (ours, theirs)
    }


def wired(side: Holdings, kind: Kind, arrays: dict[str, Any]) -> Frame:
    count = len(next(iter(arrays.values()), ()))
    body = encode(Frame(kind=kind, parameters=side.parameters.hash, window=side.window, count=count, arrays=arrays))
    return decode(body, parameters=side.parameters.hash, kinds=(kind,))


def report(side: Holdings, found: Frame | None, missing: Any = ()) -> Report:
    lost = side.ids if found is None else np.array(missing, np.uint64)
    arrays = {"ids": lost, "sensors": np.ones(len(lost), np.uint64)}
    left = Frame(kind=Kind.UNJUDGED, parameters=side.parameters.hash, window=0, count=len(lost), arrays=arrays)
    made = Report(finding=found, unjudged=left, failed="threshold" if found is None else "")
    return Report.from_bytes(made.to_bytes(), side.parameters)


class Scene:
    """One batch at both servers."""

    def __init__(self, keys: Path, settings: Any, count: int = 300, **changes: Any) -> None:
        self.stated = parameters(keys, settings, **changes)
        self.rows, self.outliers = readings(5, count)
        batch = prepare_batch(self.stated, self.rows, BatchId(sensor=1, window=0), TAG_KEY, system_noise())
        self.ids = batch.ids
        self.frames = {name: decode(body, parameters=self.stated.hash) for name, body in batch.frames.items()}

    def sides(self, chosen: Any = None) -> tuple[Holdings, Holdings]:
        ours, theirs = (held(self.stated, role, self.frames[role], chosen) for role in ("analyst", "correction"))
        return ours, theirs

    def names(self, which: np.ndarray) -> set[int]:
        return set(self.ids[which].tolist())


def tally_of(scene: Scene, reports: dict[str, Report], key: bytes | None = TAG_KEY) -> Any:
    return tally_reports(scene.stated, reports, lambda sensor: key)


@pytest.mark.parametrize("settings", EXACTS, ids=["tagged", "bare", "two thresholds", "private choice"])
@pytest.mark.parametrize("noise", ["planar", "columns"])
def test_exact_finds_exactly_the_outliers_at_any_epsilon(keys: Path, settings: Exact, noise: Any) -> None:
    scene = Scene(keys, settings, noise=noise, epsilon=F(1, 10))
    tally = tally_of(scene, talked(*scene.sides()))
    assert set(tally.outliers) == scene.names(scene.outliers)
    assert (tally.judged, tally.unjudged) == (300, {})


def test_levels_say_which_threshold_was_reached(keys: Path) -> None:
    scene = Scene(keys, EXACTS[2])
    tally = tally_of(scene, talked(*scene.sides()))
    far = np.linalg.norm(clip_readings(scene.stated, scene.rows), axis=1) >= 4500
    assert {name for name, one in tally.outliers.items() if one["level"] == 2} == scene.names(far)


def test_a_reading_that_one_server_lacks_is_not_judged(keys: Path) -> None:
    scene = Scene(keys, EXACT)
    both = scene.ids[:200]
    ours, theirs = scene.sides(both)
    reports = talked(ours, theirs)
    reports["analyst"] = report(ours, reports["analyst"].finding, scene.ids[200:])
    tally = tally_of(scene, reports)
    assert set(tally.outliers) == scene.names(scene.outliers & (np.arange(300) < 200))
    assert set(tally.unjudged) == set(scene.ids[200:].tolist())
    assert {one["reason"] for one in tally.unjudged.values()} == {ONE_SERVER}


@pytest.mark.parametrize("server", ["analyst", "correction"])
@pytest.mark.parametrize("settings", [EXACT, Grid(bound=F(10), step=F(10))], ids=["exact", "grid"])
def test_a_judged_reading_is_not_unjudged_too_whatever_a_server_lists(keys: Path, settings: Any, server: str) -> None:
    scene = Scene(keys, settings)
    ours, theirs = scene.sides()
    reports = talked(ours, theirs)
    honest = tally_of(scene, reports)
    side = ours if server == "analyst" else theirs
    reports[server] = report(side, reports[server].finding, scene.ids[:50])
    tally = tally_of(scene, reports)
    assert (tally.judged, tally.unjudged, tally.outliers) == (300, {}, honest.outliers)


@pytest.mark.parametrize("server", ["analyst", "correction"])
def test_a_share_that_was_tampered_with_is_refused(keys: Path, server: str) -> None:
    scene = Scene(keys, EXACT)
    reports = talked(*scene.sides())
    found = reports[server].finding
    assert found is not None
    shares = found["shares"].copy()
    shares[7, 0] += 1  # would turn a reading over, without the tag
    arrays = {"ids": found["ids"], "sensors": found["sensors"], "shares": shares}
    changed = Frame(kind=Kind.SHARES, parameters=found.parameters, window=0, columns=2, count=300, arrays=arrays)
    reports[server] = Report(finding=changed, unjudged=reports[server].unjudged)
    tally = tally_of(scene, reports)
    assert list(tally.unjudged) == [int(found["ids"][7])]
    assert [one["reason"] for one in tally.unjudged.values()] == [UNSOUND]
    assert tally.judged == 299


def test_without_the_tags_nothing_is_believed(keys: Path) -> None:
    scene = Scene(keys, EXACT)
    tally = tally_of(scene, talked(*scene.sides()), key=None)
    assert (tally.judged, len(tally.unjudged), tally.outliers) == (0, 300, {})


def test_reports_about_different_readings_are_not_believed(keys: Path) -> None:
    scene = Scene(keys, EXACT)
    reports = talked(*scene.sides())
    reports["correction"] = talked(*scene.sides(scene.ids[:100]))["correction"]
    tally = tally_of(scene, reports)
    assert (tally.judged, len(tally.unjudged)) == (0, 300)


@pytest.mark.parametrize("missing", ["analyst", "correction"])
@pytest.mark.parametrize("settings", [EXACT, Grid(bound=F(10), step=F(10))], ids=["exact", "grid"])
def test_a_server_that_does_not_report_leaves_its_readings_unjudged(keys: Path, settings: Any, missing: str) -> None:
    scene = Scene(keys, settings)
    reports = talked(*scene.sides())
    del reports[missing]
    tally = tally_of(scene, reports)
    assert tally.outliers == {}
    if isinstance(settings, Exact) or missing == "correction":
        assert set(tally.unjudged) == set(scene.ids.tolist())
    assert {one["reason"] for one in tally.unjudged.values()} == {NO_REPORT}


def test_where_no_threshold_shows_nothing_is_judged(keys: Path) -> None:
    settings = Exact(bits=12, unit=F(1, 10), choice_epsilon=F(1, 100))
    scene = Scene(keys, settings)  # noise of scale 200 in bins of a few readings
    reports = talked(*scene.sides(), Scripted())  # once in 10^6 runs real noise shows one, as `MISS` says
    tally = tally_of(scene, reports)
    assert tally.judged == 0
    assert {one["reason"] for one in tally.unjudged.values()} == {NO_THRESHOLD}


def test_grid_flags_no_core_reading_and_misses_no_outlier(keys: Path) -> None:
    scene = Scene(keys, Grid(bound=F(15), step=F(20)), epsilon=F(1, 10))
    tally = tally_of(scene, talked(*scene.sides()))
    assert set(tally.outliers) == scene.names(scene.outliers)
    assert tally.judged == 300


@pytest.mark.parametrize("gap", ["upper", "literal"])
def test_paper_gives_what_one_who_knows_both_sides_computes(keys: Path, gap: Any) -> None:
    settings = Paper(radius=F(3), neighbours=10, width=F(5), gap=gap)
    scene = Scene(keys, settings, epsilon=F(2))
    ours, theirs = scene.sides()
    tally = tally_of(scene, talked(ours, theirs))
    middle, grid = scene.stated.centre_steps, scene.stated.grid
    presumed = np.flatnonzero(outside_biggest_cluster(ours.values.astype(float), float(settings.radius / grid), 10))
    expected = correct(distances(ours.values, middle), theirs.values, presumed, float(settings.width / grid), gap=gap)
    assert set(tally.outliers) == set(ours.ids[expected.output].tolist())
    layers = {name: one["layer"] for name, one in tally.outliers.items()}
    for places, layer in ((expected.tp, "presumed"), (expected.fn1, "layer 1")):
        assert {name for name, one in layers.items() if one == layer} == set(ours.ids[places].tolist())


def test_the_correction_server_holds_how_far_noise_moved_a_distance(keys: Path) -> None:
    scene = Scene(keys, Grid(bound=F(15), step=F(20)))
    ours, theirs = scene.sides()
    place = {name: at for at, name in enumerate(scene.ids.tolist())}
    order = [place[name] for name in ours.ids.tolist()]
    points = clip_readings(scene.stated, scene.rows)[order]
    assert np.array_equal(theirs.values, d_diff(points, ours.values, scene.stated.centre_steps))


@pytest.mark.parametrize("settings", [EXACT, EXACTS[3], Grid(bound=F(15), step=F(20)), Paper(width=F(5))])
def test_a_window_without_common_readings_is_finished_too(keys: Path, settings: Any) -> None:
    scene = Scene(keys, settings)
    tally = tally_of(scene, talked(*scene.sides(np.empty(0, np.uint64))))
    assert (tally.judged, tally.outliers) == (0, {})


def test_tags_of_the_device_are_those_of_the_owner() -> None:
    ids = np.array([5, 2**63 + 1], np.uint64)
    assert np.array_equal(derive_tags(TAG_KEY, ids)[::-1], derive_tags(TAG_KEY, ids[::-1]))
