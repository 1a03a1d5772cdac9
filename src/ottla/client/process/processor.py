"""The public processor for blocking clients.

One thread runs it. Only `stop` may be called from another thread or a signal handler.
"""

from __future__ import annotations

from inspect import iscoroutinefunction
from typing import Any

from ottla.client.consumer import Consumer
from ottla.client.process.calls import perform_calls
from ottla.client.process.form import Function
from ottla.client.process.processor_face import ProcessorBase
from ottla.client.process.stop_signals import stop_on_signals
from ottla.client.process.thread_runner import ThreadRunner
from ottla.client.producer import Producer
from ottla.model import TopicPartition


def process(consumer: Consumer[Any, Any], producer: Producer, function: Function, **settings: Any) -> None:
    """Run a `Processor` with these arguments until SIGINT (Ctrl-C) or SIGTERM; the records in progress are committed first."""
    processor = Processor(consumer, producer, function, **settings)
    with stop_on_signals(processor.stop):
        processor.run()


class Processor(ProcessorBase):
    """Read `topics`, call `function` with each record, and send its results to the topic `to`.

    The function returns None, a value, an `Outgoing` (with a key, headers or another topic), or a list or generator of
    these. With `batches` it receives the list of records that one poll returned. With `arrow` it receives a pyarrow
    Table and returns tables with the column `value` and optionally `key` and `headers`.

    Processing is exactly once by transactions. The producer needs a `transactional.id` of its own; the consumer needs a
    `group.id`, `enable.auto.commit=false` and `isolation.level=read_committed`. With `exactly_once=False` each record
    is processed at least once, and no transactional.id is needed. A commit follows every `commit_interval_ms`. If the
    function takes longer than `transaction.timeout.ms`, the transaction is aborted and the producer is fenced.

    If the function raises, the loop ends with that exception, and the next run reads the records since the last commit
    again. With `dead_letter_topic` the record is sent to that topic instead, with headers that describe the error, in
    the same transaction. A batch or table that raises is split into halves until single failing records are found.

    With `retries`, a number or a `Backoff`, the function is called again before that. The other records of the poll and
    the commit wait meanwhile. With `concurrency` it is called with that many records at a time, in threads. Records with
    the same key in a partition stay in order, and so do all results.
    """

    CLIENTS = (Consumer, Producer)
    RUNNER = ThreadRunner

    def __init__(self, consumer: Consumer[Any, Any], producer: Producer, function: Function, **settings: Any) -> None:
        if iscoroutinefunction(function):
            raise TypeError(f"{function.__qualname__} is a coroutine function: only ottla.aio.process can await it")
        super().__init__(consumer, producer, function, **settings)

    def run(self) -> None:
        """Run until `stop`. Raises ProducerFencedError if another processor uses the same transactional.id."""
        self._consumer.subscribe(self.settings.topics, self)
        try:
            perform_calls(self._loop.run())
        except BaseException:
            perform_calls(self._loop.abort_after_error())
            raise
        finally:
            self._is_over = True
            if self._runner is not None:
                self._runner.close()

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        """Commit the processed records before another member reads these partitions."""
        perform_calls(self._loop.commit())

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        """Abort the records in progress: another member may already process these partitions."""
        perform_calls(self._loop.abort_lost_partitions(partitions))
