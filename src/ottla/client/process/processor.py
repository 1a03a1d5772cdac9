"""The processor whose clients block: what users call.

One thread runs it; only `stop` may come from another thread or a signal handler.
"""

from __future__ import annotations

from inspect import iscoroutinefunction
from typing import Any

from ottla.client.consumer import Consumer
from ottla.client.process.calls import perform
from ottla.client.process.form import Function
from ottla.client.process.processor_face import ProcessorFace
from ottla.client.process.stop_signals import stopped_by_signals
from ottla.client.producer import Producer
from ottla.model import TopicPartition


def process(consumer: Consumer[Any, Any], producer: Producer, function: Function, **settings: Any) -> None:
    """Run a `Processor` of these arguments until Ctrl-C or SIGTERM, which end it after what is under way."""
    processor = Processor(consumer, producer, function, **settings)
    with stopped_by_signals(processor.stop):
        processor.run()


class Processor(ProcessorFace):
    """Reads `topics`, calls `function` with each record, and sends what it returns to the topic `to`.

    The function returns None, a value, an `Outgoing` (for a key, headers, another topic), or a list or generator of
    them. With `batches` it is called with the list of records that one poll returned, with `arrow` with a pyarrow Table
    of them, and returns tables with columns `value`, `key` and `headers`, the latter two if there are any.

    Exactly once by transactions: the producer needs a `transactional.id` of its own, the consumer a `group.id`,
    `enable.auto.commit=false` and `isolation.level=read_committed`. With `exactly_once=False` each record is processed
    at least once, and no transactional.id is needed. A commit follows every `commit_interval_ms`. A function that takes
    longer than `transaction.timeout.ms` finds its transaction aborted, and its producer fenced.

    A record for which the function raises ends the loop with that exception, and what was read since the last commit is
    read again by the next. With `dead_letter_topic` it is sent there instead, with headers that say why, as part of the
    same transaction. A batch or table that raises is then tried again in halves, down to the single records to blame.
    """

    CLIENTS = (Consumer, Producer)

    def __init__(self, consumer: Consumer[Any, Any], producer: Producer, function: Function, **settings: Any) -> None:
        if iscoroutinefunction(function):
            raise TypeError(f"{function.__qualname__} is a coroutine function: only ottla.aio.process can await it")
        super().__init__(consumer, producer, function, **settings)

    def run(self) -> None:
        """Until `stop`. ProducerFencedError: another processor runs with the same transactional.id."""
        self._consumer.subscribe(self.settings.topics, self)
        try:
            perform(self._loop.run())
        except BaseException:
            perform(self._loop.give_up())
            raise
        finally:
            self._over = True

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        """All that was read of them has been processed: it counts before another member goes on."""
        perform(self._loop.finish())

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        """Another member may be at them already: what is under way is to come to nothing."""
        perform(self._loop.lose(partitions))
