"""The machine of transactions, told what brokers answered; whole conversations are in `test_transaction_transcripts.py`."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from ottla.client.producer.transactions.requests import AddPartitionsToTxn, EndTxn
from ottla.client.producer.transactions.transaction_machine import TransactionMachine
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.errors import ApplicationRecoverableError, ErrorCode
from ottla.model import TopicPartition
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from ottla.protocol.messages.end_txn import EndTxnResponse
from ottla.protocol.messages.init_producer_id import InitProducerIdResponse

A = TopicPartition("t", 0)


def begun() -> TransactionMachine:
    """In a transaction, with nothing in it."""
    machine = TransactionMachine(ExponentialBackoff(100, 1000, Random(1)), "x", 60_000)
    done = machine.init_transactions()
    machine.answered(asked(machine), InitProducerIdResponse(producer_id=5, producer_epoch=0), 0.0, v2=False)
    assert (done.done, done.error) == (True, None)
    machine.acknowledged("init_transactions")
    machine.begin_transaction()
    return machine


def asked(machine: TransactionMachine, now: float = 0.0) -> Any:
    """The request that is due, sent."""
    request, _ = machine.next_request(now, incomplete=lambda: False)
    assert request is not None
    machine.sent(request)
    return request


def added(code: ErrorCode) -> AddPartitionsToTxnResponse:
    part = AddPartitionsToTxnPartitionResult(0, code)
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[AddPartitionsToTxnTopicResult(name="t", results_by_partition=[part])]
    )


@pytest.mark.behaviour("P7")
@pytest.mark.parametrize("code", [ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TOPIC_AUTHORIZATION_FAILED])
def test_a_partition_that_is_refused_while_the_transaction_is_being_aborted_is_of_no_more_interest(
    code: ErrorCode,
) -> None:
    machine = begun()
    machine.send_to(A)
    request = asked(machine)
    assert isinstance(request, AddPartitionsToTxn)
    aborted = machine.abort_transaction()
    machine.answered(request, added(code), 0.0, v2=False)
    assert not machine.status.is_fatal
    assert machine.next_request(0.0, incomplete=lambda: False) == (None, 0.0), "no broker knows of the transaction"
    assert (aborted.done, aborted.error) == (True, None)
    machine.acknowledged("abort_transaction")
    machine.begin_transaction()


@pytest.mark.behaviour("P7")
def test_a_partition_that_was_taken_in_while_the_transaction_is_being_aborted_has_its_end_asked_for() -> None:
    machine = begun()
    machine.send_to(A)
    request = asked(machine)
    machine.abort_transaction()
    machine.answered(request, added(ErrorCode.NONE), 0.0, v2=False)
    assert isinstance(asked(machine), EndTxn)


@pytest.mark.behaviour("P7")
def test_whoever_handed_its_transaction_over_is_told_so() -> None:
    machine = begun()
    machine.send_to(A)
    machine.answered(asked(machine), added(ErrorCode.NONE), 0.0, v2=False)
    machine.hand_over()
    with pytest.raises(ApplicationRecoverableError) as told:
        machine.check_send()
    assert "the transaction was handed over to another producer" in str(told.value.__cause__ or told.value)


@pytest.mark.behaviour("P7")
def test_an_abort_that_the_coordinator_refuses_is_told_to_who_waits_for_it() -> None:
    machine = begun()
    machine.send_to(A)
    machine.answered(asked(machine), added(ErrorCode.NONE), 0.0, v2=False)
    aborted = machine.abort_transaction()
    machine.answered(asked(machine), EndTxnResponse(error_code=ErrorCode.TRANSACTION_ABORTABLE), 0.0, v2=False)
    assert machine.status.is_fatal
    assert "TRANSACTION_ABORTABLE" in str(aborted.error)


@pytest.mark.behaviour("P7")
def test_a_refused_partition_lets_the_open_transaction_be_aborted_only() -> None:
    machine = begun()
    machine.send_to(A)
    request = asked(machine)
    machine.answered(request, added(ErrorCode.TOPIC_AUTHORIZATION_FAILED), 0.0, v2=False)
    assert (machine.status.is_fatal, machine.status.can_abort) == (False, True)
    assert "TOPIC_AUTHORIZATION_FAILED" in str(request.outcome.error)
    assert machine.next_request(0.0, incomplete=lambda: False)[0] is None, "it is not asked again"
    aborted = machine.abort_transaction()
    assert machine.next_request(0.0, incomplete=lambda: False)[0] is None, "no broker knows of the transaction"
    assert (aborted.done, aborted.error) == (True, None)


@pytest.mark.behaviour("P7")
@pytest.mark.parametrize("code", [ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH])
def test_a_fenced_producer_is_told_that_another_one_has_its_id(code: ErrorCode) -> None:
    machine = begun()
    machine.send_to(A)
    machine.answered(asked(machine), added(code), 0.0, v2=False)
    assert machine.status.is_fatal
    assert "another producer has taken over transactional.id 'x'" in str(machine.status.error)


@pytest.mark.behaviour("P7")
def test_what_is_refused_for_good_is_told_as_it_was_said_and_not_as_another_producer() -> None:
    machine = begun()
    machine.send_to(A)
    machine.answered(asked(machine), added(ErrorCode.INVALID_TXN_STATE), 0.0, v2=False)
    assert machine.status.is_fatal
    assert "INVALID_TXN_STATE" in str(machine.status.error)
    assert "another producer" not in str(machine.status.error)


@pytest.mark.parametrize(
    ("code", "pause"), [(ErrorCode.CONCURRENT_TRANSACTIONS, 0.02), (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 0.08)]
)
def test_what_may_pass_is_asked_again_soon_and_what_the_last_transaction_holds_up_sooner(
    code: ErrorCode, pause: float
) -> None:
    machine = begun()
    machine.send_to(A)
    request = asked(machine)
    machine.answered(request, added(code), 0.0, v2=False)
    nothing, wait = machine.next_request(0.0, incomplete=lambda: False)
    assert nothing is None
    assert pause <= wait <= 1.5 * pause
    assert asked(machine, wait) is request
