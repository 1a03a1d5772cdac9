"""Configs of brokers and groups, and invalid ones. Configs of topics are in the transcripts of the machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ottla.config import options_of
from ottla.coordination.cluster.config_change import KnownConfigs, decide
from ottla.coordination.cluster.events import ConfigChangeRequested, ConfigReplacementRequested
from ottla.coordination.cluster.group_configs import HEARTBEAT, SESSION, ConfigBound
from ottla.coordination.cluster.records import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE, ConfigRecord
from ottla.coordination.cluster.topic_request import Refusal
from ottla.errors import ErrorCode, name_of
from ottla.protocol.messages import alter_configs, incremental_alter_configs
from ottla.protocol.messages.incremental_alter_configs import APPEND, DELETE, SET, SUBTRACT
from ottla.settings_class import settings


@settings
class Settings:
    background_threads: int = 10
    """Return the number of records."""
    metric_reporters: tuple[str, ...] = ()
    """The reporters."""
    ssl_keystore_location: str | None = None
    """The path."""


OPTIONS = {option.name: option for option in options_of(Settings)}
BOUNDS = {HEARTBEAT: ConfigBound(5000, 1000, 15_000), SESSION: ConfigBound(45_000, 10_000, 60_000)}
BROKERS = {"1": {"background.threads": "4"}, "": {"metric.reporters": "a,b"}}
GROUPS = {"g": {SESSION: "20000"}}
KNOWN = KnownConfigs({}, BROKERS, GROUPS, {})
LINE = tuple[str, int, str | None]
"""A config, what to do to it, and with what."""


def changed(kind: int, name: str, *lines: LINE, **more: Any) -> tuple[dict[str, str | None], str]:
    """Return the configs in the log, and the error."""
    wanted = [incremental_alter_configs.AlterableConfig(*line) for line in lines]
    resources = [incremental_alter_configs.AlterConfigsResource(kind, name, wanted)]
    return outcome(ConfigChangeRequested(1, resources, broker_options=OPTIONS, group_bounds=BOUNDS, **more))


def replaced(kind: int, name: str, configs: Mapping[str, str | None], **more: Any) -> tuple[dict[str, str | None], str]:
    """The same of a request that names all there is to be."""
    wanted = [alter_configs.AlterableConfig(*line) for line in configs.items()]
    resources = [alter_configs.AlterConfigsResource(kind, name, wanted)]
    return outcome(ConfigReplacementRequested(1, resources, broker_options=OPTIONS, group_bounds=BOUNDS, **more))


def outcome(event: ConfigChangeRequested | ConfigReplacementRequested) -> tuple[dict[str, str | None], str]:
    decision = decide(KNOWN, event)
    ((refusal,),) = (reply.message for reply in decision.replies)
    records = {record.name: record.value for record in decision.records if isinstance(record, ConfigRecord)}
    return records, "" if refusal is None else format_refusal(refusal)


def format_refusal(refusal: Refusal) -> str:
    return f"{name_of(refusal.code)}: {refusal}"


def test_a_broker_config_is_set_deleted_and_kept_if_unchanged() -> None:
    lines: list[LINE] = [("background.threads", DELETE, None), ("ssl.keystore.location", SET, "/k")]
    assert changed(BROKER_RESOURCE, "1", *lines) == (
        {"background.threads": None, "ssl.keystore.location": "/k"},
        "",
    )
    assert changed(BROKER_RESOURCE, "1", ("background.threads", SET, "4")) == ({}, "")


def test_a_list_config_is_extended_from_its_value_or_its_default() -> None:
    assert changed(BROKER_RESOURCE, "", ("metric.reporters", APPEND, "b, c,c")) == ({"metric.reporters": "a,b,c"}, "")
    assert changed(BROKER_RESOURCE, "", ("metric.reporters", SUBTRACT, "a")) == ({"metric.reporters": "b"}, "")
    assert changed(BROKER_RESOURCE, "1", ("metric.reporters", APPEND, "x")) == ({"metric.reporters": "x"}, "")


def test_a_full_alter_resets_unnamed_configs() -> None:
    assert replaced(BROKER_RESOURCE, "1", {"metric.reporters": "x"}) == (
        {"background.threads": None, "metric.reporters": "x"},
        "",
    )
    assert replaced(BROKER_RESOURCE, "1", {}, validate_only=True) == ({}, "")


@pytest.mark.parametrize("node_id", [7, None])
def test_a_request_to_a_broker_changes_its_configs(node_id: int | None) -> None:
    line: LINE = ("background.threads", SET, "5")
    assert changed(BROKER_RESOURCE, "7", line, node_id=node_id) == ({"background.threads": "5"}, "")
    assert replaced(BROKER_RESOURCE, "7", {"background.threads": "5"}, node_id=node_id)[1] == ""


@pytest.mark.parametrize(
    ("name", "line", "why"),
    [
        ("2", ("background.threads", SET, "5"), "INVALID_REQUEST: this is broker 1, not 2"),
        (
            "one",
            ("background.threads", SET, "5"),
            "INVALID_REQUEST: 'one' is not a broker id: expected a number, or an empty name",
        ),
        ("1", ("node.id", SET, "5"), "INVALID_REQUEST: a broker reads [node.id] when it starts, and not again"),
        ("1", ("background.threads", SET, "many"), "INVALID_REQUEST: background.threads = 'many': must be a whole"),
        ("1", ("background.threads", SET, None), "INVALID_REQUEST: no value is given for background.threads"),
        (
            "1",
            ("background.threads", APPEND, "5"),
            "INVALID_CONFIG: background.threads is no list, and only lists can be",
        ),
        ("1", ("background.threads", 9, "5"), "INVALID_REQUEST: Unsupported operation 9"),
    ],
)
def test_invalid_broker_configs_are_rejected(name: str, line: LINE, why: str) -> None:
    records, refusal = changed(BROKER_RESOURCE, name, line)
    assert records == {}
    assert refusal.startswith(why)


def test_deleting_a_config_that_cannot_be_set_is_no_error() -> None:
    assert changed(BROKER_RESOURCE, "1", ("node.id", DELETE, None)) == ({}, "")
    assert replaced(BROKER_RESOURCE, "1", {"node.id": "1"})[1].startswith("INVALID_REQUEST: a broker reads [node.id]")
    assert replaced(BROKER_RESOURCE, "2", {})[1] == "INVALID_REQUEST: this is broker 1, not 2"


def test_a_group_sets_configs_within_the_brokers_bounds() -> None:
    assert changed(GROUP_RESOURCE, "g", (HEARTBEAT, SET, "6000")) == ({HEARTBEAT: "6000"}, "")
    assert replaced(GROUP_RESOURCE, "g", {HEARTBEAT: "6000"}) == ({HEARTBEAT: "6000", SESSION: None}, "")
    too_long = f"INVALID_CONFIG: {HEARTBEAT} = 16000: at most 15000, by group.consumer.max.heartbeat.interval.ms"
    assert changed(GROUP_RESOURCE, "g", (HEARTBEAT, SET, "16000")) == ({}, too_long)


@pytest.mark.parametrize(
    ("kind", "name", "why"),
    [
        (GROUP_RESOURCE, "", "INVALID_REQUEST: groups have no default configs: name a group"),
        (TOPIC_RESOURCE, "", "INVALID_REQUEST: topics have no default configs: name a topic"),
        (TOPIC_RESOURCE, "a/b", "INVALID_TOPIC_EXCEPTION: "),
        (TOPIC_RESOURCE, "t", "UNKNOWN_TOPIC_OR_PARTITION: "),
        (99, "x", "INVALID_REQUEST: Unsupported resource type: 99"),
    ],
)
def test_a_resource_without_configs_is_rejected(kind: int, name: str, why: str) -> None:
    records, refusal = changed(kind, name)
    assert records == {}
    assert refusal.startswith(why)


def test_a_resource_that_is_named_twice_is_changed_by_neither() -> None:
    wanted = [incremental_alter_configs.AlterableConfig("background.threads", SET, str(n)) for n in (5, 6)]
    twice = [incremental_alter_configs.AlterConfigsResource(BROKER_RESOURCE, "1", [line]) for line in wanted]
    other = incremental_alter_configs.AlterConfigsResource(BROKER_RESOURCE, "", wanted[:1])
    decision = decide(KNOWN, ConfigChangeRequested(1, [*twice, other], broker_options=OPTIONS))
    assert [refusal and refusal.code for refusal in decision.replies[0].message] == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        None,
    ]
    assert decision.records == (ConfigRecord(BROKER_RESOURCE, "", "background.threads", "5"),)
