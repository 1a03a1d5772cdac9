"""Our consumers in groups at our broker and at Apache Kafka, also together with members of other clients."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka
import pytest

from ottla import Admin, Consumer, NewTopic, Producer, TopicPartition
from ottla.client.consumer.group.membership.member_state import ClassicMemberState
from ottla.errors import FencedInstanceIdError, KafkaError
from ottla.model import OffsetAndMetadata

PATIENCE = 40.0
COUNT = 400


@pytest.fixture
def topic(any_broker: str) -> str:
    """A topic of four partitions with 400 records."""
    name = f"shared-{uuid.uuid4().hex[:8]}"
    with Admin(bootstrap_servers=any_broker) as admin, Producer(bootstrap_servers=any_broker) as producer:
        admin.create_topics([NewTopic(name, 4)])
        for n in range(COUNT):
            producer.send(name, b"%d" % n, partition=n % 4)
        producer.flush(PATIENCE)
    return name


Make = Callable[..., Consumer]


@pytest.fixture
def member(any_broker: str) -> Iterator[Make]:
    made: list[Consumer] = []
    group = f"group-{uuid.uuid4().hex[:8]}"

    def make(**settings: Any) -> Consumer:
        quick = {"group_id": group, "heartbeat_interval_ms": 100, "session_timeout_ms": 6000}
        given = {"bootstrap_servers": any_broker, "auto_offset_reset": "earliest", **quick, **settings}
        made.append(Consumer(**given))
        return made[-1]

    yield make
    for consumer in made:
        consumer.close(5)


def poll_until(consumers: list[Consumer], condition: Callable[[], object]) -> list[Any]:
    records: list[Any] = []
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, [consumer.assignment() for consumer in consumers]
        for consumer in consumers:
            records += consumer.poll(0.02)
    return records


def shared(consumers: list[Consumer]) -> list[int]:
    return [len(consumer.assignment()) for consumer in consumers]


@pytest.mark.behaviour("C1", "C6", "C14", "C16")
@pytest.mark.parametrize("strategy", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_members_join_and_leave_and_each_record_is_read_once(member: Make, topic: str, strategy: str) -> None:
    members = [member(partition_assignment_strategy=strategy, max_poll_records=10) for _ in range(3)]
    seen: list[Any] = []
    for count in (1, 2, 3):
        members[count - 1].subscribe([topic])
        some = members[:count]
        seen += poll_until(some, lambda: sum(shared(some)) == 4 and min(shared(some)) > 0)  # noqa: B023
    members[0].close()
    seen += poll_until(members[1:], lambda: shared(members[1:]) == [2, 2])
    rest: list[Any] = []
    while len(seen) + len(rest) < COUNT:
        before = len(rest)
        deadline = time.monotonic() + PATIENCE
        while len(rest) == before:
            assert time.monotonic() < deadline, f"{len(seen) + len(rest)} of {COUNT} came"
            for consumer in members[1:]:
                rest += consumer.poll(0.1)
    assert sorted({r.value for r in seen + rest}) == sorted(b"%d" % n for n in range(COUNT))
    assert len(seen + rest) == COUNT


@pytest.mark.behaviour("C10")
def test_a_member_that_closes_during_a_rebalance_does_not_delay_it(member: Make, topic: str) -> None:
    staying, going = member(session_timeout_ms=90_000), member(session_timeout_ms=90_000)
    for consumer in (staying, going):
        consumer.subscribe([topic])
    poll_until([staying, going], lambda: shared([staying, going]) == [2, 2])
    coordinator = going._core.coordinator
    assert coordinator is not None
    going.enforce_rebalance("of a whim")
    poll_until([going], lambda: coordinator.state is ClassicMemberState.PREPARING_REBALANCE)
    going.close()
    poll_until([staying], lambda: shared([staying]) == [4])


@pytest.mark.behaviour("C6")
def test_commits_are_stored_with_their_metadata(member: Make, topic: str) -> None:
    consumer = member(enable_auto_commit=False)
    consumer.subscribe([topic])
    tps = [TopicPartition(topic, n) for n in range(4)]
    poll_until([consumer], lambda: consumer.assignment() == set(tps))
    consumer.commit({tps[0]: OffsetAndMetadata(7, "so far"), tps[1]: 9})
    assert consumer.committed(tps[:3]) == {
        tps[0]: OffsetAndMetadata(7, "so far"),
        tps[1]: OffsetAndMetadata(9),
        tps[2]: None,
    }
    heard: list[Any] = []
    consumer.commit_async({tps[2]: 1}, lambda offsets, error: heard.append(error))
    poll_until([consumer], lambda: heard)
    assert heard == [None]


@pytest.mark.behaviour("C12")
def test_a_static_member_rejoins_and_a_duplicate_fences_it(member: Make, topic: str) -> None:
    staying, going = member(), member(group_instance_id="till")
    for consumer in (staying, going):
        consumer.subscribe([topic])
    poll_until([staying, going], lambda: shared([staying, going]) == [2, 2])
    generation = staying.group_metadata().generation_id
    had = going.assignment()
    going.close()
    back = member(group_instance_id="till")
    back.subscribe([topic])
    poll_until([staying, back], lambda: back.assignment() == had)
    assert staying.group_metadata().generation_id == generation
    double = member(group_instance_id="till")
    double.subscribe([topic])
    poll_until([staying, double], lambda: double.assignment() == had)
    with pytest.raises(FencedInstanceIdError):
        poll_until([staying, back], lambda: False)


@pytest.mark.behaviour("C7")
def test_an_invalid_session_timeout_is_rejected(member: Make, topic: str) -> None:
    consumer = member(session_timeout_ms=1000)
    consumer.subscribe([topic])
    with pytest.raises(KafkaError, match="INVALID_SESSION_TIMEOUT"):
        poll_until([consumer], lambda: False)


@pytest.mark.behaviour("C13")
@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_members_of_ours_and_of_librdkafkas_share_a_group(
    any_broker: str, member: Make, topic: str, strategy: str
) -> None:
    ours = member(partition_assignment_strategy=strategy)
    theirs = confluent_kafka.Consumer(
        {
            "bootstrap.servers": any_broker,
            "group.id": ours.config.group_id,
            "partition.assignment.strategy": strategy,
            "heartbeat.interval.ms": 100,
            "session.timeout.ms": 6000,
            "auto.offset.reset": "earliest",
        }
    )
    ours.subscribe([topic])
    theirs.subscribe([topic])

    def both() -> bool:
        theirs.poll(0.02)
        return len(theirs.assignment()) == 2 and shared([ours]) == [2]

    poll_until([ours], both)
    assert {(tp.topic, tp.partition) for tp in theirs.assignment()}.isdisjoint(ours.assignment())
    theirs.close()
    poll_until([ours], lambda: shared([ours]) == [4])
