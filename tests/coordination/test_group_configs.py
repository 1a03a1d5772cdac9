"""Configs of one group: Kafka's names and defaults, within the broker's bounds."""

from __future__ import annotations

import pytest

from ottla.coordination.cluster.group_configs import (
    HEARTBEAT,
    NO_BOUNDS,
    OFFSET_RESET,
    SESSION,
    SHARE_HEARTBEAT,
    SHARE_SESSION,
    ConfigBound,
    find_conflict,
    find_effective_values,
    find_fault,
    list_options,
    parse_reset_duration,
)

BOUNDS = {HEARTBEAT: ConfigBound(5000, 1000, 15_000), SESSION: ConfigBound(45_000, 10_000, 60_000)}


def test_a_group_has_kafkas_configs_with_kafkas_defaults() -> None:
    assert {name: option.default for name, option in list_options().items()} == {
        "consumer.heartbeat.interval.ms": 5000,
        "consumer.session.timeout.ms": 45_000,
        "errors.deadletterqueue.copy.record.enable": False,
        "errors.deadletterqueue.topic.name": "",
        "share.auto.offset.reset": "latest",
        "share.delivery.count.limit": 5,
        "share.heartbeat.interval.ms": 5000,
        "share.isolation.level": "read_uncommitted",
        "share.partition.max.record.locks": 2000,
        "share.record.lock.duration.ms": 30_000,
        "share.renew.acknowledge.enable": True,
        "share.session.timeout.ms": 45_000,
        "streams.assignment.interval.ms": 1000,
        "streams.heartbeat.interval.ms": 5000,
        "streams.initial.rebalance.delay.ms": 3000,
        "streams.num.standby.replicas": 0,
        "streams.rack.aware.assignment.tags": "",
        "streams.session.timeout.ms": 45_000,
    }


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("by_duration:P1D", 86_400),
        ("by_duration:PT1H30M", 5400),
        ("BY_DURATION:pt0.5s", 0.5),
        ("by_duration:P1DT1S", 86_401),
    ],
)
def test_a_share_group_may_start_at_a_time_before_now(value: str, seconds: float) -> None:
    duration = parse_reset_duration(value)
    assert duration is not None
    assert duration.total_seconds() == seconds
    assert find_fault(OFFSET_RESET, value) is None


@pytest.mark.parametrize(
    "value", ["by_duration:", "by_duration:P", "by_duration:PT", "by_duration:-P1D", "by_duration:1", "none", ""]
)
def test_a_malformed_start_of_a_share_group_is_rejected(value: str) -> None:
    assert "expected earliest, latest or by_duration" in (find_fault(OFFSET_RESET, value) or "")


def test_a_share_session_is_longer_than_a_heartbeat() -> None:
    bounds = {SHARE_HEARTBEAT: ConfigBound(5000, 1, 60_000), SHARE_SESSION: ConfigBound(45_000, 1, 60_000)}
    wished = {SHARE_SESSION: "5000"}
    assert find_conflict(wished, wished, bounds) == (
        f"{SHARE_SESSION} must be greater than {SHARE_HEARTBEAT}: they would be 5000 and 5000"
    )
    assert find_conflict({OFFSET_RESET: "earliest"}, {OFFSET_RESET: "earliest"}, bounds) is None


@pytest.mark.parametrize("value", ["1", "2147483647"])
def test_a_duration_may_have_any_value_that_fits(value: str) -> None:
    assert find_fault(HEARTBEAT, value) is None


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        (SESSION, "0", f"{SESSION} = 0: must be at least 1"),
        (SESSION, "2147483648", f"{SESSION} = 2147483648: must be at most 2147483647"),
        (SESSION, "soon", f"{SESSION} = 'soon': must be a whole number"),
        ("nonsense", "1", "Unknown group config name: nonsense"),
        ("share.session.timeout.ms", "0", "share.session.timeout.ms = 0: must be at least 1"),
        ("share.assignment.interval.ms", "1", "interval.ms: this broker assigns with the heartbeat that makes it"),
        ("streams.assignor.name", "a", "streams.assignor.name: there is one assignor, sticky"),
        ("streams.rack.aware.assignment.tags", "a,b,a", "name each tag once"),
        ("consumer.assignment.interval.ms", "1", "interval.ms: this broker assigns with the heartbeat that makes it"),
    ],
)
def test_an_invalid_value_is_reported_in_a_sentence(name: str, value: str, sentence: str) -> None:
    assert sentence in (find_fault(name, value) or "")


def test_a_name_unknown_to_kafka_too_has_no_further_reason() -> None:
    assert find_fault("nonsense", "1") == "Unknown group config name: nonsense"


@pytest.mark.parametrize("value", ["1000", "15000"])
def test_the_bounds_themselves_may_be_set(value: str) -> None:
    assert find_conflict({HEARTBEAT: value}, {HEARTBEAT: value}, BOUNDS) is None


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        (HEARTBEAT, "999", f"{HEARTBEAT} = 999: at least 1000, by group.consumer.min.heartbeat.interval.ms"),
        (HEARTBEAT, "15001", f"{HEARTBEAT} = 15001: at most 15000, by group.consumer.max.heartbeat.interval.ms"),
        (SESSION, "9999", f"{SESSION} = 9999: at least 10000, by group.consumer.min.session.timeout.ms"),
        (SESSION, "60001", f"{SESSION} = 60001: at most 60000, by group.consumer.max.session.timeout.ms"),
    ],
)
def test_beyond_a_bound_the_brokers_setting_is_named(name: str, value: str, sentence: str) -> None:
    assert find_conflict({name: value}, {name: value}, BOUNDS) == sentence


def test_a_value_set_under_wider_bounds_does_not_fail_another_change() -> None:
    assert find_conflict({HEARTBEAT: "2000"}, {HEARTBEAT: "2000", SESSION: "90000"}, BOUNDS) is None


@pytest.mark.parametrize(("session", "fine"), [("10001", True), ("10000", False)])
def test_a_session_is_longer_than_a_heartbeat(session: str, fine: bool) -> None:
    wished = {HEARTBEAT: "10000", SESSION: session}
    assert (find_conflict(wished, wished, BOUNDS) is None) == fine


def test_a_session_timeout_must_exceed_the_effective_heartbeat_interval() -> None:
    bounds = {**BOUNDS, HEARTBEAT: ConfigBound(12_000, 1000, 15_000)}
    assert find_conflict({SESSION: "12000"}, {SESSION: "12000"}, bounds) == (
        f"{SESSION} must be greater than {HEARTBEAT}: they would be 12000 and 12000"
    )


def test_in_force_is_the_brokers_default_or_the_groups_own_within_the_bounds_of_today() -> None:
    assert find_effective_values({}, BOUNDS) == {HEARTBEAT: 5000, SESSION: 45_000}
    assert find_effective_values({HEARTBEAT: "7000", SESSION: "50000"}, BOUNDS) == {HEARTBEAT: 7000, SESSION: 50_000}
    assert find_effective_values({HEARTBEAT: "10", SESSION: "90000"}, BOUNDS) == {HEARTBEAT: 1000, SESSION: 60_000}


def test_without_broker_bounds_a_duration_may_have_any_value() -> None:
    assert find_effective_values({HEARTBEAT: "1", SESSION: "2147483647"}, NO_BOUNDS) == {
        HEARTBEAT: 1,
        SESSION: 2147483647,
    }
    assert find_effective_values({}, NO_BOUNDS) == {HEARTBEAT: 1, SESSION: 1}
