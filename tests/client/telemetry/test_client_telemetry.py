"""The pushed metrics: names, kinds, growing sums, and the size limit."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from ottla.client.metrics.client_metrics import ClientMetrics, MetricsBuilder
from ottla.client.telemetry.client_telemetry import ClientTelemetry
from ottla.errors import ErrorCode
from ottla.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from ottla.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from ottla.protocol.metrics_data import MetricKind, Point, read_metrics
from ottla.protocol.schema import ZERO_UUID
from ottla.records.compression import Codec, decompress

ID = UUID(int=7)
SENT = "org.apache.kafka.producer.topic.record.send.total"
LATENCY = "org.apache.kafka.producer.request.latency.max"
FREE = "org.apache.kafka.producer.buffer.available.bytes"


def numbers(sent: float, latency: float = float("nan")) -> ClientMetrics:
    builder = MetricsBuilder("me")
    builder.select_group("producer-topic-metrics", topic="orders").put("record-send-total", sent)
    builder.select_group("producer-metrics").put("request-latency-max", latency)
    builder.put("buffer-available-bytes", 10)
    return builder.build()


class Story:
    """A client, and a broker with the subscription that the test sets; each push takes a second."""

    def __init__(self, **wanted: Any) -> None:
        self.telemetry, self.now = ClientTelemetry(0.0, 1_000_000), 0.0
        self.metrics = numbers(0)
        asked = self.next()
        assert asked == GetTelemetrySubscriptionsRequest(ZERO_UUID)
        answer = {
            "client_instance_id": ID,
            "subscription_id": 3,
            "accepted_compression_types": [Codec.ZSTD, Codec.GZIP],
            "push_interval_ms": 1000,
            "telemetry_max_bytes": 100_000,
            "delta_temporality": True,
            "requested_metrics": ["*"],
        }
        self.record_event(GetTelemetrySubscriptionsResponse(**{**answer, **wanted}))

    def next(self) -> Any:
        self.now = max(self.now, self.telemetry.due)
        wall_ms = 1_000_000 + round(self.now * 1000)
        return self.telemetry.next_request(self.now, wall_ms, lambda: self.metrics, lambda: {"group_id": "g"})

    def record_event(self, message: object) -> None:
        self.telemetry.handle_response(message, self.now, 0.5)

    def push(self) -> dict[str, Point]:
        """Return the next push by name; every point has the client's label."""
        request = self.next()
        assert isinstance(request, PushTelemetryRequest)
        assert (request.client_instance_id, request.subscription_id) == (ID, 3)
        data = decompress(Codec(request.compression_type), request.metrics)
        points = list(read_metrics(memoryview(data)))
        assert all(("group_id", "g") in point.attributes for point in points)
        return {point.name: point for point in points}

    def answer(self, error: ErrorCode = ErrorCode.NONE) -> None:
        self.record_event(PushTelemetryResponse(error_code=error))


def test_numbers_have_the_names_of_kip_714_and_their_tags_as_labels() -> None:
    story = Story()
    story.metrics = numbers(5, 1.5)
    pushed = story.push()
    assert pushed.keys() == {SENT, LATENCY, FREE}
    assert pushed[SENT][:4] == (SENT, MetricKind.DELTA, 5.0, (("group_id", "g"), ("topic", "orders")))
    assert pushed[LATENCY][:4] == (LATENCY, MetricKind.GAUGE, 1.5, (("group_id", "g"),))
    assert pushed[SENT].start_ns == 1_000_000 * 1_000_000
    assert pushed[SENT].at_ns == pushed[LATENCY].at_ns == 1_001_000 * 1_000_000


def test_metrics_without_a_value_are_not_pushed() -> None:
    assert Story().push().keys() == {SENT, FREE}


