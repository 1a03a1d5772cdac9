"""Tables as sources: versions, files that need not be read, and filters that mean the same everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import datasource as spark
from pyspark.sql.types import DateType, DoubleType, LongType, StringType, StructField, StructType, TimestampType

from ottla.spark.tables.delta_store import DeltaStore
from ottla.spark.tables.errors import TableError
from ottla.spark.tables.filters import find_usable
from ottla.spark.tables.iceberg_store import IcebergStore
from ottla.spark.tables.reader import DeltaScan, FilteringTableReader, IcebergScan, TableReader, pack_files
from tests.spark.tables.lake import FORMATS, Lake, commit, write

N = ("n",)


@pytest.fixture(params=FORMATS)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake(request.param, tmp_path)


def scan(lake: Lake, version: int | None = None) -> DeltaScan | IcebergScan:
    store = lake.store()
    if isinstance(store, DeltaStore):
        return DeltaScan(store, version)
    assert isinstance(store, IcebergStore)
    return IcebergScan(store, version)


def read(reader: TableReader) -> Iterator[dict[str, Any]]:
    for partition in reader.partitions():
        for batch in reader.read(partition):
            yield from batch.to_pylist()


def filtered(lake: Lake, *filters: spark.Filter) -> list[int]:
    """The numbers that are read when Spark asks for such; it gets all filters back."""
    reader = FilteringTableReader(scan(lake))
    assert list(reader.pushFilters(list(filters))) == list(filters)
    return sorted(row["n"] for row in read(reader))


def test_rows_are_read_in_spark_s_types(lake: Lake) -> None:
    commit(lake, None, 1, 2)
    found = list(read(TableReader(scan(lake))))
    assert sorted(found, key=str) == [{"n": n, "text": str(n), "part": n} for n in (1, 2)]


@pytest.mark.parametrize(
    ("condition", "numbers"),
    [
        (spark.EqualTo(N, 4), [4]),
        (spark.GreaterThan(N, 4), [5]),
        (spark.GreaterThanOrEqual(N, 4), [4, 5]),
        (spark.LessThan(N, 2), [0, 1]),
        (spark.LessThanOrEqual(N, 2), [0, 1, 2]),
        (spark.In(N, (1, 5, 9)), [1, 5]),
        (spark.IsNull(N), []),
        (spark.IsNotNull(N), [0, 1, 2, 3, 4, 5]),
        (spark.EqualTo(("text",), "3"), [3]),
        (spark.EqualTo(("part",), 1), [1, 4]),
    ],
)
def test_a_filter_leaves_rows_out(lake: Lake, condition: spark.Filter, numbers: list[int]) -> None:
    commit(lake, None, *range(6))
    assert filtered(lake, condition) == numbers


def test_files_without_such_rows_are_not_opened(lake: Lake) -> None:
    for numbers in ((0, 1), (2, 3), (4, 5)):
        commit(lake, None, *numbers)
    for file in lake.files():
        if pq.read_table(file).column("n")[0].as_py() != 2:
            Path(file).unlink()
    assert filtered(lake, spark.GreaterThan(N, 1), spark.LessThan(N, 4)) == [2, 3]


def test_partitions_without_such_rows_are_not_opened(lake: Lake) -> None:
    commit(lake, None, *range(6), partition_by=("part",))
    for file in lake.files():
        if "part=1" not in file:
            Path(file).unlink()
    assert filtered(lake, spark.EqualTo(("part",), 1)) == [1, 4]


KINDS = StructType(
    [
        StructField("at", TimestampType()),
        StructField("day", DateType()),
        StructField("x", DoubleType()),
        StructField("n", LongType()),
    ]
)


def test_moments_and_days_are_compared_as_such(lake: Lake) -> None:
    writer = lake.writer(KINDS)
    moments = [datetime(2013, 1, day, 12, tzinfo=UTC) for day in (1, 2, 3)]
    columns: dict[str, Any] = {
        "at": pa.array(moments, pa.timestamp("us", "UTC")),
        "day": pa.array([moment.date() for moment in moments]),
        "x": pa.array([1.0, 2.0, float("nan")]),
        "n": pa.array([1, 2, 3]),
    }
    writer.commit_files(write(writer, pa.record_batch(columns)), None, "q/0")
    assert filtered(lake, spark.GreaterThanOrEqual(("at",), moments[1])) == [2, 3]
    assert filtered(lake, spark.EqualTo(("day",), date(2013, 1, 2))) == [2]
    assert filtered(lake, spark.GreaterThan(("x",), 1.5)) == [1, 2, 3]  # NaN is larger than 1.5 for Spark


def test_filters_that_mean_something_else_outside_of_spark_stay_there() -> None:
    schema = StructType([StructField("x", DoubleType()), StructField("s", StringType())])
    kept = spark.EqualTo(("s",), "a")
    others = [
        spark.EqualTo(("x",), 1.0),
        spark.Not(kept),
        spark.StringContains(("s",), "a"),
        spark.EqualTo(("s", "inner"), "a"),
        spark.EqualTo(("unknown",), 1),
    ]
    assert find_usable([*others, kept], schema) == [kept]


def test_an_old_version_is_read_as_it_was(lake: Lake) -> None:
    commit(lake, None, 1)
    old = scan(lake)
    version = old.version if isinstance(old, DeltaScan) else old.snapshot
    commit(lake, None, 2, overwrite=True)
    assert [row["n"] for row in read(TableReader(scan(lake, version)))] == [1]
    assert [row["n"] for row in read(TableReader(scan(lake)))] == [2]


def test_an_unknown_table_or_version_is_a_one_line_error(lake: Lake) -> None:
    with pytest.raises(TableError, match=r"^there is no (Delta|Iceberg) table .*; write one, or correct the"):
        scan(lake)
    commit(lake, None, 1)
    with pytest.raises(TableError, match=r"has no snapshot 77|cannot be opened: .*77"):
        scan(lake, 77)


def test_an_empty_table_has_columns_and_no_rows(lake: Lake) -> None:
    lake.writer()
    found = scan(lake)
    assert found.schema.names == ["n", "text", "part"]
    assert list(read(TableReader(found))) == []


def test_small_files_share_a_task() -> None:
    mebi = 1 << 20
    assert pack_files(list("abc"), [1, 1, 1]) == [["a", "b", "c"]]
    assert pack_files(list("abc"), [40 * mebi, 30 * mebi, 100 * mebi]) == [["a"], ["b"], ["c"]]
    assert [len(group) for group in pack_files(list(range(100)), [1] * 100)] == [32, 32, 32, 4]
    assert pack_files([], []) == []
