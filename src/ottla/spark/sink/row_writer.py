"""What a task does with its rows: sends those that can be written, and sees to the others.

A shell around a producer; `refusals` judges, `dead_letters` words.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.client.admin import ConfigResource
from ottla.client.producer import Producer, RecordFuture, TableReceipt
from ottla.errors import OttlaError
from ottla.spark.exactly_once.kafka_marks import admin_of
from ottla.spark.options import SinkOptions
from ottla.spark.sink.dead_letters import dead_letter
from ottla.spark.sink.refusals import RefusedRow, RowError, sorted_out
from ottla.spark.sink.sink_rows import SinkColumns

if TYPE_CHECKING:
    import pyarrow as pa

LIMIT = "max.message.bytes"
POLICY = "cleanup.policy"
JOINED_BYTES = 8 * 1024 * 1024
REMEMBERED = 300.0
"""Seconds for which the configs of a topic are taken from memory."""


class TopicConfigs(NamedTuple):
    """The configs of a topic that decide which records it takes; as far as the brokers report them."""

    limit: int | None = None
    is_compacted: bool = False


_configs: dict[tuple[str, str], tuple[float, TopicConfigs]] = {}


class Topics:
    """What the cluster says of topics."""

    def __init__(self, producer: Producer, options: SinkOptions) -> None:
        self.producer = producer
        self.options = options
        self.own = (min(producer.config.max_request_size, producer.config.buffer_memory), "max.request.size")
        self._counts: dict[str, int] = {}
        self._limits: dict[str, tuple[int, str]] = {}

    def partitions(self, topic: str) -> int:
        if topic not in self._counts:
            self._counts[topic] = len(self.producer.partitions_for(topic))
        return self._counts[topic]

    def limit(self, topic: str) -> tuple[int, str]:
        if topic not in self._limits:
            topic_limit = None if self.producer.config.compression_type != "none" else self.topic_limit(topic)
            self._limits[topic] = self.own if topic_limit is None else min(self.own, (topic_limit, LIMIT))
        return self._limits[topic]

    def requires_keys(self, topic: str) -> bool:
        return self.configs(topic).is_compacted

    def topic_limit(self, topic: str) -> int | None:
        """Return the topic's own limit; None if it is not known."""
        return self.configs(topic).limit

    def configs(self, topic: str) -> TopicConfigs:
        """Return the configs of the topic, which are described again after some minutes."""
        key, now = (self.options.kafka["bootstrap.servers"], topic), time.monotonic()
        if key not in _configs or _configs[key][0] < now:
            _configs[key] = (now + REMEMBERED, described_configs(self.options, topic))
        return _configs[key][1]


def described_configs(options: SinkOptions, topic: str) -> TopicConfigs:
    """Return what the brokers report; a user that may write may lack the right to describe."""
    resource = ConfigResource("topic", topic)
    try:
        entries = admin_of(options.kafka).describe_configs([resource])[resource]
    except OttlaError:
        return TopicConfigs()
    limit, policy = (None if (entry := entries.get(name)) is None else entry.value for name in (LIMIT, POLICY))
    return TopicConfigs(None if limit is None else int(limit), "compact" in (policy or ""))


class RowWriter:
    """Sends the rows of one task."""

    def __init__(self, producer: Producer, options: SinkOptions, columns: SinkColumns, task: int, query: str) -> None:
        self.producer = producer
        self.options = options
        self.columns = columns
        self.task = task
        self.query = query
        self.rows = self.dead = 0
        self._topics = Topics(producer, options)
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._receipts: list[TableReceipt | RecordFuture] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Send the rows of an Arrow batch, joined with those before and after it: Spark's are smaller than Kafka likes.

        RowError where a row cannot be written and no topic is named for such; it may come with a later batch.
        """
        batch = batch.select([name for name in batch.schema.names if name in self.columns.there])
        self._waiting.append(batch)
        self._waiting_bytes += batch.nbytes
        if self._waiting_bytes >= JOINED_BYTES:
            self.send()

    def send(self) -> None:
        """Send what waits for company."""
        import pyarrow as pa

        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if len(waiting) > 1:
            waiting = pa.Table.from_batches(waiting).combine_chunks().to_batches()
        for batch in waiting:
            self.send_batch(batch)

    def send_batch(self, batch: pa.RecordBatch) -> None:
        groups, refusals = sorted_out(batch, self.options.topic, self._topics)
        for refusal in refusals:
            self.refuse(batch, refusal)
        for group in groups:
            rows = group.rows.select([name for name in group.rows.schema.names if name in self.columns.roles])
            self._receipts.append(self.producer.send_table(group.topic, rows, **self.columns.roles))
        self.rows += batch.num_rows

    def settle(self) -> None:
        """Wait until the brokers have everything; the first error of any row is raised."""
        self.send()
        self.producer.flush()
        for receipt in self._receipts:
            receipt.result(0)

    def refuse(self, batch: pa.RecordBatch, refusal: RefusedRow) -> None:
        """Send a dead letter, or fail with the row's place."""
        number = self.rows + refusal.row
        topic = self.options.dead_letter_topic
        if topic is None:
            raise RowError(
                f"row {number} of Spark's partition {self.task} cannot be written: {refusal.reason}; or name a topic for "
                "such rows with the option deadLetterTopic"
            )
        row: dict[str, Any] = batch.slice(refusal.row, 1).to_pylist()[0]
        limit = self._topics.limit(topic)[0]
        letter = dead_letter(
            row,
            topic=refusal.topic,
            reason=refusal.reason,
            task=self.task,
            number=number,
            query=self.query,
            limit=limit,
        )
        self._receipts.append(self.producer.send(topic, letter.value, key=letter.key, headers=letter.headers))
        self.dead += 1
