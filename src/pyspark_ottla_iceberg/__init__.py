"""How Spark finds `format("ottla_iceberg")`, as in `pyspark_ottla`."""

from ottla.spark.tables.source import IcebergSource as DefaultSource

__all__ = ["DefaultSource"]
