"""How Spark finds `format("ottla_delta")`, as in `pyspark_ottla`."""

from ottla.spark.driver.versions import ensure_versions

ensure_versions("pyspark")  # an older one fails at the import below, and does not say why

from ottla.spark.tables.source import DeltaSource as DefaultSource  # noqa: E402

__all__ = ["DefaultSource"]
