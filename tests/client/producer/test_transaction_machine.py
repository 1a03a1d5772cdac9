"""Single broker responses to the transaction machine; complete exchanges are in `test_transaction_transcripts.py`."""

from __future__ import annotations

from random import Random
from typing import Any
from uuid import UUID

import pytest

from ottla.client.consumer.coordinator.generation import ConsumerGroupMetadata
from ottla.client.producer.producer_id_and_epoch import ProducerIdAndEpoch
from ottla.client.producer.transactions.requests import (
    LAST_OFFSET_COMMIT_VERSION_BEFORE_V2,
    LAST_OFFSET_COMMIT_VERSION_WITH_NAMES,
    AddPartitionsToTxn,
    EndTxn,
    TxnOffsetCommit,
    Verdict,
)
from ottla.client.producer.transactions.transaction_machine import TransactionMachine
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.errors import ApplicationRecoverableError, ErrorCode
from ottla.model import OffsetAndMetadata, TopicPartition
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from ottla.protocol.messages.end_txn import EndTxnResponse
from ottla.protocol.messages.init_producer_id import InitProducerIdResponse
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

A = TopicPartition("t", 0)


def begin_transaction() -> TransactionMachine:
    """A producer in an empty transaction."""
    machine = TransactionMachine(ExponentialBackoff(100, 1000, Random(1)), "x", 60_000)
    done = machine.init_transactions()
    machine.handle_response(
        send_due_request(machine), InitProducerIdResponse(producer_id=5, producer_epoch=0), 0.0, v2=False
    )
    assert (done.done, done.error) == (True, None)
    machine.acknowledge_call("init_transactions")
    machine.begin_transaction()
    return machine


def send_due_request(machine: TransactionMachine, now: float = 0.0) -> Any:
    """Send the due request and return it."""
    request, _ = machine.next_request(now, incomplete=lambda: False)
    assert request is not None
    machine.record_sent(request)
    return request


def added(code: ErrorCode) -> AddPartitionsToTxnResponse:
    part = AddPartitionsToTxnPartitionResult(0, code)
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[AddPartitionsToTxnTopicResult(name="t", results_by_partition=[part])]
    )


@pytest.mark.behaviour("P7")
@pytest.mark.parametrize("code", [ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TOPIC_AUTHORIZATION_FAILED])
def test_a_partition_rejected_during_an_abort_is_ignored(
    code: ErrorCode,
) -> None:
    machine = begin_transaction()
    machine.add_partition(A)
    request = send_due_request(machine)
    assert isinstance(request, AddPartitionsToTxn)
    aborted = machine.abort_transaction()
    machine.handle_response(request, added(code), 0.0, v2=False)
    assert not machine.status.is_fatal
    assert machine.next_request(0.0, incomplete=lambda: False) == (None, 0.0), "no broker knows of the transaction"
    assert (aborted.done, aborted.error) == (True, None)
    machine.acknowledge_call("abort_transaction")
    machine.begin_transaction()


@pytest.mark.behaviour("P7")
def test_a_partition_added_during_an_abort_makes_the_abort_send_end_txn() -> None:
    machine = begin_transaction()
    machine.add_partition(A)
    request = send_due_request(machine)
    machine.abort_transaction()
    machine.handle_response(request, added(ErrorCode.NONE), 0.0, v2=False)
    assert isinstance(send_due_request(machine), EndTxn)


@pytest.mark.behaviour("P7")
def test_a_producer_that_handed_its_transaction_over_gets_an_error() -> None:
    machine = begin_transaction()
    machine.add_partition(A)
    machine.handle_response(send_due_request(machine), added(ErrorCode.NONE), 0.0, v2=False)
    machine.hand_over_transaction()
    with pytest.raises(ApplicationRecoverableError) as caught:
        machine.check_send()
    assert "the transaction was passed to another producer" in str(caught.value.__cause__ or caught.value)


@pytest.mark.behaviour("P7")
def test_an_abort_rejected_by_the_coordinator_raises_in_the_waiting_call() -> None:
    machine = begin_transaction()
    machine.add_partition(A)
    machine.handle_response(send_due_request(machine), added(ErrorCode.NONE), 0.0, v2=False)
    aborted = machine.abort_transaction()
    machine.handle_response(
        send_due_request(machine), EndTxnResponse(error_code=ErrorCode.TRANSACTION_ABORTABLE), 0.0, v2=False
    )
    assert machine.status.is_fatal
    assert "TRANSACTION_ABORTABLE" in str(aborted.error)


