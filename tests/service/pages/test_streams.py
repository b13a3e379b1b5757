"""Watches on the pages: opened once, fed from a file, told as they were decided, and everybody's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from page_client import EVIL, Browser, text, words
from served import Service, run_service, settings

from wallflower.drawing.charts import Block, timeline
from wallflower.errors import DataError
from wallflower.privacy import Loss
from wallflower.service.core.watches import MAX_OBSERVATIONS, parse_observations

WATCH = {"threshold": "2", "low": "-5", "high": "5", "epsilon": "0.5", "force": "yes"}


@pytest.mark.parametrize(
    ("given", "rows"),
    [
        ("t\n1\n2\n", [[1.0], [2.0]]),
        ("other,t\nx,1\ny,\n", [[1.0], [None]]),
        ("t\n1\n\nseven\nnan\n1e999\n", [[1.0], [None], [None], [None]]),
        ('{"t": 1}\n{"t": null}\n{}\n', [[1.0], [None], [None]]),
        ("[1]\n[2.5]\n[true]", [[1.0], [2.5], [None]]),
    ],
)
def test_lines_become_rows(given: str, rows: list[list[float | None]]) -> None:
    assert parse_observations(given, ["t"]).rows == rows
    assert parse_observations(given, ["t"]).times is None


def test_a_text_may_say_when() -> None:
    assert parse_observations("time,t\n2030-01-01,1\n2030-01-02,2", ["t"]).times == ["2030-01-01", "2030-01-02"]
    assert parse_observations('{"time": "2030-01-01", "t": 1}\n{"t": 2}', ["t"]).times is None


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("", "there are none"),
        ("x\n1", "line 1: it does not name t"),
        ("t\n1\n2,3", "line 3: it has 2 cells"),
        ('t\n"1', "quotes do not close"),
        ("[1]\n[1, 2]", "line 2: must be a JSON object"),
        ("[1]\n{", "line 2"),
        ("[" * 100_000, "line 1"),
        ("t\n" + "1\n" * (MAX_OBSERVATIONS + 1), "more than 100,000"),
    ],
)
def test_a_wrong_line_is_told_by_its_number(given: str, told: str) -> None:
    with pytest.raises(DataError, match=told):
        parse_observations(given, ["t"])


def test_no_message_holds_a_cell() -> None:
    for given in ("t\n31.4159,2\n", "[31.4159, 1]", "{31.4159"):
        with pytest.raises(DataError) as refused:
            parse_observations(given, ["t"])
        assert "31.4159" not in str(refused.value)


def test_a_timeline_says_every_number() -> None:
    assert timeline([], 0.1) == ""
    drawn = timeline(
        [Block(first=1, last=50, flagged=7, skipped=2), Block(first=51, last=60, flagged=0, skipped=0)], 0.1
    )
    assert drawn is not None
    assert "1 to 50: 7 flagged of 48 decided" in drawn
    assert 'class="limit"' in drawn
    assert 'class="limit"' not in str(timeline([Block(first=1, last=1, flagged=1, skipped=0)], None))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with run_service(settings(tmp_path_factory.mktemp("streams"), failures=10_000)) as running:
        running.app.state.core.ledger.grant("beds", Loss("5"), by="sue", reason="streams")
        yield running


@pytest.fixture(scope="module")
def ana(service: Service) -> Browser:
    return Browser(service).sign_in(service.token("ana").token)


def test_from_the_planner_to_the_decisions(service: Service, ana: Browser) -> None:
    page = ana.get("/ui/datasets/beds/plan/watch")
    assert "Open a watch" in words(page)
    form = WATCH | {"nonce": "one"}
    opened = ana.post("/ui/datasets/beds/watches/watch", form)
    at = opened.headers["location"]
    assert ana.post("/ui/datasets/beds/watches/watch", form).headers["location"] == at  # paid once
    assert len(service.app.state.core.ledger.history("beds", label="outlier-watch/1")) == 1
    assert "No decisions yet" in words(ana.get(at))
    lines = "t\n" + "".join(f"{row % 7 - 3}\n" for row in range(100))
    for _ in range(2):  # sent twice, it is decided once
        fed = ana.post(f"{at}/observations", {"observations": lines, "first": "1"})
        assert fed.headers["location"] == f"{at}?from=1&count=100"
    page = ana.get(fed.headers["location"])
    assert "100 observations decided, starting with number 1" in words(page)
    assert "expected false alarms, at most" in words(page)
    flags = service.app.state.watches.history(_caller(service, "ana"), at.rpartition("/")[2], 1000).outliers
    assert len(flags) == 100
    assert f"<dd>{sum(flag is True for flag in flags)}</dd>" in text(page)
    assert len(service.app.state.core.ledger.history("beds", label="outlier-watch/1")) == 1


def test_a_wrong_file_decides_nothing_and_is_kept_in_the_form(ana: Browser, service: Service) -> None:
    at = ana.post("/ui/datasets/beds/watches/watch", WATCH | {"nonce": "two"}).headers["location"]
    refused = ana.post(f"{at}/observations", {"observations": f"{EVIL}\n1", "first": "1"})
    assert refused.status == 422
    assert "it does not name t" in words(refused)
    assert EVIL in words(refused)
    assert "<img src=x" not in text(refused)
    assert "No decisions yet" in words(refused)
    jumped = ana.post(f"{at}/observations", {"observations": "t\n1", "first": "7"})
    assert jumped.status == 409


def test_a_watch_is_its_owners(ana: Browser, service: Service) -> None:
    at = ana.post("/ui/datasets/beds/watches/watch", WATCH | {"nonce": "three"}).headers["location"]
    bo = Browser(service).sign_in(service.token("bo").token)
    sue = Browser(service).sign_in(service.token("sue", "steward").token)
    assert bo.get(at).status == 404
    assert bo.post(f"{at}/observations", {"observations": "t\n1"}).status == 404
    key = at.rpartition("/")[2]
    assert key not in text(bo.get("/ui/streams"))
    assert key in text(sue.get("/ui/streams"))
    assert key in text(ana.get("/ui/streams"))
    assert sue.get(at).status == 200


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/ui/datasets/beds/watches/none", 404),
        ("/ui/datasets/none/watches/watch", 404),
        ("/ui/datasets/beds/watches/count", 422),
    ],
)
def test_what_cannot_be_watched_is_refused(ana: Browser, path: str, status: int) -> None:
    assert ana.post(path, WATCH).status == status


def test_a_budget_that_is_short_opens_nothing(ana: Browser) -> None:
    refused = ana.post("/ui/datasets/beds/watches/watch", WATCH | {"epsilon": "50", "nonce": "four"})
    assert refused.status == 403
    assert "request budget" in words(refused)


def _caller(service: Service, name: str) -> object:
    tokens = service.app.state.core.tokens
    return tokens.caller(tokens.create(name, "analyst")[1])
