"""The rows of a task as the exactly-once protocol needs them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from ottla.client.producer import Producer
from ottla.spark.exactly_once.weight import Weight
from ottla.spark.options import SinkOptions
from ottla.spark.sink.row_writer import RowWriter
from ottla.spark.sink.sink_rows import SinkColumns, weigh

if TYPE_CHECKING:
    import pyarrow as pa


class SinkRows:
    """Arrow batches that come once."""

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
        """Whether there are none; looks as far as the first."""
        for batch in self._batches:
            if batch.num_rows:
                self._batches = chain([batch], self._batches)
                return False
        return True

    def send(self, producer: Producer) -> Weight:
        """Send them, wait until the brokers have them, and weigh them."""
        writer, weight = RowWriter(producer, self.options, self.columns, self.task, self.query), Weight()
        for batch in self._batches:
            weight += weigh(batch, self.columns)
            writer.write(batch)
        writer.settle()
        self.rows, self.dead = writer.rows, writer.dead
        return weight

    def weigh(self) -> Weight:
        """Weigh them, and send none."""
        return sum((weigh(batch, self.columns) for batch in self._batches), Weight())
