"""Changes of topics in a cluster with one broker, as transcripts."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from ottla.coordination.cluster.events import (
    ConfigChangeRequested,
    ConfigReplacementRequested,
    Event,
    TopicDeletionRequested,
)
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.node_records import RegisterBrokerRecord
from ottla.coordination.cluster.partition_request import check_count
from ottla.coordination.cluster.records import ConfigRecord, PartitionRecord, RemoveTopicRecord, TopicRecord
from ottla.coordination.cluster.topic import ClusterTopic, PartitionState
from ottla.coordination.cluster.topic_request import Refusal
from ottla.coordination.controller import client_changes
from ottla.coordination.controller.config import ControllerConfig
from ottla.coordination.controller.controller import Controller
from ottla.coordination.controller.events import ControllerRequest, RandomValues
from ottla.errors import name_of
from ottla.protocol.messages import alter_configs, incremental_alter_configs
from ottla.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from ottla.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.protocol.messages.delete_topics import DeleteTopicState
from ottla.protocol.schema import ZERO_UUID
from tests.coordination.transcript import run


def id_of(name: str) -> UUID:
    """An id that a transcript can name."""
    return UUID(bytes=name.encode()[:16].ljust(16, b"\0"))


BROKER = RegisterBrokerRecord(1, incarnation_id=UUID(int=9), broker_epoch=5, fenced=False, log_dirs=[UUID(int=300)])


class Cluster:
    """The controller of a cluster with one broker, which is unfenced."""

    def __init__(self) -> None:
        self.metadata = ClusterMetadata()
        self._controller = Controller(ControllerConfig("c", default_partitions=3, own_broker=1), self.metadata)
        self.replay(BROKER)

    def decide(self, event: Any, now: float) -> Any:
        return self._controller.decide(event, now)

    def replay(self, record: Any) -> None:
        self._controller.replay(record)

    def check(self) -> None:
        self._controller.check()


def event_of(command: str) -> Event | ControllerRequest:
    """`create NAME[,NAME] key=value …`, `grow NAME[,NAME] to=COUNT`, `delete NAME`, `ids COUNT`,
    `change NAME key=value key+=value key-=value key=`, `replace NAME key=value …`.
    """
    verb, names, *words = command.split()
    if verb == "change":
        return change_of(names, words)
    given = dict(word.split("=", 1) for word in words)
    looking: dict[str, Any] = {"validate_only": True} if given.pop("dry", None) else {}
    if verb == "replace":
        wanted = [alter_configs.AlterableConfig(key, value) for key, value in given.items()]
        return ConfigReplacementRequested(1, [alter_configs.AlterConfigsResource(2, names, wanted)], **looking)
    if verb == "ids":
        return ControllerRequest(1, AllocateProducerIdsRequest(1, BROKER.broker_epoch))
    if verb == "grow":
        brokers = given.get("brokers")
        assignments = [CreatePartitionsAssignment([int(b)]) for b in brokers.split(",")] if brokers else None
        grown = [CreatePartitionsTopic(name, int(given["to"]), assignments) for name in names.split(",")]
        return ControllerRequest(1, CreatePartitionsRequest(grown, **looking))
    if verb == "delete":
        return TopicDeletionRequested(1, [DeleteTopicState(name) for name in names.split(",")])
    if verb == "delete-id":
        return TopicDeletionRequested(1, [DeleteTopicState(None, id_of(names))])
    partitions, copies = int(given.pop("partitions", -1)), int(given.pop("copies", -1))
    brokers = given.pop("brokers", None)
    topics = [
        CreatableTopic(
            name.strip("'"),
            partitions,
            copies,
            [CreatableReplicaAssignment(i, [int(b)]) for i, b in enumerate(brokers.split(","))] if brokers else (),
            [CreatableTopicConfig(key, value) for key, value in given.items()],
        )
        for name in names.split(",")
    ]
    return ControllerRequest(1, CreateTopicsRequest(topics, **looking), RandomValues([id_of(t.name) for t in topics]))


def change_of(name: str, words: list[str]) -> ConfigChangeRequested:
    """`key=value` sets, `key=` gives back, `key+=value` and `key-=value` edit a list."""
    changes = []
    for word in words:
        key, value = word.split("=", 1)
        operation = {"+": 2, "-": 3}.get(key[-1], 0 if value else 1)
        changes.append(incremental_alter_configs.AlterableConfig(key.rstrip("+-"), operation, value or None))
    wanted = [change for change in changes if change.name != "dry"]
    resources = [incremental_alter_configs.AlterConfigsResource(2, name, wanted)]
    return ConfigChangeRequested(1, resources, {"cleanup.policy": "compact"}, validate_only=len(wanted) < len(changes))


def show_record(record: Any) -> str:
    match record:
        case TopicRecord():
            return f"topic {record.name}"
        case PartitionRecord():
            return f"partition {record.partition_id} leader {record.leader} epoch {record.leader_epoch}"
        case ConfigRecord():
            return f"config {record.resource_name} {record.name}={record.value}"
        case RemoveTopicRecord():
            return "removed"
    return f"ids below {record.next_producer_id} for broker {record.broker_id}"


def show_reply(message: Any) -> list[str]:
    if isinstance(message, AllocateProducerIdsResponse):
        return [f"{message.producer_id_len} ids from {message.producer_id_start}"]
    if isinstance(message, CreateTopicsResponse):
        message = message.topics
    elif isinstance(message, CreatePartitionsResponse):
        message = message.results
    if message and (message[0] is None or isinstance(message[0], Refusal)):
        return [name_of(refusal.code) if refusal else "ok" for refusal in message]
    return [f"{result.name} {name_of(result.error_code) if result.error_code else 'ok'}" for result in message]


def play(text: str) -> ClusterMetadata:
    cluster = Cluster()
    run(cluster, text, event_of, show_record, show_reply)
    return cluster.metadata


def test_a_topic_is_made_used_and_deleted() -> None:
    play("""
        create orders partitions=2 retention.ms=1000
        record topic orders
        record config orders retention.ms=1000
        record partition 0 leader 1 epoch 0
        record partition 1 leader 1 epoch 0
        reply orders ok

        create orders → reply orders TOPIC_ALREADY_EXISTS

        delete orders
        record removed
        reply orders ok

        delete orders → reply orders UNKNOWN_TOPIC_OR_PARTITION
    """)


def test_a_topic_without_settings_gets_the_defaults() -> None:
    machine = play("""
        create t
        record topic t
        record partition 0 leader 1 epoch 0
        record partition 1 leader 1 epoch 0
        record partition 2 leader 1 epoch 0
        reply t ok
    """)
    assert len(machine.topics["t"].partitions) == 3


def test_validate_only_writes_nothing() -> None:
    machine = play("""
        create t partitions=1 dry=1 → reply t ok
    """)
    assert not machine.topics


def test_a_validated_topic_has_no_id() -> None:
    for command, topic_id in (("create t dry=1", ZERO_UUID), ("create t", id_of("t"))):
        (reply,) = Cluster().decide(event_of(command), 0.0).replies
        assert [result.topic_id for result in reply.message.topics] == [topic_id]


def test_one_rejected_topic_does_not_affect_the_others() -> None:
    play("""
        create good,bad/name partitions=1
        record topic good
        record partition 0 leader 1 epoch 0
        reply good ok
        reply bad/name INVALID_TOPIC_EXCEPTION

        create twin,twin partitions=1
        reply twin INVALID_REQUEST
        reply twin INVALID_REQUEST
    """)


def test_assignments_name_the_broker_there_is() -> None:
    play("""
        create t brokers=1,1
        record topic t
        record partition 0 leader 1 epoch 0
        record partition 1 leader 1 epoch 0
        reply t ok

        create u brokers=2 → reply u INVALID_REPLICA_ASSIGNMENT
        create v brokers=1 partitions=1 → reply v INVALID_REQUEST
    """)


def test_a_topic_is_deleted_by_its_id() -> None:
    play("""
        create t partitions=1
        record topic t
        record partition 0 leader 1 epoch 0
        reply t ok

        delete-id t
        record removed
        reply t ok

        delete-id t → reply None UNKNOWN_TOPIC_ID
    """)


def test_a_topic_is_deleted_once_and_by_one_of_its_names() -> None:
    machine = play("""
        create t partitions=1
        record topic t
        record partition 0 leader 1 epoch 0
        reply t ok

        delete t,t
        reply t INVALID_REQUEST
        reply t INVALID_REQUEST
    """)
    for unclear in (DeleteTopicState("t", id_of("t")), DeleteTopicState(None)):
        (reply,) = client_changes.decide(machine, TopicDeletionRequested(1, [unclear]), ControllerConfig("c")).replies
        assert name_of(reply.message[0].error_code) == "INVALID_REQUEST"


def test_names_in_one_request_collide_too() -> None:
    play("""
        create a.b,a_b partitions=1
        record topic a.b
        record partition 0 leader 1 epoch 0
        reply a.b ok
        reply a_b INVALID_TOPIC_EXCEPTION
    """)


def test_configs_and_partitions_may_change() -> None:
    machine = play("""
        create t partitions=2 retention.ms=5
        record topic t
        record config t retention.ms=5
        record partition 0 leader 1 epoch 0
        record partition 1 leader 1 epoch 0
        reply t ok
    """)
    machine.replay(ConfigRecord(2, "t", "retention.ms", None))
    machine.replay(PartitionRecord(0, id_of("t"), replicas=[1, 2], isr=[2], leader=2, leader_epoch=1))
    machine.check()
    assert machine.topics["t"].configs == {}
    assert [p.leader for p in machine.topics["t"].partitions] == [2, 1]
    assert machine.find_topic_by_id(id_of("t")) is machine.topics["t"]


def test_a_topic_gets_more_partitions() -> None:
    machine = play("""
        create t partitions=1
        record topic t
        record partition 0 leader 1 epoch 0
        reply t ok

        grow t to=3
        record partition 1 leader 1 epoch 0
        record partition 2 leader 1 epoch 0
        reply t ok

        grow t to=3 → reply t INVALID_PARTITIONS
        grow t to=2 → reply t INVALID_PARTITIONS
        grow t to=20000 → reply t INVALID_PARTITIONS
        grow t to=4 dry=1 → reply t ok

        grow t,nobody to=4 brokers=1
        record partition 3 leader 1 epoch 0
        reply t ok
        reply nobody UNKNOWN_TOPIC_OR_PARTITION

        grow t,t to=5
        reply t INVALID_REQUEST
        reply t INVALID_REQUEST

        grow t to=5 brokers=2 → reply t INVALID_REPLICA_ASSIGNMENT
        grow t to=5 brokers=1,1 → reply t INVALID_REPLICA_ASSIGNMENT
    """)
    assert [state.index for state in machine.topics["t"].partitions] == [0, 1, 2, 3]


def test_at_most_ten_thousand_partitions_are_added_at_once() -> None:
    large = ClusterTopic("t", id_of("t"), (PartitionState(0, 7, 0, (7,), (7,)),) * 6000)
    check_count(large, 16_000)
    with pytest.raises(Refusal, match="10001 partitions: at most 10000 are made at once"):
        check_count(large, 16_001)


def test_the_topic_of_group_offsets_does_not_grow() -> None:
    play("""
        create __consumer_offsets partitions=1
        record topic __consumer_offsets
        record partition 0 leader 1 epoch 0
        reply __consumer_offsets ok

        grow __consumer_offsets to=2 → reply __consumer_offsets INVALID_REQUEST
    """)


def test_configs_are_changed_one_by_one() -> None:
    machine = play("""
        create t partitions=1 retention.ms=5
        record topic t
        record config t retention.ms=5
        record partition 0 leader 1 epoch 0
        reply t ok

        change t retention.ms=6 flush.ms=7
        record config t flush.ms=7
        record config t retention.ms=6
        reply ok

        change t retention.ms=6 → reply ok

        change t retention.ms=
        record config t retention.ms=None
        reply ok

        change t retention.ms= → reply ok
        change t flush.ms=8 dry=1 → reply ok

        change t cleanup.policy+=delete
        record config t cleanup.policy=compact,delete
        reply ok

        change t cleanup.policy+=delete → reply ok

        change t cleanup.policy-=compact
        record config t cleanup.policy=delete
        reply ok
    """)
    assert machine.topics["t"].configs == {"cleanup.policy": "delete", "flush.ms": "7"}


def test_configs_are_replaced_all_at_once() -> None:
    machine = play("""
        create t partitions=1 retention.ms=5 flush.ms=7
        record topic t
        record config t retention.ms=5
        record config t flush.ms=7
        record partition 0 leader 1 epoch 0
        reply t ok

        replace t retention.ms=6 segment.ms=1
        record config t flush.ms=None
        record config t retention.ms=6
        record config t segment.ms=1
        reply ok

        replace t dry=1 → reply ok
    """)
    assert machine.topics["t"].configs == {"retention.ms": "6", "segment.ms": "1"}


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("change u retention.ms=1", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("change a/b retention.ms=1", "INVALID_TOPIC_EXCEPTION"),
        ("change t retention.mss=1", "INVALID_CONFIG"),
        ("change t retention.ms=soon", "INVALID_CONFIG"),
        ("change t retention.ms+=1", "INVALID_CONFIG"),
        ("change t retention.mss+=1", "INVALID_CONFIG"),
        ("change t cleanup.policy+=shred", "INVALID_CONFIG"),
        ("change t cleanup.policy+=", "INVALID_REQUEST"),
        ("change t retention.ms=1 retention.ms=2", "INVALID_REQUEST"),
        ("change t min.compaction.lag.ms=10 max.compaction.lag.ms=5", "INVALID_CONFIG"),
        ("replace t retention.mss=1", "INVALID_CONFIG"),
    ],
)
def test_invalid_configs_are_rejected(command: str, error: str) -> None:
    machine = Cluster()
    for record in machine.decide(event_of("create t partitions=1"), 0.0).records:
        machine.replay(record)
    decision = machine.decide(event_of(command), 0.0)
    assert (decision.records, show_reply(decision.replies[0].message)) == ((), [error])


def test_producer_ids_are_allocated_once() -> None:
    play("""
        ids 1000
        record ids below 1000 for broker 1
        reply 1000 ids from 0

        ids 1000
        record ids below 2000 for broker 1
        reply 1000 ids from 1000
    """)


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("create ..", "INVALID_TOPIC_EXCEPTION"),
        ("create ''", "INVALID_TOPIC_EXCEPTION"),
        ("create " + "x" * 250, "INVALID_TOPIC_EXCEPTION"),
        ("create t partitions=0", "INVALID_PARTITIONS"),
        ("create t partitions=-2", "INVALID_PARTITIONS"),
        ("create t partitions=1 copies=3", "INVALID_REPLICATION_FACTOR"),
        ("create t partitions=1 copies=0", "INVALID_REPLICATION_FACTOR"),
        ("create t partitions=1 retention.mss=1", "INVALID_CONFIG"),
        ("create t partitions=1 retention.ms=soon", "INVALID_CONFIG"),
        ("create t partitions=1 cleanup.policy=compact,shred", "INVALID_CONFIG"),
        ("create t partitions=1 segment.bytes=1", "INVALID_CONFIG"),
        ("create t partitions=1 compression.gzip.level=0", "INVALID_CONFIG"),
        ("create t partitions=1 retention.ms=9223372036854775808", "INVALID_CONFIG"),
        ("create t partitions=1 min.compaction.lag.ms=10 max.compaction.lag.ms=5", "INVALID_CONFIG"),
        ("create t partitions=10001", "POLICY_VIOLATION"),
    ],
)
def test_what_cannot_be_is_refused(command: str, error: str) -> None:
    (reply,) = Cluster().decide(event_of(command), 0.0).replies
    assert [name_of(result.error_code) for result in reply.message.topics] == [error]
    assert reply.message.topics[0].error_message


def test_names_with_equal_metric_names_collide() -> None:
    play("""
        create a.b partitions=1
        record topic a.b
        record partition 0 leader 1 epoch 0
        reply a.b ok

        create a_b partitions=1 → reply a_b INVALID_TOPIC_EXCEPTION
    """)


def test_a_machine_built_from_its_log_is_the_same_machine() -> None:
    machine, again = Cluster(), ClusterMetadata()
    again.replay(BROKER)
    for command in ("create a,b partitions=4 retention.ms=5", "ids 10", "delete a", "create c", "delete b"):
        for record in machine.decide(event_of(command), 0.0).records:
            machine.replay(record)
            again.replay(record)
    again.check()
    assert again.topics == machine.metadata.topics
    assert again.next_producer_id == machine.metadata.next_producer_id
