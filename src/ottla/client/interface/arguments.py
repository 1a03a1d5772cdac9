"""Checks of arguments, in the public methods.

A name or number that cannot be sent must fail its own call, not a request that it shares with other calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ottla.errors import ErrorCode, InvalidTopicError
from ottla.model import OffsetAndMetadata, TopicPartition

LONGEST_TEXT_BYTES = 2**15 - 1
"""The longest name that fits in the protocol; the broker checks the rest."""
LAST_OFFSET = 2**63 - 1
PATTERN_SIGNS = frozenset("^$*+?()[]{}|\\")
"""No topic's name has any of these, and a regular expression has."""
COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestamp_type", "headers")
"""The columns that a table of records may have."""
LAST_PARTITION = 2**31 - 1
LONGEST_TIMEOUT = 9e9
"""Seconds, some 285 years: the most that Python's locks can be asked to wait."""
QUOTED = 100
"""Characters of a name that an error repeats."""


def checked_topic(topic: Any) -> str:
    """Return the name. TypeError if it is not a string, InvalidTopicError if it cannot be encoded."""
    if not isinstance(topic, str):
        raise TypeError(f"topic = {topic!r}: must be text, such as 'flights'")
    fault = find_name_fault(topic)
    if fault is not None:
        raise InvalidTopicError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"topic {shorten_text(topic)}: a topic's name {fault}"
        )
    return topic


def find_name_fault(text: str) -> str | None:
    """Return the reason why a text cannot be sent as a name."""
    if not text:
        return "must not be empty"
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return "must be Unicode, and this is not valid Unicode"
    return None if size <= LONGEST_TEXT_BYTES else f"of {size} bytes is too long"


def shorten_text(text: str) -> str:
    """Return the repr, shortened if it is long."""
    return repr(text) if len(text) <= QUOTED else f"{text[:QUOTED]!r}…"


def checked_text(what: str, text: Any, example: str) -> str:
    """Return a name of something else than a topic."""
    if not isinstance(text, str):
        raise TypeError(f"{what} = {text!r}: must be text, such as {example!r}")
    fault = find_name_fault(text)
    if fault is not None and text:  # what an empty one means the broker says
        raise ValueError(f"{what} = {shorten_text(text)}: a name {fault}")
    return text


def checked_texts(what: str, texts: Any, example: str) -> list[str]:
    """Several of them; one alone is a mistake, for its letters would be names too."""
    return [checked_text(what, text, example) for text in checked_list(what, texts, f"[{example!r}]")]


def checked_list(what: str, items: Any, example: str) -> list[Any]:
    """Check for an iterable that is not a text; `example` is shown in the error."""
    if isinstance(items, str | bytes):
        raise TypeError(f"{what} = {items!r} is one name: hand over a list, such as [{items!r}]")
    if not isinstance(items, Iterable):
        raise TypeError(f"{what} = {items!r}: must be a list, such as {example}")
    return list(items)


def checked_dict(what: str, items: Any, example: str) -> Mapping[Any, Any]:
    """Return a mapping; `example` is how to write it."""
    if not isinstance(items, Mapping):
        raise TypeError(f"{what} = {items!r}: must be a dict, such as {example}")
    return items


def checked_flag(what: str, flag: Any) -> bool:
    """Return a bool. Any other type raises TypeError, because a text such as "no" would count as True."""
    if not isinstance(flag, bool):
        raise TypeError(f"{what} = {flag!r}: must be True or False")
    return flag


def checked_function(what: str, function: Any, takes: str) -> Any:
    """Check for a callable or None, before a later call would fail with an error that is lost."""
    if function is not None and not callable(function):
        raise TypeError(f"{what} = {function!r}: must be a function of {takes}")
    return function


def checked_topics(topics: Iterable[Any]) -> list[str]:
    """Several names; one alone is a mistake, for its letters would be names too."""
    return [checked_topic(topic) for topic in checked_list("topics", topics, "['flights']")]


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
    """Return a topic and a partition's number, in a TopicPartition or another pair."""
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
    if not isinstance(partitions, Iterable):
        raise TypeError(f"partitions = {partitions!r}: must be a list, such as [TopicPartition('flights', 0)]")
    return [checked_partition(partition) for partition in partitions]


