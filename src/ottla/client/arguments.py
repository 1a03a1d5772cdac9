"""What callers of the clients hand over, checked where it comes in.

A name or number that cannot be sent must fail the call it came with, not the requests of everybody else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ottla.errors import ErrorCode, InvalidTopicError
from ottla.model import OffsetAndMetadata, TopicPartition

LONGEST_TEXT_BYTES = 2**15 - 1
"""What the protocol has room for; which shorter names are legal the broker knows."""
LAST_OFFSET = 2**63 - 1
PATTERN_SIGNS = frozenset("^$*+?()[]{}|\\")
"""No topic's name has any of these, and a regular expression has."""
COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestamp_type", "headers")
"""What a table of records can have."""
LAST_PARTITION = 2**31 - 1


def checked_topic(topic: Any) -> str:
    """A name that can be sent: TypeError where it is no text, InvalidTopicError where it has no bytes."""
    if not isinstance(topic, str):
        raise TypeError(f"topic = {topic!r}: must be text, such as 'flights'")
    try:
        size = len(topic.encode())
    except UnicodeEncodeError:
        raise InvalidTopicError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"topic {topic!r} is not valid Unicode") from None
    if size > LONGEST_TEXT_BYTES:
        raise InvalidTopicError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"a topic's name of {size} bytes is too long")
    return topic


def checked_topics(topics: Iterable[Any]) -> list[str]:
    """Several names; one alone is a mistake, for its letters would be names too."""
    if isinstance(topics, str | bytes):
        raise TypeError(f"{topics!r} is one name: hand over a list, such as [{topics!r}]")
    return [checked_topic(topic) for topic in topics]


def checked_subscription(topics: Iterable[Any]) -> list[str]:
    """Names to subscribe to; one that can only be meant as a pattern is a mistake, for it would match nothing."""
    names = checked_topics(topics)
    for name in names:
        if PATTERN_SIGNS.intersection(name):
            raise ValueError(
                f"{name!r} is no topic's name; for all topics that match it subscribe(re.compile({name.lstrip('^')!r}))"
            )
    return names


def checked_partition(partition: Any) -> TopicPartition:
    """A topic and a partition's number, in a TopicPartition or another pair."""
    if isinstance(partition, str | bytes) or not isinstance(partition, Sequence) or len(partition) != 2:
        raise TypeError(f"{partition!r} is no partition: write TopicPartition('flights', 0)")
    topic, number = partition
    return TopicPartition(checked_topic(topic), checked_number(number))


def checked_partitions(partitions: Iterable[Any]) -> list[TopicPartition]:
    """Several partitions; one alone is a mistake."""
    if isinstance(partitions, TopicPartition):
        raise TypeError(f"{partitions!r} is one partition: hand over a list, such as [{partitions!r}]")
    if isinstance(partitions, str | bytes):
        raise TypeError(f"{partitions!r} is no list of partitions: write [TopicPartition({partitions!r}, 0)]")
    return [checked_partition(partition) for partition in partitions]


def checked_number(partition: Any) -> int:
    """The number of a partition."""
    return checked_whole("partition", partition, "the number of a partition", LAST_PARTITION)


def checked_whole(what: str, number: Any, meaning: str, last: int = LAST_OFFSET) -> int:
    """A number from 0 to `last`, which the protocol has room for; `meaning` says what it is."""
    try:
        whole = None if isinstance(number, bool) else number.__index__()
    except (AttributeError, TypeError):
        whole = None
    if whole is None:
        raise TypeError(f"{what} = {number!r}: must be {meaning}, a whole number")
    if not 0 <= whole <= last:
        raise ValueError(f"{what} = {number!r}: must be {meaning}, from 0 to {last}")
    return int(whole)


def checked_timeout(timeout: Any) -> float:
    """Seconds, as a number that is not negative."""
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise TypeError(
            f"timeout = {timeout!r}: must be seconds, such as poll(1.0); to wait for long, give a large number"
        )
    if not timeout >= 0:
        raise ValueError(f"timeout = {timeout!r}: must not be negative")
    return float(timeout)


def checked_pattern(pattern: re.Pattern[Any]) -> re.Pattern[str]:
    """A pattern of text: topics are not bytes."""
    if not isinstance(pattern.pattern, str):
        raise TypeError(f"{pattern!r} matches bytes: compile a text, such as re.compile('flights-.*')")
    return pattern


def checked_broker_pattern(pattern: Any) -> str:
    """A regular expression for the broker, which is the one to judge it."""
    if not isinstance(pattern, str):
        raise TypeError(f"{pattern!r}: a SubscriptionPattern is of text, such as SubscriptionPattern('flights-.*')")
    if not pattern:
        raise ValueError("a SubscriptionPattern is empty: write one, such as SubscriptionPattern('flights-.*')")
    return pattern


def chosen_columns(columns: Sequence[str] | None, include_headers: bool) -> tuple[str, ...] | None:
    """The columns of a table that are wanted, each once; None for all but the headers, or all and the headers."""
    if columns is None:
        return None
    if isinstance(columns, str | bytes):
        raise TypeError(f"columns = {columns!r} is one name: hand over a list, such as [{columns!r}]")
    chosen = tuple(columns)
    unknown = [name for name in chosen if name not in COLUMNS]
    if unknown:
        raise ValueError(f"columns: there is no {unknown[0]!r}; there are {', '.join(COLUMNS)}")
    if not chosen or len(set(chosen)) < len(chosen):
        raise ValueError(f"columns = {list(chosen)!r}: name at least one, and none twice")
    return (*chosen, "headers") if include_headers and "headers" not in chosen else chosen


def checked_offsets(offsets: Any) -> dict[TopicPartition, OffsetAndMetadata]:
    """Offsets to commit, by partition: numbers, or numbers with metadata."""
    if not isinstance(offsets, Mapping):
        raise TypeError(f"offsets = {offsets!r}: must be a dict, such as {{TopicPartition('flights', 0): 42}}")
    return {checked_partition(tp): checked_offset(tp, offset) for tp, offset in offsets.items()}


def checked_offset(tp: Any, offset: Any) -> OffsetAndMetadata:
    """One of them."""
    told = offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(offset)
    whole = checked_whole(f"the offset of {tp}", told.offset, "the next offset to read")
    if not isinstance(told.metadata, str):
        raise TypeError(f"the metadata of {tp} = {told.metadata!r}: must be text")
    return OffsetAndMetadata(whole, told.metadata, told.leader_epoch)
