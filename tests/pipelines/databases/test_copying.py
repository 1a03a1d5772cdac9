"""Rows that go into PostgreSQL and come out of it by COPY are what they were."""

from __future__ import annotations

import datetime
from decimal import Decimal

import psycopg
import pyarrow as pa
import pytest

from ottla.pipelines.databases import copying
from ottla.pipelines.databases.copying import can_be_copied, copy_in, copy_out
from ottla.pipelines.databases.postgresql import SETTINGS
from ottla.pipelines.sinks.database.row_by_row import to_python
from tests.postgres import Sql

pytestmark = pytest.mark.behaviour("D5")
KINDS = "n bigint, text text, at timestamptz, local timestamp, real float8, yes boolean, day date, exact numeric(10,2)"
ROWS = pa.RecordBatch.from_pydict(
    {
        "n": pa.array([1, None, -(2**63), 2**63 - 1], pa.int64()),
        "text": pa.array(['a "b", c', "", None, 'x\ny\r\\.\n"\tü']),
        "at": pa.array([0, None, -1, 1_700_000_000_123_456], pa.timestamp("us", tz="UTC")),
        "local": pa.array([0, None, -1, 1_700_000_000_123_456], pa.timestamp("us")),
        "real": pa.array([1.5, None, float("-inf"), 1e-300]),
        "yes": pa.array([True, None, False, True]),
        "day": pa.array([datetime.date(2026, 1, 2), None, datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]),
        "exact": pa.array([Decimal("1.25"), None, Decimal("-0.01"), Decimal("0.00")], pa.decimal128(10, 2)),
    }
)
ONE_NUMBER = pa.schema([("n", pa.int64())])


@pytest.mark.parametrize("block_bytes", [1, 1 << 22])
def test_values_are_read_back_unchanged(sql: Sql, monkeypatch: pytest.MonkeyPatch, block_bytes: int) -> None:
    monkeypatch.setattr(copying, "BLOCK_BYTES", block_bytes)
    sql.run(f"create table kinds (place serial, {KINDS})")
    names = ", ".join(ROWS.schema.names)
    with psycopg.connect(sql.url, options=SETTINGS) as connection:
        copy_in(connection, f"kinds ({names})", ROWS)
        query = f"select {names} from kinds where place > %s and 'it''s %%' <> %s order by place"
        found = list(copy_out(connection, query, (0, "a 'b' %s"), ROWS.schema))
    assert pa.Table.from_batches(found).equals(pa.Table.from_batches([ROWS]))
    assert len(found) == (4 if block_bytes == 1 else 1)


def test_a_query_without_rows_gives_none(sql: Sql) -> None:
    with psycopg.connect(sql.url) as connection:
        assert list(copy_out(connection, "select 1 where false", (), pa.schema([("n", pa.int64())]))) == []


@pytest.mark.parametrize("wrong_at", [1, 2, 50_000, 99_999])
def test_a_query_that_fails_on_its_way_is_reported_and_the_connection_continues(sql: Sql, wrong_at: int) -> None:
    with psycopg.connect(sql.url, options=SETTINGS, autocommit=True) as connection:
        with pytest.raises(psycopg.errors.DivisionByZero, match="division by zero"), connection.transaction():
            list(copy_out(connection, f"select 1 / (n - {wrong_at}) from generate_series(1, 100000) n", (), ONE_NUMBER))
        assert connection.execute("select 1").fetchone() == (1,)


def test_a_partly_read_query_leaves_a_usable_connection(sql: Sql, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "BLOCK_BYTES", 1000)
    with psycopg.connect(sql.url, options=SETTINGS, autocommit=True) as connection:
        rows = copy_out(connection, "select n from generate_series(1, 1000000) n", (), ONE_NUMBER)
        assert next(rows).column(0)[0].as_py() == 1
        rows.close()  # type: ignore[attr-defined]
        assert connection.execute("select 1").fetchone() == (1,)


def test_a_server_that_ends_the_connection_on_its_way_is_reported(sql: Sql) -> None:
    end = "case when n = 90000 then pg_terminate_backend(pg_backend_pid())::int else n end"
    with (
        psycopg.connect(sql.url, options=SETTINGS, autocommit=True) as connection,
        pytest.raises(psycopg.OperationalError),
    ):
        list(copy_out(connection, f"select {end} from generate_series(1, 100000) n", (), ONE_NUMBER))


def test_a_value_that_arrow_has_not_is_reported(sql: Sql) -> None:
    schema = pa.schema([("at", pa.timestamp("us"))])
    with psycopg.connect(sql.url) as connection, pytest.raises(pa.ArrowInvalid, match="soon"):
        list(copy_out(connection, "select 'soon'", (), schema))


def test_times_that_python_does_not_have_are_text_for_postgresql(sql: Sql) -> None:
    moments = pa.array([10**18, -(10**17), 0, None], pa.timestamp("us"))
    rows = pa.RecordBatch.from_pydict({"at": moments, "day": pa.array([10**7, -(10**6), 0, None], pa.date32())})
    sql.run("create table late (at timestamp, day date)")
    with psycopg.connect(sql.url) as connection:
        copy_in(connection, "late (at, day)", rows)
    found = sql.rows("select extract(epoch from at)::bigint, day - date '1970-01-01' from late order by at nulls last")
    assert found == [(-(10**11), -(10**6)), (0, 0), (10**12, 10**7), (None, None)]
    assert to_python(moments) == [
        "33658-09-27 01:46:40.000000",
        "1200-02-15 14:13:20.000000 BC",
        "1970-01-01 00:00:00.000000",
        None,
    ]


def test_bytes_are_read_by_a_cursor() -> None:
    assert can_be_copied(ROWS.schema)
    assert not can_be_copied(pa.schema([("b", pa.binary())]))
