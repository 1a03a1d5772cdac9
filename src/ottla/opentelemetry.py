"""Spans of OpenTelemetry for what is sent, received and processed, and for rebalances: interceptors, which whoever wants spans hands to a client.

    Producer(…, interceptor_classes=[ProducerSpans()])
    spans = ConsumerSpans(group_id="billing")
    Consumer(…, group_id="billing", interceptor_classes=[spans])

    send orders ──► header traceparent ──► poll orders (a link for each record), process orders (a child)

Names and attributes are those of OpenTelemetry's conventions for messaging. Needs the extra `opentelemetry`, which is the API
alone: where spans go is the program's choice. No other part loads this, and a client without it does nothing for it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ottla.client.consumer.events import Assigned, JoinRefused, Left, Lost, RebalanceStarted, Revoked
from ottla.extras import extra

with extra("opentelemetry"):
    from opentelemetry import propagate, trace
    from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, TracerProvider

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from ottla import ConsumerRecord
    from ottla.client.consumer.records import ConsumerRecords
    from ottla.client.producer.interceptors import ProducerRecord
    from ottla.client.producer.produce_request_result import OnDelivery
    from ottla.model import RecordMetadata, TopicPartition

MOST_LINKS = 128
"""Of one span, as the SDK keeps by itself."""
SYSTEM = {"messaging.system": "kafka"}


class ProducerSpans:
    """An interceptor for a producer: a span `send TOPIC` for each record, until its outcome is known.

    Its context goes along in the record's headers. Rows of `send_table` and `send_many` have no spans of their own, and a record that
    `send` refuses has none.
    """

    def __init__(self, tracer_provider: TracerProvider | None = None, *, client_id: str | None = None) -> None:
        self._tracer = trace.get_tracer("ottla", tracer_provider=tracer_provider)
        self._client = {} if client_id is None else {"messaging.client.id": client_id}

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """The record with the span's context in its headers."""
        span = self._tracer.start_span(
            f"send {record.topic}",
            kind=SpanKind.PRODUCER,
            attributes=operation("send", "send", record.topic) | keyed(record.key, record.value) | self._client,
        )
        carrier: dict[str, str] = {}
        propagate.inject(carrier, trace.set_span_in_context(span))
        headers = [*pairs(record.headers), *((name, text.encode()) for name, text in carrier.items())]
        return record._replace(headers=headers, on_delivery=ending(span, record.on_delivery))


