"""What driver and tasks decide."""

from __future__ import annotations

import pytest

from ottla.model import TopicPartition
from ottla.spark.exactly_once.batch_plan import BatchPlan, parse_plan
from ottla.spark.exactly_once.errors import ChangedPlanError, ExactlyOnceError, SupersededError
from ottla.spark.exactly_once.marker import Announcement, Marker
from ottla.spark.exactly_once.names import Names
from ottla.spark.exactly_once.rules import Mode, Move, check_all, compare, mode_of, move_of, moved
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
    assert mode_of(batch, before) is mode


def test_an_old_copy_of_a_checkpoint_is_refused_by_driver_and_task() -> None:
    with pytest.raises(ExactlyOnceError, match=r"this is batch 7, but batch 9 .* go on with the newest checkpoint"):
        mode_of(7, Announcement(9, "newer"))
    with pytest.raises(ExactlyOnceError, match="batch 9 of the same query was written already"):
        move_of(MINE, 7, MINE, Marker(9, "newer"))


HERE, THERE = TopicPartition("here", 0), TopicPartition("there", 0)


@pytest.mark.parametrize("before", [{}, {HERE: 6}, {HERE: 6, THERE: 3}, {THERE: None}])
def test_a_query_whose_marks_stay_where_they_are_goes_on_in_silence(before: dict[TopicPartition, int | None]) -> None:
    assert moved(7, HERE, before) is None


def test_a_query_that_goes_on_in_another_topic_is_told_of_and_in_the_middle_of_a_batch_stopped() -> None:
    assert "up to 6 are of topic there, and those of this one are of topic here" in (moved(7, HERE, {THERE: 6}) or "")
    for newest in (7, 8):
        with pytest.raises(ChangedPlanError, match=rf"batch {newest} of this query was begun .* of topic there"):
            moved(7, HERE, {HERE: 6, THERE: newest})


@pytest.mark.parametrize(
    ("marker", "move"),
    [
        (None, Move.WRITE),
        (Marker(-1, ""), Move.WRITE),
        (Marker(6, "older"), Move.WRITE),
        (Marker(7, "mine"), Move.SKIP),
        (Marker(7, "killed"), Move.COMPARE),
    ],
)
def test_a_task_writes_unless_it_was_written(marker: Marker | None, move: Move) -> None:
    assert move_of(MINE, 7, MINE, marker) is move


@pytest.mark.parametrize("announced", [None, Announcement(7, "another", "process 2 on there")])
def test_a_task_of_a_run_that_was_taken_over_stops(announced: Announcement | None) -> None:
    with pytest.raises(SupersededError, match=r"two queries run on one checkpoint.*checkpoint of its own"):
        move_of(MINE, 7, announced, None)


def test_what_was_shared_out_differently_is_told_with_the_settings_to_restore() -> None:
    marker = Marker(7, "killed", WEIGHT)
    compare(1, marker, WEIGHT, BatchPlan())
    with pytest.raises(
        ChangedPlanError, match=r"task 1 has written 2 rows .*repartition\(\).*spark.default.parallelism"
    ):
        compare(1, marker, Weight(3, 10, 100), BatchPlan())
    with pytest.raises(ChangedPlanError, match=r"it has 2 tasks now, but task 4 .* had at least 5; restore"):
        check_all(7, 2, {2: Marker(6, "older"), 4: marker})
    check_all(7, 2, {2: Marker(6, "older")})


@pytest.mark.parametrize(
    ("now", "sentence"),
    [
        (parse_plan(LOG, "other"), "the option topic was 'flights' and is 'other': set it back"),
        (parse_plan(LOG.replace('"4"', '"8"'), "flights"), "was 4 and is 8: set it back to 4"),
        (parse_plan(LOG.replace("10", "11"), "flights"), "restore the file of this batch in the checkpoint's folder"),
    ],
)
def test_another_plan_in_spark_s_log_is_told(now: BatchPlan, sentence: str) -> None:
    marker = Marker(7, "killed", WEIGHT, parse_plan(LOG, "flights"))
    compare(0, marker, WEIGHT, parse_plan(LOG.replace('Ms":1', 'Ms":2'), "flights"))
    with pytest.raises(ChangedPlanError) as error:
        compare(0, marker, WEIGHT, now)
    assert sentence in str(error.value)


def test_a_plan_that_is_not_known_is_not_compared() -> None:
    compare(0, Marker(7, "killed", WEIGHT, parse_plan(LOG, "t")), WEIGHT, BatchPlan(topic="t"))
    assert parse_plan("", None) == BatchPlan()
    assert parse_plan("v9\nnonsense\nx", None).shuffle is None


def test_marks_come_back_from_the_offsets_that_they_are_kept_in() -> None:
    marker = Marker(7, "mine", WEIGHT, parse_plan(LOG, "flights"))
    assert marker.to_offset().offset == 8
    assert len(marker.to_offset().metadata) < 1000
    assert Marker.from_offset(marker.to_offset()) == marker
    assert Announcement.from_offset(MINE.to_offset()) == MINE
    assert Announcement.from_offset(Announcement(None, "t").to_offset()).batch is None


@pytest.mark.parametrize("metadata", ["", "no json", "[1]"])
def test_an_offset_that_somebody_else_has_set_is_a_mark_without_more(metadata: str) -> None:
    kept = MINE.to_offset()._replace(metadata=metadata)
    assert Marker.from_offset(kept) == Marker(7, "")
    assert Announcement.from_offset(kept) == Announcement(7, "")


def test_names_tell_queries_and_tasks_apart() -> None:
    names = Names("ottla-spark", "abc")
    assert (names.announcements, names.task(3)) == ("ottla-spark-abc", "ottla-spark-abc-3")
    assert [names.index_of(group) for group in ("ottla-spark-abc-3", "ottla-spark-abc", "ottla-spark-abd-3")] == [
        3,
        None,
        None,
    ]
