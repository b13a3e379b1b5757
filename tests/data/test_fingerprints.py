"""The same records under another name are noticed, others are not, and tags without the key tell nothing."""

from __future__ import annotations

import hashlib
import hmac
import time
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from wallflower.data import Column, Points, Schema, Table, load
from wallflower.data.fingerprints import MAX_TWIN_RATE, MIN_COMMON_TAGS, SKETCH, Fingerprint, fingerprint, overlap
from wallflower.errors import ParameterError

KEY, OTHER_KEY = bytes(range(32)), bytes(range(1, 33))
WARDS = ("north", "south", "west")


def tag(data: object, *, schema: Schema | None = None, key: bytes = KEY) -> Fingerprint:
    return fingerprint(data if isinstance(data, Table | Points) else load(data, schema=schema), key)


def people(n: int, *, seed: int, width: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, width))


def mixed(n: int = 300, *, seed: int = 0) -> tuple[pa.Table, Schema]:
    """Numbers, labels and an identifier."""
    draw = np.random.default_rng(seed)
    columns = {
        "id": [f"p{number}" for number in range(n)],
        "age": draw.integers(0, 100, n),
        "ward": draw.choice(WARDS, n),
        "bmi": draw.normal(25, 4, n),
    }
    facts = (Column("id", identifier=True), Column("age"), Column("ward", categories=WARDS), Column("bmi"))
    return pa.table(columns), Schema(columns=facts)


# What does not count


def test_the_order_of_rows_does_not_count() -> None:
    table, schema = mixed()
    shuffled = table.take(np.random.default_rng(1).permutation(table.num_rows))
    assert tag(shuffled, schema=schema) == tag(table, schema=schema)


def test_the_order_and_the_names_of_columns_do_not_count() -> None:
    table, schema = mixed()
    words = {"id": "number", "age": "years", "ward": "a", "bmi": "z"}
    order = ["bmi", "ward", "id", "age"]
    facts = {column.name: column for column in schema.columns or ()}
    stated = [replace(facts[name], name=words[name]) for name in order]
    renamed = table.select(order).rename_columns([words[name] for name in order])
    assert tag(renamed, schema=Schema(columns=tuple(stated))) == tag(table, schema=schema)


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(5, 1)], ids=str)
def test_how_a_number_is_kept_does_not_count(kind: pa.DataType) -> None:
    whole = pa.array(range(100), type=pa.int64())
    kept = whole.cast(pa.string()).cast(kind)
    assert tag(pa.table({"x": kept})) == tag(pa.table({"x": whole}))


def test_how_a_number_is_written_does_not_count(tmp_path: Path) -> None:
    spellings = {"plain": ("1", "-2", "0"), "points": ("1.0", "-2.00", "-0.0"), "powers": ("10e-1", "-2e0", "+0")}
    tags = set()
    for name, cells in spellings.items():
        path = tmp_path / f"{name}.csv"
        path.write_text("x\n" + "\n".join(cells) + "\n")
        tags.add(tag(path))
    assert len(tags) == 1


def test_whether_a_number_is_called_a_label_does_not_count() -> None:
    table = pa.table({"x": [0, 1, 1, 0, 1], "y": [0.5, 1.5, 2.5, 3.5, 4.5]})
    labels = Schema(columns=(Column("x", categories=(1, 0)), Column("y")))
    assert tag(table, schema=labels) == tag(table)


def test_the_order_of_categories_and_ones_that_do_not_occur_do_not_count() -> None:
    table = pa.table({"ward": ["north", "south", "north"]})
    orders = [("north", "south"), ("west", "south", "north")]
    tags = {tag(table, schema=Schema(columns=(Column("ward", categories=order),))) for order in orders}
    assert len(tags) == 1


def test_bounds_and_scales_do_not_count_where_the_table_is_known() -> None:
    values = pa.table({"x": [1.0, 2.0, 40.0], "y": [3.0, 5.0, 8.0]})
    scaled = load(values, schema=Schema.of(["x", "y"], bounds={"x": (0, 10)}, scale={"y": 3}, clip=True))
    assert tag(scaled) == tag(scaled.points()) == tag(values)
    assert tag(scaled.points(["y"])) == tag(values.select(["y"]))


