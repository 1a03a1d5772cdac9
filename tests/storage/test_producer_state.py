"""Appends of producers with ids to a partition: repeats, gaps, epochs, transactions."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.errors import ErrorCode, KafkaError
from ottla.storage.log import Log
from ottla.storage.log.append_path import Appended
from ottla.storage.log_config import LogConfig
from ottla.storage.producers.producer_entry import MAX_SEQUENCE
from tests.storage.batches import NOW, open_log
from tests.storage.producing import end, produced, send


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return open_log(tmp_path / "t-0")


def refused(log: Log, code: ErrorCode, *batch: int, epoch: int = 0, transactional: bool = False) -> str:
    """The words with which a batch is refused; nothing is appended."""
    before = log.end_offset
    with pytest.raises(KafkaError) as caught:
        send(log, *batch, epoch=epoch, transactional=transactional)
    assert (caught.value.code, log.end_offset) == (code, before)
    return str(caught.value)


def test_a_repeated_batch_returns_its_first_offset_and_is_stored_once(log: Log) -> None:
    send(log, 8, 0)
    first = send(log, 7, 0, 3)
    send(log, 8, 1)
    assert send(log, 7, 0, 3) == Appended(1, 3, -1, 0, repeated=True)
    assert (first.base_offset, log.end_offset) == (1, 5)


def test_the_last_five_batches_of_a_producer_are_recognized_as_repeats(log: Log) -> None:
    for sequence in range(7):
        send(log, 7, sequence)
    assert [send(log, 7, sequence).base_offset for sequence in range(2, 7)] == [2, 3, 4, 5, 6]
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 7, 1)
    assert log.end_offset == 7


def test_only_the_identical_range_is_a_repeat(log: Log) -> None:
    send(log, 7, 0, 3)
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 7, 0, 2)
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 7, 1, 2)


def test_a_repeat_returns_the_original_append_time(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", LogConfig(message_timestamp_type="LogAppendTime"))
    assert send(log, 7, 0, now=NOW + 5).log_append_time_ms == NOW + 5
    assert send(log, 7, 0, now=NOW + 9).log_append_time_ms == NOW + 5


def test_a_sequence_gap_is_rejected_and_the_error_names_the_expected_sequence(log: Log) -> None:
    send(log, 7, 0, 3)
    assert "sequence 4 arrived where 3 was to come" in refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 7, 4)
    assert send(log, 7, 3).base_offset == 3


def test_sequences_wrap_around_after_the_largest(log: Log) -> None:
    send(log, 7, MAX_SEQUENCE - 1, 2)
    assert send(log, 7, 0).base_offset == 2
    assert send(log, 7, MAX_SEQUENCE - 1, 2).base_offset == 0


def test_a_batch_may_span_the_largest_sequence(log: Log) -> None:
    send(log, 7, MAX_SEQUENCE - 1, 5)
    assert send(log, 7, MAX_SEQUENCE - 1, 5).repeated
    assert send(log, 7, 3).base_offset == 5


def test_an_unknown_producer_may_start_at_any_sequence(log: Log) -> None:
    assert send(log, 7, 40).base_offset == 0
    assert send(log, 7, 41).base_offset == 1


def test_a_new_epoch_starts_at_sequence_0(log: Log) -> None:
    send(log, 7, 0, 3)
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 7, 3, epoch=1)
    assert send(log, 7, 0, 3, epoch=1).base_offset == 3


def test_an_old_epoch_is_refused(log: Log) -> None:
    send(log, 7, 0, epoch=2)
    assert "is at epoch 2 here" in refused(log, ErrorCode.INVALID_PRODUCER_EPOCH, 7, 1, epoch=1)


def test_batches_without_a_producer_leave_no_state(log: Log) -> None:
    log.append(produced(-1, -1, epoch=-1), leader_epoch=0, now_ms=NOW)
    assert len(log.producers) == 0


def test_batches_of_one_append_are_checked_against_each_other(log: Log) -> None:
    log.append(produced(7, 0) + produced(7, 1) + produced(8, 0), leader_epoch=0, now_ms=NOW)
    with pytest.raises(KafkaError, match="sequence 3 arrived where 2"):
        log.append(produced(8, 1) + produced(7, 3), leader_epoch=0, now_ms=NOW)
    assert log.end_offset == 3
    assert send(log, 8, 1).base_offset == 3


def test_the_last_stable_offset_is_the_start_of_the_first_open_transaction(log: Log) -> None:
    send(log, 9, 0)
    send(log, 7, 0, 2, transactional=True)
    send(log, 8, 0, transactional=True)
    assert log.last_stable_offset == 1
    end(log, 7, commit=True)
    assert log.last_stable_offset == 3
    end(log, 8, commit=False)
    assert log.last_stable_offset == log.end_offset == 6
    log.producers.check_invariants()


def test_a_read_committed_fetch_ends_at_the_last_stable_offset_and_lists_aborted_transactions(log: Log) -> None:
    send(log, 7, 0, 2, transactional=True)
    send(log, 8, 0, transactional=True)
    end(log, 7, commit=False)
    assert log.read_committed(2, 1 << 20) == (None, [])
    end(log, 8, commit=True)
    send(log, 8, 1, transactional=True)
    piece, aborted = log.read_committed(0, 1 << 20)
    whole = log.read(0, 1 << 20)
    assert piece is not None
    assert whole is not None
    assert piece.size < whole.size
    assert aborted == [(7, 0, 3, 2)]


def test_an_open_transaction_rejects_non_transactional_batches(log: Log) -> None:
    send(log, 7, 0, transactional=True)
    refused(log, ErrorCode.INVALID_TXN_STATE, 7, 1)
    end(log, 7, commit=True)
    send(log, 7, 1)


def test_a_marker_of_an_old_coordinator_epoch_ends_nothing(log: Log) -> None:
    send(log, 7, 0, transactional=True)
    end(log, 7, commit=True, coordinator_epoch=5)
    with pytest.raises(KafkaError, match="TRANSACTION_COORDINATOR_FENCED"):
        end(log, 7, commit=True, coordinator_epoch=4)


def test_an_end_of_transaction_version_2_has_an_epoch_of_its_own(log: Log) -> None:
    send(log, 7, 0, transactional=True)
    with pytest.raises(KafkaError, match="INVALID_PRODUCER_EPOCH"):
        end(log, 7, commit=True, transaction_version=2)
    end(log, 7, commit=True, epoch=1, transaction_version=2)
    end(log, 7, commit=True, epoch=1, transaction_version=2)  # the same once more, its answer was lost
    refused(log, ErrorCode.INVALID_PRODUCER_EPOCH, 7, 1, transactional=True)
    send(log, 7, 0, epoch=1, transactional=True)


def test_a_marker_without_a_transaction_changes_nothing(log: Log) -> None:
    end(log, 7, commit=False)
    assert log.read_committed(0, 1 << 20)[1] == []
    assert log.last_stable_offset == 1


def test_producers_that_were_silent_for_long_are_forgotten_unless_a_transaction_is_open(log: Log) -> None:
    send(log, 7, 0, now=NOW)
    send(log, 8, 0, transactional=True, now=NOW)
    send(log, 9, 0, now=NOW + 50)
    assert log.producers.expire(NOW + 100, 100) == [7]
    assert send(log, 7, 30).base_offset == 3


def test_a_higher_log_start_moves_the_stable_offset_past_a_hanging_transaction(log: Log) -> None:
    send(log, 7, 0, transactional=True)
    send(log, 9, 0, 4)
    log.advance_start(3)
    assert log.last_stable_offset == 3
