"""What an engine says of chunks and groups: every record once, whatever the chunks."""

import os

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from wallflower import progress
from wallflower.engines.local import LocalEngine

TABLES = st.lists(st.tuples(st.integers(0, 4), st.integers(-9, 9)), min_size=1, max_size=40)


def kept(rows, chunk):
    codes, values = np.array(rows).T
    columns = [codes.astype(np.int32), values.astype(np.float64)]
    parts = [[column[at : at + chunk] for column in columns] for at in range(0, len(rows), chunk)]
    return LocalEngine().keep("reading", parts, len(parts))


def above(cells, given):
    return {"sum": np.array([cells[0].sum()]), "above": cells[0][cells[0] > given["level"]]}


@given(rows=TABLES, chunk=st.integers(1, 41), level=st.integers(-9, 9))
@settings(max_examples=50, deadline=None)
def test_a_task_sees_every_record_once(rows, chunk, level):
    sheet = kept(rows, chunk)
    told = list(sheet.each("adding up", [1], above, {"level": np.array(level)}))
    assert sum(int(each["sum"][0]) for each in told) == sum(value for _, value in rows)
    found = np.concatenate([each["above"] for each in told]).tolist()
    assert sorted(found) == sorted(float(value) for _, value in rows if value > level)


@given(rows=TABLES, chunk=st.integers(1, 41), cut=st.integers(-9, 9))
@settings(max_examples=50, deadline=None)
def test_groups_hold_every_record_once_in_its_order(rows, chunk, cut):
    """By labels and by numbers together, groups without a record among them; each is a sheet that can be cut again."""
    sheet, wanted = kept(rows, chunk), {(code, side): [] for code in range(5) for side in (False, True)}
    for code, value in rows:
        wanted[code, value > cut].append((code, float(value)))
    codes = lambda cells: 2 * cells[1].astype(np.int64) + (cells[0] > cut)  # noqa: E731
    for group, expected in zip(sheet.group([1, 0], codes, 10), wanted.values(), strict=True):
        assert group.n == len(expected)
        found = [row for cells in group.chunks([0, 1]) for row in zip(*(c.tolist() for c in cells), strict=True)]
        assert found == expected
        if expected:
            with group.tile([1], np.column_stack, size=3) as tiles:
                told = [rows for _, rows in tiles.each("x", lambda rows, _: {"rows": rows}, lambda _: {})]
            assert sorted(np.concatenate([each["rows"][:, 0] for each in told]).tolist()) == sorted(
                v for _, v in expected
            )
    assert [cells[0].tolist() for cells in sheet.chunks([0])] == [c[0].tolist() for c in kept(rows, chunk).chunks([0])]


def test_groups_leave_no_file_open_when_nobody_asks_on():
    sheet = kept([(at % 5, at) for at in range(40)], 7)
    before = len(os.listdir("/proc/self/fd"))
    groups = sheet.group([0], lambda cells: cells[0].astype(np.int64), 5)
    next(groups)
    assert len(os.listdir("/proc/self/fd")) == before + 1
    groups.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_progress_of_a_pass_follows_from_the_number_of_records():
    told = []

    class Hearer:
        def begin(self, words, total):
            told.append((words, total))

        def advance(self, handle, steps):
            pass

        def end(self, handle):
            pass

    for rows in ([(0, 0)] * 30, [(at % 5, at) for at in range(30)]):
        sheet = kept(rows, 7)
        with progress.report_to(Hearer()):
            list(sheet.each("adding up", [1], above, {"level": np.array(0)}))
            list(sheet.group([0], lambda cells: cells[0].astype(np.int64), 5))
    assert told[: len(told) // 2] == told[len(told) // 2 :] == [("adding up", 5), ("sorting records by group", 5)]
