"""Rows that PostgreSQL is given as bytes are the rows that it would have read as text."""

from __future__ import annotations

import datetime
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import BooleanType, DataType, IntegerType, LongType, StringType, TimestampType

from ottla.pipelines.databases import binary_copy, binary_rows
from ottla.pipelines.databases.binary_copy import field_of, is_binary_compatible, is_binary_equal
from ottla.pipelines.databases.copying import copy_in
from ottla.pipelines.databases.postgresql import SETTINGS, Postgresql
from ottla.pipelines.databases.table import Table, TableColumn
from tests.plain import is_compiled, plain
from tests.postgres import Sql

pytestmark = pytest.mark.behaviour("D5")
MOMENTS = [0, None, -1, 1_700_000_000_123_456, -62_135_596_800_000_000]
COLUMNS: dict[str, tuple[str, Any]] = {
    "small": ("smallint", pa.array([1, None, -7, 32767, -32768], pa.int16())),
    "whole": ("integer", pa.array([1, None, -7, 2**31 - 1, -(2**31)], pa.int32())),
    "long": ("bigint", pa.array([1, None, -7, 2**63 - 1, -(2**63)], pa.int64())),
    "short": ("real", pa.array([1.5, None, -0.0, float("nan"), float("-inf")], pa.float32())),
    "real": ("double precision", pa.array([0.1, None, -0.0, float("nan"), 1e-300], pa.float64())),
    "yes": ("boolean", pa.array([True, None, False, True, False])),
    "text": ("text", pa.array(['a "b", c', None, "", "x\ny\\.\tü", "🚀"])),
    "short_text": ("varchar(4)", pa.array(["abcd", None, "", "ü", "a  "])),
    "bytes": ("bytea", pa.array([b"\x00\xff", None, b"", b"abc", b"\n"], pa.binary())),
    "day": (
        "date",
        pa.array([datetime.date(2026, 1, 2), None, datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None]),
    ),
    "at": ("timestamptz", pa.array(MOMENTS, pa.timestamp("us", tz="Asia/Seoul"))),
    "local": ("timestamp", pa.array(MOMENTS, pa.timestamp("us"))),
    "none": ("text", pa.array([None] * 5, pa.string())),
    "all": ("bigint not null", pa.array(range(5), pa.int64())),
}
ROWS = pa.RecordBatch.from_pydict({name: values for name, (_, values) in COLUMNS.items()})


@pytest.mark.parametrize(("first", "count"), [(0, 5), (1, 3), (4, 1), (2, 0)])
def test_bytes_leave_what_text_leaves(sql: Sql, monkeypatch: pytest.MonkeyPatch, first: int, count: int) -> None:
    monkeypatch.setattr(binary_copy, "SLICE", 2)
    columns = ", ".join(f'"{name}" {kind}' for name, (kind, _) in COLUMNS.items())
    sql.run(f"create table as_bytes ({columns})", f"create table as_text ({columns})")
    names = ", ".join(f'"{name}"' for name in COLUMNS)
    with psycopg.connect(sql.url, options=SETTINGS) as connection:
        for table in ("as_bytes", "as_text"):
            copy_in(connection, f"{table} ({names})", ROWS.slice(first, count), table == "as_bytes")
    left = [sql.rows(f'select t::text from {table} t order by "all"') for table in ("as_bytes", "as_text")]
    assert left[0] == left[1]
    assert len(left[0]) == count


def test_columns_of_these_types_are_copied_unchanged(sql: Sql) -> None:
    columns = ", ".join(f'"{name}" {kind}' for name, (kind, _) in COLUMNS.items())
    sql.run(f"create table kinds ({columns}, more jsonb)")
    database = Postgresql(sql.url)
    with database.connect() as connection:
        table = database.describe_table(connection, "kinds")
    assert is_binary_compatible(table, list(COLUMNS), ROWS.schema) == is_compiled(binary_rows)
    assert not is_binary_compatible(table, ["more"], pa.schema([("more", pa.string())]))


@pytest.mark.parametrize(
    ("kind", "as_text", "given", "same"),
    [
        (LongType(), False, pa.int64(), True),
        (IntegerType(), False, pa.int64(), False),
        (LongType(), False, pa.int32(), False),
        (LongType(), False, pa.float64(), False),
        (StringType(), False, pa.string(), True),
        (StringType(), True, pa.string(), False),
        (StringType(), False, pa.large_string(), False),
        (StringType(), False, pa.int64(), False),
        (TimestampType(), False, pa.timestamp("us", "UTC"), True),
        (TimestampType(), False, pa.timestamp("us"), False),
        (TimestampType(), False, pa.timestamp("ns", "UTC"), False),
        (BooleanType(), False, pa.bool_(), True),
    ],
)
def test_bytes_are_for_columns_of_the_same_type(kind: DataType, as_text: bool, given: pa.DataType, same: bool) -> None:
    table = Table("t", (TableColumn("c", "whatever", kind, as_text=as_text),))
    assert is_binary_equal(table, "c", given) == same


VALUES: dict[Any, Any] = {
    pa.int16(): st.integers(-(2**15), 2**15 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=5),
    pa.binary(): st.binary(max_size=5),
}


@st.composite
def columns(draw: st.DrawFn) -> tuple[list[Any], int]:
    count, first = draw(st.integers(0, 20)), draw(st.integers(0, 9))
    kinds = draw(st.lists(st.sampled_from(list(VALUES)), max_size=4))
    whole = count + first
    drawn = [draw(st.lists(st.none() | VALUES[kind], min_size=whole, max_size=whole)) for kind in kinds]
    return [pa.array(one, kind).slice(first) for one, kind in zip(drawn, kinds, strict=True)], count


def by_hand(values: list[Any], kind: Any) -> list[bytes | None]:
    """Each value as PostgreSQL's guide has it."""
    import struct

    codes = {pa.int16(): ">h", pa.int64(): ">q", pa.float64(): ">d", pa.bool_(): ">?"}
    if kind in codes:
        return [None if one is None else struct.pack(codes[kind], one) for one in values]
    return [one.encode() if isinstance(one, str) else one for one in values]


@given(given=columns())
def test_the_form_is_that_of_the_guide_compiled_or_not(given: tuple[list[Any], int]) -> None:
    arrays, count = given
    expected = bytearray()
    by_column = [by_hand(one.to_pylist(), one.type) for one in arrays]
    for row in range(count):
        expected += len(arrays).to_bytes(2, "big")
        for column in by_column:
            value = column[row]
            expected += b"\xff" * 4 if value is None else len(value).to_bytes(4, "big") + value
    fields = list(map(field_of, arrays))
    assert binary_rows.encode(fields, count) == expected
    assert plain("ottla.pipelines.databases.binary_rows").encode(fields, count) == expected


@pytest.mark.parametrize("as_it_is", [True, False])
def test_text_is_what_it_was_in_a_database_that_keeps_it_otherwise(sql: Sql, as_it_is: bool) -> None:
    name = f"latin_{sql.name}_{as_it_is}".lower()
    sql.run(f"create database {name} encoding 'LATIN1' template template0 lc_collate 'C' lc_ctype 'C'")
    database = Postgresql(f"{sql.url.rsplit('/', 1)[0]}/{name}")
    with database.connect() as connection:
        connection.execute("create table names (name text)")
        copy_in(connection, "names", pa.RecordBatch.from_pydict({"name": ["Zürich"]}), as_it_is)
        assert connection.execute("select name, length(name) from names").fetchone() == ("Zürich", 6)
