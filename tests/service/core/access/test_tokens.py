"""Tokens, settings and the command line of the service."""

from __future__ import annotations

import json
import logging
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
import sqlalchemy as sa
from page_client import Browser
from served import Caller, process, run_service, settings

from above import Above
from wallflower import cli
from wallflower.errors import LedgerError, ParameterError, PrivacyError, SourceError
from wallflower.ledger import Ledger
from wallflower.service.core.access.acts import Acts
from wallflower.service.core.access.tokens import Tokens, token_id
from wallflower.service.core.problems import Refusal
from wallflower.service.core.records import TOKENS, Records
from wallflower.service.settings import Registration, Settings


@pytest.fixture
def tokens(place: str) -> Iterator[Tokens]:
    records = Records(place)
    yield Tokens(records)
    records.close()


def test_a_token_is_shown_once_and_kept_as_a_hash(tokens: Tokens) -> None:
    made, text = tokens.create("ana", "analyst")
    caller = tokens.caller(text)
    assert caller is not None
    assert (caller.name, caller.scope, caller.token) == ("ana", "analyst", made.id)
    with tokens._records._store.read() as db:
        (row,) = db.execute(sa.select(TOKENS)).mappings()
    assert text.split("_", 2)[2] not in str(dict(row))
    assert len(row["digest"]) == 64
    assert "digest" not in tokens.all()[0].to_json()


def test_only_the_very_token_is_taken(tokens: Tokens) -> None:
    _, text = tokens.create("ana", "steward")
    flipped = text[:-2] + ("a" if text[-2] != "a" else "b") + text[-1]
    for other in ("", "wf_", text[:-1], text + "x", flipped, text.upper(), f" {text}", "\ud800", "é" * 59, "\x00"):
        assert tokens.caller(other) is None, other


def test_tokens_expire_and_are_revoked(tokens: Tokens) -> None:
    over, expired = tokens.create("ana", "analyst")
    tokens._records.change(TOKENS, over.id, expires=over.created)
    assert tokens.caller(expired) is None
    for_ever, text = tokens.create("ana", "analyst", days=None)
    assert tokens.caller(text) is not None
    first = tokens.revoke(for_ever.id)
    assert tokens.caller(text) is None
    assert tokens.revoke(for_ever.id).revoked == first.revoked
    assert [token.is_valid for token in tokens.all()] == [False, False]
    with pytest.raises(Refusal, match="no token"):
        tokens.revoke("none")


def test_another_worker_honours_a_revocation_within_seconds(tokens: Tokens, monkeypatch: Any) -> None:
    monkeypatch.setattr("wallflower.service.core.access.tokens._CACHE_SECONDS", 0.2)
    other = Tokens(tokens._records)
    made, text = tokens.create("ana", "analyst")
    assert other.caller(text) is not None
    tokens.revoke(made.id)
    time.sleep(0.25)
    assert other.caller(text) is None


@pytest.mark.parametrize(
    ("name", "scope", "days"),
    [
        ("", "analyst", 1),
        ("a/b", "analyst", 1),
        ("(others)", "analyst", 1),
        ("a", "root", 1),
        ("a", "analyst", -1),
        ("a", "analyst", 0),
    ],
)
def test_a_token_that_makes_no_sense_is_refused(tokens: Tokens, name: str, scope: str, days: int) -> None:
    with pytest.raises(ParameterError):
        tokens.create(name, scope, days=days)


def test_the_ledger_does_not_mind_its_neighbours(place: str, tokens: Tokens) -> None:
    with Ledger.open(place) as ledger:
        assert ledger.verify().entries == 0


# Settings


def write_settings(folder: Path, text: str) -> Path:
    (folder / "people.csv").write_text("a\n1\n2\n")
    (folder / "people.toml").write_text("[columns.a]\nlow = 0\nhigh = 9\n")
    path = folder / "service.toml"
    path.write_text(text)
    return path


