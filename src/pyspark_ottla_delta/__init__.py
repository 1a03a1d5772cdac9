"""How Spark finds `format("ottla_delta")`, as in `pyspark_ottla`."""

from ottla.spark.tables.source import DeltaSource as DefaultSource

__all__ = ["DefaultSource"]
