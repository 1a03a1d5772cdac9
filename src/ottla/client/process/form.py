"""The form in which a function receives records: single records, lists of them, or tables (`arrow_form`).

A form polls, calls the function, and returns the offsets that the polled records span.
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
from ottla.client.process.outgoing import Outgoing, to_outgoing
from ottla.client.process.settings import ProcessSettings
from ottla.model import OffsetAndMetadata, TopicPartition

log = logging.getLogger(__name__)

PLAIN = frozenset({bytes, Outgoing})
"""Types of results that are sent unchanged."""
Function = Callable[[Any], Any]
PartitionSpan = tuple[TopicPartition, int, OffsetAndMetadata]
"""A partition, the first offset that was read from it, and the next one to read."""
Spans = Iterator[PartitionSpan]
"""The spans of all partitions that were read."""


class ProcessForm(Protocol):
    """The interface that the loop uses."""

    def poll(self, timeout: float) -> Any:
        """Return the records read, or an awaitable of them; a false value if there are none."""
        ...

    def spans(self, polled: Any) -> Spans: ...

    def results(self, polled: Any) -> Calls[list[Any]]:
        """Return the results of the function and the dead letters, as `Outgoing` or plain bytes."""
        ...


class Records:
    """Call the function with each record."""

    def __init__(self, consumer: Any, function: Function, settings: ProcessSettings) -> None:
        self._consumer = consumer
        self._function = function
        self._settings = settings

    def poll(self, timeout: float) -> Any:
        return self._consumer.poll(timeout=timeout)

    def spans(self, polled: ConsumerRecords) -> Spans:
        """Use the slices of the result, without creating records."""
        for partition, next_offset in polled.next_offsets().items():
            yield partition, polled.first_offset(partition), next_offset

    def results(self, polled: ConsumerRecords) -> Calls[list[Any]]:
        """Return the results in the order of the records."""
        results: list[Any] = []
        function, append = self._function, results.append
        for record in polled:
            try:
                result = function(record)
                if type(result) is bytes or type(result) is Outgoing:
                    append(result)
                elif result is not None:
                    # Collect all results before any is added: if a generator raises midway, none of its results may be
                    # sent.
                    results += yield from collect_results(result)
            except Exception as error:
                results.append(make_dead_letter(record, error, self._settings))
        return results


class Batches(Records):
    """Call the function with all records of a poll. If it raises, call it with each half, and so on."""

    def results(self, polled: ConsumerRecords) -> Calls[list[Any]]:
        """Return the results in the order of the records."""
        records = list(polled)
        return (yield from process_in_halves(self._attempt, records, self._make_dead_letter, self._settings))

    def _attempt(self, records: Any) -> Calls[list[Any]]:
        return (yield from collect_results(self._function(records)))

    def _make_dead_letter(self, records: Any, error: Exception) -> Outgoing:
        return make_dead_letter(records[0], error, self._settings)


def process_in_halves(
    attempt: Callable[[Any], Calls[list[Any]]],
    part: Any,
    make_letter: Callable[[Any, Exception], Outgoing],
    settings: ProcessSettings,
) -> Calls[list[Any]]:
    """Return the results for a part.

    If it raises, process both halves, down to single records, which become dead letters.
    """
    try:
        return (yield from attempt(part))
    except Exception as error:
        if settings.dead_letter_topic is None:
            raise
        if len(part) == 1:
            return [make_letter(part, error)]
        log.info("batch failed and is retried in halves records=%d error=%s", len(part), error)
    half = len(part) // 2
    before = yield from process_in_halves(attempt, part[:half], make_letter, settings)
    after = yield from process_in_halves(attempt, part[half:], make_letter, settings)
    return [*before, *after]


def make_dead_letter(record: ConsumerRecord, error: Exception, settings: ProcessSettings) -> Outgoing:
    """Return the record as a dead letter. Raises the error if there is no dead letter topic."""
    if settings.dead_letter_topic is None:
        raise error
    log.warning("dead letter partition=%s-%d offset=%d error=%s", record.topic, record.partition, record.offset, error)
    return dead_letter(record, error, settings.dead_letter_topic, settings.name)


def collect_results(result: Any) -> Calls[list[Any]]:
    """Return all results of a call, awaiting coroutines and asynchronous generators."""
    result = yield from await_result(result)
    if isasyncgen(result):
        result = yield partial(collect_async, result)
    if type(result) is list and PLAIN.issuperset(map(type, result)):
        return result
    return list(to_outgoing(result))


def await_result(result: Any) -> Calls[Any]:
    """Await an awaitable; return other values unchanged."""
    if isawaitable(result):
        awaited: Call = partial(return_unchanged, result)
        result = yield awaited
    return result


def return_unchanged(result: Any) -> Any:
    """Return the awaitable, which the runner awaits."""
    return result


async def collect_async(results: AsyncIterator[Any]) -> list[Any]:
    """Return all results of an asynchronous generator."""
    return [each async for each in results]
