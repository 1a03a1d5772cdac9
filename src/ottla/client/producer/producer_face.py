"""The common part of the blocking and the asyncio producer."""

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
    """Calls that do not wait."""

    def __init__(self, core: ProducerCore) -> None:
        self.config = core.config
        self.client_id = core.client_id
        self._core = core
        self._intake: RecordIntake = core.intake
        self._forgotten = weakref.finalize(self, core.sender.initiate_close)
        self._forgotten.atexit = False
        core.sender.start()
        if folder := os.environ.get("OTTLA_TRACE"):
            open_tracing_socket(self, core, folder)

    def __repr__(self) -> str:
        return describe_client(self, self._core.closed)

    def snapshot(self) -> ProducerSnapshot:
        """Return the state of all components. May be called at any time from any thread."""
        from ottla.client.producer.snapshot import take_snapshot

        return take_snapshot(self._core)

    def metrics(self) -> ClientMetrics:
        """Return the metrics of this client, with the names of the Java clients.

        May be called at any time from any thread.
        """
        return self._core.take_metrics()

    def trace(self, capacity: int = CAPACITY) -> Trace:
        """Return a trace of the events from now on, typed as in `ottla.client.producer.events`.

        May be called at any time from any thread.

        Raises IllegalStateError after close.
        """
        if self._core.closed:
            raise IllegalStateError(CLOSED)
        return self._core.events.trace(capacity)

    def begin_transaction(self) -> None:
        """Begin a transaction; the records sent from now on belong to it. Sends no request."""
        self._core.begin_transaction()

    def hand_over_transaction(self) -> OpenTransaction:
        """Leave the transaction open for another producer to end. Afterwards only `close` may be called here.

        Call `flush` first, and check that everything was written.
        """
        return self._core.hand_over_transaction()

    def take_over_transaction(self, given: OpenTransaction) -> None:
        """Continue a transaction that another producer handed over, to commit or abort it; replaces `init_transactions`.

        Do not send records in it, because the sequence numbers of its records are not known here.
        """
        self._core.take_over_transaction(given)

    def _finish_close(self) -> None:
        """Run the close callbacks, and raise unobserved failures. May be called again."""
        if self._forgotten.detach() is not None:
            self._core.run_close_callbacks()
        self._core.raise_unobserved()


def open_tracing_socket(face: ProducerFace, core: ProducerCore, folder: str) -> None:
    """Open the tracing socket in `folder` until the producer is closed or garbage collected."""
    from ottla.client.producer.snapshot import take_snapshot
    from ottla.tracing.trace_socket import maybe_listen

    listening = maybe_listen("producer", core.client_id, core.events, partial(take_snapshot, core), folder)
    if listening is not None:
        core.on_finished = listening.close
        weakref.finalize(face, listening.end)


def call_offer(
    face: ProducerFace,
    topic: str,
    value: Any,
    key: Any,
    partition: int | None,
    timestamp: int | None,
    headers: Iterable[Header] | Mapping[str, bytes | None] | None,
    on_delivery: OnDelivery | None,
) -> RecordFuture | HeldRecord:
    """Call `face._intake.offer(…)`; compiled, it avoids attribute lookups per record."""
    return face._intake.offer(topic, value, key, partition, timestamp, headers, on_delivery)
