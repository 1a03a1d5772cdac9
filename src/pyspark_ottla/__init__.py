"""How Spark finds `format("ottla")`: it looks for modules named `pyspark_…` that have a `DefaultSource`."""

from ottla.spark.source import OttlaSource as DefaultSource

__all__ = ["DefaultSource"]
