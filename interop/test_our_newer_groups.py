"""Our KIP-848 consumers at our broker and at Apache Kafka, also together with librdkafka's and with classic members."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka
import pytest

from interop.test_our_groups import COUNT, PATIENCE, Make, poll_until, shared
from ottla import Admin, Broker, Consumer, NewTopic, Producer, SubscriptionPattern, TopicPartition
from ottla.errors import KafkaError
from ottla.model import OffsetAndMetadata
from rivals import apache_kafka as rival

QUICK = {
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.session.timeout.ms": "2000",
    "group.consumer.session.timeout.ms": "6000",
}


@pytest.fixture(scope="module", params=["ottla", "apache"])
def quick_broker(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of either broker, with short heartbeat intervals and sessions."""
    if request.param == "ottla":
        with Broker(process=True, group_consumer_heartbeat_interval_ms=100) as broker:
            yield broker.bootstrap_servers
    else:
        rival.fetch()
        with rival.apache_kafka(QUICK) as kafka:
            yield kafka.bootstrap_servers


@pytest.fixture
def topic(quick_broker: str) -> str:
    """A topic of four partitions with 400 records."""
    name = f"newer-{uuid.uuid4().hex[:8]}"
    with Admin(bootstrap_servers=quick_broker) as admin, Producer(bootstrap_servers=quick_broker) as producer:
        admin.create_topics([NewTopic(name, 4)])
        for n in range(COUNT):
            producer.send(name, b"%d" % n, partition=n % 4)
        producer.flush(PATIENCE)
    return name


@pytest.fixture
def member(quick_broker: str) -> Iterator[Make]:
    """Return a function that creates members of one group, with KIP-848 unless other settings are passed."""
    made: list[Consumer] = []
    group = f"group-{uuid.uuid4().hex[:8]}"

    def make(**settings: Any) -> Consumer:
        common = {"group_id": group, "group_protocol": "consumer", "auto_offset_reset": "earliest"}
        made.append(Consumer(**{"bootstrap_servers": quick_broker, **common, **settings}))
        return made[-1]

    yield make
    for consumer in made:
        consumer.close(5)


@pytest.mark.behaviour("C1", "C6", "C14", "C16")
@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_members_join_and_leave_and_each_record_is_read_once(member: Make, topic: str, assignor: str) -> None:
    members = [member(group_remote_assignor=assignor, max_poll_records=10) for _ in range(3)]
    seen: list[Any] = []
    for count in (1, 2, 3):
        members[count - 1].subscribe([topic])
        some = members[:count]
        seen += poll_until(some, lambda: sum(shared(some)) == 4 and min(shared(some)) > 0)  # noqa: B023
    members[0].close()
    rest = members[1:]
    seen += poll_until(rest, lambda: shared(rest) == [2, 2])
    deadline = time.monotonic() + PATIENCE
    while len(seen) < COUNT:
        assert time.monotonic() < deadline, f"{len(seen)} of {COUNT} came"
        for consumer in rest:
            seen += consumer.poll(0.1)
    assert sorted(r.value for r in seen) == sorted(b"%d" % n for n in range(COUNT))


@pytest.mark.behaviour("C6")
def test_commits_are_stored_and_fetched_in_the_member_epoch(member: Make, topic: str) -> None:
    consumer = member(enable_auto_commit=False)
    consumer.subscribe([topic])
    tps = [TopicPartition(topic, n) for n in range(4)]
    poll_until([consumer], lambda: consumer.assignment() == set(tps))
    consumer.commit({tps[0]: OffsetAndMetadata(7, "so far"), tps[1]: 9})
    heard: list[Any] = []
    consumer.commit_async({tps[2]: 1}, lambda offsets, error: heard.append(error))
    poll_until([consumer], lambda: heard)
    assert heard == [None]
    assert consumer.committed(tps) == {
        tps[0]: OffsetAndMetadata(7, "so far"),
        tps[1]: OffsetAndMetadata(9),
        tps[2]: OffsetAndMetadata(1),
        tps[3]: None,
    }


@pytest.mark.behaviour("C12")
def test_a_static_member_rejoins_and_a_duplicate_is_rejected(member: Make, topic: str) -> None:
    staying, going = member(group_instance_id="one"), member(group_instance_id="two")
    for consumer in (staying, going):
        consumer.subscribe([topic])
    poll_until([staying, going], lambda: shared([staying, going]) == [2, 2])
    had, has = going.assignment(), staying.assignment()
    going.close()
    back = member(group_instance_id="two")
    back.subscribe([topic])
    poll_until([staying, back], lambda: back.assignment() == had)
    assert staying.assignment() == has
    double = member(group_instance_id="two")
    double.subscribe([topic])
    with pytest.raises(KafkaError, match="UNRELEASED_INSTANCE_ID"):
        poll_until([staying, back, double], lambda: False)
    poll_until([staying, back], lambda: back.assignment() == had)


