"""The form in which a function is given what was read: single records, lists of them, or tables (`arrow_form`).

A form polls, calls the function, and knows how far what was polled reaches.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from inspect import isasyncgen, isawaitable
from typing import Any, Protocol

from ottla.client.consumer.record import ConsumerRecord
from ottla.client.consumer.records import ConsumerRecords
from ottla.client.process.calls import Call, Calls
from ottla.client.process.dead_letters import dead_letter
from ottla.client.process.outgoing import Outgoing, outgoing
from ottla.client.process.settings import ProcessSettings
from ottla.model import OffsetAndMetadata, TopicPartition

log = logging.getLogger(__name__)

PLAIN = frozenset({bytes, Outgoing})
"""Types of results that are sent as they are."""
Function = Callable[[Any], Any]
Reached = tuple[TopicPartition, int, OffsetAndMetadata]
"""A partition, the first offset that was read of it and the one to read on from."""
Reach = Iterator[Reached]
"""The spans of all partitions that were read."""


class Form(Protocol):
    """What the loop needs of it."""

    def poll(self, timeout: float) -> Any:
        """What was read, or what is to be awaited for it; false when it is nothing."""
        ...

    def reach(self, polled: Any) -> Reach: ...

    def results(self, polled: Any) -> Calls[list[Any]]:
        """What the function made of it, dead letters among it: `Outgoing` and, for short, plain bytes."""
        ...


class Records:
    """The function is called with each record."""

    def __init__(self, consumer: Any, function: Function, settings: ProcessSettings) -> None:
        self._consumer = consumer
        self._function = function
        self._settings = settings

    def poll(self, timeout: float) -> Any:
        return self._consumer.poll(timeout=timeout)

    def reach(self, polled: ConsumerRecords) -> Reach:
        """By the slices, not by the records."""
        for partition, following in polled.next_offsets().items():
            yield partition, polled.first_offset(partition), following

    def results(self, polled: ConsumerRecords) -> Calls[list[Any]]:
        """In the order of the records."""
        made: list[Any] = []
        function, keep = self._function, made.append
        for record in polled:
            try:
                result = function(record)
                if type(result) is bytes or type(result) is Outgoing:
                    keep(result)
                elif result is not None:
                    # All of it before any of it counts: a generator that raises midway must not leave a half.
                    made += yield from gathered(result)
            except Exception as error:
                made.append(buried(record, error, self._settings))
        return made


class Batches(Records):
    """The function is called with all records of a poll; of those that it cannot process the half, and so on."""

    def results(self, polled: ConsumerRecords) -> Calls[list[Any]]:
        """In the order of the records."""
        records = list(polled)
        return (yield from sifted(self._attempt, records, self._bury, self._settings))

    def _attempt(self, records: Any) -> Calls[list[Any]]:
        return (yield from gathered(self._function(records)))

    def _bury(self, records: Any, error: Exception) -> Outgoing:
        return buried(records[0], error, self._settings)


def sifted(
    attempt: Callable[[Any], Calls[list[Any]]],
    part: Any,
    bury: Callable[[Any, Exception], Outgoing],
    settings: ProcessSettings,
) -> Calls[list[Any]]:
    """What came of the part; where it raises, what came of its halves, until single records are left that raise."""
    try:
        return (yield from attempt(part))
    except Exception as error:
        if settings.dead_letter_topic is None:
            raise
        if len(part) == 1:
            return [bury(part, error)]
        log.info("a batch of %d failed, and is tried in halves: %s", len(part), error)
    half = len(part) // 2
    before = yield from sifted(attempt, part[:half], bury, settings)
    after = yield from sifted(attempt, part[half:], bury, settings)
    return [*before, *after]


def buried(record: ConsumerRecord, error: Exception, settings: ProcessSettings) -> Outgoing:
    """The record as a dead letter; raises the error again where there is no place for it."""
    if settings.dead_letter_topic is None:
        raise error
    log.warning("%s-%d offset %d is a dead letter: %s", record.topic, record.partition, record.offset, error)
    return dead_letter(record, error, settings.dead_letter_topic, settings.name)


def gathered(result: Any) -> Calls[list[Any]]:
    """All that a function returned, awaited where that is the way."""
    result = yield from settled(result)
    if isasyncgen(result):
        result = yield partial(all_of, result)
    if type(result) is list and PLAIN.issuperset(map(type, result)):
        return result
    return list(outgoing(result))


def settled(result: Any) -> Calls[Any]:
    """What a coroutine comes to; anything else as it is."""
    if isawaitable(result):
        awaited: Call = partial(same, result)
        result = yield awaited
    return result


def same(result: Any) -> Any:
    return result


async def all_of(results: AsyncIterator[Any]) -> list[Any]:
    """Everything that an asynchronous generator yields."""
    return [each async for each in results]
