"""Tables of TOML and JSON become dataclasses, or an error that names the key and shows no value."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallflower.errors import ConfigError, ParameterError, SourceError
from wallflower.machine.strict_reader import ALIAS, TAG, load_table, read_table, to_table


@dataclass(frozen=True)
class Near:
    mode: ClassVar = "near"
    radius: Fraction


@dataclass(frozen=True)
class Far:
    mode: ClassVar = "far"
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stream:
    name: str
    settings: Near | Far = field(metadata={TAG: "mode"})
    centre: Fraction = field(default=Fraction(), metadata={ALIAS: "center"})
    count: int = 0
    ratio: float = 0.5
    tls: bool = True
    noise: Literal["planar", "columns"] = "planar"
    limit: Fraction | None = None
    points: tuple[tuple[int, ...], ...] = ()
    quotas: dict[str, int] = field(default_factory=dict)
    path: Path | None = None


NEAR = {"mode": "near", "radius": "1/2"}
fractions = st.fractions(max_denominator=10**6).filter(lambda x: abs(x.numerator) < 10**15)
streams = st.builds(
    Stream,
    name=st.text(),
    settings=st.builds(Near, radius=fractions) | st.builds(Far, names=st.lists(st.text()).map(tuple)),
    centre=fractions,
    count=st.integers(),
    ratio=st.floats(allow_nan=False, allow_infinity=False),
    tls=st.booleans(),
    noise=st.sampled_from(["planar", "columns"]),
    limit=st.none() | fractions,
    points=st.lists(st.lists(st.integers()).map(tuple)).map(tuple),
    quotas=st.dictionaries(st.text(), st.integers()),
    path=st.none(),
)


@given(streams)
def test_a_dataclass_comes_back_from_its_table(stream: Stream) -> None:
    assert read_table(Stream, json.loads(json.dumps(to_table(stream)))) == stream


@pytest.mark.parametrize(
    ("table", "key", "wrong"),
    [
        ([], "stream", "table"),
        ({"name": "s"}, "settings", "missing"),
        ({"name": "s", "settings": NEAR, "nam": 1}, "nam", "unknown name; allowed are name, settings"),
        ({"name": 7, "settings": NEAR}, "name", "text"),
        ({"name": "s", "settings": []}, "settings", "table"),
        ({"name": "s", "settings": {}}, "settings.mode", "one of near, far"),
        ({"name": "s", "settings": {"mode": ["near"]}}, "settings.mode", "one of near, far"),
        ({"name": "s", "settings": {"mode": "near"}}, "settings.radius", "missing"),
        ({"name": "s", "settings": NEAR | {"names": []}}, "settings.names", "unknown"),
        ({"name": "s", "settings": {"mode": "far", "names": "ab"}}, "settings.names", "list"),
        ({"name": "s", "settings": {"mode": "far", "names": ["a", 7]}}, "settings.names[1]", "text"),
        ({"name": "s", "settings": NEAR, "center": "1", "centre": "1"}, "centre", "also there as centre"),
        ({"name": "s", "settings": NEAR, "count": True}, "count", "whole number"),
        ({"name": "s", "settings": NEAR, "count": 1.0}, "count", "whole number"),
        ({"name": "s", "settings": NEAR, "ratio": "1"}, "ratio", "number"),
        ({"name": "s", "settings": NEAR, "ratio": float("nan")}, "ratio", "number"),
        ({"name": "s", "settings": NEAR, "tls": 1}, "tls", "true or false"),
        ({"name": "s", "settings": NEAR, "noise": "round"}, "noise", "one of planar, columns"),
        ({"name": "s", "settings": NEAR, "limit": 0.1}, "limit", "exact"),
        ({"name": "s", "settings": NEAR, "limit": "1/0"}, "limit", "exact"),
        ({"name": "s", "settings": NEAR, "limit": "1e9"}, "limit", "exact"),
        ({"name": "s", "settings": NEAR, "limit": "1" * 16}, "limit", "exact"),
        ({"name": "s", "settings": NEAR, "limit": 10**5000}, "limit", "exact"),
        ({"name": "s", "settings": NEAR, "limit": False}, "limit", "exact"),
        ({"name": "s", "settings": NEAR, "points": [[1], [2, "x"]]}, "points[1][1]", "whole number"),
        ({"name": "s", "settings": NEAR, "quotas": {"a": "b"}}, "quotas.a", "whole number"),
        ({"name": "s", "settings": NEAR, "quotas": 7}, "quotas", "table"),
    ],
)
def test_an_error_names_the_key(table: Any, key: str, wrong: str) -> None:
    with pytest.raises(ParameterError) as refusal:
        read_table(Stream, table)
    assert str(refusal.value).startswith(f"{key}: ")
    assert wrong in str(refusal.value)
    assert str(refusal.value).count(". ") == 1


def test_the_caller_chooses_error_place_and_readers() -> None:
    stated = {"name": "s", "settings": NEAR, "path": "x.csv"}
    read = read_table(Stream, stated, readers={Path: lambda value, where: Path("/data") / value})
    assert read.path == Path("/data/x.csv")
    with pytest.raises(ConfigError, match=r"stream\.toml: streams\.a\.name must be text"):
        read_table(Stream, stated | {"name": 1}, where="streams.a", refuse=partial(ConfigError, "stream.toml"))
    with pytest.raises(TypeError, match="need a reader"):
        read_table(Stream, stated)


@pytest.mark.parametrize(("name", "text"), [("s.toml", 'a = "b"\n'), ("s.json", '{"a": "b"}'), ("s.conf", 'a="b"')])
def test_files_are_tables(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert load_table(tmp_path / name) == {"a": "b"}


@pytest.mark.parametrize(
    ("name", "body"), [("s.toml", b"a ="), ("s.json", b"[" * 10**5), ("t.json", b"[]"), ("u", b"\xff")]
)
def test_files_that_are_no_tables_are_refused(tmp_path: Path, name: str, body: bytes) -> None:
    (tmp_path / name).write_bytes(body)
    with pytest.raises(SourceError, match="not a table"):
        load_table(tmp_path / name)
    with pytest.raises(SourceError, match="No such file"):
        load_table(tmp_path / "missing")
