"""The command line, with a question of our own and with those that ship."""

from __future__ import annotations

import json
import re
import shlex
import sys
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from above import Above
from ranking import Ranking
from wallflower import cli, papers
from wallflower.audit import Way
from wallflower.cli import lab, options
from wallflower.errors import PrivacyError
from wallflower.ledger import Ledger
from wallflower.papers.page import write_page
from wallflower.privacy import Loss
from wallflower.release import Release
from wallflower.report import plots

HERE = Path(__file__).parents[1]
ASK = ("--bar", "7", "--columns", "a,b")
COMMANDS = [
    [],
    ["above"],
    ["plan", "above"],
    ["ranking"],
    ["plan", "ranking"],
    ["data", "describe"],
    ["budget", "show"],
    ["budget", "grant"],
    ["budget", "quota"],
    ["ledger", "list"],
    ["ledger", "verify"],
    ["ledger", "export"],
    ["demo"],
    ["audit"],
    ["reproduce"],
]


class Shell:
    """Runs the command line in this process, in a folder of its own."""

    def __init__(self, folder: Path, capsys: Any) -> None:
        self.folder, self._capsys = folder, capsys
        self.out = self.err = ""

    def __call__(self, *arguments: str) -> int:
        self._capsys.readouterr()
        code = cli.main(arguments, (Above, Ranking))
        self.out, self.err = self._capsys.readouterr()
        return code

    def json(self, *arguments: str) -> Any:
        assert self(*arguments, "--json") == 0, self.err
        assert self.out.count("\n") == 1
        return json.loads(self.out)


