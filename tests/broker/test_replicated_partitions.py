"""A partition that other brokers copy, over the wire: followers fetch, producers wait, consumers see what is committed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from ottla.broker.embedding.embedded_broker import Broker, InThread
from ottla.broker.node import BrokerNode
from ottla.broker.replica_manager.partition import Partition
from ottla.broker.replica_manager.replication_throttle import LEADER, ThrottledReplicas
from ottla.coordination.replication.assignment import LiveBrokers, ReplicaAssignment
from ottla.errors import ErrorCode
from ottla.model import LATEST
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData, ReplicaState
from ottla.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.protocol.messages.produce import PartitionProduceData, PartitionProduceResponse
from tests.broker.wire import Wire, batch, produce, values
from tests.patience import PATIENCE, eventually

ME, OTHER, EPOCH = 1, 2, 7
ALL = LiveBrokers({ME: 10, OTHER: 20})


def in_loop(broker: Broker, work: Callable[[BrokerNode], object]) -> None:
    """Do something where the broker does everything."""
    running, done = broker._running, threading.Event()
    assert isinstance(running, InThread)
    server = running._server

    def do() -> None:
        work(server.node)
        done.set()

    server.call_soon(do)
    assert done.wait(PATIENCE)


def found(node: BrokerNode) -> Partition:
    partition = node.partitions.find("t", 0)
    assert partition is not None
    return partition


def lead(
    broker: Broker, *in_sync: int, leader_epoch: int = EPOCH, partition_epoch: int = 0, min_in_sync: int = 1
) -> None:
    """Apply metadata that make the broker the leader, with the given ISR."""
    assignment = ReplicaAssignment(ME, leader_epoch, partition_epoch, (ME, OTHER), frozenset(in_sync), min_in_sync)
    in_loop(broker, lambda node: node.lead(found(node), assignment, ALL))


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(node_id=ME) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        yield broker


@pytest.fixture
def follower(broker: Broker) -> Iterator[Wire]:
    """A connection of the other broker's."""
    with Wire(broker.bootstrap_servers) as wire:
        yield wire


def follow(
    wire: Wire,
    offset: int,
    last_epoch: int = -1,
    broker_epoch: int = 20,
    broker: int = OTHER,
    leader_epoch: int = EPOCH,
) -> PartitionData:
    """Fetch as a follower that has all before an offset."""
    wanted = FetchPartition(0, leader_epoch, offset, last_epoch, partition_max_bytes=2**20)
    topic = wire.metadata("t").topics[0].topic_id
    request = FetchRequest(
        max_wait_ms=0,
        topics=[FetchTopic(topic_id=topic, partitions=[wanted])],
        replica_state=ReplicaState(broker, broker_epoch),
    )
    answer: PartitionData = wire.ask(request).responses[0].partitions[0]
    return answer


def copied(wire: Wire, count: int) -> PartitionData:
    """Fetch as a follower without records until there are so many, which are written over another connection."""
    deadline = time.monotonic() + PATIENCE
    while len(values(answer := follow(wire, 0))) < count:
        assert time.monotonic() < deadline
    return answer


def start_produce(wire: Wire, timeout_ms: int = 60_000) -> Callable[[], PartitionProduceResponse]:
    """Send a record with acks=all; what waits for the answer."""
    request = produce("t", batch([b"a"]))
    request.timeout_ms = timeout_ms
    wire.send(request, 11)

    def received() -> PartitionProduceResponse:
        result: PartitionProduceResponse = wire.receive(request, 11)[1].responses[0].partition_responses[0]
        return result

    return received


def latest(wire: Wire, version: int = 8) -> tuple[int, int]:
    """Return the error code and the end offset for a consumer."""
    request = ListOffsetsRequest(-1, topics=[ListOffsetsTopic("t", [ListOffsetsPartition(0, -1, LATEST)])])
    answer = wire.ask(request, version).topics[0].partitions[0]
    return answer.error_code, answer.offset


def test_acks_all_is_answered_and_visible_when_the_follower_has_the_record(
    broker: Broker, wire: Wire, follower: Wire
) -> None:
    lead(broker, ME, OTHER)
    answer = start_produce(wire)
    copy = copied(follower, 1)
    assert (values(copy), copy.high_watermark) == ([b"a"], 0)
    assert latest(follower) == (0, 0)
    assert follower.fetch("t").records == b""
    assert follow(follower, 1, EPOCH).high_watermark == 1
    assert (answer().error_code, latest(wire)) == (0, (0, 1))
    assert values(wire.fetch("t")) == [b"a"]


