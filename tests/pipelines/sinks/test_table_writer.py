"""A batch and its mark are in the table together, or neither is."""

from __future__ import annotations

import datetime
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql.pandas.types import from_arrow_schema

from ottla.pipelines.databases.copying import is_plain
from ottla.pipelines.databases.database import DatabaseError
from ottla.pipelines.databases.url import database_of
from ottla.pipelines.sinks.database.staged_rows import can_be_staged
from ottla.pipelines.sinks.database.statements import Statements, add_offsets
from ottla.pipelines.sinks.database.table_writer import DatabaseTableWriter
from ottla.pipelines.sinks.upserts import DELETED
from tests.mysql import MySql
from tests.pipelines.either import Either, either_of
from tests.postgres import Sql

pytestmark = pytest.mark.behaviour("D5")


@pytest.fixture(params=["sqlite", "postgresql", "mysql"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Either:
    found = either_of(request.param, request, tmp_path)
    found.run("create table orders (id integer primary key, item text)")
    return found


def writer(either: Either, folder: Path, *, upsert: bool = False, query: str = "q") -> DatabaseTableWriter:
    database = database_of(either.url, folder)
    statements = Statements(database, "orders", ("id", "item"), ("id",) if upsert else ())
    either.run(statements.create_marks())
    return DatabaseTableWriter(database, statements, query)


def rows(*pairs: tuple[Any, Any], deleted: tuple[int, ...] = ()) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "id": pa.array([one for one, _ in pairs], pa.int64()),
            "item": pa.array([item for _, item in pairs], pa.string()),
            DELETED: pa.array([at in deleted for at in range(len(pairs))]),
        }
    )


def there(either: Either) -> list[Any]:
    return either.rows("select id, item from orders order by id")


def test_a_repeated_batch_is_written_once(either: Either, tmp_path: Path) -> None:
    one = writer(either, tmp_path)
    assert [one.write(0, [rows((1, "a"), (2, "b"))]).rows for _ in range(3)] == [2, 0, 0]
    assert one.write(1, [rows((3, "c"))]).rows == 1
    assert there(either) == [(1, "a"), (2, "b"), (3, "c")]


def test_a_failure_in_the_middle_leaves_neither_rows_nor_mark(either: Either, tmp_path: Path) -> None:
    one = writer(either, tmp_path)
    with pytest.raises(DatabaseError):
        one.write(0, [rows((1, "a")), rows((1, "twice"))])
    assert there(either) == []
    assert one.write(0, [rows((1, "a"))]).rows == 1


def test_an_upsert_takes_the_place_of_its_key_and_the_last_of_a_batch_counts(either: Either, tmp_path: Path) -> None:
    one = writer(either, tmp_path, upsert=True)
    one.write(0, [rows((1, "a"), (2, "b"))])
    one.write(1, [rows((1, "c"), (2, None), (1, "d"))])
    assert there(either) == [(1, "d"), (2, None)]


def test_a_tombstone_deletes_in_its_turn(either: Either, tmp_path: Path) -> None:
    one = writer(either, tmp_path, upsert=True)
    one.write(0, [rows((1, "a"), (2, "b"), (1, None), (3, "c"), (3, None), (3, "again"), deleted=(2, 4))])
    assert there(either) == [(2, "b"), (3, "again")]


def test_an_old_checkpoint_is_refused(either: Either, tmp_path: Path) -> None:
    one = writer(either, tmp_path)
    one.write(7, [rows((1, "a"))])
    with pytest.raises(
        DatabaseError, match="table orders has batch 7 of this pipeline already, so batch 6 is too late"
    ):
        one.write(6, [rows((2, "b"))])


def test_another_batch_of_the_same_number_is_refused_and_not_taken_for_a_repetition(
    either: Either, tmp_path: Path
) -> None:
    one = writer(either, tmp_path)
    assert [one.write(0, [rows((1, "a"))], "digest").rows for _ in range(2)] == [1, 0]
    with pytest.raises(DatabaseError, match="table orders has another batch 0 of this pipeline, with other offsets"):
        one.write(0, [rows((2, "b"))], "another")
    assert one.write(1, [rows((3, "c"))], "later").rows == 1
    assert there(either) == [(1, "a"), (3, "c")]
    assert either.rows("select * from ottla_batches") == [("q", 1, "later")]


def test_marks_of_an_earlier_version_count_and_get_a_column_of_offsets(either: Either, tmp_path: Path) -> None:
    database = database_of(either.url, tmp_path)
    either.run(
        "create table ottla_batches (query varchar(200) primary key, batch bigint not null)",
        "insert into ottla_batches values ('q', 4)",
    )
    for _ in range(2):
        with database.connect() as connection:
            add_offsets(database, connection)
    one = writer(either, tmp_path)
    assert one.write(4, [rows((1, "a"))], "digest").rows == 0
    assert one.write(5, [rows((1, "a"))], "digest").rows == 1
    assert either.rows("select * from ottla_batches") == [("q", 5, "digest")]


