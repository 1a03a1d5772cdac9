"""One record that was read: a light view of a row of columns.

Compiled where that can be: a record is made for each turn of the user's loop.
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
"""Marks a key or value without a deserializer: it is read from the columns as bytes."""


class RecordSource:
    """What the records of one fetched chunk share."""

    __slots__ = (
        "columns",
        "deserializes",
        "key_deserializer",
        "keys",
        "partition",
        "topic",
        "value_deserializer",
        "values",
    )

    def __init__(
        self,
        topic: str,
        partition: int,
        columns: Columns,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.columns = columns
        self.keys = columns.keys
        self.values = columns.values
        self.key_deserializer = key_deserializer
        self.value_deserializer = value_deserializer
        self.deserializes = key_deserializer is not None or value_deserializer is not None

    @property
    def tp(self) -> TopicPartition:
        """Where the records are from."""
        return TopicPartition(self.topic, self.partition)

    def deserialize(
        self, start: int, stop: int
    ) -> tuple[list[Any] | None, list[Any] | None, RecordDeserializationError | None]:
        """Return the keys and the values of the rows from `start` up to `stop` as objects of the deserializers.

        A list is None where there is no deserializer. Both end before the first row that fails; its error is the third.
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
                    keys.append(None if data is None else make_key(data))
                if make_value is not None:
                    origin = "value"
                    data = self.values.get(row)
                    values.append(None if data is None else make_value(data))
        except Exception as error:
            failure = self.failure_at(row, origin, error)
            del keys[row - start :]
        return None if make_key is None else keys, None if make_value is None else values, failure

    def failure_at(self, row: int, origin: str, error: Exception) -> RecordDeserializationError:
        """Return the error for a row whose key or value (`origin`) a deserializer has rejected with `error`."""
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
    """A record with its place and time; key and value are read from the columns at each access."""

    __slots__ = ("_row", "_source")

    def __init__(self, source: RecordSource, row: int) -> None:
        self._source = source
        self._row = row

    @property
    def topic(self) -> str:
        """The topic it is in."""
        return self._source.topic

    @property
    def partition(self) -> int:
        """The partition it is in."""
        return self._source.partition

    @property
    def offset(self) -> int:
        """Its place in the partition."""
        offset: int = self._source.columns.offsets[self._row]
        return offset

    @property
    def timestamp(self) -> int:
        """Milliseconds since the epoch."""
        timestamp: int = self._source.columns.timestamps[self._row]
        return timestamp

    @property
    def timestamp_type(self) -> TimestampType:
        """Who set the timestamp."""
        return self._source.columns.timestamp_type(self._row)

    @property
    def leader_epoch(self) -> int:
        """The epoch of the leader that wrote it, -1 when unknown."""
        return self._source.columns.leader_epoch(self._row)

    @property
    def key(self) -> Any:
        """The key: bytes, None without one, or what `key.deserializer` made of it."""
        return self._source.keys.get(self._row)

    @property
    def value(self) -> Any:
        """The value: bytes, None without one, or what `value.deserializer` made of it."""
        return self._source.values.get(self._row)

    @property
    def raw_key(self) -> bytes | None:
        """The key as it came, whatever the deserializer would make of it."""
        return self._source.keys.get(self._row)

    @property
    def raw_value(self) -> bytes | None:
        """The value as it came."""
        return self._source.values.get(self._row)

    @property
    def headers(self) -> list[Header]:
        """The headers, in order; a key may occur more than once."""
        return self._source.columns.headers(self._row)

    @property
    def serialized_key_size(self) -> int:
        """Bytes of the key, -1 without one."""
        return self._source.keys.size(self._row)

    @property
    def serialized_value_size(self) -> int:
        """Bytes of the value, -1 without one."""
        return self._source.values.size(self._row)

    def __class_getitem__(cls, item: Any) -> Any:
        return cls  # `ConsumerRecord[str, bytes]` says something to type checkers only

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConsumerRecord):
            return NotImplemented
        return is_same(self, other)

    def __hash__(self) -> int:
        return hash((self.topic, self.partition, self.offset))

    def __reduce__(self) -> tuple[Any, ...]:
        return restored_record, facts_of(self._source, self._row)

    def __repr__(self) -> str:
        return (
            f"ConsumerRecord(topic={self.topic!r}, partition={self.partition}, offset={self.offset}, "
            f"timestamp={self.timestamp}, key={self.key!r}, value={self.value!r}, headers={self.headers!r})"
        )


