"""A query from one topic to another that is run again and again on one checkpoint, exactly once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from ottla import Admin, Consumer, TopicPartition
from tests.spark.topics import Topics

ONCE = {"deliveryGuarantee": "exactly_once"}


def committed(topics: Topics, topic: str) -> list[Any]:
    """Return the records for a read_committed reader."""
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
        given = self.topics.options({"topic": self.target, **ONCE, **options})
        query = (
            (self.frame() if frame is None else frame)
            .writeStream.format("ottla")
            .options(**{name: text for name, text in given.items() if text is not None})
            .option("checkpointLocation", str(self.checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(100)
        return query

    def forget_the_end_of_the_last_batch(self) -> None:
        """Return to the state after a crash in which the batch is in Spark's log of offsets, but not in that of
        commits.
        """
        last = max(int(file.name) for file in (self.checkpoint / "commits").iterdir() if file.name.isdecimal())
        for name in (str(last), f".{last}.crc"):
            (self.checkpoint / "commits" / name).unlink(missing_ok=True)

    def forget_a_task(self, task: int) -> None:
        """Return to a state as if the driver had ended before this task completed. Its mark is deleted, and its rows
        remain and must be counted: if the task writes again, they are there twice.
        """
        with Admin(bootstrap_servers=self.topics.servers) as admin:
            admin.delete_consumer_groups([self.group(task)])

    def group(self, task: int) -> str:
        with Admin(bootstrap_servers=self.topics.servers) as admin:
            (found,) = (g.group_id for g in admin.list_consumer_groups() if self.is_mine(admin, g.group_id, task))
        return found

    def is_mine(self, admin: Admin, group: str, task: int) -> bool:
        return group.endswith(f"-{task}") and TopicPartition(self.target, 0) in admin.list_consumer_group_offsets(group)
