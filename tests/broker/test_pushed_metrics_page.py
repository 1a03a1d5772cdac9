"""The page of pushed metrics, parsed by prometheus-client."""

from __future__ import annotations

from uuid import UUID

from prometheus_client.parser import text_string_to_metric_families

from ottla.broker.introspection.pushed_metrics_page import build_page, format_page
from ottla.coordination.telemetry.pushed_metrics import PushedMetrics
from ottla.coordination.telemetry.subscription import Client
from ottla.protocol.metrics_data import MetricKind, Point

KAFKA = "org.apache.kafka.consumer."
Sample = tuple[str, str, dict[str, str], float]


def client(name: str) -> Client:
    return Client(f"i-{name}", name, "ottla", "1", "10.0.0.1", "4711")


def read(*pushed: tuple[str, Point]) -> list[Sample]:
    """Type, name, labels and value of each number that is on the page."""
    metrics = PushedMetrics()
    for name, point in pushed:
        metrics.take(UUID(int=len(name)), client(name), [point])
    text = format_page(build_page(metrics))
    return [
        (each.type, sample.name, sample.labels, sample.value)
        for each in text_string_to_metric_families(text)
        for sample in each.samples
    ]


def test_the_page_is_empty_without_pushed_metrics() -> None:
    assert format_page(build_page(PushedMetrics())) == ""


def test_values_of_one_name_are_grouped_and_deltas_are_totals() -> None:
    rate, total = Point(f"{KAFKA}poll.rate", MetricKind.GAUGE, 1.5), Point(f"{KAFKA}poll.total", MetricKind.DELTA, 2.0)
    assert read(("a", rate), ("bb", total), ("bb", rate)) == [
        ("gauge", "kafka_client_telemetry_consumer_poll_rate", {"client_instance_id": "i-a", "client_id": "a"}, 1.5),
        ("gauge", "kafka_client_telemetry_consumer_poll_rate", {"client_instance_id": "i-bb", "client_id": "bb"}, 1.5),
        (
            "counter",
            "kafka_client_telemetry_consumer_poll_total",
            {"client_instance_id": "i-bb", "client_id": "bb"},
            2.0,
        ),
    ]


def test_labels_are_escaped_and_cannot_name_another_client() -> None:
    odd = 'a"} 1\nkafka_server_topic_count 7 \\'
    attributes = (("client_id", "boss"), ("x-y", "1"), ("x.y", "2"), ("__name__", "n"), ("0", odd))
    ((_, name, labels, value),) = read((odd, Point("ö", MetricKind.GAUGE, 1e300, attributes)))
    assert (name, value) == ("kafka_client_telemetry__", 1e300)
    assert labels == {"client_instance_id": f"i-{odd}", "client_id": odd, "x_y": "2", "name__": "n", "_0": odd}


def test_metrics_with_the_same_exported_name_are_returned_once() -> None:
    first, second = (Point(name, MetricKind.GAUGE, value) for name, value in (("a.b", 1.0), ("a_b", 2.0)))
    assert [value for *_, value in read(("c", first), ("c", second))] == [2.0]
