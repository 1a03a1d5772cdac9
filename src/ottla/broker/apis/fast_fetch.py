"""The fast path of Fetch: parse a consumer's request from the bytes of its frame, and write the response as bytes.

    frame ──► header ──► topics ──► partitions ──► all supported? ──► read the logs ──► response bytes
                                                     └ no: the handler processes the request; nothing was changed yet

`apis/fetch.py` and `replica_manager/partition_reader.py` define what a Fetch request means, and build every response that
contains anything but records. Reading the logs changes nothing, so the handler can take over after any read, the first one or
one after a wait. `fast_session.py` selects the partitions of a request in a session.
"""

from __future__ import annotations

from uuid import UUID

from ottla.broker.apis.fast_session import FastSession, find_session
from ottla.broker.apis.fetch import READ_COMMITTED, FullFetch, read_or_wait
from ottla.broker.apis.request_bytes import RequestBytes
from ottla.broker.network_server import frame_bytes
from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.network_server.connection import Connection
from ottla.broker.network_server.request_parsing import read_request
from ottla.broker.node import BrokerNode
from ottla.broker.replica_manager.fetch_session import FINAL_EPOCH, Key
from ottla.broker.replica_manager.partition import Partition
from ottla.broker.replica_manager.waiting_fetch import Awaited
from ottla.errors import CorruptRecordError, KafkaError
from ottla.model import FileSlice, Part
from ottla.protocol.codec import uuid_of
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest
from ottla.protocol.schema import Message
from ottla.records import raw

FETCH_KEY = 1
FIRST_VERSION, LAST_VERSION = 12, 18
"""Flexible versions (lengths are varints)."""
IDS_SINCE = 13
STATE_SINCE = 15
"""From this version on followers send their broker id in a tagged field."""
FIXED_BYTES = 10
"""Size of the request header before the client id."""
PARTITION_BYTES = 33
"""Size of a partition in the request without tags: index, epochs, offsets, limit."""
ANSWER_BYTES = 45
"""Maximum size of a partition in the response, without its records."""


class Want:
    """A requested partition, and the result of the last read."""

    __slots__ = (
        "high_watermark",
        "index",
        "last_stable_offset",
        "leader_epoch",
        "limit",
        "log_start_offset",
        "name",
        "offset",
        "records",
        "topic_id",
    )
    error_code = 0
    diverging_epoch = None
    preferred_read_replica = -1
    """Constants, so that a session can compare a `Want` with `PartitionData`: there are no errors on the fast path."""

    def __init__(self, name: str, topic_id: bytes, index: int, leader_epoch: int, offset: int, limit: int) -> None:
        self.name = name
        self.topic_id = topic_id
        """Empty in versions with topic names."""
        self.index = index
        self.leader_epoch = leader_epoch
        self.offset = offset
        self.limit = limit
        self.log_start_offset = self.last_stable_offset = self.high_watermark = 0
        """Offsets of the log at the last read."""
        self.records: FileSlice | None = None


