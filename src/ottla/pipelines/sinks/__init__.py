"""Where the rows of a pipeline go: one file for each `type`."""

from __future__ import annotations

from ottla.pipelines.sinks.console import ConsoleSink
from ottla.pipelines.sinks.files import FilesSink
from ottla.pipelines.sinks.sink import Sink
from ottla.pipelines.sinks.spark import SparkSink
from ottla.pipelines.sinks.tables import DeltaSink, IcebergSink
from ottla.pipelines.sinks.topic import TopicSink

SINKS: dict[str, type[Sink]] = {
    "topic": TopicSink,
    "files": FilesSink,
    "delta": DeltaSink,
    "iceberg": IcebergSink,
    "console": ConsoleSink,
    "spark": SparkSink,
}
"""By what `type` says."""

__all__ = ["SINKS", "Sink"]
