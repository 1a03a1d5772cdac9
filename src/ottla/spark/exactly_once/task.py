"""A task's part: writes its rows and its mark in one transaction.

The decisions are made by `rules`.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import Protocol

from ottla.client.producer import Producer
from ottla.errors import OttlaError, ProducerFencedError
from ottla.spark.exactly_once.errors import SupersededError
from ottla.spark.exactly_once.kafka_marks import KafkaMarks
from ottla.spark.exactly_once.marker import Marker
from ottla.spark.exactly_once.names import Names
from ottla.spark.exactly_once.rules import Mode, TaskDecision, check_same_rows, decide_task
from ottla.spark.exactly_once.run import ExactlyOnceRun, TaskOutcome, producer_settings
from ottla.spark.exactly_once.weight import Weight

log = logging.getLogger(__name__)
PATIENCE = 30.0
"""Seconds that a fenced task waits for the attempt that fenced it to complete."""
PAUSE = 0.2


class TaskRows(Protocol):
    """The rows of a task. Each method consumes the rows, so only one of them may be called, once."""

    def is_empty(self) -> bool: ...
    def send(self, producer: Producer) -> Weight: ...
    def weigh(self) -> Weight: ...


@dataclass(frozen=True)
class Task:
    run: ExactlyOnceRun
    names: Names
    index: int
    batch: int | None

    def write(self, rows: TaskRows) -> TaskOutcome:
        """Commit the rows once, or hold the transaction for the driver to commit."""
        # A task without rows needs no transaction, because no reader needs its mark. In HOLD mode an empty task is
        # marked too: it may have had rows in an earlier run of the batch.
        if (self.run.job or self.run.mode is Mode.COMMIT) and rows.is_empty():
            return self.outcome()
        settings = producer_settings(self.run, self.names.task(self.index))
        with Producer(settings) as producer:
            try:
                return self.write_with(producer, rows)
            except OttlaError as error:
                # Another attempt of this task took over the transactional id. Its result counts, so this one waits for
                # it and reports it.
                if not is_fenced(error) or self.run.job:
                    raise
        return self.await_other()

    def write_with(self, producer: Producer, rows: TaskRows) -> TaskOutcome:
        """Run the steps in the order that the model has verified."""
        producer.init_transactions()
        self.enter(producer)
        move, marker = self.decide()
        if move is TaskDecision.SKIP:
            return self.outcome(already=True)
        if move is TaskDecision.COMPARE:
            assert marker is not None
            check_same_rows(self.index, marker, rows.weigh(), self.run.plan)
            return self.outcome(already=True)
        producer.begin_transaction()
        weight = rows.send(producer)
        self.mark(producer, weight)
        self.abort_if_failed(producer)
        # Not committed here: the driver may still find that the rows were distributed differently in an earlier run.
        if self.run.mode is Mode.HOLD:
            return self.outcome(producer)
        producer.commit_transaction()
        return self.outcome()

    def enter(self, producer: Producer) -> None:
        """Write a first mark, which shows that there is such a task."""
        if not self.run.job and self.marks().marker(self.index) is None:
            self.marks().ensure_place(producer)
            self.marks().enter(self.index)

    def decide(self) -> tuple[TaskDecision, Marker | None]:
        """Read the marks, which older attempts cannot write any more, and return the decision."""
        if self.run.job or self.batch is None:
            return TaskDecision.WRITE, None
        marks = self.marks()
        announced = self.run.announcement if self.run.query is None else marks.announcement()
        marker = marks.marker(self.index)
        return decide_task(self.run.announcement, self.batch, announced, marker), marker

    def mark(self, producer: Producer, weight: Weight) -> None:
        if not self.run.job and self.batch is not None:
            marker = Marker(self.batch, self.run.announcement.token, weight, self.run.plan)
            self.marks().mark(producer, self.index, marker)

    def abort_if_failed(self, producer: Producer) -> None:
        """Abort if the write has failed meanwhile: no driver would end a held transaction."""
        if self.run.mode is Mode.HOLD and self.has_failed():
            producer.abort_transaction()
            raise SupersededError(f"the write has failed; task {self.index} has aborted its part")

    def has_failed(self) -> bool:
        """Return True if the failure was recorded, or another run of the batch was announced."""
        if self.run.job:
            return self.marks().has_failed()
        if self.run.query is None:
            return False
        announced = self.marks().announcement()
        # A driver that gives up replaces its own announcement, and one that takes over writes a new one. In both cases
        # the token differs.
        return announced is None or announced.token != self.run.announcement.token

    def marks(self) -> KafkaMarks:
        return KafkaMarks(self.run.settings, self.names, self.run.place)

    def outcome(self, holding: Producer | None = None, *, already: bool = False) -> TaskOutcome:
        held = None if holding is None else holding.hand_over_transaction()
        return TaskOutcome(self.index, self.names.query, self.batch, already, held)

    def await_other(self) -> TaskOutcome:
        """Wait for the attempt that fenced this one to complete, and return its result."""
        log.info("another attempt has taken over; waiting for its mark; task=%d", self.index)
        deadline = time.monotonic() + PATIENCE
        while True:
            move, _ = self.decide()
            if move is TaskDecision.SKIP:
                return self.outcome(already=True)
            if time.monotonic() >= deadline:
                raise SupersededError(
                    f"task {self.index} of batch {self.batch} was fenced by another attempt, which was not complete within "
                    f"{PATIENCE:g} s; Spark retries it, or stops: then start the query again, and make sure that it runs only once"
                )
            time.sleep(PAUSE)


def is_fenced(error: BaseException | None) -> bool:
    """Return True if another producer has taken over the transactional id; the error may be a cause of this one."""
    while error is not None:
        if isinstance(error, ProducerFencedError):
            return True
        error = error.__cause__
    return False
