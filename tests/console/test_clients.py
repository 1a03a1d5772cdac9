"""Clients that push metrics, as the console's page requests them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, ClassVar, cast

import pytest

from ottla import Admin, Broker, Producer
from ottla.client.admin import ClusterDescription, ConfigEntry, ConfigResource
from ottla.console.metrics_pages import pages_of, place_of, read_page
from ottla.console.pushed_view import (
    PREFIX,
    client_view,
    clients_for_list,
    clients_in,
    clients_view,
    find_client,
    numbers_in,
)
from ottla.free_ports import free_port
from ottla.kafka_id import text_of
from ottla.model import Node
from tests.console.conftest import Browser, browser_of
from tests.patience import eventually

WHO = 'client_id="web",client_instance_id="i1"'
PAGE = f"""# HELP kafka_client_telemetry_producer_record_send_rate As reported by clients.
# TYPE kafka_client_telemetry_producer_record_send_rate gauge
kafka_client_telemetry_instances 2.0
kafka_client_telemetry_producer_record_send_rate{{{WHO},transactional_id="t1"}} 12.5
kafka_client_telemetry_producer_topic_record_send_rate{{{WHO},transactional_id="t1",topic="a"}} 99.0
kafka_client_telemetry_producer_request_rate{{{WHO},transactional_id="t1",node_id="node-1"}} 7.0
kafka_client_telemetry_producer_request_latency_avg{{{WHO},transactional_id="t1"}} 3.5
kafka_client_telemetry_consumer_fetch_manager_records_lag_max{{client_id="\\"q\\\\\\n",client_instance_id="i2",group_id="g"}} 4.0
kafka_server_topic_count 3.0
"""


def test_clients_are_found_on_their_brokers_pages() -> None:
    clients = clients_in({1: PAGE, 2: PAGE.replace("12.5", "1.5")})
    seen = clients_view(clients.values(), "", 10)
    assert seen["count"] == 2
    odd, web = seen["clients"]
    assert (odd["client_id"], odd["kind"], odd["of"], odd["lag"]) == ('"q\\\n', "consumer", "g", 4.0)
    assert (web["kind"], web["of"], web["brokers"]) == ("producer", "t1", [1, 2])
    assert (web["records"], web["requests"], web["latency_ms"], web["lag"]) == (12.5, None, 3.5, None)
    assert [row["client_id"] for row in clients_view(clients.values(), "t1", 10)["clients"]] == ["web"]
    assert clients_view(clients.values(), "", 1)["clients"] == [odd]


def test_a_list_reads_only_what_it_shows_and_is_the_same() -> None:
    pages = {1: PAGE, 2: PAGE.replace("12.5", "1.5")}
    whole, listed = clients_in(pages), clients_for_list(pages)
    assert clients_view(listed.values(), "", 10) == clients_view(whole.values(), "", 10)
    many = "".join(f"{PREFIX}producer_x{n}{{{WHO}}} 1.0\n" for n in range(50))
    (client,) = clients_for_list({1: many}).values()
    assert (client.kind, [number.name for _, number in client.numbers]) == ("producer", ["producer_x0"])
    assert find_client(pages, "i1") == whole["i1"]
    assert find_client(pages, "nobody") is None


def test_one_client_is_shown_with_all_of_its_metrics() -> None:
    seen = client_view(clients_in({1: PAGE})["i1"])
    assert seen["facts"] == {"transactional_id": "t1"}
    assert [(row["name"], row["of"], row["value"]) for row in seen["numbers"]] == [
        ("producer_record_send_rate", "", 12.5),
        ("producer_request_latency_avg", "", 3.5),
        ("producer_request_rate", "node_id node-1", 7.0),
        ("producer_topic_record_send_rate", "topic a", 99.0),
    ]


def test_values_that_are_no_client_metrics_are_skipped() -> None:
    assert list(numbers_in("kafka_client_telemetry_x{\nno\n\nkafka_client_telemetry_instances 1.0")) == []


@pytest.mark.parametrize(
    ("listen", "place"),
    [
        ("127.0.0.1:9404", ("127.0.0.1", 9404)),
        ("0.0.0.0:9404", ("b1", 9404)),
        ("[::]:1", ("b1", 1)),
        ("h:2", ("h", 2)),
    ],
)
def test_the_address_of_a_page_is_that_of_its_broker(listen: str, place: tuple[str, int]) -> None:
    assert place_of(listen, Node(1, "b1", 9092)) == place


class Other(BaseHTTPRequestHandler):
    """Another server on the port; it answers with `status`."""

    status: ClassVar = 302

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, format: str, *given: Any) -> None:
        """Log nothing."""


def test_a_page_that_leads_elsewhere_is_not_followed() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Other) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            with pytest.raises(OSError, match="HTTP status 302"):
                read_page(("127.0.0.1", server.server_port))
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def pushing() -> Iterator[tuple[str, Browser]]:
    """A broker that requests metrics at a short interval, and a console for it."""
    with Broker(metrics_listen="127.0.0.1:0") as broker, browser_of(broker.bootstrap_servers) as browser:
        with Admin(bootstrap_servers=broker.bootstrap_servers, enable_metrics_push=False) as admin:
            wanted = {"metrics": "*", "interval.ms": 100, "match": "client_id=tea.*"}
            admin.alter_configs({ConfigResource("client-metrics", "teas"): wanted})
        yield broker.bootstrap_servers, browser


def test_a_producer_is_seen_with_what_it_pushes(pushing: tuple[str, Browser]) -> None:
    address, browser = pushing
    with Producer(bootstrap_servers=address, client_id="tea-1") as producer:
        producer.send("orders", b"v").result(60)
        eventually(lambda: any(row["records"] for row in browser.ask("clients")["clients"]))
        instance = text_of(producer.client_instance_id())
        seen = browser.ask("clients", text="tea")
        assert [row["instance"] for row in seen["clients"]] == [instance]
        assert (seen["wrong"], seen["brokers"]) == ([], [1])
        assert seen["subscriptions"] == {"teas": {"interval.ms": "100", "match": "client_id=tea.*", "metrics": "*"}}
        names = {row["name"] for row in browser.ask("client", instance=instance)["numbers"]}
        assert {"producer_record_send_total", "producer_topic_byte_total"} <= names
    assert browser.ask("client", instance="nobody") is None


def test_a_cluster_without_metrics_pages_is_reported(browser: Browser) -> None:
    assert browser.ask("clients") == {"count": 0, "clients": [], "subscriptions": {}, "brokers": [], "wrong": []}


class AnAdmin:
    """An admin client of two brokers: one with the address of a page that is no broker's, one without a page."""

    def __init__(self, port: int) -> None:
        self._told = {"1": f"127.0.0.1:{port}", "2": ""}

    def describe_cluster(self) -> ClusterDescription:
        return ClusterDescription((Node(1, "b1", 1), Node(2, "b2", 2)), None, "c")

    def describe_configs(self, resources: Iterable[ConfigResource]) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        return {
            each: {"metrics.listen": ConfigEntry("metrics.listen", self._told[each.name], "", False, False)}
            for each in resources
        }


def test_a_page_that_cannot_be_read_is_named() -> None:
    port = free_port()
    pages, (wrong,) = pages_of(cast(Admin, AnAdmin(port)))
    assert pages == {}
    assert wrong.startswith(f"the metrics of broker 1 cannot be read at 127.0.0.1:{port}: ")
