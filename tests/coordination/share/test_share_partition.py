"""One partition of a share group, as transcripts."""

from __future__ import annotations

import pytest

from ottla.coordination.share.events import (
    ClosedOffsetRange,
    FetchedRecords,
    PersistedState,
    ShareAcknowledgementBatch,
    ShareLimits,
)
from ottla.coordination.share.share_partition import SharePartition
from tests.coordination.share.story import Story

DEAD_LETTERS = ShareLimits(has_dead_letter_queue=True)


def test_accepted_records_leave_the_window_once_they_are_persisted() -> None:
    Story().play("""
        next → 0 more
        fetch a 0-9 → got 0-9 x1
        next → 10 more

        ack a 0-4 accept
        write start=0 done=5 0-4:acknowledged/1

        window → 0..10 0-4:acknowledged/1 5-9:acquired/1:a

        saved → reply 1
        window → 5..10 5-9:acquired/1:a

        ack a 5-9 accept
        write start=5 done=5 5-9:acknowledged/1

        saved → reply 2
        window → 10..10
    """)


def test_a_released_record_is_delivered_to_another_member() -> None:
    Story().play("""
        fetch a 0-9 → got 0-9 x1

        ack a 0-9 accept/accept/release/accept/accept/accept/accept/accept/accept/accept
        write start=0 done=9 0-1:acknowledged/1 2-2:available/1 3-9:acknowledged/1

        next → 10 more
        saved → reply 1
        next → 2 more
        fetch b 0-9,10-12 from=2 → got 2-2 x2 10-12 x1
        window → 2..13 2-2:acquired/2:b 3-9:acknowledged/1 10-12:acquired/1:b
    """)


def test_a_record_is_not_available_while_its_release_is_being_persisted() -> None:
    Story().play("""
        fetch a 0-4 → got 0-4 x1

        ack a 0-4 release
        write start=0 done=0 0-4:available/1

        fetch b 0-4 →
        ack a 0-0 accept → reply 2 INVALID_RECORD_STATE
    """)


def test_records_return_to_their_member_if_they_cannot_be_persisted() -> None:
    Story().play("""
        fetch a 0-4 → got 0-4 x1

        ack a 0-4 accept
        write start=0 done=5 0-4:acknowledged/1

        failed NOT_COORDINATOR → reply 1 COORDINATOR_NOT_AVAILABLE
        window → 0..5 0-4:acquired/1:a

        ack a 0-4 accept
        write start=0 done=5 0-4:acknowledged/1

        saved → reply 2
        window → 5..5
    """)


def test_a_lock_that_expired_during_a_failed_write_frees_the_records() -> None:
    Story().play("""
        fetch a 0-4 → got 0-4 x1

        ack a 0-4 accept
        write start=0 done=5 0-4:acknowledged/1

        time 31 →

        failed UNKNOWN_SERVER_ERROR
        write start=0 done=0 0-4:available/1
        reply 1 UNKNOWN_SERVER_ERROR

        fetch b 0-4 → got 0-4 x2
    """)


def test_requests_during_a_write_share_the_next_one() -> None:
    Story().play("""
        fetch a 0-9 → got 0-9 x1

        ack a 0-1 accept
        write start=0 done=2 0-1:acknowledged/1

        ack a 4-5 accept →
        ack a 2-3 accept →

        saved
        write start=2 done=4 2-5:acknowledged/1
        reply 1

        saved
        reply 2
        reply 3

        window → 6..10 6-9:acquired/1:a
    """)


def test_an_expired_lock_frees_records_without_waiting_for_the_write() -> None:
    Story().play("""
        fetch a 0-4 → got 0-4 x1
        time 29 →

        time 30
        write start=0 done=0 0-4:available/1

        fetch b 0-4 → got 0-4 x2
        ack a 0-4 accept → reply 1 INVALID_RECORD_STATE
        failed COORDINATOR_NOT_AVAILABLE →
        window → 0..5 0-4:acquired/2:b
    """)


def test_a_renewed_lock_expires_later_and_nothing_is_persisted() -> None:
    Story().play("""
        fetch a 0-4 → got 0-4 x1
        time 20 →

        ack a 0-3 renew → reply 1

        time 30
        write start=0 done=0 4-4:available/1

        ack a 0-3 accept/renew/renew/renew →

        saved
        write start=0 done=1 0-0:acknowledged/1

        saved → reply 2

        time 60
        write start=1 done=0 1-3:available/1
    """)


