"""JSON in blocks and row by row: the same rows, the same values, the same sentences."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ottla.spark.formats.json_format import FEW, Json

INNER = pa.struct([("x", pa.int32()), ("day", pa.date32())])
ROW = pa.struct(
    [
        ("i", pa.int32()),
        ("y", pa.int8()),
        ("l", pa.int64()),
        ("d", pa.float64()),
        ("f", pa.float32()),
        ("s", pa.string()),
        ("bin", pa.binary()),
        ("b", pa.bool_()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("day", pa.date32()),
        ("price", pa.decimal128(10, 2)),
        ("tags", pa.list_(pa.string())),
        ("times", pa.list_(pa.timestamp("us", "UTC"))),
        ("inner", INNER),
        ("inners", pa.list_(INNER)),
    ]
)
TIMES = ["2020-01-02T03:04:05Z", "2020-01-02 03:04:05.25", "2020-01-02", "1999-12-31T23:59:59+01:00", "2020-02-30", "x"]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**66), 2**66),
    st.integers(-200, 200),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.sampled_from(TIMES),
    st.sampled_from(["", "QUI=", "QUJD", "QQ==", "QR==", "QUJDRA", "QQ=", "QUI=\n", "QU-_", "Ω==="]),
    st.binary(max_size=5).map(lambda data: b64encode(data).decode()),
    st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-1000, max_value=1000).map(float),
)
NAMES = [*(ROW.field(at).name for at in range(ROW.num_fields)), "x", "other"]
OBJECTS = st.recursive(
    st.dictionaries(st.sampled_from(NAMES), SCALARS, max_size=6),
    lambda inner: st.dictionaries(
        st.sampled_from(NAMES), st.one_of(SCALARS, inner, st.lists(st.one_of(SCALARS, inner), max_size=3)), max_size=4
    ),
    max_leaves=8,
)


def counted(kind: pa.DataType) -> pa.DataType:
    """The type with days and microseconds for dates and times, of which Python knows fewer than Arrow."""
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_date32(kind):
        return pa.int32()
    if isinstance(kind, pa.ListType):
        return pa.list_(counted(kind.value_type))
    return pa.struct([each.with_type(counted(each.type)) for each in kind]) if isinstance(kind, pa.StructType) else kind


def values_of(array: pa.Array[Any]) -> list[Any]:
    found: Any = array.cast(counted(array.type))
    values: list[Any] = found.to_pylist()
    return values


def row_by_row(format_: Json, rows: list[bytes | None]) -> pa.Array[Any]:
    found: pa.Array[Any] = pa.array([format_.row(data)[0] for data in rows], format_.kind)
    return found


def decode(format_: Json, rows: list[bytes | None]) -> tuple[list[Any], dict[int, str]]:
    decoded = format_.decode(pa.array(rows, pa.binary()))
    decoded.values.validate(full=True)
    return values_of(decoded.values), dict(decoded.errors)


def expected_of(value: Any) -> Any:
    one: Any = pa.array([value], ROW)
    return values_of(one)[0]


def texts(rows: Sequence[bytes | None]) -> pa.Array[Any]:
    return pa.array(rows, pa.binary())


@settings(max_examples=60, deadline=None)
@given(st.lists(OBJECTS.map(lambda row: json.dumps(row).encode()), min_size=1, max_size=8), st.integers(0, 7))
@example([b'{"at": -62135596801, "day": "9999-12-31"}'], 0)
@example([b'{"price": 100000000}'], 0)
@example([b'{"price": 99999999}'], 0)
def test_a_block_is_what_its_rows_are(rows: list[bytes], times: int) -> None:
    format_ = Json(ROW)
    # Enough good rows around them that blocks are tried at all.
    filled: list[bytes | None] = [*rows, *[b'{"i": 1}', None] * FEW, *rows * times]
    values, errors = decode(format_, filled)
    assert repr(values) == repr(values_of(row_by_row(format_, filled)))
    assert errors == {row: error for row, data in enumerate(filled) if (error := format_.row(data)[1])}


@settings(max_examples=150, deadline=None)
@given(OBJECTS.map(lambda row: json.dumps(row).encode()), st.data())
@example(b'{"i":1}}{"v":{"i":2}', None)
@example(b'{"i":1},"v":{"i":2}', None)
@example(b'{"d":Inf}', None)
@example(b"null", None)
@example(b'{"s":"\xff"}', None)
@example(b'{"s":"a\nb"}', None)
@example(b'{"i":\n1}', None)
@example(b'{"i":1}\x00', None)
def test_damaged_rows_never_disturb_their_neighbours(row: bytes, data: Any) -> None:
    if data is not None:
        at = data.draw(st.integers(0, len(row)))
        row = row[:at] + data.draw(st.binary(max_size=3)) + row[at + data.draw(st.integers(0, 3)) :]
    format_ = Json(ROW)
    good: list[bytes | None] = [b'{"i": 7, "s": "seven"}'] * (FEW + 1)
    values, errors = decode(format_, [*good, row, *good])
    expected, error = format_.row(row)
    assert repr(values[len(good)]) == repr(expected_of(expected))
    assert errors == ({len(good): error} if error else {})
    assert all(value["i"] == 7 for at, value in enumerate(values) if at != len(good))


def test_ordinary_rows_are_read_as_one_block() -> None:
    row = {
        "i": 1,
        "at": TIMES[0],
        "day": "2020-01-02",
        "price": 1.25,
        "bin": "QUI=",
        "tags": ["a", None],
        "inner": {"x": 1},
    }
    rows = [json.dumps(row).encode()] * 3
    assert Json(ROW).block(texts(rows)).to_pylist() == row_by_row(Json(ROW), [*rows]).to_pylist()


@pytest.mark.parametrize(
    ("row", "value", "sentence"),
    [
        (b'{"i": "one", "s": "kept"}', {"s": "kept"}, 'i: "one" is not an integer'),
        (b'{"i": 3000000000}', {}, "i: 3000000000 is beyond int32"),
        (b'{"inner": {"x": true, "day": "2020-01-02"}}', {"inner": {"day": 18263}}, "x: true is not an integer"),
        (b'{"tags": 5, "i": 1}', {"i": 1}, "tags: 5 is not an array"),
        (b'{"i": 1, "l": 2, "s": "cut', {}, "not JSON: an incomplete string, or one with an invalid character, st"),
        (b"[1]", {}, "[1] is not an object"),
        (b"null", {}, "null is not an object"),
        (b"\x00\x01", {}, "not JSON: expected a value at character 0, '\\x00\\x01'"),
        (b"[" * 100_000, {}, "not JSON: values are nested more than 200 levels deep"),
        (b"", None, ""),
        (None, None, ""),
    ],
)
def test_unreadable_fields_are_reported_and_the_rest_is_kept(row: bytes | None, value: Any, sentence: str) -> None:
    found, error = Json(ROW).row(row)
    assert found == value
    assert error.startswith(sentence)
    assert bool(error) == bool(sentence)


def test_times_without_a_zone_are_of_the_zone_that_was_named() -> None:
    kind = pa.struct([("at", pa.timestamp("us", "UTC"))])
    rows: list[bytes | None] = [b'{"at": "2020-07-01 12:00:00"}', b'{"at": "2020-01-01 12:00:00"}'] * FEW
    values: list[Any] = Json(kind, "Europe/Paris").decode(texts(rows)).values.to_pylist()
    assert [value["at"].hour for value in values[:2]] == [10, 11]
    assert values == row_by_row(Json(kind, "Europe/Paris"), rows).to_pylist()
