"""Client metrics: requested by subscriptions, accepted by Kafka's rules, exported with the broker's own."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from ottla import Admin
from ottla.broker.embedding.embedded_broker import Broker
from ottla.broker.event_loop.loop_call import call_in_loop
from ottla.broker.introspection.pushed_metrics_page import build_page, format_page
from ottla.client.admin import ConfigResource
from ottla.errors import ErrorCode, KafkaError
from ottla.kafka_id import text_of
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from ottla.protocol.messages.push_telemetry import PushTelemetryRequest
from ottla.protocol.metrics_data import MetricKind, Point, write_metrics
from ottla.protocol.schema import ZERO_UUID
from ottla.records.compression import Codec, compress
from tests.broker.wire import Wire

EVERYTHING = {"metrics": "*", "interval.ms": 100}
SENT = Point("org.apache.kafka.producer.record.send.total", MetricKind.DELTA, 5.0, (("client-x", "1"),))
ZSTD = Codec.ZSTD


def subscribe(broker: Broker, name: str = "all", **configs: Any) -> None:
    wanted = {key.replace("_", "."): value for key, value in configs.items()} or EVERYTHING
    with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.alter_configs({ConfigResource("client-metrics", name): wanted})


def get_subscription(wire: Wire, instance_id: uuid.UUID = ZERO_UUID) -> GetTelemetrySubscriptionsResponse:
    reported: GetTelemetrySubscriptionsResponse = wire.ask(GetTelemetrySubscriptionsRequest(instance_id))
    return reported


def push(
    wire: Wire, asked: GetTelemetrySubscriptionsResponse, *points: Point, codec: int = ZSTD, **changed: Any
) -> int:
    """The error that a push is answered."""
    metrics = compress(Codec(codec), write_metrics(points, {})) if 0 <= codec <= ZSTD else b"x"
    parts = {"terminating": False, "metrics": metrics, "subscription_id": asked.subscription_id, **changed}
    error: int = wire.ask(PushTelemetryRequest(asked.client_instance_id, compression_type=codec, **parts)).error_code
    return error


def shown(broker: Broker) -> dict[str, Metric]:
    """Return the exported client metrics by name."""
    server = broker.server
    assert server is not None
    node = server.node
    text = format_page(
        call_in_loop(server.call_soon, lambda: build_page(node.telemetry.list_metrics(node.clock.monotonic())), 20)
    )
    return {each.name: each for each in text_string_to_metric_families(text)}


def test_clients_push_no_metrics_without_a_subscription(wire: Wire) -> None:
    subscription = get_subscription(wire)
    assert (subscription.error_code, subscription.requested_metrics, subscription.push_interval_ms) == (0, [], 300_000)
    assert subscription.client_instance_id != ZERO_UUID
    assert subscription.accepted_compression_types == [4, 3, 1, 2]
    assert (subscription.telemetry_max_bytes, subscription.delta_temporality) == (1_048_576, True)


@pytest.mark.behaviour("B8")
def test_pushed_metrics_are_exported_with_their_attributes_as_labels(broker: Broker, wire: Wire) -> None:
    subscribe(broker)
    subscription = get_subscription(wire)
    assert (subscription.requested_metrics, subscription.push_interval_ms) == (["*"], 100)
    assert push(wire, subscription, SENT, Point("own.gauge", MetricKind.GAUGE, 1.5)) == 0
    name = "kafka_client_telemetry_producer_record_send"
    metrics = shown(broker)
    (sample,) = metrics[name].samples
    assert (metrics[name].type, sample.name, sample.value) == ("counter", f"{name}_total", 5.0)
    named = {"client_instance_id": text_of(subscription.client_instance_id), "client_id": "wire", "client_x": "1"}
    assert sample.labels == named
    assert metrics["kafka_client_telemetry_own_gauge"].type == "gauge"


@pytest.mark.parametrize("codec", Codec)
def test_every_compression_is_accepted(broker: Broker, wire: Wire, codec: Codec) -> None:
    subscribe(broker)
    assert push(wire, get_subscription(wire), SENT, codec=codec) == 0
    assert "kafka_client_telemetry_producer_record_send" in shown(broker)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"subscription_id": 7}, ErrorCode.UNKNOWN_SUBSCRIPTION_ID),
        ({"codec": 9}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"metrics": b"x" * 1_048_577, "codec": 0}, ErrorCode.TELEMETRY_TOO_LARGE),
        ({"metrics": compress(Codec.GZIP, b"x" * 1_048_577), "codec": Codec.GZIP}, ErrorCode.TELEMETRY_TOO_LARGE),
        ({"metrics": b"\x0a\xff", "codec": 0}, ErrorCode.INVALID_RECORD),
        ({"metrics": b"no zstd"}, ErrorCode.INVALID_RECORD),
    ],
)
def test_an_invalid_push_is_rejected_with_kafkas_error_code(
    broker: Broker, wire: Wire, changed: dict[str, Any], error: int
) -> None:
    subscribe(broker)
    assert push(wire, get_subscription(wire), SENT, **changed) == error
    assert shown(broker) == {}


def test_a_client_without_an_id_cannot_push(wire: Wire) -> None:
    for number in (0, 1):
        nobody = GetTelemetrySubscriptionsResponse(client_instance_id=uuid.UUID(int=number))
        assert push(wire, nobody, SENT) == ErrorCode.INVALID_REQUEST


def test_an_early_push_is_rejected_except_for_the_last_one(broker: Broker, wire: Wire) -> None:
    subscribe(broker, metrics="*", interval_ms=3_600_000)
    subscription = get_subscription(wire)
    assert subscription.push_interval_ms == 300_000
    assert push(wire, subscription, SENT) == 0
    assert push(wire, subscription, SENT) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert get_subscription(wire, subscription.client_instance_id).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert push(wire, subscription, SENT, terminating=True) == 0
    assert push(wire, subscription, SENT, terminating=True) == ErrorCode.INVALID_REQUEST


def test_a_subscription_matches_the_reported_software_and_client_id(broker: Broker) -> None:
    subscribe(broker, metrics="a.,b.", match="client_software_name=mine,client_id=we.*", interval_ms=500)
    with Wire(broker.bootstrap_servers, "web") as named, Wire(broker.bootstrap_servers, "web") as nameless:
        named.ask(ApiVersionsRequest("mine", "1"))
        assert (get_subscription(named).requested_metrics, get_subscription(named).push_interval_ms) == (
            ["a.", "b."],
            500,
        )
        assert get_subscription(nameless).requested_metrics == []


def test_a_changed_subscription_makes_a_client_request_it_again_at_once(broker: Broker, wire: Wire) -> None:
    subscribe(broker, metrics="a.", interval_ms=300_000)
    subscription = get_subscription(wire)
    subscribe(broker, metrics="b.")
    assert push(wire, subscription, SENT) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    again = get_subscription(wire, subscription.client_instance_id)
    assert (again.client_instance_id, again.requested_metrics) == (subscription.client_instance_id, ["b."])
    assert push(wire, again, SENT) == 0


def test_a_subscription_persists_after_a_restart(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        subscribe(broker, metrics="a.")
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        assert get_subscription(wire).requested_metrics == ["a."]


def test_a_subscription_is_set_described_listed_and_deleted(broker: Broker) -> None:
    resource = ConfigResource("client-metrics", "m")
    with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.alter_configs({resource: {"interval.ms": 5000}})
        found = admin.describe_configs([resource])[resource]
        assert {name: each.value for name, each in found.items()} == {"interval.ms": "5000", "match": "", "metrics": ""}
        assert found["interval.ms"].source == "DYNAMIC_CLIENT_METRICS_CONFIG"
        assert found["match"].is_default
        assert admin.list_config_resources(["client-metrics"]) == [resource]
        admin.alter_configs({resource: {"interval.ms": None}})
        assert admin.list_config_resources(["client-metrics"]) == []


@pytest.mark.parametrize(
    ("name", "changes", "error", "reason"),
    [
        ("m", {"bogus": "1"}, ErrorCode.INVALID_REQUEST, "Unknown client metrics configuration: bogus"),
        ("m", {"interval.ms": 99}, ErrorCode.INVALID_REQUEST, "interval.ms = 99: must be at least 100"),
        ("m", {"interval.ms": 3_600_001}, ErrorCode.INVALID_REQUEST, "must be at most 3600000"),
        ("m", {"interval.ms": "x"}, ErrorCode.INVALID_CONFIG, "must be a whole number"),
        ("m", {"match": "client_id"}, ErrorCode.INVALID_CONFIG, "must be NAME=REGEX"),
        ("m", {"match": "colour=red"}, ErrorCode.INVALID_CONFIG, "must be NAME=REGEX"),
        ("m", {"match": "client_id=("}, ErrorCode.INVALID_CONFIG, "no regular expression"),
        ("", {"metrics": "*"}, ErrorCode.INVALID_REQUEST, "subscriptions have no default configs"),
    ],
)
def test_an_invalid_subscription_is_rejected(
    broker: Broker, name: str, changes: dict[str, Any], error: int, reason: str
) -> None:
    with Admin(bootstrap_servers=broker.bootstrap_servers) as admin, pytest.raises(KafkaError) as refused:
        admin.alter_configs({ConfigResource("client-metrics", name): changes})
    assert (refused.value.code, reason in str(refused.value)) == (error, True), refused.value
