"""`kill -9` at every step of a release: no answer without a durable charge, and life goes on afterwards."""

from __future__ import annotations

import signal
import textwrap

import pytest

from above import Above
from forks import Fork
from wallflower.data import Points
from wallflower.errors import KeyConflict
from wallflower.ledger import Ledger
from wallflower.privacy import Loss
from wallflower.release import release

pytestmark = pytest.mark.slow  # together more than `make check` has room for

QUESTION = Above(bar=1.0, loss=Loss("0.25"))
POINTS = Points.from_array([[0.0], [1.0], [2.0], [3.0]], name="ward")

SCRIPT = textwrap.dedent(
    """
    import os, signal, sys, time
    import wallflower.ledger.ledger as book
    import wallflower.ledger.rows as rows
    from above import Above
    from wallflower.data import Points
    from wallflower.ledger import Ledger
    from wallflower.privacy import Loss
    from wallflower.release import release

    place, point = sys.argv[1:]

    def reach(name):
        if name == point:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(owner, method, before="", after=""):
        real = getattr(owner, method)
        def wrapped(*given, **more):
            reach(before)
            value = real(*given, **more)
            reach(after)
            return value
        setattr(owner, method, wrapped)

    def writing(db, event, *given, **more):
        entry = append(db, event, *given, **more)
        reach(f"{event} written, not committed")
        return entry

    append = book.append
    book.append = rows.append = writing
    around(Above, "view", "before the view", "after the view")
    around(Ledger, "charge", "before the charge", "after the charge")
    around(Above, "reading", "after the answer")
    around(Ledger, "record", "before the record", "after the record")

    class Watched(Above):
        def answer(self, data, noise):
            reach("during the answer")
            if point == "waiting":
                print("looking", flush=True)
                time.sleep(600)
            return Above.answer(self, data, noise)

    with Ledger.open(place) as ledger:
        points = Points.from_array([[0.0], [1.0], [2.0], [3.0]], name="ward")
        made = release(Watched(bar=1.0, loss=Loss("0.25")), points, ledger, analyst="ana", idempotency_key="k")
        print("answer", made.value, flush=True)
    """
)

# What must be on disk when the process dies there.
STEPS = {
    "before the view": [],
    "after the view": [],
    "before the charge": [],
    "charge written, not committed": [],
    "after the charge": ["charge"],
    "during the answer": ["charge"],
    "after the answer": ["charge"],
    "before the record": ["charge"],
    "release written, not committed": ["charge"],
    "after the record": ["charge", "release"],
    "never": ["charge", "release"],
}


def check_life_goes_on(place: str, expected: list[str]) -> None:
    with Ledger.open(place) as ledger:
        assert [entry.event for entry in ledger.history()] == expected
        assert ledger.verify().entries == len(expected)
        assert ledger.remaining("ward") == (Loss("0.75") if expected else Loss("1"))
        if expected == ["charge"]:
            with pytest.raises(KeyConflict, match="lost in a crash"):
                release(QUESTION, POINTS, ledger, analyst="ana", idempotency_key="k")
        else:
            again = release(QUESTION, POINTS, ledger, analyst="ana", idempotency_key="k")
            assert again.replayed is (expected == ["charge", "release"])
        assert release(QUESTION, POINTS, ledger, analyst="ana").left <= Loss("0.5")
        ledger.verify()


@pytest.mark.parametrize("step", STEPS)
def test_a_killed_release_never_answers_without_a_charge(place: str, step: str) -> None:
    with Ledger.open(place):
        pass
    with Fork(SCRIPT, place, step) as process:
        code, output, errors = process.finish()
    assert code == (0 if step == "never" else -signal.SIGKILL), errors
    assert output.startswith("answer") is (step == "never")
    check_life_goes_on(place, STEPS[step])


def test_a_release_killed_from_outside_while_it_looks_stays_charged(place: str) -> None:
    with Ledger.open(place):
        pass
    with Fork(SCRIPT, place, "waiting") as process:
        assert process.stdout.readline() == "looking\n"
        with Ledger.open(place) as ledger:
            assert [entry.event for entry in ledger.history()] == ["charge"]
        process.kill()
        assert process.finish()[1] == ""
    check_life_goes_on(place, ["charge"])
