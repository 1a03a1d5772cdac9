"""A record that was read: a light view of one row of columns.

Compiled if possible, because a record is created in each iteration of the user's loop.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import repeat
from typing import Any

from ottla.client.consumer.config import Deserializer
from ottla.errors import RecordDeserializationError
from ottla.model import Header, TimestampType, TopicPartition
from ottla.records.binary_column import column_of
from ottla.records.columns import BatchRows, Columns

COMPILED = not __file__.endswith(".py")
UNMADE = object()
"""Marks a key or value without a deserializer, which is read from the columns as bytes."""


class RecordSource:
    """The data that the records of one fetched chunk share."""

    __slots__ = (
        "columns",
        "delivery_counts",
        "deserializes",
        "key_deserializer",
        "keys",
        "partition",
        "topic",
        "value_deserializer",
        "values",
        "with_context",
    )

    def __init__(
        self,
        topic: str,
        partition: int,
        columns: Columns,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        delivery_counts: Any = None,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.columns = columns
        self.delivery_counts = delivery_counts
        """The number of deliveries of each row; None outside a share group."""
        self.keys = columns.keys
        self.values = columns.values
        self.key_deserializer = key_deserializer
        self.value_deserializer = value_deserializer
        self.deserializes = key_deserializer is not None or value_deserializer is not None
        self.with_context = any(hasattr(one, "deserialize_record") for one in (key_deserializer, value_deserializer))
        """True if a deserializer receives the topic and the headers of a record too, as those of `ottla.schemas`."""

    @property
    def tp(self) -> TopicPartition:
        """The partition of the records."""
        return TopicPartition(self.topic, self.partition)

    def deserialize(
        self, start: int, stop: int
    ) -> tuple[list[Any] | None, list[Any] | None, RecordDeserializationError | None]:
        """Return the deserialized keys and values of the rows from `start` up to `stop`.

        A list is None without a deserializer. Both lists end before the first row that fails; its error is the third
        element.
        """
        make_key, make_value = self.key_deserializer, self.value_deserializer
        keys: list[Any] = []
        values: list[Any] = []
        failure, origin, row = None, "key", start
        try:
            for row in range(start, stop):
                if make_key is not None:
                    origin = "key"
                    data = self.keys.get(row)
                    if data is not None:
                        data = self.make_part(make_key, "key", data, row) if self.with_context else make_key(data)
                    keys.append(data)
                if make_value is not None:
                    origin = "value"
                    data = self.values.get(row)
                    if data is not None:
                        data = self.make_part(make_value, "value", data, row) if self.with_context else make_value(data)
                    values.append(data)
        except Exception as error:
            failure = self.failure_at(row, origin, error)
            del keys[row - start :]
        return None if make_key is None else keys, None if make_value is None else values, failure

    def make_part(self, deserializer: Any, field: str, data: bytes, row: int) -> Any:
        """Return a deserialized key or value (`field`)."""
        make = getattr(deserializer, "deserialize_record", None)
        if make is None:
            return deserializer(data)
        raw_headers = self.columns.raw_headers
        headers = () if raw_headers is None or not raw_headers.size(row) else self.columns.headers(row)
        return make(data, self.topic, field, headers)

    def failure_at(self, row: int, origin: str, error: Exception) -> RecordDeserializationError:
        """Return the error for a row with a key or value (`origin`) for which a deserializer raised `error`."""
        offset = self.columns.offsets[row]
        failure = RecordDeserializationError(
            f"{origin}.deserializer failed on {self.tp} at offset {offset}: {type(error).__name__}: {error}; to skip "
            f"this record call seek(TopicPartition({self.topic!r}, {self.partition}), {offset + 1})",
            self.tp,
            offset,
            origin,
            ConsumerRecord(self, row),
        )
        failure.__cause__ = error
        return failure


class ConsumerRecord:
    """A record with its metadata. Key and value are read from the columns at each access."""

    __slots__ = ("_row", "_source")

    def __init__(self, source: RecordSource, row: int) -> None:
        self._source = source
        self._row = row

    @property
    def topic(self) -> str:
        """The topic."""
        return self._source.topic

    @property
    def partition(self) -> int:
        """The partition."""
        return self._source.partition

    @property
    def offset(self) -> int:
        """The offset in the partition."""
        offset: int = self._source.columns.offsets[self._row]
        return offset

    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970."""
        timestamp: int = self._source.columns.timestamps[self._row]
        return timestamp

    @property
    def timestamp_type(self) -> TimestampType:
        """Whether the producer or the broker set the timestamp."""
        return self._source.columns.timestamp_type(self._row)

    @property
    def leader_epoch(self) -> int:
        """The leader epoch of the record; -1 if unknown."""
        return self._source.columns.leader_epoch(self._row)

    @property
    def delivery_count(self) -> int | None:
        """The number of times that a share group has delivered the record, this time included; None for other consumers."""
        counts = self._source.delivery_counts
        return None if counts is None else int(counts[self._row])

    @property
    def key(self) -> Any:
        """The key: bytes, None if absent, or the result of `key.deserializer`."""
        return self._source.keys.get(self._row)

    @property
    def value(self) -> Any:
        """The value: bytes, None if absent, or the result of `value.deserializer`."""
        return self._source.values.get(self._row)

    @property
    def raw_key(self) -> bytes | None:
        """The original bytes of the key."""
        return self._source.keys.get(self._row)

    @property
    def raw_value(self) -> bytes | None:
        """The original bytes of the value."""
        return self._source.values.get(self._row)

    @property
    def headers(self) -> list[Header]:
        """The headers in order; a name may occur more than once."""
        return self._source.columns.headers(self._row)

    @property
    def serialized_key_size(self) -> int:
        """The size of the key in bytes; -1 if absent."""
        return self._source.keys.size(self._row)

    @property
    def serialized_value_size(self) -> int:
        """The size of the value in bytes; -1 if absent."""
        return self._source.values.size(self._row)

    def __class_getitem__(cls, item: Any) -> Any:
        return cls  # `ConsumerRecord[str, bytes]` has a meaning for type checkers only

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConsumerRecord):
            return NotImplemented
        return is_same(self, other)

    def __hash__(self) -> int:
        return hash((self.topic, self.partition, self.offset))

    def __reduce__(self) -> tuple[Any, ...]:
        return restored_record, (*facts_of(self._source, self._row), None, self.delivery_count)

    def __repr__(self) -> str:
        return (
            f"ConsumerRecord(topic={self.topic!r}, partition={self.partition}, offset={self.offset}, "
            f"timestamp={self.timestamp}, key={self.key!r}, value={self.value!r}, headers={self.headers!r})"
        )