def test_a_closed_session_takes_its_delivery_back() -> None:
    Story(limits=ShareLimits(max_delivery_count=2)).play("""
        fetch a 0-4 → got 0-4 x1
        fetch b 5-9 → got 5-9 x1

        close a
        write start=0 done=0 0-4:available/0

        saved → reply 1
        close a → reply 2
        fetch b 0-4 → got 0-4 x1
        window → 0..10 0-4:acquired/1:b 5-9:acquired/1:b
    """)


def test_a_failed_release_of_a_closed_session_leaves_the_delivery_count() -> None:
    Story().play("""
        fetch a 0-4 → got 0-4 x1

        close a
        write start=0 done=0 0-4:available/0

        failed COORDINATOR_LOAD_IN_PROGRESS → reply 1 COORDINATOR_NOT_AVAILABLE
        window → 0..5 0-4:acquired/1:a
    """)


def test_a_record_without_attempts_left_is_archived() -> None:
    Story("0-0:available/4 1-1:available/1").play("""
        fetch a 0-1 → got 0-0 x5
        fetch b 0-1 from=1 → got 1-1 x2

        ack a 0-0 release
        write start=0 done=1 0-0:archived/5

        saved → reply 1
        window → 1..2 1-1:acquired/2:b
    """)


def test_an_expired_lock_archives_a_record_without_attempts_left() -> None:
    Story("0-4:available/1", limits=ShareLimits(max_delivery_count=2)).play("""
        fetch a 0-4 → got 0-4 x2

        time 30
        write start=0 done=5 0-4:archived/2

        saved →
        window → 5..5
    """)


def test_rejected_records_are_copied_before_they_are_archived() -> None:
    Story(limits=DEAD_LETTERS).play("""
        fetch a 0-4 → got 0-4 x1

        ack a 0-4 accept/reject/reject/gap/accept
        write start=0 done=3 0-0:acknowledged/1 1-2:archiving/1 3-3:archived/1 4-4:acknowledged/1

        saved
        reply 1
        copy 1-2 x1 rejected

        window → 1..5 1-2:archiving/1 3-3:archived/1 4-4:acknowledged/1

        copied 1-2
        write start=1 done=4 1-2:archived/1

        window → 5..5
        saved →
    """)


def test_records_without_attempts_left_are_copied_even_if_their_state_is_not_persisted() -> None:
    Story("0-4:available/1", limits=ShareLimits(max_delivery_count=2, has_dead_letter_queue=True)).play("""
        fetch a 0-4 → got 0-4 x2

        time 30
        write start=0 done=0 0-4:archiving/2

        failed NOT_COORDINATOR → copy 0-4 x2 delivery_count_exceeded
    """)


def test_a_rejection_that_is_not_persisted_copies_nothing() -> None:
    Story(limits=DEAD_LETTERS).play("""
        fetch a 0-4 → got 0-4 x1

        ack a 0-4 reject
        write start=0 done=0 0-4:archiving/1

        failed NOT_COORDINATOR → reply 1 COORDINATOR_NOT_AVAILABLE
        copied 0-4 →
        window → 0..5 0-4:acquired/1:a
    """)


def test_a_new_leader_repeats_the_copies() -> None:
    Story("0-1:archiving/1 2-2:archiving/5 3-3:acknowledged/1", limits=DEAD_LETTERS).play("""
        letters
        copy 0-1 x1 rejected
        copy 2-2 x5 delivery_count_exceeded

        fetch a 0-3 →
    """)


def test_a_new_leader_delivers_what_was_not_finished() -> None:
    Story("0-1:acknowledged/1 4-5:available/2 8-9:acknowledged/1").play("""
        window → 2..10 2-3:available/0 4-5:available/2 6-7:available/0 8-9:acknowledged/1
        next → 2 more
        fetch a 0-12 from=2 → got 2-3 x1 4-5 x3 6-7 x1 10-12 x1
    """)


def test_a_new_leader_starts_after_finished_records() -> None:
    Story("5-9:acknowledged/1 10-10:archived/5", start=5).play("window → 11..11")


def test_records_that_the_log_no_longer_has_are_archived() -> None:
    Story("0-9:available/1", limits=ShareLimits()).play("""
        fetch a 6-9,14-19 from=0 → got 6-9 x2 14-19 x1
        window → 6..20 6-9:acquired/2:a 10-13:archived/0 14-19:acquired/1:a
    """)


def test_the_first_fetch_starts_where_the_log_has_records() -> None:
    Story(start=5).play("""
        fetch a 10-19 from=5 → got 10-19 x1
        window → 10..20 10-19:acquired/1:a
    """)


def test_a_batch_that_starts_before_the_start_offset_is_cut() -> None:
    Story(start=5).play("""
        fetch a 0-9 from=5 → got 5-9 x1
        window → 5..10 5-9:acquired/1:a
    """)


