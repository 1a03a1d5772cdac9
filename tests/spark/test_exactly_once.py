"""Rows committed once, through Spark, a broker and checkpoints."""

from __future__ import annotations

import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

import ottla.spark
from ottla import Admin, Consumer, Producer, TopicPartition
from ottla.spark.dead_letters import PREFIX
from tests.spark.topics import Topics

pytestmark = [pytest.mark.behaviour("D3"), pytest.mark.behaviour("P10")]
ONCE = {"deliveryGuarantee": "exactly_once"}


def committed(topics: Topics, topic: str) -> list[Any]:
    """What a reader of committed records sees."""
    with Consumer(bootstrap_servers=topics.servers, isolation_level="read_committed") as consumer:
        tps = [TopicPartition(topic, info.partition) for info in consumer.partitions_for(topic)]
        consumer.assign(tps)
        consumer.seek_to_beginning(*tps)
        ends, found = consumer.end_offsets(tps), list[Any]()
        while any(consumer.position(tp) < ends[tp] for tp in tps):
            found += consumer.poll(timeout=1)
    return found


def counted(topics: Topics, topic: str) -> Counter[str]:
    return Counter(record.value.decode() for record in committed(topics, topic))


class Job:
    """A query from one topic to another, which is run again and again on one checkpoint."""

    def __init__(self, topics: Topics, checkpoint: Path, partitions: int = 2) -> None:
        self.topics, self.checkpoint = topics, checkpoint
        self.source, self.target = topics.create("in", partitions), topics.create("out", partitions)
        self.rows = 0

    def feed(self, rows: int, partitions: int = 2) -> None:
        for partition in range(partitions):
            mine = range(self.rows + partition, self.rows + rows, partitions)
            self.topics.send(self.source, *map(str, mine), partition=partition)
        self.rows += rows

    def frame(self) -> DataFrame:
        return self.topics.stream(subscribe=self.source, startingOffsets="earliest").select("value")

    def run(self, frame: DataFrame | None = None, **options: Any) -> StreamingQuery:
        query = (
            (self.frame() if frame is None else frame)
            .writeStream.format("ottla")
            .options(**self.topics.options({"topic": self.target, **ONCE, **options}))
            .option("checkpointLocation", str(self.checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(100)
        return query

    def forget_the_end_of_the_last_batch(self) -> None:
        """As after a crash: the batch is in Spark's log of offsets, and not in that of commits."""
        last = max(int(file.name) for file in (self.checkpoint / "commits").iterdir() if file.name.isdecimal())
        for name in (str(last), f".{last}.crc"):
            (self.checkpoint / "commits" / name).unlink(missing_ok=True)

    def forget_a_task(self, task: int) -> None:
        """As if the driver had died before this task was done: neither its mark nor its rows are there.

        The rows stay, in truth, and are to be counted: what the task writes again is there twice.
        """
        with Admin(bootstrap_servers=self.topics.servers) as admin:
            admin.delete_consumer_groups([self.group(task)])

    def group(self, task: int) -> str:
        with Admin(bootstrap_servers=self.topics.servers) as admin:
            (found,) = (g.group_id for g in admin.list_consumer_groups() if self.is_mine(admin, g.group_id, task))
        return found

    def is_mine(self, admin: Admin, group: str, task: int) -> bool:
        return group.endswith(f"-{task}") and TopicPartition(self.target, 0) in admin.list_consumer_group_offsets(group)


@pytest.fixture
def job(topics: Topics, tmp_path: Path) -> Job:
    return Job(topics, tmp_path / "checkpoint")


def test_a_batch_that_is_run_again_is_not_written_again_and_the_query_goes_on(job: Job) -> None:
    job.feed(10)
    job.run()
    job.forget_the_end_of_the_last_batch()
    job.feed(10)
    job.run()
    assert counted(job.topics, job.target) == Counter(map(str, range(20)))


def test_a_task_that_was_not_done_is_done_by_the_next_run_and_the_others_are_left(job: Job) -> None:
    job.feed(10)
    job.run()
    job.forget_the_end_of_the_last_batch()
    job.forget_a_task(1)
    job.run()
    counts = counted(job.topics, job.target)
    assert counts == Counter({str(n): 1 + n % 2 for n in range(10)})  # the second task's rows were never taken away


def test_a_half_written_batch_that_is_shared_out_differently_stops_and_says_what_to_restore(job: Job) -> None:
    job.feed(40)
    job.run(job.frame().repartition(3, "value"))
    job.forget_the_end_of_the_last_batch()
    for tasks in (2, 4):
        with pytest.raises(StreamingQueryException, match=r"is half written.*restore.*repartition\(\)") as error:
            job.run(job.frame().repartition(tasks, "value"))
        assert "Traceback" not in str(error.value)
    assert counted(job.topics, job.target) == Counter(map(str, range(40)))
    job.run(job.frame().repartition(3, "value"))
    assert counted(job.topics, job.target) == Counter(map(str, range(40)))


def test_a_half_written_batch_to_another_topic_stops(job: Job) -> None:
    job.feed(4)
    job.run(markerTopic=job.source)
    job.forget_the_end_of_the_last_batch()
    other = job.topics.create("other")
    with pytest.raises(StreamingQueryException, match=r"the option topic was .*: set it back"):
        job.run(markerTopic=job.source, topic=other)
    assert counted(job.topics, other) == Counter()


def test_rows_that_cannot_be_written_go_to_the_dead_letters_in_the_same_transaction(job: Job) -> None:
    job.feed(4)
    dead = job.topics.create("dead")
    frame = job.frame().selectExpr("value", "cast(if(cast(value as string) = '2', 77, null) as int) as partition")
    with pytest.raises(StreamingQueryException, match=r"row 1 of Spark's partition 0 cannot be written: partition 77"):
        job.run(frame)
    assert counted(job.topics, job.target) == Counter()
    job.run(frame, deadLetterTopic=dead)
    job.forget_the_end_of_the_last_batch()
    job.run(frame, deadLetterTopic=dead)
    assert counted(job.topics, job.target) == Counter("013")
    (letter,) = committed(job.topics, dead)
    assert letter.value == b"2"
    assert "partition 77 is not there" in dict(letter.headers)[PREFIX + "exception.message"].decode()


def test_an_aggregation_s_changes_are_written_once_by_write_stream(job: Job) -> None:
    def run() -> None:
        numbers = job.frame().selectExpr("cast(cast(value as string) as int) % 2 as odd")
        counts = numbers.groupBy("odd").count()
        frame = counts.selectExpr("cast(odd as string) as key", "concat(odd, '=', count) as value")
        options = job.topics.options({"topic": job.target, **ONCE})
        query = ottla.spark.write_stream(frame, options, checkpoint=job.checkpoint, trigger={"availableNow": True})
        assert query.awaitTermination(100)

    job.feed(10)
    run()
    job.forget_the_end_of_the_last_batch()
    job.feed(10)
    run()
    assert counted(job.topics, job.target) == Counter(["0=5", "1=5", "0=10", "1=10"])


def test_a_batch_write_counts_as_a_whole_or_not_at_all(topics: Topics) -> None:
    topic = topics.create("out", 2)
    rows = topics.spark.range(100).selectExpr("cast(id as string) as value", "cast(null as int) as partition")
    bad = rows.where("value = 'none'").unionAll(topics.spark.sql("select 'bad' as value, 9 as partition"))
    for frame in (rows.unionAll(bad), rows):
        writer = frame.write.format("ottla").options(**topics.options({"topic": topic, **ONCE})).mode("append")
        if frame is rows:
            writer.save()
        else:
            with pytest.raises(PySparkException, match="partition 9 is not there"):
                writer.save()
    assert counted(topics, topic) == Counter(map(str, range(100)))


def test_another_producer_with_a_task_s_name_stops_the_query_or_is_shut_out(job: Job) -> None:
    job.feed(2)
    job.run()
    with Producer(bootstrap_servers=job.topics.servers, transactional_id=job.group(0)) as zombie:
        zombie.init_transactions()
        zombie.begin_transaction()
        zombie.send(job.target, b"zombie").result(10)
        job.feed(2)
        job.run()
    assert counted(job.topics, job.target) == Counter("0123")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({**ONCE, "kafka.transactional.id": "x"}, "tasks have names of their own; set how they begin with"),
        ({"kafka.transactional.id": "x"}, "is not for a sink; set deliveryGuarantee to exactly_once"),
        ({**ONCE, "kafka.enable.idempotence": "false"}, "needs enable.idempotence = true"),
        ({"deliveryGuarantee": "twice"}, "deliveryGuarantee = 'twice'"),
    ],
)
def test_settings_that_cannot_keep_the_promise_are_one_sentence(
    topics: Topics, options: dict[str, str], sentence: str
) -> None:
    frame = topics.spark.createDataFrame([("1",)], "value string")
    with pytest.raises(PySparkException) as error:
        frame.write.format("ottla").options(**topics.options({"topic": uuid.uuid4().hex, **options})).mode(
            "append"
        ).save()
    assert sentence in str(error.value)
    assert "Traceback" not in str(error.value)
