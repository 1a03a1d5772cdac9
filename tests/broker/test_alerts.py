"""Our alert rules are valid, and use metrics and labels that /metrics really has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import pytest
from prometheus_client.parser import text_string_to_metric_families

from ottla import Admin, Broker, NewTopic, Producer
from ottla.broker.introspection.metrics import list_controller_figures
from ottla.broker.serve import controller_state
from ottla.cli.main import root
from ottla.model import TopicPartition
from tests.broker.promql import names_and_labels_in
from tests.broker.quorum_nodes import Place, new_hosts
from tests.broker.test_metrics import address, broker, get, metrics, share_records
from tests.broker.wire import Wire
from tests.patience import eventually

yaml = pytest.importorskip("ruamel.yaml")
RULES = Path(__file__).parents[2] / "docs" / "grafana" / "alerts.yml"
PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
OF_PROMETHEUS, OF_EACH_TARGET = {"up"}, {"job", "instance"}
PIPELINES = "kafka_connect_"
"""Metrics that the manager of pipelines exports; docs/metrics.md is compared with them elsewhere."""
__all__ = ["address", "broker"]


@pytest.fixture(scope="module")
def rules() -> list[Any]:
    document = yaml.YAML(typ="safe").load(RULES.read_text())
    return [rule for group in document["groups"] for rule in group["rules"]]


def test_each_rule_uses_metrics_and_labels_that_exist(
    rules: list[Any], broker: Broker, address: str, tmp_path: Path
) -> None:
    labels: dict[str, set[str]] = {}
    with Producer(broker.client_settings()) as producer, Admin(broker.client_settings()) as admin:
        producer.send("orders", b"v").result()
        admin.alter_consumer_group_offsets("billing", {TopicPartition("orders", 0): 1})
        with Wire(broker.bootstrap_servers) as wire:
            share_records(wire, "u")
            for family in text_string_to_metric_families(get(address, "/metrics")[1]):
                for sample in family.samples:
                    labels.setdefault(sample.name, set()).update(sample.labels)
    (host,) = new_hosts(1)
    place = Place(tmp_path, 1, host)
    place.format([place.voter])
    with place.serving() as server:
        eventually(lambda: place.leads())
        assert server.controller is not None
        labels |= {
            each.name: set(each.labels) for each in list_controller_figures(*controller_state(server.controller.driver))
        }
    # This one has samples only after a lock has expired; its labels are those of deliveries.
    labels["kafka_server_share_group_metrics_acquisition_lock_timeouts_total"] = {"group"}
    # These have samples only after an error, and with TLS.
    labels["kafka_network_request_metrics_errors_total"] = {"request", "error"}
    labels["ottla_certificate_expiry_timestamp_seconds"] = {"listener"}
    for rule in rules:
        names, used = names_and_labels_in(rule["expr"])
        assert names, rule
        exported = {name for name in names - OF_PROMETHEUS if not name.startswith(PIPELINES)}
        assert exported <= labels.keys(), rule["alert"]
        assert used <= set().union(OF_EACH_TARGET, *(labels[name] for name in exported)), rule["alert"]
        assert all(f"`{name}`" in PAGE.read_text() for name in names if name.startswith(PIPELINES))


def test_each_rule_advises_commands_that_exist(rules: list[Any]) -> None:
    advised = {text for rule in rules for text in re.findall(r"`ottla ([^`]+)`", rule["annotations"]["description"])}
    assert advised
    for text in advised:
        command: Any = root
        for word in text.split():
            if not isinstance(command, click.Group):
                break
            command = command.get_command(click.Context(command), word)
            assert command is not None, text


def test_each_rule_is_complete_and_documented(rules: list[Any]) -> None:
    names = [rule["alert"] for rule in rules]
    assert len(names) == len(set(names))
    for rule in rules:
        assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert rule["annotations"].keys() == {"summary", "description"}
        assert f"`{rule['alert']}`" in PAGE.read_text()


def test_the_lag_of_a_group_and_the_room_on_disk_are_measured(broker: Broker, address: str) -> None:
    with Admin(broker.client_settings()) as admin, Producer(broker.client_settings()) as producer:
        admin.create_topics([NewTopic("orders")])
        for _ in range(5):
            producer.send("orders", b"v").result()
        admin.alter_consumer_group_offsets("billing", {TopicPartition("orders", 0): 2})
        found = metrics(address)
    assert found["kafka_server_group_coordinator_metrics_committed_offset", "0", "billing", "orders"] == 2
    usable = [value for name, value in found.items() if name[0] == "kafka_log_log_directory_usable_bytes"]
    total = [value for name, value in found.items() if name[0] == "kafka_log_log_directory_total_bytes"]
    assert 0 < usable[0] <= total[0]
    assert found["kafka_log_log_manager_offline_log_directory_count",] == 0


@pytest.mark.parametrize("wrong", ["a", "a >", "a > 1 and", "a - on (b) c > 1", "a[5x] > 1", "sum by (a > 1"])
def test_an_invalid_condition_is_detected(wrong: str) -> None:
    with pytest.raises((SyntaxError, AssertionError)):
        names_and_labels_in(wrong)
