"""Groups in a replicated partition: responses wait for replication, and end with the leadership."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from ottla.broker.coordinators import coordinator_runtime
from ottla.broker.coordinators.group_coordinator import GroupCoordinator
from ottla.broker.embedding.embedded_broker import Broker
from ottla.broker.node import BrokerNode
from ottla.broker.replica_manager.followed_partition import become_follower
from ottla.broker.replica_manager.partition import Partition
from ottla.coordination.offsets.records import OffsetRecord, encode_record
from ottla.coordination.replication.assignment import ReplicaAssignment
from ottla.errors import ErrorCode, KafkaError
from ottla.model import OffsetAndMetadata, TopicPartition
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ottla.records.builder import BatchBuilder
from tests.broker.membership import Membership
from tests.broker.test_replicated_partitions import ALL, EPOCH, ME, OTHER, in_loop
from tests.broker.wire import Wire
from tests.patience import eventually

OFFSETS = "__consumer_offsets"


def kept_in(node: BrokerNode) -> Partition:
    partition = node.partitions.find(OFFSETS, 0)
    assert partition is not None
    return partition


def lead(broker: Broker, *in_sync: int, epoch: int = EPOCH, partition_epoch: int = 0, least: int = 1) -> None:
    """Apply metadata that make this broker the coordinator, with the given replicas."""
    assignment = ReplicaAssignment(ME, epoch, partition_epoch, (ME, OTHER), frozenset(in_sync), least)
    in_loop(broker, lambda node: node.lead(kept_in(node), assignment, ALL))


def lose(node: BrokerNode, epoch: int = EPOCH + 1) -> None:
    """Apply metadata that make another broker the coordinator."""
    become_follower(kept_in(node), epoch, node.waiting, node.clock)
    node.lost(kept_in(node))


@pytest.fixture
def broker() -> Iterator[Broker]:
    settings = {"offsets_topic_num_partitions": 1, "group_initial_rebalance_delay_ms": 0}
    with Broker(node_id=ME, **settings) as broker, Wire(broker.bootstrap_servers) as wire:  # type: ignore[arg-type]
        wire.create("t")
        wire.ask(FindCoordinatorRequest(key="g"), 2)
        yield broker


@pytest.fixture
def wire(broker: Broker) -> Iterator[Wire]:
    with Wire(broker.bootstrap_servers) as wire:
        yield wire


@pytest.fixture
def other(broker: Broker) -> Iterator[Wire]:
    with Wire(broker.bootstrap_servers) as wire:
        yield wire


def end_of(broker: Broker) -> int:
    """Return the end of the groups' log."""
    found: list[int] = []
    in_loop(broker, lambda node: found.append(kept_in(node).log.end_offset))
    return found[0]


def copy_all(wire: Wire, broker: Broker) -> None:
    """Fetch as the other broker from the end, which acknowledges all records before it."""
    topic = wire.metadata(OFFSETS).topics[0].topic_id
    wanted = FetchPartition(0, -1, end_of(broker), EPOCH, partition_max_bytes=2**20)
    request = FetchRequest(
        max_wait_ms=0, topics=[FetchTopic(topic_id=topic, partitions=[wanted])], replica_state=ReplicaState(OTHER, 20)
    )
    assert wire.ask(request).responses[0].partitions[0].error_code == ErrorCode.NONE


def commit(offset: int) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(0, offset)
    return OffsetCommitRequest("g", topics=[OffsetCommitRequestTopic("t", partitions=[partition])])


def committing(wire: Wire, offset: int) -> Callable[[], int]:
    """Commit; what waits for the answer, which is a code."""
    request = commit(offset)
    wire.send(request, 7)
    return lambda: int(wire.receive(request, 7)[1].topics[0].partitions[0].error_code)


ASKED = OffsetFetchRequest("g", [OffsetFetchRequestTopic("t", [0])])


def committed(wire: Wire) -> tuple[int, int]:
    """Return the error code and the committed offset."""
    answer = wire.ask(ASKED, 7)
    return answer.error_code, answer.topics[0].partitions[0].committed_offset if answer.topics else -1


def end_is(broker: Broker, end: int) -> None:
    """Wait until the log has the given end."""
    eventually(lambda: end_of(broker) >= end)


def test_a_commit_is_answered_and_visible_once_it_is_replicated(broker: Broker, wire: Wire, other: Wire) -> None:
    lead(broker, ME, OTHER)
    answer = committing(wire, 5)
    end_is(broker, 1)
    with Wire(broker.bootstrap_servers) as reader:
        reader.send(ASKED, 7)
        copy_all(other, broker)
        assert answer() == ErrorCode.NONE
        assert reader.receive(ASKED, 7)[1].topics[0].partitions[0].committed_offset == 5
    assert committed(wire) == (0, 5)


def test_a_commit_without_followers_is_answered_at_once(broker: Broker, wire: Wire) -> None:
    lead(broker, ME)
    assert committing(wire, 5)() == ErrorCode.NONE
    assert committed(wire) == (0, 5)