def test_points_of_an_array_are_its_table() -> None:
    array = people(50, seed=2)
    assert tag(Points.from_array(array)) == tag(array)


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=2, max_size=8), st.randoms())
def test_tables_of_the_same_rows_are_the_same(rows: list[tuple[int, int]], shuffle: object) -> None:
    again = list(rows)
    shuffle.shuffle(again)  # type: ignore[attr-defined]
    assert tag(np.array(again, dtype=float)) == tag(np.array(rows)[:, ::-1])


# What does


def test_one_cell_of_any_kind_changes_the_rows() -> None:
    table, schema = mixed()
    tags = {tag(table, schema=schema).rows}
    for name, cell in {"id": "p-other", "age": 101, "ward": "none", "bmi": 0.0}.items():
        cells = table[name].to_pylist()
        cells[7] = next(ward for ward in WARDS if ward != cells[7]) if name == "ward" else cell
        changed = table.set_column(table.column_names.index(name), name, pa.array(cells))
        tags.add(tag(changed, schema=schema).rows)
    assert len(tags) == 5


def test_the_last_bit_of_a_number_counts() -> None:
    assert tag(np.array([[1.0], [2.0]])).rows != tag(np.array([[1.0], [np.nextafter(2.0, 3.0)]])).rows


def test_how_often_a_row_occurs_counts() -> None:
    assert tag(np.array([[1], [1], [2]])).rows != tag(np.array([[1], [2], [2]])).rows


def test_where_rows_end_counts() -> None:
    assert tag(np.zeros((2, 3))).rows != tag(np.zeros((3, 2))).rows


def test_cells_belong_to_their_row() -> None:
    assert tag(np.array([[1, 2], [3, 4]])).rows != tag(np.array([[1, 4], [3, 2]])).rows


def test_labels_are_told_apart_by_their_text() -> None:
    schema = Schema(
        columns=(Column("ward", categories=(*WARDS, "nan", "inf", "9007199254740993", "9007199254740992")),)
    )
    labels = [*WARDS, "nan", "inf", "9007199254740993", "9007199254740992"]
    assert len({tag(pa.table({"ward": [label] * 2}), schema=schema).rows for label in labels}) == len(labels)


def test_a_missing_identifier_is_no_accident() -> None:
    schema = Schema(columns=(Column("id", identifier=True),))
    assert tag(pa.table({"id": ["a", None]}), schema=schema) == tag(pa.table({"id": ["", "a"]}), schema=schema)


# Parts in common


@pytest.mark.parametrize("n", [100, 1000, 20_000])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_the_share_in_common_is_estimated(n: int, share: float) -> None:
    common = round(2 * n * share / (1 + share))  # of n and n, so that the share of both is `share`
    one, rest = people(n, seed=3), people(n, seed=4)
    found = overlap(tag(one), tag(np.vstack([one[:common], rest[common:]])))
    assert found == pytest.approx(share, abs=4 * (share * (1 - share) / SKETCH) ** 0.5 + 1 / n)
    assert found == overlap(tag(np.vstack([one[:common], rest[common:]])), tag(one))


def test_estimates_are_not_off_on_average() -> None:
    found = []
    for seed in range(100):
        one, rest = people(600, seed=2 * seed), people(600, seed=2 * seed + 1)
        found.append(overlap(tag(one), tag(np.vstack([one[:300], rest[300:]]))))
    error = (1 / 3 * 2 / 3 / SKETCH / len(found)) ** 0.5
    assert np.mean(found) == pytest.approx(1 / 3, abs=4 * error)
    assert not np.isclose(np.mean(found), 1 / 2, atol=4 * error)


def test_a_table_that_grew_is_noticed() -> None:
    one, more = people(5000, seed=5), people(500, seed=6)
    assert overlap(tag(one), tag(np.vstack([more, one]))) == pytest.approx(10 / 11, abs=0.08)


