"""The metrics of clients in Prometheus' format."""

from __future__ import annotations

import gc

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from ottla import Broker, Consumer, Producer, TopicPartition
from ottla.client.metrics.descriptions import GROUPS
from ottla.prometheus import ClientCollector, prometheus_name


def scraped(collector: ClientCollector) -> dict[tuple[str, ...], float]:
    """Values by name and labels, as the text says them."""
    registry = CollectorRegistry()
    registry.register(collector)
    text = generate_latest(registry).decode()
    return {
        (sample.name, *(value for label, value in sorted(sample.labels.items()) if label != "client_id")): sample.value
        for each in text_string_to_metric_families(text)
        for sample in each.samples
    }


def test_a_program_s_clients_are_read_together() -> None:
    with (
        Broker() as broker,
        Producer(broker.client_settings()) as producer,
        Consumer(broker.client_settings()) as consumer,
    ):
        producer.send("orders", b"tea").result(30)
        consumer.assign([TopicPartition("orders", 0)])
        consumer.seek_to_beginning()
        while not consumer.poll(5):
            pass
        values = scraped(ClientCollector(producer, consumer))
    assert values["kafka_producer_topic_record_send_total", "orders"] == 1
    assert values["kafka_consumer_fetch_manager_records_consumed_total", "orders"] == 1
    assert ("kafka_consumer_fetch_manager_records_consumed_total",) not in values
    assert values["kafka_consumer_fetch_manager_records_lag", "0", "orders"] == 0
    assert 0 < values["kafka_producer_request_latency_max_seconds",] < 30
    assert not [name for name, *_ in values if "rate" in name.replace("compression_rate_avg", "")]
    assert 0 < values["kafka_producer_metadata_wait_time_seconds_total",] < 30


def test_a_garbage_collected_client_is_no_longer_reported() -> None:
    with Broker() as broker:
        producer = Producer(broker.client_settings())
        collector = ClientCollector(producer)
        assert scraped(collector)
        producer.close()
        del producer
        gc.collect()
        assert scraped(collector) == {}


@pytest.mark.parametrize(
    ("group", "name", "wanted"),
    [
        ("producer-metrics", "outgoing-byte-total", "kafka_producer_outgoing_bytes"),
        ("producer-metrics", "batch-size-avg", "kafka_producer_batch_size_avg_bytes"),
        ("consumer-metrics", "metadata-age", "kafka_consumer_metadata_age_seconds"),
        ("consumer-metrics", "last-poll-seconds-ago", "kafka_consumer_last_poll_seconds_ago"),
        (
            "consumer-coordinator-metrics",
            "rebalance-latency-total",
            "kafka_consumer_coordinator_rebalance_latency_seconds",
        ),
        ("admin-client-metrics", "request-total", "kafka_admin_client_request"),
    ],
)
def test_units_are_in_the_names(group: str, name: str, wanted: str) -> None:
    assert prometheus_name(group, name) == wanted


def test_no_two_metrics_have_the_same_name() -> None:
    names = [
        prometheus_name(group, name) for group, all_names in GROUPS.items() for name in all_names if "-rate" not in name
    ]
    assert len(names) == len(set(names))
