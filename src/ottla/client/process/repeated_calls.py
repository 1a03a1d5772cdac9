"""Calls of a function that are retried, and made concurrently for records with different keys.

Records with the same key in the same partition are processed one after the other, and results keep the order of the
records. So the output is that of one call at a time. A retry delays the commit, and with it all records of the poll: the
processor's settings bound the delays by `transaction.timeout.ms` and `max.poll.interval.ms`.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any, Protocol

from ottla.client.consumer.record import ConsumerRecord
from ottla.client.consumer.records import ConsumerRecords
from ottla.client.process.calls import Calls
from ottla.client.process.form import Function, Records, collect_results, make_dead_letter
from ottla.client.process.retry_warnings import RetryWarnings
from ottla.client.process.settings import ProcessSettings

log = logging.getLogger(__name__)


class UnfinishedError(Exception):
    """The processor stops while a record waits for its next attempt. Nothing of its poll is committed."""


class CallRunner(Protocol):
    """Makes the calls of several tasks: in threads, or in tasks of an event loop."""

    def pause(self, seconds: float) -> Any:
        """Wait, and return True; return False as soon as the processor stops. The result may be an awaitable."""
        ...

    def run_all(self, tasks: Sequence[Calls[None]]) -> Any:
        """Perform all tasks, some of them at a time. The result may be an awaitable."""
        ...


class RepeatedRecords(Records):
    """Call the function with each record, again after failures, and with several records at a time."""

    def __init__(self, consumer: Any, function: Function, settings: ProcessSettings, runner: CallRunner) -> None:
        super().__init__(consumer, function, settings)
        self._runner = runner
        self._retry_warnings = RetryWarnings()

    def results(self, polled: ConsumerRecords) -> Calls[list[Any]]:
        """Return the results in the order of the records."""
        records = list(polled)
        outcomes: list[list[Any] | Exception] = [[] for _ in records]
        tasks = [self._process_chain(records, chain, outcomes) for chain in self._chains(records)]
        if len(tasks) == 1:
            yield from tasks[0]
        else:
            yield partial(self._runner.run_all, tasks)
        failures = [each for each in outcomes if isinstance(each, Exception)]
        for failure in sorted(failures, key=lambda each: isinstance(each, UnfinishedError)):
            raise failure
        return [result for outcome in outcomes if not isinstance(outcome, Exception) for result in outcome]

    def _chains(self, records: Sequence[ConsumerRecord]) -> list[list[int]]:
        """Return the positions of the records that have to be processed one after the other."""
        if self._settings.concurrency == 1:
            return [list(range(len(records)))]
        chains: dict[Hashable, list[int]] = {}
        for position, record in enumerate(records):
            key = record.raw_key
            chain = position if key is None else (record.topic, record.partition, bytes(key))
            chains.setdefault(chain, []).append(position)
        return list(chains.values())

    def _process_chain(
        self, records: Sequence[ConsumerRecord], chain: Sequence[int], outcomes: list[list[Any] | Exception]
    ) -> Calls[None]:
        for position in chain:
            outcome = outcomes[position] = yield from self._attempt(records[position])
            if isinstance(outcome, Exception):
                return

    def _attempt(self, record: ConsumerRecord) -> Calls[list[Any] | Exception]:
        """Return the results for a record, its dead letter, or the exception that ends the processor."""
        backoff = self._settings.retries
        attempts = 0
        while True:
            try:
                return (yield from collect_results(self._function(record)))
            except Exception as error:
                attempts += 1
                failure = error
            if not backoff.should_retry(attempts, failure):
                try:
                    return [make_dead_letter(record, failure, self._settings)]
                except Exception as raised:
                    return raised
            delay = backoff.delay(attempts, random.random())
            log.log(
                self._retry_warnings.level(time.monotonic()),
                "call failed and is retried partition=%s-%d offset=%d attempts=%d delay=%.3f s error=%s",
                record.topic, record.partition, record.offset, attempts, delay, failure,
            )  # fmt: skip
            if not (yield partial(self._runner.pause, delay)):
                return UnfinishedError()
