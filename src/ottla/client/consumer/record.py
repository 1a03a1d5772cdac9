"""One record that was read: a light view of a row of columns.

Compiled where that can be: a record is made for each turn of the user's loop.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import repeat
from typing import Any

from ottla.client.consumer.config import Deserializer
from ottla.errors import SerializationError
from ottla.model import Header, TimestampType, TopicPartition
from ottla.records.binary_column import column_of
from ottla.records.columns import BatchRows, Columns

COMPILED = not __file__.endswith(".py")
UNMADE = object()
"""Of what has not been deserialized yet."""


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

    def deserialized(self, what: str, data: bytes | None, deserializer: Deserializer, row: int) -> Any:
        """`data` as the user's object; SerializationError says which record it was."""
        if data is None:
            return None
        try:
            return deserializer(data)
        except Exception as error:
            place = f"{self.topic}-{self.partition} at offset {self.columns.offsets[row]}"
            raise SerializationError(
                f"{what}.deserializer failed on {place}: {type(error).__name__}: {error}; seek past it to go on"
            ) from error


class ConsumerRecord:
    """A record with its place and time; key and value are made when they are first asked for."""

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
    """A record whose key or value, or both, are what a deserializer makes of them, once."""

    __slots__ = ("_key", "_value")

    def __init__(self, source: RecordSource, row: int) -> None:
        super().__init__(source, row)
        self._key: Any = UNMADE
        self._value: Any = UNMADE

    @property
    def key(self) -> Any:
        """As `ConsumerRecord.key`."""
        if self._key is UNMADE:
            source, data = self._source, self.raw_key
            make = source.key_deserializer
            self._key = data if make is None else source.deserialized("key", data, make, self._row)
        return self._key

    @property
    def value(self) -> Any:
        """As `ConsumerRecord.value`."""
        if self._value is UNMADE:
            source, data = self._source, self.raw_value
            make = source.value_deserializer
            self._value = data if make is None else source.deserialized("value", data, make, self._row)
        return self._value

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
    """Rows of a chunk one after the other, each made a record when its turn comes."""

    __slots__ = ("row", "source", "start", "stop")

    def __init__(self, source: RecordSource, start: int, stop: int) -> None:
        self.source = source
        self.start = start
        self.row = start
        """The next to be handed out."""
        self.stop = stop

    def __iter__(self) -> RecordIterator:
        return self

    def __next__(self) -> ConsumerRecord:
        if self.row >= self.stop:
            raise StopIteration
        return self.following()

    def following(self) -> ConsumerRecord:
        """The next, which must be there."""
        row = self.row
        self.row = row + 1
        if self.source.deserializes:
            return DeserializedRecord(self.source, row)
        # Without a call of `__init__`, which would be half of the work.
        record = ConsumerRecord.__new__(ConsumerRecord)
        record._source = self.source
        record._row = row
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
    """A record out of a pickle; `made` is what the deserializers had made of key and value."""
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
    """A record with what its deserializers had made."""
    record = DeserializedRecord(source, row)
    record._key = key
    record._value = value
    return record


def records_of(source: RecordSource, start: int, stop: int) -> Iterator[Any]:
    """The rows from `start` up to `stop`, by what is quickest here."""
    if COMPILED:
        return RecordIterator(source, start, stop)
    rows = range(start, stop)
    if source.deserializes:
        return map(DeserializedRecord, repeat(source), rows)
    values = getattr(source.values, "values", None)
    if values is None:
        return map(ConsumerRecord, repeat(source), rows)
    return map(ListedRecord, repeat(source), rows, values[start:stop])
