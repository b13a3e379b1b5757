"""Attacks on counts: accounts of every draw, the law of every class, and broken ones that must be caught."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Final

from wallflower.audit import Attack, Finding
from wallflower.audit.answers import audit_cases
from wallflower.audit.calibrations import attack_calibrations
from wallflower.queries.count.audit import at_radius, by_group, choices, two_sided
from wallflower.queries.count.audit.accounts import ACCOUNTS

ATTACKS: Final[dict[str, Attack]] = {
    "answers": lambda quick: audit_cases(ACCOUNTS.cases),
    "noise": lambda quick: attack_calibrations(),
    "extension": partial(at_radius.attack, "extension"),
    "global": partial(at_radius.attack, "global"),
    "smooth": partial(at_radius.attack, "smooth"),
    "exact": lambda quick: at_radius.oracles(),
    "broken": lambda quick: chain(at_radius.broken_laws(), at_radius.broken_bounds()),
    "two-sided": lambda quick: two_sided.lower_findings(),
    "groups": lambda quick: by_group.group_findings(),
    "share": lambda quick: choices.share_findings(),
    "labels": lambda quick: at_radius.label_findings(),
    "degree cap": lambda quick: choices.cap_findings(),
}


def findings(*, quick: bool) -> Iterator[Finding]:
    """Run every attack, class by class: what must hold, then what must be caught."""
    for attack in ATTACKS.values():
        yield from attack(quick)
