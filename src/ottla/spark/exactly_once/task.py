"""A task's part: its rows and its mark in one transaction.

A shell: what to do is decided by `rules`.
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
from ottla.spark.exactly_once.rules import Mode, Move, compare, move_of
from ottla.spark.exactly_once.run import BatchRun, TaskOutcome, producer_settings
from ottla.spark.exactly_once.weight import Weight

log = logging.getLogger(__name__)
PATIENCE = 30.0
"""Seconds that a task which another attempt has shut out waits for that one to be done."""
PAUSE = 0.2


class TaskRows(Protocol):
    """The rows of a task; each method goes through them all, so only one of them is called, once."""

    def is_empty(self) -> bool: ...
    def send(self, producer: Producer) -> Weight: ...
    def weigh(self) -> Weight: ...


@dataclass(frozen=True)
class Task:
    run: BatchRun
    names: Names
    index: int
    batch: int | None

    def write(self, rows: TaskRows) -> TaskOutcome:
        """See that the rows are committed once, or held for the driver to commit them."""
        # No rows, no transaction: a mark would say nothing that a reader asks for. When the driver holds, an empty
        # task is marked too, as it may have had rows when the batch ran before.
        if (self.run.job or self.run.mode is Mode.COMMIT) and rows.is_empty():
            return self.outcome()
        settings = producer_settings(self.run, self.names.task(self.index))
        with Producer(settings) as producer:
            try:
                return self.write_with(producer, rows)
            except OttlaError as error:
                # Another attempt of this task has the transactional id. It is the one that counts, so this one
                # reports what that has done, once it has.
                if not is_fenced(error) or self.run.job:
                    raise
        return self.await_other()

    def write_with(self, producer: Producer, rows: TaskRows) -> TaskOutcome:
        """The steps, in the order that the model has proved."""
        producer.init_transactions()
        self.enter(producer)
        move, marker = self.look()
        if move is Move.SKIP:
            return self.outcome(already=True)
        if move is Move.COMPARE:
            assert marker is not None
            compare(self.index, marker, rows.weigh(), self.run.plan)
            return self.outcome(already=True)
        producer.begin_transaction()
        weight = rows.send(producer)
        self.mark(producer, weight)
        self.see_that_it_is_wanted(producer)
        # Not committed here: the driver may yet find that the batch was shared out differently when it ran before.
        if self.run.mode is Mode.HOLD:
            return self.outcome(producer)
        producer.commit_transaction()
        return self.outcome()

    def enter(self, producer: Producer) -> None:
        """Have a mark, if only to say that there is such a task."""
        if not self.run.job and self.marks().marker(self.index) is None:
            self.marks().ensure_place(producer)
            self.marks().enter(self.index)

    def look(self) -> tuple[Move, Marker | None]:
        """Read the marks, now that nobody older can write them, and see what is to be done."""
        if self.run.job or self.batch is None:
            return Move.WRITE, None
        marks = self.marks()
        announced = self.run.announcement if self.run.query is None else marks.announcement()
        marker = marks.marker(self.index)
        return move_of(self.run.announcement, self.batch, announced, marker), marker

    def mark(self, producer: Producer, weight: Weight) -> None:
        if not self.run.job and self.batch is not None:
            marker = Marker(self.batch, self.run.announcement.token, weight, self.run.plan)
            self.marks().mark(producer, self.index, marker)

    def see_that_it_is_wanted(self, producer: Producer) -> None:
        """A write that has failed meanwhile does not wait for this task: what it would hold nobody would end."""
        if self.run.mode is Mode.HOLD and self.is_given_up():
            producer.abort_transaction()
            raise SupersededError(f"the write has failed; task {self.index}, which came later, has undone its part")

    def is_given_up(self) -> bool:
        """Whether it was said so, or another run of the batch was announced."""
        if self.run.job:
            return self.marks().is_given_up()
        if self.run.query is None:
            return False
        announced = self.marks().announcement()
        # A driver that gives up replaces its own word, and one that takes over writes a new one: either way the token
        # is another.
        return announced is None or announced.token != self.run.announcement.token

    def marks(self) -> KafkaMarks:
        return KafkaMarks(self.run.settings, self.names, self.run.place)

    def outcome(self, holding: Producer | None = None, *, already: bool = False) -> TaskOutcome:
        held = None if holding is None else holding.hand_over_transaction()
        return TaskOutcome(self.index, self.names.query, self.batch, already, held)

    def await_other(self) -> TaskOutcome:
        """Another attempt has shut this one out: wait for it to be done, for as long as is reasonable."""
        log.info("another attempt of task %d has taken over; waiting for its mark", self.index)
        deadline = time.monotonic() + PATIENCE
        while True:
            move, _ = self.look()
            if move is Move.SKIP:
                return self.outcome(already=True)
            if time.monotonic() >= deadline:
                raise SupersededError(
                    f"task {self.index} of batch {self.batch} was shut out by another attempt, which was not done within "
                    f"{PATIENCE:g} s; Spark tries it again, or stops: then start the query again, and see that it runs once"
                )
            time.sleep(PAUSE)


def is_fenced(error: BaseException | None) -> bool:
    """Whether another producer has the transactional id now; the error that says so may be a cause."""
    while error is not None:
        if isinstance(error, ProducerFencedError):
            return True
        error = error.__cause__
    return False
