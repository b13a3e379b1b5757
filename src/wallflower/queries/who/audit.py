"""Attacks on lists of names: the law of the real answer on every table of a tiny world, and broken lists to be caught.

The detector is fixed: sampling a detector and a list together would have no power. A list is private for a record that
it does not name, so outcomes that name the replaced record are set aside, and all others are compared: (L).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from itertools import product
from typing import Any, Final

import numpy as np

from wallflower.audit import Attack, Finding, Way, audit_exact
from wallflower.audit.answers import Accounts, Case, DrawRecord, LawCheck, Part, audit_cases, freeze
from wallflower.audit.laws import EXACT, Law, law_of
from wallflower.data import Column, Schema, Table
from wallflower.machine.lazy import load
from wallflower.noise import Noise
from wallflower.privacy import Loss
from wallflower.queries.detector.grids import CELLS, Grid
from wallflower.queries.detector.model import Model
from wallflower.queries.who.exact import exact_order
from wallflower.queries.who.walk import name_in_order, rank_chance
from wallflower.queries.who.who import Row, Who, WhoView
from wallflower.schema.columns import float_array, text_array

EPSILON: Final = Fraction(1, 2)
SIZE: Final = 4
LEVELS: Final = (0.0, 1.0, 2.0, 3.0)  # a record is one of them, and a higher one scores higher
IDS: Final = ("k", "c", "m", "a")  # not in the order of the rows
SCHEMA: Final = Schema(columns=(Column("x"), Column("id", identifier=True)))
GRID: Final = Grid(columns=(0, 0), widths=(1.0, 1.0), offsets=(0.0, 0.0))
LARGEST: Final = 1e300  # JSON has no infinity

Table4 = tuple[float, ...]
Answer = Callable[[WhoView, Noise], Hashable]


def findings(*, quick: bool) -> Iterator[Finding]:
    """Every attack: what must hold, then what must be caught."""
    for attack in ATTACKS.values():
        yield from attack(quick)


# The tiny world


def make_model() -> Model:
    """A detector with one grid, whose cells get emptier from level to level."""
    counts = np.zeros((1, CELLS), dtype=np.int64)
    for level in LEVELS:
        counts[0, GRID.cells(np.array([[level]]))] = int(10 ** (6 - level))
    return Model(columns=("x",), grids=(GRID,), counts=counts, floor=1.0, schema=SCHEMA.only(["x"]))


MODEL: Final = make_model()
SCORES: Final = tuple(MODEL.score(np.array(LEVELS)[:, None]).tolist())
BAR: Final = (SCORES[1] + SCORES[2]) / 2  # two of the four levels are above it


def make_query(kind: type[Who] = Who, *, most: int = 2, above: float | None = None, **more: Any) -> Who:
    return kind(detector=1, most=most, above=above, loss=Loss(EPSILON), **more)


def table_of(values: Any) -> Table:
    """Records with identifiers."""
    places = [float(value) for value in np.ravel(values)]
    cells = {"x": float_array(np.array(places)), "id": text_array(IDS[: len(places)])}
    return Table(arrow=load("pyarrow").table(cells), schema=SCHEMA, name="made-up")


def view_of(query: Who, values: Any) -> WhoView:
    return view_table(query, table_of(values))


def view_table(query: Who, table: Any) -> WhoView:
    """A table, kept by any engine, beside a detector that was released before; there are too few records to refuse."""
    return WhoView(table=table, identifier=query.identifier, model=MODEL)


def _law(answer: Answer, query: Who, values: Table4) -> Law:
    view = view_of(query, values)
    return law_of(lambda noise: answer(view, noise))


def _names(rows: list[Row]) -> tuple[Any, ...]:
    return tuple(row["record"] for row in rows)


def _freeze(rows: list[Row]) -> Hashable:
    """All that a list says, so that an attack sees more than names."""
    return freeze(rows)


def _frozen_names(outcome: Any) -> tuple[Any, ...]:
    return tuple(dict(row)["record"] for row in outcome)


def answer_of(query: Who) -> Answer:
    """The whole answer of a query, as something that can be compared."""
    return lambda view, noise: _freeze(query.answer(view, noise))


def _law_of_names(query: Who, values: Table4) -> dict[tuple[Any, ...], float]:
    view = view_of(query, values)
    law: Mapping[Any, float] = law_of(lambda noise: _names(query.answer(view, noise)))
    return dict(law)


# The law on every table


@dataclass(frozen=True, slots=True, kw_only=True)
class ListLaw:
    """A list to be attacked: its answer, and how an outcome shows that it names a record.

    named  the name of a record in a table, as an outcome would show it
    shown  the names that an outcome shows
    """

    query: Who
    answer: Answer
    named: Callable[[Table4, int], Any] = lambda table, at: at
    shown: Callable[[Any], tuple[Any, ...]] = lambda outcome: outcome


def worst_loss(law: ListLaw, *, quick: bool) -> tuple[float, str]:
    """Return the largest loss over outcomes that do not name the replaced record, on every pair of adjacent tables.

    With `quick` a record has one score less to choose from; the search ends where a list is refuted.
    """
    levels = LEVELS[-3:] if quick else LEVELS
    find = cache(partial(_law, law.answer, law.query))
    worst, words = 0.0, ""
    for table in product(levels, repeat=SIZE):
        for at, level in product(range(SIZE), levels):
            other = (*table[:at], level, *table[at + 1 :])
            hidden = {law.named(table, at), law.named(other, at)}
            for outcome, chance in find(table).items():
                if hidden & {*law.shown(outcome)}:
                    continue
                less = find(other).get(outcome, 0.0)
                lost = math.log(chance / less) if less else math.inf
                if lost > worst:
                    worst, words = lost, f"{outcome} on {table} and {other}"
        if worst > float(EPSILON) * (1 + EXACT):
            break
    return worst, words


def _attack_law(name: str, law: ListLaw, *, quick: bool, expected: bool = False) -> Finding:
    lost, words = worst_loss(law, quick=quick)
    claimed = float(EPSILON)
    names_all = (
        law.query.above is None and law.query.most == SIZE
    )  # a record that is not named was skipped, in any table
    is_weak = not expected and (lost > EXACT if names_all else lost < claimed * (1 - EXACT))
    text = f"claims {claimed:.6g} for records that are not named, is {lost:.6g}: {words}"
    return Finding(
        name=name,
        way=Way.OUTPUTS,
        claimed=claimed,
        lower=min(lost, LARGEST),
        caught=lost > claimed * (1 + EXACT) or is_weak,
        text=text + (": these tables show less, so the audit has lost its power" if is_weak else ""),
        expected=expected,
    )


def _attack_lists(quick: bool) -> Iterator[Finding]:
    for most, above in product((1, 2, 4), (None, BAR)):
        query = make_query(most=most, above=above)
        bar = "no bar" if above is None else "a bar"
        law = ListLaw(query=query, answer=answer_of(query), shown=_frozen_names)
        yield _attack_law(f"up to {most} names, {bar}", law, quick=quick)
    query = make_query(above=BAR, show=("score", "contributions", "row"))
    yield _attack_law(
        "names with what belongs to them",
        ListLaw(query=query, answer=answer_of(query), shown=_frozen_names),
        quick=True,
    )
    query = make_query(most=2, identifier="id")
    law = ListLaw(query=query, answer=answer_of(query), named=lambda _, at: IDS[at], shown=_frozen_names)
    yield _attack_law("names by identifier", law, quick=quick)


# Broken, on purpose


class _Skips(Noise):
    """A noise whose coins skip with another chance."""

    def __init__(self, noise: Noise, exponent: Callable[[Fraction], Fraction]) -> None:
        self._noise, self._exponent = noise, exponent

    def flip(self, exponent: Fraction) -> bool:
        return self._noise.flip(self._exponent(exponent))


def _order(query: Who, view: WhoView) -> list[int]:
    bar = query.above
    return [candidate.row for candidate in view.ranked(bar, SIZE + 1)]


def _cut_first(query: Who, view: WhoView, noise: Noise) -> Hashable:
    """BROKEN: cut to the wanted number first, and toss afterwards."""
    return tuple(name_in_order(_order(query, view)[: query.most], query.most, EPSILON, noise))


def _epsilon_for_chance(query: Who, view: WhoView, noise: Noise) -> Hashable:
    """BROKEN: named with probability ε in place of 1 - e^(-ε)."""
    exponent = Fraction(-math.log1p(-float(EPSILON)))
    return tuple(name_in_order(_order(query, view), query.most, exponent, noise))


def _tenth_short(query: Who, view: WhoView, noise: Noise) -> Hashable:
    """BROKEN: coins that skip a little too rarely."""
    return tuple(name_in_order(_order(query, view), query.most, EPSILON * Fraction(10, 9), noise))


def _fixed_size(query: Who, view: WhoView, noise: Noise) -> Hashable:
    """BROKEN: a sample of fixed size among the first, evenly."""
    first = _order(query, view)[: query.most + 1]
    sample: list[int] = []
    while first and len(sample) < query.most:
        sample.append(first.pop(noise.below(len(first))))
    return tuple(sorted(sample))


def _tells_flagged(query: Who, view: WhoView, noise: Noise) -> Hashable:
    """BROKEN: tells how many records are above the bar."""
    return tuple(name_in_order(_order(query, view), query.most, EPSILON, noise)), len(_order(query, view))


def _tells_let_in(query: Who, view: WhoView, noise: Noise) -> Hashable:
    """BROKEN: tells how many records the coins let in, whether or not they were named."""
    let_in = name_in_order(_order(query, view), SIZE, EPSILON, noise)
    return tuple(let_in[: query.most]), len(let_in)


def _tells_rank(query: Who, view: WhoView, noise: Noise) -> Hashable:
    """BROKEN: tells at which rank among all records each name stands."""
    order = _order(query, view)
    named = name_in_order(order, query.most, EPSILON, noise)
    return tuple(named), tuple(map(order.index, named))


def _tells_best_unnamed(query: Who, view: WhoView, noise: Noise) -> Hashable:
    """BROKEN: tells the best score that was not named."""
    candidates = list(view.ranked(query.above, SIZE + 1))
    named = name_in_order(candidates, query.most, EPSILON, noise)
    best = max((-other.descending for other in candidates if other not in named), default=None)
    return tuple(candidate.row for candidate in named), best


def _quantile_bar(query: Who, view: WhoView, noise: Noise) -> Hashable:
    """BROKEN: a bar at a quantile of the records themselves."""
    scores = [-candidate.descending for candidate in view.ranked(None, SIZE + 1)]
    candidates = view.ranked(float(np.median(scores)), SIZE + 1)
    return tuple(candidate.row for candidate in name_in_order(candidates, query.most, EPSILON, noise))


def _sorted_positions(query: Who, view: WhoView, noise: Noise) -> Hashable:
    """BROKEN: names are positions in a file that is sorted by what is in it."""
    named = name_in_order(_order(query, view), query.most, EPSILON, noise)
    positions = np.argsort(np.argsort(_values(view), kind="stable"), kind="stable")
    return tuple(int(positions[row]) for row in named)


def _shared_coin(query: Who, view: WhoView, noise: Noise) -> Hashable:
    """BROKEN: one coin for two records."""
    order, named = _order(query, view), []
    for at in range(0, len(order), 2):
        if not noise.flip(EPSILON):
            named += order[at : at + 2]
    return tuple(named[: query.most])


def _scaled_scores(query: Who, view: WhoView, noise: Noise) -> Hashable:
    """BROKEN: scores divided by the greatest of the table."""
    candidates = list(view.ranked(query.above, SIZE + 1))
    greatest = max(abs(candidate.descending) for candidate in view.ranked(None, SIZE + 1))
    named = name_in_order(candidates, query.most, EPSILON, noise)
    return tuple((candidate.row, -candidate.descending / greatest) for candidate in named)


def _spent_twice(query: Who, view: WhoView, noise: Noise) -> Hashable:
    """BROKEN: two lists for the price of one."""
    return tuple(_names(query.answer(view, noise)) for _ in range(2))


def _values(view: WhoView) -> Any:
    assert isinstance(view.table, Table)
    return view.table.cells("x")


def _position(table: Table4, at: int) -> int:
    return int(np.argsort(np.argsort(table, kind="stable"), kind="stable")[at])


def _first_part(outcome: Any) -> tuple[Any, ...]:
    return tuple(outcome[0])


def _firsts(outcome: Any) -> tuple[Any, ...]:
    return tuple(pair[0] for pair in outcome)


def _all_parts(outcome: Any) -> tuple[Any, ...]:
    return tuple(name for part in outcome for name in part)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Broken:
    name: str
    answer: Callable[[Who, WhoView, Noise], Hashable]
    above: float | None = None
    named: Callable[[Table4, int], Any] = lambda table, at: at
    shown: Callable[[Any], tuple[Any, ...]] = lambda outcome: outcome


BROKEN: Final = (
    _Broken(name="cut to the wanted number first, toss afterwards", answer=_cut_first),
    _Broken(name="named with probability ε", answer=_epsilon_for_chance),
    _Broken(name="coins a tenth short", answer=_tenth_short),
    _Broken(name="a sample of fixed size", answer=_fixed_size),
    _Broken(name="tells how many are flagged", answer=_tells_flagged, above=BAR, shown=_first_part),
    _Broken(name="tells how many were let in", answer=_tells_let_in, above=BAR, shown=_first_part),
    _Broken(name="tells the rank among all", answer=_tells_rank, shown=_first_part),
    _Broken(name="tells the best score that is not named", answer=_tells_best_unnamed, shown=_first_part),
    _Broken(name="a bar at a quantile of the records", answer=_quantile_bar),
    _Broken(name="positions in a sorted file", answer=_sorted_positions, above=BAR, named=_position),
    _Broken(name="one coin for two records", answer=_shared_coin),
    _Broken(name="scores divided by the table's greatest", answer=_scaled_scores, shown=_firsts),
    _Broken(name="two lists for the price of one", answer=_spent_twice, above=BAR, shown=_all_parts),
)


def _attack_broken(quick: bool) -> Iterator[Finding]:
    for broken in BROKEN:
        query = make_query(most=2, above=broken.above)

        def answer(view: WhoView, noise: Noise, broken: _Broken = broken, query: Who = query) -> Hashable:
            return broken.answer(query, view, noise)

        law = ListLaw(query=query, answer=answer, named=broken.named, shown=broken.shown)
        yield _attack_law(f"broken: {broken.name}", law, quick=quick, expected=True)


# The order, and which ranks names come from


def _attack_order(quick: bool) -> Iterator[Finding]:
    tables = list(product(LEVELS, repeat=SIZE))
    everybody = make_query(most=SIZE, identifier="id")

    def order(values: Any, query: Who = everybody, above: float | None = BAR) -> list[Any]:
        return [candidate.row for candidate in view_of(query, values).ranked(above, 1)]

    def brute(values: Any) -> list[int]:
        scores = MODEL.score(np.array(values)[:, None]).tolist()
        return exact_order(scores, IDS, BAR)

    yield audit_exact(order, brute, tables, name="order by score, then by identifier")
    by_row = make_query(most=SIZE)
    yield audit_exact(lambda values: order(values, by_row), brute, tables, name="broken: ties by row", expected=True)
    yield audit_exact(
        lambda values: order(values, everybody, None), brute, tables, name="broken: no bar", expected=True
    )


def _attack_ranks(quick: bool) -> Iterator[Finding]:
    """How often each rank is named, by the law of the answer on a table of four different scores."""
    for most in (1, 2, 4):
        query = make_query(most=most)
        law = _law_of_names(query, LEVELS)
        shown = [sum(chance for names, chance in law.items() if SIZE - rank in names) for rank in range(1, SIZE + 1)]
        claimed = [rank_chance(rank, most, EPSILON) for rank in range(1, SIZE + 1)]
        off = max(abs(one - other) for one, other in zip(shown, claimed, strict=True))
        yield Finding(
            name=f"how often each rank is among {most} names",
            way=Way.WORLD,
            claimed=0.0,
            lower=off,
            caught=off > EXACT,
            text=f"the chances differ from those of the formula by {off:.2g}",
        )


# Accounts of the draws


def _flips(name: str, draws: int) -> Part:
    """Coins, one for each record that is reached; no record has more than one, so together they spend ε once."""
    return Part(name=name, spends=EPSILON, draws=(DrawRecord("flip", EPSILON),) * draws)


def _unnamed_law(query: Who, view: WhoView) -> Law:
    """The law of the lists that do not name the first record, which is the one that is replaced."""
    law: Mapping[Any, float] = law_of(lambda noise: _names(query.answer(view, noise)))
    return {names: chance for names, chance in law.items() if not {0, IDS[0]} & {*names}}


def _case(name: str, draws: int, tables: tuple[Any, Any], **settings: Any) -> Case:
    query = make_query(**settings)
    return Case(
        name=name,
        query=query,
        tables=tables,
        view=view_of,  # type: ignore[arg-type]
        parts=(_flips("coins", draws),),
        laws=(LawCheck(parts=("coins",), least=0.99, law=_unnamed_law),),
        claimed={"naming": query.claim(view_of(query, tables[0])).naming},
    )


TABLES: Final = ((3.0, 2.0, 1.0, 0.0), (0.0, 2.0, 1.0, 0.0))
ABOVE: Final = ((3.0, 2.0, 3.0, 0.0), (2.0, 2.0, 3.0, 0.0))
HIDDEN: Final = ((3.0, 2.0, 3.0, 2.0), (0.0, 2.0, 3.0, 2.0))
ACCOUNTS: Final = Accounts(
    cases=(
        _case("two names", 2, TABLES, most=2),
        _case("names above a bar", 2, HIDDEN, most=2, above=BAR),
        _case("names by identifier", 2, TABLES, most=2, identifier="id"),
    ),
    without_draws=frozenset({"detector", "show"}),
)
ATTACKS: Final[Mapping[str, Attack]] = {
    "answers": lambda quick: audit_cases(ACCOUNTS.cases),
    "lists": _attack_lists,
    "broken": _attack_broken,
    "order": _attack_order,
    "ranks": _attack_ranks,
}