class FastFetch(RequestBytes):
    """One request, and the results of the last read of the logs."""

    __slots__ = (
        "awaited",
        "committed",
        "found_bytes",
        "max_bytes",
        "max_wait_ms",
        "min_bytes",
        "session",
        "session_epoch",
        "session_id",
        "titles",
        "topics",
        "wants",
    )

    def __init__(self, frame: memoryview) -> None:
        RequestBytes.__init__(self, frame)
        self.found_bytes = 0
        self.max_wait_ms = self.min_bytes = self.max_bytes = 0
        self.session_id = self.session_epoch = 0
        self.session: FastSession | None = None
        """The request's session; None for a full fetch without one."""
        self.committed = False
        self.titles = memoryview(b"")
        """Names or ids of the topics in the response of a session; those of other requests are in the frame."""
        self.topics: list[tuple[int, int, int]] = []
        """Start and end of each topic's name or id, in the frame or in `titles`, and the number of its partitions."""
        self.wants: list[Want] = []
        self.awaited: list[Awaited] = []
        """The partitions or the session that notify the request of new records."""

    def read(self, node: BrokerNode) -> bool:
        """Parse the request. False if the handler has to process it: it is a follower's, or a topic is unknown."""
        if not self.read_header() or not self.read_limits():
            return False
        topics = self.uvarint()
        if topics < (1 if self.session_id else 2):
            return False
        for _ in range(topics - 1):
            if not self.read_topic(node):
                return False
        if not self.forgets_nothing() or len({want.name for want in self.wants}) != topics - 1:
            return False
        if self.session_id:
            self.session = find_session(
                node, self.session_id, self.session_epoch, self.list_named(), self.version >= IDS_SINCE
            )
            return self.session is not None
        return True

    def read_header(self) -> bool:
        octets = self.octets
        if self.end < FIXED_BYTES or raw.int16(octets, 0) != FETCH_KEY:
            return False
        self.version = raw.int16(octets, 2)
        self.correlation_id = raw.int32(octets, 4)
        size = max(raw.int16(octets, 8), 0)
        if self.version < FIRST_VERSION or self.version > LAST_VERSION or size > self.end - FIXED_BYTES - 1:
            return False
        at = FIXED_BYTES + size
        self.body = self.position = at + 1
        return octets[at] == 0 and frame_bytes.is_ascii(octets, FIXED_BYTES, at)

    def read_limits(self) -> bool:
        """Parse the fields before the topics. False for a follower, and for a request that creates a session."""
        octets, at = self.octets, self.position
        if self.end - at < 25:
            return False
        if self.version < STATE_SINCE:
            if raw.int32(octets, at) != -1 or self.end - at < 29:
                return False
            at += 4
        self.max_wait_ms = raw.int32(octets, at)
        self.min_bytes = raw.int32(octets, at + 4)
        self.max_bytes = raw.int32(octets, at + 8)
        self.committed = octets[at + 12] == READ_COMMITTED
        self.position = at + 21
        self.session_id = raw.int32(octets, at + 13)
        self.session_epoch = raw.int32(octets, at + 17)
        return self.session_epoch > 0 if self.session_id else self.session_epoch == FINAL_EPOCH

    def read_topic(self, node: BrokerNode) -> bool:
        """Parse a topic. False if it is unknown."""
        start = self.position
        topic_id = b""
        if self.version >= IDS_SINCE:
            if self.end - start < 16:
                return False
            self.position = start + 16
            topic_id = bytes(self.view[start : start + 16])
            name = node.topics.name_of(uuid_of(topic_id))
        else:
            name = self.text()
        if name is None:
            return False
        stop = self.position
        partitions = self.uvarint()
        if partitions < 2 or self.end - self.position < (partitions - 1) * PARTITION_BYTES:
            return False
        self.topics.append((start, stop, partitions - 1))
        for _ in range(partitions - 1):
            if not self.read_partition(name, topic_id):
                return False
        first = len(self.wants) - (partitions - 1)
        return self.passes_tags() and len({want.index for want in self.wants[first:]}) == partitions - 1

    def read_partition(self, name: str, topic_id: bytes) -> bool:
        """Parse a partition. False if it has the last fetched epoch, which only followers send."""
        octets, at = self.octets, self.position
        if self.end - at < PARTITION_BYTES:
            return False
        self.wants.append(
            Want(
                name,
                topic_id,
                raw.int32(octets, at),
                raw.int32(octets, at + 4),
                raw.int64(octets, at + 8),
                raw.int32(octets, at + 28),
            )
        )
        self.position = at + PARTITION_BYTES - 1
        if self.session_id and (raw.int32(octets, at + 16) != -1 or raw.int64(octets, at + 20) != -1):
            return False  # only followers send these fields, and the session would keep them
        return raw.int32(octets, at + 16) < 0 and self.passes_tags()

    def forgets_nothing(self) -> bool:
        """Parse the fields after the topics. False if partitions are removed from the session, or with tags."""
        if self.uvarint() != 1:
            return False
        return self.text() is not None and self.passes_tags()

    def read_logs(self, node: BrokerNode, max_bytes: int) -> bool:
        """Read the logs, up to `max_bytes`. False if the response contains anything but records."""
        config = node.config
        if config.selects_by_rack:
            return False  # the consumer may have to read from another replica
        left = min(max_bytes, config.fetch_max_bytes)
        self.found_bytes = 0
        self.awaited = []
        if self.session is not None:
            listed = self.session.list_partitions()
            if listed is None:
                return False
            self.wants = [self.build_want(name, topic_id, wanted) for name, topic_id, wanted in listed]
        try:
            for want in self.wants:
                partition = node.partitions.find(want.name, want.index)
                if partition is None or not self.finds(partition, want, left):
                    return False
                if want.records is not None:
                    size = want.records.size
                    self.found_bytes += size
                    left -= size
                self.awaited.append(partition)
        except (KafkaError, CorruptRecordError):
            return False
        if self.session is None:
            return True
        found, self.awaited = self.awaited, [self.session.session]
        return self.session.watches(found)

    def finds(self, partition: Partition, want: Want, left: int) -> bool:
        """Read one partition like `PartitionReader`. False if the handler has to respond for it."""
        log = partition.opened_log
        if log is None or not partition.leads:
            return False
        if want.leader_epoch >= 0 and want.leader_epoch != partition.leader_epoch:
            return False
        if want.topic_id and partition.topic_id.bytes != want.topic_id:
            return False
        want.records = None
        want.last_stable_offset = log.last_stable_offset
        offset = want.offset
        end = want.last_stable_offset if self.committed else log.high_watermark
        if offset != end and (left > 0 or not self.found_bytes):
            limit = max(0, min(want.limit, left))
            if end == log.end_offset:
                want.records = log.read_last_append(offset, limit)
            if want.records is None and self.committed:
                want.records, aborted = log.read_committed(offset, limit, min_one=not self.found_bytes)
                if aborted:
                    return False
            elif want.records is None:
                want.records = log.read(offset, limit, min_one=not self.found_bytes, up_to=end)
        want.log_start_offset = log.start_offset
        want.high_watermark = log.high_watermark
        return True

    def list_named(self) -> list[tuple[Key, FetchPartition]]:
        """Return the requested partitions with the keys of a session."""
        return [
            (
                (uuid_of(want.topic_id) if want.topic_id else want.name, want.index),
                FetchPartition(want.index, want.leader_epoch, want.offset, partition_max_bytes=want.limit),
            )
            for want in self.wants
        ]

    def build_want(self, name: str, topic_id: UUID, wanted: FetchPartition) -> Want:
        """Return a partition of the session as a `Want`."""
        id_ = topic_id.bytes if self.version >= IDS_SINCE else b""
        return Want(
            name, id_, wanted.partition, wanted.current_leader_epoch, wanted.fetch_offset, wanted.partition_max_bytes
        )

    def keep(self) -> None:
        """Copy the frame once, because its buffer is reused while this request waits."""
        if isinstance(self.view.obj, bytes):
            return
        self.view = memoryview(bytes(self.view))
        self.octets = raw.pointer(self.view)

    def is_permitted(self, node: BrokerNode, connection: Connection) -> bool:
        """Return True if the principal may read every topic and nothing has to be audited."""
        access = node.access
        if access is not None:
            for name in {want.name for want in self.wants}:
                if not access.lets_read(connection, name):
                    return False
        return True

    def advance_session(self, node: BrokerNode) -> bool:
        """Commit to the fast path: apply the request to its session. Always True."""
        if self.session is not None:
            self.session.advance(node)
        return True

    def by_handler(self, node: BrokerNode, call: Call) -> Message | Outcome:
        """Have the handler read the logs again, and respond."""
        request = read_request(FetchRequest, self.version, self.view, self.body)
        if self.session is not None:
            return read_or_wait(node, call, request, self.session.asked, again=True)
        asked = FullFetch(request, self.version >= IDS_SINCE, call.received)
        for fetched, want in zip(asked.partitions(), self.wants, strict=True):
            fetched.name = want.name  # the name at the start of the wait; the topic may have been deleted since
        return read_or_wait(node, call, request, asked, again=True)

    def answer(self) -> list[Part]:
        """Return the response; of a session, only the changed partitions."""
        titles = self.octets
        if self.session is not None:
            names, self.topics, self.wants = self.session.take_changed(self.wants, self.version >= IDS_SINCE)
            self.titles = memoryview(names)
            titles = raw.pointer(self.titles)
        size = 25
        for start, stop, partitions in self.topics:
            size += stop - start + 6 + partitions * ANSWER_BYTES
        for want in self.wants:
            if want.records is not None:
                size += len(want.records.written)
        head = raw.allocate(size)
        out = raw.octets(head)
        view = memoryview(head)
        parts: list[Part] = []
        raw.put_int32(out, 0, self.correlation_id)
        out[4] = 0
        raw.put_int32(out, 5, 0)
        out[9] = out[10] = 0
        raw.put_int32(out, 11, self.session_id)
        at = frame_bytes.put_uvarint(out, 15, len(self.topics) + 1)
        number = cut = 0
        for start, stop, partitions in self.topics:
            raw.copy(out, at, titles, start, stop - start)
            at = frame_bytes.put_uvarint(out, at + stop - start, partitions + 1)
            for _ in range(partitions):
                want = self.wants[number]
                at = self.put_partition(out, at, want)
                if want.records is not None and want.records.written:
                    written = want.records.written
                    raw.copy(out, at, raw.pointer(written), 0, len(written))
                    at += len(written)
                elif want.records is not None:
                    parts.append(view[cut:at])
                    parts.append(want.records)
                    cut = at
                out[at] = 0
                at += 1
                number += 1
            out[at] = 0
            at += 1
        out[at] = 0
        parts.append(view[cut : at + 1])
        return parts

    def put_partition(self, out: object, at: int, want: Want) -> int:
        """Write index, no error, offsets, no aborted transactions, no preferred replica, and the records' size."""
        raw.put_int32(out, at, want.index)
        out[at + 4] = 0  # type: ignore[index]
        out[at + 5] = 0  # type: ignore[index]
        raw.put_int64(out, at + 6, want.high_watermark)
        raw.put_int64(out, at + 14, want.last_stable_offset)
        raw.put_int64(out, at + 22, want.log_start_offset)
        out[at + 30] = 1 if self.committed else 0  # type: ignore[index]
        raw.put_int32(out, at + 31, -1)
        return frame_bytes.put_uvarint(out, at + 35, 1 if want.records is None else want.records.size + 1)
