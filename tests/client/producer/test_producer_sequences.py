"""Numbers of batches, and what becomes of them when batches fail."""

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
    numbering.adopt(FIRST)
    return numbering


def taken(numbering: ProducerSequences, records: int = 1, tp: TopicPartition = A) -> ProducerBatch:
    each = batch(records, tp)
    numbering.number(each)
    return each


def wants_another_epoch(numbering: ProducerSequences) -> bool:
    return numbering.bump_needed


def known_there(numbering: ProducerSequences, tp: TopicPartition = A) -> None:
    """A first batch of two records is in the log."""
    numbering.completed(taken(numbering, 2, tp), 0)


def test_without_an_id_nothing_is_sent() -> None:
    assert not ProducerSequences(transactional=False).may_drain(batch())


def test_the_second_batch_waits_until_the_broker_has_the_first() -> None:
    numbering = sequences()
    first = taken(numbering)
    assert not numbering.may_drain(batch())
    numbering.completed(first, 0)
    taken(numbering)
    assert numbering.may_drain(batch()), "from here on several may be under way"


def test_no_more_batches_are_without_outcome_than_a_broker_remembers() -> None:
    """Else one that the next leader has, and has forgotten, would be taken for a gap, and written again under another epoch."""
    numbering = sequences()
    known_there(numbering)
    first, *_ = [taken(numbering) for _ in range(5)]
    assert not numbering.may_drain(batch())
    assert numbering.may_drain(batch(tp=B)), "in another partition"
    numbering.completed(first, 2)
    assert numbering.may_drain(batch())


def test_a_batch_that_may_be_in_the_log_and_is_not_leaves_a_gap_once_nothing_else_is_in_flight() -> None:
    numbering = sequences()
    known_there(numbering)
    lost, other = taken(numbering, 3), taken(numbering, 1)
    numbering.failed(lost, certain=False)
    assert not numbering.may_drain(batch()), "it is not known where to go on"
    assert numbering.resolve() == []
    assert not wants_another_epoch(numbering)

    numbering.failed(other, certain=False)
    assert numbering.resolve() == [A]
    assert wants_another_epoch(numbering)
    assert numbering.resolve() == []
    assert numbering.may_drain(batch())


def test_a_batch_that_was_in_the_log_after_all_leaves_no_gap() -> None:
    numbering = sequences()
    known_there(numbering)
    unsure, later = taken(numbering, 3), taken(numbering, 1)
    numbering.failed(unsure, certain=False)
    numbering.completed(later, 5)
    assert numbering.resolve() == []
    assert not wants_another_epoch(numbering)
    assert numbering.may_drain(batch())


def test_a_batch_that_certainly_is_not_in_the_log_asks_for_the_next_epoch_at_once() -> None:
    numbering = sequences()
    known_there(numbering)
    numbering.failed(taken(numbering), certain=True)
    assert wants_another_epoch(numbering)
    assert numbering.resolve() == []


def test_within_a_transaction_a_gap_is_told_and_nothing_is_numbered_anew() -> None:
    numbering = sequences(transactional=True)
    known_there(numbering)
    numbering.failed(taken(numbering), certain=False)
    assert numbering.resolve() == [A]
    assert not wants_another_epoch(numbering)


def test_a_batch_that_was_never_numbered_fails_without_a_trace() -> None:
    numbering = sequences()
    numbering.failed(batch(), certain=False)
    numbering.failed(batch(), certain=True)
    assert not wants_another_epoch(numbering)
    assert numbering.may_drain(batch())


def test_what_is_in_flight_where_a_gap_was_is_numbered_anew_and_nothing_elsewhere() -> None:
    numbering = sequences()
    known_there(numbering)
    known_there(numbering, B)
    lost, behind, elsewhere = taken(numbering, 3), taken(numbering, 2), taken(numbering, 1, B)
    numbering.failed(lost, certain=True)
    numbering.bump()
    assert (numbering.producer, numbering.bump_needed) == (SECOND, False)
    assert (behind.producer, behind.base_sequence, behind.sequence_reset) == (SECOND, 0, True)
    assert (elsewhere.producer, elsewhere.base_sequence, elsewhere.sequence_reset) == (FIRST, 2, False)


