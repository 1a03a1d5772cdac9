"""Rows as Parquet files."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from ottla.spark.tables import file_writer
from ottla.spark.tables.errors import SchemaMismatchError
from ottla.spark.tables.file_writer import FileWriter
from ottla.spark.tables.partition_values import format_value
from ottla.spark.tables.store import FileLayout
from tests.spark.tables.lake import ROWS, rows


def layout(
    folder: Path, partition_columns: tuple[str, ...] = (), keeps: bool = False, required: str = ""
) -> FileLayout:
    return FileLayout(str(folder), ROWS, tuple(required.split()), partition_columns, keeps)


def writer(plan: FileLayout, target_size: int = 1 << 30) -> FileWriter:
    return FileWriter(plan, Path(plan.data_folder), "part-0", "zstd", target_size)


def test_rows_are_read_back_from_one_file(tmp_path: Path) -> None:
    (file,) = writer(layout(tmp_path)).write([rows(1, 2), rows(), rows(3)])
    assert pq.read_table(file.path).to_pylist() == pa.Table.from_batches([rows(1, 2, 3)]).to_pylist()
    assert (file.rows, file.size, file.partition) == (3, Path(file.path).stat().st_size, ())


def test_no_rows_make_no_file(tmp_path: Path) -> None:
    assert writer(layout(tmp_path)).write([rows()]) == ()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("keeps", [True, False])
def test_each_partition_has_files_of_its_own(tmp_path: Path, keeps: bool) -> None:
    files = writer(layout(tmp_path, ("part",), keeps)).write([rows(0, 1, 2, 3), rows(4, 5)])
    assert {(file.partition, file.rows) for file in files} == {((("part", str(n)),), 2) for n in range(3)}
    found = {file.partition[0][1]: pq.ParquetFile(file.path).read() for file in files}
    assert found["1"].column("n").to_pylist() == [1, 4]
    assert ("part" in found["1"].column_names) == keeps


def test_a_file_that_is_large_enough_is_followed_by_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_writer, "PENDING_BYTES", 1000)
    files = writer(layout(tmp_path), target_size=2000).write(rows(*range(n, n + 100)) for n in range(0, 1000, 100))
    assert len(files) > 3
    assert sum(file.rows for file in files) == 1000
    assert {n for file in files for n in pq.read_table(file.path).column("n").to_pylist()} == set(range(1000))


def test_memory_is_bounded_whatever_the_number_of_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_writer, "PENDING_BYTES", 4000)
    busy, largest = writer(layout(tmp_path, ("part",))), 0
    for n in range(0, 3000, 100):
        busy.add(rows(*range(n, n + 100)))
        largest = max(largest, sum(busy._pending_bytes.values()))
    assert largest < 4000
    assert sum(file.rows for file in busy.write([])) == 3000


def test_a_task_that_fails_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_writer, "PENDING_BYTES", 10)

    def batches() -> object:
        yield rows(1, 2, 3)
        raise RuntimeError("the task fails")

    with pytest.raises(RuntimeError, match="the task fails"):
        writer(layout(tmp_path, ("part",)), target_size=1).write(batches())  # type: ignore[arg-type]
    assert list(tmp_path.rglob("*.parquet")) == []


def test_a_null_in_a_column_that_allows_none_is_one_clear_error(tmp_path: Path) -> None:
    bad = rows(1).set_column(1, "text", pa.array([None], pa.string()))
    with pytest.raises(
        SchemaMismatchError,
        match=r"^column 'text' is null in the row n = 1, text = None, .*, and the table does not allow null; fill",
    ):
        writer(layout(tmp_path, required="n text")).write([bad])


def test_a_file_has_the_minimum_and_maximum_of_its_columns(tmp_path: Path) -> None:
    schema = StructType(
        [StructField("n", LongType()), StructField("at", TimestampType()), StructField("long", StringType())]
    )
    plan = FileLayout(str(tmp_path), schema, (), (), False)
    columns: dict[str, Any] = {
        "n": pa.array([3, None, 1], pa.int64()),
        "at": pa.array([None, None, datetime(2013, 1, 1, 12, tzinfo=UTC)], pa.timestamp("us", "UTC")),
        "long": pa.array(["x" * 100] * 3),
    }
    (file,) = writer(plan).write([pa.record_batch(columns)])
    assert json.loads(file.stats) == {
        "numRecords": 3,
        "minValues": {"n": 1, "at": "2013-01-01T12:00:00.000000Z"},
        "maxValues": {"n": 3, "at": "2013-01-01T12:00:00.000000Z"},
        "nullCount": {"n": 1, "at": 2, "long": 0},
    }


def test_values_of_partitions_are_written_as_delta_does() -> None:
    values = [None, "", "a b", True, 7, Decimal("1.50"), date(2013, 1, 2), datetime(2013, 1, 2, 3, tzinfo=UTC)]
    reported = [None, None, "a b", "true", "7", "1.50", "2013-01-02", "2013-01-02 03:00:00.000000"]
    assert [format_value("c", value) for value in values] == reported
