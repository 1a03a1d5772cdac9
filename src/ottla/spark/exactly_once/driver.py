"""The driver's part: announce a batch before its tasks run, and end what they have held.

A shell: what to do is decided by `rules`.
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
from ottla.spark.exactly_once.rules import Mode, check_all, mode_of, moved
from ottla.spark.exactly_once.run import BatchRun, TaskOutcome, producer_settings
from ottla.spark.exactly_once.task import is_fenced
from ottla.spark.options import SinkOptions

log = logging.getLogger(__name__)
LOCAL_DIRS = "SPARK_LOCAL_DIRS"
"""Folders that a Spark has for itself alone; it tells them to each process that it starts."""


def announce(options: SinkOptions, checkpoint: Checkpoint) -> BatchRun:
    """Before any task of the batch runs: the word that this run writes it, after which no older one begins to.

    Read and written by a transaction of its own, so that of two drivers the later one sees the other's word.
    """
    names = Names(options.transactional_id_prefix, checkpoint.query)
    run = new_run(options, checkpoint)
    marks = KafkaMarks(run.settings, names, run.place)
    try:
        with Producer(producer_settings(run, names.announcements)) as producer:
            marks.ensure_place(producer)
            producer.init_transactions()
            known = marks.announcements()
            told = moved(checkpoint.batch, run.place, {place: each.batch for place, each in known.items()})
            mode = mode_of(checkpoint.batch, known.get(run.place))
            # In a transaction, and under an id of the query: a second driver that announces at the same moment fences
            # this one, so one of the two hears of it.
            with producer.transaction():
                marks.announce(producer, run.announcement)
    except OttlaError as error:
        if not is_fenced(error):
            raise
        raise SupersededError(
            f"batch {checkpoint.batch} is announced by another run at the same moment: two queries run on one checkpoint; "
            "stop one of the two, or give each a checkpoint of its own"
        ) from error
    if told is not None:
        log.warning("%s", told)
    return BatchRun(**{**vars(run), "mode": mode})


def new_run(options: SinkOptions, checkpoint: Checkpoint | None, *, job: bool = False) -> BatchRun:
    """A run whose driver ends every transaction, until it is known that it need not."""
    author = f"process {os.getpid()} on {platform.node()}"
    batch = None if checkpoint is None else checkpoint.batch
    query = uuid.uuid4().hex if job else None if checkpoint is None else checkpoint.query
    return BatchRun(
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
    """The same in each process of one Spark's driver, and in no other's; empty where that cannot be told."""
    folders = environment.get(LOCAL_DIRS, "")
    return hashlib.sha256(folders.encode()).hexdigest()[:16] if "blockmgr-" in folders else ""


def finish(options: SinkOptions, outcomes: Sequence[TaskOutcome]) -> None:
    """All tasks have reported: end what they have held, once it is sure that nobody else has written a part of it."""
    held = [outcome for outcome in outcomes if outcome.held is not None]
    if not held:
        return
    first = outcomes[0]
    # A batch that came with more tasks before may have had some of them done that it has not now.
    if first.batch is not None:
        check_others(options, first.query, first.batch, len(outcomes))
    for outcome in held:
        end(options, outcome)


def check_others(options: SinkOptions, query: str, batch: int, tasks: int) -> None:
    """Shut out tasks that the batch had and has no more, and see that none of them was done."""
    run = new_run(options, None)
    names = Names(options.transactional_id_prefix, query)
    marks = KafkaMarks(run.settings, names, run.place)
    others: dict[int, Marker] = {}
    for index in marks.tasks():
        if index >= tasks:
            # First shut out, then look: otherwise such a task could commit just after it was found not to have.
            fence(run, names.task(index))
            marker = marks.marker(index)
            if marker is not None:
                others[index] = marker
    check_all(batch, tasks, others)


def fence(run: BatchRun, transactional_id: str, timeout: float | None = None) -> None:
    """Shut out the task that has the name, and end what it has open."""
    with Producer(producer_settings(run, transactional_id)) as producer:
        producer.init_transactions(timeout)


def end(options: SinkOptions, outcome: TaskOutcome, *, commit: bool = True) -> None:
    """End the transaction of one task."""
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
                log.info("the transaction of task %d was ended already: %s", outcome.task, error)
            elif is_fenced(error):
                raise lost(outcome) from error
            else:
                raise


def lost(outcome: TaskOutcome) -> ExactlyOnceError:
    """A transaction was ended by somebody else before the driver could."""
    what = "the write" if outcome.batch is None else f"batch {outcome.batch}"
    remedy = (
        "it may be written in part; raise kafka.transaction.timeout.ms, and switch spark.speculation off"
        if outcome.batch is None
        else "start the query again, it goes on where it was; if this returns, raise kafka.transaction.timeout.ms"
    )
    return SupersededError(
        f"{what} cannot be committed: the transaction of task {outcome.task} was taken over by another attempt, or took "
        f"longer than transaction.timeout.ms; {remedy}"
    )


def give_up(options: SinkOptions, outcomes: Sequence[TaskOutcome | None], run: BatchRun | None = None) -> None:
    """The batch failed: abort what is held or was left open, so that readers need not wait for it."""
    for outcome in outcomes:
        if outcome is not None and outcome.held is not None:
            end(options, outcome, commit=False)
    if run is not None and run.query is not None:
        shut_out(run)


def shut_out(run: BatchRun) -> None:
    """End what is open of tasks that did not come to report.

    First it is said that the write has failed: a task that begins only now ends what it has written itself.
    """
    marks = KafkaMarks(run.settings, Names(run.prefix, run.query or ""), run.place)
    try:
        # Only then what is open is taken: a task that begins after the word ends its own.
        if say_that_it_failed(run, marks):
            for transactional_id in marks.open_transactions():
                fence(run, transactional_id, PATIENCE)
    except OttlaError as error:
        log.info("what tasks of the write have left open ends with transaction.timeout.ms: %s", error)


def say_that_it_failed(run: BatchRun, marks: KafkaMarks) -> bool:
    """Whether what is open is this run's to end.

    The names of a batch write nobody else has. Those of a micro-batch are its query's: where another driver has announced
    the batch since, its tasks have them, and are left alone. A new word of our own shuts out the tasks that go by the old one;
    whoever runs the batch again finds that it was announced, and goes by what is written.
    """
    if run.job:
        marks.give_up()
        return True
    announced = marks.announcement(PATIENCE)
    if announced is None or not announced.is_of_the_same_run(run.announcement):
        return False
    marks.replace_announcement(replace(run.announcement, token=uuid.uuid4().hex))
    return True
