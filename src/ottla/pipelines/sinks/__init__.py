"""The sinks of pipelines: one file for each `type`."""

from __future__ import annotations

from ottla.pipelines.installed import load_connectors
from ottla.pipelines.sinks.console import ConsoleSink
from ottla.pipelines.sinks.database import DatabaseSink
from ottla.pipelines.sinks.files import FilesSink
from ottla.pipelines.sinks.http import HttpSink
from ottla.pipelines.sinks.sink import Sink
from ottla.pipelines.sinks.spark import SparkSink
from ottla.pipelines.sinks.tables import DeltaSink, IcebergSink
from ottla.pipelines.sinks.topic import TopicSink

SINKS: dict[str, type[Sink]] = {
    "topic": TopicSink,
    "files": FilesSink,
    "delta": DeltaSink,
    "iceberg": IcebergSink,
    "database": DatabaseSink,
    "http": HttpSink,
    "console": ConsoleSink,
    "spark": SparkSink,
}
SINKS |= load_connectors("ottla.pipelines.sinks", Sink, SINKS)
"""The sinks by the value of `type`."""

__all__ = ["SINKS", "Sink"]
