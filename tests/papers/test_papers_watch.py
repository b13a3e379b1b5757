"""The figures of the Gaussian signals: exact, simulated and printed rates, what is really spent, and real streams."""

from __future__ import annotations

import csv
import gzip
import json
import math
from pathlib import Path

import numpy as np
import pytest
from stream_collection import require_same_numbers
from typer.main import get_command

from wallflower.cli import build
from wallflower.data import Points
from wallflower.errors import SourceError
from wallflower.papers import PAPERS
from wallflower.papers.data import streams
from wallflower.papers.data.streams import Stream
from wallflower.papers.degue2020 import beyond, detection, figures
from wallflower.papers.degue2020.beyond import NO_GUARANTEE, spending_section
from wallflower.papers.degue2020.detection import (
    ABSENT,
    ALARMS,
    LOSSES,
    PLAIN,
    Row,
    Tally,
    chance,
    flags,
    judge_stream,
    pool_rows,
    setting,
)
from wallflower.papers.degue2020.figures import (
    CURVES,
    HEIGHTS,
    KINDS,
    LINE,
    NOT_COMPUTABLE,
    SWEEP,
    Runs,
    figure3,
    figure4,
    figure5,
    limits,
    off_by,
    rates_at,
    simulations,
)
from wallflower.papers.degue2020.items import compare_items
from wallflower.papers.degue2020.outlierdetect import (
    ENTRIES,
    FACTS,
    LENGTH,
    RHO,
    SPREAD,
    TRUTH,
    Simulation,
    expected_flags,
    input_perturbation_at,
    own_epsilon,
    simulate,
    theorem_2,
    theorem_3,
    world,
)
from wallflower.papers.facts import WORKS
from wallflower.papers.page import first_section
from wallflower.privacy import Loss
from wallflower.queries import QUERIES
from wallflower.queries.watch import Watch
from wallflower.queries.watch.forecast.rates import rates, run_interval, sum_of_laplaces, true_positive_at
from wallflower.synthetic import mixture

pytestmark = pytest.mark.slow  # together more than `make check` has room for

FAR = 6.5  # standard errors: less than once in 10^9 runs by chance


# The example


@pytest.fixture(scope="module")
def found() -> Simulation:
    return simulate("1", TRUTH, TRUTH, runs=2000, length=100)


@pytest.mark.parametrize(("epsilon", "fits"), [(0.6, False), (1.0, True), (1.6, False)])
def test_simulated_rates_are_the_exact_ones(found: Simulation, epsilon: float, fits: bool) -> None:
    exact = rates("paper", threshold=TRUTH, epsilon=epsilon, **world())
    for share, rate in ((found.false_positive, exact.false_positive), (found.true_positive, exact.true_positive)):
        assert (abs(share.value - rate) < FAR * share.error) is fits


def test_a_threshold_apart_from_the_truth_is_simulated_too() -> None:
    found = simulate("2", 7e3, TRUTH, runs=630, length=100)
    exact = rates("paper", threshold=7e3, epsilon=2.0, **world())
    assert abs(found.false_positive.value - exact.false_positive) < FAR * found.false_positive.error
    assert abs(found.true_positive.value - exact.true_positive) < FAR * found.true_positive.error


def test_runs_are_as_far_apart_as_the_noisy_threshold_makes_them() -> None:
    share = simulate("1", TRUTH, TRUTH, runs=120).false_positive
    low, high = run_interval("paper", threshold=TRUTH, epsilon=1.0, **world())
    of_runs = share.flagged / share.of
    assert 0.75 < ((low <= of_runs) & (of_runs <= high)).mean() < 0.99
    alone = math.sqrt(share.value * (1 - share.value) / LENGTH)
    assert share.error > 3 * alone / math.sqrt(len(of_runs))


@pytest.mark.parametrize(("epsilon", "printed"), [(1.0, 0.0817), (2.0, 0.0363), (5.0, 0.0), (10.0, math.nan)])
def test_the_printed_formula_breaks_where_it_was_found_to(epsilon: float, printed: float) -> None:
    assert theorem_3(epsilon) == pytest.approx(printed, abs=5e-5, nan_ok=True)


@pytest.mark.parametrize("h", HEIGHTS)
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0])
def test_the_printed_formulas_are_right_where_they_can_be_computed(epsilon: float, h: float) -> None:
    exact = rates_at(h, epsilon)
    assert theorem_3(epsilon, h) == pytest.approx(exact.false_positive)
    assert theorem_2(epsilon, h) == pytest.approx(exact.true_positive)


