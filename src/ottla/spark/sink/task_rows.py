"""The rows of a task for the exactly-once protocol."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from ottla.client.producer import Producer
from ottla.spark.exactly_once.weight import Weight
from ottla.spark.options import SinkOptions
from ottla.spark.sink.row_writer import SinkRowWriter
from ottla.spark.sink.sink_rows import SinkColumns, weigh

if TYPE_CHECKING:
    import pyarrow as pa


class SinkRows:
    """Arrow batches that can be consumed once."""

    def __init__(
        self, options: SinkOptions, columns: SinkColumns, task: int, query: str, batches: Iterator[pa.RecordBatch]
    ) -> None:
        self.options = options
        self.columns = columns
        self.task = task
        self.query = query
        self.rows = self.dead = 0
        self._batches = batches

    def is_empty(self) -> bool:
        """Return True if there are no rows; reads up to the first one."""
        for batch in self._batches:
            if batch.num_rows:
                self._batches = chain([batch], self._batches)
                return False
        return True

    def send(self, producer: Producer) -> Weight:
        """Send the rows, wait until the brokers have acknowledged them, and return their weight."""
        writer, weight = SinkRowWriter(producer, self.options, self.columns, self.task, self.query), Weight()
        for batch in self._batches:
            weight += weigh(batch, self.columns)
            writer.write(batch)
        writer.flush()
        self.rows, self.dead = writer.rows, writer.dead
        return weight

    def weigh(self) -> Weight:
        """Return the weight of the rows without sending them."""
        return sum((weigh(batch, self.columns) for batch in self._batches), Weight())
