"""A source in Python with prepared rows: it measures Spark's own share, and the upper bound for Ottla's source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from ottla.spark.columns.schema import spark_schema

ROWS = 10_000
"""The number of rows in a batch, as in Ottla's source."""
VALUE_BYTES = 100


class ReadySource(DataSource):
    """Rows in `partitions` partitions, `rows` in total, with a topic's columns; `maxOffsetsPerTrigger` works as usual."""

    @classmethod
    def name(cls) -> str:
        return "ready"

    def schema(self) -> StructType:
        return spark_schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        return ReadyReader(self.options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return ReadyStream(self.options)


def shares(rows: int, partitions: int) -> list[InputPartition]:
    """Return the number of rows of each task."""
    return [InputPartition(rows * (n + 1) // partitions - rows * n // partitions) for n in range(partitions)]


def batches(rows: int) -> Iterator[pa.RecordBatch]:
    """Yield one batch repeatedly; the last one is shorter."""
    values: list[list[Any]] = [[b"%08d" % row for row in range(ROWS)], [b"%0*d" % (VALUE_BYTES, 0)] * ROWS]
    values += [["rows"] * ROWS, [0] * ROWS, list(range(ROWS)), [0] * ROWS, [0] * ROWS]
    schema = to_arrow_schema(spark_schema(), timezone="UTC")
    arrays = [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)]
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    for first in range(0, rows, ROWS):
        yield batch.slice(0, min(ROWS, rows - first))


class ReadyReader(DataSourceReader):
    def __init__(self, options: Mapping[str, str]) -> None:
        self.rows, self.count = int(options["rows"]), int(options["partitions"])

    def partitions(self) -> Sequence[InputPartition]:
        return shares(self.rows, self.count)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return batches(partition.value)


class ReadyStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: Mapping[str, str]) -> None:
        self.rows, self.count = int(options["rows"]), int(options["partitions"])
        self.most = int(options.get("maxOffsetsPerTrigger", 0))

    def initialOffset(self) -> dict[str, int]:
        return {"rows": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.most) if self.most else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Do nothing: the available rows never change."""

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else self.rows
        return {"rows": min(self.rows, start["rows"] + most)}

    def reportLatestOffset(self) -> dict[str, int] | None:
        return {"rows": self.rows}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return shares(end["rows"] - start["rows"], self.count)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return batches(partition.value)