def test_theorem_2_overflows_from_6_6_on() -> None:
    assert math.isnan(theorem_2(6.6))
    assert not math.isnan(theorem_2(6.5))


def test_the_noise_has_the_density_of_proposition_1() -> None:
    epsilon, at, near = 0.8, np.array([-4000.0, -300.0, 250.0, 3000.0]), 0.1
    law = sum_of_laplaces(4 * RHO / epsilon, 2 * RHO / epsilon)
    decay = np.exp(-np.abs(at) * epsilon / (4 * RHO))
    printed = epsilon / (12 * RHO) * decay * (2 - decay)
    density = (np.exp(law.log_above(at - near)) - np.exp(law.log_above(at + near))) / (2 * near)
    assert density == pytest.approx(printed, rel=1e-6)


# Figures 3 to 5 as they are described


@pytest.fixture(scope="module")
def seen() -> Runs:
    return simulations(20)


def test_figure_3_has_both_errors_at_one_h_exact_and_simulated(seen: Runs) -> None:
    section = figure3(seen, 20)
    rows = [dict(zip(section.sheet.heading, row, strict=True)) for row in section.sheet.rows]
    assert [row["epsilon"] for row in rows] == [float(epsilon) for epsilon in figures.EPSILONS]
    for row in rows:
        exact = rates("paper", threshold=TRUTH, epsilon=float(row["epsilon"]), **world())
        assert (row["P_I"], row["P_II"]) == (exact.false_positive, exact.false_negative)
    plain, logarithmic = section.panels
    assert [line.along for line in plain.curves] == [LINE, LINE]
    assert all(line.spots is not None and len(line.spots.values) == len(figures.EPSILONS) for line in plain.curves)
    assert [line.why != "" for line in logarithmic.curves] == [False, False, True, True]


def test_figure_4_has_a_curve_for_each_epsilon_on_which_h_falls_from_left_to_right(seen: Runs) -> None:
    section = figure4(seen, 20)
    assert [row[:2] for row in section.sheet.rows] == [(float(e), h) for e in CURVES for h in HEIGHTS]
    assert list(SWEEP) == sorted(SWEEP, reverse=True)
    for epsilon, line in zip(CURVES, section.panels[0].curves, strict=True):
        assert line.along is not None
        assert list(line.along) == sorted(line.along)
        assert list(line.values) == sorted(line.values, reverse=True)
        first = rates_at(SWEEP[0], float(epsilon))
        assert (line.along[0], line.values[0]) == (first.false_positive, first.false_negative)


def test_nothing_is_told_at_the_smallest_epsilon_whatever_h_is() -> None:
    assert CURVES[0] in FACTS["no information at high privacy"].numbers
    errors = [kind.exact(rates_at(h, float(CURVES[0]))) for h in SWEEP for kind in KINDS]
    assert max(abs(error - 0.5) for error in errors) < 0.03


@pytest.mark.parametrize(
    ("epsilon", "flagged", "right"),
    [(0.01, 0.491, 0.504), (0.1, 0.411, 0.537), (1.0, 0.082, 0.747), (10.0, 0.005, 0.959)],
)
def test_figure_5_is_the_curve_that_epsilon_draws_at_one_h(
    seen: Runs, epsilon: float, flagged: float, right: float
) -> None:
    rows = {row[0]: row[1:3] for row in figure5(seen, 20).sheet.rows}
    assert rows[epsilon] == pytest.approx((flagged, right), abs=5e-4)
    trace = figure5(seen, 20).panels[0].curves[0]
    assert len(trace.values) == len(LINE)
    assert list(trace.values) == sorted(trace.values)


def test_both_corollaries_hold() -> None:
    (_, none, *low), (_, every, *high) = limits().sheet.rows
    assert (none, every) == (FACTS["limits eps->0"].value, FACTS["limits eps->inf"].value)
    assert low == pytest.approx([0.5, 0.5], abs=1e-5)
    assert high == pytest.approx([1.0, 0.0], abs=1e-5)


def test_simulated_rates_are_not_far_off() -> None:
    some = {key: simulate(key[0], key[1], key[1], 400, 100) for key in (("1", TRUTH), ("10", 3e3))}
    assert off_by(some) < 6
    wrong = {("1", 3e3): some["1", TRUTH]}
    assert off_by(wrong) > 6


