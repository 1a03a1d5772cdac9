"""Stories of a batch: the tests run them against Ottla's broker, and `interop` against Apache Kafka."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from ottla import Producer
from ottla.spark.exactly_once import task as tasks
from ottla.spark.exactly_once.driver import abort_batch, end_transaction
from ottla.spark.exactly_once.errors import ChangedPlanError, ExactlyOnceError, SupersededError
from ottla.spark.exactly_once.kafka_marks import KafkaMarks
from ottla.spark.exactly_once.names import Names
from ottla.spark.exactly_once.run import producer_settings
from tests.spark.exactly_once.batches import Query

ABC = Counter("abc")


def batches_follow_each_other(query: Query) -> None:
    query.write(0, "a b", "c")
    outcomes = query.write(1, "d", "")
    assert query.committed() == Counter("abcd")
    assert not any(outcome.already or outcome.held for outcome in outcomes)


def a_batch_that_is_run_again_is_held_and_not_written_again(query: Query) -> None:
    query.write(0, "a b", "c")
    outcomes = query.write(0, "b a", "c")
    assert [outcome.already for outcome in outcomes] == [True, True]
    assert query.committed() == ABC


def what_a_driver_left_half_written_is_completed(query: Query) -> None:
    run = query.announce(0)
    query.task(run, 0, "a b")
    outcomes = query.write(0, "a b", "c")
    assert [outcome.already for outcome in outcomes] == [True, False]
    assert query.committed() == ABC


def what_is_held_is_seen_when_the_driver_ends_it_and_not_before(query: Query) -> None:
    query.announce(0)
    run = query.announce(0)
    outcomes = [query.task(run, 0, "a b"), query.task(run, 1, "c")]
    assert query.committed() == Counter()
    query.finish(*outcomes)
    assert query.committed() == ABC


def what_is_held_is_aborted_when_the_batch_fails(query: Query) -> None:
    query.announce(0)
    outcome = query.task(query.announce(0), 0, "a b")
    abort_batch(query.options, [outcome, None])
    query.write(0, "a b", "c")
    assert query.committed() == ABC


def a_driver_that_dies_while_it_ends_what_is_held_is_followed_by_one_that_completes_it(query: Query) -> None:
    query.announce(0)
    run = query.announce(0)
    first, second = query.task(run, 0, "a b"), query.task(run, 1, "c")
    end_transaction(query.options, first)  # and dies here
    assert query.committed() == Counter("ab")
    outcomes = query.write(0, "a b", "c")
    assert [outcome.already for outcome in outcomes] == [True, False]
    with pytest.raises(SupersededError, match="cannot be committed"):
        end_transaction(query.options, second)  # it was not dead after all
    assert query.committed() == ABC


def other_rows_for_a_task_that_was_done_stop_it(query: Query) -> None:
    query.task(query.announce(0), 0, "a b")
    with pytest.raises(ChangedPlanError, match="task 0 has written 2 rows"):
        query.write(0, "a", "b c")
    query.write(0, "a b", "c")
    assert query.committed() == ABC


def fewer_tasks_than_were_done_stop_the_driver(query: Query) -> None:
    query.task(query.announce(0), 1, "c")
    with pytest.raises(ChangedPlanError, match="task 1 has written a part of it, so it had at least 2"):
        query.write(0, "a b c")
    query.write(0, "a b", "c")
    assert query.committed() == ABC


def another_plan_is_welcome_where_nothing_was_done(query: Query) -> None:
    query.announce(0)
    query.write(0, "a b c")
    assert query.committed() == ABC


def a_task_that_spark_tries_again_while_the_first_still_writes_shuts_that_one_out(query: Query) -> None:
    run = query.announce(0)
    outcome = query.task(run, 0, "a b c", meanwhile=lambda: query.task(run, 0, "a b c"))
    assert outcome.already
    assert query.committed() == ABC


def a_fenced_task_without_news_of_the_other_reports_it(query: Query, patience: pytest.MonkeyPatch) -> None:
    patience.setattr(tasks, "PATIENCE", 0.3)
    run = query.announce(0)

    def taken() -> None:
        with pytest.raises(ZeroDivisionError):
            query.task(run, 0, "a b c", meanwhile=lambda: 1 // 0)

    with pytest.raises(SupersededError, match="was fenced by another attempt"):
        query.task(run, 0, "a b c", meanwhile=taken)
    assert query.committed() == Counter()


def a_zombie_of_a_run_that_another_has_followed_stops(query: Query) -> None:
    old = query.announce(0)
    new = query.announce(0)
    with pytest.raises(SupersededError, match="two queries run on one checkpoint"):
        query.task(old, 0, "a b c")
    query.finish(query.task(new, 0, "a b c"))
    assert query.committed() == ABC


def a_zombie_task_that_the_new_plan_does_not_have_is_shut_out(query: Query) -> None:
    def followed() -> None:
        query.write(0, "a b c")

    old = query.announce(0)
    with pytest.raises(SupersededError):
        query.task(old, 1, "c", meanwhile=followed)
    assert query.committed() == ABC


def a_half_written_batch_does_not_go_on_in_another_topic(query: Query) -> None:
    query.write(0, "a b")
    query.task(query.announce(1), 0, "c")
    other = query.to_another_topic()
    with pytest.raises(
        ChangedPlanError, match=f"batch 1 of this query was started .* those of this one are of topic {other.topic}"
    ):
        other.write(1, "c", "d")
    query.write(1, "c", "d")
    other.write(2, "e")
    assert (query.committed(), other.committed()) == (Counter("abcd"), Counter("e"))


def an_old_copy_of_a_checkpoint_stops(query: Query) -> None:
    query.write(4, "a")
    query.write(5, "b")
    with pytest.raises(ExactlyOnceError, match=r"this is batch 4, but batch 5 .* was written already"):
        query.write(4, "a")


def a_batch_write_of_its_own_counts_as_a_whole(query: Query) -> None:
    outcomes = query.job("a b", "", "c")
    assert query.committed() == Counter()
    query.finish(*outcomes)
    abort_batch(query.options, query.job("x", "y"))
    assert query.committed() == ABC


def what_tasks_of_a_failed_write_did_not_come_to_report_keeps_no_reader_waiting(query: Query) -> None:
    run = query.new_job()
    reported, ignore_unraisable, _ = query.tasks_of(run, "x", "y z", "")
    abort_batch(query.options, [reported, None, None], run)
    query.finish(*query.job("a b", "c"))
    assert query.committed() == ABC
    with pytest.raises(SupersededError, match="cannot be committed"):
        end_transaction(query.options, ignore_unraisable)  # its task is too late


def a_task_that_begins_when_its_write_has_failed_undoes_its_part(query: Query) -> None:
    run = query.new_job()
    abort_batch(query.options, [None], run)
    with pytest.raises(SupersededError, match="the write has failed; task 0"):
        query.tasks_of(run, "x y z")
    query.finish(*query.job("a b", "c"))
    assert query.committed() == ABC


def a_topic_that_is_not_there_is_made_for_the_first_batch(query: Query) -> None:
    new = query.to_a_new_topic()
    new.write(0, "a b", "c")
    assert new.committed() == ABC


def what_tasks_of_a_failed_batch_left_open_keeps_no_reader_waiting(query: Query) -> None:
    run = query.announce(0)
    left = Producer(producer_settings(run, Names(run.prefix, query.id).task(1)))
    left.init_transactions()
    left.begin_transaction()
    left.send(query.topic, b"x").result(30)
    query.task(run, 0, "a b")
    abort_batch(query.options, [None, None], run)
    assert not query.waiting_readers()
    with pytest.raises(SupersededError, match="batch 0 was taken over"):
        query.task(run, 2, "y")  # which began when the batch had failed
    left.close(0)
    outcomes = query.write(0, "a b", "c")
    assert [outcome.already for outcome in outcomes] == [True, False]
    assert query.committed() == ABC


def a_task_that_holds_its_rows_when_its_batch_has_failed_undoes_its_part(query: Query) -> None:
    query.announce(0)
    run = query.announce(0)

    def failed() -> None:
        replaced = replace(run.announcement, token="another")
        KafkaMarks(run.settings, Names(run.prefix, query.id), run.place).replace_announcement(replaced)

    with pytest.raises(SupersededError, match="the write has failed; task 0"):
        query.task(run, 0, "x y", meanwhile=failed)
    assert not query.waiting_readers()
    query.write(0, "a b", "c")
    assert query.committed() == ABC


def a_driver_that_was_followed_leaves_the_tasks_of_the_other_alone(query: Query) -> None:
    old, new = query.announce(0), query.announce(0)
    held = query.task(new, 0, "a b c")
    abort_batch(query.options, [None], old)
    query.finish(held)
    assert query.committed() == ABC


STORIES: Sequence[Callable[[Query], None]] = (
    batches_follow_each_other,
    a_batch_that_is_run_again_is_held_and_not_written_again,
    what_a_driver_left_half_written_is_completed,
    what_is_held_is_seen_when_the_driver_ends_it_and_not_before,
    what_is_held_is_aborted_when_the_batch_fails,
    a_driver_that_dies_while_it_ends_what_is_held_is_followed_by_one_that_completes_it,
    other_rows_for_a_task_that_was_done_stop_it,
    fewer_tasks_than_were_done_stop_the_driver,
    another_plan_is_welcome_where_nothing_was_done,
    a_task_that_spark_tries_again_while_the_first_still_writes_shuts_that_one_out,
    a_zombie_of_a_run_that_another_has_followed_stops,
    a_zombie_task_that_the_new_plan_does_not_have_is_shut_out,
    a_half_written_batch_does_not_go_on_in_another_topic,
    an_old_copy_of_a_checkpoint_stops,
    a_batch_write_of_its_own_counts_as_a_whole,
    what_tasks_of_a_failed_write_did_not_come_to_report_keeps_no_reader_waiting,
    a_task_that_begins_when_its_write_has_failed_undoes_its_part,
    a_topic_that_is_not_there_is_made_for_the_first_batch,
    what_tasks_of_a_failed_batch_left_open_keeps_no_reader_waiting,
    a_task_that_holds_its_rows_when_its_batch_has_failed_undoes_its_part,
    a_driver_that_was_followed_leaves_the_tasks_of_the_other_alone,
)
