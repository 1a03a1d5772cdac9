"""Commits to tables of both formats: each is made once, with concurrent commits and with any previous content."""

from __future__ import annotations

import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from ottla.spark.tables import attempts, iceberg_store
from ottla.spark.tables.errors import CheckpointError, SchemaMismatchError, TableError
from ottla.spark.tables.guard import BatchMark, is_due
from ottla.spark.tables.sink import BatchTableSink, StreamTableSink, WrittenFiles
from tests.spark.tables.lake import FORMATS, ROWS, Lake, commit, elsewhere, marks, rows, write

pytestmark = pytest.mark.behaviour("D2")


@pytest.fixture(params=FORMATS)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake(request.param, tmp_path / "a lake")


def test_batches_add_up(lake: Lake) -> None:
    first, second = marks("q", 0, 1)
    commit(lake, first, 1, 2)
    commit(lake, second, 3)
    assert lake.counts() == {1: 1, 2: 1, 3: 1}


def test_a_batch_that_is_done_again_is_in_the_table_once_and_leaves_no_file(lake: Lake) -> None:
    (mark,) = marks("q", 4)
    commit(lake, mark, 1, 2)
    files = lake.files()
    commit(lake, mark, 1, 2)
    assert lake.counts() == {1: 1, 2: 1}
    assert lake.files() == files


def test_a_commit_deletes_files_of_dead_attempts(lake: Lake) -> None:
    (mark,) = marks("q", 0)
    write(lake.writer(), rows(1, 2), folder="q/0", name="dead")
    write(lake.writer(), rows(9), folder="q/1", name="another batch")
    commit(lake, mark, 1, 2)
    assert lake.counts() == {1: 1, 2: 1}
    assert len([file for file in lake.files() if "/q/0/" in file]) == 1
    assert len([file for file in lake.files() if "/q/1/" in file]) == 1


def test_queries_do_not_get_in_each_other_s_way(lake: Lake) -> None:
    for number in range(3):
        for query in ("a", "b"):
            commit(lake, BatchMark(query, number, query), number)
    assert lake.counts() == {0: 2, 1: 2, 2: 2}


def test_a_copied_checkpoint_stops(lake: Lake) -> None:
    (mark,) = marks("q", 1)
    commit(lake, mark, 1)
    with pytest.raises(CheckpointError, match="has another batch 1 of query q: two queries use one checkpoint"):
        commit(lake, elsewhere(mark), 2)
    assert lake.counts() == {1: 1}


def test_an_old_checkpoint_stops(lake: Lake) -> None:
    first, second = marks("q", 1, 2)
    commit(lake, second, 1)
    with pytest.raises(CheckpointError, match="has batch 2 of query q already, so batch 1 is too late"):
        commit(lake, first, 2)


@pytest.mark.parametrize("rival", ["the same batch", "another query"])
def test_an_overtaken_commit_reads_the_table_again(lake: Lake, monkeypatch: pytest.MonkeyPatch, rival: str) -> None:
    before, mark = marks("q", 0, 1)
    commit(lake, before, 0)
    overtaking = [mark if rival == "the same batch" else BatchMark("other", 7)]

    def overtaken(asked: BatchMark, done: BatchMark | None, name: str) -> bool:
        due = is_due(asked, done, name)
        if overtaking and asked == mark:
            commit(lake, overtaking.pop(), 1)
        return due

    monkeypatch.setattr(attempts, "is_due", overtaken)
    commit(lake, mark, 1)
    assert lake.counts() == {0: 1, 1: 1 if rival == "the same batch" else 2}


def test_overwriting_leaves_the_new_rows_alone(lake: Lake) -> None:
    first, second = marks("q", 0, 1)
    commit(lake, first, 1, 2)
    commit(lake, second, 3, overwrite=True)
    commit(lake, second, 3, overwrite=True)
    assert lake.counts() == {3: 1}


def test_a_partitioned_table_keeps_every_row(lake: Lake) -> None:
    for mark in marks("q", 0, 1):
        commit(lake, mark, *range(10), partition_by=("part",))
    assert lake.counts() == dict.fromkeys(range(10), 2)
    assert lake.counts("part") == {0: 8, 1: 6, 2: 6}
    with pytest.raises(TableError, match=r"is partitioned by part, not by text; leave the option partitionBy out"):
        lake.writer(partition_by=("text",))


OTHER = StructType([StructField("n", StringType()), StructField("more", LongType())])
FEWER = StructType([StructField("n", LongType()), StructField("more", LongType())])


