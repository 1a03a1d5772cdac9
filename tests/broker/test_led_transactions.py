"""Transactions kept in a partition that other brokers copy: answers and markers wait for the copies, and go with the leadership."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla.broker.coordinators import transaction_coordinator
from ottla.broker.coordinators.end_markers import TransactionEnd
from ottla.broker.coordinators.markers_elsewhere import Told
from ottla.broker.coordinators.transaction_coordinator import TransactionCoordinator
from ottla.broker.embedded import Broker
from ottla.broker.node import BrokerNode
from ottla.broker.partitions.partition import Partition
from ottla.broker.replication.followed_partition import begin_to_follow
from ottla.coordination.replication.assignment import Assignment
from ottla.errors import ErrorCode, KafkaError
from ottla.model import TopicPartition
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.protocol.messages.describe_transactions import DescribeTransactionsRequest
from ottla.protocol.messages.end_txn import EndTxnRequest
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.list_transactions import ListTransactionsRequest
from ottla.protocol.schema import Message
from tests.broker.test_led_partitions import ALL, EPOCH, ME, OTHER, in_loop
from tests.broker.wire import Wire
from tests.patience import eventually

STATE, FIRST = "__transaction_state", TopicPartition("t", 0)


def kept_in(node: BrokerNode) -> Partition:
    partition = node.partitions.find(STATE, 0)
    assert partition is not None
    return partition


def lead(broker: Broker, *in_sync: int, epoch: int = EPOCH, partition_epoch: int = 0, least: int = 1) -> None:
    """Let the metadata say that this broker has the ids, and who has copies of them."""
    assignment = Assignment(ME, epoch, partition_epoch, (ME, OTHER), frozenset(in_sync), least)

    def work(node: BrokerNode) -> None:
        node.lead(kept_in(node), assignment, ALL)
        node.led(kept_in(node))

    in_loop(broker, work)


def lose(node: BrokerNode, epoch: int = EPOCH + 1) -> None:
    """Let the metadata say that another broker has them."""
    begin_to_follow(kept_in(node), epoch, node.waiting, node.clock)
    node.lost(kept_in(node))


@pytest.fixture
def broker() -> Iterator[Broker]:
    settings = {"transaction_state_log_num_partitions": 1}
    with Broker(node_id=ME, **settings) as broker, Wire(broker.bootstrap_servers) as wire:  # type: ignore[arg-type]
        wire.create("t")
        wire.ask(FindCoordinatorRequest(key="id", key_type=1), 2)
        yield broker


@pytest.fixture
def wire(broker: Broker) -> Iterator[Wire]:
    with Wire(broker.bootstrap_servers) as wire:
        yield wire


@pytest.fixture
def other(broker: Broker) -> Iterator[Wire]:
    """The other broker's connection."""
    with Wire(broker.bootstrap_servers) as wire:
        yield wire


def end_of(broker: Broker) -> int:
    """Of the log in which the ids are."""
    found: list[int] = []
    in_loop(broker, lambda node: found.append(kept_in(node).log.end_offset))
    return found[0]


def copy_all(wire: Wire, broker: Broker, epoch: int = EPOCH) -> None:
    """Be the other broker, and fetch from the end: which says that all before it is kept."""
    topic = wire.metadata(STATE).topics[0].topic_id
    wanted = FetchPartition(0, -1, end_of(broker), epoch, partition_max_bytes=2**20)
    request = FetchRequest(
        max_wait_ms=0, topics=[FetchTopic(topic_id=topic, partitions=[wanted])], replica_state=ReplicaState(OTHER, 20)
    )
    assert wire.ask(request).responses[0].partitions[0].error_code == ErrorCode.NONE


def asked(wire: Wire, request: Message, version: int) -> Callable[[], Any]:
    """Ask, and return what waits for the answer."""
    wire.send(request, version)
    return lambda: wire.receive(request, version)[1]


def once_copied(broker: Broker, wire: Wire, other: Wire, request: Message, version: int, end: int) -> Any:
    """The answer to a request for which the log comes to `end`, once the other broker has that."""
    answer = asked(wire, request, version)
    eventually(lambda: end_of(broker) >= end)
    copy_all(other, broker)
    return answer()


BEGIN = InitProducerIdRequest("id", 60_000)


