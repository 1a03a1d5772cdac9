"""OpenTelemetry spans for send, receive, process and rebalance, as interceptors of clients.

Producer(…, interceptor_classes=[ProducerSpans()])
spans = ConsumerSpans(group_id="billing")
Consumer(…, group_id="billing", interceptor_classes=[spans])

send orders ──► header traceparent ──► poll orders (a link for each record), process orders (a child)

Names and attributes follow OpenTelemetry's semantic conventions for messaging. Needs the extra `opentelemetry`, which
is only the API: the program configures the exporter. No other module imports this one.
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
"""The maximum number of links of a span, the SDK's default."""
SYSTEM = {"messaging.system": "kafka"}


class ProducerSpans:
    """An interceptor for a producer: a span `send TOPIC` for each record, until its result is known.

     The span's context is sent in the record's headers. Rows of `send_table` and `send_many` have no spans of their
    own, and a record that `send` rejects has none.
    """

    def __init__(self, tracer_provider: TracerProvider | None = None, *, client_id: str | None = None) -> None:
        self._tracer = trace.get_tracer("ottla", tracer_provider=tracer_provider)
        self._client = {} if client_id is None else {"messaging.client.id": client_id}

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """Return the record with the span's context in its headers."""
        span = self._tracer.start_span(
            f"send {record.topic}",
            kind=SpanKind.PRODUCER,
            attributes=operation_attributes("send", "send", record.topic)
            | key_attributes(record.key, record.value)
            | self._client,
        )
        carrier: dict[str, str] = {}
        propagate.inject(carrier, trace.set_span_in_context(span))
        headers = [*header_pairs(record.headers), *((name, text.encode()) for name, text in carrier.items())]
        return record._replace(headers=headers, on_delivery=end_span_on_delivery(span, record.on_delivery))


class ConsumerSpans:
    """An interceptor for a consumer: spans `poll TOPIC` with a link to each record's span, and `rebalance GROUP`.

    `process(record)` starts the span for the processing of a record, within the sender's trace.
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
        self._own = without_missing({"messaging.consumer.group.name": group_id, "messaging.client.id": client_id})
        self._rebalance: Span | None = None
        self._lock = threading.Lock()

    def on_consume(self, records: ConsumerRecords[Any, Any]) -> None:
        """Create one span for each topic with records in the result of `poll`."""
        by_topic: dict[str, list[ConsumerRecord[Any, Any]]] = {}
        for record in records:
            by_topic.setdefault(record.topic, []).append(record)
        for topic, received in by_topic.items():
            links = [link for record in received[:MOST_LINKS] if (link := link_to(record)) is not None]
            attributes = operation_attributes("poll", "receive", topic) | {
                "messaging.batch.message_count": len(received)
            }
            name, kind = f"poll {topic}", SpanKind.CLIENT
            self._tracer.start_span(name, kind=kind, links=links, attributes=attributes | self._own).end()

    @contextmanager
    def process(self, record: ConsumerRecord[Any, Any]) -> Iterator[Span]:
        """Start a span `process TOPIC` around the processing of one record; an exception becomes its error."""
        place = {
            "messaging.destination.partition.id": str(record.partition),
            "messaging.kafka.offset": record.offset,
        }
        with self._tracer.start_as_current_span(
            f"process {record.topic}",
            context=context_of(record),
            kind=SpanKind.CONSUMER,
            attributes=operation_attributes("process", "process", record.topic)
            | key_attributes(record.key, record.value)
            | place
            | self._own,
        ) as span:
            yield span

    def on_event(self, event: Any) -> None:
        """Create a span from the start of a rebalance to its result for this member."""
        with self._lock:  # the heartbeat thread also calls this
            if isinstance(event, RebalanceStarted):
                self._begin({"ottla.rebalance.reason": event.reason or "this member is new"})
            elif self._rebalance is None:
                return
            elif isinstance(event, Revoked | Lost):
                self._rebalance.add_event(type(event).__name__.lower(), format_partitions(event.partitions))
            elif isinstance(event, JoinRefused):
                self._rebalance.add_event("refused", {"error.type": event.error})
            elif isinstance(event, Assigned):
                self._rebalance.add_event("assigned", format_partitions(event.partitions))
                self._end()
            elif isinstance(event, Left):
                self._end()

    def close(self) -> None:
        """End the span of an unfinished rebalance when the consumer closes."""
        with self._lock:
            self._end()

    def _begin(self, reason: dict[str, str]) -> None:
        """Start a span, or add an event if a rebalance starts again before its end."""
        if self._rebalance is not None:
            self._rebalance.add_event("started", reason)
        else:
            name = f"rebalance {self._group}" if self._group else "rebalance"
            self._rebalance = self._tracer.start_span(name, attributes=SYSTEM | self._own | reason)

    def _end(self) -> None:
        if self._rebalance is not None:
            self._rebalance.end()
            self._rebalance = None


def operation_attributes(name: str, kind: str, topic: str) -> dict[str, Any]:
    return SYSTEM | {
        "messaging.operation.name": name,
        "messaging.operation.type": kind,
        "messaging.destination.name": str(topic),
    }


def key_attributes(key: Any, value: Any) -> dict[str, Any]:
    """Return the attributes for a key that is text, and for a missing value."""
    found: dict[str, Any] = {}
    if isinstance(key, bytes):
        key = key.decode("utf-8", "backslashreplace")
    if isinstance(key, str | int):
        found["messaging.kafka.message.key"] = str(key)
    if value is None:
        found["messaging.kafka.message.tombstone"] = True
    return found


def without_missing(attributes: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the attributes that have a value."""
    return {name: value for name, value in attributes.items() if value is not None}


def format_partitions(partitions: Iterable[TopicPartition]) -> dict[str, list[str]]:
    return {"ottla.partitions": [str(each) for each in partitions]}


def header_pairs(headers: Any) -> Iterable[tuple[str, bytes | None]]:
    """Return headers in any form that `send` accepts as pairs."""
    if headers is None:
        return ()
    given = headers.items() if isinstance(headers, Mapping) else headers
    return [(name, value) for name, value in given]


def end_span_on_delivery(span: Span, on_delivery: OnDelivery | None) -> OnDelivery:
    """Return an on_delivery callback that ends the span, and calls the given one."""

    def delivered(metadata: RecordMetadata | None, error: Exception | None) -> None:
        if metadata is not None:
            span.set_attribute("messaging.destination.partition.id", str(metadata.partition))
            span.set_attribute("messaging.kafka.offset", metadata.offset)
        if error is not None:
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(Status(StatusCode.ERROR, str(error)))
        span.end()
        if on_delivery is not None:
            on_delivery(metadata, error)

    return delivered


def context_of(record: ConsumerRecord[Any, Any]) -> Context:
    """Return the sender's trace context from the headers; the last one if there are several, as in a copied record."""
    carrier = {name: value.decode("utf-8", "replace") for name, value in record.headers if value is not None}
    return propagate.extract(carrier)


def link_to(record: ConsumerRecord[Any, Any]) -> Link | None:
    """Return a link to the record's span; None without one."""
    if not record.headers:
        return None
    sender = trace.get_current_span(context_of(record)).get_span_context()
    return Link(sender) if sender.is_valid else None
