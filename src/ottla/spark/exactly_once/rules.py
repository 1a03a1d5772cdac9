"""The decisions of drivers and tasks from the marks that they read. Pure, and checked exhaustively by the tests.

    driver    earlier announcement: none or older ► COMMIT     same batch ► HOLD     newer ► stop
    task      announcement: this run's ► continue     another's ► stop
              mark: none or older ► WRITE     this batch, this run ► SKIP
                    this batch, another run ► COMPARE     newer ► stop

COMMIT: no task of this batch can have run before, so each commits its own transaction. HOLD: some may have run. Then
nothing is committed before all tasks have reported to the driver: tasks that had committed have the same rows as
before, and no other task has a mark.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from ottla.model import TopicPartition
from ottla.spark.exactly_once.batch_plan import BatchPlan
from ottla.spark.exactly_once.errors import ChangedPlanError, ExactlyOnceError, SupersededError
from ottla.spark.exactly_once.marker import Announcement, Marker
from ottla.spark.exactly_once.weight import Weight

SHARING = (
    "repartition() and coalesce() of the query, spark.sql.shuffle.partitions, spark.default.parallelism (the number of "
    "cores), and the options of its sources; spark.sql.adaptive.streaming.stateless.enabled must be false"
)
"""The settings that determine the distribution of rows to tasks."""

STEPS = ("init", "enter", "read", "write", "end")
"""The steps of a task, which must have this order. A task enters with a first mark: a driver that announces later finds
the task by it, and the task reads an announcement made before.
"""


class Mode(Enum):
    """The process that commits the transactions of a batch."""

    COMMIT = "each task"
    HOLD = "the driver"


class TaskDecision(Enum):
    """The decision of a task after reading the marks."""

    WRITE = "write"
    SKIP = "skip"
    COMPARE = "compare"


def choose_mode(batch: int | None, before: Announcement | None) -> Mode:
    """Return the mode of a batch; ExactlyOnceError if a later batch has been announced already."""
    if before is None:
        return Mode.HOLD if batch is None else Mode.COMMIT
    if batch is None or before.batch is None or before.batch == batch:
        return Mode.HOLD
    if before.batch > batch:
        raise behind_error(batch, before.batch)
    return Mode.COMMIT


def check_place(batch: int, place: TopicPartition, announced: Mapping[TopicPartition, int | None]) -> str | None:
    """Return a warning if a query continues with its marks in another `place`; ExactlyOnceError in the middle of a batch.

    `announced` has the newest batch in each place. Marks are in the topic of the rows, unless `markerTopic` is set.
    """
    before = {kept: other for other, kept in announced.items() if other != place and kept is not None}
    if not before:
        return None
    newest = max(before)
    where = f"of topic {before[newest].topic}, and those of this one are of topic {place.topic}"
    if newest >= batch:
        raise ChangedPlanError(
            f"batch {newest} of this query was started with marks {where}: restore the options topic and markerTopic until "
            f"that batch is complete, or, if this is the checkpoint of another query, start with a new one"
        )
    if announced.get(place) is not None:
        return None
    return (
        f"the marks of batches up to {newest} are {where}: earlier batches than {batch} are not written again; "
        "if this is the checkpoint of another query, stop and start with a new one"
    )


def decide_task(mine: Announcement, batch: int, announced: Announcement | None, marker: Marker | None) -> TaskDecision:
    """Return the decision of a task of `batch`; ExactlyOnceError if the batch belongs to another run."""
    if announced is None or announced.token != mine.token:
        author = "" if announced is None else f" by {announced.author}" if announced.author else ""
        raise SupersededError(
            f"batch {batch} was taken over{author}: two queries run on one checkpoint, or this task is of a run that has "
            "ended; stop one of them, or give each its own checkpoint"
        )
    if marker is None or marker.batch < batch:
        return TaskDecision.WRITE
    if marker.batch > batch:
        raise behind_error(batch, marker.batch)
    return TaskDecision.SKIP if marker.token == mine.token else TaskDecision.COMPARE


def check_same_rows(task: int, marker: Marker, weight: Weight, plan: BatchPlan) -> None:
    """Raise ChangedPlanError unless the completed task would write the same rows again."""
    changes = plan.changes(marker.plan)
    if changes:
        raise ChangedPlanError(f"batch {marker.batch} is partly written, and since then {'; '.join(changes)}")
    if weight != marker.weight:
        raise ChangedPlanError(
            f"batch {marker.batch} is partly written: task {task} has written {marker.weight} and would now write "
            f"{weight}, so the rows are distributed differently; restore the settings that determine the distribution until this batch "
            f"is complete: {SHARING}. A query with different rows in each run, for instance by rand(), cannot continue either: "
            "start with a new checkpoint"
        )


def check_outcomes(batch: int, tasks: int, others: Mapping[int, Marker]) -> None:
    """Raise ChangedPlanError if tasks that the batch does not have now have written parts of it."""
    done = sorted(index for index, marker in others.items() if marker.batch == batch)
    if done:
        raise ChangedPlanError(
            f"batch {batch} is partly written: it has {tasks} tasks now, but task {done[-1]} has written a part of it, so it "
            f"had at least {done[-1] + 1}; restore the settings that determine the number of tasks until this batch is complete: {SHARING}"
        )


def behind_error(batch: int, newer: int) -> ExactlyOnceError:
    """Return the error for a checkpoint older than the written batches."""
    return ExactlyOnceError(
        f"this is batch {batch}, but batch {newer} of the same query was written already: the checkpoint is an old copy, or "
        "two queries use copies of one; continue with the newest checkpoint, or start with a new one"
    )