# What is printed


def test_every_printed_fact_stands_in_the_opening_table(seen: Runs) -> None:
    rows = first_section(compare_items(seen)).sheet.rows
    assert [(row[0], row[1], row[2]) for row in rows] == [
        (item, fact.where, fact.value) for item, fact in FACTS.items()
    ]
    assert all(row[5] or row[4] != "deviates" for row in rows)
    assert sum(row[4] == WORKS for row in rows) >= 10


def test_the_facts_are_those_of_the_collection() -> None:
    require_same_numbers("degue2020", "degue")


@pytest.mark.parametrize("total", [0.1, 4.0])
@pytest.mark.parametrize("allowed", [None, 0.01])
def test_the_paper_s_own_accounting_adds_up(total: float, allowed: float | None) -> None:
    epsilon = own_epsilon(total, allowed)
    at = true_positive_at("paper", allowed, epsilon=epsilon, **world())[0] if allowed else TRUTH
    assert epsilon * (expected_flags(epsilon, at) + 1) / 2 == pytest.approx(total, rel=1e-3)


def test_half_of_everything_is_flagged_by_noise_alone() -> None:
    assert expected_flags(1e-6, TRUTH) == pytest.approx(LENGTH / 2, rel=1e-3)


@pytest.fixture(scope="module")
def table() -> dict[tuple[float, float], tuple[float, ...]]:
    return {(row[0], row[1]): row[2:] for row in spending_section().sheet.rows}  # type: ignore[misc]


@pytest.mark.parametrize(
    ("total", "at_a_tenth", "at_a_hundredth"),
    [
        (0.1, (0.100, 0.375, 0.426, 0.426), (0.010, 0.046, 0.046, 0.0465)),
        (0.5, (0.101, 0.960, 0.971, 0.972), (0.010, 0.623, 0.673, 0.680)),
        (1.0, (0.102, 0.997, 0.998, 0.998), (0.010, 0.873, 0.904, 0.929)),
        (2.0, (0.103, 1.000, 1.000, 1.000), (0.010, 0.969, 0.977, 0.984)),
    ],
)
def test_the_table_of_what_is_really_spent(
    table: dict[tuple[float, float], tuple[float, ...]],
    total: float,
    at_a_tenth: tuple[float, ...],
    at_a_hundredth: tuple[float, ...],
) -> None:
    for allowed, expected in ((0.1, at_a_tenth), (0.01, at_a_hundredth)):
        own, at_h, real, noisy_entries, *rest = table[total, allowed]
        assert allowed < noisy_entries < real  # thirty draws of noise where one is enough
        rest = [at_h, real, *rest]
        assert rest == pytest.approx(expected, abs=6e-4)
        assert rest[0] <= own < rest[1]  # by the flags expected it finds a little more, and still next to nothing


def test_input_perturbation_finds_what_a_simulation_finds() -> None:
    rng, size, epsilon = np.random.default_rng(1), 400_000, 1.0
    sums = rng.normal(0.0, SPREAD, size)
    noisy = np.abs(sums + rng.laplace(0.0, RHO / epsilon, (size, ENTRIES)).sum(axis=1))
    outliers = np.abs(sums) >= TRUTH
    for allowed in (0.1, 0.01):
        at = np.quantile(noisy[~outliers], 1 - allowed)
        assert float((noisy[outliers] >= at).mean()) == pytest.approx(input_perturbation_at(allowed, epsilon), abs=0.01)


# Real streams


def made(change: float = 0.1, labels: bool = True) -> Stream:
    """Gaussian numbers, the last 50 of 1000 shifted by eight deviations."""
    values = mixture(1400, 1, seed=5, share=0)
    values[-50:] += 8
    return Stream(
        group="made",
        name="made",
        history=values[:400],
        values=values[400:],
        labels=np.arange(1000) >= 950 if labels else None,
        low=-20.0,
        high=20.0,
        whole="all",
        part="a little",
        change=change,
    )


def test_a_watch_finds_what_is_planted_and_nothing_where_one_entry_is_all() -> None:
    whole, part = judge_stream(made(), runs=10)
    assert part.ratio == pytest.approx(0.1, rel=0.1)
    assert whole.ratio == pytest.approx(40, rel=0.1)
    for row, least, most in ((part, 0.9, 1.0), (whole, -0.05, 0.3)):
        assert least <= lift(row, "E=1") <= most
    assert lift(part, "E=0.1") < lift(part, "E=1") <= lift(part, PLAIN) + 0.02
    assert lift(part, PLAIN) > 0.9


