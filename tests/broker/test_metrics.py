"""The metrics of a broker, read over HTTP as by Prometheus."""

from __future__ import annotations

import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from types import ModuleType

import pytest
from cryptography import x509
from prometheus_client.parser import text_string_to_metric_families

from ottla import Admin, Broker, Consumer, NewTopic, Producer
from ottla.broker.introspection.metrics import list_controller_figures
from ottla.broker.introspection.metrics_page import WORKERS, MetricsPage
from ottla.broker.network_server import request_latencies
from ottla.broker.serve import controller_state
from ottla.errors import ConfigError, ErrorCode
from ottla.free_ports import free_port
from ottla.model import TopicPartition
from tests.broker.quorum_nodes import Place, new_hosts
from tests.broker.share.consumer import ACCEPT, RELEASE, Sharer, configure
from tests.broker.share.requests import GROUP, join
from tests.broker.wire import Wire
from tests.certificates import LATER, Authority
from tests.patience import eventually
from tests.plain import plain

DOCUMENTED = Path(__file__).parents[2] / "docs" / "metrics.md"
Metrics = dict[tuple[str, ...], float]


def get(address: str, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def metrics(address: str) -> Metrics:
    """Values by name and labels."""
    status, text = get(address, "/metrics")
    assert status == 200, text
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for each in text_string_to_metric_families(text)
        for sample in each.samples
    }


@pytest.fixture
def address() -> str:
    return f"127.0.0.1:{free_port()}"


@pytest.fixture
def broker(address: str) -> Iterator[Broker]:
    with Broker(metrics_listen=address) as broker:
        yield broker


def share_records(wire: Wire, topic: str) -> Sharer:
    """Let a member of a share group acquire five records of a new topic and accept the first two."""
    wire.create(topic)
    configure(wire, {"share.auto.offset.reset": "earliest"})
    join(wire, topics=[topic])
    for number in range(5):
        assert wire.produce(topic, b"%d" % number).error_code == 0
    sharer = Sharer(wire, topic=topic)
    assert sharer.fetch(max_wait_ms=30_000).ranges == [(0, 4, 1)]
    assert sharer.acknowledge((0, 1, ACCEPT)) == 0
    return sharer


def test_partitions_records_requests_and_connections_are_counted(broker: Broker, address: str) -> None:
    with Admin(broker.client_settings()) as admin, Producer(broker.client_settings()) as producer:
        admin.create_topics([NewTopic("orders", 3)])
        for number in range(5):
            producer.send("orders", b"%d" % number, partition=1).result()
        found = metrics(address)
        assert found["kafka_server_replica_manager_partition_count",] == 3
        assert found["kafka_server_replica_manager_leader_count",] == 3
        assert found["kafka_server_replica_manager_under_replicated_partitions",] == 0
        assert found["kafka_log_log_end_offset", "1", "orders"] == 5
        assert found["kafka_log_log_size_bytes", "1", "orders"] > 0
        assert found["kafka_network_request_metrics_requests_total", "Produce"] == 5
        assert found["kafka_network_request_metrics_requests_total", "CreateTopics"] == 1
        assert found["kafka_server_socket_server_metrics_connection_count", "PLAINTEXT"] >= 2


def test_response_times_are_counted_in_buckets_per_api(broker: Broker, address: str) -> None:
    name = "kafka_network_request_metrics_total_time_seconds"
    with Admin(broker.client_settings()) as admin, Producer(broker.client_settings()) as producer:
        admin.create_topics([NewTopic("orders")])
        for number in range(5):
            producer.send("orders", b"%d" % number).result()
        found = metrics(address)
    for api, count in (("Produce", 5), ("CreateTopics", 1)):
        assert found[f"{name}_count", api] == found[f"{name}_bucket", "+Inf", api] == count
        assert found[f"{name}_sum", api] > 0
        assert found[f"{name}_bucket", "0.0005", api] <= found[f"{name}_bucket", "10.0", api] <= count


def test_the_time_of_a_fetch_includes_its_wait(broker: Broker, address: str) -> None:
    name = "kafka_network_request_metrics_total_time_seconds"
    settings = broker.client_settings()
    with Producer(settings) as producer, Consumer(settings, group_id="g", auto_offset_reset="earliest") as consumer:
        producer.send("orders", b"v").result()
        consumer.subscribe(["orders"])

        def waited() -> bool:
            consumer.poll(0.05)
            found = metrics(address)
            short = found.get((f"{name}_bucket", "0.1", "Fetch"), 0)
            return found.get((f"{name}_count", "Fetch"), 0) > short  # fetch.max.wait.ms is 500

        eventually(waited)


