"""Configs of single consumer groups: described with their source, limited by the broker, and applied at run time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka.admin as ck
import pytest

from ottla import Admin
from ottla.broker.embedding.embedded_broker import Broker
from ottla.broker.settings.unsupported_configs import OF_GROUPS
from ottla.client.admin import ConfigResource
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.messages import alter_configs
from ottla.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.protocol.messages.list_config_resources import ListConfigResourcesRequest
from tests.broker.wire import Wire

GROUP = 32
SET, DELETE, APPEND = range(3)
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
SHARE_CONFIGS = {
    "errors.deadletterqueue.copy.record.enable": "false",
    "errors.deadletterqueue.topic.name": "",
    "share.auto.offset.reset": "latest",
    "share.delivery.count.limit": "5",
    "share.heartbeat.interval.ms": "5000",
    "share.isolation.level": "read_uncommitted",
    "share.partition.max.record.locks": "2000",
    "share.record.lock.duration.ms": "30000",
    "share.renew.acknowledge.enable": "true",
    "share.session.timeout.ms": "45000",
}
"""The configs of share groups with their defaults."""
STREAMS_CONFIGS = {
    "streams.assignment.interval.ms": "1000",
    "streams.heartbeat.interval.ms": "5000",
    "streams.initial.rebalance.delay.ms": "3000",
    "streams.num.standby.replicas": "0",
    "streams.rack.aware.assignment.tags": "",
    "streams.session.timeout.ms": "45000",
}
"""The same of streams groups."""
BOUNDS = {"group_consumer_min_session_timeout_ms": 100, "group_consumer_min_heartbeat_interval_ms": 20}


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(**BOUNDS) as broker:  # type: ignore[arg-type]
        yield broker


def change(wire: Wire, group: str, name: str, value: object = None, operation: int = SET) -> Any:
    """Return the response to one change."""
    text = None if value is None else str(value)
    wish = AlterConfigsResource(GROUP, group, [AlterableConfig(name, operation, text)])
    (answer,) = wire.ask(IncrementalAlterConfigsRequest([wish])).responses
    return answer


def describe_group(wire: Wire, group: str = "g") -> Any:
    wanted = DescribeConfigsResource(GROUP, group)
    (result,) = wire.ask(DescribeConfigsRequest([wanted], include_synonyms=True)).results
    return result


def layers(wire: Wire, name: str) -> list[tuple[str, str | None, int]]:
    """A config's value by each of its sources, the one that counts first."""
    (config,) = (each for each in describe_group(wire).configs if each.name == name)
    return [(each.name, each.value, each.source) for each in config.synonyms]


def beat(wire: Wire, epoch: int = 0, group: str = "g") -> Any:
    """A member of the newer protocol joins, or lives."""
    first: dict[str, Any] = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["t"], "topic_partitions": []}
    request = ConsumerGroupHeartbeatRequest(group, "m", epoch, **(first if epoch == 0 else {}))
    return wire.ask(request)


@pytest.mark.behaviour("B8")
def test_a_group_config_overrides_the_broker_setting(wire: Wire) -> None:
    assert change(wire, "g", HEARTBEAT, 6000).error_code == 0
    assert layers(wire, HEARTBEAT)[0] == (HEARTBEAT, "6000", 8)
    assert layers(wire, HEARTBEAT)[1:] == layers(wire, HEARTBEAT)[-2:]
    assert {each[0] for each in layers(wire, HEARTBEAT)[1:]} == {f"group.{HEARTBEAT}"}
    assert change(wire, "g", HEARTBEAT, operation=DELETE).error_code == 0
    assert [each[2] for each in layers(wire, HEARTBEAT)] == [4, 5]


def test_members_get_a_changed_interval_with_their_next_heartbeat(wire: Wire) -> None:
    wire.create("t")
    epoch = beat(wire).member_epoch
    assert beat(wire, epoch, "g").heartbeat_interval_ms == 500
    change(wire, "g", HEARTBEAT, 700)
    assert beat(wire, epoch).heartbeat_interval_ms == 700
    assert beat(wire, group="other").heartbeat_interval_ms == 500
    change(wire, "g", HEARTBEAT, operation=DELETE)
    assert beat(wire, epoch).heartbeat_interval_ms == 500


def test_a_changed_session_timeout_applies_from_the_next_heartbeat_on(wire: Wire) -> None:
    wire.create("t")
    epoch = beat(wire).member_epoch
    beat(wire, group="other")
    change(wire, "g", HEARTBEAT, 50)
    change(wire, "g", SESSION, 200)
    assert beat(wire, epoch).error_code == 0
    deadline = time.monotonic() + 15
    while members(wire, "g"):
        assert time.monotonic() < deadline, "the member is still there"
    assert members(wire, "other") == 1


def members(wire: Wire, group: str) -> int:
    """Return the number of members of a group."""
    (found,) = wire.ask(ConsumerGroupDescribeRequest([group])).groups
    return len(found.members)