def lift(row: Row, detector: str) -> float:
    tally = row.tallies[detector]
    assert tally is not None
    return tally.lift


def test_without_labels_the_threshold_is_right_by_definition() -> None:
    rows = judge_stream(made(labels=False), runs=2)
    assert [lift(row, PLAIN) for row in rows] == [1.0, 1.0]
    assert {row.judged_by for row in rows} == {"the threshold"}


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("move", [0.01, 1.0, 30.0])
def test_the_threshold_raises_the_alarms_allowed_on_the_history(epsilon: float, move: float) -> None:
    distances = np.abs(mixture(5000, 1, seed=1, share=0)[:, 0])
    at = setting(distances, move, epsilon)

    def alarms(threshold: float) -> float:
        return float(chance(np.floor((distances - threshold) / move) + 1, epsilon).mean())

    assert alarms(at) <= ALARMS
    assert alarms(at * (1 - 1e-9) - 1e-9) > ALARMS - 1e-3


def test_the_chance_of_a_flag_is_that_of_the_release() -> None:
    query = Watch(threshold=2.0, low=-5.0, high=5.0, change=1.0, loss=Loss("1"))
    points = Points.from_array(np.repeat([[0.5], [1.5], [2.5], [4.5]], 11_000, axis=0))
    found = flags(query, points).reshape(4, 11_000).mean(axis=1)
    expected = chance(np.array([-1.0, 0.0, 1.0, 3.0]), 1.0)
    assert (np.abs(found - expected) < FAR * np.sqrt(expected * (1 - expected) / 11_000)).all()


def test_counts_are_added_not_rates() -> None:
    one = Tally(seen=10, outliers=2, flagged=4, both=1)
    other = Tally(seen=90, outliers=8, flagged=6, both=6)
    both = one + other
    assert (both.precision, both.recall, both.alarms) == (0.7, 0.7, 0.1)
    assert both.false_alarms == pytest.approx(3 / 90)
    assert both.f1 == pytest.approx(0.7)
    rows = [judge_stream(made(), runs=1)[0], judge_stream(made(), runs=1)[0]]
    assert pool_rows(rows, "both").tallies[PLAIN] == rows[0].tallies[PLAIN] + rows[1].tallies[PLAIN]  # type: ignore[operator]


def test_a_detector_that_is_not_installed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> np.ndarray:
        raise ModuleNotFoundError("river")

    monkeypatch.setattr(detection, "OTHERS", {"river": missing})
    row = judge_stream(made(), runs=1)[0]
    assert row.tallies["river"] is None
    sheet = detection.comparison_section([row, pool_rows([row, row], "two")]).sheet
    assert [line[sheet.heading.index("river")] for line in sheet.rows] == [ABSENT, ABSENT]


