"""How Spark finds `format("ottla")`: it looks for modules named `pyspark_…` that have a `DefaultSource`."""

from ottla.spark.driver.versions import ensure_versions

ensure_versions("pyspark")  # an older one fails at the import below, and does not say why

from ottla.spark.data_source import OttlaSource as DefaultSource  # noqa: E402

__all__ = ["DefaultSource"]