def test_a_later_epoch_leaves_alone_what_was_numbered_anew_before() -> None:
    numbering = sequences()
    known_there(numbering)
    known_there(numbering, B)
    lost, behind = taken(numbering), taken(numbering, 2)
    numbering.failed(lost, certain=True)
    numbering.bump()
    numbering.failed(taken(numbering, 1, B), certain=True)
    numbering.bump()
    assert numbering.producer.epoch == 2
    assert (behind.producer, behind.base_sequence) == (SECOND, 0), "it may be in the log by now"


def test_what_is_to_be_numbered_anew_waits_for_the_id_that_is_asked_for() -> None:
    numbering = sequences()
    numbering.adopt(ProducerIdAndEpoch(7, LAST_EPOCH))
    known_there(numbering)
    lost, behind = taken(numbering), taken(numbering, 2)
    numbering.failed(lost, certain=True)
    numbering.bump()
    assert numbering.producer == NO_PRODUCER
    assert (behind.producer.epoch, behind.base_sequence) == (LAST_EPOCH, 3)
    numbering.adopt(ProducerIdAndEpoch(8, 0))
    assert (behind.producer, behind.base_sequence) == (ProducerIdAndEpoch(8, 0), 0)


def test_the_last_epoch_but_one_has_a_next_one() -> None:
    numbering = sequences()
    numbering.adopt(ProducerIdAndEpoch(7, LAST_EPOCH - 1))
    numbering.bump()
    assert numbering.producer == ProducerIdAndEpoch(7, LAST_EPOCH)


def test_the_end_of_a_transaction_settles_what_was_open() -> None:
    numbering = sequences(transactional=True)
    numbering.failed(taken(numbering), certain=False)
    numbering.clear_unresolved()
    assert numbering.may_drain(batch())


def test_only_the_first_in_flight_is_judged_by_its_number() -> None:
    numbering = sequences()
    known_there(numbering)
    first, second = taken(numbering), taken(numbering)
    out_of_order = KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert numbering.can_retry(second, out_of_order, -1)
    assert not wants_another_epoch(numbering)
    assert numbering.can_retry(first, out_of_order, -1)
    assert wants_another_epoch(numbering)


def test_what_a_broker_says_of_numbers_that_were_changed_meanwhile_does_not_count() -> None:
    numbering = sequences()
    known_there(numbering)
    first = taken(numbering)
    first.sequence_reset = True
    assert numbering.can_retry(first, KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), -1)
    assert numbering.can_retry(first, KafkaError(ErrorCode.UNKNOWN_PRODUCER_ID), 5)
    assert not wants_another_epoch(numbering)


def test_a_transaction_goes_on_where_the_broker_forgot_the_producer_because_its_records_are_gone() -> None:
    forgotten = KafkaError(ErrorCode.UNKNOWN_PRODUCER_ID)
    for log_start, may_go_on in ((-1, True), (1, False), (2, True)):
        numbering = sequences(transactional=True)
        known_there(numbering)
        again = taken(numbering)
        assert numbering.can_retry(again, forgotten, log_start) is may_go_on
        assert again.base_sequence == (0 if log_start == 2 else 2)
        assert not wants_another_epoch(numbering)


def test_of_what_has_numbers_the_first_in_flight_goes_first() -> None:
    numbering = sequences()
    known_there(numbering)
    first, second = taken(numbering), taken(numbering)
    assert numbering.may_drain(first)
    assert not numbering.may_drain(second)
    for each in (first, second):
        numbering.failed(each, certain=False)
    assert numbering.may_drain(second), "nothing is in flight before it"


def test_under_another_epoch_nothing_new_is_numbered_before_what_is_in_flight_is_through() -> None:
    numbering = sequences()
    known_there(numbering)
    old = taken(numbering)
    numbering.adopt(SECOND)
    assert not numbering.may_drain(batch())
    numbering.completed(old, 2)
    assert numbering.may_drain(batch())


def test_a_broker_that_forgot_a_producer_of_a_log_that_is_whole_is_told_another_epoch() -> None:
    numbering = sequences()
    known_there(numbering)
    assert numbering.can_retry(taken(numbering), KafkaError(ErrorCode.UNKNOWN_PRODUCER_ID), 0)
    assert wants_another_epoch(numbering)