class DeserializedRecord(ConsumerRecord):
    """A record whose key or value, or both, are objects of a deserializer."""

    __slots__ = ("_key", "_value")

    def __init__(self, source: RecordSource, row: int) -> None:
        super().__init__(source, row)
        self._key: Any = UNMADE
        self._value: Any = UNMADE

    @property
    def key(self) -> Any:
        """As `ConsumerRecord.key`."""
        return self._source.keys.get(self._row) if self._key is UNMADE else self._key

    @property
    def value(self) -> Any:
        """As `ConsumerRecord.value`."""
        return self._source.values.get(self._row) if self._value is UNMADE else self._value

    def __reduce__(self) -> tuple[Any, ...]:
        return restored_record, (*facts_of(self._source, self._row), (self.key, self.value))


class ListedRecord(ConsumerRecord):
    """A record whose value is there already: where nothing is compiled, the call of a property is dear."""

    __slots__ = ("value",)

    def __init__(self, source: RecordSource, row: int, value: bytes | None) -> None:
        self._source = source
        self._row = row
        self.value = value  # type: ignore[misc]  # the slot stands before the property


class RecordIterator:
    """Rows of a chunk one after the other, each made a record when its turn comes.

    `keys` and `values` are the objects of the deserializers for these rows, None without a deserializer.
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
        """The next to be handed out."""
        self.stop = stop
        self.keys = keys
        self.values = values

    def __iter__(self) -> RecordIterator:
        return self

    def __next__(self) -> ConsumerRecord:
        if self.row >= self.stop:
            raise StopIteration
        return self.following()

    def following(self) -> ConsumerRecord:
        """The next, which must be there."""
        row = self.row
        if self.keys is not None or self.values is not None:
            record: ConsumerRecord = remade(
                self.source,
                row,
                UNMADE if self.keys is None else self.keys[row - self.start],
                UNMADE if self.values is None else self.values[row - self.start],
            )
        else:
            # Without a call of `__init__`, which would be half of the work.
            record = ConsumerRecord.__new__(ConsumerRecord)
            record._source = self.source
            record._row = row
        self.row = row + 1  # last: where this is not compiled, a signal handler may raise after each call
        return record

    def end(self) -> None:
        """Hand out nothing more."""
        self.row = self.stop


def facts_of(source: RecordSource, row: int) -> tuple[Any, ...]:
    """All that a record is, as it came: what `restored_record` takes."""
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
    """Whether all that came is the same."""
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
) -> ConsumerRecord:
    """Return a record out of a pickle; `made` has its key and value as objects of the deserializers."""
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
    source = RecordSource(topic, partition, columns)
    return ConsumerRecord(source, 0) if made is None else remade(source, 0, *made)


def remade(source: RecordSource, row: int, key: Any, value: Any) -> DeserializedRecord:
    """Return a record with these objects for its key and value."""
    record = DeserializedRecord.__new__(DeserializedRecord)
    record._source = source
    record._row = row
    record._key = key
    record._value = value
    return record


def records_of(
    source: RecordSource, start: int, stop: int, keys: list[Any] | None = None, values: list[Any] | None = None
) -> Iterator[Any]:
    """The rows from `start` up to `stop`, by what is quickest here; `keys` and `values` as of `RecordIterator`."""
    if COMPILED:
        return RecordIterator(source, start, stop, keys, values)
    rows = range(start, stop)
    if keys is not None or values is not None:
        return map(remade, repeat(source), rows, keys or repeat(UNMADE), values or repeat(UNMADE))
    listed = getattr(source.values, "values", None)
    if listed is None:
        return map(ConsumerRecord, repeat(source), rows)
    return map(ListedRecord, repeat(source), rows, listed[start:stop])
