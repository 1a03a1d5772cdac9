"""The state of a cluster from the records of Kafka's controllers: brokers, partitions, and metadata transactions."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.node_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    EndTransactionRecord,
    FenceBrokerRecord,
    NoOpRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
    ZkMigrationRecord,
)
from ottla.coordination.cluster.records import (
    AccessControlEntryRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EntityData,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnknownRecord,
    UserScramCredentialRecord,
    decode_record,
    encode_record,
)
from ottla.coordination.cluster.registration import BrokerListener
from ottla.coordination.cluster.replaying import replay_all
from ottla.coordination.cluster.topic import MIGRATING, PartitionState
from ottla.coordination.controller.config import ControllerConfig
from ottla.coordination.controller.controller import Controller
from ottla.coordination.controller.events import ControllerActivated
from ottla.errors import CorruptRecordError
from ottla.protocol.schema import Message

ID, DIRECTORY, OTHER = UUID(int=5), UUID(int=50), UUID(int=51)
BROKER = RegisterBrokerRecord(
    7, broker_epoch=12, end_points=[BrokerEndpoint("PLAINTEXT", "h", 9092, 0)], log_dirs=[DIRECTORY]
)
PARTITION = PartitionRecord(0, ID, [7, 8], [7, 8], [], [], 7, 0, 3, 4, [DIRECTORY, OTHER])


def image(*records: Message) -> ClusterMetadata:
    machine = ClusterMetadata()
    for record in records:
        machine.replay(record)
        machine.check()
    return machine


def state(*records: Message) -> PartitionState:
    return image(TopicRecord("t", ID), PARTITION, *records).topics["t"].partitions[0]


def test_a_broker_is_fenced_until_a_record_unfences_it() -> None:
    broker = image(BROKER).registrations[7]
    assert (broker.fenced, broker.epoch, broker.log_dirs) == (True, 12, (DIRECTORY,))
    assert broker.find_listener("PLAINTEXT") == BrokerListener("PLAINTEXT", "h", 9092, 0)
    assert broker.find_listener("SSL") is None


def test_a_broker_change_record_contains_only_changes() -> None:
    unfenced = image(BROKER, BrokerRegistrationChangeRecord(7, 12, -1)).registrations[7]
    assert (unfenced.fenced, unfenced.in_controlled_shutdown, unfenced.cordoned_log_dirs) == (False, False, None)
    cordoned = BrokerRegistrationChangeRecord(7, 12, cordoned_log_dirs=[DIRECTORY])
    leaving = BrokerRegistrationChangeRecord(7, 12, in_controlled_shutdown=1)
    broker = image(BROKER, BrokerRegistrationChangeRecord(7, 12, -1), cordoned, leaving).registrations[7]
    assert (broker.fenced, broker.in_controlled_shutdown, broker.cordoned_log_dirs) == (False, True, (DIRECTORY,))
    assert broker.log_dirs == (DIRECTORY,)


def test_records_of_an_earlier_incarnation_change_nothing() -> None:
    assert image(BROKER, BrokerRegistrationChangeRecord(7, 11, -1)).registrations[7].fenced
    assert image(BROKER, UnfenceBrokerRecord(7, 11)).registrations[7].fenced


def test_the_older_records_fence_and_unfence_too() -> None:
    assert not image(BROKER, UnfenceBrokerRecord(7, 12)).registrations[7].fenced
    assert image(BROKER, UnfenceBrokerRecord(7, 12), FenceBrokerRecord(7, 12)).registrations[7].fenced


def test_a_broker_that_registers_again_is_replaced_and_an_unregistered_one_removed() -> None:
    assert image(BROKER, RegisterBrokerRecord(7, broker_epoch=30)).registrations[7].epoch == 30
    assert image(BROKER, UnregisterBrokerRecord(7, 12)).registrations == {}


def test_a_partition_may_have_an_empty_isr_and_no_leader() -> None:
    lost = state(
        PartitionChangeRecord(0, ID, isr=[], leader=-1, eligible_leader_replicas=[8], last_known_elr=[7]),
    )
    assert (lost.leader, lost.isr, lost.elr, lost.last_known_elr) == (-1, (), (8,), (7,))
    assert (lost.leader_epoch, lost.partition_epoch) == (4, 5)


def test_a_reassignment_lists_adding_and_removing_replicas_with_their_directories() -> None:
    change = PartitionChangeRecord(
        0, ID, replicas=[7, 8, 9], adding_replicas=[9], removing_replicas=[8], directories=[DIRECTORY, OTHER, ID]
    )
    moved = state(change)
    assert (moved.replicas, moved.adding_replicas, moved.removing_replicas) == ((7, 8, 9), (9,), (8,))
    assert moved.directories == (DIRECTORY, OTHER, ID)
    assert (moved.leader, moved.leader_epoch, moved.partition_epoch) == (7, 3, 5)


def test_a_leader_is_recovering_until_a_record_ends_it() -> None:
    recovering = PartitionChangeRecord(0, ID, isr=[8], leader=8, leader_recovery_state=1)
    assert state(recovering).leader_recovery_state == 1
    assert state(recovering, PartitionChangeRecord(0, ID, leader=8)).leader_recovery_state == 1
    assert state(recovering, PartitionChangeRecord(0, ID, leader_recovery_state=0)).leader_recovery_state == 0


def test_a_record_from_before_directories_has_its_replicas_in_unknown_ones() -> None:
    old = image(TopicRecord("t", ID), PartitionRecord(0, ID, [7, 8], [7], leader=7)).topics["t"].partitions[0]
    assert old.directories == (MIGRATING, MIGRATING)


@pytest.mark.parametrize("name", ["", "t"])
def test_the_eligible_leader_replicas_can_be_cleared(name: str) -> None:
    eligible = PartitionChangeRecord(0, ID, isr=[7], eligible_leader_replicas=[8])
    assert state(eligible, ClearElrRecord(name)).elr == ()
    assert state(eligible, ClearElrRecord(name)).partition_epoch == 6
    assert state(eligible, ClearElrRecord("another")).elr == (8,)
    assert state(ClearElrRecord(name)).partition_epoch == 4


@pytest.mark.parametrize("record", [NoOpRecord(), ZkMigrationRecord(3)])
def test_a_no_op_record_changes_nothing(record: Message) -> None:
    assert list(image(BROKER, record).records()) == list(image(BROKER).records())


def test_half_a_transaction_is_not_applied() -> None:
    begun = image(FeatureLevelRecord("metadata.version", 30), BeginTransactionRecord("x"), TopicRecord("t", ID), BROKER)
    assert begun.in_transaction
    assert begun.topics == {}
    assert begun.registrations == {}


def test_a_transaction_is_applied_as_a_whole_at_its_end_and_not_at_all_when_it_is_aborted() -> None:
    part = (BeginTransactionRecord(), TopicRecord("t", ID), PARTITION)
    assert image(*part, EndTransactionRecord()).topics["t"].partitions[0].leader == 7
    aborted = image(*part, AbortTransactionRecord("no"), BROKER)
    assert (aborted.topics, aborted.in_transaction, list(aborted.registrations)) == ({}, False, [7])


def test_the_only_node_aborts_a_transaction_left_open_by_kafkas_controllers() -> None:
    machine = image(BROKER, BrokerRegistrationChangeRecord(7, 12, -1), BeginTransactionRecord(), TopicRecord("t", ID))
    controller = Controller(ControllerConfig("c", own_broker=1), machine, 4)
    for record in controller.decide(ControllerActivated(), 0.0).records:
        controller.replay(record)
    assert not machine.in_transaction
    assert machine.topics == {}
    assert machine.registrations[7].fenced
    assert controller.decide(ControllerActivated(), 0.0).records == ()


def test_an_unknown_record_type_is_kept_at_a_known_version_and_rejected_at_a_later_one() -> None:
    foreign = UnknownRecord(b"\x01\x29\x00\x00")
    assert list(image(FeatureLevelRecord("metadata.version", 33), foreign).records())[-1] == foreign
    later = image(FeatureLevelRecord("metadata.version", 34))
    with pytest.raises(CorruptRecordError, match=r"kind 41 is not known here: the cluster runs metadata.version 34"):
        later.replay(foreign)


def test_a_controller_that_was_unregistered_is_not_listed_any_more() -> None:
    machine = image(RegisterControllerRecord(3, ID), RegisterControllerRecord(4, OTHER))

    machine.replay(UnregisterControllerRecord(3))
    machine.replay(UnregisterControllerRecord(9))

    assert list(machine.controllers) == [4]


EVENTS: list[Message] = [
    BROKER,
    RegisterBrokerRecord(8, broker_epoch=20, fenced=False, log_dirs=[OTHER], cordoned_log_dirs=[OTHER]),
    BrokerRegistrationChangeRecord(7, 12, -1),
    BrokerRegistrationChangeRecord(8, 20, 1, 1, [ID], []),
    UnregisterBrokerRecord(8, 20),
    RegisterControllerRecord(3, ID, end_points=[], features=[]),
    UnregisterControllerRecord(3),
    TopicRecord("t", ID),
    PARTITION,
    PartitionRecord(1, ID, [8], [8], leader=8, directories=[OTHER]),
    PartitionChangeRecord(0, ID, isr=[], leader=-1, eligible_leader_replicas=[8], last_known_elr=[7]),
    PartitionChangeRecord(0, ID, [7], 7, eligible_leader_replicas=[], last_known_elr=[]),
    ConfigRecord(2, "t", "retention.ms", "1"),
    ClearElrRecord(""),
    RemoveTopicRecord(ID),
    BeginTransactionRecord(),
    EndTransactionRecord(),
    AbortTransactionRecord(),
]


NAMED: list[Message] = [
    FeatureLevelRecord("metadata.version", 30),
    ConfigRecord(4, "", "log.retention.ms", "1"),
    ConfigRecord(4, "7", "log.retention.ms", "2"),
    ConfigRecord(32, "g", "consumer.session.timeout.ms", "3"),
    ConfigRecord(16, "m", "interval.ms", "4"),
    ConfigRecord(64, "other", "x", "5"),
    AccessControlEntryRecord(OTHER, 2, "t", 3, "User:a", "*", 3, 3),
    ClientQuotaRecord([EntityData("client-id", None), EntityData("user", "a")], "request_percentage", 6.0),
    UserScramCredentialRecord("a", 1, b"salt", b"stored", b"server", 4096),
    DelegationTokenRecord("User:a", "User:b", ["User:c"], 1, 3, 2, "token"),
    UnknownRecord(b"\x01\x29\x00\x00"),
    ProducerIdsRecord(next_producer_id=3000),
]


def kept(machine: ClusterMetadata) -> dict[str, object]:
    """All that a cluster is, but for what only this process counts."""
    return vars(machine) | {
        "acls": machine.acls.by_id,
        "quotas": machine.quotas.values,
        "topics_version": 0,
        "scram_version": 0,
    }


@given(st.lists(st.sampled_from(NAMED)))
def test_every_named_entity_is_in_a_snapshot(records: list[Message]) -> None:
    machine = image(*records)
    again = image(*(decode_record(encode_record(record)) for record in machine.records()))
    assert kept(again) == kept(machine)


def test_every_named_entity_is_kept_as_recorded() -> None:
    records = list(image(*NAMED).records())
    assert [record for record in NAMED if record not in records] == []


def test_the_version_of_the_topics_grows_with_each_change_of_them() -> None:
    change = PartitionChangeRecord(0, ID, isr=[7], eligible_leader_replicas=[8])
    machine, versions = ClusterMetadata(), [0]
    for record in (TopicRecord("t", ID), PARTITION, change, ClearElrRecord("t"), RemoveTopicRecord(ID)):
        machine.replay(record)
        versions.append(machine.topics_version)
    assert versions == sorted(set(versions))
    machine.replay(RemoveTopicRecord(ID))
    assert machine.topics_version == versions[-1]


@given(st.lists(st.sampled_from(EVENTS), max_size=25))
def test_a_snapshot_makes_the_state_that_its_records_made(records: list[Message]) -> None:
    machine = ClusterMetadata()
    for record in [TopicRecord("t", ID), PARTITION, *records, AbortTransactionRecord()]:
        machine.replay(record)
    again = ClusterMetadata()
    for record in machine.records():
        again.replay(decode_record(encode_record(record)))
    assert again.topics == machine.topics
    assert again.registrations == machine.registrations
    assert again.controllers == machine.controllers


def test_the_records_of_a_copied_state_are_those_of_the_state_when_it_was_copied() -> None:
    machine = image(BROKER, RegisterControllerRecord(3, ID), TopicRecord("t", ID), PARTITION, *NAMED)
    before = list(machine.records())
    copied = machine.copy_records()
    machine.replay(RemoveTopicRecord(ID))
    machine.replay(ConfigRecord(32, "g", "consumer.session.timeout.ms", None))
    machine.replay(UnregisterControllerRecord(3))
    assert list(copied) == before


@given(st.lists(st.sampled_from(EVENTS[:-3]), min_size=1, max_size=12), st.data())
def test_a_transaction_is_invisible_before_its_end(records: list[Message], data: st.DataObject) -> None:
    before = [TopicRecord("t", ID), PARTITION]
    cut = data.draw(st.integers(0, len(records)))
    half = image(*before, BeginTransactionRecord(), *records[:cut])
    assert list(half.records()) == list(image(*before).records())
    half.replay(AbortTransactionRecord())
    assert list(half.records()) == list(image(*before).records())


ANYWHERE = [each for each in EVENTS if not isinstance(each, TopicRecord)]
"""Events that are valid in any state. A topic starts with its first partition, so that there is never a gap."""
STEPS: list[list[Message]] = [
    [TopicRecord("t", ID), PARTITION],
    *([each] for each in (*ANYWHERE, PartitionChangeRecord(7, ID, isr=[8]), PartitionChangeRecord(0, OTHER))),
]


@given(st.lists(st.sampled_from(STEPS), max_size=25))
def test_records_applied_together_or_one_by_one_give_the_same_state(steps: list[list[Message]]) -> None:
    records = [record for step in steps for record in step]
    together = image(TopicRecord("t", ID), PARTITION)
    replay_all(together, records)
    one_by_one = image(TopicRecord("t", ID), PARTITION, *records)
    assert list(together.records()) == list(one_by_one.records())
    assert together.in_transaction == one_by_one.in_transaction
