"""What a driver and a task may do, by what they have read: pure, and gone through exhaustively by the tests.

    driver    announcement before: none or older ► COMMIT     of the same batch ► HOLD     newer ► stop
    task      announcement: mine ► go on      another's ► stop
              mark: none or older ► WRITE     of this batch, this run ► SKIP
                                              of this batch, another run ► COMPARE     newer ► stop

COMMIT: no task of this batch can have run before, so each ends its own transaction. HOLD: some may have. Then nothing is
ended before the driver has heard of every task: those that were done have the rows they had, and no other task has a mark.
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
"""What decides which task has which rows."""

STEPS = ("init", "enter", "read", "write", "end")
"""What a task does, in this order and no other. It enters by a first mark, by which drivers find it; then whoever announces
later looks for it, and whoever announced before is seen by it."""


class Mode(Enum):
    """Who ends the transactions of a batch."""

    COMMIT = "each task"
    HOLD = "the driver"


class Move(Enum):
    """What a task does once it has read."""

    WRITE = "write"
    SKIP = "skip"
    COMPARE = "compare"


def mode_of(batch: int | None, before: Announcement | None) -> Mode:
    """How a batch is to be written; ExactlyOnceError if a later one has been announced already."""
    if before is None:
        return Mode.HOLD if batch is None else Mode.COMMIT
    if batch is None or before.batch is None or before.batch == batch:
        return Mode.HOLD
    if before.batch > batch:
        raise behind(batch, before.batch)
    return Mode.COMMIT


def moved(batch: int, place: TopicPartition, announced: Mapping[TopicPartition, int | None]) -> str | None:
    """What to warn of where a query goes on with its marks at another `place`; ExactlyOnceError in the middle of a batch.

    `announced` has the newest batch at each place: marks are where the rows go, unless `markerTopic` says otherwise.
    """
    before = {kept: other for other, kept in announced.items() if other != place and kept is not None}
    if not before:
        return None
    newest = max(before)
    where = f"of topic {before[newest].topic}, and those of this one are of topic {place.topic}"
    if newest >= batch:
        raise ChangedPlanError(
            f"batch {newest} of this query was begun with marks {where}: set the options topic and markerTopic back until "
            f"that batch is done, or, if this is the checkpoint of another query, begin with a new one"
        )
    if announced.get(place) is not None:
        return None
    return (
        f"the marks of batches up to {newest} are {where}: what was written before batch {batch} is not written again; "
        "if this is the checkpoint of another query, stop and begin with a new one"
    )


def move_of(mine: Announcement, batch: int, announced: Announcement | None, marker: Marker | None) -> Move:
    """What a task of `batch` does; ExactlyOnceError if it is not its turn any more."""
    if announced is None or announced.token != mine.token:
        who = "" if announced is None else f" by {announced.author}" if announced.author else ""
        raise SupersededError(
            f"batch {batch} was taken over{who}: two queries run on one checkpoint, or this task is of a run that has "
            "ended; stop one of the two, or give each a checkpoint of its own"
        )
    if marker is None or marker.batch < batch:
        return Move.WRITE
    if marker.batch > batch:
        raise behind(batch, marker.batch)
    return Move.SKIP if marker.token == mine.token else Move.COMPARE


def compare(task: int, marker: Marker, weight: Weight, plan: BatchPlan) -> None:
    """ChangedPlanError unless the task that was done would write again what it has written."""
    changes = plan.changes(marker.plan)
    if changes:
        raise ChangedPlanError(f"batch {marker.batch} is half written, and since then {'; '.join(changes)}")
    if weight != marker.weight:
        raise ChangedPlanError(
            f"batch {marker.batch} is half written: task {task} has written {marker.weight} and would now write "
            f"{weight}, so the rows are shared out differently; restore what decides that as it was until this batch "
            f"is done: {SHARING}. A query whose rows differ each time it runs, as by rand(), cannot go on either: "
            "begin with a new checkpoint"
        )


def check_all(batch: int, tasks: int, others: Mapping[int, Marker]) -> None:
    """ChangedPlanError if tasks that the batch does not have now have written parts of it."""
    done = sorted(index for index, marker in others.items() if marker.batch == batch)
    if done:
        raise ChangedPlanError(
            f"batch {batch} is half written: it has {tasks} tasks now, but task {done[-1]} has written a part of it, so it "
            f"had at least {done[-1] + 1}; restore what decides that as it was until this batch is done: {SHARING}"
        )


def behind(batch: int, newer: int) -> ExactlyOnceError:
    """The checkpoint is older than what is written."""
    return ExactlyOnceError(
        f"this is batch {batch}, but batch {newer} of the same query was written already: the checkpoint is an old copy, or "
        "two queries use copies of one; go on with the newest checkpoint, or begin with a new one"
    )
