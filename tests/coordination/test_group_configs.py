"""What one group can be told: Kafka's names and defaults, within what the broker lets it be."""

from __future__ import annotations

import pytest

from ottla.coordination.cluster.group_configs import (
    HEARTBEAT,
    NO_BOUNDS,
    SESSION,
    Bound,
    conflict_of,
    fault_of,
    in_force,
    table,
)

BOUNDS = {HEARTBEAT: Bound(5000, 1000, 15_000), SESSION: Bound(45_000, 10_000, 60_000)}


def test_a_group_has_kafkas_configs_with_kafkas_defaults() -> None:
    assert {name: option.default for name, option in table().items()} == {
        "consumer.heartbeat.interval.ms": 5000,
        "consumer.session.timeout.ms": 45_000,
    }


@pytest.mark.parametrize("value", ["1", "2147483647"])
def test_a_span_may_be_anything_that_has_room(value: str) -> None:
    assert fault_of(HEARTBEAT, value) is None


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        (SESSION, "0", f"{SESSION} = 0: must be at least 1"),
        (SESSION, "2147483648", f"{SESSION} = 2147483648: must be at most 2147483647"),
        (SESSION, "soon", f"{SESSION} = 'soon': must be a whole number"),
        ("nonsense", "1", "Unknown group config name: nonsense"),
        (
            "share.session.timeout.ms",
            "1",
            "Unknown group config name: share.session.timeout.ms: this broker has no share",
        ),
        ("streams.session.timeout.ms", "1", "streams.session.timeout.ms: this broker has no streams groups"),
        ("consumer.assignment.interval.ms", "1", "interval.ms: this broker assigns with the heartbeat that makes it"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(name: str, value: str, sentence: str) -> None:
    assert sentence in (fault_of(name, value) or "")


def test_an_unknown_name_that_kafka_has_not_either_has_no_reason_beside_it() -> None:
    assert fault_of("nonsense", "1") == "Unknown group config name: nonsense"


@pytest.mark.parametrize("value", ["1000", "15000"])
def test_the_bounds_themselves_may_be_set(value: str) -> None:
    assert conflict_of({HEARTBEAT: value}, {HEARTBEAT: value}, BOUNDS) is None


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
    assert conflict_of({name: value}, {name: value}, BOUNDS) == sentence


def test_what_was_set_when_the_bounds_were_wider_is_no_fault_of_who_sets_something_else() -> None:
    assert conflict_of({HEARTBEAT: "2000"}, {HEARTBEAT: "2000", SESSION: "90000"}, BOUNDS) is None


@pytest.mark.parametrize(("session", "fine"), [("10001", True), ("10000", False)])
def test_a_session_is_longer_than_a_heartbeat(session: str, fine: bool) -> None:
    wished = {HEARTBEAT: "10000", SESSION: session}
    assert (conflict_of(wished, wished, BOUNDS) is None) == fine


def test_a_session_is_held_against_the_heartbeat_in_force() -> None:
    bounds = {**BOUNDS, HEARTBEAT: Bound(12_000, 1000, 15_000)}
    assert conflict_of({SESSION: "12000"}, {SESSION: "12000"}, bounds) == (
        f"{SESSION} must be greater than {HEARTBEAT}: they would be 12000 and 12000"
    )


def test_in_force_is_the_brokers_default_or_the_groups_own_within_the_bounds_of_today() -> None:
    assert in_force({}, BOUNDS) == {HEARTBEAT: 5000, SESSION: 45_000}
    assert in_force({HEARTBEAT: "7000", SESSION: "50000"}, BOUNDS) == {HEARTBEAT: 7000, SESSION: 50_000}
    assert in_force({HEARTBEAT: "10", SESSION: "90000"}, BOUNDS) == {HEARTBEAT: 1000, SESSION: 60_000}


def test_where_no_broker_says_anything_a_span_may_be_as_short_and_as_long_as_a_number_can_say() -> None:
    assert in_force({HEARTBEAT: "1", SESSION: "2147483647"}, NO_BOUNDS) == {HEARTBEAT: 1, SESSION: 2147483647}
    assert in_force({}, NO_BOUNDS) == {HEARTBEAT: 1, SESSION: 1}
