"""Copies records that a share group gives up to the group's dead letter queue (KIP-1191).

    DeadLetters ──► the records of the range, if they are copied ──► one batch with headers ──┬─ this broker leads: append
                                                                                             └─ another one: Produce

The queue is the topic in the group's config `errors.deadletterqueue.topic.name`. Its name starts with
`errors.deadletterqueue.topic.name.prefix`, and it must allow copies by its own config `errors.deadletterqueue.group.enable`. A missing topic
is created if `errors.deadletterqueue.auto.create.topics.enable` is set; the copies wait for it. The records of partition N go to partition N
of the queue, modulo its number of partitions. A record whose copy fails is given up without it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from ottla.broker.event_loop.timers import Timer, Timers
from ottla.broker.metadata.topics import Topics
from ottla.broker.peers.peer_connection import PeerConnection, Question
from ottla.broker.peers.peers import RemoteBrokers
from ottla.broker.replica_manager.partition import Partition
from ottla.broker.replica_manager.partitions import Partitions
from ottla.broker.share.share_group_settings import ShareGroupSettings
from ottla.broker.share.share_log_reader import read_records
from ottla.clock import Clock
from ottla.coordination.cluster.topic import ClusterTopic
from ottla.coordination.share.events import DeadLetters
from ottla.errors import CorruptRecordError, KafkaError, OttlaError
from ottla.model import Buffer, Header, TopicPartition
from ottla.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.records.builder import BatchBuilder
from ottla.records.columns import decode

log = logging.getLogger(__name__)

ENABLED = "errors.deadletterqueue.group.enable"
CREATES = "errors.deadletterqueue.auto.create.topics.enable"
PREFIX = "errors.deadletterqueue.topic.name.prefix"
CREATION_SECONDS = 15.0
"""The time for which copies wait until a new topic is in the metadata."""
PRODUCE_VERSION = 11
PRODUCE_TIMEOUT_MS = 10_000
READ_BYTES = 1024 * 1024
"""The size of one read of the records that are copied."""
OnDone = Callable[[], None]


class DeadLetterSettings(NamedTuple):
    """The broker's settings for dead letter queues."""

    name_prefix: str
    creates_topics: bool


