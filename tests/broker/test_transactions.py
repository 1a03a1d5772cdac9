"""Transactions whole: other people's transactional producers, zombies, time-outs, and crashes."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import confluent_kafka as ck
import pytest

from ottla.broker.coordinators import coordinator_runtime, transaction_coordinator
from ottla.broker.coordinators.coordinator_runtime import CoordinatorRuntime
from ottla.broker.coordinators.transaction_markers import EndMarkers, TransactionEnd
from ottla.broker.embedding.embedded_broker import Broker
from ottla.broker.metadata.internal_topics import CONSUMER_OFFSETS
from ottla.broker.replica_manager.partition import Partition
from ottla.client.producer.producer import Producer
from ottla.errors import ErrorCode
from ottla.java_hash import positive_java_hash
from ottla.model import TopicPartition
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.describe_transactions import DescribeTransactionsRequest, TransactionState
from ottla.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.list_transactions import ListTransactionsRequest
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ottla.protocol.schema import ZERO_UUID
from tests.broker.wire import Wire, produce
from tests.checker.generator import AFTER_PREPARED, Crash
from tests.checker.victim import Victim
from tests.patience import eventually
from tests.storage.producing import produced

PATIENCE = 60.0


def transactional(broker: Broker, name: str = "tx", **settings: object) -> ck.Producer:
    """Librdkafka's producer, ready."""
    producer = ck.Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": name, **settings})
    producer.init_transactions(PATIENCE)
    return producer


def committed(broker: Broker, count: int) -> list[bytes | None]:
    """The first `count` committed records of partition 0."""
    consumer = ck.Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"})
    consumer.assign([ck.TopicPartition("t", 0, 0)])
    found: list[bytes | None] = []
    while len(found) < count:
        messages = consumer.consume(count - len(found), PATIENCE)
        assert messages, f"only {found} came"
        found += [message.value() for message in messages]
    consumer.close()
    return found


def init_producer(
    wire: Wire, name: str = "tx", *, version: int = 5, producer_id: int = -1, producer_epoch: int = -1
) -> InitProducerIdResponse:
    """A producer's id and epoch."""
    request = InitProducerIdRequest(name, 60_000, producer_id, producer_epoch)
    response: InitProducerIdResponse = wire.ask(request, version)
    return response


def produce_in_transaction(
    wire: Wire, who: InitProducerIdResponse, sequence: int, *, name: str = "tx", version: int = 12
) -> int:
    """The error code for a batch in a transaction."""
    batch = produced(who.producer_id, sequence, epoch=who.producer_epoch, transactional=True)
    request = produce("t", batch)
    request.transactional_id = name
    code: int = wire.ask(request, version).responses[0].partition_responses[0].error_code
    return code


def ended(
    wire: Wire, who: InitProducerIdResponse, *, commit: bool, name: str = "tx", version: int = 5
) -> EndTxnResponse:
    """Return the response to EndTxn."""
    response: EndTxnResponse = wire.ask(EndTxnRequest(name, who.producer_id, who.producer_epoch, commit), version)
    return response


def state(wire: Wire, name: str = "tx") -> TransactionState:
    """Return the state of a transactional id."""
    found: TransactionState = wire.ask(DescribeTransactionsRequest([name])).transaction_states[0]
    return found


