"""The sequences of batches, and their changes when batches fail."""

from __future__ import annotations

from itertools import count

from ottla.client.producer.producer_batch import ProducerBatch
from ottla.client.producer.producer_id_and_epoch import LAST_EPOCH, NO_PRODUCER, ProducerIdAndEpoch
from ottla.client.producer.producer_sequences import ProducerSequences
from ottla.errors import ErrorCode, KafkaError
from ottla.model import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
FIRST = ProducerIdAndEpoch(7, 0)
SECOND = ProducerIdAndEpoch(7, 1)
SERIAL = count()


def batch(records: int = 1, tp: TopicPartition = A) -> ProducerBatch:
    return ProducerBatch(tp, 0.0, 0, (next(SERIAL), 0), payload=b"", count=records)


def sequences(*, transactional: bool = False) -> ProducerSequences:
    numbering = ProducerSequences(transactional=transactional)
    numbering.set_producer(FIRST)
    return numbering


def taken(numbering: ProducerSequences, records: int = 1, tp: TopicPartition = A) -> ProducerBatch:
    each = batch(records, tp)
    numbering.assign_sequence(each)
    return each


def wants_another_epoch(numbering: ProducerSequences) -> bool:
    return numbering.bump_needed


def known_there(numbering: ProducerSequences, tp: TopicPartition = A) -> None:
    """A first batch of two records is in the log."""
    numbering.record_completed(taken(numbering, 2, tp), 0)


def test_without_an_id_nothing_is_sent() -> None:
    assert not ProducerSequences(transactional=False).can_drain(batch())


def test_the_second_batch_waits_until_the_broker_has_the_first() -> None:
    numbering = sequences()
    first = taken(numbering)
    assert not numbering.can_drain(batch())
    numbering.record_completed(first, 0)
    taken(numbering)
    assert numbering.can_drain(batch()), "from here on several may be under way"


def test_no_more_batches_are_without_outcome_than_a_broker_remembers() -> None:
    """Else one that the next leader has, and has forgotten, would be taken for a gap, and written again under another epoch."""
    numbering = sequences()
    known_there(numbering)
    first, *_ = [taken(numbering) for _ in range(5)]
    assert not numbering.can_drain(batch())
    assert numbering.can_drain(batch(tp=B)), "in another partition"
    numbering.record_completed(first, 2)
    assert numbering.can_drain(batch())


def test_a_batch_that_may_be_in_the_log_and_is_not_leaves_a_gap_once_nothing_else_is_in_flight() -> None:
    numbering = sequences()
    known_there(numbering)
    lost, other = taken(numbering, 3), taken(numbering, 1)
    numbering.record_failed(lost, certain=False)
    assert not numbering.can_drain(batch()), "it is not known where to go on"
    assert numbering.resolve_failed_batches() == []
    assert not wants_another_epoch(numbering)

    numbering.record_failed(other, certain=False)
    assert numbering.resolve_failed_batches() == [A]
    assert wants_another_epoch(numbering)
    assert numbering.resolve_failed_batches() == []
    assert numbering.can_drain(batch())


def test_a_batch_found_to_be_in_the_log_leaves_no_gap() -> None:
    numbering = sequences()
    known_there(numbering)
    unsure, later = taken(numbering, 3), taken(numbering, 1)
    numbering.record_failed(unsure, certain=False)
    numbering.record_completed(later, 5)
    assert numbering.resolve_failed_batches() == []
    assert not wants_another_epoch(numbering)
    assert numbering.can_drain(batch())


def test_a_batch_that_is_certainly_not_in_the_log_requests_the_next_epoch_at_once() -> None:
    numbering = sequences()
    known_there(numbering)
    numbering.record_failed(taken(numbering), certain=True)
    assert wants_another_epoch(numbering)
    assert numbering.resolve_failed_batches() == []


def test_a_gap_in_a_transaction_is_reported_and_no_batch_is_renumbered() -> None:
    numbering = sequences(transactional=True)
    known_there(numbering)
    numbering.record_failed(taken(numbering), certain=False)
    assert numbering.resolve_failed_batches() == [A]
    assert not wants_another_epoch(numbering)


def test_a_batch_without_sequences_fails_without_side_effects() -> None:
    numbering = sequences()
    numbering.record_failed(batch(), certain=False)
    numbering.record_failed(batch(), certain=True)
    assert not wants_another_epoch(numbering)
    assert numbering.can_drain(batch())


