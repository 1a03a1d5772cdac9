"""The formats for Spark: `ottla_delta` and `ottla_iceberg`.

Libraries and Arrow are imported when a table is used, not when Spark looks up the formats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from ottla.errors import ConfigError
from ottla.spark.failure import without_traceback
from ottla.spark.tables.filters import has_filter_pushdown
from ottla.spark.tables.options import DeltaOptions, IcebergOptions, TableOptions, read_table_options

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from ottla.spark.tables.reader import Scan, TableReader
    from ottla.spark.tables.sink import BatchTableSink, StreamTableSink
    from ottla.spark.tables.store import Store


class TableSource(DataSource):
    """The common part of both formats."""

    def table_options(self) -> TableOptions:
        raise TypeError(f"{type(self).__name__} is not a format")

    def store(self) -> Store:
        raise TypeError(f"{type(self).__name__} is not a format")

    def scan(self) -> Scan:
        """Return the table to read."""
        raise TypeError(f"{type(self).__name__} is not a format")

    def schema(self) -> StructType:
        with without_traceback():
            return self.scan().schema

    def reader(self, schema: StructType) -> TableReader:
        from ottla.spark.tables.reader import FilteringTableReader, TableReader

        with without_traceback():
            scan = self.scan()
            if schema != scan.schema:
                raise ConfigError("a table has its own columns; leave .schema(...) out, and select columns")
            return FilteringTableReader(scan) if has_filter_pushdown() else TableReader(scan)

    def writer(self, schema: StructType, overwrite: bool) -> BatchTableSink:
        from ottla.spark.tables.sink import BatchTableSink, TableWriter

        with without_traceback():
            return BatchTableSink(TableWriter(self.store(), self.table_options(), schema, overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamTableSink:
        from ottla.spark.tables.sink import StreamTableSink, TableWriter

        with without_traceback():
            return StreamTableSink(TableWriter(self.store(), self.table_options(), schema, overwrite))


class DeltaSource(TableSource):
    """Delta tables in folders, without jars. Options are those of `DeltaOptions`.

    stream.writeStream.format("ottla_delta").option("checkpointLocation", "/lake/_checkpoints/flights")
          .start("/lake/flights")
    spark.read.format("ottla_delta").load("/lake/flights")
    """

    @classmethod
    def name(cls) -> str:
        return "ottla_delta"

    def table_options(self) -> DeltaOptions:
        return read_table_options(DeltaOptions, self.options)

    def store(self) -> Store:
        from ottla.spark.tables.delta_store import DeltaStore

        return DeltaStore(self.table_options())

    def scan(self) -> Scan:
        from ottla.spark.tables.delta_store import DeltaStore
        from ottla.spark.tables.reader import DeltaScan

        options = self.table_options()
        return DeltaScan(DeltaStore(options), options.version_as_of)


class IcebergSource(TableSource):
    """Iceberg tables of any catalog that pyiceberg knows, without jars. Options are those of `IcebergOptions`.

    stream.writeStream.format("ottla_iceberg").option("warehouse", "/lake")
          .option("checkpointLocation", "/lake/_checkpoints/flights").start("travel.flights")
    spark.read.format("ottla_iceberg").option("warehouse", "/lake").load("travel.flights")
    """

    @classmethod
    def name(cls) -> str:
        return "ottla_iceberg"

    def table_options(self) -> IcebergOptions:
        return read_table_options(IcebergOptions, self.options)

    def store(self) -> Store:
        from ottla.spark.tables.iceberg_store import IcebergStore

        return IcebergStore(self.table_options())

    def scan(self) -> Scan:
        from ottla.spark.tables.iceberg_store import IcebergStore
        from ottla.spark.tables.reader import IcebergScan

        options = self.table_options()
        return IcebergScan(IcebergStore(options), options.snapshot_id)
