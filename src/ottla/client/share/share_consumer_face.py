"""The common part of the blocking and the asyncio share consumer. Nothing here waits for the network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, overload

from ottla.client.consumer.leave_on_exit import LeaveOnExit
from ottla.client.consumer.record import ConsumerRecord as PlainRecord
from ottla.client.consumer.records import ConsumerRecords, RecordSlice
from ottla.client.consumer.typed_record import ConsumerRecord, K, V
from ottla.client.interface.arguments import (
    checked_flag,
    checked_function,
    checked_partition,
    checked_subscription,
    checked_whole,
)
from ottla.client.interface.identity import describe_client
from ottla.client.runtime.steps import Steps
from ottla.client.share.share_consumer_core import CommitCallback, ShareConsumerCore
from ottla.client.share.state.acknowledgements import AcknowledgeType
from ottla.model import TopicPartition

if TYPE_CHECKING:
    from ottla.client.metrics.client_metrics import ClientMetrics

ACCEPT = AcknowledgeType.ACCEPT


class ShareConsumerFace(Generic[K, V]):
    """Acknowledgements, callbacks and metrics."""

    def __init__(self, config: Mapping[str, Any] | None = None, /, **keywords: Any) -> None:
        self._core = ShareConsumerCore(config, keywords)
        self.config = self._core.config
        self.client_id = self._core.client_id
        self._core.on_closed = LeaveOnExit(self, self._core).detach
        if self.config.enable_metrics_push:
            self._core.client.client.telemetry.enable(partial(metrics_of, self._core), self._core.labels)

    def __repr__(self) -> str:
        core = self._core
        facts = (f"group_id={self.config.group_id!r}", f"{core.delivered.held_count} records held")
        return describe_client(self, core.closed, *facts)

    def subscription(self) -> set[str]:
        """Return the subscribed topics."""
        return set(self._core.topics)

    @overload
    def acknowledge(self, record: ConsumerRecord[K, V], type: AcknowledgeType = ACCEPT, /) -> None: ...

    @overload
    def acknowledge(self, topic: str, partition: int, offset: int, type: AcknowledgeType = ACCEPT, /) -> None: ...

    def acknowledge(self, record: Any, *arguments: Any) -> None:
        """Acknowledge a record that a `poll` returned, with `share.acknowledgement.mode=explicit`.

        `acknowledge(topic, partition, offset, type)` also acknowledges a record that could not be deserialized or is
        damaged. The acknowledgement is sent by the next `poll`, `commit` or `commit_async`; until then another call
        replaces it. Raises IllegalStateError if this consumer does not hold the record.
        """
        with self._core.open():
            if isinstance(record, PlainRecord):
                tp, offset = TopicPartition(record.topic, record.partition), record.offset
            else:
                if len(arguments) < 2:
                    raise TypeError(
                        "acknowledge() takes a record and a type, or a topic, a partition, an offset and a type"
                    )
                tp = checked_partition(TopicPartition(record, arguments[0]))
                offset = checked_whole("offset", arguments[1], "the offset of a record")
                arguments = arguments[2:]
            if len(arguments) > 1:
                raise TypeError(
                    "acknowledge() takes a record and a type, or a topic, a partition, an offset and a type"
                )
            self._core.acknowledge(tp, offset, checked_type(*arguments))

    def commit_async(self) -> None:
        """Send the acknowledgements without waiting.

        With implicit acknowledgement, the records of the last `poll` are accepted.

        Later calls of this consumer handle the results and call the acknowledgement commit callback.
        """
        with self._core.open():
            self._core.commit_async()

    def set_acknowledgement_commit_callback(self, callback: CommitCallback | None) -> None:
        """Set the function that is called with the result of each acknowledgement; None removes it.

        `callback(offsets, error)` gets the offsets of one partition, `{TopicPartition: {offset, …}}`, and the error, None
        on success. `poll`, `commit`, `commit_async` and `close` call it. An exception of the callback is raised by them.
        The callback must not call methods of the consumer, `wakeup` excepted.
        """
        with self._core.open():
            self._core.callback = checked_function("callback", callback, "(offsets, error)")

    def acquisition_lock_timeout_ms(self) -> int | None:
        """Return the time in milliseconds after which a record that is not acknowledged is delivered again.

        None before the first response of a broker.
        """
        return self._core.fetcher.lock_timeout_ms

    def metrics(self) -> ClientMetrics:
        """Return the metrics of this client, with the names of the Java clients.

        May be called at any time from any thread.
        """
        return metrics_of(self._core)

    def wakeup(self) -> None:
        """Make the running or the next waiting call raise WakeupError. May be called from any thread."""
        self._core.client.wakeup()

    def _subscribe(self, topics: Iterable[str]) -> bool:
        """Subscribe to these topics. Return False if there are none."""
        names = checked_subscription(topics)
        if names:
            self._core.subscribe(names)
        return bool(names)

    def _poll_steps(self, timeout: float) -> Steps[ConsumerRecords[K, V]]:
        slices: list[RecordSlice] = yield from self._core.poll(timeout)
        return ConsumerRecords(slices)

    def _acquire_steps(self, timeout: float, fetches: bool) -> Steps[ConsumerRecords[K, V]]:
        slices: list[RecordSlice] = yield from self._core.acquire(timeout, fetches=checked_flag("fetch", fetches))
        return ConsumerRecords(slices)


def checked_type(type_: Any = ACCEPT) -> AcknowledgeType:
    """Return an acknowledgement type. Raises TypeError for anything else."""
    if not isinstance(type_, AcknowledgeType):
        raise TypeError(f"type = {type_!r}: must be an AcknowledgeType, such as AcknowledgeType.RELEASE")
    return type_


def metrics_of(core: ShareConsumerCore, *_: object) -> ClientMetrics:
    """Return the metrics of a share consumer.

    Holds no reference to the consumer object, so that it can be garbage collected.
    """
    return core.take_metrics()