@pytest.mark.parametrize("form", [request_latencies, plain("ottla.broker.network_server.request_latencies")])
def test_a_bucket_counts_responses_up_to_its_bound(form: ModuleType) -> None:
    noted = form.Latencies()
    for seconds in (0.0005, 0.0006, 3.0):
        noted.record(18, seconds)
    noted.record(18, 60.0)
    noted.record(-1, 60.0)
    assert list(noted.buckets()) == [18]
    buckets, total = noted.buckets()[18]
    counted = dict(buckets)
    assert [counted[bound] for bound in ("0.0005", "0.001", "2.5", "5.0", "10.0", "+Inf")] == [1, 2, 2, 3, 3, 4]
    assert total == pytest.approx(63.0011)


def test_a_waiting_fetch_is_counted(broker: Broker, address: str) -> None:
    with Admin(broker.client_settings()) as admin, Consumer(broker.client_settings(), group_id="g") as consumer:
        admin.create_topics([NewTopic("orders")])
        consumer.subscribe(["orders"])

        def waits() -> bool:
            consumer.poll(0.05)
            return metrics(address)["kafka_server_delayed_fetch_purgatory_size",] == 1

        eventually(waits)


def test_the_health_and_readiness_pages_are_served(broker: Broker, address: str) -> None:
    assert get(address, "/healthz") == (200, "ok\n")
    assert get(address, "/readyz") == (200, "ready\n")
    assert get(address, "/")[0] == 404


def test_the_metrics_page_stops_and_starts_with_the_broker(broker: Broker, address: str) -> None:
    broker.close()
    with pytest.raises(urllib.error.URLError):
        get(address, "/healthz")
    broker.start()
    assert get(address, "/readyz")[0] == 200


