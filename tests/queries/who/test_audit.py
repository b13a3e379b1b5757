"""Every attack on lists of names ends as it must, and shows all that the promise allows."""

from __future__ import annotations

import pytest

from wallflower.audit import Way
from wallflower.evidence import DEMANDED, DEMANDED_OF_ANSWERS
from wallflower.queries.who.audit import (
    BAR,
    EPSILON,
    SIZE,
    ListLaw,
    _frozen_names,
    answer_of,
    findings,
    make_query,
    worst_loss,
)


@pytest.fixture(scope="module")
def all_findings():
    return list(findings(quick=True))


def test_every_attack_ends_as_it_must(all_findings) -> None:
    assert [f"{finding.name}: {finding.text}" for finding in all_findings if not finding.ok] == []


def test_there_is_evidence_of_every_kind_that_a_query_owes(all_findings) -> None:
    owed = {need for need in DEMANDED | DEMANDED_OF_ANSWERS if need != (Way.WORLD, True)}
    assert owed <= {(finding.way, finding.expected) for finding in all_findings}


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("above", [None, BAR])
def test_the_law_shows_exactly_the_loss(most: int, above: float | None) -> None:
    query = make_query(most=most, above=above)
    lost, _ = worst_loss(ListLaw(query=query, answer=answer_of(query), shown=_frozen_names), quick=True)
    assert lost == pytest.approx(float(EPSILON), rel=1e-9)


def test_a_list_of_everybody_without_a_bar_shows_nothing_of_those_it_does_not_name() -> None:
    query = make_query(most=SIZE)
    lost, _ = worst_loss(ListLaw(query=query, answer=answer_of(query), shown=_frozen_names), quick=True)
    assert lost < 1e-9
