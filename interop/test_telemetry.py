"""Foreign clients push metrics to our broker (KIP-714), and `/metrics` exposes them.

Ours push to Kafka by the same names.
"""

from __future__ import annotations

import subprocess
import urllib.request
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import confluent_kafka as ck
import pytest

from interop.java_programs import compiled
from interop.kafka_tools import TOOLS
from ottla import Admin, Broker, Consumer, Producer
from ottla.client.admin import ConfigResource
from ottla.errors import UnsupportedVersionError
from ottla.free_ports import free_port
from ottla.kafka_id import text_of
from rivals import apache_kafka as rival
from rivals.apache_kafka import ApacheKafka, java
from tests.patience import eventually

KAFKAS = "org.apache.kafka."
TOLD, SENT = "kafka_client_telemetry_", "producer_topic_record_send_total"


class Place(NamedTuple):
    """A broker, and the page on which it exposes the metrics that it received."""

    bootstrap_servers: str
    page: str

    def read_lines(self, metric: str, client_id: str) -> list[str]:
        """Return the lines of one metric of one client."""
        with urllib.request.urlopen(self.page, timeout=20) as answer:
            lines = answer.read().decode().splitlines()
        return [line for line in lines if line.startswith(f"{TOLD}{metric}{{") and f'client_id="{client_id}"' in line]


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    """A broker that subscribes to all metrics with a short interval."""
    port = free_port()
    with Broker(metrics_listen=f"127.0.0.1:{port}") as broker:
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.alter_configs({ConfigResource("client-metrics", "all"): {"metrics": "*", "interval.ms": 200}})
        yield Place(broker.bootstrap_servers, f"http://127.0.0.1:{port}/metrics")


def test_librdkafka_pushes_its_metrics(place: Place) -> None:
    producer = ck.Producer({"bootstrap.servers": place.bootstrap_servers, "client.id": "librdkafka"})
    producer.produce("t", b"x")
    eventually(lambda: place.read_lines("producer_request_latency_max", "librdkafka"))
    assert producer.flush(30) == 0


def test_java_pushes_its_counters_and_measurements(place: Place) -> None:
    load = ("--topic", "t", "--num-records", "100000", "--record-size", "10", "--throughput", "50")
    at = ("--bootstrap-server", place.bootstrap_servers, "--command-property", "client.id=java")
    with subprocess.Popen(java(f"{TOOLS}.ProducerPerformance", *load, *at), stdout=subprocess.DEVNULL) as running:
        try:
            eventually(lambda: any(count_in(line) > 0 for line in place.read_lines(SENT, "java")), 60)
        finally:
            running.kill()
    assert all('topic="t"' in line for line in place.read_lines(SENT, "java"))
    assert {count_in(line) for line in place.read_lines("producer_buffer_total_bytes", "java")} == {32 * 1024 * 1024}


class PushedMetric(NamedTuple):
    """One metric that Kafka's plugin received, decoded by Google's library."""

    client_id: str
    instance_id: str
    terminating: str
    labels: str
    name: str
    kind: str
    value: str
    attributes: str


@pytest.fixture(scope="module")
def kafka() -> Iterator[ApacheKafka]:
    """A broker with a metrics plugin that subscribes to all metrics with a short interval."""
    rival.fetch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rival, "java", partial(java, classes=str(compiled())))
        with rival.apache_kafka({"metric.reporters": "Pushed"}) as kafka:
            with Admin(bootstrap_servers=kafka.bootstrap_servers, enable_metrics_push=False) as admin:
                admin.alter_configs({ConfigResource("client-metrics", "all"): {"metrics": "*", "interval.ms": "200"}})
            yield kafka


def pushed(kafka: ApacheKafka, client_id: str) -> list[PushedMetric]:
    """Return all metrics that one client has pushed so far, without a line that is still incomplete."""
    lines = (kafka.directory.parent / "output").read_text(errors="replace").splitlines(keepends=True)
    reported = [
        line[:-1].split("\t") for line in lines if line.startswith(f"PUSHED\t{client_id}\t") and line.endswith("\n")
    ]
    assert all(len(words) == 9 for words in reported), reported
    return [PushedMetric(*words[1:]) for words in reported]


def sum_of(kafka: ApacheKafka, client_id: str, name: str) -> float:
    return sum(float(reported.value) for reported in pushed(kafka, client_id) if reported.name == name)


def test_ours_push_the_same_metrics_to_apache_kafka_as_javas(kafka: ApacheKafka) -> None:
    at, sent, eaten = kafka.bootstrap_servers, f"{KAFKAS}producer.record.send.total", f"{KAFKAS}consumer.fetch.manager."
    with (
        Producer(bootstrap_servers=at, client_id="hands") as producer,
        Consumer(
            bootstrap_servers=at, client_id="eyes", group_id="g", client_rack="r1", auto_offset_reset="earliest"
        ) as consumer,
    ):
        consumer.subscribe(["pushed"])
        for _ in range(5):
            producer.send("pushed", b"x").result(60)
        eventually(lambda: sum_of(kafka, "hands", sent) == 5)
        eventually(lambda: (consumer.poll(0.05), sum_of(kafka, "eyes", f"{eaten}records.consumed.total") == 10)[1])
        assert {pushed_values.instance_id for pushed_values in pushed(kafka, "hands")} == {
            text_of(producer.client_instance_id())
        }
    pushed_values = pushed(kafka, "hands")
    assert {each.kind for each in pushed_values if each.name == sent} == {"AGGREGATION_TEMPORALITY_DELTA/true"}
    assert {each.attributes for each in pushed_values if each.name == f"{KAFKAS}producer.topic.byte.total"} == {
        "topic=pushed"
    }
    labels = pushed(kafka, "eyes")[-1].labels
    assert labels.startswith("client_rack=r1,group_id=g,group_member_id=")


def test_ours_push_nothing_to_a_kafka_without_a_plugin(apache_kafka: str) -> None:
    with (
        Producer(bootstrap_servers=apache_kafka) as producer,
        pytest.raises(UnsupportedVersionError, match="does not accept client metrics"),
    ):
        producer.client_instance_id()


def count_in(line: str) -> float:
    return float(line.split()[-1])
