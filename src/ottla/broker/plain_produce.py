"""Produce as it nearly always comes: read straight from the bytes of its frame, and answered in bytes.

    frame ──► header ──► topics ──► partitions ──► all of it usual? ──► appended ──► the answer's bytes
                                                     └ else the handler takes it, and nothing was done yet

What a Produce means stands in `handlers/produce.py`, and whatever is refused or put off is answered there or by its words: with
objects for each partition and each answer, which cost a small request more than its appends. The one rule: nothing is appended
before the whole request was looked at, so that either all of it goes this way or nothing.
"""

from __future__ import annotations

from typing import Any

from ottla.broker import plain_bytes
from ottla.broker.handlers.produce import ProduceOutcome, ensure_in_sequence, note_refusal, response_of
from ottla.broker.node import BrokerNode
from ottla.broker.partitions.partition import Partition
from ottla.broker.requests.connection import Connection
from ottla.broker.requests.reading import read_request
from ottla.errors import CorruptRecordError, KafkaError
from ottla.model import INT64_MAX, Part
from ottla.protocol.codec import uuid_of
from ottla.protocol.conversation import encode_response
from ottla.protocol.messages.produce import ProduceRequest
from ottla.records import raw
from ottla.records.batch import CODEC_MASK, HEADER_BYTES, PREFIX_BYTES, TRANSACTIONAL
from ottla.records.compression import Codec
from ottla.storage.log.append_path import Appended, append_batches
from ottla.storage.producers.producer_entry import Origin

CLIENT = Origin.CLIENT
LAST_CODEC = int(Codec.ZSTD)
FIRST_VERSION, LAST_VERSION = 9, 13
"""Those in which all lengths are varints; the oldest clients are few."""
IDS_SINCE = 13
FIXED_BYTES = 10
"""Of a header, up to the client id."""
ACKS_ALL = -1
PARTITION_BYTES = 33
"""Of an answer for each partition, where nothing is refused."""
FLAGS_AT = 22
"""The low byte of a batch's attributes."""


