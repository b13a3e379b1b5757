"""Table 1 of the paper: ten records, the bits of a context, and whom it selects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from wallflower.papers.facts import printed_table
from wallflower.papers.page import Section, Sheet
from wallflower.queries.explain.space.contexts import Domain

DOMAINS: Final = (
    Domain("job_title", ("CEO", "Medical Doctor", "Lawyer")),
    Domain("city", ("Montreal", "Ottawa", "Toronto")),
    Domain("district", ("Business", "Historic", "Diplomatic")),
)
FIRST: Final = {"job_title": ("CEO", "Lawyer"), "city": ("Toronto",), "district": ("Historic",)}
OUTLIER: Final = {"job_title": ("CEO", "Lawyer"), "city": ("Ottawa",), "district": ("Diplomatic",)}


def bits_of(chosen: Mapping[str, tuple[str, ...]]) -> str:
    """A context as the paper writes it.

    >>> bits_of(FIRST), bits_of(OUTLIER)
    ('101001010', '101010001')
    >>> are_connected("101001010", "100001010")
    True
    """
    return "".join("01"[label in chosen[domain.name]] for domain in DOMAINS for label in domain.labels)


def are_connected(one: str, other: str) -> bool:
    """Whether contexts differ in one value."""
    return sum(a != b for a, b in zip(one, other, strict=True)) == 1


def members(bits: str) -> list[int]:
    """The records of Table 1 that a context selects, as they are numbered there.

    >>> members(bits_of(FIRST)), members(bits_of(OUTLIER))
    ([], [3, 5, 8])
    """
    values = {(domain.name, label) for domain, part in zip(DOMAINS, _parts(bits), strict=True) for label in part}
    return [
        int(row["record"])
        for row in printed_table("pcor2021", "table1")
        if all((domain.name, row[domain.name]) in values for domain in DOMAINS)
    ]


def _parts(bits: str) -> Iterator[list[object]]:
    """The values that a context lets in, attribute by attribute."""
    left = iter(bits)
    for domain in DOMAINS:
        yield [label for label in domain.labels if next(left) == "1"]


def table1() -> Section:
    rows = printed_table("pcor2021", "table1")
    contexts = bits_of(FIRST), bits_of(OUTLIER)
    selected = [members(bits) for bits in contexts]
    return Section(
        name="table1",
        title="Table 1: ten records, and two contexts among them",
        caption=f"{contexts[0]} is the paper's example, CEOs and lawyers in the historic district of Toronto, and "
        f"selects nobody here; {contexts[1]} is the context it gives for record 8.",
        sheet=Sheet(
            heading=(*rows[0], *(f"in_{bits}" for bits in contexts)),
            rows=tuple(
                (*row.values(), *("yes" if int(row["record"]) in inside else "no" for inside in selected))
                for row in rows
            ),
        ),
    )
