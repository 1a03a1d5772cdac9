"""A bounded read of topics, as Arrow batches.

A `TopicScan` is a description: it opens connections when it is read, and may be read several times. Each read ends at the
end offsets of its start. It is an Arrow stream (`__arrow_c_stream__`), which DuckDB, Polars, pandas and pyarrow can read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from ottla.client.consumer.consumer import Consumer
from ottla.client.consumer.topic_table import OURS, partitions_of, poll_spans
from ottla.client.interface.arguments import checked_columns
from ottla.errors import ConfigError
from ottla.extras import extra
from ottla.model import TopicPartition
from ottla.scanning.offset_span import EPOCH, EVERYTHING, OffsetSpan

with extra("arrow"):
    import pyarrow as pa

    from ottla.records import arrow

if TYPE_CHECKING:
    from ottla.schemas import Schema, SchemaRegistryClient

Time = datetime | int | None
"""A moment, or milliseconds since 1970."""
Offsets = Mapping[TopicPartition, int]
Narrow = Callable[[TopicPartition], OffsetSpan | None]
"""Returns the offsets of a partition that a query needs; None if it needs none."""


class TopicScan:
    """The current records of topics, or a part of them, as Arrow batches.

    `start` and `end` (exclusive) are offsets of single partitions. `start_time` is the moment of the first record, and
    `end_time` that of the first record that is not read, in each partition. `partitions` are the numbers that are read.
    """

    def __init__(
        self,
        topics: str | Iterable[str],
        config: Mapping[str, Any] | None = None,
        /,
        *,
        columns: Sequence[str] | None = None,
        partitions: Iterable[int] | None = None,
        start: Offsets | None = None,
        end: Offsets | None = None,
        start_time: Time = None,
        end_time: Time = None,
        include_headers: bool = False,
        value_format: str | None = None,
        key_format: str | None = None,
        registry: SchemaRegistryClient | Mapping[str, Any] | str | None = None,
        value_schema: int | str | Schema | None = None,
        key_schema: int | str | Schema | None = None,
        decode_errors: str = "raise",
        **settings: Any,
    ) -> None:
        self._topics = checked_topics(topics)
        given = {name.replace("_", "."): value for name, value in [*(config or {}).items(), *settings.items()]}
        self._settings = {**OURS, **given, "auto.offset.reset": "none", "enable.auto.commit": False}
        self._include_headers = include_headers or "headers" in (columns or ())
        self._columns = checked_columns(columns, self._include_headers)
        self._partitions = None if partitions is None else frozenset(partitions)
        self._start, self._end = dict(start or {}), dict(end or {})
        self._start_ms = to_milliseconds("start_time", start_time)
        self._end_ms = to_milliseconds("end_time", end_time)
        self._decoding: dict[str, Any] = {}
        if (key_format, value_format, registry, key_schema, value_schema) != (None,) * 5 or decode_errors != "raise":
            self._decoding = {
                "key_format": key_format,
                "value_format": value_format,
                "registry": registry,
                "key_schema": key_schema,
                "value_schema": value_schema,
                "decode_errors": decode_errors,
            }
        self._schema: pa.Schema | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns of the batches. Registered schemas are looked up once, so that all reads have the same columns."""
        if self._schema is None:
            if self._decoding:
                self._schema = self._registered_schema()
            else:
                self._schema = arrow.schema(self._include_headers, only=self._columns)
        return self._schema

    def read(
        self, narrow: Narrow | None = None, *, columns: Sequence[str] | None = None, max_rows: int | None = None
    ) -> Iterator[pa.Table]:
        """Yield the rows as they arrive, with some of the columns, and at most `max_rows`.

        Rows of a partition keep their order; those of several partitions are interleaved.
        """
        shape = self.schema
        names = shape.names if columns is None else list(columns)
        left = max_rows
        with Consumer(self._settings) as consumer:
            spans = self._find_spans(consumer, narrow or (lambda _: EVERYTHING))

            def poll(seconds: float) -> pa.Table:
                return consumer.poll_arrow(seconds, include_headers="headers" in names, columns=names, **self._decoding)

            for table in poll_spans(consumer, spans, poll) if left != 0 else ():
                part = table if left is None else table.slice(0, left)
                if part.num_rows:
                    yield part
                if left is not None:
                    left -= part.num_rows
                    if left == 0:
                        return

    def reader(self) -> pa.RecordBatchReader:
        """Return a reader of the rows. It connects when the first batch is read."""
        batches = (batch for table in self.read() for batch in table.to_batches())
        return pa.RecordBatchReader.from_batches(self.schema, batches)

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.reader().__arrow_c_stream__(requested_schema)  # type: ignore[no-untyped-call]

    def __repr__(self) -> str:
        return f"TopicScan({', '.join(self._topics)})"

    def _find_spans(self, consumer: Consumer[Any, Any], narrow: Narrow) -> dict[TopicPartition, tuple[int, int]]:
        """Return the offsets to read of each partition, as the given bounds, the filter and the current offsets allow."""
        needed: dict[TopicPartition, OffsetSpan] = {}
        existing = {topic: partitions_of(consumer, topic) for topic in self._topics}
        self._check_partitions({info.partition for infos in existing.values() for info in infos})
        for topic, infos in existing.items():
            for info in infos:
                tp = TopicPartition(topic, info.partition)
                span = narrow(tp) if self._partitions is None or tp.partition in self._partitions else None
                if span is not None:
                    needed[tp] = span.intersect(OffsetSpan(since_ms=self._start_ms))
        ends = consumer.end_offsets(needed)
        firsts = consumer.beginning_offsets(needed)
        times = {tp: span.since_ms for tp, span in needed.items() if span.since_ms is not None}
        since = find_times(consumer, times, ends)
        until = find_times(consumer, {} if self._end_ms is None else dict.fromkeys(needed, self._end_ms), ends)
        found = {}
        for tp, span in needed.items():
            limits = [self._end.get(tp), until.get(tp), span.end]
            start = max(self._start.get(tp, 0), span.start, since.get(tp, 0))
            if tp not in self._start:  # a given offset that was deleted is an error
                start = max(start, firsts[tp])
            end = min([ends[tp], *(limit for limit in limits if limit is not None)])
            if start < end:
                found[tp] = (start, end)
        return found

    def _check_partitions(self, existing: set[int]) -> None:
        """Raise ConfigError for a number that is no partition of any topic."""
        if unknown := sorted((self._partitions or frozenset()) - existing):
            raise ConfigError(
                f"invalid partition {unknown[0]} of {', '.join(self._topics)}: expected numbers from 0 to {max(existing)}"
            )

    def _registered_schema(self) -> pa.Schema:
        """Look up the readers' schemas, and keep them for all reads."""
        from ottla.schemas.registered_tables import registered_formats
        from ottla.schemas.registries import Registries

        given, registries = self._decoding, Registries()
        names = ("key_format", "value_format", "key_schema", "value_schema", "decode_errors")
        formats = registered_formats(*(given[name] for name in names))
        try:
            client, tables = registries.open_blocking(given["registry"])
            for field, chosen in formats.fields.items():
                if chosen.reader is None or isinstance(chosen.reader, int):
                    given[f"{field}_schema"] = self._find_schema(client, field, chosen.reader)
            formats = registered_formats(*(given[name] for name in names))
            empty = client.run(tables.decode([], self._topics, formats, self._include_headers, self._columns))
        finally:
            registries.close_blocking()
        return empty.schema

    def _find_schema(self, client: SchemaRegistryClient, field: str, version: int | None) -> Schema:
        """Return a version of the topic's subject, by default the newest."""
        if len(self._topics) > 1:
            raise ConfigError(
                f"{field}_format with {len(self._topics)} topics needs one reader's schema: pass {field}_schema as a "
                "schema, or scan one topic"
            )
        from ottla.schemas.errors import SchemaRegistryError
        from ottla.schemas.registered_tables import NOT_FOUND

        subject = f"{self._topics[0]}-{field}"
        try:
            found = client.get_latest_version(subject) if version is None else client.get_version(subject, version)
        except SchemaRegistryError as error:
            if error.http_status_code != NOT_FOUND:
                raise
            which = "" if version is None else f" version {version} of"
            raise ConfigError(
                f"the registry has no{which} subject {subject!r}: register a schema, or pass {field}_schema as a schema"
            ) from None
        return found.schema


def find_times(consumer: Consumer[Any, Any], times: Offsets, ends: Offsets) -> dict[TopicPartition, int]:
    """Return the first offset with each timestamp or a later one; the end if there is none."""
    found = consumer.offsets_for_times(times) if times else {}
    return {tp: ends[tp] if answer is None else answer.offset for tp, answer in found.items()}


def checked_topics(topics: str | Iterable[str]) -> list[str]:
    names = [topics] if isinstance(topics, str) else list(topics)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ConfigError(f"invalid topics {topics!r}: expected a name, such as 'orders', or a list of names")
    return names


def to_milliseconds(name: str, moment: Time) -> int | None:
    """Return a moment in milliseconds since 1970, rounded up as Kafka compares timestamps."""
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise ConfigError(f"{name} = {moment} has no time zone: pass for example datetime(2026, 1, 31, tzinfo=UTC)")
        return -((EPOCH - moment.astimezone(UTC)) // timedelta(milliseconds=1))
    if moment is not None and (not isinstance(moment, int) or isinstance(moment, bool) or moment < 0):
        raise ConfigError(f"{name} = {moment!r}: expected a datetime with a time zone, or milliseconds since 1970")
    return moment
