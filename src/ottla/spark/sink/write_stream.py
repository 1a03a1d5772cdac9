"""Writes streams of every output mode to a topic, with `foreachBatch`.

Spark only allows the append mode for sinks in Python. A query in `update` or `complete` mode writes the rows of each
batch as records, in one batch write.
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

    `trigger` has the arguments of `DataStreamWriter.trigger`. In `update` mode a batch has the changed rows, in
    `complete` mode all rows. With `exactly_once` each batch is committed once, also when Spark runs it again after a
    crash: its number and the query's id, which Spark stores in the checkpoint, identify it.
    """
    if not frame.isStreaming:
        raise ConfigError("write_stream is for streams; write this DataFrame with .write.format('ottla')")
    given = {name: str(value) for name, value in options.items()}
    read_sink_options(given)
    location = str(checkpoint)

    def write(batch: DataFrame, number: int) -> None:
        """Write one batch; called by Spark."""
        pins = {"queryId": query_of(location), "batchId": str(number), "checkpointLocation": location}
        batch.write.format("ottla").options(**given, **pins).mode("append").save()

    writer = frame.writeStream.foreachBatch(write).outputMode(output_mode).option("checkpointLocation", location)
    writer = writer if query_name is None else writer.queryName(query_name)
    return (writer if trigger is None else writer.trigger(**trigger)).start()


def query_of(location: str) -> str:
    """Return the id of the query with this checkpoint."""
    from ottla.spark.exactly_once.checkpoint import open_location, text_of

    try:
        files, folder = open_location(location)
        return str(json.loads(text_of(files, f"{folder}/metadata"))["id"])
    except (OSError, ValueError, KeyError) as error:
        raise ConfigError(
            f"checkpoint {location!r} cannot be read from Python ({error}); choose a path that pyarrow supports"
        ) from None