def test_an_assignment_is_sent_once_it_is_replicated(broker: Broker, other: Wire) -> None:
    lead(broker, ME, OTHER)
    member = Membership(broker.bootstrap_servers, version=3)
    with member.wire as own:
        joined = own.ask(member.request(), 3)
        assert (joined.error_code, joined.generation_id, joined.leader) == (0, 1, joined.member_id)
        shared = [SyncGroupRequestAssignment(joined.member_id, b"all of it")]
        sync = SyncGroupRequest("g", 1, joined.member_id, assignments=shared)
        own.send(sync, 3)
        end_is(broker, 1)
        own.send(heartbeat := HeartbeatRequest("g", 1, joined.member_id), 3)
        copy_all(other, broker)
        assert own.receive(sync, 3)[1].assignment == b"all of it"
        assert own.receive(heartbeat, 3)[1].error_code == ErrorCode.NONE


def test_waiting_clients_are_redirected_when_another_broker_becomes_leader(
    broker: Broker, wire: Wire, other: Wire
) -> None:
    lead(broker, ME, OTHER)
    answer = committing(wire, 5)
    end_is(broker, 1)
    other.send(ASKED, 7)
    in_loop(broker, lose)
    assert answer() == ErrorCode.NOT_COORDINATOR
    assert other.receive(ASKED, 7)[1].error_code == ErrorCode.NOT_COORDINATOR
    assert committed(wire) == (ErrorCode.NOT_COORDINATOR, -1)
    assert committing(wire, 6)() == ErrorCode.NOT_COORDINATOR
    assert wire.ask(DeleteGroupsRequest(["g"]), 1).results[0].error_code == ErrorCode.NOT_COORDINATOR


def written_elsewhere(node: BrokerNode, offset: int, epoch: int) -> None:
    """Append a record of another leader to the replica."""
    pair = encode_record(OffsetRecord.of("g", TopicPartition("t", 0), OffsetAndMetadata(offset), 0))
    builder = BatchBuilder(max_bytes=2**20)
    builder.append(0, *pair)
    data = bytearray(builder.build())
    log = kept_in(node).log
    data[:8] = log.end_offset.to_bytes(8, "big")
    data[12:16] = epoch.to_bytes(4, "big")
    log.append_as_is(bytes(data), leader_epoch=epoch, now_ms=0)


def test_a_new_leader_knows_the_records_of_the_previous_one(broker: Broker, wire: Wire) -> None:
    lead(broker, ME)
    assert committing(wire, 5)() == ErrorCode.NONE
    in_loop(broker, lose)
    in_loop(broker, lambda node: written_elsewhere(node, 70, EPOCH + 1))
    lead(broker, ME, epoch=EPOCH + 2)
    assert committed(wire) == (0, 70)


def test_nothing_is_written_while_the_isr_is_below_min_isr(broker: Broker, wire: Wire, other: Wire) -> None:
    lead(broker, ME, least=2)
    assert committing(wire, 5)() == ErrorCode.COORDINATOR_NOT_AVAILABLE
    lead(broker, ME, OTHER, partition_epoch=1, least=2)
    answer = committing(wire, 6)
    end_is(broker, 1)
    copy_all(other, broker)
    assert (answer(), committed(wire)) == (0, (0, 6))


def test_a_commit_that_no_replica_fetches_is_answered_after_a_timeout(
    broker: Broker, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.broker.coordinators.commitment.COMMIT_SECONDS", 0.05)
    lead(broker, ME, OTHER)
    assert committing(wire, 5)() == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert committed(wire) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)


class Disk:
    """A disk that executes its tasks when the test says so."""

    def __init__(self) -> None:
        self.given: list[tuple[Callable[[], Any], Callable[[BaseException | None], None]]] = []

    def submit(self, work: Callable[[], Any], done: Callable[[BaseException | None], None]) -> None:
        self.given.append((work, done))


def test_a_log_loaded_before_a_change_of_the_leader_is_not_used(
    broker: Broker, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator_runtime, "LONG_LOG_BYTES", 0)
    offsets: list[int] = []

    def story(node: BrokerNode) -> None:
        disk, partition = Disk(), kept_in(node)
        groups = GroupCoordinator(
            node.config, replace(node.coordinator_context, disk=disk), lambda: node.share_persister
        )
        with pytest.raises(KafkaError, match="being loaded"):
            groups.find("g")
        (work, done) = disk.given.pop()
        work()
        groups.retire(partition)
        written_elsewhere(node, 70, 0)
        with pytest.raises(KafkaError, match="being loaded"):
            groups.find("g")
        done(None)
        with pytest.raises(KafkaError, match="being loaded"):
            groups.find("g")
        (work, done) = disk.given.pop()
        work()
        done(None)
        committed_offsets = groups.find_offsets("g")
        assert committed_offsets is not None
        offsets.append(committed_offsets.all()[TopicPartition("t", 0)].offset)

    in_loop(broker, story)
    assert offsets == [70]
