"""Changes of a table: the rows that are there, then each change, without a gap and without a row twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pydantic import TypeAdapter, ValidationError
from pyspark.sql.streaming.datasource import ReadAllAvailable

from ottla.errors import ConfigError
from ottla.pipelines.databases.copying import numbers_of
from ottla.pipelines.databases.database import DatabaseError
from ottla.pipelines.databases.times import micros_of, parse_time
from ottla.pipelines.feeds.feed_reader import FeedReader
from ottla.pipelines.pipeline_context import PipelineContext
from ottla.pipelines.sources.postgres_cdc import PostgresCdcSource
from ottla.pipelines.sources.postgres_cdc.pgoutput import PgoutputError
from tests.pipelines.sources.asked import Asked
from tests.pipelines.sources.test_database import VALUES
from tests.postgres import Sql

pytestmark = pytest.mark.behaviour("D6")

MODEL: TypeAdapter[PostgresCdcSource] = TypeAdapter(PostgresCdcSource)


def source(sql: Sql, **more: Any) -> PostgresCdcSource:
    given = {"type": "postgres-cdc", "url": sql.url, "table": "t", "slot.name": f"s_{sql.name}"}
    return MODEL.validate_python(given | more)


@pytest.fixture
def asked(sql: Sql, tmp_path: Path) -> Iterator[Asked]:
    sql.run("create table t (id int primary key, a text)")
    found = Asked(tmp_path)
    yield found
    found.stop()
    source(sql).clean(PipelineContext())


def summarize(rows: list[dict[str, Any]]) -> list[Any]:
    """Changes in short: what happened, before, after; tombstones as nothing."""
    return [
        None
        if row["_tombstone"]
        else (row["op"], *(one and tuple(one.values()) for one in (row["before"], row["after"])))
        for row in rows
    ]


def test_existing_rows_are_delivered_first_and_then_each_change_in_order(sql: Sql, asked: Asked) -> None:
    sql.run("insert into t values (1, 'a'), (2, 'b')")
    reader = asked.reader(source(sql))
    assert summarize(asked.next(reader)) == [("r", None, (1, "a")), ("r", None, (2, "b"))]
    sql.run("insert into t values (3, 'c')", "update t set a = 'x' where id = 1", "delete from t where id = 2")
    found = asked.next(reader)
    assert summarize(found) == [("c", None, (3, "c")), ("u", None, (1, "x")), ("d", (2, None), None), None]
    assert [row["_key"] for row in found] == [{"id": 3}, {"id": 1}, {"id": 2}, {"id": 2}]
    about = found[0]["source"]
    assert (about["connector"], about["schema"], about["table"], about["db"]) == ("postgresql", "public", "t", sql.name)
    assert asked.next(reader) == []


def test_a_transaction_is_delivered_whole_when_committed(sql: Sql, asked: Asked) -> None:
    reader = asked.reader(source(sql))
    asked.all(reader)
    with sql.connect() as first:
        first.execute("insert into t values (1, 'early')")
        sql.run("insert into t values (2, 'late')")
        assert summarize(asked.next(reader)) == [("c", None, (2, "late"))]
        first.execute("insert into t values (3, 'early')")
        first.commit()
    found = asked.next(reader)
    assert summarize(found) == [("c", None, (1, "early")), ("c", None, (3, "early"))]
    assert len({row["source"]["txId"] for row in found}) == 1


def test_a_rolled_back_transaction_is_not_delivered(sql: Sql, asked: Asked) -> None:
    reader = asked.reader(source(sql))
    asked.all(reader)
    with sql.connect() as lost:
        lost.execute("insert into t values (1, 'a')")
        lost.rollback()
    assert asked.next(reader) == []


def test_rows_written_during_the_snapshot_are_delivered_once(sql: Sql, asked: Asked) -> None:
    sql.run("insert into t select g, 'old' from generate_series(1, 100) g")
    reader = asked.reader(source(sql))
    asked.next(reader)
    sql.run("insert into t select g, 'new' from generate_series(101, 200) g")
    found = [row["after"]["id"] for row in asked.again(reader) + asked.all(reader)]
    assert found == list(range(1, 201))


def test_a_large_transaction_is_delivered_in_batches_of_limited_size(sql: Sql, asked: Asked) -> None:
    reader = asked.reader(source(sql, **{"batch.max.rows": 1000}))
    asked.all(reader)
    sql.run("insert into t select g, 'x' from generate_series(1, 3500) g")
    sizes = []
    while rows := asked.next(reader):
        sizes.append(len(rows))
    assert (sum(sizes), max(sizes) <= 1000) == (3500, True)


def test_a_batch_that_is_done_again_by_another_process_is_the_same_and_the_slot_continues(
    sql: Sql, asked: Asked
) -> None:
    model = source(sql)
    sql.run("insert into t values (1, 'a')")
    asked.next(asked.reader(model))
    sql.run("insert into t values (2, 'b')")
    asked.stop()
    found = asked.next(asked.reader(model))
    asked.stop()
    sql.run("delete from t", "insert into t values (3, 'c')")
    again = asked.reader(model)
    assert asked.again(again) == found
    assert summarize(asked.next(again)) == [
        ("d", (1, None), None),
        None,
        ("d", (2, None), None),
        None,
        ("c", None, (3, "c")),
    ]


def test_a_snapshot_that_was_broken_off_is_made_again(sql: Sql, asked: Asked) -> None:
    sql.run("insert into t values (1, 'a')")
    model = source(sql)
    first = asked.reader(model)
    first.latestOffset(first.initialOffset(), None)  # type: ignore[arg-type]  # and Spark was killed before it wrote that down
    asked.stop()
    sql.run("insert into t values (2, 'b')")
    assert summarize(asked.all(asked.reader(model))) == [("r", None, (1, "a")), ("r", None, (2, "b"))]


@pytest.mark.behaviour("D8")
def test_a_killed_server_loses_nothing_and_repeats_nothing(sql: Sql, asked: Asked) -> None:
    reader = asked.reader(source(sql))
    asked.all(reader)
    sql.run("insert into t values (1, 'a')")
    assert len(asked.next(reader)) == 1
    sql.run("insert into t values (2, 'b')")
    sql.server.kill()
    with pytest.raises(DatabaseError, match=f"^database {sql.shown}: "):
        asked.next(reader)
    sql.server.start()
    sql.run("insert into t values (3, 'c')")
    assert summarize(asked.all(reader)) == [("c", None, (2, "b")), ("c", None, (3, "c"))]


LONG = "repeat('long', 4000)"


def test_long_values_that_an_update_did_not_touch_have_debeziums_place_holder(sql: Sql, asked: Asked) -> None:
    sql.run(
        "alter table t add n int", "alter table t alter a set storage external", f"insert into t values (1, {LONG}, 1)"
    )
    reader = asked.reader(source(sql))
    asked.all(reader)
    sql.run("update t set n = 2")
    assert summarize(asked.next(reader)) == [("u", None, (1, "__debezium_unavailable_value", 2))]
    sql.run("alter table t replica identity full", "update t set n = 3")
    assert summarize(asked.next(reader)) == [("u", (1, "long" * 4000, 2), (1, "long" * 4000, 3))]


def test_rows_have_long_values_as_the_table_has_them(sql: Sql, asked: Asked) -> None:
    sql.run(
        "alter table t add n int", "alter table t alter a set storage external", f"insert into t values (1, {LONG}, 1)"
    )
    reader = asked.reader(source(sql, envelope=False))
    asked.all(reader)
    sql.run("update t set n = 2", "delete from t")
    first, second = asked.next(reader)
    assert (first["a"], first["n"], first["_tombstone"]) == (None, 2, False)  # it is gone by now
    assert (second["_key"], second["_tombstone"]) == ({"id": 1}, True)
    sql.run(f"insert into t values (2, {LONG}, 1)", "update t set n = 2")
    assert [(row["a"] == "long" * 4000, row["n"]) for row in asked.next(reader)] == [(True, 1), (True, 2)]


def test_another_key_is_a_deletion_and_a_new_row(sql: Sql, asked: Asked) -> None:
    sql.run("insert into t values (1, 'a')")
    reader = asked.reader(source(sql, **{"tombstones.on.delete": False}))
    asked.all(reader)
    sql.run("update t set id = 2")
    assert summarize(asked.next(reader)) == [("d", (1, None), None), ("c", None, (2, "a"))]


def test_a_table_that_is_emptied_is_a_change_and_for_rows_a_stop(sql: Sql, asked: Asked) -> None:
    reader = asked.reader(source(sql))
    asked.all(reader)
    sql.run("truncate t")
    assert summarize(asked.next(reader)) == [("t", None, None)]


def test_values_of_every_type_are_the_same_in_snapshot_and_change(sql: Sql, asked: Asked) -> None:
    names = [f"c{number}" for number in range(len(VALUES))]
    sql.run(*(f"alter table t add {name} {kind}" for name, kind in zip(names, VALUES, strict=True)))
    row = ", ".join(text for text, _ in VALUES.values())
    sql.run(f"insert into t values (1, 'a', {row})")
    reader = asked.reader(source(sql, envelope=False))
    (snapshot,) = asked.next(reader)
    sql.run(f"insert into t values (2, 'a', {row})")
    (change,) = asked.next(reader)
    assert (
        [snapshot[name] for name in names]
        == [change[name] for name in names]
        == [value for _, value in VALUES.values()]
    )


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("add b int", "gained the column 'b'"),
        ("drop a", "lost the column 'a'"),
        ("alter n type bigint, alter n set default 5000000000", "has the column 'n' as bigint, which was integer"),
        ("alter n type text, alter n set default 'many'", "has the column 'n' as text, which was integer"),
    ],
    ids=["gained", "lost", "wider", "another"],
)
def test_a_changed_table_stops_the_pipeline_and_it_continues_when_run_again(
    sql: Sql, asked: Asked, change: str, what: str
) -> None:
    sql.run("alter table t add n int default 1")
    model = source(sql, envelope=False)
    reader = asked.reader(model)
    asked.all(reader)
    sql.run("insert into t values (1, 'a')", f"alter table t {change}", "insert into t (id) values (2)")
    with pytest.raises(DatabaseError, match=f"table t {what}; the next attempt continues with"):
        asked.next(reader)
    asked.stop()
    assert [row["id"] for row in asked.all(asked.reader(model))] == [1, 2]


def test_the_server_may_forget_what_is_in_the_sink(sql: Sql, asked: Asked) -> None:
    model = source(sql)
    reader = asked.reader(model)
    asked.all(reader)
    slot = f"select confirmed_flush_lsn from pg_replication_slots where slot_name = 's_{sql.name}'"
    before = sql.rows(slot)
    sql.run("insert into t values (1, 'a')")
    asked.next(reader)
    assert sql.rows(slot) == before
    asked.next(reader)
    assert sql.rows(slot) > before


def test_a_missing_slot_and_one_ahead_of_the_checkpoint_are_reported(sql: Sql, asked: Asked) -> None:
    reader = asked.reader(source(sql))
    asked.all(reader)
    old = list(asked.log)
    sql.run("insert into t values (1, 'a')")
    asked.all(reader)
    new, asked.log = asked.log, old
    with pytest.raises(DatabaseError, match="has advanced past the checkpoint, which is an old copy"):
        asked.next(reader)
    asked.log = new
    sql.run(f"select pg_drop_replication_slot('s_{sql.name}')")
    with pytest.raises(DatabaseError, match=f"slot s_{sql.name} does not exist any more, and later changes are lost"):
        asked.next(reader)


def test_a_slot_of_another_program_is_not_dropped(sql: Sql, asked: Asked) -> None:
    sql.run(f"select pg_create_logical_replication_slot('s_{sql.name}', 'pgoutput')")
    with pytest.raises(ConfigError, match="exists already and was not made for this pipeline"):
        asked.next(asked.reader(source(sql)))


def test_leftovers_are_reported_and_deleted(sql: Sql, asked: Asked) -> None:
    model = source(sql)
    assert list(model.find_leftovers(PipelineContext())) == []
    asked.all(asked.reader(model))
    asked.stop()
    slot, publication = model.find_leftovers(PipelineContext())
    assert slot.startswith(f"slot s_{sql.name} of {sql.shown}, for which the server keeps ")
    assert publication == f"publication s_{sql.name} of {sql.shown}"
    model.clean(PipelineContext())
    assert list(model.find_leftovers(PipelineContext())) == []


def test_a_position_has_no_secret(sql: Sql, asked: Asked) -> None:
    reader = asked.reader(source(sql))
    sql.run("insert into t values (1, 'a')")
    asked.all(reader)
    assert "s3cret" not in json.dumps(asked.log)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"url": "sqlite:///a.db"}, "changes can only be read from PostgreSQL"),
        ({"url": "sqllite:///a.db"}, "unknown kind of database 'sqllite'; did you mean 'sqlite'?"),
        ({"slot.name": "My-Slot"}, "'My-Slot' is not a valid slot name: use small letters"),
    ],
)
def test_a_file_that_is_not_valid_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as error:
        MODEL.validate_python({"type": "postgres-cdc", "url": "postgresql://h/d", "table": "t"} | given)
    assert said in str(error.value)


def test_a_table_without_a_key_cannot_be_read_as_rows(sql: Sql, asked: Asked) -> None:
    sql.run("alter table t drop constraint t_pkey", "alter table t replica identity full")
    with pytest.raises(ConfigError, match="table t has no primary key to identify its rows"):
        asked.reader(source(sql, envelope=False))


def test_changes_of_a_table_that_is_partitioned_are_those_of_the_whole(sql: Sql, asked: Asked) -> None:
    sql.run("drop table t", "create table t (id int primary key, a text) partition by range (id)")
    sql.run("create table low partition of t for values from (0) to (10)", "insert into t values (1, 'a')")
    reader = asked.reader(source(sql))
    assert summarize(asked.all(reader)) == [("r", None, (1, "a"))]
    sql.run("insert into t values (2, 'b')", "update low set a = 'c' where id = 1")
    assert summarize(asked.all(reader)) == [("c", None, (2, "b")), ("u", None, (1, "c"))]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("(publish = 'insert')", "leaves out changes of t; set publish = 'insert, update, delete, truncate' there"),
        (
            "(publish = 'insert, update, delete')",
            "leaves out changes of t; set publish = 'insert, update, delete, truncate' there",
        ),
        (
            "(publish_via_partition_root = false)",
            "leaves out changes of t; set publish_via_partition_root = true there",
        ),
    ],
)
def test_a_publication_that_leaves_changes_out_is_refused(sql: Sql, asked: Asked, options: str, said: str) -> None:
    sql.run("drop table t", "create table t (id int primary key, a text) partition by range (id)")
    sql.run(f"create publication theirs for table t with {options}")
    with pytest.raises(ConfigError, match=said):
        asked.next(asked.reader(source(sql, **{"publication.name": "theirs"})))


KEYS = {
    "boolean": "true",
    "timestamptz": "'2026-05-01 10:00:00.5+02'",
    "timestamp": "'2026-05-01 10:00:00.120'",
    "double precision": "1e20",
    "real": "0.1",
    "bytea": "'\\x00ff'",
    "char(5)": "'ab'",
    "numeric(10,2)": "5.50",
    "numeric": "5.500",
    "uuid": "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
    "interval": "'1 day 02:00'",
    "money": "'1234.50'",
    "date": "'2026-05-01'",
    "text": "'it''s %s'",
    "int[]": "'{1,2}'",
    '"char"': "'x'",
}


@pytest.mark.parametrize("kind", KEYS)
def test_long_values_of_rows_are_found_by_keys_of_every_type(sql: Sql, asked: Asked, kind: str) -> None:
    sql.run("drop table t", f"create table t (id {kind} primary key, a text, n int)")
    sql.run("alter table t alter a set storage external", f"insert into t values ({KEYS[kind]}, {LONG}, 1)")
    reader = asked.reader(source(sql, envelope=False))
    asked.all(reader)
    sql.run("update t set n = 2")
    assert [(row["a"], row["n"]) for row in asked.next(reader)] == [("long" * 4000, 2)]


def test_long_values_of_rows_are_found_by_keys_of_several_columns(sql: Sql, asked: Asked) -> None:
    sql.run("drop table t", "create table t (b boolean, at timestamptz, a text, n int, primary key (b, at))")
    sql.run("alter table t alter a set storage external", f"insert into t values (true, now(), {LONG}, 1)")
    reader = asked.reader(source(sql, envelope=False))
    asked.all(reader)
    sql.run("update t set n = 2")
    assert [(row["a"], row["n"]) for row in asked.next(reader)] == [("long" * 4000, 2)]


def test_a_long_key_that_an_update_did_not_touch_is_the_key_that_it_was(sql: Sql, asked: Asked) -> None:
    key = "".join(f"{number:08x}" for number in range(0, 2**32, 2**32 // 300))
    sql.run(
        "drop table t", "create table t (id text primary key, n int)", "alter table t alter id set storage external"
    )
    sql.run(f"insert into t values ('{key}', 1)")
    reader = asked.reader(source(sql, envelope=False))
    asked.all(reader)
    sql.run("update t set n = 2")
    assert [(row["id"], row["n"], row["_key"]) for row in asked.next(reader)] == [(key, 2, {"id": key})]


ANOTHER = "drop table t", "create table t (id int primary key, a text)"
LOST = {
    "renamed and replaced": (
        ("alter table t rename to old", "create table t (id int primary key, a text)"),
        "table t is not the table that was read",
    ),
    "dropped and made": (ANOTHER, "table t is not the table that was read"),
    "dropped, made and published": ((*ANOTHER, "alter publication {p} add table t"), "table t is not the table that"),
    "taken out": (("alter publication {p} drop table t",), "publication {p} does not have table t any more"),
    "taken out and put back": (
        ("alter publication {p} drop table t", "insert into t values (9, 'lost')", "alter publication {p} add table t"),
        "publication {p} was altered \\(columns, rows or operations of table t\\)",
    ),
    "with a row filter": (
        ("alter publication {p} set table t where (id > 5)",),
        "publication {p} was altered \\(columns, rows or operations of table t\\)",
    ),
    "with a column list": (
        ("alter publication {p} set table t (id)",),
        "publication {p} was altered \\(columns, rows or operations of table t\\)",
    ),
    "without updates": (
        ("alter publication {p} set (publish = 'insert')",),
        "publication {p} was altered \\(columns, rows or operations of table t\\)",
    ),
    "without updates for a while": (
        (
            "alter publication {p} set (publish = 'insert')",
            "update t set a = 'lost'",
            "alter publication {p} set (publish = 'insert, update, delete, truncate')",
        ),
        "publication {p} was altered \\(columns, rows or operations of table t\\)",
    ),
    "no publication": (("drop publication {p}",), "the publication of table t does not exist any more"),
    "another key": (
        ("alter table t drop constraint t_pkey, alter a set not null, add primary key (a)",),
        "table t has the key \\(a\\), and rows were read with \\(id\\)",
    ),
    "an identity of another key": (
        ("alter table t alter a set not null, add unique (a)", "alter table t replica identity using index t_a_key"),
        "table t has the key \\(a\\), and rows were read with \\(id\\)",
    ),
}


@pytest.mark.parametrize("envelope", [True, False])
@pytest.mark.parametrize("change", LOST)
def test_removed_log_positions_stop_a_running_pipeline(sql: Sql, asked: Asked, change: str, envelope: bool) -> None:
    sql.run("insert into t values (1, 'a')")
    reader = asked.reader(source(sql, envelope=envelope))
    asked.all(reader)
    statements, said = LOST[change]
    sql.run(*(one.format(p=f"s_{sql.name}") for one in statements))
    with pytest.raises(DatabaseError, match=f"^{said.format(p=f's_{sql.name}')}"):
        asked.next(reader)


@pytest.mark.parametrize("change", LOST)
def test_removed_log_positions_stop_the_next_start(sql: Sql, asked: Asked, change: str) -> None:
    sql.run("insert into t values (1, 'a')")
    model = source(sql)
    asked.all(asked.reader(model))
    asked.stop()
    statements, said = LOST[change]
    sql.run(*(one.format(p=f"s_{sql.name}") for one in statements))
    with pytest.raises(ConfigError, match=f"^{said.format(p=f's_{sql.name}')}"):
        asked.reader(model)


def test_a_table_that_was_renamed_and_got_its_name_back_continues_without_a_gap(sql: Sql, asked: Asked) -> None:
    reader = asked.reader(source(sql))
    asked.all(reader)
    sql.run("alter table t rename to old", "insert into old values (1, 'a')", "create table t (id int primary key)")
    with pytest.raises(DatabaseError, match="table t is not the table that was read"):
        asked.next(reader)
    sql.run("drop table t", "alter table old rename to t", "insert into t values (2, 'b')")
    assert summarize(asked.next(reader)) == [("c", None, (1, "a")), ("c", None, (2, "b"))]


def test_other_changes_of_a_publication_stop_nothing(sql: Sql, asked: Asked) -> None:
    model = source(sql)
    reader = asked.reader(model)
    asked.all(reader)
    sql.run("create table u (id int)", f"alter publication s_{sql.name} add table u", "insert into t values (1, 'a')")
    assert summarize(asked.next(reader)) == [("c", None, (1, "a"))]
    asked.stop()
    sql.run(f"alter publication s_{sql.name} drop table u", "insert into t values (2, 'b')")
    assert summarize(asked.next(asked.reader(model))) == [("c", None, (2, "b"))]


@pytest.mark.parametrize("what", ["table t", "table t, u", "all tables", "tables in schema public"])
def test_a_publication_of_any_kind_will_do(sql: Sql, asked: Asked, what: str) -> None:
    sql.run("create table u (id int)", "insert into t values (1, 'a')", f"create publication theirs for {what}")
    reader = asked.reader(source(sql, **{"publication.name": "theirs"}))
    sql.run("insert into t values (2, 'b')")
    found = asked.all(reader)
    sql.run("update t set a = 'c' where id = 1")
    assert summarize(found + asked.next(reader)) == [
        ("r", None, (1, "a")),
        ("r", None, (2, "b")),
        ("u", None, (1, "c")),
    ]


def test_the_snapshot_has_the_rows_that_a_publication_with_a_row_filter_sends(sql: Sql, asked: Asked) -> None:
    sql.run("insert into t values (1, 'a'), (2, 'b')", "alter table t replica identity full")
    sql.run("create publication theirs for table t where (a like '%b' or a = 'c')")
    reader = asked.reader(source(sql, envelope=False, **{"publication.name": "theirs"}))
    found = asked.all(reader)
    assert [(row["id"], row["a"]) for row in found] == [(2, "b")]
    sql.run("update t set a = 'c' where id = 1", "update t set a = 'x' where id = 2", "insert into t values (3, 'x')")
    assert [(row["_key"]["id"], row["_tombstone"]) for row in asked.next(reader)] == [(1, False), (2, True)]


def test_the_snapshot_has_the_columns_that_a_publication_with_a_column_list_sends(sql: Sql, asked: Asked) -> None:
    sql.run(
        "alter table t add n int", "insert into t values (1, 'a', 7)", "create publication theirs for table t (id, a)"
    )
    model = source(sql, envelope=False, **{"publication.name": "theirs"})
    reader = asked.reader(model)
    (row,) = asked.all(reader)
    assert {name: row[name] for name in row if name[0] != "_"} == {"id": 1, "a": "a"}
    sql.run("alter table t add m int", "update t set a = 'b', n = 8, m = 9")
    (row,) = asked.next(reader)
    assert {name: row[name] for name in row if name[0] != "_"} == {"id": 1, "a": "b"}


def test_columns_that_are_generated_are_left_out_as_they_are_not_in_the_log(sql: Sql, asked: Asked) -> None:
    sql.run("alter table t add n int generated always as (id * 2) stored", "insert into t (id, a) values (1, 'a')")
    reader = asked.reader(source(sql, envelope=False))
    found = asked.all(reader)
    sql.run("update t set a = 'b'")
    found += asked.next(reader)
    assert [{name: row[name] for name in row if name[0] != "_"} for row in found] == [
        {"id": 1, "a": "a"},
        {"id": 1, "a": "b"},
    ]


def test_a_key_that_is_not_in_the_log_is_refused(sql: Sql, asked: Asked) -> None:
    sql.run("drop table t", "create table t (a text, id int generated always as (length(a)) stored primary key)")
    with pytest.raises(ConfigError, match="column 'id' of its key is not in the log, because it is generated"):
        asked.reader(source(sql))


def test_rows_of_tables_that_inherit_are_neither_in_the_snapshot_nor_in_the_changes(sql: Sql, asked: Asked) -> None:
    sql.run("create table child (more int) inherits (t)", "insert into child values (1, 'a', 2)")
    reader = asked.reader(source(sql))
    assert asked.all(reader) == []
    sql.run("insert into child values (3, 'c', 4)", "insert into t values (2, 'b')")
    assert summarize(asked.next(reader)) == [("c", None, (2, "b"))]


@pytest.mark.parametrize(
    "made",
    ["view t as select 1 as id", "unlogged table t (id int primary key)", "materialized view t as select 1 as id"],
)
def test_a_relation_without_logged_changes_is_rejected(sql: Sql, asked: Asked, made: str) -> None:
    sql.run("drop table t", f"create {made}")
    with pytest.raises(ConfigError, match="t has no changes in the server's log"):
        asked.reader(source(sql))
    assert sql.rows("select * from pg_publication") == []


def test_a_key_with_included_columns_is_the_key_alone(sql: Sql, asked: Asked) -> None:
    sql.run("drop table t", "create table t (id int, a text, primary key (id) include (a))")
    reader = asked.reader(source(sql))
    asked.all(reader)
    sql.run("insert into t values (1, 'a')")
    assert [row["_key"] for row in asked.next(reader)] == [{"id": 1}]


@pytest.mark.parametrize("envelope", [True, False])
def test_with_the_identity_of_an_index_the_key_is_that_of_the_index(sql: Sql, asked: Asked, envelope: bool) -> None:
    sql.run("alter table t alter a set not null, add unique (a)", "alter table t replica identity using index t_a_key")
    sql.run("insert into t values (1, 'a')")
    reader = asked.reader(source(sql, envelope=envelope, **{"tombstones.on.delete": False}))
    found = asked.all(reader)
    sql.run("update t set id = 2", "update t set a = 'b'", "delete from t")
    found += asked.next(reader)
    assert [row["_key"] for row in found] == [{"a": "a"}, {"a": "a"}, {"a": "a"}, {"a": "b"}, {"a": "b"}]


@pytest.mark.parametrize(
    "change",
    ["drop constraint t_pkey", "replica identity nothing", "drop constraint t_pkey, add primary key (id) deferrable"],
)
def test_no_publication_is_made_that_would_have_the_updates_of_others_fail(sql: Sql, asked: Asked, change: str) -> None:
    sql.run(f"alter table t {change}", "insert into t values (1, 'a')")
    with pytest.raises(ConfigError, match="table t has no replica identity, so PostgreSQL rejects its updates"):
        asked.reader(source(sql))
    sql.run("update t set a = 'b'")
    assert sql.rows("select * from pg_publication") == []
    sql.run("alter table t replica identity full")
    reader = asked.reader(source(sql))
    asked.all(reader)
    sql.run("update t set a = 'c'")
    assert summarize(asked.next(reader)) == [("u", (1, "b"), (1, "c"))]


def test_a_replica_identity_that_was_another_for_a_while_is_reported(sql: Sql, asked: Asked) -> None:
    sql.run("alter table t alter a set not null, add unique (a)", "insert into t values (1, 'a')")
    reader = asked.reader(source(sql))
    asked.all(reader)
    sql.run(
        "alter table t replica identity using index t_a_key", "delete from t", "alter table t replica identity default"
    )
    with pytest.raises(PgoutputError, match=r"changed rows do not have id of the key \(id\)"):
        asked.next(reader)


def test_a_position_of_an_earlier_version_continues(sql: Sql, asked: Asked) -> None:
    model = source(sql)
    asked.all(asked.reader(model))
    asked.stop()
    asked.log[-1]["position"].pop("table")
    sql.run("insert into t values (1, 'a')")
    reader = asked.reader(model)
    assert summarize(asked.next(reader)) == [("c", None, (1, "a"))]
    sql.run(*ANOTHER)
    with pytest.raises(DatabaseError, match="table t is not the table that was read"):
        asked.next(reader)


def test_rows_that_a_policy_hides_are_not_left_out_in_silence(sql: Sql, asked: Asked) -> None:
    sql.run(f"create role r_{sql.name} login replication password 's3cret'", f"alter table t owner to r_{sql.name}")
    sql.run("alter table t enable row level security, force row level security")
    sql.run(f"grant create on database {sql.name} to r_{sql.name}", "insert into t values (1, 'a')")
    url = sql.url.replace("tester:", f"r_{sql.name}:")
    with pytest.raises(DatabaseError, match="row-level security policy"):
        asked.all(asked.reader(source(sql, url=url)))


def test_columns_may_have_a_percent_sign_in_their_names(sql: Sql, asked: Asked) -> None:
    sql.run("drop table t", 'create table t ("i%d" int primary key, "a%s" text, "%%" int)')
    sql.run('alter table t alter "a%s" set storage external', f"insert into t values (1, {LONG}, 1)")
    sql.run("""create publication theirs for table t where ("i%d" > 0)""")
    reader = asked.reader(source(sql, envelope=False, **{"publication.name": "theirs"}))
    asked.all(reader)
    sql.run('update t set "%%" = 2')
    (row,) = asked.next(reader)
    assert (row["i%d"], row["a%s"], row["%%"]) == (1, "long" * 4000, 2)


@pytest.mark.parametrize("envelope", [True, False])
@pytest.mark.parametrize("value", ["infinity", "-infinity", "0044-03-15 BC", "57000-01-01"])
def test_times_that_python_does_not_have_are_the_same_in_snapshot_and_change(
    sql: Sql, asked: Asked, value: str, envelope: bool
) -> None:
    sql.run("alter table t add plain timestamp, add zoned timestamptz, add day date, add price numeric(5,2)")
    row = f"'a', '{value}', '{value}', '{value}', 'NaN'"
    sql.run(f"insert into t values (1, {row})")
    reader = asked.reader(source(sql, envelope=envelope))
    found = [numbers(asked, reader)]
    sql.run(f"insert into t values (2, {row})")
    found.append(numbers(asked, reader))
    snapshot, change = ((row["after"] if envelope else row) for row in found)
    days = parse_time(value)[0]
    expected = (micros_of(value), micros_of(value), days, None)
    assert tuple(snapshot[name] for name in ("plain", "zoned", "day", "price")) == expected
    assert tuple(change[name] for name in ("plain", "zoned", "day", "price")) == expected


def numbers(asked: Asked, reader: FeedReader) -> Any:
    """The one row of the next batch, times as numbers."""
    start = asked.log[-1] if asked.log else reader.initialOffset()
    asked.log.append(reader.latestOffset(start, ReadAllAvailable()))
    (part,) = reader.partitions(start, asked.log[-1])
    (batch,) = reader.read(part)
    return as_numbers(pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema)))[0]


def as_numbers(column: Any) -> list[Any]:
    if pa.types.is_struct(column.type):
        inner = [as_numbers(one) for one in column.flatten()]
        names = [column.type.field(number).name for number in range(column.type.num_fields)]
        return [dict(zip(names, values, strict=True)) for values in zip(*inner, strict=True)]
    found: list[Any] = (numbers_of(column) if pa.types.is_temporal(column.type) else column).to_pylist()
    return found
