"""The public set of a stream: strict, exact, signed, and different wherever it differs."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from stage import EXACT, parameters

from wallflower.errors import ParameterError, PrivacyError
from wallflower.sensors.parameters import Direct, Exact, Grid, Paper, Parameters
from wallflower.sensors.parties.keys import Identity, make_keys, sign_parameters, verify_parameters
from wallflower.sensors.protocol.frames import Forgery

F = Fraction
MODES = [
    EXACT,
    Exact(unit=F(1, 10), choice_epsilon=F(1)),
    Grid(bound=F(5), step=F(2)),
    Paper(width=F(5), gap="literal"),
    Direct(threshold=F(20)),
]


@pytest.mark.parametrize("settings", MODES, ids=lambda settings: settings.mode)
def test_a_set_survives_its_own_words(keys: Path, settings: Any) -> None:
    stated = parameters(keys, settings)
    again = Parameters.from_json(json.loads(stated.body))
    assert again == stated
    assert (again.body, again.hash) == (stated.body, stated.hash)


def test_one_number_has_one_hash_and_another_number_another(keys: Path) -> None:
    stated = parameters(keys)
    written = stated.to_json()
    assert Parameters.from_json(written | {"epsilon": "0.2"}).hash == stated.hash
    assert Parameters.from_json(written | {"epsilon": "0.20000001"}).hash != stated.hash
    assert replace(stated, version=2).hash != stated.hash


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"stream": "Hall of ../"}, "stream"),
        ({"colour": "red"}, "colour"),
        ({"epsilon": 0.2}, "float"),
        ({"epsilon": "0"}, "epsilon"),
        ({"epsilon": "1/0"}, "epsilon"),
        ({"epsilon": None}, "epsilon"),
        ({"columns": []}, "columns"),
        ({"columns": "x"}, "columns"),
        ({"columns": [["x"]]}, "column"),
        ({"centre": ["0"]}, "centre"),
        ({"centre": ["0.001", "0"]}, "grid steps"),
        ({"grid": "2"}, "grid"),
        ({"noise": "uniform"}, "noise"),
        ({"starts": "now"}, "starts"),
        ({"starts": True}, "starts"),
        ({"seal": "00"}, "seal"),
        ({"settings": {"mode": "magic"}}, "mode"),
        ({"settings": {"mode": "exact"}}, "unit"),
        ({"settings": {"mode": "exact", "unit": "0.1"}}, "thresholds or choice_epsilon"),
        ({"settings": {"mode": "exact", "unit": "0.1", "thresholds": ["1", "2"]}}, "limit"),
        ({"settings": {"mode": "exact", "unit": "0.1", "thresholds": ["99999"]}}, "bits"),
        ({"settings": {"mode": "exact", "unit": "0.1", "thresholds": ["2", "1"], "limit": 2}}, "must rise"),
        ({"settings": {"mode": "exact", "unit": "0.001", "thresholds": ["1"]}}, "grid steps"),
        ({"settings": {"mode": "grid", "bound": "5", "step": "0"}}, "step"),
        ({"settings": {"mode": "paper", "width": "5", "gap": "lower"}}, "gap"),
    ],
)
def test_what_makes_no_stream_is_refused(keys: Path, change: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        Parameters.from_json(parameters(keys).to_json() | change)


def test_a_missing_constant_is_named(keys: Path) -> None:
    written = parameters(keys).to_json()
    del written["grace"]
    with pytest.raises(ParameterError, match="grace: is missing"):
        Parameters.from_json(written)


def test_a_threshold_is_reached_by_what_is_at_least_as_far() -> None:
    settings = Exact(unit=F(1, 10), thresholds=(F(2), F("2.01")), limit=2)
    assert settings.scores == (20, 21)


def test_a_reading_costs_its_epsilon_and_nothing_where_none_leaves(keys: Path) -> None:
    assert str(parameters(keys).loss) == "ε = 0.2"
    assert str(parameters(keys, Direct(threshold=F(20))).loss) == "ε = 0"
    assert str(parameters(keys, Exact(unit=F(1, 10), choice_epsilon=F(1))).loss) == "ε = 1.2"


def test_the_owner_signs_and_everybody_believes(keys: Path) -> None:
    owner = Identity.read(keys / "owner")
    made = sign_parameters(parameters(keys), owner)
    assert verify_parameters(made.body, owner.authority).parameters == made.parameters


def test_nobody_else_signs(keys: Path) -> None:
    with pytest.raises(Forgery, match="only the stream owner"):
        sign_parameters(parameters(keys), Identity.read(keys / "analyst"))


@pytest.mark.parametrize("change", [{"epsilon": "0.1"}, {"version": 2}, {"owner": "0" * 64}])
def test_a_set_that_was_changed_is_not_believed(keys: Path, change: dict[str, Any]) -> None:
    owner = Identity.read(keys / "owner")
    content = json.loads(sign_parameters(parameters(keys), owner).body)
    content["parameters"] |= change
    with pytest.raises(Forgery):
        verify_parameters(json.dumps(content).encode(), owner.authority)


def test_a_set_of_another_authority_is_not_believed(keys: Path, tmp_path: Path) -> None:
    make_keys(tmp_path / "other", sensors=0)
    other = Identity.read(tmp_path / "other" / "owner")
    foreign = sign_parameters(parameters(tmp_path / "other"), other)
    with pytest.raises(Forgery):
        verify_parameters(foreign.body, Identity.read(keys / "owner").authority)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"null", b'{"parameters": 1, "signature": 2, "certificate": 3}'])
def test_what_is_no_set_is_refused(keys: Path, body: bytes) -> None:
    with pytest.raises(PrivacyError):
        verify_parameters(body, Identity.read(keys / "owner").authority)
