"""Other people's clients push their metrics to our broker (KIP-714), and `/metrics` shows them."""

from __future__ import annotations

import subprocess
import urllib.request
from collections.abc import Iterator
from typing import NamedTuple

import confluent_kafka as ck
import pytest

from interop.kafka_tools import TOOLS
from ottla import Admin, Broker
from ottla.client.admin import ConfigResource
from ottla.free_ports import free_port
from rivals.apache_kafka import java
from tests.patience import eventually

TOLD, SENT = "kafka_client_telemetry_", "producer_topic_record_send_total"


class Place(NamedTuple):
    """A broker, and where it tells what it was told."""

    bootstrap_servers: str
    page: str

    def tells(self, metric: str, client_id: str) -> list[str]:
        """Lines of one metric of one client."""
        with urllib.request.urlopen(self.page, timeout=20) as answer:
            lines = answer.read().decode().splitlines()
        return [line for line in lines if line.startswith(f"{TOLD}{metric}{{") and f'client_id="{client_id}"' in line]


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    """It wants everything, and often."""
    port = free_port()
    with Broker(metrics_listen=f"127.0.0.1:{port}") as broker:
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.alter_configs({ConfigResource("client-metrics", "all"): {"metrics": "*", "interval.ms": 200}})
        yield Place(broker.bootstrap_servers, f"http://127.0.0.1:{port}/metrics")


def test_librdkafka_pushes_what_it_measures(place: Place) -> None:
    producer = ck.Producer({"bootstrap.servers": place.bootstrap_servers, "client.id": "librdkafka"})
    producer.produce("t", b"x")
    eventually(lambda: place.tells("producer_request_latency_max", "librdkafka"))
    assert producer.flush(30) == 0


def test_java_pushes_what_it_counts_and_measures(place: Place) -> None:
    load = ("--topic", "t", "--num-records", "100000", "--record-size", "10", "--throughput", "50")
    at = ("--bootstrap-server", place.bootstrap_servers, "--command-property", "client.id=java")
    with subprocess.Popen(java(f"{TOOLS}.ProducerPerformance", *load, *at), stdout=subprocess.DEVNULL) as running:
        try:
            eventually(lambda: any(count_in(line) > 0 for line in place.tells(SENT, "java")), 60)
        finally:
            running.kill()
    assert all('topic="t"' in line for line in place.tells(SENT, "java"))
    assert {count_in(line) for line in place.tells("producer_buffer_total_bytes", "java")} == {32 * 1024 * 1024}


def count_in(line: str) -> float:
    return float(line.split()[-1])
