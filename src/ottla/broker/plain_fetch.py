"""Fetch as consumers send it: read straight from the bytes of its frame, and answered in bytes.

    frame ──► header ──► topics ──► partitions ──► all of it usual? ──► a look at the logs ──► the answer's bytes
                                                     └ else the handler takes it, and nothing was done yet

What a Fetch means stands in `handlers/fetch.py` and `partitions/partition_reader.py`; whatever has something to tell that is no record
is told there. The one rule: a look changes nothing, so that at any look, the first or one after a wait, the handler may be asked instead.
Of a request that goes on with a session `plain_session.py` knows what is to be looked at, and what is told.
"""

from __future__ import annotations

from uuid import UUID

from ottla.broker import plain_bytes
from ottla.broker.fetching.fetch_session import FINAL_EPOCH, Key
from ottla.broker.fetching.waiting import Awaited
from ottla.broker.handlers.fetch import READ_COMMITTED, FullFetch, look
from ottla.broker.node import BrokerNode
from ottla.broker.partitions.partition import Partition
from ottla.broker.plain_session import PlainSession, find_session
from ottla.broker.requests.call import Call, Outcome
from ottla.broker.requests.connection import Connection
from ottla.broker.requests.reading import read_request
from ottla.errors import CorruptRecordError, KafkaError
from ottla.model import FileSlice, Part
from ottla.protocol.codec import uuid_of
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest
from ottla.protocol.schema import Message
from ottla.records import raw

FETCH_KEY = 1
FIRST_VERSION, LAST_VERSION = 12, 18
"""Those in which all lengths are varints."""
IDS_SINCE = 13
STATE_SINCE = 15
"""From this version on who fetches for a copy says so in a tagged field."""
FIXED_BYTES = 10
"""Of a header, up to the client id."""
PARTITION_BYTES = 33
"""Of a request for each partition, with its tags where there are none: index, epochs, offsets, limit."""
ANSWER_BYTES = 45
"""Of an answer for each partition at most, without its records."""


class Want:
    """A partition as it is asked for."""

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
    """What is found is told as `PartitionData` is, and never more than records."""

    def __init__(self, name: str, topic_id: bytes, index: int, leader_epoch: int, offset: int, limit: int) -> None:
        self.name = name
        self.topic_id = topic_id
        """Empty where it is asked for by name."""
        self.index = index
        self.leader_epoch = leader_epoch
        self.offset = offset
        self.limit = limit
        self.log_start_offset = self.last_stable_offset = self.high_watermark = 0
        """Of its log at the last look."""
        self.records: FileSlice | None = None