@pytest.fixture
def shell(tmp_path: Path, capsys: Any, monkeypatch: Any) -> Shell:
    (tmp_path / "ward.csv").write_text("a,b,who\n" + "".join(f"{row},{row * row},x\n" for row in range(30)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(plots, "QUERIES", (Above, Ranking, *plots.QUERIES))
    monkeypatch.setenv("WALLFLOWER_LEDGER", str(tmp_path / "ledger.db"))
    monkeypatch.setenv("WALLFLOWER_ANALYST", "ana")
    return Shell(tmp_path, capsys)


# Asking


def test_an_answer_is_one_json_object_and_the_rest_goes_to_stderr(shell: Shell) -> None:
    made = shell.json("above", "ward.csv", *ASK, "--epsilon", "0.5")
    assert {"value", "interval", "guarantee", "mechanism", "ledger_id"} <= set(made)
    assert made["guarantee"]["kind"] == "pure"
    assert (made["guarantee"]["epsilon"], made["guarantee"]["delta"]) == (0.5, 0)
    assert made["guarantee"]["adjacency"] == "replace-one-record"
    assert (made["dataset"], made["analyst"], made["ledger_id"]) == ("ward", "ana", 1)
    assert "starter cap of ε = 1" in shell.err
    assert Release.from_dict(made).parameters["columns"] == ["a", "b"]


def test_an_answer_is_a_table_otherwise(shell: Shell) -> None:
    assert shell("above", "ward.csv", *ASK, "--epsilon", "0.5", "--details") == 0
    for words in (
        "How many records are above the bar?",
        "95 % interval",
        "Differential privacy with ε = 0.5",
        "ε = 0.5 is left",
    ):
        assert words in shell.out
    assert not any(line.endswith(" ") for line in shell.out.splitlines())


def test_what_will_be_booked_for_a_person_is_shown_before_it_is_paid(shell: Shell) -> None:
    rows = "".join(f"p{row % 10},{row}\n" for row in range(60))
    (shell.folder / "visits.csv").write_text(f"who,a\n{rows}")
    person = '[person]\nid = "who"\nmax_rows = 3\n\n[columns.a]\nlow = 0\nhigh = 60\n'
    (shell.folder / "visits.toml").write_text(person)
    asked = ("above", "visits.csv", "--schema", "visits.toml", "--bar", "7", "--columns", "a", "--epsilon", "0.25")
    expected = "ε = 0.25 per record, booked as ε = 0.75 per person"
    assert shell("plan", *asked) == 0
    assert expected in shell.out
    assert shell(*asked, "--dry-run") == 0
    assert expected in shell.out
    assert "would cost ana ε = 0.25 per record, booked as ε = 0.75 per person" in " ".join(shell.out.split())
    rehearsed = shell.json(*asked, "--dry-run")
    assert rehearsed["booked"] == "ε=3/4"
    assert rehearsed["plan"]["booked"]["amount"] == "3/4"
    assert "one person (all rows with the same who" in rehearsed["cost"]["text"]
    assert Ledger.open(shell.folder / "ledger.db").history(event="charge") == []
    assert shell(*asked, "--force", "--details") == 0
    assert "Differential privacy with ε = 0.75: with any one person (all rows with" in " ".join(shell.out.split())
    assert shell("budget", "show", "visits") == 0
    shown = " ".join(shell.out.split())
    assert "ε = 0.75" in shown
    account = Ledger.open(shell.folder / "ledger.db").account("visits")
    assert ("Booked", "a cost of ε = 0.5 per record is booked as ε = 1.5 per person") in account.lines()
    assert shell.json("budget", "show", "visits")["person"] == "who"


def test_an_answer_of_no_use_is_refused_and_sold_to_whoever_wants_it_anyway(shell: Shell) -> None:
    asked = ("above", "ward.csv", *ASK, "--epsilon", "0.001")
    assert shell(*asked) == 3
    assert "the noise drowns the answer" in shell.err
    assert "--force" in shell.err
    assert "Nothing was charged" in shell.err
    assert shell(*asked, "--force") == 0
    assert "mostly noise: by the plan: the noise drowns the answer" in shell.out
    told = shell.json(*asked, "--force")
    assert told["quality"]["noise"] == told["quality"]["verdict"] == "mostly noise"
    assert told["ledger_id"] == 3


def test_an_answer_says_what_was_asked_and_when(shell: Shell) -> None:
    assert shell("above", "ward.csv", *ASK, "--epsilon", "0.5", "--details") == 0
    assert "bar 7, columns a and b, side above, clamp yes" in shell.out
    assert re.search(r"entry 1 by ana, charged \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", shell.out)


def test_options_reach_the_question(shell: Shell) -> None:
    made = shell.json(
        *(
            "above",
            "ward.csv",
            *ASK,
            "--epsilon",
            "0.5",
            "--side",
            "below",
            "--no-clamp",
            "--most",
            "3",
            "--dataset",
            "icu",
        ),
        *("--analyst", "bo", "--ledger", grant(shell, "icu", Loss("1"))),
    )
    parameters = made["parameters"]
    assert (parameters["side"], parameters["clamp"], parameters["most"]) == ("below", False, 3)
    assert made["guarantee"]["epsilon"] == 0.5
    assert (made["dataset"], made["analyst"], made["notes"]) == ("icu", "bo", [])


def test_sets_of_columns_and_fractions_reach_the_question(shell: Shell) -> None:
    made = shell.json("ranking", "ward.csv", "--among", "a, b; b", "--bar", "1/3", "--epsilon", "0.5")
    assert (made["parameters"]["among"], made["parameters"]["bar"]) == ([["a", "b"], ["b"]], "1/3")
    assert sorted(found["columns"] for found in made["value"]) == [["a", "b"], ["b"]]
    assert Ranking.from_json(made["parameters"]).bar == Fraction(1, 3)
    assert Release.from_dict(made).to_dict() == made


def test_a_list_as_an_answer_reads_well(shell: Shell) -> None:
    asked = ("ranking", "ward.csv", "--among", "a,b", "--epsilon", "0.5")
    assert shell(*asked, "--plot", "a.svg", "--report", "a.html", "--details") == 0
    answer, first = (line.split() for line in shell.out.splitlines() if line.split()[0] in ("answer", "first"))
    assert answer[1:6] == ["columns", "a", "×", "b,", "above"]
    assert first == ["first", "a,", "b"]
    page = (shell.folder / "a.html").read_text()
    for words in ("a × b", "First is found", "records above the bar", "how often the first is found"):
        assert words in page


def test_a_list_as_an_answer_is_a_table_and_the_small_print_comes_on_request(shell: Shell) -> None:
    asked = ("ranking", "ward.csv", "--among", "a;b", "--epsilon", "0.5")
    assert shell(*asked) == 0
    answer, *rows = (line.split() for line in shell.out.splitlines()[1:4])
    assert answer == ["answer", "columns", "above"]
    assert sorted(row[0] for row in rows) == ["a", "b"]
    assert "mechanism" not in shell.out
    assert shell(*asked, "--details", "--force") == 0
    assert "mechanism" in shell.out


def test_a_list_of_columns_needs_no_set_to_be_left_out(shell: Shell) -> None:
    assert shell("ranking", "ward.csv", "--among", ";", "--epsilon", "0.5") == 2
    assert "among has no set of columns" in shell.err
    assert shell("ranking", "ward.csv", "--bar", "x", "--epsilon", "0.5") == 2
    assert "bar: 'x' is not a number" in shell.err


def test_what_is_no_single_word_is_written_as_it_is_read(shell: Shell) -> None:
    assert shell("ranking", "--help") == 0
    for words in ("A,B;C;...", "NUMBER", "[default: 0.5]"):
        assert words in shell.out
    asked = shlex.split(options.example(Ranking))
    assert asked == ["--among", "x1;x1,x2", "--bar", "1.5", "--epsilon", "0.5"]
    (shell.folder / "x.csv").write_text("x1,x2\n1,2\n3,4\n")
    assert Ranking.from_json(shell.json("ranking", "x.csv", *asked)["parameters"]) == Ranking.example()


def grant(shell: Shell, dataset: str, loss: Loss) -> str:
    place = str(shell.folder / "other.db")
    with Ledger.open(place) as ledger:
        ledger.grant(dataset, loss, by="steward")
    return place


def test_a_dry_run_says_the_cost_and_spends_nothing(shell: Shell, monkeypatch: Any) -> None:
    monkeypatch.setattr(Above, "answer", lambda *_: pytest.fail("looked"))
    rehearsed = shell.json("above", "ward.csv", *ASK, "--epsilon", "0.25", "--dry-run")
    assert (rehearsed["dry_run"], rehearsed["allowed"], rehearsed["left_after"]) == (True, True, "ε=3/4")
    assert rehearsed["plan"]["facts"] == {"n": 30, "dimension": 2}
    assert shell("above", "ward.csv", *ASK, "--epsilon", "0.25", "--dry-run") == 0
    assert "Nothing was spent. On ward this would cost ana ε = 0.25, of ε = 1; ε = 0.75 would be left. " in shell.out
    assert "4 such questions fit into the budget." in shell.out
    assert shell("above", "ward.csv", *ASK, "--epsilon", "2", "--dry-run") == 3
    assert shell.json("ledger", "list") == {"entries": []}


def test_the_same_key_is_paid_once_and_said(shell: Shell) -> None:
    ask = ("above", "ward.csv", *ASK, "--epsilon", "0.5", "--idempotency-key", "k")
    first = shell.json(*ask)
    assert shell.json(*ask) == first | {"replayed": True}
    assert "nothing was charged" in shell.err


def test_a_plot_and_a_page_are_written(shell: Shell) -> None:
    assert shell("above", "ward.csv", *ASK, "--epsilon", "0.5", "--plot", "a.svg", "--report", "a.html") == 0
    assert (shell.folder / "a.svg").read_text().startswith("<?xml")
    assert "<!doctype html>" in (shell.folder / "a.html").read_text()


@pytest.mark.parametrize(
    ("more", "code", "words"),
    [
        (("--plot", "a.exe"), 2, "must end in .png or .svg or .pdf"),
        (("--report", "nowhere/a.html"), 4, "no such directory"),
        (("--schema", "no.toml"), 4, "the schema cannot be opened"),
        (("--epsilon", "x"), 2, "is not a number"),
        (("--epsilon", "0.5", "--rho", "1"), 2, "a loss is stated once"),
        (("--epsilon", "9"), 3, "asked for ε = 9, ε = 1 is left"),
        (("--ledger", "nowhere/ledger.db"), 4, "No such file or directory"),
        (("--bar", "x"), 2, "'--bar'"),
        (("--side", "up"), 2, "'above', 'below'"),
        (("--baar", "1"), 2, "--bar"),
        (("--columns", "a,z"), 2, "column 'z' was asked for"),
    ],
)
def test_a_refusal_is_one_line_before_anything_is_paid(shell: Shell, more: Any, code: int, words: str) -> None:
    loss = () if "--epsilon" in more else ("--epsilon", "0.5")
    assert shell("above", "ward.csv", *ASK, *loss, *more) == code
    assert shell.out == ""
    *notices, said = shell.err.splitlines()
    assert said.startswith("wallflower: ")
    assert words in said
    assert ["starter cap" in notice for notice in notices] == [True] * (code == 3)
    assert shell.json("ledger", "list") == {"entries": []}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("abov",), "Did you mean 'above'?"),
        (("above", "ward.csv", "--epsilon", "1"), "Missing option '--bar'. See wallflower above --help."),
        (("above", "ward.csv", "--bar", "1"), "no privacy loss is stated"),
        (("plan", "above", "--bar", "1", "--epsilon", "1"), "--records N and --dimension D"),
        (("plan", "above", "ward.csv", "--bar", "1", "--epsilon", "1", "--records", "9"), "has its own size"),
        (("audit", "abov"), "Did you mean above?"),
        (("budget", "grant", "ward"), "no privacy loss is stated"),
    ],
)
def test_wrong_usage_says_what_to_do(shell: Shell, arguments: tuple[str, ...], words: str) -> None:
    assert shell(*arguments) == 2
    assert words in shell.err


