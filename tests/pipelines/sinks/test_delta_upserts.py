"""Rows merged into a Delta table by a key, with deletions and without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, Schema
from deltalake.schema import PrimitiveType
from pyspark.sql.types import DoubleType, IntegerType, LongType, StringType, StructField, StructType

from ottla.pipelines.dead_letters import RefusedBatchError
from ottla.pipelines.sinks.delta_upserts import DeltaUpserts
from ottla.pipelines.sinks.upserts import DELETED
from ottla.spark.tables.delta_store import DeltaStore
from ottla.spark.tables.guard import BatchMark
from ottla.spark.tables.options import DeltaOptions, read_table_options
from tests.pipelines.dead_letters import broker_of_letters, letters_at, topic_at

COLUMNS = StructType([StructField("id", LongType()), StructField("item", StringType())])


def rows(pairs: dict[int, str], deleted: dict[int, bool] | None) -> pa.Table:
    columns: dict[str, Any] = {"id": list(pairs), "item": list(pairs.values())}
    return pa.table(columns if deleted is None else {**columns, DELETED: [deleted.get(one, False) for one in pairs]})


@pytest.mark.parametrize("deleted", [None, {2: True, 4: True}], ids=["without deletions", "with deletions"])
def test_rows_replace_others_with_the_same_key_and_deleted_rows_are_removed(
    tmp_path: Path, deleted: dict[int, bool] | None
) -> None:
    store = DeltaStore(read_table_options(DeltaOptions, {"path": str(tmp_path / "orders")}))
    upserts = DeltaUpserts(store, ("id",), str(tmp_path))
    store.prepare(COLUMNS)
    upserts.merge(store.open(), rows({1: "a", 2: "b"}, deleted and {}), COLUMNS, BatchMark("q", 0, "x"))
    upserts.merge(store.open(), rows({2: "c", 3: "d", 4: "e"}, deleted), COLUMNS, BatchMark("q", 1, "y"))
    table: Any = store.open()
    found = table.to_pyarrow_table()
    there = dict(zip(found.column("id").to_pylist(), found.column("item").to_pylist(), strict=True))
    assert there == ({1: "a", 3: "d"} if deleted else {1: "a", 2: "c", 3: "d", 4: "e"})


class Batch:
    """A batch as Spark gives it, of these rows."""

    def __init__(self, table: pa.Table) -> None:
        self.table, self.schema = table, COLUMNS

    def toArrow(self) -> pa.Table:
        return self.table


def test_a_first_batch_without_rows_makes_the_query_known(tmp_path: Path) -> None:
    store = DeltaStore(read_table_options(DeltaOptions, {"path": str(tmp_path / "orders")}))
    upserts = DeltaUpserts(store, ("id",), str(tmp_path))
    empty: Any = {"id": pa.array([], pa.int64()), "item": pa.array([], pa.string())}
    batch: Any = Batch(pa.table(empty))
    upserts.write(batch, 0, "q")
    assert store.has_query("q")
    table: Any = store.open()
    upserts.write(batch, 1, "q")
    again: Any = store.open()
    assert again.version() == table.version()


def test_a_key_and_a_value_become_wider_with_merge_schema(tmp_path: Path) -> None:
    narrow = StructType([StructField("id", IntegerType()), StructField("n", IntegerType())])
    wide = StructType([StructField("id", LongType()), StructField("n", LongType())])
    options = {"path": str(tmp_path / "orders"), "mergeSchema": "true"}
    store = DeltaStore(read_table_options(DeltaOptions, options))
    upserts = DeltaUpserts(store, ("id",), str(tmp_path))
    store.prepare(narrow)
    changes = [
        (narrow, pa.int32(), {1: 1, 2: 2}),
        (wide, pa.int64(), {2: 2**40, 2**41: 3}),
        (narrow, pa.int32(), {1: 9}),
    ]
    for batch, (columns, kind, values) in enumerate(changes):
        table = pa.table({"id": pa.array(list(values), kind), "n": pa.array(list(values.values()), kind)})
        upserts.merge(store.open(), table, columns, BatchMark("q", batch, str(batch)))
    opened: Any = store.open()
    found = opened.to_pyarrow_table()
    there = dict(zip(found.column("id").to_pylist(), found.column("n").to_pylist(), strict=True))
    assert there == {1: 9, 2: 2**40, 2**41: 3}


KEYED = StructType([StructField("id", DoubleType()), StructField("item", StringType()), StructField("n", LongType())])
ROWS: list[tuple[float | None, str | None, int, bool]] = [
    (1.0, "a", 1, False),
    (None, "no key", 2, False),
    (float("nan"), "no number", 3, False),
    (4.0, None, 4, False),
    (5.0, None, 5, True),
    (6.0, "f", 6, False),
]


def batch_of(values: list[Any]) -> Any:
    names = ("id", "item", "n", DELETED)
    table = pa.table({name: [row[at] for row in values] for at, name in enumerate(names)})
    kinds: Any = (pa.float64(), pa.string(), pa.int64(), pa.bool_())
    found = Batch(table.cast(pa.schema([pa.field(name, kind) for name, kind in zip(names, kinds, strict=True)])))
    found.schema = KEYED
    return found


def with_required_item(tmp_path: Path) -> DeltaStore:
    """A table in which `item` may not be null."""
    store = DeltaStore(read_table_options(DeltaOptions, {"path": str(tmp_path / "orders")}))
    fields = [
        Field("id", PrimitiveType("double")),
        Field("item", PrimitiveType("string"), nullable=False),
        Field("n", PrimitiveType("long")),
    ]
    DeltaTable.create(store.name, Schema(fields))
    return store


def numbers_in(store: DeltaStore) -> list[int]:
    table: Any = store.open()
    return sorted(table.to_pyarrow_table().column("n").to_pylist())


def test_rows_without_a_key_or_a_required_value_are_put_aside_and_the_others_are_merged(tmp_path: Path) -> None:
    store = with_required_item(tmp_path)
    with broker_of_letters() as broker:
        upserts = DeltaUpserts(store, ("id",), str(tmp_path), topic_at(broker))
        assert upserts.write(batch_of([(5.0, "e", 5, False)]), 0, "q") == 0
        assert upserts.write(batch_of(ROWS), 1, "q") == 3
        found = letters_at(broker)
    assert numbers_in(store) == [1, 6]
    assert found[1][0] == {"id": "nan", "item": "no number", "n": 3}
    assert [cause.removeprefix(f"table {store.name}: ") for _, cause in found] == [
        "column 'id' of the key is null",
        "column 'id' of the key is NaN, which is equal to no value",
        "column 'item' is null, which the table does not allow",
    ]


@pytest.mark.parametrize("bad", [1, 2, 3])
def test_without_dead_letters_a_batch_with_such_a_row_is_refused_before_anything_is_written(
    tmp_path: Path, bad: int
) -> None:
    store = with_required_item(tmp_path)
    upserts = DeltaUpserts(store, ("id",), str(tmp_path))
    with pytest.raises(
        RefusedBatchError, match=rf"column '\w+' .* in the row id = .*, n = {bad + 1}; fill it or filter out"
    ):
        upserts.write(batch_of([ROWS[0], ROWS[bad]]), 0, "q")
    assert numbers_in(store) == []
    assert not store.has_query("q")