def wait_until_state(wire: Wire, wanted: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while state(wire).transaction_state != wanted:
        assert time.monotonic() < deadline, state(wire)


def test_committed_records_are_visible_and_aborted_ones_are_not(broker: Broker) -> None:
    producer = transactional(broker)
    for number, end in enumerate(
        [producer.commit_transaction, producer.abort_transaction, producer.commit_transaction]
    ):
        producer.begin_transaction()
        producer.produce("t", b"%d" % number, partition=0)
        producer.flush(PATIENCE)
        end(PATIENCE)
    assert committed(broker, 2) == [b"0", b"2"]


def test_a_second_producer_of_an_id_fences_the_first_and_aborts_its_transaction(broker: Broker) -> None:
    first = transactional(broker)
    first.begin_transaction()
    first.produce("t", b"zombie", partition=0)
    first.flush(PATIENCE)
    second = transactional(broker)
    second.begin_transaction()
    second.produce("t", b"alive", partition=0)
    second.commit_transaction(PATIENCE)
    with pytest.raises(ck.KafkaException, match=r"fenced|newer instance|epoch"):
        first.commit_transaction(PATIENCE)
    assert committed(broker, 1) == [b"alive"]


def test_a_timed_out_transaction_is_aborted_by_the_broker() -> None:
    with (
        Broker(transaction_abort_timed_out_transaction_cleanup_interval_ms=50) as broker,
        Wire(broker.bootstrap_servers) as wire,
    ):
        wire.create("t")
        who: InitProducerIdResponse = wire.ask(InitProducerIdRequest("tx", 500), 5)
        assert produce_in_transaction(wire, who, 0) == 0
        wait_until_state(wire, "CompleteAbort")
        assert ended(wire, who, commit=True).error_code == ErrorCode.PRODUCER_FENCED
        assert produce_in_transaction(wire, who, 1) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_producer_aborts_its_timed_out_transaction_and_starts_the_next() -> None:
    with (
        Broker(transaction_abort_timed_out_transaction_cleanup_interval_ms=50) as broker,
        Wire(broker.bootstrap_servers) as wire,
        Producer(bootstrap_servers=broker.bootstrap_servers, transactional_id="tx", transaction_timeout_ms=500) as own,
    ):
        wire.create("t")
        own.init_transactions()
        own.begin_transaction()
        own.send("t", b"late", partition=0)
        own.flush()
        wait_until_state(wire, "CompleteAbort")
        own.abort_transaction()
        own.begin_transaction()
        own.send("t", b"next", partition=0)
        own.commit_transaction()
        assert committed(broker, 1) == [b"next"]


def test_each_transaction_of_version_2_gets_the_next_epoch_and_the_broker_adds_its_partitions(wire: Wire) -> None:
    wire.create("t")
    who = init_producer(wire)
    for epoch in range(1, 4):
        assert produce_in_transaction(wire, who, 0) == 0
        answer = ended(wire, who, commit=bool(epoch % 2))
        assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, who.producer_id, epoch)
        again = ended(wire, who, commit=bool(epoch % 2))
        assert (again.error_code, again.producer_epoch) == (0, epoch)
        who.producer_epoch = epoch


def added(wire: Wire, who: InitProducerIdResponse, *, partition: int = 0, version: int = 3) -> int:
    """The error code for a partition that is to be taken in."""
    topics = [AddPartitionsToTxnTopic("t", [partition])]
    if version < 4:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="tx",
            v3_and_below_producer_id=who.producer_id,
            v3_and_below_producer_epoch=who.producer_epoch,
            v3_and_below_topics=topics,
        )
        (topic,) = wire.ask(request, version).results_by_topic_v3_and_below
    else:
        verify = AddPartitionsToTxnTransaction("tx", who.producer_id, who.producer_epoch, True, topics)
        (topic,) = wire.ask(AddPartitionsToTxnRequest([verify]), version).results_by_transaction[0].topic_results
    code: int = topic.results_by_partition[0].partition_error_code
    return code


def test_an_older_client_must_add_a_partition_before_it_writes_to_it(wire: Wire) -> None:
    wire.create("t")
    who = init_producer(wire)
    assert produce_in_transaction(wire, who, 0, version=9) == ErrorCode.INVALID_TXN_STATE
    assert produce_in_transaction(wire, who, 0, version=11) == ErrorCode.TRANSACTION_ABORTABLE
    assert added(wire, who, version=5) == ErrorCode.TRANSACTION_ABORTABLE
    assert added(wire, who, partition=9) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert added(wire, who) == 0
    assert added(wire, who, version=5) == 0
    assert produce_in_transaction(wire, who, 0, version=9) == 0
    assert ended(wire, who, commit=True, version=3).error_code == 0


@pytest.mark.parametrize(("version", "code"), [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (3, ErrorCode.PRODUCER_FENCED)])
def test_a_fenced_producer_gets_an_error_code_of_its_version(wire: Wire, version: int, code: int) -> None:
    wire.create("t")
    old = init_producer(wire)
    new = init_producer(wire)
    assert new.producer_epoch == old.producer_epoch + 1
    assert added(wire, old, version=version) == code
    assert ended(wire, old, commit=True, version=version).error_code == code
    assert init_producer(wire, producer_id=old.producer_id, producer_epoch=old.producer_epoch).error_code == (
        ErrorCode.PRODUCER_FENCED
    )


