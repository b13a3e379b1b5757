"""Bring the rows of each person together: one record per person, or at most a few rows of each.

Everything here is a function of one person's rows at a time. A rolled-up record is computed from the rows with one
identifier and from no other row, whatever order the source is read in, so replacing a person replaces one record (Y1).
Which rows `max_rows` keeps is decided by secret random numbers and by how many rows a person has, never by what is in
them, so replacing a person's kept rows replaces at most that many records (Y2). Proofs: proof.md of `ledger`.
"""

from __future__ import annotations

import os
import tempfile
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Final, Literal, NamedTuple, Protocol, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from wallflower.data.cells import fit_cells, is_text
from wallflower.data.sources.files import read, select
from wallflower.data.sources.texts import MISSING
from wallflower.engines.local import FOLDER as SCRATCH_FOLDER
from wallflower.errors import DataError, ParameterError
from wallflower.machine.heavy import pyarrow as _pa
from wallflower.machine.heavy import pyarrow_compute as _compute
from wallflower.machine.heavy import pyarrow_types as _types
from wallflower.machine.jit import kernel
from wallflower.schema import Column, Schema, WayToRead
from wallflower.schema.column import is_identifier_like
from wallflower.schema.columns import EXACT_BELOW, call_or_refuse, float_array, numbers_of, text_array
from wallflower.schema.person import LABEL_AGGREGATES, UNBOUNDED_AGGREGATES, Person
from wallflower.text import Message, t

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Bytes = NDArray[np.uint8]

ROWS_PER_PART: Final = 1 << 24  # rows that a roll-up holds in memory at a time
ROWS_AT_A_TIME: Final = 1 << 16  # rows whose cells are checked at a time, so that they stay in the cache
SHORT_SEGMENT: Final = 32  # rows of a person up to which insertion sorts fastest
SHORT_TEXT_BYTES: Final = 15  # of an identifier that two machine words hold, with its length
MAX_TEXT_BYTES: Final = 1 << 30  # of a column whose texts are held in one piece
_FIRST_CODES: Final = 1 << 12  # different identifiers that are made room for at first
_INVISIBLE: Final = ("Cc", "Cf")  # categories of Unicode: control characters and those that only format
_UNUSUAL: Final = r"[^ -~]|  "  # what is not plain ASCII: other letters, control characters, several spaces
_EXACT_BELOW: Final = {
    16: 2.0**11,
    32: 2.0**24,
    64: float(EXACT_BELOW),
}  # by bits of a float: whole numbers below are exact
_DECIMAL_POINT: Final = r"^([+-]?[0-9]+)\.0*$"  # a whole number that somebody stored as floating point


class PersonRows:
    """The rows of a table by person: `codes` says whose each row is, `starts` where each person begins in `order`."""

    def __init__(self, identifiers: Any, person: Person) -> None:
        self.codes, self.ids, sizes = _encode_identifiers(identifiers, person)
        self.starts: Ints = np.concatenate([[0], np.cumsum(sizes)])

    @property
    def people(self) -> int:
        """The number of people."""
        return len(self.ids)

    @property
    def sizes(self) -> Ints:
        """The number of rows of each person."""
        return np.diff(self.starts)

    @cached_property
    def places(self) -> Ints:
        """The place of each row in `order`."""
        return np.asarray(_places_of_rows(self.codes, self.starts))

    @cached_property
    def order(self) -> Ints:
        """Rows person after person, those of one person in their order."""
        order = np.empty(len(self.codes), dtype=np.int64)
        order[self.places] = np.arange(len(order))
        return order


def roll_up(table: Any, schema: Schema, *, ordered: bool = True) -> Any:
    """Make one record of the rows of each person, as an Arrow table; the schema describes the records.

    table   rows with the columns that `Person.source_columns` names
    schema  with `person.rollup`, and the bounds of the records
    ordered the source has an order of its own: without one, `first` and `last` need a column that orders rows
    """
    person = _person_of(schema)
    _require_order(person, ordered)
    return _roll_up(PersonRows(table[person.id], person), SourceRows(table, schema), schema)


