"""Tags in an erasable table, on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import sqlalchemy as sa
from ledgers import engine_of

from wallflower.data import load
from wallflower.data.fingerprints import Fingerprint, fingerprint
from wallflower.errors import SameRecords
from wallflower.ledger import Ledger
from wallflower.ledger.fingerprints import Match, forget, matches, remember

KEY = bytes(range(32))


@pytest.fixture
def db(place: str) -> Iterator[sa.Connection]:
    Ledger.open(place).close()
    with engine_of(place).begin() as opened:
        yield opened


def people(n: int, *, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 2))


def tags(data: np.ndarray, *, source: str | None = None) -> Fingerprint:
    return fingerprint(load(data), KEY, source=source)


def count(db: sa.Connection) -> int:
    return len(db.execute(sa.text("SELECT * FROM fingerprints")).all())


def test_a_copy_is_found_under_another_name(db: sa.Connection) -> None:
    data = people(400, seed=0)
    remember(db, "icu", tags(data))
    expected = Match(dataset="icu", share=1.0, same_source=False, same_rows=True)
    assert matches(db, "ward", tags(data[::-1, ::-1])) == [expected]


def test_a_data_set_does_not_match_itself(db: sa.Connection) -> None:
    made = tags(people(400, seed=0), source="icu.csv")
    remember(db, "icu", made)
    assert matches(db, "icu", made) == []


def test_others_do_not_match(db: sa.Connection) -> None:
    for seed in range(5):
        remember(db, f"set {seed}", tags(people(400, seed=seed), source=f"{seed}.csv"))
    assert matches(db, "icu", tags(people(400, seed=5), source="icu.csv")) == []


def test_tables_of_few_kinds_of_rows_do_not_match(db: sa.Connection) -> None:
    draw = np.random.default_rng(1)
    for n in range(300, 320):
        remember(db, f"flips {n}", tags(draw.integers(0, 2, (n, 1))))
    assert matches(db, "icu", tags(draw.integers(0, 2, (320, 1)))) == []


def test_a_few_common_rows_are_no_match(db: sa.Connection) -> None:
    one, other = people(400, seed=2), people(400, seed=3)
    remember(db, "icu", tags(one))
    assert matches(db, "ward", tags(np.vstack([one[:5], other[5:]]))) == []


def test_a_part_in_common_is_found(db: sa.Connection) -> None:
    one, other = people(400, seed=4), people(400, seed=5)
    remember(db, "icu", tags(one))
    (found,) = matches(db, "ward", tags(np.vstack([one[:200], other[200:]])))
    assert found.share == pytest.approx(1 / 3, abs=0.12)
    assert not found.same_rows


def test_the_same_source_is_found_with_other_columns(db: sa.Connection) -> None:
    data = people(400, seed=6)
    remember(db, "icu", tags(data, source="icu.csv"))
    expected = Match(dataset="icu", share=0.0, same_source=True, same_rows=False)
    assert matches(db, "ward", tags(data[:, :1], source="./icu.csv")) == [expected]


def test_no_source_is_not_the_same_source(db: sa.Connection) -> None:
    remember(db, "icu", tags(people(400, seed=7)))
    assert matches(db, "ward", tags(people(400, seed=8))) == []


def test_the_surest_match_comes_first(db: sa.Connection) -> None:
    data, other = people(400, seed=9), people(400, seed=10)
    parts = {"part": np.vstack([data[:150], other[150:]]), "most": np.vstack([data[:350], other[350:]])}
    for name, rows in parts.items():
        remember(db, name, tags(rows))
    remember(db, "place", tags(people(400, seed=11), source="x.csv"))
    remember(db, "copy", tags(data))
    found = matches(db, "icu", tags(data, source="x.csv"))
    assert [match.dataset for match in found] == ["copy", "place", "most", "part"]


def test_every_version_is_remembered(db: sa.Connection) -> None:
    versions = [people(400, seed=seed) for seed in (12, 13, 14)]
    for version in versions:
        remember(db, "icu", tags(version))
    for version in versions:
        (copy,) = matches(db, "ward", tags(version))
        assert copy.same_rows
        (part,) = matches(db, "ward", tags(version[1:]))
        assert part.share == pytest.approx(1 / 3, abs=0.12)


def test_remembering_twice_adds_nothing(db: sa.Connection) -> None:
    made = tags(people(400, seed=15), source="icu.csv")
    remember(db, "icu", made)
    assert count(db) == 258
    remember(db, "icu", made)
    assert count(db) == 258


def test_what_is_forgotten_is_gone(db: sa.Connection) -> None:
    made = tags(people(400, seed=16), source="icu.csv")
    for name in ("icu", "ward"):
        remember(db, name, made)
    forget(db, "icu")
    assert [match.dataset for match in matches(db, "new", made)] == ["ward"]
    assert count(db) == 258
    forget(db, "ward")
    assert count(db) == 0


def test_names_are_taken_as_they_are(db: sa.Connection) -> None:
    made = tags(people(400, seed=17))
    name = "it's; DROP TABLE fingerprints --"
    remember(db, name, made)
    assert [match.dataset for match in matches(db, "icu", made)] == [name]


def test_only_known_kinds_are_kept(db: sa.Connection) -> None:
    with pytest.raises(sa.exc.IntegrityError), db.begin_nested():
        db.exec_driver_sql("INSERT INTO fingerprints VALUES ('icu', 'key', 'x')")


def test_nothing_is_kept_but_tags(db: sa.Connection) -> None:
    data = np.array([[7777.25, 8888.5], *people(50, seed=18)])
    remember(db, "icu", tags(data, source="secret-place.csv"))
    kept = str(db.execute(sa.text("SELECT * FROM fingerprints")).all())
    for value in ("7777", "8888", "secret-place", KEY.hex()):
        assert value not in kept


def test_the_refusal_says_what_to_do_and_no_number() -> None:
    refusal = SameRecords("new ward", other="icu")
    assert str(refusal) == (
        "new ward: these are, wholly or in part, the records of icu. Data sets that share people share one account. "
        "Join it (wallflower budget declare 'new ward' --account icu --reason WHY), or say that these are other people "
        "(wallflower budget declare 'new ward' --apart icu --reason WHY)."
    )
    assert (refusal.exit_code, refusal.dataset, refusal.other) == (3, "new ward", "icu")