def test_a_produce_to_several_partitions_is_answered_with_the_last_of_them(
    broker: Broker, wire: Wire, follower: Wire
) -> None:
    wire.create("two", partitions=2)
    assignment = ReplicaAssignment(ME, EPOCH, 0, (ME, OTHER), frozenset((ME, OTHER)))

    def partition(node: BrokerNode, index: int) -> Partition:
        found = node.partitions.find("two", index)
        assert found is not None
        return found

    def copied_up_to(index: int) -> None:
        """The other broker has the first record of a partition."""

        def fetched(node: BrokerNode) -> None:
            leadership = partition(node, index).leadership
            assert leadership is not None
            assert leadership.handle_fetch(OTHER, 1, 20, node.clock.monotonic())

        in_loop(broker, fetched)

    for index in (0, 1):
        in_loop(broker, lambda node: node.lead(partition(node, index), assignment, ALL))  # noqa: B023
    both, behind = produce("two", batch([b"a"])), produce("two", batch([b"b"]))
    both.topic_data[0].partition_data = [PartitionProduceData(index, batch([b"a"])) for index in (0, 1)]
    behind.topic_data[0].partition_data = [PartitionProduceData(1, batch([b"b"]))]
    both.timeout_ms = behind.timeout_ms = 60_000
    wire.send(both, 11)
    eventually(lambda: ends_at(broker, lambda node: partition(node, 1), 1))
    follower.send(behind, 11)
    eventually(lambda: ends_at(broker, lambda node: partition(node, 1), 2))
    copied_up_to(0)
    copied_up_to(1)
    answers = wire.receive(both, 11)[1].responses[0].partition_responses
    assert [(each.error_code, each.base_offset) for each in answers] == [(0, 0), (0, 0)]


def ends_at(broker: Broker, partition: Callable[[BrokerNode], Partition], offset: int) -> bool:
    seen: list[int] = []
    in_loop(broker, lambda node: seen.append(partition(node).log.end_offset))
    return seen == [offset]


def test_acks_1_does_not_wait(broker: Broker, wire: Wire) -> None:
    lead(broker, ME, OTHER)
    assert wire.produce("t", b"a", acks=1).error_code == 0
    assert wire.fetch("t").records == b""


def test_with_the_leader_alone_in_the_isr_an_append_commits(broker: Broker, wire: Wire) -> None:
    lead(broker, ME)
    request = produce("t", batch([b"a"]))
    request.timeout_ms = 2**31 - 1  # so that a response after a wait would be too late for the test
    (result,) = wire.ask(request, 11).responses[0].partition_responses
    assert result.error_code == 0
    assert values(wire.fetch("t")) == [b"a"]


def test_a_waiting_fetch_is_completed_when_records_are_committed(broker: Broker, wire: Wire, follower: Wire) -> None:
    lead(broker, ME, OTHER)
    wanted = FetchPartition(0, -1, 0, partition_max_bytes=2**20)
    request = FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=[FetchTopic("t", partitions=[wanted])])
    wire.send(request, 12)
    assert follower.produce("t", b"a", acks=1).error_code == 0
    follow(follower, 1, EPOCH)
    assert values(wire.receive(request, 12)[1].responses[0].partitions[0]) == [b"a"]


@pytest.mark.behaviour("P3")
def test_nothing_is_appended_while_the_isr_is_below_min_isr(broker: Broker, wire: Wire) -> None:
    lead(broker, ME, min_in_sync=2)
    result = wire.produce("t", b"a")
    assert (result.error_code, result.error_message) == (
        ErrorCode.NOT_ENOUGH_REPLICAS,
        "1 in sync, min.insync.replicas is 2",
    )
    in_loop(broker, lambda node: end_must_be(node, 0))


def end_must_be(node: BrokerNode, end: int) -> None:
    assert found(node).log.end_offset == end


def test_a_record_that_is_not_replicated_in_time_is_a_timeout_error(broker: Broker, wire: Wire) -> None:
    lead(broker, ME, OTHER)
    result = start_produce(wire, timeout_ms=30)()
    assert result.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert "offset 0 was not committed within timeout.ms = 30" in str(result.error_message)