def test_aborted_records_are_archived_and_not_returned() -> None:
    Story().play("""
        fetch a 0-9,10-19,20-29,30-30 aborted=0-4,10-19,30-30 → got 5-9 x1 20-29 x1
        window → 5..31 5-9:acquired/1:a 10-19:archived/1 20-29:acquired/1:a 30-30:archived/1
    """)


def test_the_limit_of_records_is_exceeded_to_the_end_of_a_batch() -> None:
    Story().play("""
        fetch a 0-9,10-19,20-29 max=12 → got 0-19 x1
        fetch b 20-29 max=1 → got 20-29 x1
    """)


def test_the_limit_of_records_is_exact_in_the_mode_record_limit() -> None:
    Story().play("""
        fetch a 0-9,10-19 max=12 mode=limit → got 0-11 x1
        window → 0..20 0-11:acquired/1:a 12-19:available/0
        fetch b 10-19 from=12 max=3 mode=limit → got 12-14 x1
    """)


def test_new_records_are_returned_in_parts_of_the_batch_size() -> None:
    Story().play("fetch a 0-9,10-14,15-29,30-34 size=12 → got 0-14 x1 15-29 x1 30-34 x1")


def test_a_full_window_delivers_only_released_records() -> None:
    Story(limits=ShareLimits(max_in_flight_records=10)).play("""
        fetch a 0-9 → got 0-9 x1
        next → 10 full
        fetch b 10-19 →

        ack a 4-4 release
        write start=0 done=0 4-4:available/1

        saved → reply 1
        next → 4 more
        fetch b 0-9,10-19 from=4 → got 4-4 x2
        next → 10 full
    """)


def test_records_that_were_delivered_often_are_delivered_in_smaller_parts_and_at_last_alone() -> None:
    Story("0-7:available/3 8-9:available/0", limits=ShareLimits(max_delivery_count=6)).play("""
        fetch a 0-9 → got 0-3 x4
        fetch a 0-9 from=4 → got 4-7 x4
        fetch a 0-9 from=8 → got 8-9 x1

        ack a 0-7 release
        write start=0 done=0 0-7:available/4

        saved → reply 1
        fetch a 0-9 → got 0-1 x5

        ack a 0-1 release
        write start=0 done=0 0-1:available/5

        saved → reply 2
        fetch a 0-9 → got 0-0 x6
        fetch a 0-9 from=1 → got 1-1 x6
    """)


def test_nothing_is_delivered_together_with_a_throttled_batch() -> None:
    Story("0-1:available/1 2-5:available/3").play(
        """
        fetch a 0-5 → got 0-1 x2
        fetch a 0-5 from=2,6 → got 2-3 x4
    """.replace("from=2,6", "from=2")
    )


def test_no_new_records_are_delivered_with_or_instead_of_a_throttled_batch() -> None:
    Story("0-1:available/1 2-5:available/3").play("""
        fetch a 0-5,6-9 → got 0-1 x2
        fetch a 2-5,6-9 → got 2-3 x4
        window → 0..6 0-1:acquired/2:a 2-3:acquired/4:a 4-5:available/3
    """)


def test_the_first_record_that_is_throttled_decides_how_much_of_its_batch_is_delivered() -> None:
    Story("0-7:available/3", limits=ShareLimits(max_delivery_count=6)).play("""
        fetch a 2-7 → got 2-5 x4

        ack a 2-5 release
        write start=0 done=0 2-5:available/4

        saved → reply 1
        fetch b 0-7 → got 0-1 x4 2-3 x5
    """)


def test_a_part_of_a_throttled_batch_may_end_between_two_delivery_counts() -> None:
    Story("0-7:available/3", limits=ShareLimits(max_delivery_count=6)).play("""
        fetch a 4-7 → got 4-7 x4

        ack a 4-7 release
        write start=0 done=0 4-7:available/4

        saved → reply 1
        fetch b 0-7 → got 0-3 x4
    """)


def test_a_record_on_its_last_attempt_is_not_delivered_after_others_of_its_batch() -> None:
    Story("0-3:available/1", limits=ShareLimits(max_delivery_count=3)).play("""
        fetch a 2-3 → got 2-3 x2

        ack a 2-3 release
        write start=0 done=0 2-3:available/2

        saved → reply 1
        fetch a 0-3 → got 0-1 x2
        fetch a 2-3 → got 2-2 x3
    """)


def test_a_record_may_be_accepted_on_its_last_attempt() -> None:
    Story("0-0:available/4").play("""
        fetch a 0-0 → got 0-0 x5

        ack a 0-0 accept
        write start=0 done=1 0-0:acknowledged/5
    """)


