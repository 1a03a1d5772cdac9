"""Transactions in a replicated partition: responses and markers wait for replication, and end with the leadership."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from ottla.broker.coordinators import coordinator_runtime
from ottla.broker.coordinators.transaction_coordinator import TransactionCoordinator
from ottla.broker.coordinators.transaction_markers import MarkerCallback, TransactionEnd
from ottla.broker.embedding.embedded_broker import Broker
from ottla.broker.node import BrokerNode
from ottla.broker.replica_manager.followed_partition import become_follower
from ottla.broker.replica_manager.partition import Partition
from ottla.coordination.replication.assignment import ReplicaAssignment
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
from tests.broker.test_replicated_partitions import ALL, EPOCH, ME, OTHER, in_loop
from tests.broker.wire import Wire
from tests.patience import eventually

STATE, FIRST = "__transaction_state", TopicPartition("t", 0)


def kept_in(node: BrokerNode) -> Partition:
    partition = node.partitions.find(STATE, 0)
    assert partition is not None
    return partition


def lead(broker: Broker, *in_sync: int, epoch: int = EPOCH, partition_epoch: int = 0, least: int = 1) -> None:
    """Apply metadata that make this broker the coordinator, with the given replicas."""
    assignment = ReplicaAssignment(ME, epoch, partition_epoch, (ME, OTHER), frozenset(in_sync), least)

    def work(node: BrokerNode) -> None:
        node.lead(kept_in(node), assignment, ALL)
        node.led(kept_in(node))

    in_loop(broker, work)


def lose(node: BrokerNode, epoch: int = EPOCH + 1) -> None:
    """Apply metadata that make another broker the coordinator."""
    become_follower(kept_in(node), epoch, node.waiting, node.clock)
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
    """Return the end of the transactions' log."""
    found: list[int] = []
    in_loop(broker, lambda node: found.append(kept_in(node).log.end_offset))
    return found[0]


def copy_all(wire: Wire, broker: Broker, epoch: int = EPOCH) -> None:
    """Fetch as the other broker from the end, which acknowledges all records before it."""
    topic = wire.metadata(STATE).topics[0].topic_id
    wanted = FetchPartition(0, -1, end_of(broker), epoch, partition_max_bytes=2**20)
    request = FetchRequest(
        max_wait_ms=0, topics=[FetchTopic(topic_id=topic, partitions=[wanted])], replica_state=ReplicaState(OTHER, 20)
    )
    assert wire.ask(request).responses[0].partitions[0].error_code == ErrorCode.NONE


def start_request(wire: Wire, request: Message, version: int) -> Callable[[], Any]:
    """Send a request and return a function that waits for the response."""
    wire.send(request, version)
    return lambda: wire.receive(request, version)[1]


def once_copied(broker: Broker, wire: Wire, other: Wire, request: Message, version: int, end: int) -> Any:
    """Return the response to a request that extends the log to `end`, once the other broker has replicated it."""
    answer = start_request(wire, request, version)
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
    """Return the number of batches in the participating partition, to which only markers are written."""
    found: list[int] = []
    in_loop(broker, lambda node: found.append(node.partitions.find(*FIRST).log.end_offset))  # type: ignore[union-attr]
    return found[0]


def test_each_step_is_answered_once_it_is_replicated(broker: Broker, wire: Wire, other: Wire) -> None:
    lead(broker, ME, OTHER)
    who = once_copied(broker, wire, other, BEGIN, 5, 1)
    assert (who.error_code, who.producer_epoch) == (0, 0)
    added = once_copied(broker, wire, other, adding(who), 3, 2)
    assert added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0
    assert once_copied(broker, wire, other, ending(who), 4, 3).error_code == 0
    eventually(lambda: state(wire) == (0, "CompleteCommit"))
    assert markers_in(broker) == 1


def test_no_marker_is_sent_before_the_decision_is_committed(broker: Broker, wire: Wire, other: Wire) -> None:
    lead(broker, ME)
    who = wire.ask(BEGIN, 5)
    wire.ask(adding(who), 3)
    lead(broker, ME, OTHER, partition_epoch=1)
    answer = start_request(wire, ending(who), 4)
    eventually(lambda: end_of(broker) >= 3)
    assert (state(other), markers_in(broker)) == ((0, "PrepareCommit"), 0)
    copy_all(other, broker)
    assert answer().error_code == 0
    assert markers_in(broker) == 1