def test_rows_of_another_schema_stop_with_the_columns_that_differ(lake: Lake) -> None:
    commit(lake, None, 1)
    with pytest.raises(SchemaMismatchError, match="column 'n' is string in the rows and bigint in the table; cast it"):
        lake.writer(OTHER)
    sentence = "'more' is not in the table; column 'text' of the table is not in the rows; .*; set mergeSchema to true"
    with pytest.raises(SchemaMismatchError, match=sentence):
        lake.writer(FEWER)


def test_merging_schemas_adds_columns_and_leaves_others_null(lake: Lake) -> None:
    import pyarrow as pa

    commit(lake, None, 1)
    writer = lake.writer(FEWER, merge_schema=True)
    files = write(writer, pa.record_batch({"n": [2], "more": [20]}))
    writer.commit_files(files, None, "q/0")
    assert sorted(lake.arrow().to_pylist(), key=lambda row: int(row["n"])) == [
        {"n": 1, "text": "1", "part": 1, "more": None},
        {"n": 2, "text": None, "part": None, "more": 20},
    ]


def test_a_table_changed_between_plan_and_commit_is_checked_again(lake: Lake) -> None:
    writer = lake.writer()
    files = write(writer, rows(1))
    lake.writer(StructType([*ROWS.fields, StructField("more", LongType())]), merge_schema=True).commit_files(
        [], None, "batch/x"
    )
    with pytest.raises(SchemaMismatchError, match="column 'more' of the table is not in the rows"):
        writer.commit_files(files, None, "q/0")


def test_files_missing_at_the_driver_are_not_committed(lake: Lake) -> None:
    writer = lake.writer()
    files = write(writer, rows(1))
    Path(files[0].path).unlink()
    with pytest.raises(
        TableError, match=r"the driver does not find it .*; put the table into a folder shared by all machines"
    ):
        writer.commit_files(files, None, "q/0")


def test_an_abort_deletes_only_uncommitted_files(lake: Lake) -> None:
    writer = lake.writer()
    done, failed = write(writer, rows(1), folder="q/0"), write(writer, rows(2), folder="q/1")
    writer.commit_files(done, BatchMark("q", 0), "q/0")
    sink = StreamTableSink(writer)
    sink.abort([WrittenFiles("q", tuple(done)), None], 0)
    sink.abort([WrittenFiles("q", tuple(failed)), None], 1)
    sink.abort([None], 2)
    assert lake.counts() == {1: 1}
    assert lake.files() == {done[0].path}
    batch = BatchTableSink(writer)
    kept = write(writer, rows(3), folder=batch.folder)
    writer.commit_files(kept, None, batch.folder)
    batch.abort([])
    assert lake.counts() == {1: 1, 3: 1}


@pytest.mark.parametrize(("kind", "package"), [("delta", "deltalake"), ("iceberg", "pyiceberg")])
def test_a_missing_library_is_a_one_line_error(
    kind: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        TableError, match=rf"^ottla_{kind} needs the package {package}, .*; pip install 'ottla\[tables\]'"
    ):
        Lake(kind, tmp_path).store()


def delta_table(folder: Path, configuration: dict[str, str], fields: list[dict[str, Any]] | None = None) -> Lake:
    import json

    from deltalake import DeltaTable, Schema

    lake = Lake("delta", folder)
    described = json.loads(ROWS.json())
    described["fields"] += fields or []
    schema = Schema.from_json(json.dumps(described))
    DeltaTable.create(lake.table, schema, configuration=configuration)
    return lake


def test_a_delta_table_that_requires_an_unsupported_feature_of_writers_is_refused(tmp_path: Path) -> None:
    lake = delta_table(tmp_path / "a", {})
    from deltalake import DeltaTable

    DeltaTable(lake.table).alter.add_constraint({"positive": "n > 0"})
    with pytest.raises(
        TableError, match=r"needs delta.constraints.positive of its writers, which Ottla does not support"
    ):
        lake.writer()


def test_a_column_that_may_not_be_null_is_checked(tmp_path: Path) -> None:
    required = {"name": "must", "type": "long", "nullable": False, "metadata": {}}
    lake = delta_table(tmp_path / "a", {}, [required])
    assert lake.writer(StructType([*ROWS.fields, StructField("must", LongType())])).layout.required == ("must",)
    with pytest.raises(SchemaMismatchError, match="column 'must' may not be null and is not in the rows; add it"):
        lake.writer(merge_schema=True)


def test_an_iceberg_table_that_is_divided_by_more_than_values_is_refused(tmp_path: Path) -> None:
    from pyiceberg.transforms import BucketTransform

    lake = Lake("iceberg", tmp_path)
    commit(lake, None, 1)
    store = lake.store()
    assert isinstance(store, iceberg_store.IcebergStore)
    table = store.open()
    assert table is not None
    with table.update_spec() as spec:
        spec.add_field("n", BucketTransform(4))
    with pytest.raises(TableError, match=r"partitioned by bucket\[4\] of a column, and Ottla only supports identity"):
        lake.writer()


