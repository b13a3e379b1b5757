"""A question as a form: settings that one mode has stand together, and are refused in another."""

from __future__ import annotations

from dataclasses import fields

import pytest

from wallflower.errors import ParameterError
from wallflower.queries import COMPANIONS, QUERIES
from wallflower.queries.explain import Explain
from wallflower.queries.watch import Watch
from wallflower.query.parameter import describe, fill, group_parameters, list_parameters

ALL = (*QUERIES, *COMPANIONS)


@pytest.mark.parametrize("question", ALL, ids=lambda question: question.kind)
def test_every_setting_stands_in_one_group_and_its_mode_can_be_chosen(question):
    groups = group_parameters(question)
    assert groups[0].when is None
    assert sorted(parameter.name for group in groups for parameter in group.parameters) == sorted(
        parameter.name for parameter in list_parameters(question)
    )
    choices = {parameter.name: parameter.choices for parameter in groups[0].parameters}
    for group in groups[1:]:
        if group.when.choice is None:
            assert group.when.chooser in {
                parameter.name for parameter in list_parameters(question) if parameter.default is None
            }
        else:
            assert group.when.choice in choices[group.when.chooser], "a mode is chosen by a setting that every mode has"


def test_the_modes_of_explain_and_watch_have_settings_of_their_own():
    ocdp = {"utility", "near", "search", "samples", "start", "unseen"}
    named = {
        question: {
            group.when.text: {parameter.name for parameter in group.parameters}
            for group in group_parameters(question)[1:]
        }
        for question in (Explain, Watch)
    }
    assert named[Explain] == {"with mode ocdp": ocdp, "with mode dp": {"doubt"}}
    assert named[Watch]["with level person"] == {"cutoff", "monotone", "adaptive", "steps"}
    assert named[Watch]["with level window"] == {"window"}
    assert named[Watch]["with level entry"] == {"scores"}
    assert named[Watch]["with statistic weighted"] == {"weights"}


def test_help_says_which_mode_a_setting_belongs_to():
    text = describe(Explain)
    assert text.index("With mode ocdp:") < text.index("\nutility") < text.index("With mode dp:") < text.index("\ndoubt")
    assert text.index("\nepsilon") < text.index("With mode ocdp:")


OTHER = {
    "search": "bfs",
    "samples": 7,
    "unseen": True,
    "near": "11",
    "start": "11",
    "utility": "overlap",
}


@pytest.mark.parametrize("name", OTHER)
def test_a_setting_of_another_mode_is_refused_by_name(name):
    example = Explain.example()
    assert example.mode == "dp"
    given = {item.name: getattr(example, item.name) for item in fields(example)} | {name: OTHER[name]}
    with pytest.raises(ParameterError, match=f"{name}: it is a setting of mode ocdp, and mode is dp. Leave it out"):
        Explain(**given)


def test_it_is_refused_however_it_was_filled_in():
    with pytest.raises(ParameterError, match="cutoff: it is a setting of level person, and level is entry"):
        fill(Watch, {"threshold": 2.0, "low": -5.0, "high": 5.0, "cutoff": 3, "epsilon": "1"})
