"""Finds rows that cannot be written before they are sent.

Pure: Arrow in, positions and reasons out. Rows are only checked one by one if a check of the whole batch fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute

from ottla.errors import AuthenticationError, ErrorCode, KafkaError, NoBrokersAvailableError, OttlaError

pc: Any = pyarrow.compute
LEGAL_TOPIC = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")
RECORD_BYTES = 61 + 36
"""The most bytes of a batch with one record, without key, value and headers."""
HEADER_BYTES = 10


class RowError(OttlaError):
    """A row cannot be written."""


class RefusedRow(NamedTuple):
    row: int
    """The position in the Arrow batch."""
    topic: str | None
    reason: str


class TopicLimits(Protocol):
    """Partitions, record sizes and required keys, from metadata and configs."""

    def partitions(self, topic: str) -> int:
        """Return the number of partitions; OttlaError if the topic does not exist."""

    def limit(self, topic: str) -> tuple[int, str]:
        """Return the most bytes of a record, and the setting with this limit."""

    def has_required_keys(self, topic: str) -> bool:
        """Return True if the topic is compacted, so that brokers reject records without a key."""


class TopicRows(NamedTuple):
    """The rows for one topic."""

    topic: str
    rows: pa.RecordBatch
    positions: Any = None
    """The position of each row in the Arrow batch; None if all rows are included."""

    def place(self, row: int) -> int:
        """Return the position of a row in the Arrow batch."""
        return row if self.positions is None else int(self.positions[row].as_py())


def split_rows(
    batch: pa.RecordBatch, option: str | None, target: TopicLimits
) -> tuple[list[TopicRows], list[RefusedRow]]:
    """Return the rows that can be written, by topic and in order, and the rows that cannot, in order."""
    groups, refusals = [], []
    for topic, group in by_topic(batch, option):
        count = group.rows.num_rows
        reason = topic_fault(topic, target, named_by_rows=option is None)
        faults = dict.fromkeys(range(count), reason) if reason else dict(row_faults(group.topic, group.rows, target))
        refusals += [RefusedRow(group.place(row), topic, text) for row, text in faults.items()]
        if faults:
            good = [row for row in range(count) if row not in faults]
            group = TopicRows(group.topic, group.rows.take(pa.array(good, pa.int64())), None)
        if group.rows.num_rows:
            groups.append(group)
    return groups, sorted(refusals)


def by_topic(batch: pa.RecordBatch, option: str | None) -> Iterator[tuple[str | None, TopicRows]]:
    """Yield the rows for each topic; the topic of rows without one is None."""
    names = [option] if option is not None else pc.unique(batch.column("topic")).to_pylist()
    for name in names:
        if len(names) == 1:
            yield name, TopicRows(name or "", batch)
        else:
            topics = batch.column("topic")
            mask: Any = pc.is_null(topics) if name is None else pc.fill_null(pc.equal(topics, pa.scalar(name)), False)
            yield name, TopicRows(name or "", batch.filter(mask), pc.indices_nonzero(mask))


def topic_fault(topic: str | None, target: TopicLimits, *, named_by_rows: bool) -> str | None:
    """Return the reason why no row can be written to the topic, or None.

    Errors that are independent of the rows are raised: no broker is available, the login fails, or the query's own
    topic is not authorized.
    """
    if topic is None:
        return "it has no topic; set column 'topic', or the option topic"
    if not LEGAL_TOPIC.fullmatch(topic):
        return f"{topic!r} is not a valid topic name: use letters, digits, dots, dashes and underscores, at most 249"
    try:
        target.partitions(topic)
    except (NoBrokersAvailableError, AuthenticationError):
        raise
    except OttlaError as error:
        if not named_by_rows and isinstance(error, KafkaError) and error.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            raise
        return str(error)
    return None


def row_faults(topic: str, rows: pa.RecordBatch, target: TopicLimits) -> Iterator[tuple[int, str]]:
    """Yield the rows that cannot be written to the topic, with reasons."""
    names = rows.schema.names
    yield from key_faults(topic, rows, target)
    if "partition" in names:
        yield from partition_faults(topic, rows.column("partition"), target.partitions(topic))
    if "timestamp" in names:
        yield from timestamp_faults(rows.column("timestamp"))
    if "headers" in names:
        yield from header_faults(rows.column("headers"))
    yield from size_faults(topic, rows, *target.limit(topic))


def key_faults(topic: str, rows: pa.RecordBatch, target: TopicLimits) -> Iterator[tuple[int, str]]:
    """Yield the rows without a key, if the topic is compacted."""
    has_keys = "key" in rows.schema.names
    if not rows.num_rows or (has_keys and not rows.column("key").null_count):
        return
    if target.has_required_keys(topic):
        missing = row_positions(rows.column("key").is_null()) if has_keys else range(rows.num_rows)
        for row in missing:
            yield row, f"it has no key, and {topic!r} is compacted, so records need a key; set one"


def partition_faults(topic: str, column: Any, count: int) -> Iterator[tuple[int, str]]:
    """Yield the rows with a partition that the topic does not have; null lets the key choose one."""
    for row in row_positions(pc.or_(pc.less(column, 0), pc.greater_equal(column, count))):
        yield (
            row,
            f"partition {column[row].as_py()} does not exist: {topic!r} has 0 to {count - 1}; correct it, or leave it null",
        )


def timestamp_faults(column: Any) -> Iterator[tuple[int, str]]:
    """Yield the rows with a timestamp before 1970, which Kafka does not support."""
    moments = column.cast(pa.timestamp("us")).cast(pa.int64())
    for row in row_positions(pc.less(moments, 0)):
        yield (
            row,
            f"its timestamp {column[row]} is before 1970, which Kafka does not support; correct it, or leave it null",
        )


def header_faults(column: Any) -> Iterator[tuple[int, str]]:
    """Yield the rows with a header without a key."""
    if not column.flatten().null_count and not column.flatten().field("key").null_count:
        return
    for row, headers in enumerate(column.to_pylist()):
        if any(header is None or header["key"] is None for header in headers or ()):
            yield row, "one of its headers has no key; set it, or leave the header out"


def size_faults(topic: str, rows: pa.RecordBatch, limit: int, setting: str) -> Iterator[tuple[int, str]]:
    """Yield the rows that exceed the limit of the producer or the topic."""
    if (
        "headers" not in rows.schema.names
        and RECORD_BYTES + largest_size(rows, "key") + largest_size(rows, "value") <= limit
    ):
        return
    sizes = sizes_of(rows)
    for row in row_positions(pc.greater(sizes, limit)):
        yield (
            row,
            f"it takes up to {sizes[row].as_py():,} bytes, more than {setting} = {limit:,} of {topic!r}; raise that",
        )


def largest_size(rows: pa.RecordBatch, name: str) -> int:
    """Return the most bytes of a row in a column; 0 if there is no such column."""
    return (name in rows.schema.names and pc.max(pc.binary_length(rows.column(name))).as_py()) or 0


def sizes_of(rows: pa.RecordBatch) -> Any:
    """Return an upper bound of each row's size as a record."""
    sizes: Any = pa.repeat(pa.scalar(RECORD_BYTES, pa.int64()), rows.num_rows)
    for name in ("key", "value"):
        if name in rows.schema.names:
            sizes = pc.add(sizes, pc.fill_null(pc.binary_length(rows.column(name)), 0).cast(pa.int64()))
    return pc.add(sizes, header_sizes(rows.column("headers"))) if "headers" in rows.schema.names else sizes


def header_sizes(column: Any) -> Any:
    """Return an upper bound of the size of each row's headers."""
    pairs = column.flatten()
    if not len(pairs):
        return pa.repeat(pa.scalar(0, pa.int64()), len(column))
    each: Any = pa.repeat(pa.scalar(HEADER_BYTES, pa.int64()), len(pairs))
    for name in ("key", "value"):
        each = pc.add(each, pc.fill_null(pc.binary_length(pairs.field(name)), 0).cast(pa.int64()))
    each = pc.cumulative_sum(each)
    ends: Any = pc.cumulative_sum(pc.fill_null(pc.list_value_length(column), 0).cast(pa.int64()))
    sums = pa.concat_arrays([pa.array([0], pa.int64()), each])
    begins = pc.subtract(ends, pc.fill_null(pc.list_value_length(column), 0).cast(pa.int64()))
    return pc.subtract(sums.take(ends), sums.take(begins))


def row_positions(mask: Any) -> list[int]:
    if not pc.any(mask).as_py():
        return []
    return [int(row) for row in pc.indices_nonzero(pc.fill_null(mask, False)).to_pylist()]