@pytest.mark.behaviour("C12")
def test_a_static_member_does_not_inherit_the_pattern_of_its_predecessor(
    member: Make, topic: str, quick_broker: str
) -> None:
    with Admin(bootstrap_servers=quick_broker) as admin:
        admin.create_topics([NewTopic(f"{topic}-too", 2)])
    first = member(group_instance_id="one")
    first.subscribe(SubscriptionPattern(f"{topic}.*"))
    poll_until([first], lambda: shared([first]) == [6])
    first.close()
    second = member(group_instance_id="one")
    second.subscribe([topic])
    poll_until([second], lambda: shared([second]) == [4])


@pytest.mark.behaviour("C9")
def test_a_member_that_does_not_poll_leaves_and_rejoins_with_the_next_poll(member: Make, topic: str) -> None:
    slow, other = member(max_poll_interval_ms=1500), member()
    for consumer in (slow, other):
        consumer.subscribe([topic])
    poll_until([slow, other], lambda: shared([slow, other]) == [2, 2])
    poll_until([other], lambda: shared([other]) == [4])
    poll_until([slow, other], lambda: shared([slow, other]) == [2, 2])


@pytest.mark.behaviour("C15", "C19")
def test_the_broker_matches_a_pattern_and_sends_the_topics_by_id(member: Make, topic: str, quick_broker: str) -> None:
    consumer = member()
    consumer.subscribe(SubscriptionPattern(f"{topic}.*"))
    poll_until([consumer], lambda: shared([consumer]) == [4])
    with Admin(bootstrap_servers=quick_broker) as admin:
        admin.create_topics([NewTopic(f"{topic}-later", 2)])
    poll_until([consumer], lambda: shared([consumer]) == [6])
    assert consumer.subscription() == {topic, f"{topic}-later"}
    wrong = member()
    wrong.subscribe(SubscriptionPattern("(t"))
    with pytest.raises(KafkaError, match="INVALID_REGULAR_EXPRESSION"):
        poll_until([consumer, wrong], lambda: False)


def test_a_deleted_topic_is_revoked_and_the_others_continue(member: Make, topic: str, quick_broker: str) -> None:
    consumer = member()
    with Admin(bootstrap_servers=quick_broker) as admin, Producer(bootstrap_servers=quick_broker) as producer:
        admin.create_topics([NewTopic(f"{topic}-doomed", 2)])
        consumer.subscribe([topic, f"{topic}-doomed"])
        poll_until([consumer], lambda: shared([consumer]) == [6])
        producer.send(f"{topic}-doomed", b"last", partition=0).result(PATIENCE)
        poll_until([consumer], lambda: consumer.position(TopicPartition(f"{topic}-doomed", 0)) == 1)
        admin.delete_topics([f"{topic}-doomed"])
        poll_until([consumer], lambda: shared([consumer]) == [4])
        consumer.commit()


@pytest.mark.behaviour("P7")
def test_transactional_offsets_are_committed_in_the_member_epoch(member: Make, topic: str, quick_broker: str) -> None:
    consumer = member(enable_auto_commit=False, isolation_level="read_committed")
    consumer.subscribe([topic])
    tps = [TopicPartition(topic, n) for n in range(4)]
    poll_until([consumer], lambda: consumer.assignment() == set(tps))
    with Producer(bootstrap_servers=quick_broker, transactional_id=topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send_offsets_to_transaction(dict.fromkeys(tps, OffsetAndMetadata(3)), consumer.group_metadata())
        producer.commit_transaction()
    assert consumer.committed(tps) == dict.fromkeys(tps, OffsetAndMetadata(3))


def test_a_group_migrates_to_kip_848_while_it_reads(member: Make, topic: str) -> None:
    old = member(
        group_protocol="classic", heartbeat_interval_ms=100, partition_assignment_strategy="cooperative-sticky"
    )
    old.subscribe([topic])
    seen = poll_until([old], lambda: shared([old]) == [4])
    new = member()
    new.subscribe([topic])
    seen += poll_until([old, new], lambda: shared([old, new]) == [2, 2])
    old.close()
    seen += poll_until([new], lambda: shared([new]) == [4])
    deadline = time.monotonic() + PATIENCE
    while len(seen) < COUNT:
        assert time.monotonic() < deadline, f"{len(seen)} of {COUNT} came"
        seen += new.poll(0.1)
    assert len({r.value for r in seen}) == len(seen) == COUNT


@pytest.mark.behaviour("C14")
def test_members_of_ours_and_of_librdkafkas_share_a_group(quick_broker: str, member: Make, topic: str) -> None:
    ours = member()
    settings = {"group.protocol": "consumer", "auto.offset.reset": "earliest"}
    place = {"bootstrap.servers": quick_broker, "group.id": ours.config.group_id}
    theirs = confluent_kafka.Consumer({**place, **settings})
    ours.subscribe([topic])
    theirs.subscribe([topic])

    def polled(condition: Callable[[], bool]) -> bool:
        theirs.poll(0.02)
        return condition()

    poll_until([ours], lambda: polled(lambda: len(theirs.assignment()) == 2 and shared([ours]) == [2]))
    assert {(tp.topic, tp.partition) for tp in theirs.assignment()}.isdisjoint(ours.assignment())
    theirs.close()
    poll_until([ours], lambda: shared([ours]) == [4])