GOOD = """
port = 8081
workers = 2
ledger = "book.db"
watches = "watches"
quantum_seconds = 1
[[datasets]]
name = "people"
source = "people.csv"
schema = "people.toml"
records = ["a=7"]
[[datasets]]
name = "stream"
schema = "people.toml"
"""


def test_settings_are_read_and_places_are_relative_to_the_file(tmp_path: Path) -> None:
    found = Settings.read(write_settings(tmp_path, GOOD))
    assert (found.port, found.workers, found.quantum_seconds) == (8081, 2, 1)
    assert (found.ledger, found.roots) == (str(tmp_path / "book.db"), (str(tmp_path),))
    people, stream = found.datasets
    assert (people.source, people.records, stream.source) == (str(tmp_path / "people.csv"), ("a=7",), None)
    assert people.schema.columns is not None
    assert Settings.from_json(found.to_json()) == found
    assert found.override(port=1, host=None).port == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("prot = 1", "Did you mean port"),
        ("port = 'x'", "whole number"),
        ("port = true", "whole number"),
        ("port = 70000", "0 to 65,535"),
        ("workers = 0", "1 to 64"),
        ("[[datasets]]\nsource = 'people.csv'", "name: is missing"),
        ("[[datasets]]\nname = 'x'", "neither a source nor"),
        ("[[datasets]]\nname = 'x'\nsuorce = 'y'", "Did you mean source"),
        ("[[datasets]]\nname='x'\nsource='a'\n[[datasets]]\nname='x'\nsource='a'", "twice"),
        ("not toml", "not a table of TOML"),
    ],
)
def test_settings_that_make_no_sense_are_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(PrivacyError, match=words):
        Settings.read(write_settings(tmp_path, text))


def test_sources_of_the_settings_lie_under_a_root_too(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "out.csv").write_text("a\n1\n2\n")
    path = write_settings(inner, "[[datasets]]\nname = 'x'\nsource = '../out.csv'\nschema = 'people.toml'")
    with (
        pytest.raises(ParameterError, match="roots"),
        run_service(Settings.read(path).override(port=0, ledger=str(tmp_path / "l"))) as _,
    ):
        pass


def test_a_database_may_stand_in_the_settings(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "data.db") as db:
        db.execute("CREATE TABLE ward (a REAL)")
        db.executemany("INSERT INTO ward VALUES (?)", [(1.0,), (2.0,), (3.0,)])
    base = settings(tmp_path)
    table = Registration(
        analysts=("*",),
        name="sql",
        source=f"sqlite:///{tmp_path}/data.db?table=ward",
        schema=base.datasets[0].schema.only(["a"]),
    )
    with run_service(base.override(datasets=(table,)), questions=(Above,)) as running:
        assert running.token("ana").get("/v1/datasets/sql").json["rows"] == 3


