"""Sends the rows of a task, and handles those that cannot be written.

`refusals` finds such rows, and `dead_letters` builds their records.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.client.admin import ConfigResource
from ottla.client.producer import Producer, RecordFuture, TableReceipt
from ottla.errors import OttlaError
from ottla.spark.exactly_once.kafka_marks import admin_of
from ottla.spark.options import SinkOptions
from ottla.spark.sink.dead_letters import build_dead_letter
from ottla.spark.sink.refusals import RefusedRow, RowError, split_rows
from ottla.spark.sink.sink_rows import SinkColumns

if TYPE_CHECKING:
    import pyarrow as pa

LIMIT = "max.message.bytes"
POLICY = "cleanup.policy"
JOINED_BYTES = 8 * 1024 * 1024
REMEMBERED = 300.0
"""Seconds for which the configs of a topic are cached."""


class TopicConfigs(NamedTuple):
    """The configs of a topic that limit its records, as far as the brokers report them."""

    limit: int | None = None
    is_compacted: bool = False


_configs: dict[tuple[str, str], tuple[float, TopicConfigs]] = {}


class TopicLimitCache:
    """The limits of topics, from the cluster's metadata and configs."""

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

    def has_required_keys(self, topic: str) -> bool:
        return self.configs(topic).is_compacted

    def topic_limit(self, topic: str) -> int | None:
        """Return the topic's own limit; None if it is not known."""
        return self.configs(topic).limit

    def configs(self, topic: str) -> TopicConfigs:
        """Return the configs of the topic, cached for `REMEMBERED` seconds."""
        key, now = (self.options.kafka["bootstrap.servers"], topic), time.monotonic()
        if key not in _configs or _configs[key][0] < now:
            _configs[key] = (now + REMEMBERED, described_configs(self.options, topic))
        return _configs[key][1]


def described_configs(options: SinkOptions, topic: str) -> TopicConfigs:
    """Return the configs that the brokers report. A user that may write need not be authorized to describe."""
    resource = ConfigResource("topic", topic)
    try:
        entries = admin_of(options.kafka).describe_configs([resource])[resource]
    except OttlaError:
        return TopicConfigs()
    limit, policy = (None if (entry := entries.get(name)) is None else entry.value for name in (LIMIT, POLICY))
    return TopicConfigs(None if limit is None else int(limit), "compact" in (policy or ""))


class SinkRowWriter:
    """Sends the rows of one task."""

    def __init__(self, producer: Producer, options: SinkOptions, columns: SinkColumns, task: int, query: str) -> None:
        self.producer = producer
        self.options = options
        self.columns = columns
        self.task = task
        self.query = query
        self.rows = self.dead = 0
        self._topics = TopicLimitCache(producer, options)
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._receipts: list[TableReceipt | RecordFuture] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Buffer the rows of an Arrow batch, and send them together: Spark's batches are smaller than efficient batches of Kafka.

        RowError if a row cannot be written and there is no dead-letter topic; it may be raised for a later batch.
        """
        batch = batch.select([name for name in batch.schema.names if name in self.columns.there])
        self._waiting.append(batch)
        self._waiting_bytes += batch.nbytes
        if self._waiting_bytes >= JOINED_BYTES:
            self.send()

    def send(self) -> None:
        """Send the buffered batches as one, without waiting for acknowledgement."""
        import pyarrow as pa

        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if len(waiting) > 1:
            waiting = pa.Table.from_batches(waiting).combine_chunks().to_batches()
        for batch in waiting:
            self.send_batch(batch)

    def send_batch(self, batch: pa.RecordBatch) -> None:
        groups, refusals = split_rows(batch, self.options.topic, self._topics)
        for refusal in refusals:
            self.refuse(batch, refusal)
        for group in groups:
            rows = group.rows.select([name for name in group.rows.schema.names if name in self.columns.roles])
            self._receipts.append(self.producer.send_table(group.topic, rows, **self.columns.roles))
        self.rows += batch.num_rows

    def flush(self) -> None:
        """Wait until the brokers have acknowledged everything; raise the first error of a row."""
        self.send()
        self.producer.flush()
        for receipt in self._receipts:
            receipt.result(0)

    def refuse(self, batch: pa.RecordBatch, refusal: RefusedRow) -> None:
        """Send a dead letter, or raise RowError with the row's position."""
        number = self.rows + refusal.row
        topic = self.options.dead_letter_topic
        if topic is None:
            raise RowError(
                f"row {number} of Spark's partition {self.task} cannot be written: {refusal.reason}; or set a topic for "
                "such rows with the option deadLetterTopic"
            )
        row: dict[str, Any] = batch.slice(refusal.row, 1).to_pylist()[0]
        limit = self._topics.limit(topic)[0]
        record = build_dead_letter(
            row,
            topic=refusal.topic,
            reason=refusal.reason,
            task=self.task,
            number=number,
            query=self.query,
            limit=limit,
        )
        self._receipts.append(self.producer.send(topic, record.value, key=record.key, headers=record.headers))
        self.dead += 1