def adding(who: InitProducerIdResponse) -> AddPartitionsToTxnRequest:
    topics = [AddPartitionsToTxnTopic("t", [0])]
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="id",
        v3_and_below_producer_id=who.producer_id,
        v3_and_below_producer_epoch=who.producer_epoch,
        v3_and_below_topics=topics,
    )


def ending(who: InitProducerIdResponse, *, commit: bool = True) -> EndTxnRequest:
    return EndTxnRequest("id", who.producer_id, who.producer_epoch, commit)


def state(wire: Wire) -> tuple[int, str]:
    found = wire.ask(DescribeTransactionsRequest(["id"])).transaction_states[0]
    return found.error_code, found.transaction_state


def markers_in(broker: Broker) -> int:
    """How many batches are in the partition that takes part: nobody writes anything but the end."""
    found: list[int] = []
    in_loop(broker, lambda node: found.append(node.partitions.find(*FIRST).log.end_offset))  # type: ignore[union-attr]
    return found[0]


def test_each_step_is_answered_once_the_copies_have_it(broker: Broker, wire: Wire, other: Wire) -> None:
    lead(broker, ME, OTHER)
    who = once_copied(broker, wire, other, BEGIN, 5, 1)
    assert (who.error_code, who.producer_epoch) == (0, 0)
    added = once_copied(broker, wire, other, adding(who), 3, 2)
    assert added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0
    assert once_copied(broker, wire, other, ending(who), 4, 3).error_code == 0
    eventually(lambda: state(wire) == (0, "CompleteCommit"))
    assert markers_in(broker) == 1


def test_no_marker_leaves_before_the_decision_is_committed(broker: Broker, wire: Wire, other: Wire) -> None:
    lead(broker, ME)
    who = wire.ask(BEGIN, 5)
    wire.ask(adding(who), 3)
    lead(broker, ME, OTHER, partition_epoch=1)
    answer = asked(wire, ending(who), 4)
    eventually(lambda: end_of(broker) >= 3)
    assert (state(other), markers_in(broker)) == ((0, "PrepareCommit"), 0)
    copy_all(other, broker)
    assert answer().error_code == 0
    assert markers_in(broker) == 1


