"""Limits: which one counts, how what was used is averaged, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.coordination.cluster.events import QuotaChangeRequested
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.quota_request import find_matching
from ottla.coordination.cluster.topic_request import Refusal
from ottla.coordination.controller import client_changes
from ottla.coordination.controller.config import ControllerConfig
from ottla.coordination.quotas.client_quotas import ClientQuotas, Entity, Limit
from ottla.coordination.quotas.rate import Rate
from ottla.coordination.quotas.token_bucket import TokenBucket
from ottla.errors import ErrorCode
from ottla.protocol.messages.alter_client_quotas import OpData, RequestEntryData
from ottla.protocol.messages.describe_client_quotas import ComponentData, EntityData

KEY = "producer_byte_rate"
PRECEDENCE: list[tuple[dict[str, str | None], tuple[str, str]]] = [
    ({"user": "u", "client-id": "c"}, ("u", "c")),
    ({"user": "u", "client-id": None}, ("u", "c")),
    ({"user": "u"}, ("u", "")),
    ({"user": None, "client-id": "c"}, ("u", "c")),
    ({"user": None, "client-id": None}, ("u", "c")),
    ({"user": None}, ("u", "")),
    ({"client-id": "c"}, ("", "c")),
    ({"client-id": None}, ("", "c")),
]
"""Kafka's order, and the clients that share each quota."""


def entity(**parts: str | None) -> Entity:
    return frozenset((kind.replace("_", "-"), name) for kind, name in parts.items())


@pytest.mark.parametrize("first", range(len(PRECEDENCE)))
def test_the_most_specific_matching_limit_applies(first: int) -> None:
    quotas = ClientQuotas()
    for number, (parts, _) in enumerate(PRECEDENCE[first:], first):
        quotas.set(frozenset(parts.items()), KEY, float(number + 1))
    assert found(quotas) == (first + 1, PRECEDENCE[first][1])
    quotas.set(frozenset(PRECEDENCE[first][0].items()), KEY, None)
    left = [(number + 1, sharers) for number, (_, sharers) in enumerate(PRECEDENCE)][first + 1 :]
    assert found(quotas) == (left[0] if left else None)


def found(quotas: ClientQuotas) -> Limit | None:
    return quotas.limit(KEY, "u", "c")


def test_a_limit_of_another_kind_or_client_does_not_apply() -> None:
    quotas = ClientQuotas()
    quotas.set(entity(user="u"), "consumer_byte_rate", 1.0)
    quotas.set(entity(user="v"), KEY, 1.0)
    assert quotas.limit(KEY, "u", "c") is None


def test_an_address_has_its_own_limit_or_that_of_all() -> None:
    quotas = ClientQuotas()
    quotas.set(entity(ip=None), "connection_creation_rate", 5.0)
    quotas.set(entity(ip="10.0.0.1"), "connection_creation_rate", 9.0)
    assert quotas.limit_of_address("10.0.0.1") == 9.0
    assert quotas.limit_of_address("10.0.0.2") == 5.0


def test_a_burst_is_averaged_over_the_windows_before_it() -> None:
    rate = Rate(11, 1.0)
    rate.record(1000, 100.0)
    assert rate.value(100.0) == 100.0
    assert rate.throttle_ms(100.0, 100.0) == 0.0
    assert rate.throttle_ms(50.0, 100.0) == 10_000.0


def test_usage_expires_with_its_window() -> None:
    rate = Rate(11, 1.0)
    rate.record(1000, 100.0)
    assert rate.value(110.9) > 0
    assert rate.value(111.0) == 0.0


@given(st.lists(st.tuples(st.floats(0, 3), st.floats(0.01, 1)), min_size=1, max_size=30), st.integers(10, 1000))
def test_a_client_that_waits_the_throttle_time_stays_within_the_limit(
    steps: list[tuple[float, float]], limit: int
) -> None:
    """Within a tenth, where nothing used at once is worth more than a second: like Kafka's, the rate forgets by whole windows."""
    rate, now, used = Rate(11, 1.0), 1000.0, 0.0
    for pause, seconds in steps:
        now += pause
        rate.record(limit * seconds, now)
        used += limit * seconds
        now += rate.throttle_ms(limit, now) / 1000
    assert used <= limit * (now - 1000.0 + 11) * 1.1


def test_tokens_run_out_and_are_refilled_at_their_rate() -> None:
    bucket = TokenBucket(2.0, 11.0, 0.0)
    assert bucket.try_take(30, 0.0)
    assert bucket.throttle_ms(0.0) == 4000.0
    assert not bucket.try_take(1, 3.0)
    assert bucket.try_take(1, 4.0)
    bucket.take_into_debt(10, 4.0)
    assert bucket.throttle_ms(4.0) == 5500.0
    assert bucket.throttle_ms(1000.0) == 0.0