def test_records_before_a_moved_log_start_are_forgotten() -> None:
    Story().play("""
        fetch a 0-9 → got 0-9 x1

        ack a 0-3 accept
        write start=0 done=4 0-3:acknowledged/1

        trim 6 →
        window → 6..10 6-9:acquired/1:a
        saved → reply 1
        ack a 0-5 accept → reply 2

        ack a 0-9 accept
        write start=6 done=4 6-9:acknowledged/1

        saved → reply 3
        trim 20 →
        window → 20..20
    """)


@pytest.mark.parametrize(
    ("batches", "error"),
    [
        ("10-12 accept", "INVALID_RECORD_STATE"),
        ("0-4 accept", "INVALID_RECORD_STATE"),
        ("4-6 accept", "INVALID_RECORD_STATE"),
        ("18-20 accept", "INVALID_REQUEST"),
        ("20-21 accept", "INVALID_REQUEST"),
        ("7-6 accept", "INVALID_REQUEST"),
        ("6-7 accept, 7-8 accept", "INVALID_REQUEST"),
        ("6-7 accept, 5-5 accept", "INVALID_REQUEST"),
        ("6-8 accept/accept", "INVALID_REQUEST"),
        ("6-6 9", "INVALID_REQUEST"),
        ("5-6 accept, 10-10 release", "INVALID_RECORD_STATE"),
    ],
)
def test_a_wrong_acknowledgement_changes_nothing(batches: str, error: str) -> None:
    Story("0-4:available/1").play(f"""
        fetch b 5-9 → got 5-9 x1
        fetch a 10-19 → got 10-19 x1
        ack b {batches} → reply 1 {error}
        window → 0..20 0-4:available/1 5-9:acquired/1:b 10-19:acquired/1:a

        ack b 5-9 accept
        write start=0 done=5 5-9:acknowledged/1
    """)


def test_an_acknowledgement_in_an_empty_window_is_refused_unless_it_is_of_the_past() -> None:
    Story(start=10).play("""
        ack a 10-12 accept → reply 1 INVALID_RECORD_STATE
        ack a 5-9 accept → reply 2
    """)


@pytest.mark.parametrize("error", ["FENCED_LEADER_EPOCH", "FENCED_STATE_EPOCH"])
def test_a_fenced_leader_answers_that_it_is_none(error: str) -> None:
    story = Story().play(f"""
        fetch a 0-9 → got 0-9 x1

        ack a 0-1 accept
        write start=0 done=2 0-1:acknowledged/1

        ack a 2-2 accept →

        failed {error}
        reply 1 NOT_LEADER_OR_FOLLOWER
        reply 2 NOT_LEADER_OR_FOLLOWER

        ack a 3-3 accept → reply 3 NOT_LEADER_OR_FOLLOWER
        close a → reply 4 NOT_LEADER_OR_FOLLOWER
        fetch b 0-9 →
        time 99 →
    """)
    assert story.partition.is_fenced
    assert not story.partition.can_acquire


def test_a_leader_that_is_replaced_answers_what_waits() -> None:
    Story().play("""
        fetch a 0-9 → got 0-9 x1

        ack a 0-1 accept
        write start=0 done=2 0-1:acknowledged/1

        ack a 2-2 accept →

        fence
        reply 1 NOT_LEADER_OR_FOLLOWER
        reply 2 NOT_LEADER_OR_FOLLOWER
    """)


def test_ten_thousand_records_that_were_fetched_together_are_few_ranges() -> None:
    partition = SharePartition(PersistedState(0, 0), 1, ShareLimits(max_in_flight_records=10_000))
    batches = tuple(ClosedOffsetRange(first, first + 99) for first in range(0, 10_000, 100))

    acquired = partition.acquire("a", FetchedRecords(0, batches), 10_000, 0.0, batch_size=1000)
    partition.acknowledge(1, "a", [ShareAcknowledgementBatch(5500, 5500, [1])], 0.0)

    assert len(acquired) == 10
    assert len(list(partition.ranges)) == 12


def test_the_next_deadline_is_that_of_the_oldest_lock() -> None:
    partition = SharePartition(PersistedState(0, 0), 1)
    deadlines = [partition.next_deadline]

    partition.acquire("a", FetchedRecords(0, (ClosedOffsetRange(0, 9),)), 10, 5.0)
    partition.acquire("a", FetchedRecords(10, (ClosedOffsetRange(10, 19),)), 10, 7.0)
    deadlines.append(partition.next_deadline)
    is_early = partition.expire_locks(34.0).write is None
    expired = partition.expire_locks(35.0).write
    deadlines.append(partition.next_deadline)

    assert is_early
    assert expired is not None
    assert deadlines == [None, 35.0, 37.0]