def test_only_in_flight_batches_of_the_partition_with_the_gap_are_renumbered() -> None:
    numbering = sequences()
    known_there(numbering)
    known_there(numbering, B)
    lost, behind, elsewhere = taken(numbering, 3), taken(numbering, 2), taken(numbering, 1, B)
    numbering.record_failed(lost, certain=True)
    numbering.bump_epoch()
    assert (numbering.producer, numbering.bump_needed) == (SECOND, False)
    assert (behind.producer, behind.base_sequence, behind.sequence_reset) == (SECOND, 0, True)
    assert (elsewhere.producer, elsewhere.base_sequence, elsewhere.sequence_reset) == (FIRST, 2, False)


def test_a_later_epoch_does_not_change_batches_that_were_renumbered_before() -> None:
    numbering = sequences()
    known_there(numbering)
    known_there(numbering, B)
    lost, behind = taken(numbering), taken(numbering, 2)
    numbering.record_failed(lost, certain=True)
    numbering.bump_epoch()
    numbering.record_failed(taken(numbering, 1, B), certain=True)
    numbering.bump_epoch()
    assert numbering.producer.epoch == 2
    assert (behind.producer, behind.base_sequence) == (SECOND, 0), "it may be in the log by now"


def test_batches_to_renumber_wait_for_the_requested_producer_id() -> None:
    numbering = sequences()
    numbering.set_producer(ProducerIdAndEpoch(7, LAST_EPOCH))
    known_there(numbering)
    lost, behind = taken(numbering), taken(numbering, 2)
    numbering.record_failed(lost, certain=True)
    numbering.bump_epoch()
    assert numbering.producer == NO_PRODUCER
    assert (behind.producer.epoch, behind.base_sequence) == (LAST_EPOCH, 3)
    numbering.set_producer(ProducerIdAndEpoch(8, 0))
    assert (behind.producer, behind.base_sequence) == (ProducerIdAndEpoch(8, 0), 0)


def test_the_second_to_last_epoch_has_a_successor() -> None:
    numbering = sequences()
    numbering.set_producer(ProducerIdAndEpoch(7, LAST_EPOCH - 1))
    numbering.bump_epoch()
    assert numbering.producer == ProducerIdAndEpoch(7, LAST_EPOCH)


def test_the_end_of_a_transaction_resolves_open_sequences() -> None:
    numbering = sequences(transactional=True)
    numbering.record_failed(taken(numbering), certain=False)
    numbering.clear_unresolved()
    assert numbering.can_drain(batch())


def test_only_the_first_in_flight_batch_is_checked_by_its_sequence() -> None:
    numbering = sequences()
    known_there(numbering)
    first, second = taken(numbering), taken(numbering)
    out_of_order = KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert numbering.can_retry(second, out_of_order, -1)
    assert not wants_another_epoch(numbering)
    assert numbering.can_retry(first, out_of_order, -1)
    assert wants_another_epoch(numbering)


def test_a_response_for_sequences_that_have_changed_is_ignored() -> None:
    numbering = sequences()
    known_there(numbering)
    first = taken(numbering)
    first.sequence_reset = True
    assert numbering.can_retry(first, KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), -1)
    assert numbering.can_retry(first, KafkaError(ErrorCode.UNKNOWN_PRODUCER_ID), 5)
    assert not wants_another_epoch(numbering)


def test_a_transaction_continues_after_unknown_producer_id_caused_by_deleted_records() -> None:
    forgotten = KafkaError(ErrorCode.UNKNOWN_PRODUCER_ID)
    for log_start, may_go_on in ((-1, True), (1, False), (2, True)):
        numbering = sequences(transactional=True)
        known_there(numbering)
        again = taken(numbering)
        assert numbering.can_retry(again, forgotten, log_start) is may_go_on
        assert again.base_sequence == (0 if log_start == 2 else 2)
        assert not wants_another_epoch(numbering)


def test_of_batches_with_sequences_the_first_in_flight_is_sent_first() -> None:
    numbering = sequences()
    known_there(numbering)
    first, second = taken(numbering), taken(numbering)
    assert numbering.can_drain(first)
    assert not numbering.can_drain(second)
    for each in (first, second):
        numbering.record_failed(each, certain=False)
    assert numbering.can_drain(second), "nothing is in flight before it"


def test_after_an_epoch_change_no_new_batch_gets_sequences_before_in_flight_batches_complete() -> None:
    numbering = sequences()
    known_there(numbering)
    old = taken(numbering)
    numbering.set_producer(SECOND)
    assert not numbering.can_drain(batch())
    numbering.record_completed(old, 2)
    assert numbering.can_drain(batch())


def test_unknown_producer_id_without_deleted_records_starts_a_new_epoch() -> None:
    numbering = sequences()
    known_there(numbering)
    assert numbering.can_retry(taken(numbering), KafkaError(ErrorCode.UNKNOWN_PRODUCER_ID), 0)
    assert wants_another_epoch(numbering)