def test_a_directory_of_parquet_may_be_served(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    for part in range(2):
        parquet.write_table(pa.table({"a": [1.0 * part, 2.0]}), tmp_path / "parts" / f"{part}.parquet")
    with run_service(settings(tmp_path), questions=(Above,)) as running:
        body = {"name": "parts", "source": "parts", "schema": {"columns": ["a"]}}
        assert running.token("sue", "steward").post("/v1/datasets", body).json["rows"] == 4


# The command line


def run(*arguments: str) -> int:
    return cli.main(arguments, (Above,))


def test_tokens_are_made_listed_and_revoked(place: str, capsys: Any) -> None:
    assert run("serve", "token", "create", "ana", "--ledger", place, "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert made["text"].startswith(f"wf_{made['id']}_")
    assert run("serve", "token", "create", "sue", "--scope", "steward", "--forever", "--ledger", place) == 0
    text = capsys.readouterr()
    assert text.out.startswith("wf_")
    assert "until it is revoked" in text.err
    assert run("serve", "token", "revoke", made["id"], "--ledger", place) == 0
    assert run("serve", "token", "list", "--ledger", place) == 0
    told = capsys.readouterr().out
    assert made["id"] in told
    assert made["text"] not in told
    assert run("serve", "token", "list", "--ledger", place, "--json") == 0
    assert [one["valid"] for one in json.loads(capsys.readouterr().out)["tokens"]] == [False, True]
    assert run("serve", "token", "revoke", "none", "--ledger", place) == 2


def test_what_stewards_do_is_written_down_with_token_and_address(tmp_path: Path, caplog: Any) -> None:
    with run_service(settings(tmp_path), questions=(Above,)) as running, caplog.at_level(logging.INFO):
        logging.getLogger("wallflower.service").propagate = True
        sue = running.token("sue", "steward")
        own = token_id(str(sue.token))
        made = sue.post("/v1/tokens", {"name": "ana", "scope": "analyst"}).json
        granted = sue.post("/v1/datasets/ward/budget/grants", {"epsilon": "2", "reason": "study 12"}).json
        sue.post("/v1/datasets/ward/budget/quotas", {"analyst": "ana", "epsilon": "1"})
        sue.post("/v1/datasets/ward/budget/constrained", {"epsilon": "0", "reason": "closed"})
        sue.post("/v1/datasets", {"name": "fresh", "schema": {"columns": ["x"]}})
        sue.post("/v1/datasets/fresh/budget/declaration", {"rows": "people", "unit": "record"})
        assert sue("DELETE", f"/v1/tokens/{made['id']}").status == 200
        assert Caller(running.url, made["text"]).get("/v1/whoami").status == 401
        done = sue.get("/v1/acts").json["acts"]
        assert [one["act"] for one in done] == [
            *("token issued", "limit", "quota", "allowance", "data set", "declaration", "token revoked"),
        ]
        assert {(one["by"], one["token"], one["address"]) for one in done} == {("sue", own, "127.0.0.1")}
        assert done[0]["about"] == f"{made['id']} for ana, analyst"
        assert done[1]["about"] == f"ward, entry {granted['entry']} of the ledger"
        assert sue.get("/v1/acts?last=1").json["acts"] == done[-1:]
    told = [(record.getMessage(), getattr(record, "facts", {})) for record in caplog.records]
    assert [facts["act"] for event, facts in told if event == "act"] == [one["act"] for one in done]
    failed = [facts for event, facts in told if event == "authentication failed"]
    assert failed == [{"address": "127.0.0.1", "token": made["id"]}]
    assert not any(secret in str(told) for secret in ("ward", made["text"], str(sue.token)))


def test_tokens_of_the_command_line_are_written_down_too(place: str, capsys: Any) -> None:
    assert run("serve", "token", "create", "ana", "--ledger", place, "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert run("serve", "token", "revoke", made["id"], "--ledger", place) == 0
    done = Acts(Records(place)).last(9)
    assert [(one["act"], one["about"]) for one in done] == [
        ("token issued", f"{made['id']} for ana, analyst"),
        ("token revoked", f"{made['id']} of ana"),
    ]
    assert all(one["by"].endswith(" at the command line") for one in done)


def test_a_service_that_cannot_start_says_why(tmp_path: Path, capsys: Any) -> None:
    path = write_settings(tmp_path, GOOD.replace("people.csv", "none.csv"))
    assert run("serve", "--config", str(path), "--workers", "1", "--port", "0") == 4
    assert "none.csv" in capsys.readouterr().err


def test_a_taken_port_is_a_clear_refusal(tmp_path: Path) -> None:
    with run_service(settings(tmp_path), questions=(Above,)) as running:
        port = int(running.url.rpartition(":")[2])
        with pytest.raises(SourceError, match="in use"), run_service(settings(tmp_path, port=port), questions=(Above,)):
            pass


def test_a_ledger_that_cannot_be_opened_is_a_refusal(tmp_path: Path) -> None:
    with pytest.raises(LedgerError), run_service(settings(tmp_path, ledger=str(tmp_path / "no" / "ledger.db"))):
        pass


@pytest.mark.slow
def test_the_demo_answers_a_question_and_ends_well(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("wallflower")
    command = [program, "serve", "--demo", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as demo:
        assert demo.stdout is not None
        lines = [demo.stdout.readline() for _ in range(5)]
        url = lines[0].split(" on ")[1].partition(";")[0]
        steward, analyst = (Caller(url, line.split()[-1]) for line in lines[1:3])
        body = {"neighbours": 5, "radius": 1.3, "epsilon": "1"}
        assert (
            analyst.post("/v1/datasets/tumours/ask/count", body).json["ledger_id"] == 4
        )  # two limits and a declaration before it
        assert steward.get("/v1/ledger/verify").json["entries"] == 5
        typed = lines[4].split()
        told = subprocess.run(
            [program, *typed[2:], "--json"],
            env={"WALLFLOWER_TOKEN": str(analyst.token)},
            capture_output=True,
            check=True,
        )
        assert json.loads(told.stdout)["dataset"] == "tumours"
        demo.send_signal(signal.SIGINT)
        assert demo.wait() == 0


@pytest.mark.slow
def test_a_stop_lets_a_question_finish_and_ends_with_0(tmp_path: Path) -> None:
    stated = settings(tmp_path, quantum_seconds=1.0)
    with Ledger.open(stated.ledger):
        pass
    records = Records(stated.ledger)
    ana = Tokens(records).create("ana", "analyst")[1]
    records.close()
    with process(stated, is_fresh=True) as (running, url):
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(
                Caller(url, ana).post,
                "/v1/datasets/ward/ask/count",
                {"neighbours": 3, "radius": 0.5, "epsilon": "0.1", "force": True},
            )
            with Ledger.open(stated.ledger) as ledger:
                while not ledger.history("ward", event="charge"):
                    time.sleep(0.02)
            running.terminate()
            assert asked.result().status == 200
        assert running.wait() == 0


def test_the_last_steward_cannot_end_their_own_token_by_accident(tmp_path: Path) -> None:
    with run_service(settings(tmp_path), questions=(Above,)) as running:
        sue = running.token("sue", "steward")
        key = token_id(str(sue.token))
        running.token("ana")
        running.expired_token("old", "steward")
        refused = sue("DELETE", f"/v1/tokens/{key}")
        assert (refused.status, refused.problem) == (409, "conflict")
        browser = Browser(running).sign_in(sue.token)
        assert browser.post(f"/ui/tokens/{key}/revoke").status == 409
        assert sue.get("/v1/whoami").status == 200
        tom = running.token("tom", "steward")
        assert sue("DELETE", f"/v1/tokens/{key}").status == 200
        assert tom("DELETE", f"/v1/tokens/{token_id(str(tom.token))}").status == 409


def test_a_quota_is_for_somebody_with_a_token(tmp_path: Path) -> None:
    with run_service(settings(tmp_path), questions=(Above,)) as running:
        sue, gone = running.token("sue", "steward"), running.token("gone")
        running.token("annabel")
        running.token("eye", "monitor")
        at = "/v1/datasets/ward/budget/quotas"
        refused = sue.post(at, {"analyst": "anabel", "epsilon": "0.1"})
        assert (refused.status, refused.problem) == (422, "parameter")
        assert "Did you mean annabel?" in refused.json["detail"]
        assert sue.post(at, {"analyst": "eye", "epsilon": "0.1"}).status == 422
        assert sue.post(at, {"analyst": "annabel", "epsilon": "0.1"}).status == 201
        assert sue.post(at, {"analyst": "gone", "epsilon": "0.1"}).status == 201
        sue("DELETE", f"/v1/tokens/{token_id(str(gone.token))}")
        assert sue.post(at, {"analyst": "gone", "epsilon": "0.2"}).status == 422
        assert sue.post(at, {"analyst": "gone", "epsilon": "0"}).status == 201  # what nobody can spend is taken back