@pytest.mark.behaviour("P7")
def test_after_a_refused_partition_the_open_transaction_can_only_be_aborted() -> None:
    machine = begin_transaction()
    machine.add_partition(A)
    request = send_due_request(machine)
    machine.handle_response(request, added(ErrorCode.TOPIC_AUTHORIZATION_FAILED), 0.0, v2=False)
    assert (machine.status.is_fatal, machine.status.can_abort) == (False, True)
    assert "TOPIC_AUTHORIZATION_FAILED" in str(request.outcome.error)
    assert machine.next_request(0.0, incomplete=lambda: False)[0] is None, "it is not asked again"
    aborted = machine.abort_transaction()
    assert machine.next_request(0.0, incomplete=lambda: False)[0] is None, "no broker knows of the transaction"
    assert (aborted.done, aborted.error) == (True, None)


@pytest.mark.behaviour("P7")
@pytest.mark.parametrize("code", [ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH])
def test_a_fenced_producer_gets_an_error_about_the_other_producer(code: ErrorCode) -> None:
    machine = begin_transaction()
    machine.add_partition(A)
    machine.handle_response(send_due_request(machine), added(code), 0.0, v2=False)
    assert machine.status.is_fatal
    assert "another producer uses transactional.id 'x'" in str(machine.status.error)


@pytest.mark.behaviour("P7")
def test_a_fatal_error_is_raised_unchanged_and_not_as_fencing() -> None:
    machine = begin_transaction()
    machine.add_partition(A)
    machine.handle_response(send_due_request(machine), added(ErrorCode.INVALID_TXN_STATE), 0.0, v2=False)
    assert machine.status.is_fatal
    assert "INVALID_TXN_STATE" in str(machine.status.error)
    assert "another producer" not in str(machine.status.error)


@pytest.mark.parametrize(
    ("code", "pause"), [(ErrorCode.CONCURRENT_TRANSACTIONS, 0.02), (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 0.08)]
)
def test_retriable_errors_are_retried_after_a_backoff_and_concurrent_transactions_sooner(
    code: ErrorCode, pause: float
) -> None:
    machine = begin_transaction()
    machine.add_partition(A)
    request = send_due_request(machine)
    machine.handle_response(request, added(code), 0.0, v2=False)
    nothing, wait = machine.next_request(0.0, incomplete=lambda: False)
    assert nothing is None
    assert pause <= wait <= 1.5 * pause
    assert send_due_request(machine, wait) is request


ID = UUID(int=7)


def offset_commit(ids: dict[str, UUID], *, v2: bool) -> TxnOffsetCommit:
    offsets = {A: OffsetAndMetadata(7), TopicPartition("u", 0): OffsetAndMetadata(8)}
    return TxnOffsetCommit("x", ProducerIdAndEpoch(5, 0), ConsumerGroupMetadata("g"), offsets, ids, v2=v2)


@pytest.mark.parametrize(
    ("ids", "v2", "last"),
    [
        ({"t": ID, "u": UUID(int=8)}, True, None),
        ({"t": ID}, True, LAST_OFFSET_COMMIT_VERSION_WITH_NAMES),
        ({}, True, LAST_OFFSET_COMMIT_VERSION_WITH_NAMES),
        ({"t": ID, "u": UUID(int=8)}, False, LAST_OFFSET_COMMIT_VERSION_BEFORE_V2),
    ],
)
def test_offsets_are_committed_by_topic_id_if_all_ids_are_known(
    ids: dict[str, UUID], v2: bool, last: int | None
) -> None:
    commit = offset_commit(ids, v2=v2)

    assert commit.max_version == last
    assert [topic.name for topic in commit.message.topics] == ["t", "u"]
    assert [topic.topic_id.int for topic in commit.message.topics] == [ids.get(name, UUID(int=0)).int for name in "tu"]


@pytest.mark.parametrize(
    "code", [ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND]
)
def test_an_error_of_a_topic_id_names_the_topic_and_can_be_aborted(code: ErrorCode) -> None:
    commit = offset_commit({"t": ID, "u": UUID(int=8)}, v2=True)
    part = TxnOffsetCommitResponsePartition(0, code)

    failures = commit.find_failures(TxnOffsetCommitResponse(topics=[TxnOffsetCommitResponseTopic("", ID, [part])]))

    assert failures == [("t-0", code)]
    assert commit.classify_error(code) is Verdict.ABORT