class ConsumerSpans:
    """An interceptor for a consumer: spans `poll TOPIC` with a link to each record's, and `rebalance GROUP`.

    `process(record)` makes the span in which a record is worked on, within the trace of who sent it.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        *,
        group_id: str | None = None,
        client_id: str | None = None,
    ) -> None:
        self._tracer = trace.get_tracer("ottla", tracer_provider=tracer_provider)
        self._group = group_id
        self._own = named({"messaging.consumer.group.name": group_id, "messaging.client.id": client_id})
        self._rebalance: Span | None = None
        self._lock = threading.Lock()

    def on_consume(self, records: ConsumerRecords[Any, Any]) -> None:
        """One span for each topic that has records in what `poll` returns."""
        by_topic: dict[str, list[ConsumerRecord[Any, Any]]] = {}
        for record in records:
            by_topic.setdefault(record.topic, []).append(record)
        for topic, received in by_topic.items():
            links = [link for record in received[:MOST_LINKS] if (link := link_to(record)) is not None]
            attributes = operation("poll", "receive", topic) | {"messaging.batch.message_count": len(received)}
            name, kind = f"poll {topic}", SpanKind.CLIENT
            self._tracer.start_span(name, kind=kind, links=links, attributes=attributes | self._own).end()

    @contextmanager
    def process(self, record: ConsumerRecord[Any, Any]) -> Iterator[Span]:
        """Around the work on one record: a span `process TOPIC`, whose error is what the work raises."""
        place = {
            "messaging.destination.partition.id": str(record.partition),
            "messaging.kafka.offset": record.offset,
        }
        with self._tracer.start_as_current_span(
            f"process {record.topic}",
            context=context_of(record),
            kind=SpanKind.CONSUMER,
            attributes=operation("process", "process", record.topic)
            | keyed(record.key, record.value)
            | place
            | self._own,
        ) as span:
            yield span

    def on_event(self, event: Any) -> None:
        """A span from the beginning of a rebalance to what it gives this member."""
        with self._lock:  # events come from the thread of heartbeats, too
            if isinstance(event, RebalanceStarted):
                self._begin({"ottla.rebalance.reason": event.reason or "this member is new"})
            elif self._rebalance is None:
                return
            elif isinstance(event, Revoked | Lost):
                self._rebalance.add_event(type(event).__name__.lower(), listed(event.partitions))
            elif isinstance(event, JoinRefused):
                self._rebalance.add_event("refused", {"error.type": event.error})
            elif isinstance(event, Assigned):
                self._rebalance.add_event("assigned", listed(event.partitions))
                self._end()
            elif isinstance(event, Left):
                self._end()

    def close(self) -> None:
        """The consumer closes: a rebalance that goes on ends for it."""
        with self._lock:
            self._end()

    def _begin(self, reason: dict[str, str]) -> None:
        """One that has to begin anew before it gave anything is the same still."""
        if self._rebalance is not None:
            self._rebalance.add_event("started", reason)
        else:
            name = f"rebalance {self._group}" if self._group else "rebalance"
            self._rebalance = self._tracer.start_span(name, attributes=SYSTEM | self._own | reason)

    def _end(self) -> None:
        if self._rebalance is not None:
            self._rebalance.end()
            self._rebalance = None


def operation(name: str, kind: str, topic: str) -> dict[str, Any]:
    return SYSTEM | {
        "messaging.operation.name": name,
        "messaging.operation.type": kind,
        "messaging.destination.name": str(topic),
    }


def keyed(key: Any, value: Any) -> dict[str, Any]:
    """A key that is text, and whether there is no value."""
    found: dict[str, Any] = {}
    if isinstance(key, bytes):
        key = key.decode("utf-8", "backslashreplace")
    if isinstance(key, str | int):
        found["messaging.kafka.message.key"] = str(key)
    if value is None:
        found["messaging.kafka.message.tombstone"] = True
    return found


def named(attributes: Mapping[str, str | None]) -> dict[str, Any]:
    """Those that have a value."""
    return {name: value for name, value in attributes.items() if value is not None}


def listed(partitions: Iterable[TopicPartition]) -> dict[str, list[str]]:
    return {"ottla.partitions": [str(each) for each in partitions]}


def pairs(headers: Any) -> Iterable[tuple[str, bytes | None]]:
    """Headers as they may be handed to `send`, as pairs."""
    if headers is None:
        return ()
    given = headers.items() if isinstance(headers, Mapping) else headers
    return [(name, value) for name, value in given]


def ending(span: Span, on_delivery: OnDelivery | None) -> OnDelivery:
    """Ends the span with the record's outcome, and tells who wanted to know."""

    def heard(metadata: RecordMetadata | None, error: Exception | None) -> None:
        if metadata is not None:
            span.set_attribute("messaging.destination.partition.id", str(metadata.partition))
            span.set_attribute("messaging.kafka.offset", metadata.offset)
        if error is not None:
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(Status(StatusCode.ERROR, str(error)))
        span.end()
        if on_delivery is not None:
            on_delivery(metadata, error)

    return heard


def context_of(record: ConsumerRecord[Any, Any]) -> Context:
    """What the headers say of the sender's trace; the newest where there are several, as of a record that was copied."""
    carrier = {name: value.decode("utf-8", "replace") for name, value in record.headers if value is not None}
    return propagate.extract(carrier)


def link_to(record: ConsumerRecord[Any, Any]) -> Link | None:
    """None for a record that no trace came with."""
    if not record.headers:
        return None
    sender = trace.get_current_span(context_of(record)).get_span_context()
    return Link(sender) if sender.is_valid else None
