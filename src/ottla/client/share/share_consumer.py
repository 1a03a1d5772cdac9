"""The public blocking share consumer (KIP-932).

One thread uses it. Everything runs within its calls, except for the heartbeats of the membership. Only `wakeup` may be
called from another thread. Corresponds to Java's KafkaShareConsumer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, overload
from uuid import UUID

from ottla.client.consumer.consumer_face import PlainSetting
from ottla.client.consumer.records import ConsumerRecords
from ottla.client.consumer.typed_record import K, V
from ottla.client.interface.method_names import SHARE_CONSUMER, explain_names
from ottla.client.runtime.steps import Steps
from ottla.client.share.share_consumer_core import CommitResults
from ottla.client.share.share_consumer_face import ShareConsumerFace

if TYPE_CHECKING:
    from ottla.client.config.typed_settings import PlainShareConsumerSettings

T = TypeVar("T")


class ShareConsumer(ShareConsumerFace[K, V]):
    """Receive records as a member of a share group: a queue over topics, in which each record is acknowledged.

    Several members may receive records of the same partition. The broker locks the records for the member that receives
    them, and delivers them again if they are not acknowledged in time. Settings are given with Kafka's dotted names, as
    keywords, or both. Close it, or use it in a `with` statement.
    """

    @overload
    def __init__(
        self,
        config: Mapping[str, PlainSetting] | None = None,
        /,
        *,
        key_deserializer: Callable[[bytes], K] | None = None,
        value_deserializer: Callable[[bytes], V] | None = None,
        **settings: Unpack[PlainShareConsumerSettings],
    ) -> None: ...

    @overload
    def __init__(
        self: ShareConsumer[Any, Any],
        config: Mapping[str, Any],
        /,
        *,
        key_deserializer: Callable[[bytes], K] | None = None,
        value_deserializer: Callable[[bytes], V] | None = None,
        **settings: Unpack[PlainShareConsumerSettings],
    ) -> None: ...

    def __init__(self, config: Mapping[str, Any] | None = None, /, **keywords: Any) -> None:
        super().__init__(config, **keywords)

    def subscribe(self, topics: Iterable[str]) -> None:
        """Subscribe to these topics, which replace earlier ones. The next calls of `poll` join the group."""
        with self._core.open():
            if not self._subscribe(topics):
                self.unsubscribe()

    def unsubscribe(self) -> None:
        """Send the acknowledgements, release all other records, and leave the group."""
        self._run(self._core.unsubscribe())

    def poll(self, timeout: float = 1.0) -> ConsumerRecords[K, V]:
        """Return up to `max.poll.records` records: those acquired already, else the first that arrive within `timeout` seconds.

        After the timeout the result is empty.

        With implicit acknowledgement this accepts the records of the last `poll`. With explicit acknowledgement all of
        these must be acknowledged; otherwise IllegalStateError is raised. Renewed records are returned again, alone.
        `record.delivery_count` is the number of deliveries, this one included.
        """
        records = self._run(self._poll_steps(timeout))
        self._core.delivered.is_returned = True  # the last statement
        return records

    def acquire(self, timeout: float = 1.0, *, fetch: bool = True) -> ConsumerRecords[K, V]:
        """Return further records, although those of earlier calls may not be acknowledged. Needs explicit acknowledgement.

        For programs that process records concurrently, such as `ottla.Worker`: unlike `poll`, a renewed record stays
        held and is not returned again. Acknowledgements are sent. With `fetch=False` no more records are requested; the
        membership is kept, and those that were requested before are returned. `poll` must not be mixed with it.
        """
        records = self._run(self._acquire_steps(timeout, fetch))
        self._core.delivered.is_returned = True  # the last statement
        return records

    def commit(self, timeout: float | None = None) -> CommitResults:
        """Send the acknowledgements, and return the result of each partition: None, or its error.

        With implicit acknowledgement, the records of the last `poll` are accepted. Retriable errors are retried for up to
        `timeout` seconds, by default `default.api.timeout.ms`. The error InvalidRecordStateError means that a lock had
        expired: the record was or will be delivered again.
        """
        return self._run(self._core.calls.time_steps("commit-sync", self._core.commit(timeout)))

    def client_instance_id(self, timeout: float | None = None) -> UUID:
        """Return the id that brokers assigned to this client for pushing metrics (KIP-714), as `ottla.Consumer` does."""
        return self._run(self._core.client_instance_id(timeout))

    def close(self, timeout: float | None = None) -> None:
        """Send the acknowledgements, release all other records, leave the group and close all connections.

        This takes at most `timeout` seconds, by default 30, and less than one after Ctrl-C. Records without an
        acknowledgement are delivered again, also with implicit acknowledgement: call `commit` before to accept them. May
        be called again.
        """
        with self._core.guard:
            if not self._core.closed:
                self._core.open()
                self._core.client.run(self._core.close(timeout), wakeable=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self._core.guard.interrupted = True  # also if the interrupt came between two calls
        self.close()

    def _run(self, steps: Steps[T]) -> T:
        try:
            with self._core.open():
                return self._core.client.run(steps)
        except KeyboardInterrupt as interrupt:
            raise interrupt.with_traceback(None) from None  # hides internal frames from the traceback


explain_names(ShareConsumer, SHARE_CONSUMER)
