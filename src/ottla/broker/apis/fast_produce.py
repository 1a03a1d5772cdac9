"""The fast path of Produce: parse the request from the bytes of its frame, append, and write the response as bytes.

    frame ──► header ──► topics ──► partitions ──► all supported? ──► append ──► committed? ──► response bytes
                                                     │                               └ no: wait for the other replicas
                                                     └ no: the handler processes the request; nothing was changed yet

`apis/produce.py` defines what a Produce request means, and builds every response with an error. It makes objects for each
partition and result, which cost a small request more than its appends. The whole request is checked before anything is
appended, so that a request is processed entirely here or entirely by the handler.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import UUID

from ottla.broker.apis.produce import ProduceOutcome, ensure_in_sequence, note_refusal, result_of
from ottla.broker.apis.request_bytes import RequestBytes
from ottla.broker.network_server import frame_bytes
from ottla.broker.network_server.call import EncodedResponse
from ottla.broker.network_server.connection import Connection
from ottla.broker.node import BrokerNode
from ottla.broker.replica_manager.leadership import Leadership
from ottla.broker.replica_manager.partition import Partition
from ottla.errors import CorruptRecordError, KafkaError
from ottla.model import INT64_MAX
from ottla.protocol.codec import uuid_of
from ottla.protocol.messages.produce import ProduceResponse, TopicProduceResponse
from ottla.records import raw
from ottla.records.batch import CODEC_MASK, HEADER_BYTES, PREFIX_BYTES, TRANSACTIONAL
from ottla.records.compression import Codec
from ottla.storage.log.append_path import Appended, append_batches
from ottla.storage.producers.producer_entry import Origin

CLIENT = Origin.CLIENT
LZ4, ZSTD = int(Codec.LZ4), int(Codec.ZSTD)
FIRST_VERSION, LAST_VERSION = 3, 13
"""Older versions have message sets instead of batches."""
START_OFFSET_SINCE, ZSTD_SINCE, MESSAGES_SINCE, FLEXIBLE_SINCE, IDS_SINCE = 5, 7, 8, 9, 13
FIXED_BYTES = 10
"""Size of the request header before the client id."""
ACKS_ALL = -1
PARTITION_BYTES = 36
"""Maximum size of the result of one partition without an error."""
FLAGS_AT = 22
"""Position of the low byte of a batch's attributes."""

NO_ID = UUID(int=0)


class UncommittedBatch(NamedTuple):
    """A batch that is appended here, and not on all replicas in sync."""

    leadership: Leadership
    end_offset: int
    """The high watermark at which it is committed."""
    number: int
    """The position of the batch in the request."""


