"""Kafka Streams' operations under their names, as thin functions on Structured Streaming.

    as_table      KStream.toTable, StreamsBuilder.table     the latest row of each key; tombstones delete
    stream_join   KStream.join with JoinWindows             rows of two streams that are close in time
    table_join    KStream.join with a KTable                each row with the table's values for its key at that time
    tumbling      TimeWindows.ofSizeAndGrace                adjacent windows
    hopping       TimeWindows … .advanceBy                  overlapping windows
    session       SessionWindows.ofInactivityGapAndGrace    windows that end with a pause
    SUPPRESSED    Suppressed.untilWindowCloses              the output mode that writes a window once it is closed
    dedupe        (a Processor with a WindowStore)          the first row of each key

Each function takes and returns DataFrames. Differences from Kafka Streams are documented at each function; most result
from Spark evaluating time between micro-batches, and not at each record.
"""

from __future__ import annotations

from ottla.spark.streams.dedupe import dedupe
from ottla.spark.streams.stream_join import stream_join
from ottla.spark.streams.table_join import table_join
from ottla.spark.streams.tables import as_table
from ottla.spark.streams.windows import EAGER, SUPPRESSED, hopping, session, tumbling

__all__ = ["EAGER", "SUPPRESSED", "as_table", "dedupe", "hopping", "session", "stream_join", "table_join", "tumbling"]