def test_an_excessive_timeout_and_an_empty_id_are_rejected(wire: Wire) -> None:
    for timeout in (0, 900_001):
        response = wire.ask(InitProducerIdRequest("tx", timeout), 5)
        assert response.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert wire.ask(InitProducerIdRequest("", 1000), 5).error_code == ErrorCode.INVALID_REQUEST


def test_a_transaction_that_was_not_started_cannot_be_ended(wire: Wire) -> None:
    nobody = InitProducerIdResponse(producer_id=5, producer_epoch=0)
    assert ended(wire, nobody, commit=True).error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert state(wire).error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert wire.ask(ListTransactionsRequest(), 2).transaction_states == []


def test_transactions_are_listed_and_described(wire: Wire) -> None:
    wire.create("t")
    who = init_producer(wire)
    init_producer(wire, "other")
    produce_in_transaction(wire, who, 0)
    found = state(wire)
    assert (found.transaction_state, found.producer_id, found.transaction_timeout_ms) == (
        "Ongoing",
        who.producer_id,
        60_000,
    )
    assert [(topic.topic, list(topic.partitions)) for topic in found.topics] == [("t", [0])]

    def listed(**filters: object) -> list[str]:
        response = wire.ask(ListTransactionsRequest(**filters), 2)  # type: ignore[arg-type]
        return sorted(each.transactional_id for each in response.transaction_states)

    assert listed() == ["other", "tx"]
    assert listed(state_filters=["Ongoing"]) == ["tx"]
    assert listed(producer_id_filters=[who.producer_id]) == ["tx"]
    assert listed(transactional_id_pattern="o.*") == ["other"]
    assert listed(duration_filter=3_600_000, state_filters=["Ongoing"]) == []
    unknown = wire.ask(ListTransactionsRequest(state_filters=["Sleeping"]), 2)
    assert list(unknown.unknown_state_filters) == ["Sleeping"]
    bad = wire.ask(ListTransactionsRequest(transactional_id_pattern="("), 2)
    assert bad.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_topic_deleted_during_a_transaction_does_not_block_it(wire: Wire) -> None:
    wire.create("t")
    who = init_producer(wire)
    produce_in_transaction(wire, who, 0)
    wire.ask(DeleteTopicsRequest([DeleteTopicState("t")]), 6)
    assert ended(wire, who, commit=True).error_code == 0
    assert state(wire).transaction_state == "CompleteCommit"


def test_a_marker_that_cannot_be_written_is_retried_and_the_others_are_not(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire.create("t")
    who = init_producer(wire)
    assert (produce_in_transaction(wire, who, 0), commit_in_transaction(wire, who, 7)) == (0, 0)
    tried: list[str] = []
    write = EndMarkers.write

    def failing(markers: EndMarkers, place: TopicPartition, end: TransactionEnd) -> int:
        tried.append(place.topic)
        return (
            ErrorCode.KAFKA_STORAGE_ERROR if tried.count("t") < 4 and place.topic == "t" else write(markers, place, end)
        )

    monkeypatch.setattr(EndMarkers, "write", failing)
    monkeypatch.setattr(transaction_coordinator, "RETRY_SECONDS", 0.01)
    assert ended(wire, who, commit=True).error_code == 0
    wait_until_state(wire, "CompleteCommit")
    assert sorted(tried) == ["__consumer_offsets", "t", "t", "t", "t"]


def copied(broker: Broker, *, commit: bool) -> None:
    """One turn of consume, process, produce, by librdkafka."""
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    consumer = ck.Consumer(servers | {"group.id": "copy", "auto.offset.reset": "earliest", "enable.auto.commit": False})
    consumer.subscribe(["source"])
    message = consumer.poll(PATIENCE)
    assert message is not None
    producer = transactional(broker)
    producer.begin_transaction()
    producer.produce("t", message.value(), partition=0)
    position = [ck.TopicPartition("source", 0, (message.offset() or 0) + 1)]
    producer.send_offsets_to_transaction(position, consumer.consumer_group_metadata(), PATIENCE)
    (producer.commit_transaction if commit else producer.abort_transaction)(PATIENCE)
    consumer.close()


def kept(broker: Broker) -> int:
    """Return the committed offset of the group."""
    consumer = ck.Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "copy"})
    (found,) = consumer.committed([ck.TopicPartition("source", 0)], PATIENCE)
    consumer.close()
    return found.offset