def test_configs_persist_and_apply_after_a_restart(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        change(wire, "g", HEARTBEAT, 700)
        epoch = beat(wire).member_epoch
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        assert layers(wire, HEARTBEAT)[0] == (HEARTBEAT, "700", 8)
        assert beat(wire, epoch).heartbeat_interval_ms == 700


def test_a_value_outside_later_limits_is_clamped(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        change(wire, "g", HEARTBEAT, 700)
    bounds = {"group_consumer_min_heartbeat_interval_ms": 1000, "group_consumer_heartbeat_interval_ms": 2000}
    with Broker(tmp_path, **bounds) as broker, Wire(broker.bootstrap_servers) as wire:  # type: ignore[arg-type]
        assert beat(wire).heartbeat_interval_ms == 1000


@pytest.mark.parametrize(
    ("group", "name", "value", "operation", "code", "reason"),
    [
        (
            "g",
            SESSION,
            99,
            SET,
            ErrorCode.INVALID_CONFIG,
            "at least 100, by group.consumer.min.session.timeout",
        ),
        (
            "g",
            SESSION,
            60_001,
            SET,
            ErrorCode.INVALID_CONFIG,
            "at most 60000, by group.consumer.max.session.timeout",
        ),
        ("g", HEARTBEAT, 19, SET, ErrorCode.INVALID_CONFIG, "at least 20, by group.consumer.min.heartbeat"),
        ("g", HEARTBEAT, 15_001, SET, ErrorCode.INVALID_CONFIG, "at most 15000, by group.consumer.max.heartbeat"),
        ("g", SESSION, 400, SET, ErrorCode.INVALID_CONFIG, f"{SESSION} must be greater than {HEARTBEAT}"),
        ("g", SESSION, "abc", SET, ErrorCode.INVALID_CONFIG, "must be a whole number"),
        ("g", SESSION, 0, SET, ErrorCode.INVALID_CONFIG, "must be at least 1"),
        ("g", SESSION, None, SET, ErrorCode.INVALID_REQUEST, f"no value is given for {SESSION}"),
        ("g", SESSION, 50_000, APPEND, ErrorCode.INVALID_CONFIG, f"{SESSION} is no list"),
        ("g", "bogus", 1, SET, ErrorCode.INVALID_CONFIG, "Unknown group config name: bogus"),
        ("g", "share.auto.offset.reset", 1, SET, ErrorCode.INVALID_CONFIG, "expected earliest, latest or by_duration"),
        ("g", "share.isolation.level", "none", SET, ErrorCode.INVALID_CONFIG, "read_committed"),
        ("g", "share.delivery.count.limit", 11, SET, ErrorCode.INVALID_CONFIG, "at most 10, by group.share.max"),
        ("g", "share.record.lock.duration.ms", 1, SET, ErrorCode.INVALID_CONFIG, "at least 15000, by group.share.min"),
        ("", SESSION, 50_000, SET, ErrorCode.INVALID_REQUEST, "groups have no default configs: name a group"),
    ],
)
def test_an_invalid_group_config_is_rejected(
    wire: Wire, group: str, name: str, value: object, operation: int, code: int, reason: str
) -> None:
    answer = change(wire, group, name, value, operation)
    assert (answer.error_code, reason in answer.error_message) == (code, True), answer
    assert not wire.ask(ListConfigResourcesRequest([GROUP])).config_resources


def test_a_replacement_resets_the_configs_that_it_does_not_name(wire: Wire) -> None:
    change(wire, "g", SESSION, 50_000)
    wish = alter_configs.AlterConfigsResource(GROUP, "g", [alter_configs.AlterableConfig(HEARTBEAT, "6000")])
    (answer,) = wire.ask(alter_configs.AlterConfigsRequest([wish])).responses
    assert answer.error_code == 0
    assert layers(wire, SESSION) == [(f"group.{SESSION}", "45000", 5)]
    assert layers(wire, HEARTBEAT)[0] == (HEARTBEAT, "6000", 8)


def test_groups_with_configs_are_listed_whether_they_exist_or_not(wire: Wire) -> None:
    change(wire, "g", SESSION, 50_000)
    listed = wire.ask(ListConfigResourcesRequest([GROUP])).config_resources
    assert [(each.resource_type, each.resource_name) for each in listed] == [(GROUP, "g")]
    change(wire, "g", SESSION, operation=DELETE)
    assert not wire.ask(ListConfigResourcesRequest([GROUP])).config_resources


def test_a_group_without_a_name_has_no_configs(wire: Wire) -> None:
    assert (describe_group(wire, "").error_code, describe_group(wire, "").error_message) == (
        42,
        "the name of a group must not be empty",
    )


def test_librdkafkas_admin_client_changes_a_group(broker: Broker, wire: Wire) -> None:
    admin = ck.AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    kind = ck.ConfigResource.Type.GROUP
    entry = ck.ConfigEntry(SESSION, "50000", incremental_operation=ck.AlterConfigOpType.SET)
    wanted = ck.ConfigResource(kind, "g", incremental_configs=[entry])
    for future in admin.incremental_alter_configs([wanted]).values():
        future.result(15)
    (found,) = (future.result(15) for future in admin.describe_configs([ck.ConfigResource(kind, "g")]).values())
    own = {name: found[name].value for name in found if name not in OF_GROUPS}
    assert {name: own[name] for name in own if name.startswith("consumer.")} == {SESSION: "50000", HEARTBEAT: "500"}
    assert {name: own[name] for name in own if not name.startswith("consumer.")} == {**SHARE_CONFIGS, **STREAMS_CONFIGS}
    assert found.keys() == own.keys() | OF_GROUPS.keys()


def test_our_admin_client_changes_a_group(broker: Broker) -> None:
    group = ConfigResource("group", "g")
    with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.alter_configs({group: {SESSION: 50_000}})
        found = admin.describe_configs([group])[group]
        assert (found[SESSION].value, found[SESSION].source) == ("50000", "DYNAMIC_GROUP_CONFIG")
        assert admin.list_config_resources(["group"]) == [group]
        admin.alter_configs({group: {SESSION: None}})
        assert admin.describe_configs([group])[group][SESSION].is_default
        with pytest.raises(KafkaError, match="Unknown group config name: bogus"):
            admin.alter_configs({group: {"bogus": 1}}, validate_only=True)
