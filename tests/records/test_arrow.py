from __future__ import annotations

from array import array
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ottla.records.header_columns as compiled
from ottla.errors import SerializationError
from ottla.model import TopicPartition
from ottla.records import arrow
from ottla.records.batch import parse_header, seal, stamp_append_time
from ottla.records.binary_column import BinaryColumn
from ottla.records.builder import BatchBuilder
from ottla.records.columns import Columns, Rows, decode, encode_rows
from tests.records.forms import plain_header_columns

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
octets = st.none() | st.binary(max_size=30)
header_lists = st.lists(st.tuples(st.text(max_size=5), octets), max_size=3)
row_lists = st.lists(st.tuples(st.integers(0, 2**40), octets, octets, header_lists), min_size=1, max_size=20)


def columns_of(*rows: Any, with_headers: bool = True) -> Columns:
    builder = BatchBuilder(max_bytes=1 << 20)
    for row in rows:
        assert builder.append(*row)
    return decode(builder.build(), with_headers=with_headers)


def address(strings: pa.Array[Any]) -> int:
    """Return the address of the character data."""
    letters = strings.buffers()[2]
    assert letters is not None
    return letters.address


def decode_rows(rows: Rows) -> list[Any]:
    """Return timestamp, key, value and headers of `rows` as a consumer decodes them."""
    batches = encode_rows(rows, max_bytes=1 << 20)
    back = [decode(batch.data) for batch in batches]
    return [(c.timestamps[i], c.key(i), c.value(i), c.headers(i)) for c in back for i in range(c.count)]


def decode_table(table: Any, **names: Any) -> list[Any]:
    return [row for rows in arrow.rows_of(table, **names) for row in decode_rows(rows)]


def test_a_table_may_have_some_of_the_columns_in_any_order() -> None:
    columns = columns_of((1, b"k", b"v", []), (2, None, b"w", []))
    names = ("partition", "value", "topic")
    table = arrow.to_table([(TopicPartition("flights", 3), columns)], only=names)
    assert table.schema == arrow.schema(only=names)
    assert table.to_pydict() == {"partition": [3, 3], "value": [b"v", b"w"], "topic": ["flights", "flights"]}


def test_values_common_to_all_rows_are_stored_once_unless_they_are_large() -> None:
    few = [arrow.repeat_value("flights", pa.string(), count) for count in (0, 1, 1000, 1024)]
    assert [array.to_pylist() for array in few[:2]] == [[], ["flights"]]
    assert address(few[2]) == address(few[3])
    many = [arrow.repeat_value("flights", pa.string(), 1 << 20) for _ in range(2)]
    assert address(many[0]) != address(many[1])


@given(rows=row_lists)
def test_a_record_batch_has_what_the_columns_have(rows: list[Any]) -> None:
    batch = arrow.to_record_batch(columns_of(*rows), "flights", 3, with_headers=True)
    batch.validate(full=True)
    assert batch.to_pylist() == [
        {
            "key": key,
            "value": value,
            "topic": "flights",
            "partition": 3,
            "offset": offset,
            "timestamp": EPOCH + timedelta(milliseconds=timestamp),
            "timestamp_type": 0,
            "headers": [{"key": name, "value": data} for name, data in headers] or None,
        }
        for offset, (timestamp, key, value, headers) in enumerate(rows)
    ]


def test_the_schema_is_that_of_sparks_kafka_source() -> None:
    batch = arrow.to_record_batch(columns_of((1, b"k", b"v")), "t", 0)
    assert batch.schema == arrow.SCHEMA
    kinds = {"key": "binary", "value": "binary", "topic": "string", "partition": "int32", "offset": "int64"}
    kinds |= {"timestamp": "timestamp[ms, tz=UTC]", "timestamp_type": "int32"}
    assert {field.name: str(field.type) for field in batch.schema} == kinds


def test_a_record_batch_shares_the_memory_of_the_columns() -> None:
    columns = columns_of((1, b"k", b"v" * 1000))
    batch = arrow.to_record_batch(columns, "t", 0)
    address = pa.py_buffer(columns.values.data).address
    assert [buffer and buffer.address for buffer in batch.column("value").buffers()][2] == address


def test_no_rows_are_an_empty_batch() -> None:
    for with_headers in (False, True):
        batch = arrow.to_record_batch(decode(b""), "t", 0, with_headers)
        batch.validate(full=True)
        assert batch.num_rows == 0
        assert arrow.to_table([], with_headers).schema == batch.schema