class FastProduce(RequestBytes):
    """One request: the positions of its parts in the frame, and the partitions of its batches."""

    __slots__ = ("acks", "batches", "timeout_ms", "topics", "uncommitted")

    def __init__(self, frame: memoryview) -> None:
        RequestBytes.__init__(self, frame)
        self.acks = self.timeout_ms = 0
        self.uncommitted: list[UncommittedBatch] = []
        """The appended batches that other replicas have to confirm."""
        self.topics: list[tuple[int, int, int]] = []
        """Start and end of each topic's name or id in the frame, and the number of its partitions."""
        self.batches: list[tuple[int, Partition, memoryview]] = []

    def read(self, node: BrokerNode, connection: Connection) -> bool:
        """Parse the request. False if the handler has to process it."""
        if not self.read_header():
            return False
        topics = self.size()
        for _ in range(topics):
            if not self.read_topic(node, connection):
                return False
        return topics >= 0 and self.passes_tags()

    def read_header(self) -> bool:
        """Parse the header without tags, acks and timeout. False with a transactional id or acks=0."""
        octets = self.octets
        if self.end < FIXED_BYTES or raw.int16(octets, 0) != 0:
            return False
        self.version = raw.int16(octets, 2)
        self.correlation_id = raw.int32(octets, 4)
        size = max(raw.int16(octets, 8), 0)
        if self.version < FIRST_VERSION or self.version > LAST_VERSION or size > self.end - FIXED_BYTES - 8:
            return False
        at = FIXED_BYTES + size
        self.is_flexible = self.version >= FLEXIBLE_SINCE
        self.acks = raw.int16(octets, at + 2)
        self.timeout_ms = raw.int32(octets, at + 4)
        self.position = at + 8
        if (self.acks != ACKS_ALL and self.acks != 1) or not frame_bytes.is_ascii(octets, FIXED_BYTES, at):
            return False
        if not self.is_flexible:
            self.body = at
            return raw.int16(octets, at) == -1
        self.body = at + 1
        return bool(octets[at] == 0 and octets[at + 1] == 0)

    def read_topic(self, node: BrokerNode, connection: Connection) -> bool:
        """Parse a topic. False if it is unknown, or the client may not write to it."""
        start = self.position
        name = self.topic_id(node) if self.version >= IDS_SINCE else self.text()
        if name is None or (node.access is not None and not node.access.lets_write(connection, name)):
            return False
        stop = self.position
        partitions = self.size()
        if partitions < 1:
            return False
        self.topics.append((start, stop, partitions))
        for _ in range(partitions):
            if not self.read_partition(node, name):
                return False
        return self.passes_tags()

    def topic_id(self, node: BrokerNode) -> str | None:
        """Return the name of the topic with the id at the position; None if it is unknown."""
        start = self.position
        if self.end - start < 16:
            return None
        self.position = start + 16
        return node.topics.name_of(uuid_of(bytes(self.view[start : start + 16])))

    def read_partition(self, node: BrokerNode, name: str) -> bool:
        """Parse the single batch of a partition. False if it cannot be appended at once."""
        octets = self.octets
        if self.end - self.position < 5:
            return False
        index = raw.int32(octets, self.position)
        self.position += 4
        size = self.size()
        start = self.position
        if size < HEADER_BYTES or size > self.end - start or raw.int32(octets, start + 8) + PREFIX_BYTES != size:
            return False
        flags = octets[start + FLAGS_AT]
        if flags & TRANSACTIONAL or flags & CODEC_MASK > (ZSTD if self.version >= ZSTD_SINCE else LZ4):
            return False
        partition = node.partitions.find(name, index)
        if partition is None or not is_ready(partition, self.acks):
            return False
        self.batches.append((index, partition, self.view[start : start + size]))
        self.position = start + size
        return self.passes_tags()

    def append(self, node: BrokerNode) -> list[ProduceOutcome]:
        """Append batch by batch. Return the outcome of each."""
        now_ms = node.clock.wall_ms()
        outcomes: list[ProduceOutcome] = []
        for _, partition, records in self.batches:
            try:
                appended = append_to(node, partition, records, now_ms)
                outcomes.append(appended)
                if self.acks == ACKS_ALL and partition.leadership is not None:
                    batch = UncommittedBatch(partition.leadership, appended.last_offset + 1, len(outcomes) - 1)
                    self.uncommitted.append(batch)
            except (KafkaError, CorruptRecordError) as error:
                outcomes.append(error)
                note_refusal(node, partition.topic_id, partition.topic_partition.partition, records, error)
        return outcomes

    def answer(self, outcomes: list[ProduceOutcome]) -> EncodedResponse | ProduceResponse:
        """Return the response; encoded if all batches were appended."""
        for each in outcomes:
            if not isinstance(each, Appended):
                return self.refusal(outcomes)
        return EncodedResponse([self.encoded(outcomes)], -5 if self.is_flexible else -4)

    def encoded(self, outcomes: list[ProduceOutcome]) -> bytearray:
        """Return the bytes of the response if all batches were appended."""
        size = 10 + 5 + len(self.batches) * PARTITION_BYTES
        for start, stop, _ in self.topics:
            size += stop - start + 6
        answer = raw.allocate(size)
        out = raw.octets(answer)
        raw.put_int32(out, 0, self.correlation_id)
        at = 4
        if self.is_flexible:
            out[at] = 0
            at += 1
        at = self.put_size(out, at, len(self.topics))
        number = 0
        for start, stop, partitions in self.topics:
            raw.copy(out, at, self.octets, start, stop - start)
            at = self.put_size(out, at + stop - start, partitions)
            for _ in range(partitions):
                index, _, _ = self.batches[number]
                at = self.put_partition(out, at, index, outcomes[number])
                number += 1
            at = self.put_tags(out, at)
        raw.put_int32(out, at, 0)
        at = self.put_tags(out, at + 4)
        del answer[at:]
        return answer

    def put_size(self, out: Any, at: int, size: int) -> int:
        """Write the size of an array; return the position after it."""
        if self.is_flexible:
            return frame_bytes.put_uvarint(out, at, size + 1)
        raw.put_int32(out, at, size)
        return at + 4

    def put_tags(self, out: Any, at: int) -> int:
        """Write that no tagged fields follow; return the position after it."""
        if not self.is_flexible:
            return at
        out[at] = 0
        return at + 1

    def put_partition(self, out: Any, at: int, index: int, appended: Any) -> int:
        """Write the result of an appended batch; return the position after it."""
        raw.put_int32(out, at, index)
        out[at + 4] = 0
        out[at + 5] = 0
        raw.put_int64(out, at + 6, appended.base_offset)
        raw.put_int64(out, at + 14, appended.log_append_time_ms)
        at += 22
        if self.version >= START_OFFSET_SINCE:
            raw.put_int64(out, at, appended.log_start_offset)
            at += 8
        if self.is_flexible:  # no record errors, no message, no tags
            out[at] = 1
            out[at + 1] = 0
            out[at + 2] = 0
            at += 3
        elif self.version >= MESSAGES_SINCE:
            raw.put_int32(out, at, 0)
            out[at + 4] = 0xFF
            out[at + 5] = 0xFF
            at += 6
        return at

    def refusal(self, outcomes: list[ProduceOutcome]) -> ProduceResponse:
        """Return the response if batches were rejected, as the handler builds it."""
        results = [result_of(index, outcome) for (index, _, _), outcome in zip(self.batches, outcomes, strict=True)]
        topics: list[TopicProduceResponse] = []
        number = 0
        for _, _, partitions in self.topics:
            name, topic_id = "", NO_ID
            if partitions:
                partition = self.batches[number][1]
                name, topic_id = partition.topic_partition.topic, partition.topic_id
            topics.append(TopicProduceResponse(name, topic_id, results[number : number + partitions]))
            number += partitions
        return ProduceResponse(topics)

    def release(self) -> None:
        """Forget the frame, whose buffer is used again, before the request waits."""
        self.view = memoryview(b"")
        self.batches = [(index, partition, self.view) for index, partition, _ in self.batches]


def append_to(node: BrokerNode, partition: Partition, records: memoryview, now_ms: int) -> Appended:
    """Append a client's batch, as `BrokerNode.append` does."""
    log = partition.log
    if node.refused_sequences:
        ensure_in_sequence(node, partition, records)
    try:
        appended = append_batches(log, records, partition.leader_epoch, now_ms, CLIENT, 0)
    except KafkaError as error:
        node.note_failure(partition, error)
        raise
    node.note_append(partition, log, appended, len(records), CLIENT)
    return appended


def is_ready(partition: Partition, acks: int) -> bool:
    """Return True if a batch can be appended at once, without a flush: the log is open, and enough replicas are in sync."""
    log = partition.opened_log
    if log is None or partition.internal or not partition.leads or partition.validates_schemas:
        return False
    if log.config.flush_messages != INT64_MAX:
        return False
    if acks != ACKS_ALL:
        return True
    leadership = partition.leadership
    if leadership is None:
        in_sync, quorum = partition.replicas_in_sync, partition.min_insync_replicas
    else:
        in_sync, quorum = len(leadership.machine.assignment.in_sync), leadership.machine.assignment.quorum
    return in_sync >= quorum