class PlainFetch:
    """One request: what it asks for, and what the last look has found."""

    __slots__ = (
        "awaited",
        "body",
        "committed",
        "correlation_id",
        "end",
        "max_bytes",
        "max_wait_ms",
        "min_bytes",
        "octets",
        "position",
        "session",
        "session_epoch",
        "session_id",
        "size",
        "titles",
        "topics",
        "version",
        "view",
        "wants",
    )

    def __init__(self, frame: memoryview) -> None:
        self.view = frame
        self.octets = raw.pointer(frame)
        self.end = len(frame)
        self.position = self.body = self.version = self.correlation_id = self.size = 0
        self.max_wait_ms = self.min_bytes = self.max_bytes = 0
        self.session_id = self.session_epoch = 0
        self.session: PlainSession | None = None
        """What it goes on with, if it does."""
        self.committed = False
        self.titles = memoryview(b"")
        """Names or ids of the topics that a session tells of; those of other requests lie in their frame."""
        self.topics: list[tuple[int, int, int]] = []
        """From where to where in the frame, or in `titles`, a topic's name or id lies, and how many partitions follow."""
        self.wants: list[Want] = []
        self.awaited: list[Awaited] = []
        """Where it can wait."""

    def read(self, node: BrokerNode) -> bool:
        """Whether it is as usual in all that it says: of a consumer, for topics that there are."""
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
                node, self.session_id, self.session_epoch, self.named(), self.version >= IDS_SINCE
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
        return octets[at] == 0 and plain_bytes.is_ascii(octets, FIXED_BYTES, at)

    def read_limits(self) -> bool:
        """What stands before the topics: who asks, which is a consumer, how long and how much, and the session, if it goes on with one."""
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
        """A topic that there is."""
        start = self.position
        topic_id = b""
        if self.version >= IDS_SINCE:
            if self.end - start < 16:
                return False
            self.position = start + 16
            topic_id = bytes(self.view[start : start + 16])
            name = node.partitions.topic_name(uuid_of(topic_id))
        else:
            name = self.topic_name()
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
        return self.passes_zero() and len({want.index for want in self.wants[first:]}) == partitions - 1

    def topic_name(self) -> str | None:
        size = self.uvarint() - 1
        start = self.position
        if size < 0 or size > self.end - start or not plain_bytes.is_ascii(self.octets, start, start + size):
            return None
        self.position = start + size
        return str(self.view[start : start + size], "ascii")

    def read_partition(self, name: str, topic_id: bytes) -> bool:
        """A partition without what only a follower says of it: the epoch of its last batch."""
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
            return False  # a session would remember what only a follower says
        return raw.int32(octets, at + 16) < 0 and self.passes_zero()

    def forgets_nothing(self) -> bool:
        """What stands behind the topics: none that are to be left out, a rack, no tags."""
        if self.uvarint() != 1:
            return False
        size = self.uvarint() - 1
        start = self.position
        if size < 0 or size > self.end - start or not plain_bytes.is_ascii(self.octets, start, start + size):
            return False
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

    def look(self, node: BrokerNode) -> bool:
        """See what there is by now; False where there is something to tell that is no record."""
        left = min(self.max_bytes, node.config.fetch_max_bytes)
        self.size = 0
        self.awaited = []
        if self.session is not None:
            listed = self.session.listed()
            if listed is None:
                return False
            self.wants = [self.want(name, topic_id, wanted) for name, topic_id, wanted in listed]
        try:
            for want in self.wants:
                partition = node.partitions.find(want.name, want.index)
                if partition is None or not self.finds(partition, want, left):
                    return False
                if want.records is not None:
                    size = want.records.size
                    self.size += size
                    left -= size
                self.awaited.append(partition)
        except (KafkaError, CorruptRecordError):
            return False
        if self.session is None:
            return True
        found, self.awaited = self.awaited, [self.session.session]
        return self.session.hears(found)

    def finds(self, partition: Partition, want: Want, left: int) -> bool:
        """Read one partition, as `PartitionReader` does where nothing is the matter."""
        log = partition.opened_log
        if log is None or partition.leadership is not None or not partition.leads:
            return False
        if want.leader_epoch >= 0 and want.leader_epoch != partition.leader_epoch:
            return False
        if want.topic_id and partition.topic_id.bytes != want.topic_id:
            return False
        want.records = None
        want.last_stable_offset = log.last_stable_offset
        offset = want.offset
        end = want.last_stable_offset if self.committed else log.high_watermark
        if offset != end and (left > 0 or not self.size):
            limit = max(0, min(want.limit, left))
            if end == log.end_offset:
                want.records = log.read_last_append(offset, limit)
            if want.records is None and self.committed:
                want.records, aborted = log.read_committed(offset, limit, min_one=not self.size)
                if aborted:
                    return False
            elif want.records is None:
                want.records = log.read(offset, limit, min_one=not self.size, up_to=end)
        want.log_start_offset = log.start_offset
        want.high_watermark = log.high_watermark
        return True

    def named(self) -> list[tuple[Key, FetchPartition]]:
        """The partitions that it names, as a session knows them."""
        return [
            (
                (uuid_of(want.topic_id) if want.topic_id else want.name, want.index),
                FetchPartition(want.index, want.leader_epoch, want.offset, partition_max_bytes=want.limit),
            )
            for want in self.wants
        ]

    def want(self, name: str, topic_id: UUID, wanted: FetchPartition) -> Want:
        """A partition that a session knows."""
        id_ = topic_id.bytes if self.version >= IDS_SINCE else b""
        return Want(
            name, id_, wanted.partition, wanted.current_leader_epoch, wanted.fetch_offset, wanted.partition_max_bytes
        )

    def keep(self) -> None:
        """Stand on bytes of its own: those of the frame are used again, and this one waits."""
        self.view = memoryview(bytes(self.view))
        self.octets = raw.pointer(self.view)

    def is_permitted(self, node: BrokerNode, connection: Connection) -> bool:
        """Whether who asks may read all that was looked at, and no audit has to hear of it."""
        access = node.access
        if access is not None:
            for name in {want.name for want in self.wants}:
                if not access.lets_read(connection, name):
                    return False
        return True

    def begin(self, node: BrokerNode) -> bool:
        """It stays on its short way: a session is as far now as the request says."""
        if self.session is not None:
            self.session.begin(node)
        return True

    def by_handler(self, node: BrokerNode, call: Call) -> Message | Outcome:
        """Look again as the handler does."""
        request = read_request(FetchRequest, self.version, self.view, self.body)
        if self.session is not None:
            return look(node, call, request, self.session.asked, again=True)
        asked = FullFetch(request, self.version >= IDS_SINCE, call.received)
        for fetched, want in zip(asked.partitions(), self.wants, strict=True):
            fetched.name = want.name  # as it was when it began to wait, whatever became of the topic
        return look(node, call, request, asked, again=True)

    def answer(self) -> list[Part]:
        """What the last look has found; of a session what its client does not know."""
        titles = self.octets
        if self.session is not None:
            names, self.topics, self.wants = self.session.tell(self.wants, self.version >= IDS_SINCE)
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
        at = plain_bytes.put_uvarint(out, 15, len(self.topics) + 1)
        number = cut = 0
        for start, stop, partitions in self.topics:
            raw.copy(out, at, titles, start, stop - start)
            at = plain_bytes.put_uvarint(out, at + stop - start, partitions + 1)
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
        """Index, no error, offsets, nothing aborted, no better place to read, and how many bytes of records follow."""
        raw.put_int32(out, at, want.index)
        out[at + 4] = 0  # type: ignore[index]
        out[at + 5] = 0  # type: ignore[index]
        raw.put_int64(out, at + 6, want.high_watermark)
        raw.put_int64(out, at + 14, want.last_stable_offset)
        raw.put_int64(out, at + 22, want.log_start_offset)
        out[at + 30] = 1 if self.committed else 0  # type: ignore[index]
        raw.put_int32(out, at + 31, -1)
        return plain_bytes.put_uvarint(out, at + 35, 1 if want.records is None else want.records.size + 1)
