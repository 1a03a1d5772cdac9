"""Kafka Streams' operations under their names, as thin helpers on Structured Streaming.

    as_table      KStream.toTable, StreamsBuilder.table     the latest row of each key; tombstones delete
    stream_join   KStream.join with JoinWindows             rows of two streams that are close in time
    table_join    KStream.join with a KTable                each row with what the table has for its key then
    tumbling      TimeWindows.ofSizeAndGrace                windows that stand side by side
    hopping       TimeWindows … .advanceBy                  windows that overlap
    session       SessionWindows.ofInactivityGapAndGrace    windows that end with a pause
    SUPPRESSED    Suppressed.untilWindowCloses              the output mode in which a window comes out once it is closed
    dedupe        (a Processor with a WindowStore)          the first row of each key

Each takes DataFrames and gives one back. What differs from Kafka Streams is said where it does; most of it follows from Spark
looking at time between micro-batches, and not at each record.
"""

from __future__ import annotations

from ottla.spark.streams.dedupe import dedupe
from ottla.spark.streams.stream_join import stream_join
from ottla.spark.streams.table_join import table_join
from ottla.spark.streams.tables import as_table
from ottla.spark.streams.windows import EAGER, SUPPRESSED, hopping, session, tumbling

__all__ = ["EAGER", "SUPPRESSED", "as_table", "dedupe", "hopping", "session", "stream_join", "table_join", "tumbling"]