def test_offsets_are_committed_with_their_transaction_or_not_at_all(broker: Broker, wire: Wire) -> None:
    wire.create("source")
    wire.create("t")
    wire.produce("source", b"a")
    copied(broker, commit=False)
    assert kept(broker) == ck.OFFSET_INVALID
    copied(broker, commit=True)
    assert kept(broker) == 1
    assert committed(broker, 1) == [b"a"]


def commit_in_transaction(
    wire: Wire,
    who: InitProducerIdResponse,
    offset: int,
    *,
    version: int = 5,
    generation: int = -1,
    member: str = "",
    topic_id: UUID = ZERO_UUID,
) -> int:
    """The error code for an offset within a transaction."""
    partition = TxnOffsetCommitRequestPartition(0, offset)
    topics = [TxnOffsetCommitRequestTopic("t", topic_id, [partition])]
    request = TxnOffsetCommitRequest(
        "tx", "g", who.producer_id, who.producer_epoch, generation, member, None, topics=topics
    )
    code: int = wire.ask(request, version).topics[0].partitions[0].error_code
    return code


def fetched(wire: Wire, *, require_stable: bool = False) -> tuple[int, int]:
    """The group's offset, and the error code."""
    group = OffsetFetchRequestGroup("g", topics=[OffsetFetchRequestTopics("t", partition_indexes=[0])])
    response = wire.ask(OffsetFetchRequest(groups=[group], require_stable=require_stable), 9)
    if response.groups[0].error_code:
        return -1, response.groups[0].error_code
    found = response.groups[0].topics[0].partitions[0]
    return found.committed_offset, found.error_code


def plainly_committed(wire: Wire, offset: int) -> None:
    partition = OffsetCommitRequestPartition(0, offset)
    wire.ask(OffsetCommitRequest("g", topics=[OffsetCommitRequestTopic("t", partitions=[partition])]), 8)


