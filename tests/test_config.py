"""The file of a project: who says what first, what it may not say, and that whoever uses it is told."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import wallflower as wf
from forks import call
from wallflower.config import ConfigNotice, find_config, find_ledger, read_config
from wallflower.errors import ConfigError, PrivacyError
from wallflower.synthetic import mixture

SCHEMA = "clip = true\n[columns.a]\nlow = -50\nhigh = 50\n[columns.b]\nlow = -50\nhigh = 50\n"
CONFIG = """\
ledger = "study.db"
analyst = "ana"

[defaults]
neighbours = 5

[datasets.people]
source = "data/people.csv"
schema = "people.toml"
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one data set, in a home of its own."""
    for name in [name for name in os.environ if name.startswith("WALLFLOWER_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / "project"
    (folder / "data").mkdir(parents=True)
    rows = mixture(60, 2, seed=3).round(2).tolist()
    (folder / "data" / "people.csv").write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in rows))
    (folder / "people.toml").write_text(SCHEMA)
    (folder / "wallflower.toml").write_text(CONFIG)
    monkeypatch.chdir(folder)
    return folder


def ask(*more: str) -> Any:
    return call("count", "people", "--radius", "0.5", "--epsilon", "0.5", "--force", "--json", *more)


def test_a_named_data_set_is_asked_from_below_the_file(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project / "data")
    done = ask()
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["dataset"], told["analyst"], told["parameters"]["neighbours"]) == ("people", "ana", 5)
    assert done.stderr.count(f"Using {project / 'wallflower.toml'}") == 1
    assert (project / "study.db").exists()
    assert "ε = 0.5" in call("budget", "show", "people").stdout


def test_an_option_goes_before_the_environment_and_that_before_the_file(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WALLFLOWER_LEDGER", str(project / "other.db"))
    monkeypatch.setenv("WALLFLOWER_ANALYST", "bea")
    assert json.loads(ask().stdout)["analyst"] == "bea"
    assert (project / "other.db").exists()
    told = json.loads(ask("--analyst", "cem", "--neighbours", "4", "--ledger", "third.db").stdout)
    assert (told["analyst"], told["parameters"]["neighbours"]) == ("cem", 4)
    assert (project / "third.db").exists()
    assert not (project / "study.db").exists()


def test_a_data_set_may_have_a_ledger_of_its_own(project: Path) -> None:
    with (project / "wallflower.toml").open("a") as file:
        file.write('ledger = "own.db"\n')
    with pytest.warns(ConfigNotice):
        assert find_ledger("people") == str(project / "own.db")
    with pytest.warns(ConfigNotice):
        assert find_ledger() == str(project / "study.db")
    with pytest.warns(ConfigNotice, match=r"people is taken from .*wallflower\.toml"):
        assert "own.db" in repr(wf.open("people", analyst="bea"))


def test_python_opens_a_named_data_set_as_the_command_line_does(project: Path) -> None:
    with pytest.warns(ConfigNotice):
        people = wf.open("people")
    assert people.name == "people"
    assert "study.db" in repr(people)
    with pytest.warns(ConfigNotice):
        assert "mine.db" in repr(wf.open("people", ledger="mine.db"))


def test_what_is_in_force_is_shown_without_passwords(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WALLFLOWER_LEDGER", "postgresql://ana:hidden@db/study")
    told = json.loads(call("config", "--json").stdout)
    assert told["file"] == str(project / "wallflower.toml")
    assert told["settings"]["ledger"] == {"value": "postgresql://ana:***@db/study", "from": "$WALLFLOWER_LEDGER"}
    assert told["settings"]["analyst"] == {"value": "ana", "from": "wallflower.toml"}
    assert told["datasets"]["people"]["source"] == str(project / "data" / "people.csv")
    shown = call("config").stdout
    assert "hidden" not in shown
    assert "data set people" in shown
    monkeypatch.setenv("WALLFLOWER_CONFIG", "none")
    bare = json.loads(call("config", "--json").stdout)
    assert (bare["file"], bare["settings"]["analyst"]["from"]) == (None, "built in")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("ledgr = 'x.db'", "ledgr"),
        ("ledger = 7", "ledger"),
        ("analyst = ''", "analyst"),
        ("defaults = 1", "defaults"),
        ("[defaults]\nneighbours = 0", "defaults.neighbours"),
        ("[defaults]\nepsilon = '1'", "defaults.epsilon"),
        ("epsilon = '1'", "epsilon"),
        ("server = 'https://elsewhere'", "server"),
        ("[datasets.people]\nschema = 'x.toml'", "datasets.people.source"),
        ("[datasets.people]\nsource = 'x.csv'\nrho = '1'", "datasets.people.rho"),
        ("[datasets.people]\nsource = 'x.csv'\nwithout = 'a'", "datasets.people.without"),
        ("[datasets.'a b']\nsource = 'x.csv'", "datasets.a b"),
        ("datasets = []", "datasets"),
        ("ledger = ", ""),
    ],
)
def test_a_refusal_names_the_file_and_the_key(text: str, key: str, tmp_path: Path) -> None:
    path = tmp_path / "wallflower.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as refusal:
        read_config(path)
    assert (refusal.value.path, refusal.value.key) == (path, key)
    assert str(refusal.value).startswith(f"{path}: {key}")


def test_a_name_that_is_a_path_too_is_refused(project: Path) -> None:
    (project / "people").mkdir()
    done = ask()
    assert done.returncode == 2
    assert "datasets.people" in done.stderr
    assert "./people" in done.stderr


def test_a_schema_that_names_the_data_set_otherwise_is_refused(project: Path) -> None:
    (project / "people.toml").write_text(f'name = "clinic"\n{SCHEMA}')
    done = ask()
    assert done.returncode == 2
    assert "[datasets.clinic]" in done.stderr
    assert not (project / "study.db").exists()


def test_a_found_file_that_anybody_can_write_is_refused_and_a_named_one_is_not(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = project / "wallflower.toml"
    path.chmod(0o666)
    with pytest.raises(ConfigError, match="can be written by anybody"):
        find_config()
    monkeypatch.setenv("WALLFLOWER_CONFIG", str(path))
    assert find_config() is not None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link away")
def test_a_found_link_of_somebody_else_is_refused(project: Path) -> None:
    own = (project / "wallflower.toml").rename(project / "elsewhere.toml")
    (project / "wallflower.toml").symlink_to(own)
    assert find_config() is not None
    os.lchown(project / "wallflower.toml", 12345, -1)
    with pytest.raises(ConfigError, match="belongs to somebody else"):
        find_config()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_found_file_of_somebody_else_is_refused(project: Path) -> None:
    os.chown(project / "wallflower.toml", 12345, -1)
    with pytest.raises(ConfigError, match="belongs to somebody else"):
        find_config()


def test_no_file_above_the_home_is_found(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(project / "data"))
    monkeypatch.chdir(project / "data")
    assert find_config() is None


def test_places_are_relative_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "wallflower.toml"
    path.write_text(
        'ledger = "sqlite:///l.db"\n[datasets.a]\nsource = "sqlite:///d.db?table=t"\nschema = "s.toml"\n'
        '[datasets.b]\nsource = "postgresql://db/x?table=t"\nledger = "sqlite:////var/l.db"\n'
    )
    made = read_config(path)
    assert made.ledger == f"sqlite:///{tmp_path}/l.db"
    assert made.datasets["a"].source == f"sqlite:///{tmp_path}/d.db?table=t"
    assert made.datasets["a"].schema == f"{tmp_path}/s.toml"
    assert made.datasets["b"].source == "postgresql://db/x?table=t"
    assert made.datasets["b"].ledger == "sqlite:////var/l.db"


def test_a_file_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WALLFLOWER_CONFIG", str(tmp_path / "lost.toml"))
    with pytest.raises(PrivacyError, match=r"lost\.toml: cannot be read"):
        find_config()


def test_a_broken_file_stops_questions_and_nothing_else(project: Path) -> None:
    (project / "wallflower.toml").write_text("epsilon = 1")
    assert call("--version").returncode == 0
    assert call("count", "--help").returncode == 0
    assert ask().returncode == 2


# Completion


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("wallflower co", {"count", "config"}),
        ("wallflower count --neigh", {"--neighbours"}),
        ("wallflower count peo", {"people"}),
        ("wallflower plan count --eps", {"--epsilon"}),
        ("wallflower budget gr", {"grant"}),
    ],
)
@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_a_shell_completes(
    project: Path, monkeypatch: pytest.MonkeyPatch, line: str, offered: set[str], shell: str
) -> None:
    monkeypatch.setenv("_WALLFLOWER_COMPLETE", f"complete_{shell}")
    if shell == "bash":
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
    else:
        monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
        monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    done = call()
    assert {word.partition("\t")[0] for word in done.stdout.split("\n") if word} >= offered
    assert done.returncode == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_shown(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_WALLFLOWER_COMPLETE", f"source_{shell}")
    done = call()
    assert done.returncode == 0
    assert "_WALLFLOWER_COMPLETE=complete_" in done.stdout
