"""Which labels the guarantee of a count rests on, by its parameters."""

from __future__ import annotations

from typing import Final

from wallflower.privacy import Kind
from wallflower.theorems import name_labels

NOISE_LABELS: Final = {Kind.PURE: "L", Kind.APPROXIMATE: "L G1 G2", Kind.ZCDP: "Z"}
MECHANISM_LABELS: Final = {"extension": "P E C1 C2 N F", "global": "P G", "smooth": "P U L S"}


def name_theorems(
    mechanism: str, kind: Kind, *, is_tiled: bool, may_test: bool, two_sided: bool, at_share: bool, groups: str
) -> tuple[str, ...]:
    """Name the labels: of the value before noise, of what else is paid for, and of the noise.

    may_test   the degree cap may follow from a test of crowding
    at_share   the radius is drawn
    groups     the labels of counts by group, or nothing
    """
    labels = [MECHANISM_LABELS[mechanism]]
    if mechanism == "extension":
        labels += [*(["X"] if may_test else []), *(["T C4"] if is_tiled else []), *(["D"] if at_share else [])]
        labels += [*(["Q1 Q2 Q3 H"] if two_sided else []), groups]
    noise = "S" if mechanism == "smooth" else NOISE_LABELS[kind]
    choice = " J1 J2 E2 E3" if at_share else ""
    return name_labels("count", " ".join(labels)) + name_labels("mechanisms", noise + choice)
