"""What callers of the clients hand over, checked where it comes in.

A name or number that cannot be sent must fail the call it came with, not the requests of everybody else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ottla.errors import ErrorCode, InvalidTopicError
from ottla.model import TopicPartition

LONGEST_TEXT_BYTES = 2**15 - 1
"""What the protocol has room for; which shorter names are legal the broker knows."""
LAST_OFFSET = 2**63 - 1
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