def test_ctrl_c_says_what_became_of_the_budget(shell: Shell, monkeypatch: Any) -> None:
    def interrupt(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    ask = ("above", "ward.csv", *ASK, "--epsilon", "0.5")
    with monkeypatch.context() as early:
        early.setattr(Above, "view", interrupt)
        assert shell(*ask) == 130
        assert shell.err == "wallflower: Interrupted; nothing was charged.\n"
    with monkeypatch.context() as late:
        late.setattr(Above, "answer", interrupt)
        assert shell(*ask) == 130
        assert "Interrupted; ε = 0.5 was charged (entry 1) and stays charged" in shell.err
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(Ledger, "history", interrupt)
        assert shell("ledger", "list") == 130
        assert "Interrupted; the ledger shows" in shell.err


def test_a_bug_shows_its_place_and_never_a_record(shell: Shell, monkeypatch: Any) -> None:
    def bug(*_: Any) -> Any:
        raise RuntimeError("patient 4711 has 17 neighbours")

    monkeypatch.setattr(Above, "answer", bug)
    with pytest.raises(RuntimeError) as caught:
        shell("above", "ward.csv", *ASK, "--epsilon", "0.5")
    sys.excepthook(caught.type, caught.value, caught.tb)
    said = shell._capsys.readouterr().err
    assert "internal error (RuntimeError) at tests.cli.test_cli:" in said
    assert "4711" not in said


# Planning, budgets, ledger


def test_a_plan_needs_sizes_only(shell: Shell) -> None:
    plan = shell.json("plan", "above", "--bar", "1", "--epsilon", "0.5", "--records", "1000", "--dimension", "7")
    assert plan["facts"] == {"n": 1000, "dimension": 7}
    assert shell.json("plan", "above", "ward.csv", *ASK, "--epsilon", "0.5")["facts"] == {"n": 30, "dimension": 2}
    assert shell("plan", "above", "--bar", "1", "--epsilon", "1", "--records", "50", "--columns", "a,b") == 0
    assert "n = 50, dimension = 2" in shell.out
    assert "laplace (chosen)" in shell.out


def test_a_plan_shows_the_figures_it_has(shell: Shell) -> None:
    asked = ("plan", "ranking", "--epsilon", "0.5", "--records", "1000", "--dimension", "7")
    assert shell(*asked) == 0
    heading, chosen, guess = (line.split("  ") for line in shell.out.splitlines()[-3:])
    assert [words.strip() for words in heading if words] == ["mechanism", "first is found", "95 % within ±"]
    assert [words.strip() for words in chosen if words] == ["laplace (chosen)", "0.8", "6", "plain"]
    assert [words.strip() for words in guess if words] == ["guess", "0.333"]
    plan = shell.json(*asked)
    assert plan["options"][0] == {"mechanism": "laplace", "found": 0.8, "width": 6.0, "note": "plain"}
    assert plan["options"][1] == {"mechanism": "guess", "found": 1 / 3, "note": ""}
    assert (plan["headings"]["width"], plan["scale"]) == ("95 % within ±", "linear")


def test_the_plan_of_a_count_keeps_its_figures(shell: Shell, capsys: Any) -> None:
    asked = ["plan", "count", "--records", "99", "--dimension", "2", "--neighbours", "3", "--radius", "1"]
    assert cli.main([*asked, "--epsilon", "0.5", "--json"]) == 0
    option = json.loads(capsys.readouterr().out)["options"][0]
    assert list(option) == ["mechanism", "total", "crowded", "error", "half_width", "deviation", "note"]


def test_data_is_described_by_public_facts(shell: Shell) -> None:
    facts = shell.json("data", "describe", "ward.csv", "--columns", "a,b")
    assert (facts["name"], facts["rows"]) == ("ward", 30)
    (shell.folder / "ward.toml").write_text("[columns.a]\nlow = 0\nhigh = 99\n[columns.who]\ncategories = ['x', 'y']\n")
    assert shell("data", "describe", "ward.csv", "--schema", "ward.toml") == 0
    for words in ("ward: 30 records", "99", "x, y"):
        assert words in shell.out


def test_budgets_are_shown_granted_and_allocated(shell: Shell) -> None:
    assert shell("budget", "show") == 0
    assert "The ledger is empty" in shell.err
    assert shell("budget", "show", "ward") == 0
    assert "starter cap" in shell.out
    grant = ("budget", "grant", "ward", "--epsilon", "3", "--reason", "pilot", "--yes")
    granted = shell.json(*grant, "--delta", "1e-6")
    assert (granted["accounting"], granted["limit"]["epsilon"]) == ("either", "3")
    assert shell("budget", "quota", "ward", "bo", "--epsilon", "1") == 2
    assert "accounting sum or concentrated" in shell.err
    assert shell(*grant) == 0
    assert "ward may lose ε = 3 in all" in shell.out
    assert shell("budget", "quota", "ward", "bo", "--epsilon", "1") == 0
    assert "ε = 1 of ward is kept for bo" in shell.out
    assert shell("budget", "quota", "ward", "cy", "--epsilon", "3") == 3
    assert shell("budget", "show") == 0
    assert "bo" in shell.out
    shown = shell.json("budget", "show")["datasets"]["ward"]
    assert (shown["free"]["epsilon"], shown["quotas"][0]["left"]["amount"]) == ("2", "1")
    assert shell("budget", "quota", "ward", "bo", "--epsilon", "0") == 0
    assert shell.json("budget", "show", "ward")["quotas"] == []


def test_one_account_is_shown_exactly(shell: Shell) -> None:
    shell.json("above", "ward.csv", *ASK, "--epsilon", "0.25")
    shown = shell.json("budget", "show", "ward")
    assert (shown["unit"], shown["accounting"], shown["limit"]["epsilon"]) == ("record", "sum", "1")
    assert (shown["spent"]["epsilon"], shown["left"]["epsilon"]) == ("1/4", "3/4")
    assert shown["spenders"]["ana"]["epsilon"] == "1/4"


def test_a_grant_is_given_with_care(shell: Shell) -> None:
    grant = ("budget", "grant", "ward", "--epsilon", "3")
    assert shell(*grant, "--yes") == 2
    assert "Pass --reason" in shell.err
    assert shell(*grant, "--reason", "pilot") == 2
    assert "does not know ward" in shell.err
    assert shell(*grant, "--reason", "pilot", "--yes") == 0
    assert shell("budget", "grant", "ward", "--epsilon", "11", "--reason", "all of it") == 2
    assert "promises next to nothing" in shell.err
    assert shell.json("budget", "show", "ward")["limit"]["epsilon"] == "3"
    assert shell(*grant, "--reason", "for a year", "--pace", "1", "--expires", "2999-12-31") == 0
    shown = shell.json("budget", "show", "ward")
    assert (shown["pace"], shown["expires"]) == ("1", "2999-12-31")
    assert shell(*grant, "--reason", "x", "--expires", "soon") == 2
    assert "Write it as 2027-12-31" in shell.err
    assert shell("budget", "grant", "ward", "--epsilon", "0.1", "--reason", "lower") == 0
    assert shell("above", "ward.csv", *ASK, "--epsilon", "0.25") == 3
    assert "epsilon is short" in shell.out + shell.err


def test_a_unit_and_a_shared_account_are_declared(shell: Shell) -> None:
    declare = ("budget", "declare", "meters", "--reason", "one house")
    shown = shell.json(*declare, "--rows", "time", "--protects", "window", "--window", "24", "--account", "houses")
    assert (shown["account"], shown["unit"], shown["window"]) == ("houses", "window", 24)
    assert shell("budget", "declare", "ward", "--account", "houses") == 2
    assert "Pass --reason" in shell.err
    assert shell("budget", "declare", "ward", "--account", "houses", "--reason", "same people") == 0
    assert set(shell.json("budget", "show", "houses")["members"]) == {"meters", "ward"}
    made = shell.json("above", "ward.csv", *ASK, "--epsilon", "0.25")
    assert shell.json("budget", "show", "meters")["spent"]["epsilon"] == "1/4"
    assert made["booked"]["amount"] == "1/4"
    assert shell("budget", "declare", "ward", "--protects", "membership", "--reason", "late") == 2
    assert "A unit is declared once" in shell.err


def test_the_same_records_under_another_name_are_noticed(shell: Shell) -> None:
    shell.json("above", "ward.csv", *ASK, "--epsilon", "0.25")
    assert shell("above", "ward.csv", *ASK, "--epsilon", "0.25", "--dataset", "ward-2") == 3
    assert "wallflower budget declare ward-2 --account ward" in shell.out + shell.err
    assert shell("above", "ward.csv", *ASK, "--epsilon", "0.25", "--dataset", "WARD") == 0
    assert shell("budget", "declare", "ward-2", "--apart", "ward", "--reason", "the other clinic") == 0
    assert shell("above", "ward.csv", *ASK, "--epsilon", "1", "--dataset", "ward-2") == 0


def test_output_constrained_answers_are_allowed_apart(shell: Shell) -> None:
    allow = ("budget", "allow-constrained", "ward", "--epsilon", "1", "--reason", "the paper")
    assert shell(*allow) == 2
    assert shell.json(*allow, "--yes")["constrained"]["allowed"] == "1"


def test_the_ledger_is_listed_checked_and_exported(shell: Shell) -> None:
    shell.json("above", "ward.csv", *ASK, "--epsilon", "0.5")
    assert shell("ledger", "list", "--dataset", "ward") == 0
    assert "above-the-bar/1 (answers 1)" in shell.out
    assert shell.json("ledger", "list", "--last", "1")["entries"][0]["body"]["kind"] == "above"
    head = shell.json("ledger", "verify")["head"]
    assert shell("ledger", "verify", "--head", head) == 0
    assert head in shell.out
    assert shell("ledger", "verify", "--head", "f" * 64) == 4
    assert shell("ledger", "export") == 0
    exported = shell.out
    assert shell("ledger", "export", "-o", "ledger.jsonl") == 0
    assert (shell.folder / "ledger.jsonl").read_text() == exported
    assert [json.loads(line)["event"] for line in exported.splitlines()] == ["charge", "release"]
    assert shell("ledger", "export", "-o", "nowhere/ledger.jsonl") == 4


# Laboratory


def finding(name: str, *, caught: bool, ok: bool, words: str) -> Any:
    return SimpleNamespace(name=name, claimed=1, lower=0.9, caught=caught, expected=caught, ok=ok, text=words)


def test_an_audit_fails_when_a_finding_does(shell: Shell, monkeypatch: Any) -> None:
    sound = finding("laplace", caught=False, ok=True, words="0.9 ≤ 1")
    broken = finding("half", caught=True, ok=True, words="1.9 > 1")
    missed = finding("late", caught=False, ok=False, words="missed")
    monkeypatch.setattr(lab, "_evidence", SimpleNamespace(audits=lambda kind, quick, questions: [sound, broken]))
    assert shell("audit", "above") == 0
    assert shell.out.splitlines() == ["holds  laplace: 0.9 ≤ 1", "caught half: 1.9 > 1"]
    assert len(shell.json("audit", "above")["findings"]) == 2
    monkeypatch.setattr(lab, "_evidence", SimpleNamespace(audits=lambda kind, quick, questions: [missed]))
    assert shell("audit", "above") == 1
    assert "FAILS  late" in shell.out


def test_an_audit_may_be_quick(shell: Shell, monkeypatch: Any) -> None:
    asked = []
    monkeypatch.setattr(
        lab, "_evidence", SimpleNamespace(audits=lambda kind, quick, questions: asked.append((kind, quick)) or [])
    )
    assert shell("audit", "above") == shell("audit", "above", "--quick") == 0
    assert asked == [("above", False), ("above", True)]


def test_an_audit_of_a_plugin_runs_its_own_attacks(shell: Shell) -> None:
    assert shell("audit", "above", "--quick") == 0
    assert "caught broken: a tenth short" in shell.out
    assert "holds  exact count" in shell.out


def test_an_audit_without_findings_is_an_error(shell: Shell, monkeypatch: Any) -> None:
    whole = Above.audits
    monkeypatch.setattr(Above, "audits", classmethod(lambda cls, *, quick: ()))
    assert shell("audit", "above") != 0
    assert "7 are missing" in shell.err
    monkeypatch.setattr(
        Above,
        "audits",
        classmethod(lambda cls, *, quick: (each for each in whole(quick=quick) if each.way is not Way.ORACLE)),
    )
    assert shell("audit", "above") != 0
    assert "2 are missing: an exact answer that brute force confirms" in " ".join(shell.err.split())


def test_a_paper_is_reproduced_into_a_folder(shell: Shell, monkeypatch: Any) -> None:
    def paper(folder: Path, quick: bool, say: Any) -> list[Path]:
        say(f"quick: {quick}")
        return [folder / "figure1.png"]

    monkeypatch.setattr(lab, "PAPERS", {"okada2015": paper})
    assert shell("reproduce", "okada2015", "--quick") == 0
    assert (shell.out, shell.err) == ("wallflower-okada2015/figure1.png\n", "quick: True\n")
    assert shell("reproduce", "okada2016") == 2
    assert "Did you mean okada2015?" in shell.err


def test_all_papers_are_reproduced_beside_an_index_that_leads_to_them(
    shell: Shell, monkeypatch: Any, tmp_path: Path
) -> None:
    def paper(title: str, folder: Path, quick: bool, say: Any) -> list[Path]:
        return [write_page(folder / "page.html", title, "", [])]

    monkeypatch.setattr(papers, "PAPERS", {"one": partial(paper, "One & all"), "two": partial(paper, "Two")})
    assert shell("reproduce", "all", "--quick", "--out", str(tmp_path)) == 0
    assert shell.out.split() == [str(tmp_path / name) for name in ("one/page.html", "two/page.html", "index.html")]
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert '<a href="one/page.html">One &amp; all</a>' in index
    assert '<a href="two/page.html">Two</a>' in index


# What ships


@pytest.mark.slow
def test_the_demo_can_be_walked_again_and_again(shell: Shell, capsys: Any) -> None:
    for _ in range(4):  # the fourth walk finds the budget gone, and grants again
        assert cli.main(["demo"]) == 0
    said = capsys.readouterr().out
    assert "refused: tumours: asked for ε = 3" in said
    assert "The chain holds" in said
    folder = shell.folder / "wallflower-demo"
    assert (folder / "report.html").read_text().count("<svg") == 2 * 4  # a strip and a plot for each release
    with Ledger.open(folder / "ledger.db") as ledger:
        assert [len(ledger.history(event=event)) for event in ("limit", "charge", "release")] == [2, 4, 4]
        assert ledger.verify().entries == 10
    command = said.rstrip().splitlines()[-1].split()
    assert cli.main(command[1:]) == 0
    assert "Nothing was spent. On patients" in capsys.readouterr().out


def test_the_contract_for_outside_checks(shell: Shell, capsys: Any) -> None:
    asked = ["count", "ward.csv", "--columns", "a,b", "--neighbours", "3", "--radius", "1.3", "--epsilon", "0.5"]
    assert cli.main([*asked, "--json"]) == 3
    assert "not useful" in capsys.readouterr().err
    assert cli.main([*asked, "--json", "--force"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert {"value", "interval", "guarantee", "mechanism", "ledger_id"} <= set(made)
    assert {"kind", "epsilon", "delta", "adjacency"} <= set(made["guarantee"])


def test_an_audit_without_a_question_attacks_all(shell: Shell, monkeypatch: Any) -> None:
    held = finding("laplace", caught=False, ok=True, words="0.9 ≤ 1")
    attacked: list[str] = []
    audits = lambda kind, quick, questions: attacked.append(kind) or [held]  # noqa: E731
    monkeypatch.setattr(lab, "_evidence", SimpleNamespace(audits=audits))
    told = shell.json("audit", "--quick")
    assert (told["question"], len(told["findings"]), attacked) == (None, 3, ["above", "ranking", "sensors"])


# Help and manners


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(shell: Shell, command: list[str]) -> None:
    assert shell(*command, "--help") == 0
    assert not command or f"Example: wallflower {' '.join(command)}" in shell.out


def test_the_example_in_the_help_of_a_question_is_one_that_works(shell: Shell) -> None:
    assert shell("above", "--help") == 0
    line = next(line for line in shell.out.splitlines() if "Example:" in line)
    words = line.replace("│", "").split("wallflower ")[1].split()
    assert shell(words[0], "ward.csv", "--columns", "a", *words[2:]) == 0


@pytest.mark.parametrize("group", ["plan", "data", "budget", "ledger"])
def test_a_group_without_a_command_shows_its_help(shell: Shell, group: str) -> None:
    assert shell(group) == 2
    assert f"Usage: wallflower {group}" in shell.out
    assert shell.err == ""


def test_without_arguments_it_says_what_to_try(shell: Shell) -> None:
    assert shell() == 0
    assert "wallflower demo" in shell.out
    assert "wallflower plan above" in shell.out
    assert shell("--version") == 0
    assert shell.out.startswith("wallflower 0.")


def test_every_refusal_of_ours_has_an_exit_code_that_is_documented() -> None:
    def tree(kind: type[PrivacyError]) -> set[int]:
        return {kind.exit_code}.union(*(tree(child) for child in kind.__subclasses__()))

    assert tree(PrivacyError) <= {2, 3, 4, 5, 6, 130}
