"""Topics as sources and sinks of Spark: `format("ottla")`, with the columns and options of Spark's own Kafka connector.

    topic ──► source: batch_reader or stream_reader ──► range_reader ──► Arrow ──► Spark ──► sink ──► topic
            plan on the driver                 in a task                            in a task

Spark finds the format by itself (module `pyspark_ottla`) if it uses the Python that has Ottla. A program that imports
this package before it starts Spark makes Spark use this Python, and can write from threads other than the main one.
"""

from __future__ import annotations

from importlib.util import find_spec

from ottla.spark.driver.java import JavaError, ensure_java
from ottla.spark.driver.lookup_python import choose_python
from ottla.spark.driver.session import session
from ottla.spark.driver.threads import patch_writers
from ottla.spark.ranges.progress import lag
from ottla.spark.sink.write_stream import write_stream

__all__ = ["JavaError", "ensure_java", "lag", "session", "write_stream"]

choose_python()
if find_spec("pyspark") is not None:  # reading options and plans needs no pyspark
    patch_writers()