class DeadLetterQueue:
    """The copies under way. Belongs to the event loop."""

    def __init__(
        self,
        topics: Topics,
        partitions: Partitions,
        clock: Clock,
        node_id: int,
        append: Callable[[Partition, Buffer], Any],
        remote: RemoteBrokers | None,
        create_topic: Callable[[CreatableTopic], None],
        settings: Callable[[], DeadLetterSettings],
        timers: Timers,
    ) -> None:
        """`append` appends a batch to a partition that this broker leads; `remote` is None for the only broker.

        `create_topic` has the controller create a topic; its creation is seen in the metadata.
        """
        self._topics = topics
        self._partitions = partitions
        self._clock = clock
        self._node_id = node_id
        self._append = append
        self._remote = remote
        self._create_topic = create_topic
        self._settings = settings
        self._timers = timers
        self._missing: dict[str, tuple[Timer, list[OnDone]]] = {}
        """Copies that wait for their topic to be created, and the end of the wait."""
        self._connections: dict[int, PeerConnection] = {}
        self._waiting: dict[int, list[tuple[ProduceRequest, OnDone]]] = {}

    def copy(
        self, group_id: str, source: Partition, letters: DeadLetters, settings: ShareGroupSettings, on_done: OnDone
    ) -> None:
        """Copy records, and call `on_done` when they are copied or cannot be."""
        self._copy(group_id, source, letters, settings, on_done, creates_topic=self._settings().creates_topics)

    def handle_new_metadata(self) -> None:
        """Continue the copies whose topics have been created."""
        for name in [name for name in self._missing if self._topics.find_by_name(name) is not None]:
            self._continue_copies(name)

    def _wait_for_topic(self, name: str, resume: OnDone) -> None:
        if name in self._missing:
            self._missing[name][1].append(resume)
            return
        log.info("creating a dead letter queue topic=%s", name)
        allowed = [CreatableTopicConfig(ENABLED, "true")]
        self._create_topic(CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, configs=allowed))
        deadline = self._clock.monotonic() + CREATION_SECONDS
        self._missing[name] = self._timers.schedule(deadline, lambda: self._continue_copies(name)), [resume]

    def _continue_copies(self, name: str) -> None:
        timer, waiting = self._missing.pop(name)
        self._timers.cancel(timer)
        for resume in waiting:
            resume()

    def _copy(
        self,
        group_id: str,
        source: Partition,
        letters: DeadLetters,
        settings: ShareGroupSettings,
        on_done: OnDone,
        *,
        creates_topic: bool,
    ) -> None:
        name = settings.dead_letter_topic
        topic = self._topics.find_by_name(name)
        fault = self._find_fault(name, topic)
        if topic is None and not fault:
            if creates_topic:
                resume = partial(self._copy, group_id, source, letters, settings, on_done, creates_topic=False)
                self._wait_for_topic(name, resume)
                return
            fault = f"topic {name!r} does not exist: create it, or set {CREATES}=true"
        if topic is None or fault:
            log.error("records are given up without a copy group=%s partition=%s reason=%s", group_id, source, fault)
            on_done()
            return
        target = TopicPartition(topic.name, source.topic_partition.partition % len(topic.partitions))
        try:
            batches = list(self._build_batches(group_id, source, letters, settings.copies_records))
        except (KafkaError, CorruptRecordError) as error:
            log.error("reading dead letters failed group=%s partition=%s error=%s", group_id, source, error)
            on_done()
            return
        left = len(batches)

        def finish_one() -> None:
            nonlocal left
            left -= 1
            if left <= 0:
                on_done()

        for batch in batches:
            self._send(target, batch, finish_one)
        if not batches:
            on_done()

    def close(self) -> None:
        for each in self._connections.values():
            each.close()
        self._waiting.clear()
        for timer, _ in self._missing.values():
            self._timers.cancel(timer)
        self._missing.clear()

    def _find_fault(self, name: str, topic: ClusterTopic | None) -> str:
        """Return why a topic cannot be the dead letter queue of a group; an empty text if it can, or could after its creation."""
        prefix = self._settings().name_prefix
        if name.startswith("__"):
            return f"the name of topic {name!r} starts with '__', which is for internal topics"
        if not name.startswith(prefix):
            return f"the name of topic {name!r} does not start with {prefix!r} ({PREFIX})"
        if topic is not None and topic.configs.get(ENABLED, "false").lower() != "true":
            return f"topic {name!r} is not a dead letter queue: set {ENABLED}=true"
        return ""

    def _build_batches(
        self, group_id: str, source: Partition, letters: DeadLetters, copies_records: bool
    ) -> Iterator[bytes]:
        now_ms = self._clock.wall_ms()
        builder = BatchBuilder(max_bytes=READ_BYTES)
        for offset, key, value, own in records_of(source, letters, copies_records):
            headers = [*own, *describe_letter(group_id, source.topic_partition, offset, letters)]
            if not builder.append(now_ms, key, value, headers):
                yield bytes(builder.build())
                builder = BatchBuilder(max_bytes=READ_BYTES)
                builder.append(now_ms, key, value, headers)
        if builder.count:
            yield bytes(builder.build())

    def _send(self, target: TopicPartition, batch: bytes, on_done: OnDone) -> None:
        leader = self._topics.find_leader(target)
        partition = self._partitions.find(*target)
        if leader == self._node_id and partition is not None:
            try:
                self._append(partition, batch)
            except KafkaError as error:
                log.error("copying dead letters failed partition=%s error=%s", target, error)
            on_done()
        elif self._remote is None or leader is None or leader < 0:
            log.error("the dead letter queue has no leader partition=%s", target)
            on_done()
        else:
            topic = TopicProduceData(target.topic, partition_data=[PartitionProduceData(target.partition, batch)])
            waiting = self._waiting.setdefault(leader, [])
            waiting.append((ProduceRequest(None, -1, PRODUCE_TIMEOUT_MS, [topic]), on_done))
            if len(waiting) == 1:
                self._produce(leader)

    def _produce(self, leader: int) -> None:
        """Send the first waiting batch to a broker."""
        assert self._remote is not None
        request, _ = self._waiting[leader][0]
        address = self._remote.address(leader)
        if address is None:
            self._handle_produced(leader, OttlaError(f"the address of broker {leader} is unknown"))
            return
        if leader not in self._connections:
            self._connections[leader] = self._remote.connect("dead-letters", leader)
        done = lambda response: self._handle_produced(leader, response)  # noqa: E731
        self._connections[leader].send_request(Question(address, request, PRODUCE_VERSION, ProduceResponse, done))

    def _handle_produced(self, leader: int, response: ProduceResponse | OttlaError) -> None:
        if isinstance(response, OttlaError):
            log.error("copying dead letters failed broker=%d error=%s", leader, response)
        else:
            errors = {each.error_code for topic in response.responses for each in topic.partition_responses}
            if errors - {0}:
                log.error("copying dead letters failed broker=%d errors=%s", leader, sorted(errors))
        waiting = self._waiting.get(leader)
        if not waiting:
            return
        _, on_done = waiting.pop(0)
        on_done()
        if waiting:
            self._produce(leader)


def records_of(
    source: Partition, letters: DeadLetters, copies_records: bool
) -> Iterator[tuple[int, bytes | None, bytes | None, list[Header]]]:
    """Yield offset, key, value and headers of the records; without contents if they are not copied."""
    if not copies_records:
        yield from ((offset, None, None, []) for offset in range(letters.first_offset, letters.last_offset + 1))
        return
    offset = max(letters.first_offset, source.log.start_offset)
    while offset <= letters.last_offset:
        found = read_records(source.log, offset, READ_BYTES, letters.last_offset - offset + 1, committed=False)
        if found is None:
            return
        columns = decode(b"".join(found.batches), from_offset=offset, with_headers=True)
        for row in range(columns.count):
            if columns.offsets[row] > letters.last_offset:
                return
            yield columns.offsets[row], columns.key(row), columns.value(row), columns.headers(row)
        offset = columns.next_offset


def describe_letter(group_id: str, source: TopicPartition, offset: int, letters: DeadLetters) -> list[Header]:
    """Return the headers of a copied record."""
    texts = {
        "topic": source.topic,
        "partition": str(source.partition),
        "offset": str(offset),
        "group": group_id,
        "delivery.count": str(letters.delivery_count),
        "message": letters.cause.value,
    }
    return [(f"__dlq.errors.{name}", text.encode()) for name, text in texts.items()]
