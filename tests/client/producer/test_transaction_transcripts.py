"""Whole conversations of a transactional producer, as they are written down in `transcript.py`."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.errors import ErrorCode
from tests.client.producer.transcript import BEGINNING, Player, play


@pytest.mark.behaviour("P7")
def test_a_producer_takes_its_id_over_before_anything_else() -> None:
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
def test_a_batch_waits_until_its_partition_takes_part() -> None:
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
def test_with_version_2_a_batch_takes_its_partition_along() -> None:
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
def test_partitions_that_came_together_are_asked_for_together() -> None:
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
def test_offsets_are_announced_and_then_promised_to_the_groups_own_coordinator() -> None:
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
def test_with_version_2_offsets_are_promised_at_once() -> None:
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
def test_a_transaction_with_nothing_in_it_asks_nobody() -> None:
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
def test_a_lost_batch_leaves_nothing_but_to_abort_and_costs_an_epoch() -> None:
    play(
        """
        > record t-0
        > turn
          AddPartitionsToTxn t-0
        > answer
        > refuse REQUEST_TIMED_OUT
          [ABORTABLE_ERROR]
        > record t-0
          TransactionAbortableError: call abort_transaction(), then begin anew
        > call commit_transaction
          TransactionAbortableError: call abort_transaction(), then begin anew
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
def test_an_abort_waits_for_the_answer_to_what_may_have_begun_the_transaction() -> None:
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
def test_an_abort_of_what_was_asked_of_nobody_is_done_at_once() -> None:
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
def test_a_coordinator_that_has_moved_is_looked_for_and_asked_again() -> None:
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
def test_a_call_that_is_made_again_goes_on_waiting_and_no_other_is_taken_meanwhile() -> None:
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
          IllegalStateError: call commit_transaction() again to go on waiting
        > call begin_transaction
          IllegalStateError: call commit_transaction() again to go on waiting
        > call commit_transaction
        > answer
          [READY]
          commit_transaction: done
        """
    )


@pytest.mark.behaviour("P7")
def test_a_fenced_producer_is_at_its_end() -> None:
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
          ProducerFencedError: close this producer and make a new one
        > call begin_transaction
          ProducerFencedError: close this producer and make a new one
        > turn
        """
    )


@pytest.mark.behaviour("P7")
def test_an_id_that_the_coordinator_has_forgotten_is_asked_for_anew_instead_of_an_end() -> None:
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
        > call hand_over
          IllegalStateError: no broker knows of the transaction yet; flush() first
        > turn
          AddPartitionsToTxn t-0
        > answer
        > call hand_over
          [FATAL_ERROR]
        > call commit_transaction
          ApplicationRecoverableError: close this producer and make a new one
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
def test_an_epoch_is_asked_for_once_after_a_failure_and_not_again_after_the_next_transaction(known: bool) -> None:
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
def test_what_was_not_asked_yet_is_not_asked_any_more_of_a_transaction_that_is_aborted() -> None:
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
def test_what_is_refused_after_it_was_given_up_is_of_no_more_interest(code: str) -> None:
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
def test_what_is_open_when_the_producer_is_closed_is_aborted() -> None:
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
def test_an_idempotent_producer_asks_for_an_id_when_it_is_needed_and_for_nothing_else() -> None:
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
def test_whatever_happens_whoever_waits_is_told_in_the_end(happenings: list[str], v2: bool) -> None:
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