@pytest.mark.parametrize("upsert", [False, True], ids=["added", "by key"])
def test_a_column_that_was_renamed_under_the_pipeline_is_named_with_the_remedy(
    either: Either, tmp_path: Path, upsert: bool
) -> None:
    one = writer(either, tmp_path, upsert=upsert)
    assert one.write(0, [rows((1, "a"))]).rows == 1
    either.run("alter table orders rename column item to thing")
    with pytest.raises(DatabaseError, match="table orders lost the column 'item', and has id, thing; put it back"):
        one.write(1, [rows((2, "b"))])
    either.run("alter table orders rename column thing to item")
    assert one.write(1, [rows((2, "b"))]).rows == 1


def test_queries_do_not_know_each_other(either: Either, tmp_path: Path) -> None:
    writer(either, tmp_path).write(0, [rows((1, "a"))])
    assert writer(either, tmp_path, query="another").write(0, [rows((2, "b"))]).rows == 1


def test_a_row_without_a_key_is_reported(either: Either, tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match=r"table orders: a row has no id, a column of pk\.fields"):
        writer(either, tmp_path, upsert=True).write(0, [rows((None, "a"))])


@pytest.mark.parametrize("kind", ["postgresql", "mysql"])
def test_two_attempts_at_once_write_once(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> None:
    either = either_of(kind, request, tmp_path)
    either.run("create table orders (id integer, item text)")
    one = writer(either, tmp_path)
    first_has_begun, second_waits = threading.Event(), threading.Event()
    counts: list[int] = []

    def slow() -> Any:
        first_has_begun.set()
        assert second_waits.wait(60)
        yield rows((1, "a"))

    first = threading.Thread(target=lambda: counts.append(one.write(0, slow()).rows))
    first.start()
    assert first_has_begun.wait(60)
    second = threading.Thread(target=lambda: counts.append(one.write(0, [rows((1, "a"))]).rows))
    second.start()
    second_waits.set()
    first.join(60)
    second.join(60)
    assert (sorted(counts), there(either)) == ([0, 1], [(1, "a")])


@pytest.mark.parametrize("name", ['we"ird', "has space", "select", "naïve"])
def test_names_are_taken_as_they_are(either: Either, tmp_path: Path, name: str) -> None:
    database = database_of(either.url, tmp_path)
    statements = Statements(database, name, ("id", name), ("id",))
    either.run(statements.create(["integer", "text"]), statements.create_marks())
    batch = pa.RecordBatch.from_pydict({"id": [1], name: ["x"]})
    assert DatabaseTableWriter(database, statements, "q").write(0, [batch]).rows == 1
    assert either.rows(f"select * from {database.quote_table(name)}") == [(1, "x")]


TYPES: dict[str, tuple[str, Any]] = {
    "small": ("smallint", pa.array([1, None, -7], pa.int16())),
    "long": ("bigint", pa.array([2**62, None, 0], pa.int64())),
    "real": ("double precision", pa.array([1.5, float("nan"), float("-inf")], pa.float64())),
    "yes": ("boolean", pa.array([True, None, False])),
    "text": ("text", pa.array(['a "b", c\n\\.', None, ""], pa.string())),
    "json": ("jsonb", pa.array(['{"a": "ü"}', None, "[]"], pa.string())),
    "bytes": ("bytea", pa.array([b"\x00\xff", None, b""], pa.binary())),
    "day": ("date", pa.array([datetime.date(2026, 1, 2), None, datetime.date(1, 1, 1)], pa.date32())),
    "at": ("timestamptz", pa.array([0, None, 1_700_000_000_123_456], pa.timestamp("us", tz="UTC"))),
    "local": ("timestamp", pa.array([0, None, -1], pa.timestamp("us"))),
    "exact": ("numeric(10,2)", pa.array([Decimal("1.25"), None, Decimal("-0.01")], pa.decimal128(10, 2))),
}


def test_postgresql_has_the_same_values_by_copy_as_by_statements(sql: Sql, tmp_path: Path) -> None:
    """A rule, though it does nothing, makes each row a statement of its own."""
    batch = pa.RecordBatch.from_pydict({name: values for name, (_, values) in TYPES.items()})
    database = database_of(sql.url, tmp_path)
    for table in ("copied", "told"):
        statements = Statements(database, table, tuple(TYPES))
        sql.run(statements.create([kind for kind, _ in TYPES.values()]), statements.create_marks())
        if table == "told":
            sql.run("create rule never as on insert to told where new.small = 99 do instead nothing")
        with database.connect() as connection:
            assert is_plain(connection, table) == (table == "copied")
        assert DatabaseTableWriter(database, statements, table).write(0, [batch]).rows == 3
    assert len(sql.rows("select copied::text from copied intersect all select told::text from told")) == 3


@pytest.mark.parametrize(
    ("column", "given", "there"),
    [
        ("integer", pa.array([1.5]), 2),
        ("integer", pa.array([Decimal("3.00")], pa.decimal128(5, 2)), 3),
        ("timestamp", pa.array([0], pa.timestamp("us", tz="UTC")), datetime.datetime(1970, 1, 1)),
    ],
)
def test_values_that_only_statements_convert_are_written_by_statements(
    sql: Sql, tmp_path: Path, column: str, given: Any, there: Any
) -> None:
    sql.run(f"create table numbers (n {column})")
    statements = Statements(database_of(sql.url, tmp_path), "numbers", ("n",))
    sql.run(statements.create_marks())
    DatabaseTableWriter(statements.database, statements, "q").write(0, [pa.RecordBatch.from_arrays([given], ["n"])])
    assert sql.rows("select n from numbers") == [(there,)]


ALONE = "create table {} (id integer, part varchar(3), item text, other text default 'new', primary key (id, part))"
WATCHED = """
create function pass() returns trigger language plpgsql as 'begin return new; end';
create trigger watch before insert on told for each row execute function pass()
"""
CHANGES = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from("ab"), st.none() | st.text('xy\\",', max_size=2), st.booleans())
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=st.lists(CHANGES, min_size=1, max_size=3))
def test_changes_leave_the_same_put_together_as_one_by_one(
    sql: Sql, tmp_path: Path, batches: list[list[tuple[int, str, str | None, bool]]]
) -> None:
    """A trigger, though it does nothing, makes each change a statement of its own."""
    names = ("id", "part", "item", DELETED)
    types: list[Any] = [pa.int64(), pa.string(), pa.string(), pa.bool_()]
    schema = pa.schema(list(zip(names, types, strict=True)))
    database, left = database_of(sql.url, tmp_path), []
    sql.run("drop table if exists staged, told, ottla_batches", "drop function if exists pass")
    for table in ("staged", "told"):
        statements = Statements(database, table, ("id", "part", "item"), ("id", "part"))
        sql.run(ALONE.format(table), statements.create_marks())
        sql.run(f"insert into {table} values (0, 'a', 'old', 'kept'), (3, 'b', 'old', 'kept')")
        if table == "told":
            sql.run(WATCHED)
        with database.connect() as connection:
            assert can_be_staged(connection, table) == (table == "staged")
        rows = [
            pa.RecordBatch.from_pylist([dict(zip(names, row, strict=True)) for row in one], schema) for one in batches
        ]
        assert DatabaseTableWriter(database, statements, table).write(0, rows).rows == sum(map(len, batches))
        left.append(sql.rows(f"select * from {table} order by id, part"))
    assert left[0] == left[1]