def test_a_blocked_event_loop_is_reported(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.broker.introspection.metrics_page.LOOP_SECONDS", 0.01)
    page = MetricsPage(address)
    page.show(lambda work: None, list)
    try:
        for path in ("/healthz", "/readyz", "/metrics"):
            status, text = get(address, path)
            assert (status, "the broker's loop has not answered within" in text) == (503, True)
    finally:
        page.close()


def test_a_fenced_broker_is_not_ready(address: str) -> None:
    page = MetricsPage(address)
    page.show(lambda work: work(), list)
    try:
        assert get(address, "/readyz") == (503, "not ready: the controllers have not let this broker in yet\n")
        assert get(address, "/healthz")[0] == 200
    finally:
        page.close()


def test_an_unavailable_address_is_a_one_line_error(broker: Broker, address: str) -> None:
    with pytest.raises(
        ConfigError, match=f"cannot listen on {address}: the port is taken .* with metrics.listen, or 0 for"
    ):
        Broker(metrics_listen=address).start()
    with pytest.raises(ConfigError, match=r"metrics\.listen = 'here'"):
        Broker(metrics_listen="here").start()
    with pytest.raises(ConfigError, match="the port is taken"):
        Broker(listen=broker.bootstrap_servers, metrics_listen=f"127.0.0.1:{free_port()}").start()
    assert not [each for each in threading.enumerate() if each.name == "ottla-metrics" and not each.daemon]


def test_a_controller_has_metrics_of_its_quorum(tmp_path: Path) -> None:
    (host,) = new_hosts(1)
    place = Place(tmp_path, 1, host)
    place.format([place.voter])
    with place.serving() as server:
        eventually(lambda: place.leads())
        assert server.controller is not None
        reported = {
            each.name: each.samples[0][1]
            for each in list_controller_figures(*controller_state(server.controller.driver))
        }
    assert reported["kafka_raft_active_controller_count"] == reported["kafka_raft_current_leader"] == 1
    assert reported["kafka_raft_voter_count"] == 1
    assert (
        reported["kafka_controller_active_broker_count"] == reported["kafka_controller_offline_partitions_count"] == 0
    )
    assert all(f"`{name}`" in DOCUMENTED.read_text() for name in reported)


def test_each_metric_is_documented_and_nothing_else(broker: Broker, address: str) -> None:
    names = {name for name, *_ in metrics(address) if name.startswith("kafka_")}
    with Producer(broker.client_settings()) as producer:
        producer.send("t", b"x").result()
        with Admin(broker.client_settings()) as admin:
            admin.alter_consumer_group_offsets("billing", {TopicPartition("t", 0): 1})
        with Wire(broker.bootstrap_servers) as wire:
            sharer = share_records(wire, "u")
            assert broker.server is not None
            assert broker.server.node.share_partitions.expire_locks(GROUP) == 3
            assert sharer.fetch(max_wait_ms=30_000).ranges == [(2, 4, 2)]
            assert wire.produce("t", b"x", partition=7).error_code
            names |= {name for name, *_ in metrics(address) if name.startswith("kafka_")}
    text = DOCUMENTED.read_text()
    histogram = "kafka_network_request_metrics_total_time_seconds"
    assert {f"{histogram}_{part}" for part in ("bucket", "count", "sum")} <= names
    names = {histogram if name.startswith(histogram) else name for name in names}
    others = ("kafka_raft_", "kafka_controller_", "kafka_connect_", "kafka_producer_", "kafka_consumer_")
    documented = {part for part in text.split("`") if part.startswith("kafka_") and not part.startswith(others)}
    assert names == documented


def test_errors_in_responses_are_counted_by_api_and_code(broker: Broker, address: str) -> None:
    with Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        assert wire.produce("t", b"x").error_code == 0
        for _ in range(2):
            assert wire.produce("t", b"x", partition=7).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        wire.metadata("absent")
        found = metrics(address)
    errors = "kafka_network_request_metrics_errors_total"
    assert found[errors, "Produce", "UNKNOWN_TOPIC_OR_PARTITION"] == 2
    assert found[errors, "Metadata", "UNKNOWN_TOPIC_OR_PARTITION"] == 1
    assert sum(1 for name, *_ in found if name == errors) == 2


def test_the_end_of_a_certificate_is_reported_and_that_of_a_new_one(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    first, second = authority.certificate(), authority.certificate(expired=True)
    file = authority.write("own.pem", first.chain + first.key)
    address = f"127.0.0.1:{free_port()}"
    name = ("ottla_certificate_expiry_timestamp_seconds", "SSL")
    with Broker(listen="SSL://127.0.0.1:0", ssl_keystore_location=file, metrics_listen=address):
        (expected, *_) = x509.load_pem_x509_certificates(first.chain.encode())
        assert metrics(address)[name] == expected.not_valid_after_utc.timestamp()
        authority.write("own.pem", second.chain + second.key)
        assert metrics(address)[name] == LATER.timestamp()


def test_share_groups_are_counted(broker: Broker, address: str) -> None:
    with Wire(broker.bootstrap_servers) as wire:
        sharer = share_records(wire, "t")
        assert sharer.acknowledge((2, 2, RELEASE)) == 0
        assert sharer.fetch(max_wait_ms=30_000).ranges == [(2, 2, 2)]
        found = metrics(address)
    place, group = ("0", GROUP, "t"), "kafka_server_share_group_metrics"
    partition = "kafka_server_share_partition_metrics"
    assert found[f"{partition}_in_flight_message_count", *place] == 3
    assert found[f"{partition}_start_offset", *place] == 2
    assert found[f"{partition}_lag", *place] == 3
    assert found[f"{partition}_delivery_count", "0", "1", GROUP, "t"] == 2
    assert found[f"{partition}_delivery_count", "0", "2", GROUP, "t"] == 1
    assert found[f"{group}_deliveries_total", GROUP] == 6
    assert found[f"{group}_record_acknowledgements_total", "accept", GROUP] == 2
    assert found[f"{group}_record_acknowledgements_total", GROUP, "release"] == 1
    assert found["kafka_server_share_session_cache_share_sessions_count",] == 1
    assert found["kafka_server_group_coordinator_metrics_group_count", "Stable", "share"] == 1
    assert found["kafka_server_group_coordinator_metrics_member_count", "share"] == 1


@pytest.mark.usefixtures("address")
def test_a_frame_without_an_api_key_is_not_counted_and_closes_one_connection(broker: Broker) -> None:
    with Wire(broker.bootstrap_servers) as garbage, Wire(broker.bootstrap_servers) as other:
        garbage.send_frame(b"")
        assert garbage.hung_up()
        assert other.metadata().topics == []


def test_without_the_setting_nothing_is_counted() -> None:
    with Broker() as broker:
        assert broker.server is not None
        assert broker.server.handler.counts is None


def test_silent_connections_to_the_page_occupy_no_thread_and_delay_no_request(broker: Broker, address: str) -> None:
    host, _, port = address.rpartition(":")
    threads = threading.active_count()
    with ExitStack() as stack:
        silent = [stack.enter_context(socket.create_connection((host, int(port)), 30)) for _ in range(200)]
        for each in silent[::2]:
            each.sendall(b"GET /metrics HTTP/1.1\r\nHost: ")
        assert metrics(address)
        assert threading.active_count() <= threads + WORKERS
        silent[0].settimeout(30)
        with suppress(ConnectionResetError):  # if the bytes of its unfinished request were not read before
            assert silent[0].recv(1) == b"", "the oldest made room for others"


def test_an_invalid_http_request_is_rejected_with_the_reason(broker: Broker, address: str) -> None:
    host, _, port = address.rpartition(":")
    for said, status in ((b"POST /metrics HTTP/1.1\r\n\r\n", b"405"), (b"hello\r\n\r\n", b"400")):
        with socket.create_connection((host, int(port)), 30) as client:
            client.sendall(said)
            with client.makefile("rb") as stream:
                answer = stream.read()
        assert answer.startswith(b"HTTP/1.1 " + status)