def test_a_pending_offset_is_unstable_if_stable_offsets_are_required(wire: Wire) -> None:
    wire.create("t")
    plainly_committed(wire, 3)
    who = init_producer(wire)
    assert commit_in_transaction(wire, who, 7) == 0
    assert fetched(wire) == (3, 0)
    assert fetched(wire, require_stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    ended(wire, who, commit=True)
    assert fetched(wire, require_stable=True) == (7, 0)


def test_a_transaction_that_ends_while_its_groups_are_loaded_is_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        who = init_producer(wire)
        assert commit_in_transaction(wire, who, 7) == 0
    was_read, go_on = threading.Event(), threading.Event()
    build = CoordinatorRuntime._build

    def slow(self: CoordinatorRuntime[Any], partition: Partition) -> object:
        runtime = build(self, partition)
        if partition.topic_partition.topic == CONSUMER_OFFSETS:
            was_read.set()
            go_on.wait(PATIENCE)
        return runtime

    monkeypatch.setattr(coordinator_runtime, "LONG_LOG_BYTES", 1)
    monkeypatch.setattr(CoordinatorRuntime, "_build", slow)
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        assert fetched(wire)[1] == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert was_read.wait(PATIENCE)
        eventually(lambda: ended(wire, who, commit=True).error_code == 0)
        go_on.set()
        deadline = time.monotonic() + PATIENCE
        while (found := fetched(wire, require_stable=True))[1] == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            assert time.monotonic() < deadline
        assert found == (7, 0)


def test_a_later_plain_commit_outlives_the_transaction(wire: Wire) -> None:
    wire.create("t")
    who = init_producer(wire)
    commit_in_transaction(wire, who, 7)
    plainly_committed(wire, 9)
    ended(wire, who, commit=True)
    assert fetched(wire) == (9, 0)


def test_a_transactional_commit_requires_the_generation_of_the_group(wire: Wire) -> None:
    wire.create("t")
    who = init_producer(wire)
    assert commit_in_transaction(wire, who, 7, generation=3, member="stranger") == ErrorCode.ILLEGAL_GENERATION


def test_a_transactional_commit_with_a_member_of_no_group_is_rejected(wire: Wire) -> None:
    wire.create("t")
    who, topic_id = init_producer(wire), wire.metadata("t").topics[0].topic_id
    code = commit_in_transaction(wire, who, 7, version=6, generation=3, member="stranger", topic_id=topic_id)
    assert code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_transactional_offset_is_committed_by_topic_id(wire: Wire) -> None:
    wire.create("t")
    who, topic_id = init_producer(wire), wire.metadata("t").topics[0].topic_id
    assert commit_in_transaction(wire, who, 7, version=6, topic_id=topic_id) == 0
    assert commit_in_transaction(wire, who, 8, version=6, topic_id=UUID(int=99)) == ErrorCode.UNKNOWN_TOPIC_ID
    ended(wire, who, commit=True)
    assert fetched(wire) == (7, 0)


def test_an_older_client_must_add_a_groups_offsets_before_it_commits_them(wire: Wire) -> None:
    wire.create("t")
    who = init_producer(wire)
    assert commit_in_transaction(wire, who, 7, version=3) == ErrorCode.INVALID_TXN_STATE
    assert wire.ask(AddOffsetsToTxnRequest("tx", who.producer_id, who.producer_epoch, "g"), 3).error_code == 0
    assert commit_in_transaction(wire, who, 7, version=3) == 0
    old = init_producer(wire)
    init_producer(wire)
    assert commit_in_transaction(wire, old, 8) == ErrorCode.INVALID_PRODUCER_EPOCH


@contextmanager
def crashing(folder: Path) -> Iterator[Broker]:
    """A broker process that may be killed before it is closed."""
    broker = Broker(folder, process=True).start()
    try:
        yield broker
    finally:
        broker.close()


def kill(broker: Broker) -> None:
    """Kill the process, as the system does without memory."""
    assert broker.pid is not None
    os.kill(broker.pid, signal.SIGKILL)


@pytest.mark.parametrize("commit", [True, False])
def test_open_transactions_and_pending_offsets_are_restored_after_kill_9(tmp_path: Path, commit: bool) -> None:
    with crashing(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        plainly_committed(wire, 3)
        who = init_producer(wire)
        assert (produce_in_transaction(wire, who, 0), commit_in_transaction(wire, who, 7)) == (0, 0)
        kill(broker)
    with crashing(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        assert state(wire).transaction_state == "Ongoing"
        assert fetched(wire, require_stable=True)[1] == ErrorCode.UNSTABLE_OFFSET_COMMIT
        assert produce_in_transaction(wire, who, 1) == 0
        assert ended(wire, who, commit=commit).error_code == 0
        kill(broker)
    with crashing(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        assert state(wire).transaction_state == ("CompleteCommit" if commit else "CompleteAbort")
        assert fetched(wire, require_stable=True) == (7 if commit else 3, 0)
        # The response was lost with the broker: the producer repeats the request, and gets the same response.
        assert ended(wire, who, commit=commit).producer_epoch == 1


def test_the_offsets_of_a_decided_transaction_are_committed_after_a_crash(tmp_path: Path) -> None:
    with Victim(tmp_path) as victim:
        victim.start(Crash(AFTER_PREPARED, 1))
        with Wire(victim.address) as wire:
            wire.create("t")
            who = init_producer(wire)  # creates __transaction_state before __consumer_offsets, so it is loaded first
            assert commit_in_transaction(wire, who, 7) == 0
            with pytest.raises((EOFError, ConnectionError)):
                ended(wire, who, commit=True)
        victim.wait()
        victim.start()
        with Wire(victim.address) as wire:
            wait_until_state(wire, "CompleteCommit")
            eventually(lambda: fetched(wire, require_stable=True) == (7, 0))


def test_transactions_of_a_damaged_partition_do_not_block_the_others(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        for name in ("damaged", "tx"):
            who = wire.ask(InitProducerIdRequest(name, 100), 5)
            assert produce_in_transaction(wire, who, 0, name=name) == 0
    assert positive_java_hash("damaged") % 50 < positive_java_hash("tx") % 50, "or the damage is met too late"
    spoiled = tmp_path / f"__transaction_state-{positive_java_hash('damaged') % 50}" / "00000000000000000000.log"
    data = bytearray(spoiled.read_bytes())
    data[70] ^= 0xFF
    spoiled.write_bytes(data)
    with (
        Broker(tmp_path, transaction_abort_timed_out_transaction_cleanup_interval_ms=50) as broker,
        Wire(broker.bootstrap_servers) as wire,
    ):
        wait_until_state(wire, "CompleteAbort")