@pytest.mark.parametrize("wrong", ["id integer, item text", "id integer, item text, unique (item)"])
def test_a_key_column_missing_from_the_table_is_a_one_line_error(sql: Sql, tmp_path: Path, wrong: str) -> None:
    sql.run(f"create table orders ({wrong})")
    with pytest.raises(DatabaseError, match="there is no unique or exclusion constraint matching the ON CONFLICT"):
        writer(sql, tmp_path, upsert=True).write(0, [rows((1, "a"))])


@pytest.mark.parametrize("upsert", [False, True])
def test_a_column_that_was_renamed_meanwhile_is_reported_with_the_remedies(
    sql: Sql, tmp_path: Path, upsert: bool
) -> None:
    sql.run("create table orders (id integer primary key, title text)")
    message = r"table orders lost the column 'item', and has id, title; put it back, and the pipeline continues by itself, or drop"
    with pytest.raises(DatabaseError, match=message):
        writer(sql, tmp_path, upsert=upsert).write(0, [rows((1, "a"))])


def test_a_table_with_a_domain_receives_each_row_by_itself(sql: Sql, tmp_path: Path) -> None:
    """Rows that are to be deleted have no values for it."""
    sql.run("create domain filled as text not null", "create table orders (id integer primary key, item filled)")
    one = writer(sql, tmp_path, upsert=True)
    assert one.write(0, [rows((1, "a"), (2, "b"), (1, None), deleted=(2,))]).rows == 3
    assert there(sql) == [(2, "b")]


def test_a_user_without_temporary_tables_writes_row_by_row(sql: Sql, tmp_path: Path) -> None:
    sql.run("create table orders (id integer primary key, item text)")
    one = writer(sql, tmp_path, upsert=True)
    sql.run(
        f"create role limited_{sql.name} login password 'limited'",
        f"revoke temporary on database {sql.name} from public",
        f"grant all on all tables in schema public to limited_{sql.name}",
    )
    database = database_of(f"postgresql://limited_{sql.name}:limited@127.0.0.1:{sql.server.port}/{sql.name}", tmp_path)
    limited = DatabaseTableWriter(database, one.statements, "q")
    assert limited.write(0, [rows((1, "a"), (1, "b"))]).rows == 2
    assert there(sql) == [(1, "b")]


