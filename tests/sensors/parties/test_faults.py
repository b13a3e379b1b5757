"""Kill any party at any step, spoil any call, come late: the result is the undisturbed one, or says `unjudged`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from between import Between, between
from stage import HERE, ROLES, Stage, died, fill, first_to_end, flagged, readings, sending

from forks import Fork, call
from wallflower.sensors.correction import correct
from wallflower.sensors.detectors import outside_biggest_cluster
from wallflower.sensors.parameters import Exact, Grid, Paper
from wallflower.sensors.parties.client import Unreachable
from wallflower.sensors.parties.device import Device
from wallflower.sensors.parties.outbox import WindowError
from wallflower.sensors.perturbation import distances
from wallflower.sensors.protocol.findings import NO_EXCHANGE, ONE_SERVER
from wallflower.sensors.protocol.frames import decode

F = Fraction
pytestmark = pytest.mark.slow

DEATHS = {
    "analyst": (
        "WindowStore.add_batch:before:1",
        "WindowStore.add_batch:after:2",
        "WindowStore.advance:after:1",
        "WindowStore.add_message:after:1",
        "Link.call:after:1",
        "WindowStore.add_response:after:1",
        "WindowStore.advance:before:2",
        "WindowStore.purge:before:1",
    ),
    "correction": (
        "WindowStore.add_commit:before:1",
        "WindowStore.advance:before:1",
        "WindowStore.advance:after:2",
        "Link.call:after:1",
        "WindowStore.purge:after:1",
    ),
    "owner": (
        "WindowStore.add_message:before:1",
        "WindowStore.add_message:after:1",
        "WindowStore.advance:after:2",
        "WindowStore.purge:before:1",
    ),
}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with Stage(tmp_path_factory.mktemp("faults")) as made:
        made.start()
        yield made


def check(result: dict[str, Any], outliers: set[str], judged: int = 60) -> None:
    assert flagged(result) == outliers
    assert (result["judged"], result["unjudged"]) == (judged, [])


@pytest.mark.parametrize("role", DEATHS)
def test_a_party_killed_at_any_step_goes_on_after_its_restart(stage: Stage, role: str) -> None:
    """Every death meets a fresh window; what it leaves undone is done by the next process, which dies in its turn."""
    expected: dict[int, set[str]] = {}
    stage.kill(role)
    with stage.device() as device, sending(device):
        for window, step in enumerate(DEATHS[role], start=20 * ROLES.index(role)):
            stage.start(role, die={role: step})
            expected[window] = fill(device, window)
            assert died(stage.running.pop(role)), f"it did not die at {step}\n{stage.logs()}"
        stage.start(role)
    for window, outliers in expected.items():
        check(stage.result(window), outliers)


def test_a_device_killed_at_any_step_goes_on_and_pays_once(stage: Stage, tmp_path: Path) -> None:
    rows, outliers = readings(70)
    source = tmp_path / "readings.csv"
    np.savetxt(source, rows, delimiter=",", header="x,y", comments="")
    command = ["sensors", "device", str(source), "--keys", str(stage.keys / "sensor-2"), "--window", "70", "--json"]
    command += ["--parameters", str(stage.set), "--store", str(stage.folder / "sensor-2.db"), "--batch", "20"]
    command += ["--analyst", stage.url("analyst"), "--correction", stage.url("correction"), "--budget", "100"]
    for step in ("Outbox.add:after:1", "Outbox.finish:before:1", "Link.call:after:4", "Outbox.settle:before:1"):
        with Fork(HERE / "step_killer.py", step, *command) as dying:
            code, _, complaints = dying.finish()
        assert code == -9, complaints
    done = call(*command)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["spent"] == "12"
    assert said["frames"] == {"analyst": {"sent": 4}, "correction": {"sent": 4}}
    with stage.device(2) as device:
        ids = device.outbox.ids(70)
    check(stage.result(70), {f"{name:016x}" for name in ids[outliers].tolist()})


def test_a_replay_changes_nothing(stage: Stage) -> None:
    with stage.device() as device:
        outliers = fill(device, 75)
        first = {role: device.outbox.next_frame(role) for role in ("analyst", "correction")}
        device.send()
    result = stage.result(75)
    check(result, outliers)
    for role, frame in first.items():
        assert frame is not None
        for window, status in ((75, 200), (76, 422)):
            path = f"/v1/hall/w/{window}/s/1/b/0"
            said = stage.call("sensor-1", role, "PUT", path, frame.body, signature=frame.signature)
            assert said[0] == status
        path = "/v1/hall/w/75/s/1/b/9"
        assert stage.call("sensor-1", role, "PUT", path, frame.body, signature=frame.signature)[0] == 422
    assert stage.result(75) == result


def test_dropped_lost_repeated_and_garbled_calls_change_nothing(tmp_path: Path) -> None:
    faults = ("drop", "lose", "twice", "garble", "spoil", "fine", "lose", "fine")
    with ExitStack() as stack:
        stage = stack.enter_context(Stage(tmp_path))
        for role in ("owner", "correction"):
            door = stack.enter_context(between(stage.ports[role], faults))
            stage.reroute[role] = door.server_address[1]
        stage.start()
        spoiled = dict.fromkeys(("analyst", "correction"), ("lose", "twice", "drop", "fine", "spoil", "lose"))
        doors = {role: stack.enter_context(between(stage.ports[role], spoiled[role])) for role in spoiled}
        stage.reroute |= {role: door.server_address[1] for role, door in doors.items()}
        sent = {window: stage.send(window) for window in range(3)}
        for window, (outliers, fates) in sent.items():
            assert fates["analyst"] == fates["correction"] == {"sent": 4}
            check(stage.result(window), outliers)
        assert min(door.calls for door in doors.values()) > 12  # of 12 frames each: some were sent more than once


def test_batches_in_any_order_are_taken(stage: Stage) -> None:
    with stage.device() as device:
        outliers = fill(device, 80)
        for role in ("analyst", "correction"):
            frames = []
            while (frame := device.outbox.next_frame(role)) is not None:
                frames.append(frame)
                device.outbox.settle(frame.id, "sent", None)
            for frame in frames[-2::-1] + frames:
                path = f"/v1/hall/w/80/s/1/{'commit' if frame.seq is None else f'b/{frame.seq}'}"
                assert stage.call("sensor-1", role, "PUT", path, frame.body, signature=frame.signature)[0] in (200, 201)
    check(stage.result(80), outliers)


def test_servers_whose_disks_are_full_take_nothing_and_go_on_when_there_is_room(tmp_path: Path) -> None:
    """507 is not final: frames stay with the sensor, what is stored is whole, and nobody has to be restarted."""
    with Stage(tmp_path) as stage, stage.device() as device:
        stage.start(room=1_000_000)
        outliers = {window: fill(device, window) for window in range(12)}
        with sending(device):
            for role in ("analyst", "correction"):
                while (status := resent(stage, device, role)) != 507:
                    assert status in (200, 201, 410, 425, None), stage.logs()
                    stage._require_alive(role, "its disk never was full")
            stage.make_room()
            for window in outliers:
                check(stage.result(window), outliers[window])
        assert device.outbox.count_frames() == {"analyst": {"sent": 48}, "correction": {"sent": 48}}
        assert device.outbox.spent == 12 * 12


def resent(stage: Stage, device: Device, role: str) -> int | None:
    """What a server says to the frame that is pending for it."""
    frame = device.outbox.next_frame(role)
    assert frame is not None, "all arrived: there was room enough"
    path = f"/v1/hall/w/{frame.window}/s/1/{'commit' if frame.seq is None else f'b/{frame.seq}'}"
    try:
        return stage.call("sensor-1", role, "PUT", path, frame.body, signature=frame.signature)[0]
    except Unreachable:
        return None


BRIEF = {"length": F(2), "grace": F(2)}
PATIENT = F(3600)
Fates = Mapping[str, Mapping[str, int]]


def sent(
    stage: Stage, in_time: Callable[[Fates], bool], door: Between | None = None
) -> tuple[int, set[str], dict[str, Any]]:
    """A window that was sent before it closed: on a busy machine perhaps not the first. A door begins anew."""
    while True:
        if door is not None:
            door.calls = 0
        window = stage.coming()
        outliers, fates = stage.send(window)
        if in_time(fates):
            return window, outliers, fates


def test_readings_that_come_late_are_unjudged(tmp_path: Path) -> None:
    """WindowStore of two seconds that wait two more, and two sensors to wait for."""
    with Stage(tmp_path, sensors=2, patience=PATIENT, **BRIEF) as stage:
        stage.start()
        window, outliers, fates = sent(stage, lambda fates: not any("late" in own for own in fates.values()))
        assert fates == {"analyst": {"sent": 4}, "correction": {"sent": 4}}
        result = stage.result(window)  # sensor 2 did not come: the clock closed the window
        check(result, outliers)
        with pytest.raises(WindowError, match="Nothing was charged"):
            stage.send(window, number=2)
        with stage.device(2) as device:
            assert (device.outbox.spent, device.outbox.count_frames()) == (0, {})
        assert stage.result(window) == result


def test_readings_without_a_partner_are_unjudged(tmp_path: Path) -> None:
    with Stage(tmp_path, patience=F(2), **BRIEF) as stage:
        stage.start("owner", "analyst")
        window, _, fates = sent(stage, lambda fates: "late" not in fates["analyst"])
        assert fates == {"analyst": {"sent": 4}, "correction": {"late": 4}}
        result = stage.result(window)
        assert (result["judged"], result["outliers"], len(result["unjudged"])) == (0, [], 60)
        assert {one["reason"] for one in result["unjudged"]} == {NO_EXCHANGE}


def test_a_batch_that_one_server_refused_is_unjudged(tmp_path: Path) -> None:
    with ExitStack() as stack:
        stage = stack.enter_context(Stage(tmp_path, patience=PATIENT, **BRIEF))
        stage.start()
        door = stack.enter_context(between(stage.ports["correction"], ("refuse", *["fine"] * 99)))
        stage.reroute["correction"] = door.server_address[1]
        window, outliers, fates = sent(
            stage, lambda fates: "late" not in fates["analyst"] and fates["correction"]["late"] == 1, door
        )
        assert fates["correction"] == {"refused": 1, "sent": 2, "late": 1}  # the commit waited for the batch
        with stage.device() as device:
            first = {f"{name:016x}" for name in device.outbox.ids(window)[:25].tolist()}
        result = stage.result(window)
        assert {one["id"] for one in result["unjudged"]} == first
        assert {one["reason"] for one in result["unjudged"]} == {ONE_SERVER}
        assert flagged(result) == outliers - first
        assert result["judged"] == 35


DEATH = {
    "private choice": {"correction": "WindowStore.advance:after:2", "analyst": "WindowStore.add_message:after:2"},
    "grid": {"correction": "WindowStore.advance:after:2", "analyst": "WindowStore.add_message:after:2"},
    "paper": {"correction": "WindowStore.add_message:after:1", "analyst": "WindowStore.add_message:after:3"},
}
MODES = {
    "private choice": Exact(bits=12, unit=F(1, 10), choice_epsilon=F(5)),
    "grid": Grid(bound=F(15), step=F(20)),
    "paper": Paper(radius=F(3), neighbours=10, width=F(5)),
}


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_goes_on_after_kills_between_its_steps(tmp_path: Path, mode: str) -> None:
    with Stage(tmp_path, settings=MODES[mode], epsilon=F(2)) as stage:
        stage.start("owner", "correction", "analyst", die=DEATH[mode])
        with stage.device() as device, sending(device):
            rows, outliers = readings(1, 400)
            device.outbox.add(0, 0, rows)
            expected = device.outbox.ids(0)[outliers]
            if mode == "paper":
                expected = corrected(stage, device)
            device.outbox.finish(0)
            doomed = set(DEATH[mode])
            while doomed:  # one may need the other to come to its own step, so whoever is dead first is back first
                role = first_to_end({name: stage.running[name] for name in doomed})
                assert died(stage.running.pop(role)), stage.logs()
                doomed.remove(role)
                stage.start(role)
        result = stage.result(0)
        assert (result["judged"], result["unjudged"]) == (400, [])
        assert flagged(result) == {f"{name:016x}" for name in expected.tolist()}


def corrected(stage: Stage, device: Device) -> np.ndarray:
    """What one who knows both sides computes from the frames."""
    stated = stage.signed.parameters
    pending = [device.outbox.next_frame(role) for role in ("analyst", "correction")]
    ours, theirs = (decode(one.body, parameters=stated.hash) for one in pending if one is not None)
    presumed = np.flatnonzero(outside_biggest_cluster(ours["perturbed"].astype(float), 300.0, 10))
    found = correct(distances(ours["perturbed"].astype(np.int64), [0, 0]), theirs["moved"], presumed, 500.0)
    return ours["ids"][found.output]