def test_delta_sums_are_pushed_since_the_last_accepted_push() -> None:
    story = Story()
    reported = []
    for sent, error in [(5, 0), (8, ErrorCode.THROTTLING_QUOTA_EXCEEDED), (9, 0), (9, 0)]:
        story.metrics = numbers(sent)
        if isinstance(request := story.next(), GetTelemetrySubscriptionsRequest):
            assert request.client_instance_id == ID
            story.record_event(
                GetTelemetrySubscriptionsResponse(
                    client_instance_id=ID,
                    subscription_id=3,
                    push_interval_ms=1000,
                    telemetry_max_bytes=100_000,
                    delta_temporality=True,
                    requested_metrics=["*"],
                )
            )
            request = story.next()
        data = decompress(Codec(request.compression_type), request.metrics)
        reported += [(point.value, point.start_ns) for point in read_metrics(memoryview(data)) if point.name == SENT]
        story.answer(ErrorCode(error))
    begun, first = 1_000_000_000_000, 1_001_000_000_000
    assert reported[:3] == [(5.0, begun), (3.0, first), (4.0, first)]
    assert reported[3][0] == 0.0


def test_cumulative_sums_are_pushed_if_the_broker_requests_them() -> None:
    story = Story(delta_temporality=False)
    for sent in (5, 8):
        story.metrics = numbers(sent)
        point = story.push()[SENT]
        assert (point.kind, point.value, point.start_ns) == (MetricKind.CUMULATIVE, sent, 1_000_000_000_000)
        story.answer()


def test_only_subscribed_metrics_are_pushed() -> None:
    assert Story(
        requested_metrics=["org.apache.kafka.producer.topic.", "org.apache.kafka.consumer."]
    ).push().keys() == {SENT}


@pytest.mark.parametrize(
    ("accepted", "codec"), [([4, 1], 4), ([1, 4], 1), ([], 0), ([9, -1, 3], 3)], ids=["zstd", "gzip", "none", "known"]
)
def test_the_first_supported_compression_is_used(accepted: list[int], codec: int) -> None:
    request = Story(accepted_compression_types=accepted).next()
    assert request.compression_type == codec
    assert list(read_metrics(memoryview(decompress(Codec(codec), request.metrics))))


def test_a_compression_that_is_refused_is_not_used_again() -> None:
    story = Story()
    story.next()
    story.answer(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    assert isinstance(story.next(), GetTelemetrySubscriptionsRequest)
    wanted = {"client_instance_id": ID, "subscription_id": 3, "push_interval_ms": 1000, "telemetry_max_bytes": 10_000}
    accepted = {"accepted_compression_types": [Codec.ZSTD, Codec.GZIP], "requested_metrics": ["*"]}
    story.record_event(GetTelemetrySubscriptionsResponse(**wanted, **accepted))  # type: ignore[arg-type]
    assert story.next().compression_type == Codec.GZIP


def test_an_oversized_push_leaves_out_topic_metrics_and_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    story = Story(telemetry_max_bytes=150)
    for _ in range(2):
        assert story.push().keys() == {FREE}
        story.answer()
    assert [record.getMessage().partition(" limit")[0] for record in caplog.records] == [
        "telemetry payload too large metrics=2 bytes=215"
    ]


def test_an_empty_push_is_sent_if_nothing_fits() -> None:
    request = Story(telemetry_max_bytes=10).next()
    assert isinstance(request, PushTelemetryRequest)
    assert bytes(request.metrics) == b""


def test_a_fatal_rejection_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    story = Story()
    story.next()
    story.answer(ErrorCode.INVALID_RECORD)
    assert story.telemetry.is_over
    assert "telemetry stopped after a broker error error=INVALID_RECORD" in caplog.text


def test_the_last_push_is_marked_as_terminating_and_later_responses_are_ignored() -> None:
    story = Story()
    story.telemetry.close(story.now)
    assert story.next().terminating
    story.answer(ErrorCode.INVALID_REQUEST)
    assert story.telemetry.is_over
    story.telemetry.close(story.now)
    story.answer()
