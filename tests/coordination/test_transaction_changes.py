"""How a transactional id stands after each step, all of it: the transcripts tell who is answered what, and this what is kept."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ottla.coordination.transactions.ending import completed, prepared
from ottla.coordination.transactions.events import EndRequested, ProducerRequested
from ottla.coordination.transactions.starting import begun, fenced, taken_over
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


def asks(producer_id: int = -1, epoch: int = -1) -> ProducerRequested:
    return ProducerRequested(1, "x", 2000, 99, 30, producer_id, epoch)


def ends(epoch: int, *, commit: bool, version: int) -> EndRequested:
    return EndRequested(1, "x", 7, epoch, commit, 99, 30, version)


def test_an_id_that_nobody_has_used_is_given_to_a_fresh_producer() -> None:
    assert begun(asks()) == Transaction(
        transactional_id="x", producer_id=99, producer_epoch=0, timeout_ms=2000, updated_ms=30
    )


def test_a_new_producer_has_the_next_epoch_and_a_clean_slate() -> None:
    assert taken_over(IDLE, asks()) == replace(
        IDLE, state=EMPTY, producer_epoch=4, last_epoch=-1, timeout_ms=2000, started_ms=-1, updated_ms=30
    )


def test_a_producer_that_goes_on_may_ask_again_for_the_epoch_it_came_with() -> None:
    again = taken_over(IDLE, asks(7, 3))
    assert again == replace(
        IDLE, state=EMPTY, producer_epoch=4, last_epoch=3, timeout_ms=2000, started_ms=-1, updated_ms=30
    )
    assert isinstance(again, Transaction)
    assert taken_over(again, asks(7, 3)) == again


def test_after_a_newer_producer_nobody_may_ask_again() -> None:
    newer = taken_over(IDLE, asks())
    assert isinstance(newer, Transaction)
    assert taken_over(newer, asks(7, 2)) == ErrorCode.PRODUCER_FENCED
    assert taken_over(newer, asks(7, 3)) == ErrorCode.PRODUCER_FENCED
    assert taken_over(newer, asks(7, -1)) == ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize(("asked", "last_epoch"), [(asks(), -1), (asks(7, EXHAUSTED), EXHAUSTED)])
def test_when_the_epochs_are_used_up_there_is_a_new_producer_id(asked: ProducerRequested, last_epoch: int) -> None:
    used_up = replace(IDLE, producer_epoch=EXHAUSTED, next_producer_id=50)
    assert taken_over(used_up, asked) == replace(
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
    assert taken_over(replace(IDLE, producer_epoch=EXHAUSTED), asks(7, 5)) == ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize(
    ("version", "present", "epoch"),
    [(0, 3, 4), (2, 3, 4), (0, EXHAUSTED, MAX_EPOCH), (2, EXHAUSTED, MAX_EPOCH)],
)
def test_a_producer_that_is_fenced_leaves_its_partitions_to_be_aborted(version: int, present: int, epoch: int) -> None:
    before = replace(BUSY, version=version, producer_epoch=present)
    assert fenced(before, 30) == replace(
        before, state=PREPARE_ABORT, producer_epoch=epoch, last_epoch=present, is_fenced=True, updated_ms=30
    )


@pytest.mark.parametrize(("commit", "state"), [(True, PREPARE_COMMIT), (False, PREPARE_ABORT)])
def test_an_old_client_ends_its_transaction_and_keeps_its_epoch(commit: bool, state: TransactionState) -> None:
    assert prepared(BUSY, ends(3, commit=commit, version=1)) == replace(BUSY, state=state, updated_ms=30, version=1)


@pytest.mark.parametrize(("commit", "state"), [(True, PREPARE_COMMIT), (False, PREPARE_ABORT)])
def test_a_new_client_has_another_epoch_after_each_transaction(commit: bool, state: TransactionState) -> None:
    before = replace(BUSY, version=0, next_producer_id=50)
    assert prepared(before, ends(3, commit=commit, version=2)) == replace(
        BUSY, state=state, producer_epoch=4, last_epoch=3, next_producer_id=-1, updated_ms=30
    )


def test_with_its_last_epoch_it_is_promised_a_new_id() -> None:
    before = replace(BUSY, producer_epoch=EXHAUSTED)
    assert prepared(before, ends(EXHAUSTED, commit=True, version=2)) == replace(
        BUSY,
        state=PREPARE_COMMIT,
        producer_epoch=MAX_EPOCH,
        last_epoch=EXHAUSTED,
        next_producer_id=99,
        updated_ms=30,
    )


def test_a_transaction_in_which_nothing_happened_began_when_it_was_aborted() -> None:
    assert prepared(IDLE, ends(3, commit=False, version=2)) == replace(
        IDLE, state=PREPARE_ABORT, producer_epoch=4, last_epoch=3, started_ms=30, updated_ms=30
    )


@pytest.mark.parametrize(
    ("state", "end"),
    [(PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT), (PREPARE_ABORT, TransactionState.COMPLETE_ABORT)],
)
def test_with_its_markers_written_it_has_no_partitions_any_more(state: TransactionState, end: TransactionState) -> None:
    assert completed(replace(BUSY, state=state), 40) == replace(BUSY, state=end, partitions=frozenset(), updated_ms=40)


def test_the_promised_id_is_given_once_the_markers_are_written() -> None:
    before = replace(BUSY, state=PREPARE_COMMIT, producer_epoch=MAX_EPOCH, last_epoch=EXHAUSTED, next_producer_id=99)
    assert completed(before, 40) == replace(
        BUSY,
        state=TransactionState.COMPLETE_COMMIT,
        producer_id=99,
        previous_producer_id=7,
        producer_epoch=0,
        last_epoch=EXHAUSTED,
        partitions=frozenset(),
        updated_ms=40,
    )