def test_microseconds_are_what_spark_needs() -> None:
    batch = arrow.to_record_batch(columns_of((1_700_000_000_123, None, None), (-1, None, None)), "t", 0, unit="us")
    assert batch.schema.field("timestamp").type == pa.timestamp("us", tz="UTC")
    assert batch.column("timestamp").cast(pa.int64()).to_pylist() == [1_700_000_000_123_000, -1000]


def test_a_timestamp_that_has_no_microseconds_is_named() -> None:
    with pytest.raises(SerializationError, match=r"offset 1 has timestamp 4611686018427387904 ms.*in us"):
        arrow.to_record_batch(columns_of((5, None, None), (2**62, None, None)), "t", 0, unit="us")


def test_mixed_timestamp_types_are_distinguished() -> None:
    first = BatchBuilder()
    assert first.append(5, None, None)
    stamped = bytearray(seal(parse_header(first.build())._replace(base_offset=1), first.build()[61:]))
    stamp_append_time(stamped, 0, parse_header(stamped), 9)
    batch = arrow.to_record_batch(decode(first.build() + bytes(stamped)), "t", 0)
    assert batch.column("timestamp_type").to_pylist() == [0, 1]


def test_a_table_has_a_chunk_per_partition() -> None:
    chunks = [(TopicPartition("t", p), columns_of((1, None, b"%d" % p), (2, None, None))) for p in range(3)]
    table = arrow.to_table(chunks)
    assert table.column("value").num_chunks == 3
    assert table.column("partition").to_pylist() == [0, 0, 1, 1, 2, 2]


def test_headers_that_were_not_decoded_cannot_be_had() -> None:
    with pytest.raises(ValueError, match="with_headers=True"):
        arrow.to_record_batch(columns_of((1, None, None), with_headers=False), "t", 0, with_headers=True)


def test_a_header_key_that_is_not_utf8_gets_replacement_characters() -> None:
    builder = BatchBuilder()
    assert builder.append(1, None, None, [("hh", b"x"), ("ü", None)])
    batch = builder.build().replace(b"hh", b"h\xff")
    columns = decode(seal(parse_header(batch), batch[61:]))
    found = arrow.to_record_batch(columns, "t", 0, with_headers=True)
    found.validate(full=True)
    expected = [{"key": "h\ufffd", "value": b"x"}, {"key": "ü", "value": None}]
    assert found.column("headers").to_pylist() == [expected]


@pytest.mark.parametrize("form", [compiled, plain_header_columns()], ids=["compiled", "plain"])
@given(lists=st.lists(header_lists, max_size=10))
def test_headers_become_columns(form: ModuleType, lists: Any) -> None:
    columns = columns_of(*((1, None, None, headers) for headers in lists)) if lists else decode(b"")
    assert columns.raw_headers is not None
    split = form.split_headers(columns.raw_headers)
    flat = [(split.keys.get(i).decode(), split.values.get(i)) for i in range(split.keys.count)]
    assert flat == [header for headers in lists for header in headers]
    sizes = [split.bounds[i + 1] - split.bounds[i] for i in range(len(lists))]
    assert sizes == [len(headers) for headers in lists]


@given(rows=row_lists)
def test_a_received_table_can_be_sent_again(rows: list[Any]) -> None:
    table = arrow.to_table([(TopicPartition("t", 0), columns_of(*rows))] * 2, with_headers=True)
    names = {"key": "key", "value": "value", "headers": "headers", "timestamp": "timestamp"}
    assert decode_table(table, **names) == rows * 2