def test_waiting_clients_are_redirected_when_another_broker_becomes_leader(
    broker: Broker, wire: Wire, other: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    lead(broker, ME, OTHER)
    answer = start_request(wire, BEGIN, 5)
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


def test_a_transaction_prepared_by_the_previous_coordinator_is_completed(
    broker: Broker, wire: Wire, other: Wire
) -> None:
    lead(broker, ME)
    who = wire.ask(BEGIN, 5)
    wire.ask(adding(who), 3)
    lead(broker, ME, OTHER, partition_epoch=1)
    answer = start_request(wire, ending(who), 4)
    eventually(lambda: end_of(broker) >= 3)
    in_loop(broker, lose)
    assert answer().error_code == ErrorCode.NOT_COORDINATOR
    assert markers_in(broker) == 0
    lead(broker, ME, epoch=EPOCH + 2)
    eventually(lambda: markers_in(broker) == 1)
    eventually(lambda: state(wire) == (0, "CompleteCommit"))


def test_nothing_is_decided_while_the_isr_is_below_min_isr(broker: Broker, wire: Wire) -> None:
    lead(broker, ME, least=2)
    assert wire.ask(BEGIN, 5).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert end_of(broker) == 0
    lead(broker, ME, partition_epoch=1)
    assert wire.ask(BEGIN, 5).error_code == 0


def test_a_verification_is_answered_when_the_added_partition_is_committed(
    broker: Broker, wire: Wire, other: Wire
) -> None:
    lead(broker, ME, OTHER)
    who = once_copied(broker, wire, other, BEGIN, 5, 1)
    first = start_request(wire, adding(who), 3)
    eventually(lambda: end_of(broker) >= 2)
    topics = [AddPartitionsToTxnTopic("t", [0])]
    wanted = [AddPartitionsToTxnTransaction("id", who.producer_id, 0, True, topics)] * 2
    with Wire(broker.bootstrap_servers) as verifier:
        answer = start_request(verifier, AddPartitionsToTxnRequest(transactions=wanted), 5)
        copy_all(other, broker)
        results = answer().results_by_transaction
    first()
    codes = [each.topic_results[0].results_by_partition[0].partition_error_code for each in results]
    assert codes == [0, 0]


class Leaders:
    """The markers sent to other brokers."""

    def __init__(self) -> None:
        self.sent: list[tuple[TopicPartition, TransactionEnd, MarkerCallback]] = []

    def send(self, place: TopicPartition, end: TransactionEnd, reported: MarkerCallback) -> None:
        self.sent.append((place, end, reported))

    def close(self) -> None:
        self.sent.clear()


def test_a_partition_of_another_leader_gets_its_marker_there(broker: Broker, wire: Wire) -> None:
    leaders = Leaders()
    lead(broker, ME)
    who = wire.ask(BEGIN, 5)
    wire.ask(adding(who), 3)

    def follow(node: BrokerNode) -> None:
        partition = node.partitions.find(*FIRST)
        assert partition is not None
        become_follower(partition, EPOCH, node.waiting, node.clock)
        node.markers._remote = leaders  # type: ignore[assignment]

    in_loop(broker, follow)
    assert wire.ask(ending(who), 4).error_code == 0
    (place, end, reported) = leaders.sent.pop()
    assert (place, end) == (FIRST, TransactionEnd(who.producer_id, 0, True, EPOCH))
    assert state(wire) == (0, "PrepareCommit")
    in_loop(broker, lambda node: reported(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    eventually(lambda: bool(leaders.sent))
    in_loop(broker, lambda node: leaders.sent[0][2](ErrorCode.NONE))
    assert state(wire) == (0, "CompleteCommit")


class Disk:
    """A disk that executes its tasks when the test says so."""

    def __init__(self) -> None:
        self.given: list[tuple[Callable[[], Any], Callable[[BaseException | None], None]]] = []

    def submit(self, work: Callable[[], Any], done: Callable[[BaseException | None], None]) -> None:
        self.given.append((work, done))


def test_a_long_log_is_loaded_outside_the_event_loop_and_used_in_the_same_term_only(
    broker: Broker, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire.ask(BEGIN, 5)
    monkeypatch.setattr(coordinator_runtime, "LONG_LOG_BYTES", 1)
    found: list[list[str]] = []

    def story(node: BrokerNode) -> None:
        disk, partition = Disk(), kept_in(node)
        markers = node.markers.write
        context = replace(node.coordinator_context, disk=disk)
        coordinator = TransactionCoordinator(context, node.producer_ids, markers)
        coordinator.load_elected(partition)
        with pytest.raises(KafkaError, match="being loaded"):
            coordinator.find("id")
        coordinator.retire(partition)
        coordinator.load_elected(partition)
        for work, done in disk.given:
            work()
            done(None)
            is_loaded = not coordinator.is_loading(partition)
            found.append([each.transactional_id for each in coordinator.all()] if is_loaded else [])

    in_loop(broker, story)
    assert found == [[], ["id"]]


def test_an_unreadable_partition_does_not_stop_the_expiry_of_others(
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
                node.transactions.abort_timed_out()

        in_loop(broker, story)
    assert sorted(set(asked)) == [0, 2]  # the other one was verified since the request
