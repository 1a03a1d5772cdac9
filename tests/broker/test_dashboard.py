"""Our Grafana dashboard uses existing metrics and valid PromQL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ottla import Admin, Broker, Consumer, NewTopic, Producer
from ottla.broker.introspection.metrics import list_controller_figures
from ottla.broker.serve import controller_state
from ottla.client.admin import ConfigResource
from tests.broker.promql import names_in
from tests.broker.quorum_nodes import Place, new_hosts
from tests.broker.test_metrics import address, broker, metrics
from tests.patience import eventually

DASHBOARD = Path(__file__).parents[2] / "docs" / "grafana" / "ottla.json"
OF_PROMETHEUS = {"up"}
"""Metrics that Prometheus itself adds to each target."""
PIPELINES = "kafka_connect_"
"""Metrics that `tests/pipelines/manager/test_metrics.py` covers."""
CLIENTS = "kafka_client_telemetry_"
__all__ = ["address", "broker"]


@pytest.fixture(scope="module")
def panels() -> list[Any]:
    found: list[Any] = json.loads(DASHBOARD.read_text())["panels"]
    return found


@pytest.fixture(scope="module")
def list_metrics(panels: list[Any]) -> set[str]:
    return {name for panel in panels for target in panel["targets"] for name in names_in(target["expr"])}


def test_each_query_uses_metrics_of_the_broker(list_metrics: set[str], broker: Broker, address: str) -> None:
    with Admin(broker.client_settings()) as admin, Producer(broker.client_settings()) as producer:
        admin.create_topics([NewTopic("orders")])
        producer.send("orders", b"v").result()
        values = {name for name, *_ in metrics(address)}
    assert {
        name for name in list_metrics if not name.startswith(("kafka_raft_", PIPELINES, CLIENTS))
    } <= values | OF_PROMETHEUS


def test_each_query_uses_metrics_that_clients_push(list_metrics: set[str], broker: Broker, address: str) -> None:
    wanted = {name for name in list_metrics if name.startswith(CLIENTS)}
    with Admin(broker.client_settings()) as admin:  # before there are clients, which request it at their start
        admin.alter_configs({ConfigResource("client-metrics", "all"): {"metrics": "*", "interval.ms": 100}})
    with (
        Producer(broker.client_settings()) as producer,
        Consumer(broker.client_settings(), group_id="g", auto_offset_reset="earliest") as consumer,
    ):
        producer.send("orders", b"v").result()
        consumer.subscribe(["orders"])
        eventually(lambda: (consumer.poll(0.01), wanted <= {name for name, *_ in metrics(address)})[1])


def test_each_query_uses_metrics_of_a_controller(list_metrics: set[str], tmp_path: Path) -> None:
    (host,) = new_hosts(1)
    place = Place(tmp_path, 1, host)
    place.format([place.voter])
    with place.serving() as server:
        eventually(lambda: place.leads())
        assert server.controller is not None
        reported = {each.name for each in list_controller_figures(*controller_state(server.controller.driver))}
    assert {name for name in list_metrics if name.startswith("kafka_raft_")} <= reported


def test_records_are_counted_once_regardless_of_the_number_of_replicas(panels: list[Any]) -> None:
    asked = {
        target["expr"]
        for panel in panels
        for target in panel["targets"]
        if "kafka_log_log_end_offset" in target["expr"]
    }
    assert len(asked) == 2
    assert all(query.startswith("sum by (topic) (max by (job, topic, partition) (") for query in asked)


def test_panels_do_not_overlap_and_have_unique_titles(panels: list[Any]) -> None:
    places = [panel["gridPos"] for panel in panels]
    cells = [
        (x, y)
        for place in places
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    assert len({panel["title"] for panel in panels}) == len({panel["id"] for panel in panels}) == len(panels)


@pytest.mark.parametrize(
    "wrong", ["sum(rate(a[$__rate_interval])", "rate(a, b)", 'a{b=~"c"', "a b", "sum by topic (a)", "a{b}"]
)
def test_an_invalid_prometheus_query_is_detected(wrong: str) -> None:
    with pytest.raises((SyntaxError, AssertionError)):
        names_in(wrong)