def checked_number(partition: Any) -> int:
    """Return the number of a partition."""
    return checked_whole("partition", partition, "the number of a partition", LAST_PARTITION)


def checked_broker(broker_id: Any) -> int:
    """Return the number of a broker."""
    return checked_whole("broker_id", broker_id, "the number of a broker", LAST_PARTITION)


def checked_whole(what: str, number: Any, meaning: str, last: int = LAST_OFFSET, first: int = 0) -> int:
    """Return a number from `first` to `last`, which the protocol has room for; `meaning` says what it is."""
    try:
        whole = None if isinstance(number, bool) else number.__index__()
    except (AttributeError, TypeError):
        whole = None
    if whole is None:
        raise TypeError(f"{what} = {number!r}: must be {meaning}, a whole number")
    if not first <= whole <= last:
        raise ValueError(f"{what} = {number!r}: must be {meaning}, from {first} to {last}")
    return int(whole)


def checked_timeout(timeout: Any) -> float:
    """Seconds, as a number that is not negative."""
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise TypeError(f"timeout = {timeout!r}: must be seconds, such as 1.0; to wait for long, give a large number")
    if not timeout >= 0:
        raise ValueError(f"timeout = {timeout!r}: must be a number of seconds, and not be negative")
    return min(float(timeout), LONGEST_TIMEOUT)


def maybe_timeout(timeout: Any) -> float | None:
    """Return the same where None has a meaning of its own."""
    return None if timeout is None else checked_timeout(timeout)


def checked_pattern(pattern: re.Pattern[Any]) -> re.Pattern[str]:
    """Return a pattern of text: topics are not bytes."""
    if not isinstance(pattern.pattern, str):
        raise TypeError(f"{pattern!r} matches bytes: compile a text, such as re.compile('flights-.*')")
    return pattern


def checked_broker_pattern(pattern: Any) -> str:
    """Return a regular expression for the broker, which is the one to judge it."""
    if not isinstance(pattern, str):
        raise TypeError(f"{pattern!r}: a SubscriptionPattern is of text, such as SubscriptionPattern('flights-.*')")
    if not pattern:
        raise ValueError("a SubscriptionPattern is empty: write one, such as SubscriptionPattern('flights-.*')")
    return pattern


def checked_columns(columns: Sequence[str] | None, include_headers: bool) -> tuple[str, ...] | None:
    """Return the columns of a table that are wanted, each once; None for all but the headers, or all and the headers."""
    if columns is None:
        return None
    chosen = tuple(checked_list("columns", columns, "['value']"))
    unknown = [name for name in chosen if name not in COLUMNS]
    if unknown:
        raise ValueError(f"columns: there is no {unknown[0]!r}; there are {', '.join(COLUMNS)}")
    if not chosen or len(set(chosen)) < len(chosen):
        raise ValueError(f"columns = {list(chosen)!r}: name at least one, and none twice")
    return (*chosen, "headers") if include_headers and "headers" not in chosen else chosen


def checked_offsets(offsets: Any) -> dict[TopicPartition, OffsetAndMetadata]:
    """Offsets to commit, by partition: numbers, or numbers with metadata."""
    given = checked_dict("offsets", offsets, "{TopicPartition('flights', 0): 42}")
    return {checked_partition(tp): checked_offset(tp, offset) for tp, offset in given.items()}


def checked_offset(tp: Any, offset: Any) -> OffsetAndMetadata:
    checked = offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(offset)
    whole = checked_whole(f"the offset of {tp}", checked.offset, "the next offset to read")
    if not isinstance(checked.metadata, str):
        raise TypeError(f"the metadata of {tp} = {checked.metadata!r}: must be text")
    epoch = checked_whole(
        f"the leader epoch of {tp}", checked.leader_epoch, "a number, -1 for none", LAST_PARTITION, -1
    )
    return OffsetAndMetadata(whole, checked.metadata, epoch)