class DeserializedRecord(ConsumerRecord):
    """A record with a deserialized key or value."""

    __slots__ = ("_key", "_value")

    def __init__(self, source: RecordSource, row: int) -> None:
        super().__init__(source, row)
        self._key: Any = UNMADE
        self._value: Any = UNMADE

    @property
    def key(self) -> Any:
        """The same as `ConsumerRecord.key`."""
        return self._source.keys.get(self._row) if self._key is UNMADE else self._key

    @property
    def value(self) -> Any:
        """The same as `ConsumerRecord.value`."""
        return self._source.values.get(self._row) if self._value is UNMADE else self._value

    def __reduce__(self) -> tuple[Any, ...]:
        return restored_record, (*facts_of(self._source, self._row), (self.key, self.value), self.delivery_count)


class ListedRecord(ConsumerRecord):
    """A record with a materialized value, because a property call is slow without compilation."""

    __slots__ = ("value",)

    def __init__(self, source: RecordSource, row: int, value: bytes | None) -> None:
        self._source = source
        self._row = row
        self.value = value  # type: ignore[misc]  # the slot hides the property


def make_record(source: RecordSource, row: int) -> ConsumerRecord:
    """Create a record without a call of `__init__`, which would take half of the time."""
    record = ConsumerRecord.__new__(ConsumerRecord)
    record._source = source
    record._row = row
    return record