def roll_up_chunks(chunks: Iterable[Any], schema: Schema, *, rows: int, ordered: bool) -> Iterator[Any]:
    """Roll up a source that is read in chunks: rows are first parted by identifier, so that memory holds one part.

    A part has all rows of its people. Which part a person is in follows from the identifier alone. Chunks of one column
    may differ in type (those of SQLite do), so cells are held to the schema before they are parted.
    """
    person = _person_of(schema)
    _require_order(person, ordered)
    count, kinds = max(1, -(-rows // ROWS_PER_PART)), set[str]()
    with _Parts(count) as parts:
        for chunk in chunks:
            fitted, kind = _fit_rows(chunk, schema)
            kinds.add(kind)
            if len(kinds) > 1:
                raise _no_order(person)
            for number, part in _split(fitted, _part_of(fitted[person.id], count), count):
                parts.write(number, part)
        for table in parts.tables():
            yield _roll_up(PersonRows(table[person.id], person), FittedRows(table, person), schema)


class Rows(Protocol):
    """The cells of rows that are to be rolled up."""

    def parts(self, name: str, aggregate: str) -> Iterator[Floats]:
        """The numbers of a column, or the codes of its labels, some rows at a time."""
        ...

    @property
    def ranks(self) -> Ints:
        """Numbers that order rows as the stated column does, or as the source."""
        ...


class SourceRows:
    """Cells as a source has them, held to the schema some rows at a time, so that temporary arrays stay small."""

    def __init__(self, table: Any, schema: Schema) -> None:
        self._table, self._schema, self._person = table, schema, _person_of(schema)

    def parts(self, name: str, aggregate: str) -> Iterator[Floats]:
        facts, cells = _row_facts(_source_facts(self._schema, name), aggregate), self._table[name]
        for start in range(0, len(cells), ROWS_AT_A_TIME):
            fitted = fit_cells(cells.slice(start, ROWS_AT_A_TIME), facts, self._schema.clip)
            yield numbers_of(fitted.indices if facts.categories is not None else fitted).astype(np.float64, copy=False)

    @cached_property
    def ranks(self) -> Ints:
        if self._person.order is None:
            return np.arange(self._table.num_rows)
        return _rank(order_keys(self._table[self._person.order], self._person))


class FittedRows:
    """Cells that were held to the schema chunk by chunk: `_fit_rows` made the columns."""

    def __init__(self, table: Any, person: Person) -> None:
        self._table, self._person = table, person

    def parts(self, name: str, aggregate: str) -> Iterator[Floats]:
        column = self._table[_fitted_name(name)]
        yield from (numbers_of(chunk) for chunk in column.chunks)

    @cached_property
    def ranks(self) -> Ints:
        if self._person.order is None:
            return np.arange(self._table.num_rows)
        return _rank(
            OrderKeys("number", *(numbers_of(self._table[name]) for name in ("order whole", "order fraction")))
        )


def _fit_rows(chunk: Any, schema: Schema) -> tuple[Any, str]:
    """Cells of a chunk in types that do not depend on the chunk, and whether rows are ordered by numbers or moments."""
    person, kind = _person_of(schema), ""
    columns = {person.id: plain_identifiers(chunk[person.id], person.id)}
    if person.order is not None:
        keys = order_keys(chunk[person.order], person)
        kind, columns["order whole"], columns["order fraction"] = keys.kind, _pa.array(keys.whole), _pa.array(keys.rest)
    rows = SourceRows(chunk, schema)
    for name, aggregate in (person.rollup or {}).items():
        if aggregate != "count":
            parts = [*rows.parts(name, aggregate), np.empty(0)]
            columns[_fitted_name(name)] = float_array(np.concatenate(parts))
    return _pa.table(columns), kind


def _fitted_name(name: str) -> str:
    """A column's name in a part: no other column is called so."""
    return f"cells {name}"


def _require_order(person: Person, ordered: bool) -> None:
    if person.order is None and not ordered and {"first", "last"} & set((person.rollup or {}).values()):
        raise ParameterError(
            "person.rollup: this source has no order of its own, and `first` and `last` need one. State `order` in "
            "[person], the column that orders the rows of a person."
        )


def _roll_up(groups: PersonRows, rows: Rows, schema: Schema) -> Any:
    person = _person_of(schema)
    columns = {column.name: column for column in record_schema(schema).columns or ()}
    records = {person.id: groups.ids}
    for name, aggregate in (person.rollup or {}).items():
        if aggregate == "count":
            records[name] = float_array(groups.sizes.astype(np.float64))
        else:
            records[name] = _aggregate(name, aggregate, rows, columns[name], groups)
    return _pa.table(records)


class _Parts:
    """Arrow tables by part: one part in memory, several in scratch files without names, which go with the process."""

    def __init__(self, parts: int) -> None:
        self._stack, self._writers, self._tables = ExitStack(), dict[int, Any](), list[Any]()
        folder = os.environ.get(SCRATCH_FOLDER)
        make = partial(tempfile.TemporaryFile, dir=folder)
        self._files = [self._stack.enter_context(make()) for _ in range(parts if parts > 1 else 0)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def write(self, number: int, table: Any) -> None:
        if not self._files:
            self._tables.append(table)
            return
        if number not in self._writers:
            self._writers[number] = _pa.ipc.new_stream(self._files[number], table.schema)
        self._writers[number].write_table(table)

    def tables(self) -> Iterator[Any]:
        """Return each part that has rows, whole."""
        if self._tables:
            yield _pa.concat_tables(self._tables)
        for number, writer in sorted(self._writers.items()):
            writer.close()
            self._files[number].seek(0)
            with _pa.ipc.open_stream(self._files[number]) as stream:
                yield stream.read_all()


def _split(table: Any, part: Ints, parts: int) -> Iterator[tuple[int, Any]]:
    """The rows of each part, in their order."""
    if parts == 1:
        yield 0, table
        return
    by_part = table.take(_pa.array(np.argsort(part, kind="stable")))
    ends = np.cumsum(np.bincount(part, minlength=parts)).tolist()
    for number, (start, end) in enumerate(pairwise([0, *ends])):
        if start < end:
            yield number, by_part.slice(start, end - start)


def _part_of(identifiers: Any, parts: int) -> Ints:
    """The part of each row: a checksum of its normalised identifier. Rows without one go to one part."""
    if parts == 1:
        return np.zeros(len(identifiers), dtype=np.int64)
    spans, letters = _spans_and_letters(_compute.fill_null(_combine(identifiers), ""))
    return np.asarray(_checksums(letters, spans, parts))


def choose_rows(groups: PersonRows, max_rows: int, order: Callable[[int, int], Ints]) -> Ints:
    """Choose at most `max_rows` rows of each person by a secret random order of all rows, whatever is in them.  (Y2)

    order  returns that many different row numbers below a bound, in random order (`noise.sample` of a release)

    >>> identifiers = text_array(["a", "b", "a", "a"])
    >>> groups = PersonRows(identifiers, Person(id="name", max_rows=2))
    >>> choose_rows(groups, 2, lambda bound, size: np.arange(size)).tolist()
    [0, 1, 2]
    """
    rows = len(groups.order)
    rank = np.empty(rows, dtype=np.int64)
    rank[order(rows, rows)] = np.arange(rows)
    shuffled = groups.order[_argsort_segments(rank[groups.order], groups.starts)]
    place_within_person = np.arange(rows) - np.repeat(groups.starts[:-1], groups.sizes)
    return np.sort(shuffled[place_within_person < max_rows])


def record_schema(schema: Schema) -> Schema:
    """Return the schema of the records that `roll_up` makes: dates are numbers by then, and no cell is missing.

    Columns of a second table keep their facts, since they are joined to the records and not rolled up.

    >>> person = Person(id="patient", rollup={"visits": "count"})
    >>> record_schema(Schema(columns=(Column("visits", low=0, high=20),), person=person)).names
    ('patient', 'visits')
    """
    person, joined = schema.person, () if schema.join is None else schema.join.columns or ()
    schema = replace(schema, join=None)
    if person is None:
        return schema
    if person.rollup is None:
        stated = schema.columns
        if stated is None or person.id in (schema.names or ()):
            return schema
        return replace(schema, columns=(Column(person.id, identifier=True), *stated))
    columns = [Column(person.id, identifier=True)]
    for name, aggregate in person.rollup.items():
        facts = _source_facts(schema, name)
        if aggregate in UNBOUNDED_AGGREGATES and (facts.low is None or facts.high is None):
            raise ParameterError(
                f"person.rollup: {aggregate} of column {name!r} grows with the number of rows. State its low and high "
                "in the schema; larger values are clipped or refused."
            )
        if facts.categories is not None and aggregate not in LABEL_AGGREGATES:
            raise ParameterError(
                f"person.rollup: column {name!r} has labels, which take {', '.join(LABEL_AGGREGATES)}. "
                "Correct the schema."
            )
        columns.append(
            replace(facts, unit=None, since=None, layout=None, missing=None, integer=_stays_whole(facts, aggregate))
        )
    return replace(schema, columns=(*columns, *(_source_facts(schema, name) for name in joined)))


def most_rows_of_one(source: object, column: str, **written: Unpack[WayToRead]) -> int:
    """Return the largest number of rows that share one identifier. It depends on records: for the data steward only."""
    _, wanted = select(Schema(columns=(Column(column, identifier=True),)).but_read(written))
    rows = PersonRows(read(source, wanted).table[column], Person(id=column, max_rows=1))
    return int(rows.sizes.max(initial=0))


def count_repeats(table: Any, schema: Schema) -> dict[str, int]:
    """Return identifiers that several rows of an Arrow table share, with the largest number of rows that share one.

    Identifiers are columns that the schema declares as such, or that are called so. The numbers depend on records: they
    are for the data steward only. Nothing is returned where the schema says whom the budget protects.
    """
    if schema.person is not None or schema.protects is not None:
        return {}
    likely = [c.name for c in schema.columns or () if c.kind == "identifier" or is_identifier_like(c.name)]
    repeats = {}
    for name in likely:
        with suppress(DataError):  # numbers that are not whole identify nobody
            sizes = PersonRows(table[name], Person(id=name, max_rows=1)).sizes
            repeats[name] = int(sizes.max(initial=0))
    return {name: rows for name, rows in repeats.items() if rows > 1}


def repeat_notice(column: str, rows: int) -> Message:
    """Return what a data steward is told of an identifier that repeats.

    >>> repeat_notice("patient_no", 20)
    'patient_no repeats, up to 20 rows: a row is not a person. Declare [person] or accept the unit row.'
    """
    return t(
        "{column} repeats, up to {rows:,} rows: a row is not a person. Declare [person] or accept the unit row.",
        column=column,
        rows=rows,
    )


def _person_of(schema: Schema) -> Person:
    assert schema.person is not None
    return schema.person


def _source_facts(schema: Schema, name: str) -> Column:
    return next((column for column in schema.columns or () if column.name == name), Column(name))


def _row_facts(column: Column, aggregate: str) -> Column:
    """The facts that single rows are held to: bounds of a sum are those of the record, not of a row."""
    return replace(column, low=None, high=None) if aggregate in UNBOUNDED_AGGREGATES else column


def _stays_whole(column: Column, aggregate: str) -> bool:
    return column.integer and aggregate not in ("mean", "median")


def _encode_identifiers(cells: Any, person: Person) -> tuple[NDArray[Any], Any, Ints]:
    """A code for each row, and the identifier of each code, as it is compared, with its number of rows."""
    codes, spellings = _encode(_as_short_strings(cells), person.id)
    people, ids = _encode(plain_identifiers(spellings, person.id), person.id)
    codes = np.append(people, np.int32(-1))[codes]
    alone = np.flatnonzero(codes < 0)
    if len(alone) and person.missing_id == "refuse":
        raise DataError(
            f"column {person.id!r} has rows without an identifier, which the schema refuses. Complete them, or state "
            'missing_id = "own": each such row is then a person of its own.',
            column=person.id,
        )
    codes[alone] = len(ids) + np.arange(len(alone))
    names = _pa.concat_arrays([ids, text_array([None] * len(alone))])
    sizes = np.zeros(len(names), dtype=np.int64)
    _count_codes(codes, sizes)
    used = sizes > 0
    if used.all():
        return codes, names, sizes
    # A category without a row is nobody.
    return (np.cumsum(used) - 1)[codes], names.take(_pa.array(np.flatnonzero(used))), sizes[used]


def _encode(cells: Any, name: str) -> tuple[Codes, Any]:
    """The code of each cell, -1 where it is missing, and the cell of each code, by first appearance."""
    if _types.is_string(cells.type) and (texts := _ShortTexts.encode(cells)) is not None:
        return texts
    coded = call_or_refuse(lambda: _combine(cells.dictionary_encode()), lambda _: _no_identifiers(name))
    return numbers_of(_compute.fill_null(coded.indices, -1)), coded.dictionary


class _ShortTexts:
    """Codes of texts that are short, as identifiers are.

    Two machine words hold such a text with its length, so that texts are compared as numbers: half the processor time
    of a dictionary of Arrow, which follows each text to its place in memory.
    """

    def __init__(self) -> None:
        self._slots = np.full(4 * _FIRST_CODES, -1, dtype=np.int32)  # a hash table of a power of 2 slots
        self._words = np.empty((2 * _FIRST_CODES, 2), dtype=np.uint64)
        self._count = 0

    @classmethod
    def encode(cls, cells: Any) -> tuple[Codes, Any] | None:
        """The code of each cell, -1 where it is missing, and the text of each code; None if a text is long."""
        codes, start, texts = np.full(len(cells), -1, dtype=np.int32), 0, cls()
        for chunk in cells.chunks if isinstance(cells, _pa.ChunkedArray) else [cells]:
            spans, letters = _spans_and_letters(chunk)
            if len(chunk) and int(np.diff(spans).max()) > SHORT_TEXT_BYTES:
                return None
            texts._encode(spans, letters, _missing_rows(chunk), codes[start : start + len(chunk)])
            start += len(chunk)
        return codes, texts._texts()

    def _encode(self, spans: Codes, letters: Bytes, is_missing: Bytes, codes: Codes) -> None:
        texts, row = np.empty((len(codes), 2), dtype=np.uint64), 0
        _pack_texts(spans, letters, texts)
        while row < len(codes):
            row, self._count = _encode_words(texts, is_missing, self._slots, self._words, self._count, codes, row)
            if row < len(codes):  # half of the slots are taken
                self._words = np.concatenate([self._words, np.empty_like(self._words)])
                self._slots = np.full(2 * len(self._words), -1, dtype=np.int32)
                _fill_slots(self._slots, self._words, self._count)

    def _texts(self) -> Any:
        written = self._words[: self._count].astype("<u8").view(np.uint8).reshape(-1, SHORT_TEXT_BYTES + 1)
        sizes = written[:, SHORT_TEXT_BYTES].astype(np.int32)
        letters = written[:, :SHORT_TEXT_BYTES][np.arange(SHORT_TEXT_BYTES) < sizes[:, None]]
        ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        buffers = [None, _pa.py_buffer(ends.tobytes()), _pa.py_buffer(letters.tobytes())]
        return _pa.Array.from_buffers(_pa.string(), self._count, buffers)


def _missing_rows(cells: Any) -> Bytes:
    """Which cells are missing; nothing if none is."""
    missing: Bytes = numbers_of(cells.is_null().cast(_pa.uint8())) if cells.null_count else np.zeros(0, "u1")
    return missing


def _spans_and_letters(texts: Any) -> tuple[Codes, Bytes]:
    """Where each text begins and ends, and the bytes of all of them."""
    if not len(texts):
        return np.zeros(1, dtype=np.int32), np.zeros(0, dtype=np.uint8)
    _, ends, letters = texts.buffers()
    spans = np.frombuffer(ends, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return spans, np.frombuffer(letters or b"", dtype=np.uint8)


def plain_identifiers(cells: Any, name: str) -> Any:
    """Identifiers as they are compared, as one Arrow array of text; missing ones are null.

    Case, spaces around and several spaces within, invisible characters, compatible Unicode forms and the way a whole
    number is stored (12, 12.0, '12', '12.0') do not make another person; leading zeros do. Floating-point numbers that
    are not whole, or so large that they may have been rounded, are refused: two people could share one.
    """
    whole = _combine(cells)
    texts = call_or_refuse(lambda: _identifier_texts(whole, name), lambda _: _no_identifiers(name))
    plain = _compute.utf8_trim_whitespace(_compute.utf8_lower(texts))
    plain = plain if _is_plain(plain) else _fold_unusual(texts, plain)
    if _compute.any(_compute.match_substring(plain, ".")).as_py():
        plain = _compute.replace_substring_regex(plain, _DECIMAL_POINT, r"\1")
    is_missing = _compute.is_in(plain, value_set=text_array(MISSING))
    if not _compute.any(is_missing).as_py():
        return plain
    return _compute.if_else(is_missing, text_array([None])[0], plain)


def _is_plain(texts: Any) -> bool:
    """Whether all letters are printable ASCII, and no two spaces are side by side, be it those of two texts."""
    spans, buffer = _spans_and_letters(texts)
    letters = buffer[spans[0] : spans[-1]]
    if not len(letters):
        return True
    is_space = letters == ord(" ")
    return bool(letters.min() >= ord(" ") and letters.max() <= ord("~") and not (is_space[1:] & is_space[:-1]).any())


def _fold_unusual(texts: Any, plain: Any) -> Any:
    """Bring texts that are not plain ASCII to one form, and leave the others as they are."""
    is_unusual = _compute.match_substring_regex(texts, _UNUSUAL)
    folded = text_array(None if text is None else fold_text(text) for text in texts.filter(is_unusual).to_pylist())
    return _compute.replace_with_mask(plain, _compute.fill_null(is_unusual, False), folded)


def fold_text(text: str) -> str:
    """Return the one form of all ways to write a text: small letters, without invisible characters, single spaces.

    >>> fold_text(" Strau\u00df\u200b  1"), fold_text("STRAUSS 1")
    ('strauss 1', 'strauss 1')
    """
    for _ in range(2):  # a small letter may have a compatible form of its own, and that another small letter
        text = unicodedata.normalize("NFKC", text).casefold()
    if not text.isprintable():
        text = "".join(
            letter for letter in text if letter.isspace() or unicodedata.category(letter) not in ("Cc", "Cf")
        )
    return " ".join(unicodedata.normalize("NFKC", text).split())


def _identifier_texts(cells: Any, name: str) -> Any:
    """Identifiers as text, whatever type a source has them in."""
    if _types.is_dictionary(cells.type):
        cells = cells.cast(cells.type.value_type)
    if isinstance(cells.type, _pa.BaseExtensionType):
        cells = cells.cast(cells.type.storage_type) if hasattr(cells, "cast") else cells.storage
    if _types.is_floating(cells.type):
        exact_below = _EXACT_BELOW[cells.type.bit_width]
        values = _compute.if_else(_compute.is_nan(cells), None, cells.cast(_pa.float64()))
        is_whole = _compute.and_(
            _compute.equal(_compute.floor(values), values), _compute.less(_compute.abs(values), exact_below)
        )
        if not _compute.all(is_whole).as_py() and len(values) > values.null_count:
            raise _no_identifiers(name)
        cells = values.cast(_pa.int64())
    if _types.is_fixed_size_binary(cells.type):  # UUIDs, written as other sources write them
        return text_array(
            None if cell is None else _write_uuid(cell.hex()) if len(cell) == 16 else cell.hex()
            for cell in cells.to_pylist()
        )
    return cells.cast(_pa.string())


def _write_uuid(digits: str) -> str:
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _no_identifiers(name: str) -> DataError:
    return DataError(
        f"column {name!r} is to identify people and holds floating-point numbers that are not whole or may have been "
        "rounded (2**53 or more; 2**24 in single precision), or cells that are not text: two people could share one. "
        "Write identifiers as text or as integers.",
        column=name,
    )


def _as_short_strings(cells: Any) -> Any:
    """Texts of any type as one type, if that can hold them; other cells as they are."""
    if _types.is_dictionary(cells.type) or not is_text(cells.type) or cells.nbytes > MAX_TEXT_BYTES:
        return cells
    return cells.cast(_pa.string())


def _combine(cells: Any) -> Any:
    return cells.combine_chunks() if isinstance(cells, _pa.ChunkedArray) else cells


class OrderKeys(NamedTuple):
    """What orders rows: numbers (or microseconds) rounded down, and the fraction that was cut off."""

    kind: Literal["number", "moment"]
    whole: Ints
    rest: Floats


def order_keys(cells: Any, person: Person) -> OrderKeys:
    """Keys of the cells of the column that orders rows: numbers, dates, or texts such as 2001-12-31 or 7."""
    whole = _combine(cells)
    return call_or_refuse(lambda: _read_order(whole, person), lambda _: _no_order(person))


def _read_order(cells: Any, person: Person) -> OrderKeys:
    if _types.is_dictionary(cells.type):
        cells = cells.cast(cells.type.value_type)
    if cells.null_count or _types.is_null(cells.type):
        raise _no_order(person)
    if is_text(cells.type):
        cells = _read_texts(_compute.utf8_trim_whitespace(cells.cast(_pa.string())))
    kind = cells.type
    if _types.is_temporal(kind):
        unit = _pa.time64("us") if _types.is_time(kind) else _pa.duration("us") if _types.is_duration(kind) else None
        moments = cells.cast(unit or _pa.timestamp("us", tz=getattr(kind, "tz", None)), safe=False)
        ticks = numbers_of(moments.cast(_pa.int64()))
        return OrderKeys("moment", ticks, np.zeros(len(ticks)))
    if _types.is_integer(kind) or _types.is_boolean(kind) or (_types.is_decimal(kind) and kind.scale <= 0):
        exact = numbers_of(cells.cast(_pa.int64()))
        return OrderKeys("number", exact, np.zeros(len(exact)))
    values = numbers_of((cells.cast(_pa.string()) if _types.is_decimal(kind) else cells).cast(_pa.float64()))
    if not (np.abs(values) < 2.0**63).all():
        raise _no_order(person)
    floors = np.floor(values)
    return OrderKeys("number", floors.astype(np.int64), values - floors)


def _read_texts(texts: Any) -> Any:
    for kind in (_pa.timestamp("us"), _pa.timestamp("us", tz="UTC"), _pa.int64()):
        try:
            return texts.cast(kind)
        except _pa.ArrowInvalid:
            continue
    return texts.cast(_pa.float64())


def _no_order(person: Person) -> DataError:
    return DataError(
        f"column {person.order!r} orders the rows of a person: every row needs a number, or every row a date "
        "(2001-12-31). Correct the data, or choose another column.",
        column=person.order,
    )


def _rank(keys: OrderKeys) -> Ints:
    if not keys.rest.any():
        return keys.whole
    order = np.lexsort((keys.rest, keys.whole))
    whole, rest = keys.whole[order], keys.rest[order]
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.cumsum(np.append(False, (whole[1:] != whole[:-1]) | (rest[1:] != rest[:-1])))
    return ranks


def _aggregate(name: str, aggregate: str, rows: Rows, column: Column, groups: PersonRows) -> Any:
    start, result = 0, np.zeros(groups.people)
    gathered = np.empty(len(groups.codes)) if aggregate in _REDUCTIONS else result[:0]
    best = np.zeros(groups.people if aggregate in ("first", "last") else 0, dtype=np.int64)
    seen = np.zeros(groups.people, dtype=np.bool_)
    for values in rows.parts(name, aggregate):
        stop = start + len(values)
        codes = groups.codes[start:stop]
        if aggregate in _REDUCTIONS:
            gathered[groups.places[start:stop]] = values
        elif aggregate in ("first", "last"):
            _pick(values, rows.ranks[start:stop], codes, aggregate == "last", best, seen, result)
        else:
            _keep_extreme(
                np.abs(values) if aggregate in ("any", "all") else values,
                codes,
                aggregate in ("max", "any"),
                seen,
                result,
            )
        start = stop
    if aggregate in _REDUCTIONS:
        _sort_segments(gathered, groups.starts)
        result = _REDUCTIONS[aggregate](gathered, groups.starts)
    elif aggregate in ("any", "all"):
        result = (result > 0).astype(np.float64)
    if column.categories is not None:
        return _pa.DictionaryArray.from_arrays(_pa.array(result.astype(np.int32)), text_array(column.labels))
    return float_array(result + 0.0)  # -0 and 0 are one number, whichever row came first


def _sum(values: Floats, starts: Ints) -> Floats:
    with np.errstate(over="ignore"):
        totals: Floats = np.add.reduceat(values, starts[:-1])
    return np.nan_to_num(totals)  # beyond what a number can be: the largest, which is clipped or refused as any other


def _mean(values: Floats, starts: Ints) -> Floats:
    means = _sum(values, starts) / np.diff(starts)
    return np.asarray(np.clip(means, values[starts[:-1]], values[starts[1:] - 1]))  # rounding leaves no bounds


def _median(values: Floats, starts: Ints) -> Floats:
    sizes = np.diff(starts)
    low, high = values[starts[:-1] + (sizes - 1) // 2], values[starts[:-1] + sizes // 2]
    medians: Floats = np.where(low == high, low, low / 2 + high / 2)
    return medians


def _mode(values: Floats, starts: Ints) -> Floats:
    return np.asarray(_mode_of_segments(values, starts))


# Values come sorted within each person: floating-point sums depend on the order of what is added, and the order of rows
# must not count. Other aggregates are exact in any order, and take neither a sort nor a copy.
_REDUCTIONS: Final[Mapping[str, Callable[[Floats, Ints], Floats]]] = {
    "sum": _sum,
    "mean": _mean,
    "median": _median,
    "mode": _mode,
}


@kernel
def _count_codes(codes: NDArray[Any], sizes: Ints) -> None:
    for row in range(len(codes)):
        sizes[codes[row]] += 1


@kernel
def _places_of_rows(codes: Ints, starts: Ints) -> Ints:
    """Counting sort: the place of each row by code, those of one code in their order."""
    cursor = starts[:-1].copy()
    places = np.empty(len(codes), dtype=np.int64)
    for row in range(len(codes)):
        places[row] = cursor[codes[row]]
        cursor[codes[row]] += 1
    return places


@kernel
def _pack_texts(ends: Codes, letters: Bytes, texts: NDArray[np.uint64]) -> None:
    """Write each text as two words: its bytes and, as the last one, their number."""
    for row in range(len(texts)):
        start, stop = ends[row], ends[row + 1]
        low, high = np.uint64(0), np.uint64(stop - start) << np.uint64(56)
        for position in range(start, min(stop, start + 8)):
            low |= np.uint64(letters[position]) << np.uint64(8 * (position - start))
        for position in range(start + 8, stop):
            high |= np.uint64(letters[position]) << np.uint64(8 * (position - start - 8))
        texts[row, 0] = low
        texts[row, 1] = high


@kernel
def _encode_words(
    texts: NDArray[np.uint64],
    is_missing: Bytes,
    slots: Codes,
    words: NDArray[np.uint64],
    count: int,
    codes: Codes,
    first: int,
) -> tuple[int, int]:
    """Write the codes of texts from row `first` on, until half of the slots are taken: the next row, and the number of
    codes. Nothing else is in this loop, so that a processor looks for several texts at a time."""
    last_slot = len(slots) - 1
    for row in range(first, len(texts)):
        if len(is_missing) and is_missing[row]:
            continue
        if count == len(words):
            return row, count
        low, high = texts[row, 0], texts[row, 1]
        slot = _slot_of(low, high, last_slot)
        code = slots[slot]
        while code >= 0 and (words[code, 0] != low or words[code, 1] != high):
            slot = (slot + 1) & last_slot
            code = slots[slot]
        if code < 0:
            code = np.int32(count)
            slots[slot] = code
            words[code, 0] = low
            words[code, 1] = high
            count += 1
        codes[row] = code
    return len(texts), count


@kernel
def _fill_slots(slots: Codes, words: NDArray[np.uint64], count: int) -> None:
    """Enter the words of all codes into empty slots."""
    last_slot = len(slots) - 1
    for code in range(count):
        slot = _slot_of(words[code, 0], words[code, 1], last_slot)
        while slots[slot] >= 0:
            slot = (slot + 1) & last_slot
        slots[slot] = code


@kernel
def _slot_of(low: np.uint64, high: np.uint64, last_slot: int) -> np.int64:
    """Where a text is looked for first: multiplication by odd constants and shifts mix its bits."""
    mixed = (low ^ (high * np.uint64(0x9E3779B97F4A7C15))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0x94D049BB133111EB)
    return np.int64((mixed >> np.uint64(20)) & np.uint64(last_slot))


@kernel
def _checksums(letters: Bytes, ends: Codes, parts: int) -> Ints:
    """The FNV-1a hash of each text, modulo a number of parts."""
    numbers = np.empty(len(ends) - 1, dtype=np.int64)
    for row in range(len(ends) - 1):
        mixed = np.uint64(0xCBF29CE484222325)
        for position in range(ends[row], ends[row + 1]):
            mixed = (mixed ^ np.uint64(letters[position])) * np.uint64(0x100000001B3)
        numbers[row] = np.int64((mixed >> np.uint64(16)) % np.uint64(parts))
    return numbers


@kernel
def _keep_extreme(values: Floats, codes: Ints, keep_largest: bool, seen: NDArray[np.bool_], result: Floats) -> None:
    """Keep the largest value of each code, or the smallest."""
    for row in range(len(values)):
        code = codes[row]
        is_better = values[row] > result[code] if keep_largest else values[row] < result[code]
        if not seen[code] or is_better:
            seen[code] = True
            result[code] = values[row]


@kernel
def _pick(
    values: Floats, ranks: Ints, codes: Ints, pick_last: bool, best: Ints, seen: NDArray[np.bool_], result: Floats
) -> None:
    """Keep the value of the least rank of each code, or of the greatest. Of equal ranks the smallest value is first and
    the largest last, so that the order of rows does not count."""
    for row in range(len(values)):
        code = codes[row]
        is_ahead = ranks[row] > best[code] if pick_last else ranks[row] < best[code]
        is_better = values[row] > result[code] if pick_last else values[row] < result[code]
        if not seen[code] or is_ahead or (ranks[row] == best[code] and is_better):
            seen[code] = True
            best[code] = ranks[row]
            result[code] = values[row]


@kernel
def _sort_segments(values: Floats, starts: Ints) -> None:
    """Sort each segment in place; most people have few rows."""
    for segment in range(len(starts) - 1):
        first, last = starts[segment], starts[segment + 1]
        if last - first > SHORT_SEGMENT:
            values[first:last] = np.sort(values[first:last])
            continue
        for position in range(first + 1, last):
            value, place = values[position], position
            while place > first and values[place - 1] > value:
                values[place] = values[place - 1]
                place -= 1
            values[place] = value


@kernel
def _argsort_segments(keys: Ints, starts: Ints) -> Ints:
    """Positions that sort each segment by its keys, which may repeat."""
    order = np.arange(len(keys))
    for segment in range(len(starts) - 1):
        first, last = starts[segment], starts[segment + 1]
        if last - first > 1:
            order[first:last] = first + np.argsort(keys[first:last], kind="mergesort")
    return order


@kernel
def _mode_of_segments(values: Floats, starts: Ints) -> Floats:
    """The most frequent value of each sorted segment; of several, the smallest."""
    modes = np.empty(len(starts) - 1)
    for segment in range(len(starts) - 1):
        best, run, start = 0, 0, starts[segment]
        for position in range(starts[segment], starts[segment + 1]):
            if position > starts[segment] and values[position] != values[position - 1]:
                start = position
            run = position - start + 1
            if run > best:
                best = run
                modes[segment] = values[position]
    return modes
