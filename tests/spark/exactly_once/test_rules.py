"""The decisions of drivers and tasks."""

from __future__ import annotations

import pytest

from ottla.model import TopicPartition
from ottla.spark.exactly_once.batch_plan import BatchPlan, parse_plan
from ottla.spark.exactly_once.errors import ChangedPlanError, ExactlyOnceError, SupersededError
from ottla.spark.exactly_once.marker import Announcement, Marker
from ottla.spark.exactly_once.names import Names
from ottla.spark.exactly_once.rules import (
    Mode,
    TaskDecision,
    check_outcomes,
    check_place,
    check_same_rows,
    choose_mode,
    decide_task,
)
from ottla.spark.exactly_once.weight import Weight

MINE = Announcement(7, "mine", "process 1 on here")
WEIGHT = Weight(2, 10, 100)
LOG = """v1
{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{"spark.sql.shuffle.partitions":"4"}}
{"flights":{"0":10}}
-"""


@pytest.mark.parametrize(
    ("batch", "before", "mode"),
    [
        (7, None, Mode.COMMIT),
        (7, Announcement(6, "older"), Mode.COMMIT),
        (7, Announcement(7, "killed"), Mode.HOLD),
        (7, Announcement(None, "unknown"), Mode.HOLD),
        (None, None, Mode.HOLD),
        (None, Announcement(6, "older"), Mode.HOLD),
    ],
)
def test_the_driver_ends_what_may_be_half_written(batch: int | None, before: Announcement | None, mode: Mode) -> None:
    assert choose_mode(batch, before) is mode


def test_an_old_copy_of_a_checkpoint_is_refused_by_driver_and_task() -> None:
    with pytest.raises(ExactlyOnceError, match=r"this is batch 7, but batch 9 .* continue with the newest checkpoint"):
        choose_mode(7, Announcement(9, "newer"))
    with pytest.raises(ExactlyOnceError, match="batch 9 of the same query was written already"):
        decide_task(MINE, 7, MINE, Marker(9, "newer"))


HERE, THERE = TopicPartition("here", 0), TopicPartition("there", 0)


@pytest.mark.parametrize("before", [{}, {HERE: 6}, {HERE: 6, THERE: 3}, {THERE: None}])
def test_a_query_with_marks_in_the_same_topic_continues_without_a_warning(
    before: dict[TopicPartition, int | None],
) -> None:
    assert check_place(7, HERE, before) is None


def test_a_query_with_another_topic_logs_a_warning_and_stops_in_the_middle_of_a_batch() -> None:
    assert "up to 6 are of topic there, and those of this one are of topic here" in (
        check_place(7, HERE, {THERE: 6}) or ""
    )
    for newest in (7, 8):
        with pytest.raises(ChangedPlanError, match=rf"batch {newest} of this query was started .* of topic there"):
            check_place(7, HERE, {HERE: 6, THERE: newest})


@pytest.mark.parametrize(
    ("marker", "move"),
    [
        (None, TaskDecision.WRITE),
        (Marker(-1, ""), TaskDecision.WRITE),
        (Marker(6, "older"), TaskDecision.WRITE),
        (Marker(7, "mine"), TaskDecision.SKIP),
        (Marker(7, "killed"), TaskDecision.COMPARE),
    ],
)
def test_a_task_writes_unless_it_was_written(marker: Marker | None, move: TaskDecision) -> None:
    assert decide_task(MINE, 7, MINE, marker) is move


@pytest.mark.parametrize("announced", [None, Announcement(7, "another", "process 2 on there")])
def test_a_task_of_a_run_that_was_taken_over_stops(announced: Announcement | None) -> None:
    with pytest.raises(SupersededError, match=r"two queries run on one checkpoint.*its own checkpoint"):
        decide_task(MINE, 7, announced, None)


def test_another_distribution_of_rows_is_reported_with_the_settings_to_restore() -> None:
    marker = Marker(7, "killed", WEIGHT)
    check_same_rows(1, marker, WEIGHT, BatchPlan())
    with pytest.raises(
        ChangedPlanError, match=r"task 1 has written 2 rows .*repartition\(\).*spark.default.parallelism"
    ):
        check_same_rows(1, marker, Weight(3, 10, 100), BatchPlan())
    with pytest.raises(ChangedPlanError, match=r"it has 2 tasks now, but task 4 .* had at least 5; restore"):
        check_outcomes(7, 2, {2: Marker(6, "older"), 4: marker})
    check_outcomes(7, 2, {2: Marker(6, "older")})


@pytest.mark.parametrize(
    ("now", "sentence"),
    [
        (parse_plan(LOG, "other"), "the option topic was 'flights' and is 'other': set it back"),
        (parse_plan(LOG.replace('"4"', '"8"'), "flights"), "was 4 and is 8: set it back to 4"),
        (parse_plan(LOG.replace("10", "11"), "flights"), "restore the file of this batch in the checkpoint's folder"),
    ],
)
def test_another_plan_in_spark_s_log_is_reported(now: BatchPlan, sentence: str) -> None:
    marker = Marker(7, "killed", WEIGHT, parse_plan(LOG, "flights"))
    check_same_rows(0, marker, WEIGHT, parse_plan(LOG.replace('Ms":1', 'Ms":2'), "flights"))
    with pytest.raises(ChangedPlanError) as error:
        check_same_rows(0, marker, WEIGHT, now)
    assert sentence in str(error.value)


def test_a_plan_that_is_not_known_is_not_compared() -> None:
    check_same_rows(0, Marker(7, "killed", WEIGHT, parse_plan(LOG, "t")), WEIGHT, BatchPlan(topic="t"))
    assert parse_plan("", None) == BatchPlan()
    assert parse_plan("v9\nnonsense\nx", None).shuffle is None


def test_marks_are_read_back_from_the_offsets_in_which_they_are_stored() -> None:
    marker = Marker(7, "mine", WEIGHT, parse_plan(LOG, "flights"))
    assert marker.to_offset().offset == 8
    assert len(marker.to_offset().metadata) < 1000
    assert Marker.from_offset(marker.to_offset()) == marker
    assert Announcement.from_offset(MINE.to_offset()) == MINE
    assert Announcement.from_offset(Announcement(None, "t").to_offset()).batch is None


@pytest.mark.parametrize("metadata", ["", "no json", "[1]"])
def test_an_offset_set_by_another_program_is_a_mark_without_fields(metadata: str) -> None:
    kept = MINE.to_offset()._replace(metadata=metadata)
    assert Marker.from_offset(kept) == Marker(7, "")
    assert Announcement.from_offset(kept) == Announcement(7, "")


def test_names_differ_between_queries_and_tasks() -> None:
    names = Names("ottla-spark", "abc")
    assert (names.announcements, names.task(3)) == ("ottla-spark-abc", "ottla-spark-abc-3")
    assert [names.index_of(group) for group in ("ottla-spark-abc-3", "ottla-spark-abc", "ottla-spark-abd-3")] == [
        3,
        None,
        None,
    ]
