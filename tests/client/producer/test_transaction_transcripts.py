"""Transcripts of complete exchanges of a transactional producer; `transcript.py` describes the format."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.errors import ErrorCode
from tests.client.producer.transcript import BEGINNING, Player, play


@pytest.mark.behaviour("P7")
def test_a_producer_initializes_its_transactional_id_first() -> None:
    play(
        """
        > call begin_transaction
          IllegalStateError: call init_transactions() first, once
        > call init_transactions
          [INITIALIZING]
        > turn
          FindCoordinator x
        > answer
        > turn
          InitProducerId epoch -1
        > answer CONCURRENT_TRANSACTIONS
        > turn
          again in 0.02 s
        > later 0.02
        > turn
          InitProducerId epoch -1
        > answer
          [READY]
          init_transactions: done
        > call init_transactions
          IllegalStateError: init_transactions() was called already
        """,
        begun=False,
    )


@pytest.mark.behaviour("P7")
def test_a_batch_waits_until_its_partition_is_added() -> None:
    play(
        """
        > record t-0
        > drain t-0
          it is held back
        > turn
          AddPartitionsToTxn t-0
        > drain t-0
          it is held back
        > answer
        > drain t-0
          it goes
        > drain t-1
          it is held back
        """
    )


@pytest.mark.behaviour("P7")
def test_with_version_2_a_batch_adds_its_partition() -> None:
    play(
        """
        > record t-0
        > drain t-0
          it goes
        > turn
        > call commit_transaction
          [COMMITTING_TRANSACTION]
        > turn
          EndTxn commit epoch 0
        > answer
          [READY]
          commit_transaction: done
        """,
        v2=True,
    )


@pytest.mark.behaviour("P7")
def test_partitions_added_together_are_in_one_request() -> None:
    play(
        """
        > record t-0
        > record t-1
        > turn
          AddPartitionsToTxn t-0 t-1
        > record t-2
        > turn
        > answer
        > turn
          AddPartitionsToTxn t-2
        """
    )


@pytest.mark.behaviour("P7")
def test_offsets_are_added_to_the_transaction_and_then_sent_to_the_group_coordinator() -> None:
    play(
        """
        > call send_offsets_to_transaction
        > turn
          AddOffsetsToTxn g
        > answer
        > turn
          FindCoordinator g
        > answer
        > turn
          TxnOffsetCommit g
        > answer
          send_offsets_to_transaction: done
        > call commit_transaction
          [COMMITTING_TRANSACTION]
        > turn
          EndTxn commit epoch 0
        > answer
          [READY]
          commit_transaction: done
        """
    )


@pytest.mark.behaviour("P7")
def test_with_version_2_offsets_are_sent_at_once() -> None:
    play(
        """
        > call send_offsets_to_transaction
        > turn
          FindCoordinator g
        > answer
        > turn
          TxnOffsetCommit g
        > answer
          send_offsets_to_transaction: done
        > call commit_transaction
          [COMMITTING_TRANSACTION]
        > turn
          EndTxn commit epoch 0
        > answer
          [READY]
          commit_transaction: done
        """,
        v2=True,
    )


@pytest.mark.behaviour("P7")
def test_a_commit_waits_for_the_outcome_of_every_batch() -> None:
    play(
        """
        > record t-0
        > turn
          AddPartitionsToTxn t-0
        > answer
        > unwritten
        > call commit_transaction
          [COMMITTING_TRANSACTION]
        > turn
        > written
        > turn
          EndTxn commit epoch 0
        > answer
          [READY]
          commit_transaction: done
        """
    )


@pytest.mark.behaviour("P7")
def test_an_empty_transaction_sends_no_request() -> None:
    play(
        """
        > call commit_transaction
          [READY]
          commit_transaction: done
        > call begin_transaction
          [IN_TRANSACTION]
        > call abort_transaction
          [ABORTING_TRANSACTION]
        > turn
          [READY]
          abort_transaction: done
        """
    )


@pytest.mark.behaviour("P7")
def test_a_lost_batch_requires_an_abort_and_a_new_epoch() -> None:
    play(
        """
        > record t-0
        > turn
          AddPartitionsToTxn t-0
        > answer
        > refuse REQUEST_TIMED_OUT
          [ABORTABLE_ERROR]
        > record t-0
          TransactionAbortableError: call abort_transaction(), then start again
        > call commit_transaction
          TransactionAbortableError: call abort_transaction(), then start again
        > call abort_transaction
          [ABORTING_TRANSACTION]
        > turn
          EndTxn abort epoch 0
        > answer
          [INITIALIZING]
        > turn
          InitProducerId epoch 0
        > answer
          [READY]
          abort_transaction: done
        > call begin_transaction
          [IN_TRANSACTION]
        """
    )


@pytest.mark.behaviour("P7")
def test_with_version_2_each_transaction_has_an_epoch_of_its_own() -> None:
    play(
        """
        > record t-0
        > drain t-0
          it goes
        > refuse REQUEST_TIMED_OUT
          [ABORTABLE_ERROR]
        > call abort_transaction
          [ABORTING_TRANSACTION]
        > turn
          EndTxn abort epoch 0
        > answer
          [READY]
          abort_transaction: done
        > call begin_transaction
          [IN_TRANSACTION]
        > record t-0
        > drain t-0
          it goes
        > call commit_transaction
          [COMMITTING_TRANSACTION]
        > turn
          EndTxn commit epoch 1
        """,
        v2=True,
    )


@pytest.mark.behaviour("P7")
def test_a_batch_that_fails_in_the_middle_of_a_commit_fails_the_commit() -> None:
    play(
        """
        > record t-0
        > turn
          AddPartitionsToTxn t-0
        > answer
        > unwritten
        > call commit_transaction
          [COMMITTING_TRANSACTION]
        > turn
        > refuse REQUEST_TIMED_OUT
          [ABORTABLE_ERROR]
          commit_transaction: TransactionAbortableError
        > call abort_transaction
          [ABORTING_TRANSACTION]
        > turn
        > written
        > turn
          EndTxn abort epoch 0
        """
    )


@pytest.mark.behaviour("P7")
def test_an_abort_waits_for_the_response_to_a_request_that_may_have_started_the_transaction() -> None:
    play(
        """
        > record t-0
        > turn
          AddPartitionsToTxn t-0
        > call abort_transaction
          [ABORTING_TRANSACTION]
        > turn
        > lost
        > turn
          again in 0.10 s
        > later 1
        > turn
          FindCoordinator x
        > answer
        > turn
          AddPartitionsToTxn t-0
        > answer
        > turn
          EndTxn abort epoch 0
        > answer
          [READY]
          abort_transaction: done
        """
    )


@pytest.mark.behaviour("P7")
def test_an_abort_of_a_transaction_without_requests_completes_at_once() -> None:
    play(
        """
        > record t-0
        > call abort_transaction
          [ABORTING_TRANSACTION]
        > turn
          [READY]
          abort_transaction: done
        """
    )


@pytest.mark.behaviour("P7")
def test_a_refused_partition_fails_the_transaction_and_was_never_in_it() -> None:
    play(
        """
        > record t-0
        > turn
          AddPartitionsToTxn t-0
        > answer TOPIC_AUTHORIZATION_FAILED
          [ABORTABLE_ERROR]
        > call abort_transaction
          [ABORTING_TRANSACTION]
        > turn
          [READY]
          abort_transaction: done
        """
    )


@pytest.mark.behaviour("P7")
def test_a_request_is_retried_with_a_moved_coordinator() -> None:
    play(
        """
        > record t-0
        > turn
          AddPartitionsToTxn t-0
        > answer NOT_COORDINATOR
        > turn
          again in 0.10 s
        > later 1
        > turn
          FindCoordinator x
        > answer
        > turn
          AddPartitionsToTxn t-0
        > answer
        """
    )


@pytest.mark.behaviour("P7")
def test_another_coordinator_is_found_after_the_connection_to_the_old_one_was_lost() -> None:
    play(
        """
        > record t-0
        > turn
          AddPartitionsToTxn t-0
        > lost
        > turn
          again in 0.10 s
        > later 1
        > turn
          FindCoordinator x
        > answer
        > turn
          AddPartitionsToTxn t-0
        > answer
        """
    )


@pytest.mark.behaviour("P7")
def test_a_repeated_call_continues_to_wait_and_other_calls_are_rejected_meanwhile() -> None:
    play(
        """
        > record t-0
        > turn
          AddPartitionsToTxn t-0
        > answer
        > call commit_transaction
          [COMMITTING_TRANSACTION]
        > turn
          EndTxn commit epoch 0
        > call abort_transaction
          IllegalStateError: call commit_transaction() again to continue waiting
        > call begin_transaction
          IllegalStateError: call commit_transaction() again to continue waiting
        > call commit_transaction
        > answer
          [READY]
          commit_transaction: done
        """
    )


@pytest.mark.behaviour("P7")
def test_a_fenced_producer_enters_the_fatal_state() -> None:
    play(
        """
        > record t-0
        > turn
          AddPartitionsToTxn t-0
        > answer
        > call commit_transaction
          [COMMITTING_TRANSACTION]
        > turn
          EndTxn commit epoch 0
        > answer PRODUCER_FENCED
          [FATAL_ERROR]
          commit_transaction: ProducerFencedError
        > call abort_transaction
          ProducerFencedError: close this producer and create a new one
        > call begin_transaction
          ProducerFencedError: close this producer and create a new one
        > turn
        """
    )


@pytest.mark.behaviour("P7")
def test_a_producer_id_unknown_to_the_coordinator_is_replaced_without_end_txn() -> None:
    play(
        """
        > call send_offsets_to_transaction
        > turn
          AddOffsetsToTxn g
        > answer INVALID_PRODUCER_ID_MAPPING
          [ABORTABLE_ERROR]
          send_offsets_to_transaction: TransactionAbortableError
        > call abort_transaction
          [INITIALIZING]
        > turn
          InitProducerId epoch 0
        > answer
          [READY]
          abort_transaction: done
        """
    )


@pytest.mark.behaviour("P7")
def test_offsets_of_a_member_that_the_group_has_lost_fail_the_transaction() -> None:
    play(
        """
        > call send_offsets_to_transaction
        > turn
          AddOffsetsToTxn g
        > answer
        > turn
          FindCoordinator g
        > answer
        > turn
          TxnOffsetCommit g
        > answer ILLEGAL_GENERATION
          [ABORTABLE_ERROR]
          send_offsets_to_transaction: TransactionAbortableError
        > call abort_transaction
          [ABORTING_TRANSACTION]
        > turn
          EndTxn abort epoch 0
        > answer
          [INITIALIZING]
        """
    )


@pytest.mark.behaviour("P7")
def test_a_transaction_is_handed_over_once_a_broker_knows_of_it_and_ended_by_another_producer() -> None:
    play(
        """
        > record t-0
        > call hand_over_transaction
          IllegalStateError: no broker knows of the transaction yet; flush() first
        > turn
          AddPartitionsToTxn t-0
        > answer
        > call hand_over_transaction
          [FATAL_ERROR]
        > call commit_transaction
          ApplicationRecoverableError: close this producer and create a new one
        > take_over
          [IN_TRANSACTION]
        > record t-0
        > call commit_transaction
          [COMMITTING_TRANSACTION]
        > turn
          FindCoordinator x
        > answer
        > turn
          AddPartitionsToTxn t-0
        > answer
        """
    )


@pytest.mark.behaviour("P7")
@pytest.mark.parametrize("known", [False, True])
def test_an_epoch_is_requested_once_after_a_failure_and_not_after_the_next_transaction(known: bool) -> None:
    taken_in = """
        > turn
          AddPartitionsToTxn t-0
        > answer"""
    ended = """
          EndTxn abort epoch 0
        > answer
          [INITIALIZING]
        > turn
          InitProducerId epoch 0
        > answer"""
    play(
        f"""
        > record t-0{taken_in if known else ""}
        > refuse TOPIC_AUTHORIZATION_FAILED
          [ABORTABLE_ERROR]
        > call abort_transaction
          [ABORTING_TRANSACTION]
        > turn{ended if known else ""}
          [READY]
          abort_transaction: done
        > call begin_transaction
          [IN_TRANSACTION]
        > record t-0{taken_in}
        > call commit_transaction
          [COMMITTING_TRANSACTION]
        > turn
          EndTxn commit epoch {int(known)}
        > answer
          [READY]
          commit_transaction: done
        """
    )


@pytest.mark.behaviour("P7")
def test_pending_requests_of_an_aborted_transaction_are_dropped() -> None:
    play(
        """
        > record t-0
        > turn
          AddPartitionsToTxn t-0
        > answer
        > call send_offsets_to_transaction
        > call abort_transaction
          [ABORTING_TRANSACTION]
          send_offsets_to_transaction: TransactionAbortedError
        > turn
          EndTxn abort epoch 0
        > answer
          [READY]
          abort_transaction: done
        """
    )


@pytest.mark.behaviour("P7")
@pytest.mark.parametrize("code", ["UNKNOWN_SERVER_ERROR", "NOT_COORDINATOR"])
def test_an_error_for_an_abandoned_request_is_ignored(code: str) -> None:
    play(
        f"""
        > record t-0
        > drain t-0
          it goes
        > call send_offsets_to_transaction
        > turn
          FindCoordinator g
        > answer
        > turn
          TxnOffsetCommit g
        > call abort_transaction
          [ABORTING_TRANSACTION]
          send_offsets_to_transaction: TransactionAbortedError
        > answer {code}
        > turn
          EndTxn abort epoch 0
        > answer
          [READY]
          abort_transaction: done
        """,
        v2=True,
    )


@pytest.mark.behaviour("P7")
def test_closing_a_producer_aborts_its_open_transaction() -> None:
    play(
        """
        > record t-0
        > turn
          AddPartitionsToTxn t-0
        > answer
        > abandon
          [ABORTING_TRANSACTION]
        > turn
          EndTxn abort epoch 0
        > answer
          [READY]
        > abandon
        """
    )


@pytest.mark.behaviour("P7")
def test_an_idempotent_producer_requests_only_a_producer_id_and_only_when_needed() -> None:
    play(
        """
        > turn
          InitProducerId epoch -1
          [INITIALIZING]
        > turn
        > answer
          [READY]
        > turn
        > refuse REQUEST_TIMED_OUT
        > turn
        """,
        transactional=False,
    )


HAPPENINGS = st.one_of(
    st.sampled_from(
        [
            *("record t-0", "record t-1", "drain t-0", "turn", "turn", "answer", "answer", "lost", "later 0.5"),
            *("written", "unwritten", "abandon", "refuse REQUEST_TIMED_OUT", "refuse PRODUCER_FENCED"),
            *("call begin_transaction", "call commit_transaction", "call abort_transaction"),
            *("call send_offsets_to_transaction", "call init_transactions"),
        ]
    ),
    st.sampled_from(
        [
            *(ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_COORDINATOR, ErrorCode.TRANSACTION_ABORTABLE),
            *(ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.UNKNOWN_MEMBER_ID),
            *(ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        ]
    ).map(lambda code: f"answer {code.name}"),
)


@pytest.mark.behaviour("P7")
@settings(max_examples=400, deadline=None)
@given(st.lists(HAPPENINGS, max_size=60), st.booleans())
def test_for_any_sequence_of_events_every_waiting_call_completes(happenings: list[str], v2: bool) -> None:
    player = Player(v2=v2)
    for what in (*BEGINNING, *happenings):
        if what.split()[0] not in ("answer", "lost") or player.machine.requests.in_flight is not None:
            player.happens(what)
    player.happens("written")
    for _ in range(30):  # from here on the brokers are well, and all batches have their outcome
        player.happens("answer" if player.machine.requests.in_flight is not None else "turn")
        player.happens("later 2")
    assert not player.awaited, "\n".join(player.lines)
    assert player.machine.next_request(player.now, incomplete=lambda: False)[0] is None
