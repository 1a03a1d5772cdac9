"""Drivers and tasks of a batch without Spark, on any broker."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Sequence

from ottla import Admin, Consumer, NewTopic, Producer, TopicPartition
from ottla.spark.exactly_once.checkpoint import Checkpoint
from ottla.spark.exactly_once.driver import announce_run, finish_batch, new_run
from ottla.spark.exactly_once.names import Names
from ottla.spark.exactly_once.run import ExactlyOnceRun, TaskOutcome
from ottla.spark.exactly_once.task import Task
from ottla.spark.exactly_once.weight import Weight
from ottla.spark.options import SinkOptions
from tests.patience import eventually


class Words:
    """The rows of a task; `meanwhile` happens when they are sent, and before their transaction ends."""

    def __init__(self, topic: str, words: str, meanwhile: Callable[[], object] = lambda: None) -> None:
        self.topic, self.words, self.meanwhile = topic, words.split(), meanwhile

    def is_empty(self) -> bool:
        return not self.words

    def send(self, producer: Producer) -> Weight:
        futures = [producer.send(self.topic, word.encode()) for word in self.words]
        for future in futures:
            future.result(30)
        self.meanwhile()
        return self.weigh()

    def weigh(self) -> Weight:
        return Weight(len(self.words), sum(map(len, self.words)), sum(sum(word.encode()) for word in self.words))


class Query:
    """A query with batches written by calls."""

    def __init__(self, servers: str, *, topic_by_row: bool = False, name: str = "", is_there: bool = True) -> None:
        self.servers, self.id, self.topic = servers, name or uuid.uuid4().hex, f"words-{uuid.uuid4().hex[:8]}"
        self.options = SinkOptions(
            kafka={"bootstrap.servers": servers},
            topic=None if topic_by_row else self.topic,
            delivery_guarantee="exactly_once",
        )
        if not is_there:
            return
        with Admin(bootstrap_servers=servers) as admin:
            admin.create_topics([NewTopic(self.topic, 2)])

    def to_another_topic(self) -> Query:
        """Return the same query with another option `topic`."""
        return Query(self.servers, name=self.id)

    def to_a_new_topic(self) -> Query:
        """Return another query with a topic that the brokers create at the first write."""
        return Query(self.servers, is_there=False)

    def waiting_readers(self) -> bool:
        """Return True if the topic has an open transaction."""
        with Admin(bootstrap_servers=self.servers) as admin:
            listed = admin.list_transactions(states=["Ongoing"])
        return any(self.id in known.transactional_id for known in listed)

    def announce(self, batch: int) -> ExactlyOnceRun:
        return announce_run(self.options, Checkpoint(self.id, batch))

    def task(
        self, run: ExactlyOnceRun, index: int, words: str, meanwhile: Callable[[], object] = lambda: None
    ) -> TaskOutcome:
        names = Names(run.prefix, self.id)
        return Task(run, names, index, run.announcement.batch).write(Words(self.topic, words, meanwhile))

    def job(self, *tasks: str) -> list[TaskOutcome]:
        """The tasks of a batch write that is no part of a stream."""
        return self.tasks_of(self.new_job(), *tasks)

    def new_job(self) -> ExactlyOnceRun:
        return new_run(self.options, None, job=True)

    def tasks_of(self, run: ExactlyOnceRun, *tasks: str) -> list[TaskOutcome]:
        names = Names(run.prefix, run.query or "")
        return [Task(run, names, index, None).write(Words(self.topic, words)) for index, words in enumerate(tasks)]

    def finish(self, *outcomes: TaskOutcome) -> None:
        finish_batch(self.options, outcomes)

    def write(self, batch: int, *tasks: str) -> Sequence[TaskOutcome]:
        """A batch as it should go: each task, then the driver."""
        run = self.announce(batch)
        outcomes = [self.task(run, index, words) for index, words in enumerate(tasks)]
        self.finish(*outcomes)
        return outcomes

    def committed(self) -> Counter[str]:
        """Return the records for a read_committed reader, after all markers are in the log: Kafka answers before that."""
        with Admin(bootstrap_servers=self.servers) as admin:
            eventually(lambda: not admin.list_transactions(states=["PrepareCommit", "PrepareAbort"]))
        found: Counter[str] = Counter()
        with Consumer(bootstrap_servers=self.servers, isolation_level="read_committed") as consumer:
            tps = [TopicPartition(self.topic, info.partition) for info in consumer.partitions_for(self.topic)]
            consumer.assign(tps)
            consumer.seek_to_beginning(*tps)
            ends = consumer.end_offsets(tps)
            while any(consumer.position(tp) < ends[tp] for tp in tps):
                found.update((record.value or b"").decode() for record in consumer.poll(0.1))
        return found
