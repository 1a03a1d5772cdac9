"""Spans of sending, receiving and processing, collected by OpenTelemetry's SDK."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext, SpanKind, StatusCode

from ottla import Consumer, Producer
from ottla.client.producer import ProducerRecord
from ottla.errors import KafkaTimeoutError
from ottla.opentelemetry import ConsumerSpans, ProducerSpans
from tests.client.conftest import NewTopicName, fresh_name
from tests.client.work.running import running
from tests.patience import eventually

PATIENCE = 60.0
ROOT = Path(__file__).parent.parent.parent


class Spans:
    """The spans ended so far."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self._exporter.get_finished_spans() if span.name == name]

    def only(self, name: str) -> ReadableSpan:
        (span,) = self.named(name)
        return span


@pytest.fixture
def spans() -> Iterator[Spans]:
    found = Spans()
    yield found
    found.provider.shutdown()


@pytest.fixture
def topic(new_topic: NewTopicName) -> str:
    return new_topic(1)


@pytest.fixture
def producer(servers: str, spans: Spans) -> Iterator[Producer]:
    interceptor = ProducerSpans(spans.provider, client_id="shop")
    with Producer(bootstrap_servers=servers, interceptor_classes=[interceptor]) as producer:
        yield producer


@pytest.fixture
def consumer(servers: str, topic: str, spans: Spans) -> Iterator[tuple[Consumer, ConsumerSpans]]:
    group_id = fresh_name()
    interceptor = ConsumerSpans(spans.provider, group_id=group_id)
    settings: dict[str, Any] = {"auto_offset_reset": "earliest", "interceptor_classes": [interceptor]}
    with Consumer(bootstrap_servers=servers, group_id=group_id, **settings) as consumer:
        consumer.subscribe([topic])
        yield consumer, interceptor


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def identity(context: SpanContext) -> tuple[int, int]:
    """The ids of trace and span, without the remote flag."""
    return context.trace_id, context.span_id


def first_record(consumer: Consumer) -> Any:
    """Return the only span."""
    found: list[Any] = []

    def look() -> bool:
        found.extend(consumer.poll(0.05))
        return bool(found)

    eventually(look)
    (record,) = found
    return record


def test_a_trace_continues_from_the_producer_to_the_processor(
    producer: Producer, consumer: tuple[Consumer, ConsumerSpans], topic: str, spans: Spans
) -> None:
    reported: list[int] = []
    sent = producer.send(
        topic, b"tea", key=b"7", headers=[("id", b"1")], on_delivery=lambda metadata, error: reported.append(1)
    )
    offset = sent.result(PATIENCE).offset
    reader, interceptor = consumer
    record = first_record(reader)
    with interceptor.process(record):
        pass
    eventually(lambda: spans.named(f"send {topic}"))
    send, process, poll = (spans.only(f"{name} {topic}") for name in ("send", "process", "poll"))
    assert [name for name, _ in record.headers] == ["id", "traceparent"]
    assert reported == [1]
    assert attributes(send) == {
        "messaging.system": "kafka",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": topic,
        "messaging.destination.partition.id": "0",
        "messaging.kafka.message.key": "7",
        "messaging.kafka.offset": offset,
        "messaging.client.id": "shop",
    }
    assert (send.kind, poll.kind, process.kind) == (SpanKind.PRODUCER, SpanKind.CLIENT, SpanKind.CONSUMER)
    assert process.parent is not None
    assert identity(process.parent) == identity(send.context)
    assert [identity(link.context) for link in poll.links] == [identity(send.context)]
    assert attributes(poll)["messaging.batch.message_count"] == 1
    assert attributes(process)["messaging.kafka.offset"] == offset
    assert attributes(process)["messaging.consumer.group.name"] == reader.group_metadata().group_id


def test_failures_are_errors_of_their_spans(spans: Spans) -> None:
    reported: list[Exception | None] = []
    record = ProducerRecord("orders", b"tea", on_delivery=lambda metadata, error: reported.append(error))
    on_delivery = ProducerSpans(spans.provider).on_send(record).on_delivery
    assert on_delivery is not None
    error = KafkaTimeoutError("too late")
    on_delivery(None, error)
    span = spans.only("send orders")
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "too late")
    assert attributes(span)["error.type"] == "KafkaTimeoutError"
    assert reported == [error]


def test_work_that_raises_is_an_error_and_a_record_without_a_trace_begins_one(
    servers: str, consumer: tuple[Consumer, ConsumerSpans], topic: str, spans: Spans
) -> None:
    with Producer(bootstrap_servers=servers) as producer:
        producer.send(topic, None, key=b"k")
    reader, interceptor = consumer
    record = first_record(reader)
    with pytest.raises(RuntimeError), interceptor.process(record):
        raise RuntimeError("no tea")
    process = spans.only(f"process {topic}")
    assert (process.parent, process.status.status_code) == (None, StatusCode.ERROR)
    assert attributes(process)["messaging.kafka.message.tombstone"] is True
    assert spans.only(f"poll {topic}").links == ()


def test_a_rebalance_is_a_span_with_what_it_gave(
    consumer: tuple[Consumer, ConsumerSpans], topic: str, spans: Spans
) -> None:
    reader, _ = consumer
    name = f"rebalance {reader.group_metadata().group_id}"
    eventually(lambda: reader.poll(0.05) or spans.named(name))
    span = spans.only(name)
    assert attributes(span)["ottla.rebalance.reason"] == "this member is new"
    *before, given = span.events
    assert [event.name for event in before] == ["refused", "started"]  # a new member gets an id, and joins with it
    assert given.name == "assigned"
    assert dict(given.attributes or {}) == {"ottla.partitions": (f"{topic}-0",)}


def test_the_block_of_the_documentation_runs(servers: str, capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    section = page.split("## Spans of OpenTelemetry\n")[1]
    (block,) = re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    exec(block.replace("127.0.0.1:9092", servers).replace("orders", fresh_name()), {})
    assert capsys.readouterr().out == "b'tea'\n"


def test_a_client_without_spans_loads_nothing_of_it() -> None:
    code = "import sys, ottla; ottla.Producer, ottla.Consumer, ottla.Broker; print([m for m in sys.modules if 'opentelemetry' in m])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_worker_makes_a_span_around_each_call(producer: Producer, servers: str, topic: str, spans: Spans) -> None:
    interceptor = ConsumerSpans(spans.provider, group_id=topic)
    with running("threads", servers, topic, lambda record: None, spans=interceptor):
        producer.send(topic, b"tea", key=b"7").result(PATIENCE)
        eventually(lambda: spans.named(f"process {topic}"))
    process, send = spans.only(f"process {topic}"), spans.only(f"send {topic}")
    sent = send.get_span_context()
    assert process.parent is not None
    assert sent is not None
    assert identity(process.parent) == identity(sent)
    assert spans.named(f"poll {topic}")
