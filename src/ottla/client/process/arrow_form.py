"""The form in which the function receives tables and returns tables.

The only module of this package that needs pyarrow.

The columns are those of `poll_arrow`. The columns `key`, `value` and `headers` of a returned table are sent, if
present. No row is converted to a record, except for dead letters.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ottla.client.consumer.record import ConsumerRecord, RecordSource
from ottla.client.process.calls import Calls
from ottla.client.process.form import Function, Spans, collect_results, make_dead_letter, process_in_halves
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
        """The name of the headers column, or None."""
        return HEADERS if HEADERS in self.table.schema.names else None


class TableSlice:
    """Consecutive rows of the result of one poll."""

    def __init__(self, table: pa.Table, chunks: list[Chunk], start: int = 0) -> None:
        self.table = table
        self._chunks = chunks
        self._start = start

    def __len__(self) -> int:
        return self.table.num_rows

    def __getitem__(self, rows: slice) -> TableSlice:
        first, stop, _ = rows.indices(len(self))
        return TableSlice(self.table.slice(first, stop - first), self._chunks, self._start + first)

    def first(self) -> ConsumerRecord:
        """Return the first row as a record, with its original bytes and headers."""
        row = self._start
        for (topic, partition), columns in self._chunks:
            if row < len(columns):
                return ConsumerRecord(RecordSource(topic, partition, columns), row)
            row -= len(columns)
        raise IndexError(f"row {self._start} of {self._start - row}")


class Tables:
    """Call the function with a table of all records of a poll. If it raises, call it with each half, and so on."""

    def __init__(self, consumer: Any, function: Function, settings: ProcessSettings) -> None:
        self._consumer = consumer
        self._function = function
        self._settings = settings
        self._with_headers = settings.include_headers or settings.dead_letter_topic is not None

    def poll(self, timeout: float) -> Any:
        """Poll the consumer for columns."""
        return self._consumer.poll_columns(timeout=timeout, include_headers=self._with_headers)

    def spans(self, polled: list[Chunk]) -> Spans:
        for partition, columns in polled:
            if len(columns):
                last = columns.leader_epoch(len(columns) - 1)
                yield partition, columns.offsets[0], OffsetAndMetadata(columns.next_offset, "", last)

    def results(self, polled: list[Chunk]) -> Calls[list[Any]]:
        """Return the results in the order of the rows."""
        table = to_table(polled, with_headers=self._settings.include_headers)
        return (
            yield from process_in_halves(
                self._attempt, TableSlice(table, polled), self._make_dead_letter, self._settings
            )
        )

    def _attempt(self, portion: Any) -> Calls[list[Any]]:
        return [wrap_result(each) for each in (yield from collect_results(self._function(portion.table)))]

    def _make_dead_letter(self, portion: Any, error: Exception) -> Outgoing:
        return make_dead_letter(portion.first(), error, self._settings)


def wrap_result(each: Any) -> Any:
    """Return a record unchanged, and wrap a table or record batch in `OutgoingTable`."""
    if type(each) is bytes:
        return each
    if isinstance(each.value, pa.RecordBatch):
        return OutgoingTable(pa.Table.from_batches([each.value]), each.topic)
    return OutgoingTable(each.value, each.topic) if isinstance(each.value, pa.Table) else each