def test_who_waits_is_sent_to_another_when_another_leads(
    broker: Broker, wire: Wire, other: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    lead(broker, ME, OTHER)
    answer = asked(wire, BEGIN, 5)
    eventually(lambda: end_of(broker) >= 1)
    in_loop(broker, lose)
    assert answer().error_code == ErrorCode.NOT_COORDINATOR
    assert wire.ask(BEGIN, 5).error_code == ErrorCode.NOT_COORDINATOR
    assert wire.ask(ending(InitProducerIdResponse(producer_id=1)), 4).error_code == ErrorCode.NOT_COORDINATOR
    added = wire.ask(adding(InitProducerIdResponse(producer_id=1)), 3).results_by_topic_v3_and_below[0]
    assert added.results_by_partition[0].partition_error_code == ErrorCode.NOT_COORDINATOR
    assert not [each for each in caplog.records if each.levelname == "ERROR"], "each restart of a broker has that"
    assert state(wire)[0] == ErrorCode.NOT_COORDINATOR
    assert wire.ask(ListTransactionsRequest(), 1).transaction_states == []


def test_what_the_coordinator_before_left_prepared_is_ended_without_being_asked(
    broker: Broker, wire: Wire, other: Wire
) -> None:
    lead(broker, ME)
    who = wire.ask(BEGIN, 5)
    wire.ask(adding(who), 3)
    lead(broker, ME, OTHER, partition_epoch=1)
    answer = asked(wire, ending(who), 4)
    eventually(lambda: end_of(broker) >= 3)
    in_loop(broker, lose)
    assert answer().error_code == ErrorCode.NOT_COORDINATOR
    assert markers_in(broker) == 0
    lead(broker, ME, epoch=EPOCH + 2)
    eventually(lambda: markers_in(broker) == 1)
    eventually(lambda: state(wire) == (0, "CompleteCommit"))


def test_nothing_is_decided_while_too_few_are_in_sync(broker: Broker, wire: Wire) -> None:
    lead(broker, ME, least=2)
    assert wire.ask(BEGIN, 5).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert end_of(broker) == 0
    lead(broker, ME, partition_epoch=1)
    assert wire.ask(BEGIN, 5).error_code == 0


def test_a_broker_that_verifies_is_answered_when_what_it_is_told_is_committed(
    broker: Broker, wire: Wire, other: Wire
) -> None:
    lead(broker, ME, OTHER)
    who = once_copied(broker, wire, other, BEGIN, 5, 1)
    first = asked(wire, adding(who), 3)
    eventually(lambda: end_of(broker) >= 2)
    topics = [AddPartitionsToTxnTopic("t", [0])]
    wanted = [AddPartitionsToTxnTransaction("id", who.producer_id, 0, True, topics)] * 2
    with Wire(broker.bootstrap_servers) as verifier:
        answer = asked(verifier, AddPartitionsToTxnRequest(transactions=wanted), 5)
        copy_all(other, broker)
        results = answer().results_by_transaction
    first()
    codes = [each.topic_results[0].results_by_partition[0].partition_error_code for each in results]
    assert codes == [0, 0]


class Leaders:
    """Those at other brokers, to whom markers are sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[TopicPartition, TransactionEnd, Told]] = []

    def send(self, place: TopicPartition, end: TransactionEnd, told: Told) -> None:
        self.sent.append((place, end, told))

    def close(self) -> None:
        self.sent.clear()


def test_a_partition_that_another_broker_leads_gets_its_marker_there(broker: Broker, wire: Wire) -> None:
    leaders = Leaders()
    lead(broker, ME)
    who = wire.ask(BEGIN, 5)
    wire.ask(adding(who), 3)

    def follow(node: BrokerNode) -> None:
        partition = node.partitions.find(*FIRST)
        assert partition is not None
        begin_to_follow(partition, EPOCH, node.waiting, node.clock)
        node.markers.elsewhere = leaders  # type: ignore[assignment]

    in_loop(broker, follow)
    assert wire.ask(ending(who), 4).error_code == 0
    (place, end, told) = leaders.sent.pop()
    assert (place, end) == (FIRST, TransactionEnd(who.producer_id, 0, True, EPOCH))
    assert state(wire) == (0, "PrepareCommit")
    in_loop(broker, lambda node: told(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    eventually(lambda: bool(leaders.sent))
    in_loop(broker, lambda node: leaders.sent[0][2](ErrorCode.NONE))
    assert state(wire) == (0, "CompleteCommit")


class Disk:
    """Does what it is given when it is told to."""

    def __init__(self) -> None:
        self.given: list[tuple[Callable[[], Any], Callable[[BaseException | None], None]]] = []

    def submit(self, work: Callable[[], Any], done: Callable[[BaseException | None], None]) -> None:
        self.given.append((work, done))


def test_a_long_log_is_read_beside_the_loop_and_taken_up_in_the_same_term_alone(
    broker: Broker, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire.ask(BEGIN, 5)
    monkeypatch.setattr(transaction_coordinator, "LONG_BYTES", 1)
    found: list[list[str]] = []

    def story(node: BrokerNode) -> None:
        disk, partition = Disk(), kept_in(node)
        markers = node.markers.write
        coordinator = TransactionCoordinator(node._surroundings, node.producer_ids, markers, disk)  # type: ignore[arg-type]
        coordinator.take_up(partition)
        with pytest.raises(KafkaError, match="is being read"):
            coordinator.find("id")
        coordinator.retire(partition)
        coordinator.take_up(partition)
        for work, done in disk.given:
            work()
            done(None)
            machines = [each.machine for each in coordinator._runtimes.values()]
            found.append([name for machine in machines for name in machine.by_id])

    in_loop(broker, story)
    assert found == [[], ["id"]]


def test_a_partition_that_cannot_be_read_keeps_no_other_from_being_swept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    def log_of(partition: Partition) -> Any:
        if partition.topic_partition.topic != STATE:
            return partition.opened_log
        asked.append(partition.topic_partition.partition)
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk does not answer")

    with Broker(transaction_state_log_num_partitions=3) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.ask(FindCoordinatorRequest(key="id", key_type=1), 2)

        def story(node: BrokerNode) -> None:
            with monkeypatch.context() as patched:
                patched.setattr(Partition, "log", property(log_of))
                node.transactions.sweep()

        in_loop(broker, story)
    assert sorted(set(asked)) == [0, 2]  # what is in the other is known since it was asked for
