"""What both faces of a producer have, the one whose calls block and the one whose calls are awaited."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.client.interface.identity import describe_client
from ottla.client.producer.future import RecordFuture
from ottla.client.producer.open_transaction import OpenTransaction
from ottla.client.producer.produce_request_result import OnDelivery
from ottla.client.producer.producer_core import ProducerCore
from ottla.client.producer.record_accumulator import CLOSED
from ottla.client.producer.record_intake import HeldRecord, RecordIntake
from ottla.errors import IllegalStateError
from ottla.model import Header
from ottla.trace import CAPACITY, Trace

if TYPE_CHECKING:
    from ottla.client.metrics.client_metrics import ClientMetrics
    from ottla.client.producer.snapshot import ProducerSnapshot


class ProducerFace:
    """The calls that wait for nothing."""

    def __init__(self, core: ProducerCore) -> None:
        self.config = core.config
        self.client_id = core.client_id
        self._core = core
        self._intake: RecordIntake = core.intake
        self._forgotten = weakref.finalize(self, core.sender.initiate_close)
        self._forgotten.atexit = False
        core.sender.start()
        if folder := os.environ.get("OTTLA_TRACE"):
            let_others_look(self, core, folder)

    def __repr__(self) -> str:
        return describe_client(self, self._core.closed)

    def snapshot(self) -> ProducerSnapshot:
        """All parts of this producer and what is in them; at any time, from any thread."""
        from ottla.client.producer.snapshot import take_snapshot

        return take_snapshot(self._core)

    def metrics(self) -> ClientMetrics:
        """What is counted and measured in here, by the names of Java's clients; at any time, from any thread."""
        return self._core.take_metrics()

    def trace(self, capacity: int = CAPACITY) -> Trace:
        """What happens in here from now on, typed as in `ottla.client.producer.events`; at any time, from any thread.

        IllegalStateError once this is closed: nothing happens any more.
        """
        if self._core.closed:
            raise IllegalStateError(CLOSED)
        return self._core.events.trace(capacity)

    def begin_transaction(self) -> None:
        """From here on what is sent belongs to a transaction. Asks nobody."""
        self._core.begin_transaction()

    def hand_over_transaction(self) -> OpenTransaction:
        """Leave the transaction open for another producer to end, and be done: what is left here is `close`.

        Call `flush` first, and see that everything was written.
        """
        return self._core.hand_over()

    def take_over_transaction(self, given: OpenTransaction) -> None:
        """Instead of `init_transactions`: go on in a transaction that was handed over, to commit or abort it.

        Nothing more is to be sent in it: how far its records are numbered is not known here.
        """
        self._core.take_over(given)

    def _finished(self) -> None:
        """All is closed, perhaps not for the first time."""
        if self._forgotten.detach() is not None:
            self._core.finished()
        self._core.tell_unheard()


def let_others_look(face: ProducerFace, core: ProducerCore, folder: str) -> None:
    """Listen in `folder` until the producer is closed or dropped."""
    from ottla.client.producer.snapshot import take_snapshot
    from ottla.tracing.trace_socket import maybe_listen

    listening = maybe_listen("producer", core.client_id, core.events, partial(take_snapshot, core), folder)
    if listening is not None:
        core.on_finished = listening.close
        weakref.finalize(face, listening.end)


def offered(
    face: ProducerFace,
    topic: str,
    value: Any,
    key: Any,
    partition: int | None,
    timestamp: int | None,
    headers: Iterable[Header] | Mapping[str, bytes | None] | None,
    on_delivery: OnDelivery | None,
) -> RecordFuture | HeldRecord:
    """`face._intake.offer(…)`, which compiled costs a record no look at attributes."""
    return face._intake.offer(topic, value, key, partition, timestamp, headers, on_delivery)