def write(path: Path, rows: list[list[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", newline="") as file:
        csv.writer(file).writerows(rows)


@pytest.fixture
def borrowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of the right shape, filled with made-up observations."""
    folder = tmp_path / "data"
    noise = np.round(mixture(500, 8, seed=2, share=0), 3)
    delays = [[f"2001-01-{day:03}", *(10 + 5 * noise[day, :3])] for day in range(100)]
    write(folder / "flight_delays" / "daily_arr_delay_wide_origin_top50.csv", [["date", "ATL", "EWR", "ZZZ"], *delays])
    names = [f"sensor{place}" for place in range(8)]
    head = ["group", "file", "datetime", *names, "anomaly", "changepoint"]
    calm = [["anomaly-free", "anomaly-free", "-", *noise[place], "", ""] for place in range(10)]
    pump = [
        ["valve1", "0", "-", *(noise[place] + 9 * (place >= 450)), float(place >= 450), 0.0] for place in range(500)
    ]
    write(folder / "skab" / "skab.csv.gz", [head, *calm, *pump])
    windows = {
        "realKnownCause/nyc_taxi.csv": [["2014-07-01 06:00:00.000000", "2014-07-01 07:00:00.000000"]],
        "realTraffic/speed_7578.csv": [],
    }
    (folder / "nab").mkdir()
    (folder / "nab" / "combined_windows.json").write_text(json.dumps(windows), encoding="utf-8")
    for name in windows:
        rows = [[f"2014-07-01 {place // 60:02}:{place % 60:02}:00", 60 + noise[place, 0]] for place in range(480)]
        write(folder / "nab" / name, [["timestamp", "value"], *rows])
    monkeypatch.setenv("WALLFLOWER_DATA", str(folder))
    return folder


def test_the_streams_are_read_as_they_are_stored(borrowed: Path) -> None:
    together, atlanta, newark = streams.flights()
    assert (together.values.shape, atlanta.values.shape, newark.name) == ((40, 3), (40, 1), "EWR")
    (pump,) = streams.skab()
    assert pump.labels is not None
    assert (len(pump.values), pump.labels.sum()) == (100, 50)
    assert np.abs(pump.history.std(axis=0) - 1).max() < 0.01
    taxi, speed = streams.nab()
    assert taxi.labels is not None
    assert speed.labels is not None
    assert (len(taxi.history), taxi.labels.sum(), speed.labels.sum()) == (72, 61, 0)
    assert (taxi.part, taxi.change, speed.part) == ("one ride", 6.0, "a tenth of a spread")


@pytest.mark.heavy
def test_the_paper_is_drawn(borrowed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beyond, "EPSILONS", ("1", "10"))
    monkeypatch.setattr(beyond, "CURVES", ("1",))
    monkeypatch.setattr(beyond, "LINE", (0.1, 1.0, 10.0))
    monkeypatch.setattr(beyond, "SPENT", (0.1, 1.0))
    said: list[str] = []
    out = tmp_path / "out"
    out.mkdir()
    paths = {path.name: path for path in PAPERS["degue2020"](out, True, said.append)}
    drawn = ("figure3", "figure4", "figure5", "ours-P_I", "ours-P_II", "ours-roc", "spent", "streams")
    pictures = {f"{name}.{kind}" for name in drawn for kind in ("csv", "png")}
    assert paths.keys() == pictures | {"compared.csv", "limits.csv", "streams-detail.csv", "degue2020.html"}
    assert all(path.stat().st_size > 120 for path in paths.values())
    page = paths["degue2020.html"].read_text(encoding="utf-8")
    for word in (NOT_COMPUTABLE, NO_GUARANTEE, "NOT PRIVATE", "SKAB, 1 streams", "50 airports", "by chance"):
        assert word in page
    assert page.index("What is printed, and what is here") < page.index("Figure 3:") < page.index("Ours:")
    assert "<script" not in page
    assert "skipped" not in "".join(said)
    with paths["streams-detail.csv"].open(encoding="utf-8", newline="") as file:
        detail = list(csv.DictReader(file))
    assert {row["detector"] for row in detail} == {PLAIN, "river", "ecod", *(f"E={loss}" for loss in LOSSES)}


def test_without_the_data_the_streams_are_skipped_and_the_reason_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WALLFLOWER_DATA", str(tmp_path / "nowhere"))
    said: list[str] = []
    assert detection.judgements(streams.streams(said.append), 1) == []
    assert [words.split()[1].split("/")[0] for words in said] == ["flight_delays", "skab", "nab"]
    assert all("Set WALLFLOWER_DATA" in words for words in said)


def test_the_real_streams_are_those_described_when_at_hand() -> None:
    try:
        found = [streams.flights(), streams.skab(), streams.nab()]
    except SourceError as reason:
        pytest.skip(str(reason))
    assert [len(each) for each in found] == [4, 34, 14]
    assert found[0][0].values.shape == (121, 50)
    for stream in (stream for each in found for stream in each):
        assert stream.labels is None or stream.labels.any()


def test_small_changes_in_real_streams_can_be_protected_when_at_hand() -> None:
    try:
        pumps, numbers = streams.skab(), streams.nab()
    except SourceError as reason:
        pytest.skip(str(reason))
    for group in (pumps, numbers):
        whole, part = (
            pool_rows(rows, "all") for rows in zip(*(judge_stream(stream, 2) for stream in group), strict=True)
        )
        assert lift(part, "E=1") > 0.9 * lift(part, PLAIN)
        assert lift(whole, "E=1") < 0.3 * lift(whole, PLAIN)


def test_the_help_names_every_paper() -> None:
    command = get_command(build(QUERIES)).commands["reproduce"]  # type: ignore[attr-defined]
    (argument,) = (each for each in command.params if each.name == "paper")
    assert all(paper in argument.help for paper in PAPERS)