def test_a_small_table_with_one_record_less_is_noticed() -> None:
    one = people(30, seed=7)
    assert overlap(tag(one), tag(one[1:])) == pytest.approx(29 / 30)


def test_one_row_that_occurs_very_often_takes_nothing_from_the_others() -> None:
    one, zeros = people(300, seed=8), np.zeros((200, 2))
    assert overlap(tag(np.vstack([zeros, one])), tag(np.vstack([one[:200], zeros]))) == pytest.approx(2 / 3, abs=0.12)


def test_equal_tables_share_all_even_of_few_kinds_of_rows() -> None:
    flips = np.random.default_rng(9).integers(0, 2, (1000, 1))
    assert tag(flips).least == ()
    assert overlap(tag(flips), tag(flips[::-1])) == 1.0


# Nothing in common


def test_others_have_nothing_in_common() -> None:
    tags = [tag(people(500, seed=seed)) for seed in range(20)]
    assert {overlap(one, other) for one in tags for other in tags if one is not other} == {0.0}


@pytest.mark.parametrize("kinds", [2, 10, 100, 1000, 10_000, 100_000])
def test_rows_that_coincide_by_chance_are_no_match(kinds: int) -> None:
    for seed in range(10):
        draw = np.random.default_rng(seed)
        sizes = (1000, 1010)  # unequal, or two heaps of coins may hold as many heads
        one, other = (tag(draw.integers(0, kinds, (n, 1))) for n in sizes)
        assert overlap(one, other) == 0.0


def test_ages_and_answers_are_no_match() -> None:
    def answers(seed: int, n: int) -> np.ndarray:
        draw = np.random.default_rng(seed)
        return np.column_stack([draw.integers(18, 90, n), draw.integers(0, 2, (n, 3))])

    tags = [tag(answers(seed, 400 + seed)) for seed in range(10)]
    assert {overlap(one, other) for one in tags for other in tags if one is not other} == {0.0}


def test_the_size_of_a_population_where_chance_is_worst_gives_no_match() -> None:
    """About seven twins and seven common rows expected: rarely are the former absent and the latter many."""
    n, kinds, alarms, sketches = 100, 1430, 0, 0
    draw = np.random.default_rng(10)
    for _ in range(300):
        one, other = (tag(draw.integers(0, kinds, (n, 1)).astype(float)) for _ in range(2))
        alarms, sketches = alarms + (overlap(one, other) > 0), sketches + bool(one.least and other.least)
    assert alarms == 0
    assert sketches < 6


def chance(n: int, enough: int) -> float:
    """The worst chance that two samples of n show few twins and many common rows, over sizes of their population."""
    twins = np.linspace(0, 200, 2001)  # expected inside both tables; no more rows than these are common
    allowed, sampled = n // (2 * MAX_TWIN_RATE), min(1.0, SKETCH / (2 * n))
    without = stats.poisson.cdf(allowed, twins / 2) ** 2
    return float((without * stats.poisson.sf(enough - 1, twins * sampled)).max())