class PlainProduce:
    """Of one request: where its parts lie in the frame, and where they go."""

    __slots__ = ("acks", "batches", "body", "correlation_id", "end", "octets", "position", "topics", "version", "view")

    def __init__(self, frame: memoryview) -> None:
        self.view = frame
        self.octets = raw.pointer(frame)
        self.end = len(frame)
        self.position = self.body = self.version = self.acks = self.correlation_id = 0
        self.topics: list[tuple[int, int, int]] = []
        """From where to where a topic's name or id lies in the frame, and how many partitions follow."""
        self.batches: list[tuple[int, Partition, memoryview]] = []

    def read(self, node: BrokerNode, connection: Connection) -> bool:
        """Whether it is as usual in all that it says."""
        if not self.read_header():
            return False
        topics = self.uvarint()
        for _ in range(topics - 1):
            if not self.read_topic(node, connection):
                return False
        return topics > 0 and self.passes_zero()

    def read_header(self) -> bool:
        """The header, without tags, and what stands before the topics: no transactional id, acks, a time to wait."""
        octets = self.octets
        if self.end < FIXED_BYTES or raw.int16(octets, 0) != 0:
            return False
        self.version = raw.int16(octets, 2)
        self.correlation_id = raw.int32(octets, 4)
        size = max(raw.int16(octets, 8), 0)
        if self.version < FIRST_VERSION or self.version > LAST_VERSION or size > self.end - FIXED_BYTES - 8:
            return False
        at = FIXED_BYTES + size
        self.acks = raw.int16(octets, at + 2)
        self.body = at + 1
        self.position = at + 8
        if self.acks != ACKS_ALL and self.acks != 1:
            return False
        return octets[at] == 0 and octets[at + 1] == 0 and plain_bytes.is_ascii(octets, FIXED_BYTES, at)

    def read_topic(self, node: BrokerNode, connection: Connection) -> bool:
        """A topic that there is, and that may be written to."""
        start = self.position
        name = self.topic_id(node) if self.version >= IDS_SINCE else self.topic_name()
        if name is None or (node.access is not None and not node.access.lets_write(connection, name)):
            return False
        stop = self.position
        partitions = self.uvarint()
        if partitions < 1:
            return False
        self.topics.append((start, stop, partitions - 1))
        for _ in range(partitions - 1):
            if not self.read_partition(node, name):
                return False
        return self.passes_zero()

    def topic_name(self) -> str | None:
        size = self.uvarint() - 1
        start = self.position
        if size < 0 or size > self.end - start or not plain_bytes.is_ascii(self.octets, start, start + size):
            return None
        self.position = start + size
        return str(self.view[start : start + size], "ascii")

    def topic_id(self, node: BrokerNode) -> str | None:
        """The name that goes with the id there."""
        start = self.position
        if self.end - start < 16:
            return None
        self.position = start + 16
        return node.partitions.topic_name(uuid_of(bytes(self.view[start : start + 16])))

    def read_partition(self, node: BrokerNode, name: str) -> bool:
        """A partition that can be appended to at once, and one batch for it."""
        octets = self.octets
        if self.end - self.position < 5:
            return False
        index = raw.int32(octets, self.position)
        self.position += 4
        size = self.uvarint() - 1
        start = self.position
        if size < HEADER_BYTES or size > self.end - start or raw.int32(octets, start + 8) + PREFIX_BYTES != size:
            return False
        flags = octets[start + FLAGS_AT]
        if flags & TRANSACTIONAL or flags & CODEC_MASK > LAST_CODEC:
            return False
        partition = node.partitions.find(name, index)
        if partition is None or not is_ready(partition, self.acks):
            return False
        self.batches.append((index, partition, self.view[start : start + size]))
        self.position = start + size
        return self.passes_zero()

    def uvarint(self) -> int:
        """The number that is next; -1 where none is that is shorter than five bytes."""
        value = 0
        shift = 0
        while self.position < self.end and shift < 28:
            octet: int = self.octets[self.position]
            self.position += 1
            value |= (octet & 0x7F) << shift
            if octet < 0x80:
                return value
            shift += 7
        return -1

    def passes_zero(self) -> bool:
        """Whether no tagged fields follow, which is a zero."""
        at = self.position
        self.position += 1
        return at < self.end and self.octets[at] == 0

    def carry_out(self, node: BrokerNode) -> list[Part]:
        """Append batch by batch; the parts of the answer, whatever became of each."""
        now_ms = node.clock.wall_ms()
        outcomes: list[ProduceOutcome] = []
        refused = False
        for _, partition, records in self.batches:
            try:
                outcomes.append(append_to(node, partition, records, now_ms))
            except (KafkaError, CorruptRecordError) as error:
                outcomes.append(error)
                refused = True
                note_refusal(node, partition.topic_id, partition.topic_partition.partition, records, error)
        return self.refusal(outcomes) if refused else [self.answer(outcomes)]

    def answer(self, outcomes: list[ProduceOutcome]) -> bytearray:
        """What is said where everything was appended."""
        size = 10 + 5 + len(self.batches) * PARTITION_BYTES
        for start, stop, _ in self.topics:
            size += stop - start + 6
        answer = raw.allocate(size)
        out = raw.octets(answer)
        raw.put_int32(out, 0, self.correlation_id)
        out[4] = 0
        at = plain_bytes.put_uvarint(out, 5, len(self.topics) + 1)
        number = 0
        for start, stop, partitions in self.topics:
            raw.copy(out, at, self.octets, start, stop - start)
            at = plain_bytes.put_uvarint(out, at + stop - start, partitions + 1)
            for _ in range(partitions):
                index, _, _ = self.batches[number]
                put_partition(out, at, index, outcomes[number])
                at += PARTITION_BYTES
                number += 1
            out[at] = 0
            at += 1
        raw.put_int32(out, at, 0)
        out[at + 4] = 0
        del answer[at + 5 :]
        return answer

    def refusal(self, outcomes: list[ProduceOutcome]) -> list[Part]:
        """What is said where something was refused, by the handler."""
        request = read_request(ProduceRequest, self.version, self.view, self.body)
        return encode_response(response_of(request, outcomes), self.version, self.correlation_id)


def append_to(node: BrokerNode, partition: Partition, records: memoryview, now_ms: int) -> Appended:
    """What `BrokerNode.append` does with what a client sends."""
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
    """Whether what is appended is there at once: in a log that is open, which no disk and no copies must confirm."""
    log = partition.opened_log
    if log is None or partition.internal or partition.leadership is not None:
        return False
    if log.config.flush_messages != INT64_MAX:
        return False
    return acks != ACKS_ALL or partition.replicas_in_sync >= partition.min_insync_replicas


def put_partition(out: Any, at: int, index: int, appended: Any) -> None:
    """Index, no error, where the batch went and when, where the log starts; no errors of records, no message, no tags."""
    raw.put_int32(out, at, index)
    out[at + 4] = 0
    out[at + 5] = 0
    raw.put_int64(out, at + 6, appended.base_offset)
    raw.put_int64(out, at + 14, appended.log_append_time_ms)
    raw.put_int64(out, at + 22, appended.log_start_offset)
    out[at + 30] = 1
    out[at + 31] = 0
    out[at + 32] = 0
