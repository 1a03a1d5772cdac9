"""Streams of every output mode to a topic, by `foreachBatch`.

Spark lets Python sinks have rows that are added, and no others. A query that changes rows, an aggregation in `update` or `complete`
mode, writes its changes as records instead: what Spark says are the rows of a batch is written as one batch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ottla.errors import ConfigError
from ottla.spark.options import read_sink_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

Trigger = Mapping[str, Any]


def write_stream(
    frame: DataFrame,
    options: Mapping[str, Any],
    *,
    checkpoint: str | Path,
    output_mode: Literal["append", "update", "complete"] = "update",
    trigger: Trigger | None = None,
    query_name: str | None = None,
) -> StreamingQuery:
    """Start writing a streaming DataFrame to a topic; the options are those of `writeStream.format("ottla")`.

        write_stream(counts, {"kafka.bootstrap.servers": "127.0.0.1:9092", "topic": "counts",
                     "deliveryGuarantee": "exactly_once"}, checkpoint="checkpoints/counts", trigger={"availableNow": True})

    `trigger` is what `DataStreamWriter.trigger` takes. In `update` mode a batch has the rows that changed, in `complete` mode all
    of them, each time. With `exactly_once` each batch is committed once: its number and the query's id, which Spark keeps in
    the checkpoint, pin it, also when Spark runs it again after a crash.
    """
    if not frame.isStreaming:
        raise ConfigError("write_stream is for streams; write this DataFrame with .write.format('ottla')")
    given = {name: str(value) for name, value in options.items()}
    read_sink_options(given)
    location = str(checkpoint)

    def write(batch: DataFrame, number: int) -> None:
        """What Spark calls for each batch."""
        pins = {"queryId": query_of(location), "batchId": str(number), "checkpointLocation": location}
        batch.write.format("ottla").options(**given, **pins).mode("append").save()

    writer = frame.writeStream.foreachBatch(write).outputMode(output_mode).option("checkpointLocation", location)
    writer = writer if query_name is None else writer.queryName(query_name)
    return (writer if trigger is None else writer.trigger(**trigger)).start()


def query_of(location: str) -> str:
    """The id of the query whose checkpoint it is."""
    from ottla.spark.exactly_once.checkpoint import opened, text_of

    try:
        files, folder = opened(location)
        return str(json.loads(text_of(files, f"{folder}/metadata"))["id"])
    except (OSError, ValueError, KeyError) as error:
        raise ConfigError(
            f"checkpoint {location!r} cannot be read from Python ({error}); choose a path that pyarrow reaches"
        ) from None