def test_a_record_committed_while_the_isr_shrinks_below_min_isr_is_an_error_after_append(
    broker: Broker, wire: Wire, follower: Wire
) -> None:
    lead(broker, ME, OTHER, min_in_sync=2)
    answer = start_produce(wire)

    def commit_and_shrink(node: BrokerNode) -> None:
        leadership = found(node).leadership
        assert leadership is not None
        assert leadership.handle_fetch(OTHER, 1, 20, node.clock.monotonic())
        shrunk = ReplicaAssignment(ME, EPOCH, 1, (ME, OTHER), frozenset({ME}), 2)
        leadership.assign(shrunk, ALL, node.clock.monotonic())

    assert values(copied(follower, 1)) == [b"a"]
    in_loop(broker, commit_and_shrink)
    assert answer().error_code == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def test_a_waiting_produce_continues_in_a_new_epoch_of_the_same_leader(
    broker: Broker, wire: Wire, follower: Wire
) -> None:
    lead(broker, ME, OTHER)
    answer = start_produce(wire)
    assert values(copied(follower, 1)) == [b"a"]
    lead(broker, ME, OTHER, leader_epoch=EPOCH + 1, partition_epoch=1)
    assert follow(follower, 1, EPOCH).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert follow(follower, 1, EPOCH, leader_epoch=EPOCH + 1).high_watermark == 1
    assert answer().error_code == ErrorCode.NONE


def test_a_disconnected_producer_leaves_no_waiting_request(broker: Broker, follower: Wire) -> None:
    lead(broker, ME, OTHER)
    with Wire(broker.bootstrap_servers) as gone:
        start_produce(gone)
        assert values(copied(follower, 1)) == [b"a"]
    answer = start_produce(follower)
    with Wire(broker.bootstrap_servers) as other:
        assert len(values(copied(other, 2))) == 2
        follow(other, 2, EPOCH)
    assert answer().error_code == 0


def test_a_diverging_follower_gets_the_divergence_and_commits_nothing(
    broker: Broker, wire: Wire, follower: Wire
) -> None:
    """KAFKA-13141."""
    wire.produce("t", b"of epoch 0")
    lead(broker, ME, OTHER)
    wire.produce("t", b"of epoch 7", acks=1)
    parting = follow(follower, 2, 0).diverging_epoch
    assert parting is not None
    assert (parting.epoch, parting.end_offset) == (0, 1)
    assert follow(follower, 1, 0).high_watermark == 1
    assert follow(follower, 2, EPOCH).high_watermark == 2


def test_a_broker_without_a_replica_is_rejected_as_follower(broker: Broker, follower: Wire) -> None:
    lead(broker, ME, OTHER)
    assert follow(follower, 0, broker=9).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_new_leader_returns_no_end_offset_before_it_knows_the_high_watermark(
    broker: Broker, wire: Wire, follower: Wire
) -> None:
    """KIP-207."""
    lead(broker, ME, OTHER)
    wire.produce("t", b"a", acks=1)
    lead(broker, ME, OTHER, leader_epoch=EPOCH + 1, partition_epoch=1)
    assert latest(wire) == (ErrorCode.OFFSET_NOT_AVAILABLE, -1)
    assert latest(wire, 4)[0] == ErrorCode.LEADER_NOT_AVAILABLE
    lead(broker, ME, leader_epoch=EPOCH + 1, partition_epoch=2)
    assert latest(wire) == (0, 1)


def throttle(broker: Broker, limit: int, replicas: str) -> None:
    """Set the replication quota of the topic in bytes per second."""

    def do(node: BrokerNode) -> None:
        configs = {"leader.replication.throttled.replicas": replicas}
        node.copies_sent = ThrottledReplicas(LEADER, lambda: limit, lambda topic: configs, ME, node.clock)

    in_loop(broker, do)


@pytest.mark.parametrize(("limit", "replicas", "copied"), [(1, "*", 1), (1, "0:1", 1), (1, "0:2", 2), (2**40, "*", 2)])
def test_a_lagging_replica_above_the_replication_quota_gets_no_records(
    broker: Broker, follower: Wire, limit: int, replicas: str, copied: int
) -> None:
    lead(broker, ME)
    throttle(broker, limit, replicas)
    in_loop(broker, lambda node: node.append(found(node), batch([b"a" * 1000])))
    assert len(values(follow(follower, 0))) == 1
    in_loop(broker, lambda node: node.append(found(node), batch([b"b"])))
    assert len(values(follow(follower, 0))) == (copied if copied > 1 else 0)


def test_a_replica_in_the_isr_is_never_throttled(broker: Broker, follower: Wire) -> None:
    lead(broker, ME, OTHER)
    throttle(broker, 1, "*")
    in_loop(broker, lambda node: node.append(found(node), batch([b"a" * 1000])))
    for _ in range(3):
        assert len(values(follow(follower, 0))) == 1
