"""The driver's part: announces a batch before its tasks run, and commits the transactions that they held.

The decisions are made by `rules`.
"""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ottla.client.producer import Producer
from ottla.errors import OttlaError
from ottla.model import TopicPartition
from ottla.spark.exactly_once.checkpoint import Checkpoint
from ottla.spark.exactly_once.errors import ExactlyOnceError, SupersededError
from ottla.spark.exactly_once.kafka_marks import MARKS, PATIENCE, KafkaMarks
from ottla.spark.exactly_once.marker import Announcement, Marker
from ottla.spark.exactly_once.names import Names
from ottla.spark.exactly_once.rules import Mode, check_outcomes, check_place, choose_mode
from ottla.spark.exactly_once.run import ExactlyOnceRun, TaskOutcome, producer_settings
from ottla.spark.exactly_once.task import is_fenced
from ottla.spark.options import SinkOptions

log = logging.getLogger(__name__)
LOCAL_DIRS = "SPARK_LOCAL_DIRS"
"""The local directories of a Spark application, which Spark passes to each of its processes."""


def announce_run(options: SinkOptions, checkpoint: Checkpoint) -> ExactlyOnceRun:
    """Announce that this run writes the batch, before any of its tasks runs.

    Afterwards no task of an older run starts to write.

    The announcement is read and written in a transaction, so that of two concurrent drivers the later one reads the
    other's.
    """
    names = Names(options.transactional_id_prefix, checkpoint.query)
    run = new_run(options, checkpoint)
    marks = KafkaMarks(run.settings, names, run.place)
    try:
        with Producer(producer_settings(run, names.announcements)) as producer:
            marks.ensure_place(producer)
            producer.init_transactions()
            known = marks.announcements()
            warning = check_place(checkpoint.batch, run.place, {place: each.batch for place, each in known.items()})
            mode = choose_mode(checkpoint.batch, known.get(run.place))
            # In a transaction with the query's own id: of two drivers that announce at the same moment, one is fenced
            # and fails.
            with producer.transaction():
                marks.announce(producer, run.announcement)
    except OttlaError as error:
        if not is_fenced(error):
            raise
        raise SupersededError(
            f"batch {checkpoint.batch} is being announced by another run: two queries run on one checkpoint; "
            "stop one of them, or give each its own checkpoint"
        ) from error
    if warning is not None:
        log.warning("%s", warning)
    return ExactlyOnceRun(**{**vars(run), "mode": mode})


def new_run(options: SinkOptions, checkpoint: Checkpoint | None, *, job: bool = False) -> ExactlyOnceRun:
    """Return a run in HOLD mode, which is safe in all cases."""
    author = f"process {os.getpid()} on {platform.node()}"
    batch = None if checkpoint is None else checkpoint.batch
    query = uuid.uuid4().hex if job else None if checkpoint is None else checkpoint.query
    return ExactlyOnceRun(
        settings=dict(options.kafka),
        prefix=options.transactional_id_prefix,
        place=TopicPartition(options.marker_topic or options.topic or MARKS, 0),
        mode=Mode.HOLD,
        announcement=Announcement(batch, uuid.uuid4().hex, author, driver_id(os.environ)),
        **({} if checkpoint is None else {"plan": checkpoint.plan}),
        query=query,
        job=job,
    )


def driver_id(environment: Mapping[str, str]) -> str:
    """Return an id that is the same in all processes of one Spark driver, and different in others; empty if it cannot be known."""
    folders = environment.get(LOCAL_DIRS, "")
    return hashlib.sha256(folders.encode()).hexdigest()[:16] if "blockmgr-" in folders else ""


def finish_batch(options: SinkOptions, outcomes: Sequence[TaskOutcome]) -> None:
    """Commit the held transactions after all tasks have reported, once no other task can have written a part of the batch."""
    held = [outcome for outcome in outcomes if outcome.held is not None]
    if not held:
        return
    first = outcomes[0]
    # If the batch had more tasks before, some of those may have committed.
    if first.batch is not None:
        check_others(options, first.query, first.batch, len(outcomes))
    for outcome in held:
        end_transaction(options, outcome)


