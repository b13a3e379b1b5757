"""Clocks that are wrong and set right: nothing is paid twice, nothing is lost in silence, and all goes on by itself."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from stage import Stage, fill, flagged, sending

from wallflower.sensors.parties.outbox import WindowError

pytestmark = pytest.mark.slow


def test_wrong_clocks_cost_nothing_but_time(tmp_path: Path, monkeypatch: Any) -> None:
    clock, right = tmp_path / "clock", time.time
    clock.write_text("-1000")
    with Stage(tmp_path) as stage, stage.device() as device:
        stage.start(clock=clock)
        # The servers' clocks are behind: the window has not begun there. 422 was final, and the readings were gone.
        outliers = fill(device, 0)
        for role in ("analyst", "correction"):
            frame = device.outbox.next_frame(role)
            assert frame is not None
            path = "/v1/hall/w/0/s/1/b/0"
            assert stage.call("sensor-1", role, "PUT", path, frame.body, signature=frame.signature)[0] == 425
        with sending(device):
            assert device.outbox.count_frames() == {"analyst": {"pending": 4}, "correction": {"pending": 4}}
            clock.write_text("0")
            result = stage.result(0)
        assert flagged(result) == outliers
        assert (result["judged"], result["unjudged"], result["doubts"]) == (60, [], [])
        assert (device.outbox.spent, device.outbox.count_frames()["analyst"]) == (12, {"sent": 4})
        # Set back after the window was told: it is told still, and once.
        clock.write_text("-1000")
        assert stage.call("owner", "owner", "GET", "/v1/hall/w/0/result")[0] == 200
        clock.write_text("0")
        assert stage.result(0) == result
        # The device's clock is ahead: frames are late by it alone, and go out when it is right.
        later = fill(device, 1)
        monkeypatch.setattr(time, "time", lambda: right() + 10_000)
        clock.write_text("-1000")
        assert device.send() == {"analyst": {"sent": 4, "late": 4}, "correction": {"sent": 4, "late": 4}}
        with pytest.raises(WindowError):
            fill(device, 2)
        # And behind: nothing is drawn for a window that has not begun, and what is paid is not paid again.
        monkeypatch.setattr(time, "time", lambda: right() - 10_000)
        with pytest.raises(WindowError):
            fill(device, 2)
        fill(device, 1)
        assert device.outbox.spent == 24
        monkeypatch.setattr(time, "time", right)
        clock.write_text("0")
        assert device.send() == {"analyst": {"sent": 8}, "correction": {"sent": 8}}
        assert flagged(stage.result(1)) == later
