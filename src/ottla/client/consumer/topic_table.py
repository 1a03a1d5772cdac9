"""Read whole topics into one Arrow table; for notebooks, tests and other bounded reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from ottla.client.consumer.consumer import Consumer
from ottla.errors import ErrorCode, KafkaError, KafkaTimeoutError
from ottla.model import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

    from ottla.client.config.typed_settings import ConsumerSettings
    from ottla.records.columns import Columns

T = TypeVar("T")

OURS: dict[str, Any] = {"isolation.level": "read_committed", "allow.auto.create.topics": False}
"""The default settings of a read."""


def read_table(
    topics: str | Iterable[str],
    config: Mapping[str, Any] | None = None,
    /,
    *,
    start: Mapping[TopicPartition, int] | None = None,
    end: Mapping[TopicPartition, int] | None = None,
    include_headers: bool = False,
    **keywords: Unpack[ConsumerSettings],
) -> pa.Table:
    """Return the current records of the topics as an Arrow table; `.to_pandas()` converts it to a data frame.

    `read_table("flights", bootstrap_servers="localhost:9092")`. The settings are those of a Consumer; by default only
    committed records are read, and no group is joined. `start` and `end` (exclusive) narrow partitions down. Rows of a
    partition keep their order; rows of several partitions are interleaved.
    """
    from ottla.records import arrow

    names = [topics] if isinstance(topics, str) else list(topics)
    settings = {name.replace("_", "."): value for name, value in [*(config or {}).items(), *keywords.items()]}
    with Consumer({**OURS, **settings, "auto.offset.reset": "none", "enable.auto.commit": False}) as consumer:
        tps = [TopicPartition(name, info.partition) for name in names for info in partitions_of(consumer, name)]
        starts = {**consumer.beginning_offsets(tps), **(start or {})}
        ends = {**consumer.end_offsets(tps), **(end or {})}
        chunks = list(
            find_spans(consumer, {tp: (starts[tp], ends[tp]) for tp in tps if starts[tp] < ends[tp]}, include_headers)
        )
    return arrow.to_table(chunks, with_headers=include_headers)


def partitions_of(consumer: Consumer[Any, Any], topic: str) -> list[Any]:
    """Return the partitions of a topic. Raises KafkaError if it does not exist."""
    found = consumer.partitions_for(topic)
    if not found:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic!r}")
    return found


def find_spans(
    consumer: Consumer[Any, Any], wanted: Mapping[TopicPartition, tuple[int, int]], with_headers: bool
) -> Iterable[tuple[TopicPartition, Columns]]:
    """Yield the rows of ranges of offsets, chunk by chunk. Raises KafkaTimeoutError if no more data arrives."""
    for chunks in poll_spans(consumer, wanted, lambda wait: consumer.poll_columns(wait, include_headers=with_headers)):
        yield from chunks


def poll_spans(
    consumer: Consumer[Any, Any], wanted: Mapping[TopicPartition, tuple[int, int]], poll: Callable[[float], T]
) -> Iterator[T]:
    """Yield the results of `poll`, which is given a timeout, until the ranges of offsets were read.

    Raises KafkaTimeoutError if no more data arrives within `default.api.timeout.ms`.
    """
    patience = consumer.config.default_api_timeout_ms / 1000
    consumer.assign(list(wanted))
    for tp, (start, _) in wanted.items():
        consumer.seek(tp, start)
    consumer.bound({tp: end for tp, (_, end) in wanted.items()})
    positions = {tp: start for tp, (start, _) in wanted.items()}
    while left := [tp for tp, (_, end) in wanted.items() if positions[tp] < end]:
        found = poll(patience)
        now = {tp: consumer.position(tp) for tp in left}
        if all(now[tp] == positions[tp] for tp in left):
            raise KafkaTimeoutError(
                f"no more records of {left[0]} received within {patience:g} s (default.api.timeout.ms)"
            )
        positions |= now
        yield found