class RecordIterator:
    """Yields the rows of a chunk as records, each created when it is requested.

    `keys` and `values` are the deserialized keys and values of these rows; None without a deserializer.
    """

    __slots__ = ("keys", "row", "source", "start", "stop", "values")

    def __init__(
        self,
        source: RecordSource,
        start: int,
        stop: int,
        keys: list[Any] | None = None,
        values: list[Any] | None = None,
    ) -> None:
        self.source = source
        self.start = start
        self.row = start
        """The next row."""
        self.stop = stop
        self.keys = keys
        self.values = values

    def __iter__(self) -> RecordIterator:
        return self

    def __next__(self) -> ConsumerRecord:
        if self.row >= self.stop:
            raise StopIteration
        if self.keys is not None or self.values is not None:
            record: ConsumerRecord = remake_record(
                self.source,
                self.row,
                UNMADE if self.keys is None else self.keys[self.row - self.start],
                UNMADE if self.values is None else self.values[self.row - self.start],
            )
        else:
            record = make_record(self.source, self.row)
        self.row += 1  # last: without compilation, a signal handler may raise after each call
        return record

    def end(self) -> None:
        """Stop yielding records."""
        self.row = self.stop


def facts_of(source: RecordSource, row: int) -> tuple[Any, ...]:
    """Return the original data of a record, the arguments of `restored_record`."""
    columns = source.columns
    headers = None if columns.raw_headers is None else columns.raw_headers.get(row)
    kind, epoch = int(columns.timestamp_type(row)), columns.leader_epoch(row)
    keys, values = source.keys.get(row), source.values.get(row)
    return (
        source.topic,
        source.partition,
        columns.offsets[row],
        columns.timestamps[row],
        kind,
        epoch,
        keys,
        values,
        headers,
    )


def is_same(one: ConsumerRecord, other: ConsumerRecord) -> bool:
    """Return True if the original data of two records is equal."""
    return facts_of(one._source, one._row) == facts_of(other._source, other._row)


def restored_record(
    topic: str,
    partition: int,
    offset: int,
    timestamp: int,
    kind: int,
    epoch: int,
    key: bytes | None,
    value: bytes | None,
    headers: bytes | None,
    made: tuple[Any, Any] | None = None,
    delivery_count: int | None = None,
) -> ConsumerRecord:
    """Restore a record from a pickle; `made` contains its deserialized key and value."""
    columns = Columns(
        1,
        memoryview(array("q", [offset])),
        memoryview(array("q", [timestamp])),
        column_of([key]),
        column_of([value]),
        None if headers is None else column_of([headers]),
        [BatchRows(0, TimestampType(kind), epoch)],
        offset + 1,
    )
    counts = None if delivery_count is None else [delivery_count]
    source = RecordSource(topic, partition, columns, delivery_counts=counts)
    return ConsumerRecord(source, 0) if made is None else remake_record(source, 0, *made)


def remake_record(source: RecordSource, row: int, key: Any, value: Any) -> DeserializedRecord:
    """Return a record with these objects as key and value."""
    record = DeserializedRecord.__new__(DeserializedRecord)
    record._source = source
    record._row = row
    record._key = key
    record._value = value
    return record


def records_of(
    source: RecordSource, start: int, stop: int, keys: list[Any] | None = None, values: list[Any] | None = None
) -> Iterator[Any]:
    """Yield the rows from `start` up to `stop` by the fastest method available; `keys` and `values` as in `RecordIterator`."""
    if COMPILED:
        return RecordIterator(source, start, stop, keys, values)
    rows = range(start, stop)
    if keys is not None or values is not None:
        return map(remake_record, repeat(source), rows, keys or repeat(UNMADE), values or repeat(UNMADE))
    listed = getattr(source.values, "values", None)
    if listed is None:
        return map(ConsumerRecord, repeat(source), rows)
    return map(ListedRecord, repeat(source), rows, listed[start:stop])
