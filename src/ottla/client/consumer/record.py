"""One record that was read: a light view of a row of columns."""

from __future__ import annotations

from typing import Any

from ottla.client.consumer.config import Deserializer
from ottla.errors import SerializationError
from ottla.model import Header, TimestampType
from ottla.records.columns import Columns


class RecordSource:
    """What the records of one fetched chunk share."""

    __slots__ = ("columns", "key_deserializer", "partition", "topic", "value_deserializer")

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
        self.key_deserializer = key_deserializer
        self.value_deserializer = value_deserializer

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

    __slots__ = ("_key", "_row", "_source", "_value")

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
        source = self._source
        if source.key_deserializer is None:
            return source.columns.key(self._row)
        try:
            return self._key
        except AttributeError:
            self._key: Any = source.deserialized(
                "key", source.columns.key(self._row), source.key_deserializer, self._row
            )
            return self._key

    @property
    def value(self) -> Any:
        """The value: bytes, None without one, or what `value.deserializer` made of it."""
        source = self._source
        if source.value_deserializer is None:
            return source.columns.value(self._row)
        try:
            return self._value
        except AttributeError:
            self._value: Any = source.deserialized(
                "value", source.columns.value(self._row), source.value_deserializer, self._row
            )
            return self._value

    @property
    def raw_key(self) -> bytes | None:
        """The key as it came, whatever the deserializer would make of it."""
        return self._source.columns.key(self._row)

    @property
    def raw_value(self) -> bytes | None:
        """The value as it came."""
        return self._source.columns.value(self._row)

    @property
    def headers(self) -> list[Header]:
        """The headers, in order; a key may occur more than once."""
        return self._source.columns.headers(self._row)

    @property
    def serialized_key_size(self) -> int:
        """Bytes of the key, -1 without one."""
        return self._source.columns.keys.size(self._row)

    @property
    def serialized_value_size(self) -> int:
        """Bytes of the value, -1 without one."""
        return self._source.columns.values.size(self._row)

    def __repr__(self) -> str:
        return (
            f"ConsumerRecord(topic={self.topic!r}, partition={self.partition}, offset={self.offset}, "
            f"timestamp={self.timestamp}, key={self.key!r}, value={self.value!r}, headers={self.headers!r})"
        )