def test_times_that_python_does_not_have_are_in_the_table_as_they_are(lake: Lake) -> None:
    """Milliseconds that were read as seconds, and years before Christ: Spark's times reach as far as 64 bits do."""
    kinds = {"at": TimestampType(), "plain": TimestampNTZType(), "day": DateType()}
    inner = StructType([StructField(name, kind) for name, kind in kinds.items()])
    schema = StructType([StructField("n", LongType()), *inner.fields, StructField("inner", inner)])
    moments = {name: [1_777_629_600_000_000_000, -(10**17), 0] for name in ("at", "plain")} | {
        "day": [10**7, -(10**7), 0]
    }
    arrow = to_arrow_schema(schema, timezone="UTC")
    columns = [pa.array(moments[name], arrow.field(name).type) for name in kinds]
    parts = pa.StructArray.from_arrays(columns, fields=list(arrow.field("inner").type))
    batch = pa.RecordBatch.from_arrays([pa.array([1, 2, 3]), *columns, parts], schema=arrow)
    (mark,) = marks("q", 0)
    writer = lake.writer(schema)
    writer.commit_files(write(writer, batch, folder="q/0"), mark, "q/0")
    found = lake.arrow().sort_by("n")
    for name in kinds:
        numbers = pa.int32() if name == "day" else pa.int64()
        assert found.column(name).cast(numbers).to_pylist() == moments[name]
        inside: Any = found.column("inner").combine_chunks()
        assert inside.field(name).cast(numbers).to_pylist() == moments[name]


@pytest.mark.parametrize("column", ["at", "day"])
def test_a_time_that_cannot_name_a_partition_is_reported(lake: Lake, column: str) -> None:
    schema = StructType([StructField("at", TimestampType()), StructField("day", DateType())])
    arrow = to_arrow_schema(schema, timezone="UTC")
    batch = pa.RecordBatch.from_arrays(
        [pa.array([10**18], arrow.field("at").type), pa.array([10**7], pa.date32())], schema=arrow
    )
    with pytest.raises(
        TableError, match=f"column '{column}' cannot be a partition column with a time outside of the years 1 to"
    ):
        write(lake.writer(schema, partition_by=(column,)), batch)


WIDER = [
    (IntegerType(), LongType(), 2**31 - 1, 2**62),
    (FloatType(), DoubleType(), 0.5, 1e300),
    (DecimalType(5, 2), DecimalType(12, 2), Decimal("1.50"), Decimal("1234567890.25")),
]


def numbers(kind: DataType, value: Any) -> tuple[StructType, pa.RecordBatch]:
    schema = StructType([StructField("n", LongType()), StructField("x", kind)])
    arrow = to_arrow_schema(schema, timezone="UTC")
    return schema, pa.RecordBatch.from_arrays([pa.array([1]), pa.array([value], arrow.field("x").type)], schema=arrow)


@pytest.mark.parametrize(("narrow", "wide", "small", "large"), WIDER, ids=["int", "float", "decimal"])
def test_with_merge_schema_a_number_s_type_becomes_wider(
    lake: Lake, narrow: DataType, wide: DataType, small: Any, large: Any
) -> None:
    for batch, (kind, value) in enumerate([(narrow, small), (wide, large), (narrow, small)]):
        schema, rows_of_kind = numbers(kind, value)
        writer = lake.writer(schema, merge_schema=True)
        (mark,) = marks("q", batch)
        for _ in range(2):  # the second time it is there already
            writer.commit_files(write(writer, rows_of_kind, folder=f"q/{batch}"), mark, f"q/{batch}")
    found = lake.arrow()
    values: list[Any] = found.column("x").to_pylist()
    assert sorted(values) == [small, small, large]
    assert found.schema.field("x").type == to_arrow_schema(numbers(wide, large)[0], timezone="UTC").field("x").type


def test_without_merge_schema_no_type_becomes_wider(lake: Lake) -> None:
    commit(lake, None, 1)
    schema = StructType(
        [StructField("n", LongType()), StructField("text", StringType()), StructField("part", LongType())]
    )
    with pytest.raises(SchemaMismatchError, match="column 'part' is bigint in the rows and int in the table; cast it"):
        lake.writer(schema)


def test_with_merge_schema_a_type_of_another_kind_is_refused(lake: Lake) -> None:
    commit(lake, None, 1)
    schema = StructType([StructField("n", LongType()), StructField("text", LongType())])
    with pytest.raises(
        SchemaMismatchError, match="column 'text' is bigint in the rows and string in the table; cast it"
    ):
        lake.writer(schema, merge_schema=True)