def test_a_value_rejected_by_copy_is_a_one_line_error(sql: Sql, tmp_path: Path) -> None:
    sql.run("create table numbers (n integer)")
    statements = Statements(database_of(sql.url, tmp_path), "numbers", ("n",))
    sql.run(statements.create_marks())
    with pytest.raises(DatabaseError, match='invalid input syntax for type integer: "many"'):
        DatabaseTableWriter(statements.database, statements, "q").write(
            0, [pa.RecordBatch.from_pydict({"n": ["many"]})]
        )


MYSQL_TYPES: dict[str, Any] = {
    "id": pa.array(["a", "A"], pa.string()),
    "small": pa.array([1, None], pa.int16()),
    "long": pa.array([2**62, None], pa.int64()),
    "real": pa.array([0.1, None], pa.float64()),
    "yes": pa.array([True, None]),
    "text": pa.array(['a "b", c\n\\. 100 %s 🚀', ""], pa.string()),
    "bytes": pa.array([b"\x00\xff'", None], pa.binary()),
    "day": pa.array([datetime.date(2026, 1, 2), None], pa.date32()),
    "at": pa.array([1_700_000_000_123_456, None], pa.timestamp("us", tz="Asia/Seoul")),
    "exact": pa.array([Decimal("1.25"), None], pa.decimal128(10, 2)),
}


def test_a_table_that_was_made_in_mysql_has_every_value_and_keys_that_differ_by_case(
    mysql: MySql, tmp_path: Path
) -> None:
    batch = pa.RecordBatch.from_pydict(MYSQL_TYPES)
    database = database_of(mysql.url, tmp_path)
    schema = from_arrow_schema(batch.schema)
    kinds = [database.type_of(field.dataType, field.name == "id") for field in schema]
    statements = Statements(database, "copies", tuple(MYSQL_TYPES), ("id",))
    mysql.run(statements.create(kinds), statements.create_marks())
    assert DatabaseTableWriter(database, statements, "q").write(0, [batch]).rows == 2
    first, second = mysql.rows("select * from copies order by id desc")
    at = datetime.datetime(2023, 11, 14, 22, 13, 20, 123456)
    assert first == (*(values[0].as_py() for values in list(MYSQL_TYPES.values())[:-2]), at, Decimal("1.25"))
    assert second == ("A", None, None, None, None, "", None, None, None, None)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e300])
def test_a_value_that_mysql_cannot_store_is_a_one_line_error(mysql: MySql, tmp_path: Path, value: float) -> None:
    mysql.run("create table numbers (n float)")
    statements = Statements(database_of(mysql.url, tmp_path), "numbers", ("n",))
    mysql.run(statements.create_marks())
    with pytest.raises(DatabaseError, match=r"^table numbers: row n = .*: database mysql://127\.0\.0\.1"):
        DatabaseTableWriter(statements.database, statements, "q").write(0, [pa.RecordBatch.from_pydict({"n": [value]})])
    assert mysql.rows("select * from numbers") == []


@pytest.mark.parametrize("way", ["added", "by key", "by trigger", "by key and trigger"])
def test_columns_may_have_a_percent_sign_in_their_names(either: Either, tmp_path: Path, way: str) -> None:
    quote = "`" if isinstance(either, MySql) else '"'
    names = ("i%d", "%s", "a%%")
    first, *others = (f"{quote}{name}{quote}" for name in names)
    either.run(f"create table {quote}50%{quote} ({first} int primary key, {' int, '.join(others)} int)")
    if "trigger" in way and isinstance(either, Sql):
        either.run(
            "create function same() returns trigger language plpgsql as 'begin return new; end'",
            'create trigger same before insert on "50%" for each row execute function same()',
        )
    key = ("i%d",) if "key" in way else ()
    statements = Statements(database_of(either.url, tmp_path), "50%", names, key)
    either.run(statements.create_marks())
    one = DatabaseTableWriter(statements.database, statements, "q")
    numbers = [pa.array([1, 2], pa.int32())] * 3
    columns: dict[str, Any] = {
        **dict(zip(names, numbers, strict=True)),
        **({DELETED: pa.array([False, False])} if key else {}),
    }
    assert one.write(0, [pa.RecordBatch.from_pydict(columns)]).rows == 2
    gone = {**columns, DELETED: pa.array([False, True])}
    if key:
        one.write(1, [pa.RecordBatch.from_pydict(gone)])
    assert len(either.rows(f"select * from {quote}50%{quote}")) == (1 if key else 2)
