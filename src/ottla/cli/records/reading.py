"""The start and end positions of reading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from ottla.cli.options import usage_error

if TYPE_CHECKING:
    from ottla.client.consumer import Consumer
    from ottla.model import TopicPartition


class StartPosition(NamedTuple):
    """The start position of each partition: at most one of these; without any, the present end."""

    from_beginning: bool = False
    offset: int | None = None
    tail: int | None = None
    """The number of offsets before the end of each partition."""
    from_ms: int | None = None
    """The first record at or after this time."""

    def check(self, offset: str | None = None) -> StartPosition:
        """Return the position, or that of `--offset`; raise a usage error if more than one is given."""
        given = [self.from_beginning, offset is not None, self.tail is not None, self.from_ms is not None]
        if sum(given) > 1:
            raise usage_error("--from-beginning, --offset, --tail and --from-time exclude each other")
        return self if offset is None else parse_offset(offset)

    @property
    def is_given(self) -> bool:
        return self != StartPosition()


def parse_offset(text: str) -> StartPosition:
    """Return the position for a value of `--offset`, in the syntax of kcat and rpk."""
    if text in ("beginning", "start"):
        return StartPosition(from_beginning=True)
    if text == "end":
        return StartPosition(tail=0)
    if text.isdecimal():
        return StartPosition(offset=int(text))
    if text.startswith("-") and text[1:].isdecimal():
        return StartPosition(tail=int(text[1:]))
    raise usage_error(
        f"invalid value {text!r} for --offset: expected an offset of --partition, beginning, end, or -N for the last N"
    )


def partitions_of(consumer: Consumer, topic: str, partition: int | None, bootstrap: str) -> list[TopicPartition]:
    """Return the partitions to read; raise ClickException for unknown topics and partitions."""
    from ottla.model import TopicPartition

    known = sorted(info.partition for info in consumer.partitions_for(topic))
    if not known:
        raise click.ClickException(
            f"topic {topic!r} does not exist at {bootstrap}; create it with: ottla topics create {topic}"
        )
    if partition is None:
        return [TopicPartition(topic, p) for p in known]
    if partition not in known:
        raise click.ClickException(f"topic {topic!r} has no partition {partition}, only 0 to {known[-1]}")
    return [TopicPartition(topic, partition)]


def seek_to_start(consumer: Consumer, chosen: Sequence[TopicPartition], where: StartPosition) -> None:
    """Move the consumer to its start position."""
    if where.offset is not None:
        check_offset(consumer, chosen[0], where.offset)
        consumer.seek(chosen[0], where.offset)
    elif where.from_beginning:
        consumer.seek_to_beginning()
    elif where.tail is not None or where.from_ms is not None:
        for partition, offset in offsets_of(consumer, chosen, where).items():
            consumer.seek(partition, offset)


def offsets_of(consumer: Consumer, chosen: Sequence[TopicPartition], where: StartPosition) -> dict[TopicPartition, int]:
    """Return the offsets of `--tail` or `--from-time`."""
    ends = consumer.end_offsets(chosen)
    if where.tail is not None:
        first = consumer.beginning_offsets(chosen)
        return {tp: max(first[tp], ends[tp] - where.tail) for tp in chosen}
    found = consumer.offsets_for_times(dict.fromkeys(chosen, where.from_ms or 0))
    return {tp: at.offset if (at := found.get(tp)) is not None and at.offset >= 0 else ends[tp] for tp in chosen}


def check_offset(consumer: Consumer, partition: TopicPartition, offset: int) -> None:
    """Reject an offset that does not exist; the consumer would apply `auto.offset.reset` and might wait."""
    (first,), (end,) = (found([partition]).values() for found in (consumer.beginning_offsets, consumer.end_offsets))
    if not first <= offset <= end:
        raise click.ClickException(f"{partition} has no offset {offset}, only {first} to {end}")


class PartitionEnds:
    """The end offsets of partitions at the start; later records are not read."""

    def __init__(self, consumer: Consumer, chosen: Sequence[TopicPartition]) -> None:
        self._consumer = consumer
        self._ends = consumer.end_offsets(chosen)
        consumer.bound(dict(self._ends))
        self.reached = False

    def is_reached(self) -> bool:
        """Return true if all records that existed at the start were read."""
        self._ends = {tp: end for tp, end in self._ends.items() if self._consumer.position(tp) < end}
        self.reached = not self._ends
        return self.reached
