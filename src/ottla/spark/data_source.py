"""The data source as Spark sees it: `format("ottla")`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource

from ottla.errors import ConfigError, OttlaError
from ottla.spark.columns.row_decoder import Decoding
from ottla.spark.columns.value_formats import INFER, columns_of, decoding_of
from ottla.spark.failure import plainly
from ottla.spark.options import SourceOptions, read_sink_options, read_source_options
from ottla.spark.source.batch_reader import BatchReader, FilteringBatchReader
from ottla.spark.source.refused_stream import RefusedStream
from ottla.spark.source.sampling import some_of
from ottla.spark.source.stream_reader import StreamReader
from ottla.spark.tables.filters import is_asked_to_filter
from ottla.spark.workers.hot_loops import warn_if_slow

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from ottla.spark.sink.writers import BatchSink, StreamSink

CHECKPOINT = "checkpointlocation"
"""Where the stream keeps its log; Spark puts it beside the user's options."""


class OttlaSource(DataSource):
    """Topics of Kafka or Ottla.

    Read with the options of `SourceOptions`, write with those of `SinkOptions`:

        spark.readStream.format("ottla").option("kafka.bootstrap.servers", "localhost:9092")
             .option("subscribe", "flights").load()
    """

    is_copy = False

    @classmethod
    def name(cls) -> str:
        return "ottla"

    def schema(self) -> StructType:
        with plainly():
            options = read_source_options(self.options)
            return columns_of(options, partial(some_of, options))

    def reader(self, schema: StructType) -> BatchReader:
        with plainly():
            make = FilteringBatchReader if is_asked_to_filter() else BatchReader
            return make(*self.reading(schema))

    def streamReader(self, schema: StructType) -> StreamReader | RefusedStream:
        try:
            return StreamReader(*self.reading(schema))
        except OttlaError as error:
            return RefusedStream(error)

    def reading(self, schema: StructType) -> tuple[SourceOptions, Decoding]:
        """How to read, once it is clear that `schema` is what a topic has."""
        warn_if_slow()
        options = read_source_options(self.options)
        # Columns that were found in the topic are not looked for again: there may be others by now.
        schemas = [text.strip().lower() for text in (options.key_schema, options.value_schema) if text]
        if INFER not in schemas and schema != columns_of(options, partial(some_of, options)):
            raise ConfigError(
                "the columns of a topic are fixed; leave .schema(...) out, and name those of the value in valueSchema"
            )
        return options, decoding_of(options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> BatchSink:
        # What only writes is loaded by who writes: Spark begins a process for each thing that it asks a source.
        from ottla.spark.sink.writers import BatchSink, run_of_batch

        with plainly():
            options = read_sink_options(self.options)
            sink = BatchSink(options, schema, overwrite)
            sink.run = run_of_batch(options, self.options.get(CHECKPOINT))
            return sink

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamSink:
        from ottla.spark.sink.writers import StreamSink, run_of_stream

        with plainly():
            options = read_sink_options(self.options)
            sink = StreamSink(options, schema)
            sink.checkpoint = self.options.get(CHECKPOINT)
            if not self.is_copy:
                sink.run = run_of_stream(options, self.options.get(CHECKPOINT))
            return sink

    def __getstate__(self) -> dict[str, Any]:
        """Spark asks for the writer before the tasks of a batch of a source that it has made, and of a copy to commit."""
        return {**self.__dict__, "is_copy": True}