KINDS = [
    pa.binary(),
    pa.string(),
    pa.large_binary(),
    pa.large_string(),
    pa.binary_view(),
    pa.string_view(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int32(), pa.large_binary()),
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("first", [0, 1, 8, 11])
def test_strings_and_binaries_of_any_layout_can_be_sent(kind: Any, first: int) -> None:
    words: list[str | None] = [None if i % 3 == 0 else f"word {i % 5}" * (i % 4) for i in range(20)]
    plain_words = pa.array(words)
    column = plain_words.dictionary_encode() if pa.types.is_dictionary(kind) else plain_words
    columns: Any = {"value": column.cast(kind), "k": pa.chunked_array([words[:7], words[7:]])}
    table = pa.table(columns).slice(first, 7)
    expected = [word if word is None else word.encode() for word in words[first : first + 7]]
    found = decode_table(table, key="k", default_timestamp=5)
    assert found == [(5, word, word, []) for word in expected]


def test_the_memory_of_a_column_is_that_of_the_table() -> None:
    batch: Any = pa.record_batch({"value": [b"x" * 1000, None, b"y"]})
    (rows,) = arrow.rows_of(batch)
    assert pa.py_buffer(rows.values.data).address == batch.column("value").buffers()[2].address


def test_columns_of_nothing_and_of_fixed_width_can_be_sent() -> None:
    table = pa.table({"k": pa.nulls(2), "value": pa.array([b"ab", None], pa.binary(2))})
    assert decode_table(table, key="k") == [(-1, None, b"ab", []), (-1, None, None, [])]
    assert decode_table(table, value=None) == [(-1, None, None, [])] * 2


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
def test_timestamps_of_any_unit_are_milliseconds(unit: Any, zone: str | None) -> None:
    moments = pa.array([1_700_000_000_000, None, 86_400_000], pa.timestamp("ms", zone)).cast(pa.timestamp(unit, zone))
    table = pa.table({"value": ["a", "b", "c"], "at": moments}).slice(1)
    assert [row[0] for row in decode_table(table, timestamp="at", default_timestamp=7)] == [7, 86_400_000]


def test_integers_are_milliseconds() -> None:
    table = pa.table({"value": ["a", "b"], "at": pa.array([5, None], pa.int32())})
    (rows,) = arrow.rows_of(table, timestamp="at")
    assert rows.timestamps.tolist() == [5, -1]
    assert rows.count == 2


def test_headers_may_be_maps_or_large_lists() -> None:
    pairs: list[Any] = [[("a", b"1"), ("b", None)], None, []]
    structs = [row and [{"key": key, "value": value} for key, value in row] for row in pairs]
    item = arrow.HEADERS.value_type
    for column in (
        pa.array(pairs, pa.map_(pa.string(), pa.binary())),
        pa.array(structs, pa.large_list(item)),
        pa.array(structs, arrow.HEADERS),
    ):
        found = decode_table(pa.table({"value": ["x"] * 3, "h": column}), headers="h")
        assert [row[3] for row in found] == [pairs[0], [], []]


@pytest.mark.parametrize(
    ("column", "names", "text"),
    [
        (pa.array([1]), {}, "the column for the value is int64; cast it to string or binary"),
        (pa.array([[b"x"]]), {}, "the column for the value is list"),
        (pa.array(["x"]), {"headers": "value"}, "the column for the headers is string; it must be list"),
        (pa.array(["x"]), {"timestamp": "value"}, "the column for the timestamp is string"),
        (pa.array(["x"]), {"key": "kee"}, "the table has no column named 'kee'; it has value"),
        (pa.array([[None]], arrow.HEADERS), {"value": None, "headers": "value"}, "without null in the list"),
    ],
)
def test_a_column_that_cannot_be_sent_is_named(column: Any, names: Any, text: str) -> None:
    with pytest.raises(SerializationError, match=text):
        decode_table(pa.table({"value": column}), **names)


def test_a_chunk_that_is_too_large_for_one_column_is_sent_in_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = arrow.binary_column

    def at_most_three(values: Any, role: str) -> BinaryColumn:
        if len(values) > 3:
            raise pa.ArrowInvalid("too large")
        return whole(values, role)

    monkeypatch.setattr(arrow, "binary_column", at_most_three)
    table = pa.table({"value": ["a", "b", "c", "d", "e", "f", "g"], "at": pa.array(range(7))})
    parts = list(arrow.rows_of(table, timestamp="at"))
    assert [part.count for part in parts] == [3, 2, 2]
    found = [(row[0], row[2]) for part in parts for row in decode_rows(part)]
    assert found == list(enumerate([b"a", b"b", b"c", b"d", b"e", b"f", b"g"]))


def test_a_row_that_is_too_large_by_itself_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(values: Any, role: str) -> BinaryColumn:
        raise pa.ArrowInvalid("too large")

    monkeypatch.setattr(arrow, "binary_column", refuse)
    with pytest.raises(pa.ArrowInvalid):
        list(arrow.rows_of(pa.table({"value": ["a", "b"]})))


def test_rows_can_be_made_without_arrow() -> None:
    rows = Rows(memoryview(array("q", [1, 2])), BinaryColumn.of_nulls(2), BinaryColumn.of_nulls(2))
    assert decode_rows(rows) == [(1, None, None, []), (2, None, None, [])]


def test_a_timestamp_before_1970_is_refused_before_any_row_is_made() -> None:
    table = pa.table({"value": ["a", "b", "c"], "at": [5, -2, None]})
    with pytest.raises(ValueError, match="row 1 has timestamp -2 ms, before 1970"):
        next(arrow.rows_of(table, timestamp="at"))
