"""The complete state of a transactional id after each step. The transcripts cover the responses."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ottla.coordination.transactions.ending import complete_transaction, prepare_end
from ottla.coordination.transactions.events import EndRequested, ProducerRequested
from ottla.coordination.transactions.starting import fence_transaction, new_transaction, take_over_id
from ottla.coordination.transactions.state import TransactionState
from ottla.coordination.transactions.transaction import EXHAUSTED, MAX_EPOCH, Transaction
from ottla.errors import ErrorCode
from ottla.model import TopicPartition

EMPTY, ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
PREPARE_COMMIT, PREPARE_ABORT = TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT
PARTITIONS = frozenset({TopicPartition("t", 0)})
IDLE = Transaction(
    transactional_id="x",
    producer_id=7,
    producer_epoch=3,
    last_epoch=2,
    timeout_ms=1000,
    state=TransactionState.COMPLETE_COMMIT,
    started_ms=10,
    updated_ms=20,
    version=2,
)
BUSY = replace(IDLE, state=ONGOING, partitions=PARTITIONS)


def producer_request(producer_id: int = -1, epoch: int = -1) -> ProducerRequested:
    return ProducerRequested(1, "x", 2000, 99, 30, producer_id, epoch)


def ends(epoch: int, *, commit: bool, version: int) -> EndRequested:
    return EndRequested(1, "x", 7, epoch, commit, 99, 30, version)


def test_an_unused_id_is_given_to_a_new_producer() -> None:
    assert new_transaction(producer_request()) == Transaction(
        transactional_id="x", producer_id=99, producer_epoch=0, timeout_ms=2000, updated_ms=30
    )


def test_a_new_producer_has_the_next_epoch_and_a_clean_slate() -> None:
    assert take_over_id(IDLE, producer_request()) == replace(
        IDLE, state=EMPTY, producer_epoch=4, last_epoch=-1, timeout_ms=2000, started_ms=-1, updated_ms=30
    )


def test_a_continuing_producer_may_retry_with_its_previous_epoch() -> None:
    again = take_over_id(IDLE, producer_request(7, 3))
    assert again == replace(
        IDLE, state=EMPTY, producer_epoch=4, last_epoch=3, timeout_ms=2000, started_ms=-1, updated_ms=30
    )
    assert isinstance(again, Transaction)
    assert take_over_id(again, producer_request(7, 3)) == again


def test_a_retry_is_rejected_after_a_newer_producer() -> None:
    newer = take_over_id(IDLE, producer_request())
    assert isinstance(newer, Transaction)
    assert take_over_id(newer, producer_request(7, 2)) == ErrorCode.PRODUCER_FENCED
    assert take_over_id(newer, producer_request(7, 3)) == ErrorCode.PRODUCER_FENCED
    assert take_over_id(newer, producer_request(7, -1)) == ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize(
    ("asked", "last_epoch"), [(producer_request(), -1), (producer_request(7, EXHAUSTED), EXHAUSTED)]
)
def test_when_the_epochs_are_used_up_there_is_a_new_producer_id(asked: ProducerRequested, last_epoch: int) -> None:
    used_up = replace(IDLE, producer_epoch=EXHAUSTED, next_producer_id=50)
    assert take_over_id(used_up, asked) == replace(
        IDLE,
        state=EMPTY,
        producer_id=99,
        previous_producer_id=7,
        next_producer_id=-1,
        producer_epoch=0,
        last_epoch=last_epoch,
        timeout_ms=2000,
        started_ms=-1,
        updated_ms=30,
    )


def test_an_older_producer_gets_no_new_id_because_the_epochs_are_used_up() -> None:
    assert take_over_id(replace(IDLE, producer_epoch=EXHAUSTED), producer_request(7, 5)) == ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize(
    ("version", "present", "epoch"),
    [(0, 3, 4), (2, 3, 4), (0, EXHAUSTED, MAX_EPOCH), (2, EXHAUSTED, MAX_EPOCH)],
)
def test_a_producer_that_is_fenced_leaves_its_partitions_to_be_aborted(version: int, present: int, epoch: int) -> None:
    before = replace(BUSY, version=version, producer_epoch=present)
    assert fence_transaction(before, 30) == replace(
        before, state=PREPARE_ABORT, producer_epoch=epoch, last_epoch=present, is_fenced=True, updated_ms=30
    )


@pytest.mark.parametrize(("commit", "state"), [(True, PREPARE_COMMIT), (False, PREPARE_ABORT)])
def test_an_old_client_keeps_its_epoch_after_its_transaction(commit: bool, state: TransactionState) -> None:
    assert prepare_end(BUSY, ends(3, commit=commit, version=1)) == replace(BUSY, state=state, updated_ms=30, version=1)


@pytest.mark.parametrize(("commit", "state"), [(True, PREPARE_COMMIT), (False, PREPARE_ABORT)])
def test_a_new_client_gets_another_epoch_after_each_transaction(commit: bool, state: TransactionState) -> None:
    before = replace(BUSY, version=0, next_producer_id=50)
    assert prepare_end(before, ends(3, commit=commit, version=2)) == replace(
        BUSY, state=state, producer_epoch=4, last_epoch=3, next_producer_id=-1, updated_ms=30
    )


def test_at_its_last_epoch_a_producer_gets_a_next_producer_id() -> None:
    before = replace(BUSY, producer_epoch=EXHAUSTED)
    assert prepare_end(before, ends(EXHAUSTED, commit=True, version=2)) == replace(
        BUSY,
        state=PREPARE_COMMIT,
        producer_epoch=MAX_EPOCH,
        last_epoch=EXHAUSTED,
        next_producer_id=99,
        updated_ms=30,
    )


def test_an_empty_aborted_transaction_starts_at_its_abort() -> None:
    assert prepare_end(IDLE, ends(3, commit=False, version=2)) == replace(
        IDLE, state=PREPARE_ABORT, producer_epoch=4, last_epoch=3, started_ms=30, updated_ms=30
    )


@pytest.mark.parametrize(
    ("state", "end"),
    [(PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT), (PREPARE_ABORT, TransactionState.COMPLETE_ABORT)],
)
def test_a_completed_transaction_has_no_partitions(state: TransactionState, end: TransactionState) -> None:
    assert complete_transaction(replace(BUSY, state=state), 40) == replace(
        BUSY, state=end, partitions=frozenset(), updated_ms=40
    )


def test_the_next_producer_id_is_assigned_once_the_markers_are_written() -> None:
    before = replace(BUSY, state=PREPARE_COMMIT, producer_epoch=MAX_EPOCH, last_epoch=EXHAUSTED, next_producer_id=99)
    assert complete_transaction(before, 40) == replace(
        BUSY,
        state=TransactionState.COMPLETE_COMMIT,
        producer_id=99,
        previous_producer_id=7,
        producer_epoch=0,
        last_epoch=EXHAUSTED,
        partitions=frozenset(),
        updated_ms=40,
    )