def check_others(options: SinkOptions, query: str, batch: int, tasks: int) -> None:
    """Fence tasks that the batch had earlier and does not have now, and check that none of them has committed."""
    run = new_run(options, None)
    names = Names(options.transactional_id_prefix, query)
    marks = KafkaMarks(run.settings, names, run.place)
    others: dict[int, Marker] = {}
    for index in marks.tasks():
        if index >= tasks:
            # Fence before reading: otherwise such a task could commit after its mark was read.
            fence_task(run, names.task(index))
            marker = marks.marker(index)
            if marker is not None:
                others[index] = marker
    check_outcomes(batch, tasks, others)


def fence_task(run: ExactlyOnceRun, transactional_id: str, timeout: float | None = None) -> None:
    """Fence the task with this transactional id, and abort its open transaction."""
    with Producer(producer_settings(run, transactional_id)) as producer:
        producer.init_transactions(timeout)


def end_transaction(options: SinkOptions, outcome: TaskOutcome, *, commit: bool = True) -> None:
    """Commit or abort the transaction of one task."""
    assert outcome.held is not None
    settings = producer_settings(new_run(options, None), outcome.held.transactional_id)
    with Producer(settings) as producer:
        producer.take_over_transaction(outcome.held)
        try:
            if commit:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
        except OttlaError as error:
            if not commit:
                log.info("the transaction was ended already; task=%d error=%s", outcome.task, error)
            elif is_fenced(error):
                raise lost_transaction_error(outcome) from error
            else:
                raise


def lost_transaction_error(outcome: TaskOutcome) -> ExactlyOnceError:
    """Return the error for a transaction that another producer ended first."""
    what = "the write" if outcome.batch is None else f"batch {outcome.batch}"
    remedy = (
        "it may be written in part; raise kafka.transaction.timeout.ms, and disable spark.speculation"
        if outcome.batch is None
        else "start the query again, it continues from its checkpoint; if the error repeats, raise kafka.transaction.timeout.ms"
    )
    return SupersededError(
        f"{what} cannot be committed: the transaction of task {outcome.task} was taken over by another attempt, or took "
        f"longer than transaction.timeout.ms; {remedy}"
    )


def abort_batch(
    options: SinkOptions, outcomes: Sequence[TaskOutcome | None], run: ExactlyOnceRun | None = None
) -> None:
    """Abort the transactions of a failed batch that are held or open, so that readers need not wait for their timeout."""
    for outcome in outcomes:
        if outcome is not None and outcome.held is not None:
            end_transaction(options, outcome, commit=False)
    if run is not None and run.query is not None:
        abort_open_transactions(run)


def abort_open_transactions(run: ExactlyOnceRun) -> None:
    """Abort the open transactions of tasks that did not report.

    The failure is recorded first: a task that starts later aborts its own transaction.
    """
    marks = KafkaMarks(run.settings, Names(run.prefix, run.query or ""), run.place)
    try:
        # Abort only after the failure is recorded: a task that starts afterwards aborts its own transaction.
        if record_failure(run, marks):
            for transactional_id in marks.open_transactions():
                fence_task(run, transactional_id, PATIENCE)
    except OttlaError as error:
        log.info("open transactions of tasks of the failed write end after transaction.timeout.ms; error=%s", error)


def record_failure(run: ExactlyOnceRun, marks: KafkaMarks) -> bool:
    """Record that the write failed. Return True if open transactions with the query's names belong to this run.

    The names of a batch write are unique. The names of a micro-batch are its query's: if another driver has announced
    the batch since, its tasks use the names, and must not be disturbed. A new announcement of this run fences its
    tasks; a later run of the batch finds the announcement, and relies on the marks.
    """
    if run.job:
        marks.mark_failed()
        return True
    announced = marks.announcement(PATIENCE)
    if announced is None or not announced.is_of_the_same_run(run.announcement):
        return False
    marks.replace_announcement(replace(run.announcement, token=uuid.uuid4().hex))
    return True
