"""The function is called with tables, and returns tables; the only module here that needs pyarrow.

Columns are those of `poll_arrow`. Of a table that is returned `key`, `value` and `headers` are sent, as far as they
are there. Nothing is made of a single row, unless it is a dead letter.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ottla.client.consumer.record import ConsumerRecord, RecordSource
from ottla.client.process.calls import Calls
from ottla.client.process.form import Function, Reach, buried, gathered, sifted
from ottla.client.process.outgoing import Outgoing
from ottla.client.process.settings import ProcessSettings
from ottla.extras import extra
from ottla.model import OffsetAndMetadata, TopicPartition
from ottla.records.arrow import to_table
from ottla.records.columns import Columns

with extra("arrow"):
    import pyarrow as pa

Chunk = tuple[TopicPartition, Columns]
HEADERS = "headers"


class OutgoingTable(NamedTuple):
    """A table to send."""

    table: pa.Table
    topic: str | None

    @property
    def headers(self) -> str | None:
        """The name of its column of headers."""
        return HEADERS if HEADERS in self.table.schema.names else None


class Portion:
    """Consecutive rows of what one poll returned."""

    def __init__(self, table: pa.Table, chunks: list[Chunk], start: int = 0) -> None:
        self.table = table
        self._chunks = chunks
        self._start = start

    def __len__(self) -> int:
        return self.table.num_rows

    def __getitem__(self, rows: slice) -> Portion:
        first, stop, _ = rows.indices(len(self))
        return Portion(self.table.slice(first, stop - first), self._chunks, self._start + first)

    def first(self) -> ConsumerRecord:
        """Its first row as a record, with the bytes and headers it came with."""
        row = self._start
        for (topic, partition), columns in self._chunks:
            if row < len(columns):
                return ConsumerRecord(RecordSource(topic, partition, columns), row)
            row -= len(columns)
        raise IndexError(f"row {self._start} of {self._start - row}")


class Tables:
    """The function is called with a table of all records of a poll; where it raises with the half, and so on."""

    def __init__(self, consumer: Any, function: Function, settings: ProcessSettings) -> None:
        self._consumer = consumer
        self._function = function
        self._settings = settings
        self._with_headers = settings.include_headers or settings.dead_letter_topic is not None

    def poll(self, timeout: float) -> Any:
        """As of the consumer, in our own columns."""
        return self._consumer.poll_columns(timeout=timeout, include_headers=self._with_headers)

    def reach(self, polled: list[Chunk]) -> Reach:
        for partition, columns in polled:
            if len(columns):
                last = columns.leader_epoch(len(columns) - 1)
                yield partition, columns.offsets[0], OffsetAndMetadata(columns.next_offset, "", last)

    def results(self, polled: list[Chunk]) -> Calls[list[Any]]:
        """In the order of the rows."""
        table = to_table(polled, with_headers=self._settings.include_headers)
        return (yield from sifted(self._attempt, Portion(table, polled), self._bury, self._settings))

    def _attempt(self, portion: Any) -> Calls[list[Any]]:
        return [as_table(each) for each in (yield from gathered(self._function(portion.table)))]

    def _bury(self, portion: Any, error: Exception) -> Outgoing:
        return buried(portion.first(), error, self._settings)


def as_table(each: Any) -> Any:
    """A record is sent as it is, a table by its columns."""
    if type(each) is bytes:
        return each
    if isinstance(each.value, pa.RecordBatch):
        return OutgoingTable(pa.Table.from_batches([each.value]), each.topic)
    return OutgoingTable(each.value, each.topic) if isinstance(each.value, pa.Table) else each