def test_chance_is_below_what_the_docstring_says() -> None:
    sizes = [20, 100, 128, 200, 250, 300, 400, 600, 1000, 2000, 5000, 10_000, 100_000]
    assert max(chance(n, MIN_COMMON_TAGS) for n in sizes) < 1e-4
    assert max(chance(n, MIN_COMMON_TAGS // 2) for n in sizes) > 1e-4


# Keys and sources


def test_another_key_gives_unrelated_tags() -> None:
    data = people(300, seed=11)
    one, other = tag(data), tag(data, key=OTHER_KEY)
    assert overlap(one, other) == 0.0
    assert one.rows != other.rows
    assert not set(one.least) & set(other.least)


@pytest.mark.parametrize("key", [b"", b"short", bytes(31), bytes(33)])
def test_a_key_has_its_length(key: bytes) -> None:
    with pytest.raises(ParameterError, match="32 bytes"):
        tag(people(10, seed=0), key=key)


def hashes(key: bytes, guess: bytes) -> set[str]:
    """What somebody could make of a guessed row or table, as long as tags are."""
    made = {
        hashlib.sha256(key + guess).hexdigest(),
        hmac.digest(key, guess, "sha256").hex(),
        blake2b(guess, key=key, digest_size=16).hexdigest(),
        blake2b(guess, key=key, digest_size=64).hexdigest(),
    }
    return {text[:length] for text in made for length in (32, 64)}


def test_only_with_the_key_can_a_guess_be_tried() -> None:
    """Whoever has the tags and the code and knows every row finds none of them; the key would find them all."""
    data = people(20, seed=12)
    made = tag(data)
    kept = {made.rows, *made.least}
    rows = np.sort(data.view(np.uint64), axis=1)
    whole = rows[np.lexsort(rows.T[::-1])].tobytes()
    guesses = [whole, (2).to_bytes(8, "little") + whole, *(row.tobytes() for row in rows)]
    purposes = [f"wallflower/fingerprint/1/{purpose}".encode() for purpose in ("row", "rows")]
    public = [b"", bytes(32), *purposes, *(hmac.digest(bytes(32), purpose, "sha256") for purpose in purposes)]
    private = [hmac.digest(KEY, purpose, "sha256") for purpose in purposes]
    assert not set().union(*(hashes(key, guess) for key in public for guess in guesses)) & kept
    assert set().union(*(hashes(key, guess) for key in private for guess in guesses)) >= kept


def test_kinds_of_tags_never_meet() -> None:
    row = np.array([[1.5, 2.5]] + [[float(k), -1.0] for k in range(9)])
    made = fingerprint(load(row), KEY, source=str(Path.cwd()))
    assert made.source not in {made.rows, *made.least}
    assert {len(text) for text in made.least} == {32}
    assert len(made.rows) == len(made.source or "") == 64


def test_least_tags_are_the_least() -> None:
    made = tag(people(5000, seed=13))
    assert list(made.least) == sorted(set(made.least))
    assert len(made.least) == SKETCH
    assert made.least[-1] < f"{round(2 * SKETCH / 5000 * 2**32):08x}"


def test_a_repr_shows_no_tag() -> None:
    made = fingerprint(load(people(10, seed=14)), KEY, source="icu.csv")
    assert repr(made) == "Fingerprint()"


def test_a_source_is_where_links_lead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = load(people(10, seed=15))
    file, link = tmp_path / "icu.csv", tmp_path / "ward.csv"
    file.touch()
    link.symlink_to(file)
    monkeypatch.chdir(tmp_path)
    places = (file, str(link), "icu.csv", "./x/../icu.csv")
    assert len({fingerprint(table, KEY, source=place).source for place in places}) == 1
    assert fingerprint(table, KEY, source="other.csv").source != fingerprint(table, KEY, source=file).source
    assert fingerprint(table, KEY).source is None


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("postgresql://ana:secret@host/db?table=icu", "postgresql://bo:pass@word@host/db?table=icu", True),
        ("postgresql+psycopg://host/db?table=icu", "postgresql://host/db?table=icu", True),
        ("postgresql://host/db?table=icu", "postgresql://host/db?table=ward", False),
        ("postgresql://host/db?sql=SELECT '@a'", "postgresql://host/db?sql=SELECT '@b'", False),
        ("sqlite:///x/../icu.db?table=icu", "sqlite:///icu.db?table=icu", True),
        ("sqlite:///icu.db?table=icu", "duckdb:///icu.db?table=icu", False),
    ],
)
def test_a_database_is_known_without_its_users(one: str, other: str, same: bool) -> None:
    table = load(people(10, seed=16))
    assert (fingerprint(table, KEY, source=one).source == fingerprint(table, KEY, source=other).source) is same


# Time


def test_a_table_of_usual_size_takes_no_time() -> None:
    table = load(people(1000, seed=17))
    tag(table)
    start = time.process_time()
    tag(table)
    assert time.process_time() - start < 0.1


@pytest.mark.slow
def test_a_million_rows_take_seconds() -> None:
    table = load(people(10**6, seed=18))
    start = time.process_time()
    assert len(tag(table).least) == SKETCH
    assert time.process_time() - start < 15