def changed(machine: ClusterMetadata, *entries: RequestEntryData, dry: bool = False) -> list[Refusal | None]:
    decision = client_changes.decide(machine, QuotaChangeRequested(1, entries, dry), ControllerConfig("c"))
    for record in decision.records:
        machine.replay(record)
    machine.check()
    found: list[Refusal | None] = decision.replies[0].message
    return found


def entry(parts: dict[str, str | None], *ops: OpData) -> RequestEntryData:
    return RequestEntryData([EntityData(*part) for part in parts.items()], ops)


def test_limits_are_stored_changed_and_removed_and_are_in_a_snapshot() -> None:
    machine, again = ClusterMetadata(), ClusterMetadata()
    assert changed(machine, entry({"user": "u"}, OpData(KEY, 5.0), OpData("request_percentage", 50.0))) == [None]
    assert changed(machine, entry({"user": "u"}, OpData(KEY, remove=True))) == [None]
    assert changed(machine, entry({"client-id": None}, OpData(KEY, 7.0)), dry=True) == [None]
    assert machine.quotas.values == {entity(user="u"): {"request_percentage": 50.0}}
    for record in machine.records():
        again.replay(record)
    assert again.quotas.values == machine.quotas.values


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (entry({}), "no entity is named"),
        (entry({"group": "g"}), "no limits of a 'group'"),
        (RequestEntryData([EntityData("user", "a"), EntityData("user", "b")]), "names 2 of the kind user"),
        (entry({"user": ""}), "has an empty name"),
        (entry({"ip": "localhost"}), "'localhost' is no address"),
        (entry({"ip": "10.0.0.1", "user": "u"}), "an ip has limits of its own"),
        (entry({"user": "u"}, OpData("speed", 1.0)), "has no limit 'speed'"),
        (entry({"ip": None}, OpData(KEY, 1.0)), "every ip has no limit 'producer_byte_rate'"),
        (entry({"user": "u"}, OpData(KEY, 0.0)), "producer_byte_rate = 0: must be above 0"),
        (entry({"user": "u"}, OpData(KEY, float("nan"))), "must be above 0"),
        (entry({"user": "u"}, OpData(KEY, float("inf"))), "must be above 0"),
        (entry({"user": "u"}, OpData(KEY, 1.5)), "producer_byte_rate = 1.5: must be a whole number"),
        (entry({"user": "u"}, OpData(KEY, 1.0), OpData(KEY, 2.0)), "is changed 2 times"),
    ],
)
def test_an_invalid_limit_is_rejected_with_a_message_and_the_others_are_kept(
    wrong: RequestEntryData, words: str
) -> None:
    machine = ClusterMetadata()
    refusal, kept = changed(machine, wrong, entry({"user": "fine"}, OpData(KEY, 1.0)))
    assert refusal is not None
    assert refusal.code == ErrorCode.INVALID_REQUEST
    assert words in str(refusal)
    assert kept is None
    assert list(machine.quotas.values) == [entity(user="fine")]


@pytest.mark.parametrize(
    ("components", "strict", "found"),
    [
        ([], False, 4),
        ([("user", 0, "u")], False, 2),
        ([("user", 0, "u")], True, 1),
        ([("user", 2, None)], False, 3),
        ([("user", 1, None)], False, 1),
        ([("user", 0, "u"), ("client-id", 2, None)], True, 1),
        ([("client-id", 0, "c")], True, 0),
        ([("ip", 2, None)], True, 1),
    ],
)
def test_a_filter_finds_its_matches(components: list[Any], strict: bool, found: int) -> None:
    quotas = ClientQuotas()
    for each in (entity(user="u"), entity(user="u", client_id="c"), entity(user=None), entity(ip="10.0.0.1")):
        quotas.set(each, "connection_creation_rate" if len(each) == 1 and ("ip", "10.0.0.1") in each else KEY, 1.0)
    assert len(find_matching(quotas, [ComponentData(*each) for each in components], strict=strict)) == found


@pytest.mark.parametrize(
    "components",
    [
        [("user", 0, None)],
        [("user", 3, None)],
        [("user", 2, None), ("user", 2, None)],
        [("ip", 2, None), ("user", 2, None)],
        [("user", 1, "u")],
    ],
)
def test_an_invalid_filter_is_rejected(components: list[Any]) -> None:
    with pytest.raises(Refusal) as refused:
        find_matching(ClientQuotas(), [ComponentData(*each) for each in components], strict=False)
    assert refused.value.code == ErrorCode.INVALID_REQUEST
