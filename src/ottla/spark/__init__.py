"""Topics as sources and sinks of Spark: `format("ottla")`, columns and options as in Spark's own Kafka connector.

    topic ──► reader | stream_reader ──► range_reader ──► Arrow ──► Spark ──► sink ──► topic
                 plan on the driver         in a task                          in a task

Spark finds the format by itself (module `pyspark_ottla`). Only the modules that Spark calls import pyspark,
so options and planning can be used, and tested, without it.
"""

from __future__ import annotations

from ottla.spark.java import JavaError, ensure_java
from ottla.spark.progress import lag
from ottla.spark.session import session
from ottla.spark.write_stream import write_stream

__all__ = ["JavaError", "ensure_java", "lag", "session", "write_stream"]
