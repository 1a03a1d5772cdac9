"""The data source for Spark: `format("ottla")`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource

from ottla.errors import ConfigError, OttlaError
from ottla.spark.columns.row_decoder import Decoding
from ottla.spark.columns.value_formats import INFER, columns_of, decoding_of
from ottla.spark.failure import without_traceback
from ottla.spark.options import SourceOptions, read_sink_options, read_source_options
from ottla.spark.source.batch_reader import BatchReader, FilteringBatchReader
from ottla.spark.source.refused_stream import RefusedStream
from ottla.spark.source.registered_readers import find_readers
from ottla.spark.source.sampling import some_of
from ottla.spark.source.stream_reader import StreamReader
from ottla.spark.tables.filters import has_filter_pushdown
from ottla.spark.workers.hot_loops import warn_if_slow

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from ottla.spark.sink.writers import BatchSink, StreamSink

CHECKPOINT = "checkpointlocation"
"""The checkpoint of a stream; Spark adds it to the user's options."""


class OttlaSource(DataSource):
    """Topics of Kafka or Ottla.

    Read with the options of `SourceOptions`, write with those of `SinkOptions`:

        spark.readStream.format("ottla").option("kafka.bootstrap.servers", "localhost:9092")
             .option("subscribe", "flights").load()
    """

    is_copy = False
    readers: Mapping[str, str] | None = None
    """The reader's schemas of registered keys and values. Spark pickles the source after it called `schema`, so that they
    are the same for the whole query.
    """

    @classmethod
    def name(cls) -> str:
        return "ottla"

    def schema(self) -> StructType:
        with without_traceback():
            options = read_source_options(self.options)
            return columns_of(options, partial(some_of, options), self.registered_readers(options))

    def registered_readers(self, options: SourceOptions) -> Mapping[str, str]:
        """Return the reader's schemas, requested from the registry once."""
        if self.readers is None:
            self.readers = find_readers(options)
        return self.readers

    def reader(self, schema: StructType) -> BatchReader:
        with without_traceback():
            make = FilteringBatchReader if has_filter_pushdown() else BatchReader
            return make(*self.reading(schema))

    def streamReader(self, schema: StructType) -> StreamReader | RefusedStream:
        try:
            return StreamReader(*self.reading(schema))
        except OttlaError as error:
            return RefusedStream(error)

    def reading(self, schema: StructType) -> tuple[SourceOptions, Decoding]:
        """Return the options and the decoding, after a check that `schema` is that of the topic."""
        warn_if_slow()
        options = read_source_options(self.options)
        # An inferred schema is not inferred again: the topic may have other records by now.
        schemas = [text.strip().lower() for text in (options.key_schema, options.value_schema) if text]
        readers = self.registered_readers(options)
        if INFER not in schemas and schema != columns_of(options, partial(some_of, options), readers):
            raise ConfigError(
                "the columns of a topic are fixed; leave .schema(...) out, and set the columns of the value in valueSchema"
            )
        return options, decoding_of(options, schema, readers)

    def writer(self, schema: StructType, overwrite: bool) -> BatchSink:
        # Imported only for writes: Spark starts a process for each call to a source, and loading takes time.
        from ottla.spark.sink.registered_values import prepare_encodings
        from ottla.spark.sink.writers import BatchSink, run_of_batch

        with without_traceback():
            options = read_sink_options(self.options)
            sink = BatchSink(options, schema, overwrite)
            sink.columns = replace(sink.columns, encodings=prepare_encodings(options, schema))
            sink.run = run_of_batch(options, self.options.get(CHECKPOINT))
            return sink

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamSink:
        from ottla.spark.sink.registered_values import prepare_encodings
        from ottla.spark.sink.writers import StreamSink, run_of_stream

        with without_traceback():
            options = read_sink_options(self.options)
            sink = StreamSink(options, schema)
            sink.checkpoint = self.options.get(CHECKPOINT)
            if not self.is_copy:
                sink.columns = replace(sink.columns, encodings=prepare_encodings(options, schema))
                sink.run = run_of_stream(options, self.options.get(CHECKPOINT))
            return sink

    def __getstate__(self) -> dict[str, Any]:
        """Mark pickled copies.

        Spark creates the writer of a batch before its tasks, from the source that it made itself, and pickles the
        source to create another writer for commit or abort. Only the first may announce the batch.
        """
        return {**self.__dict__, "is_copy": True}
