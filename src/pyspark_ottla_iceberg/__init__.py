"""How Spark finds `format("ottla_iceberg")`, as in `pyspark_ottla`."""

from ottla.spark.driver.versions import ensure_versions

ensure_versions("pyspark")  # an older one fails at the import below, and does not say why

from ottla.spark.tables.source import IcebergSource as DefaultSource  # noqa: E402

__all__ = ["DefaultSource"]
