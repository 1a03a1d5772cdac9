"""Fetch as consumers that keep no session send it: read straight from the bytes of its frame, and answered in bytes.

    frame ──► header ──► topics ──► partitions ──► all of it usual? ──► a look at the logs ──► the answer's bytes
                                                     └ else the handler takes it, and nothing was done yet

What a Fetch means stands in `handlers/fetch.py` and `partitions/partition_reader.py`; whatever has something to tell that is no record
is told there. The one rule: a look changes nothing, so that at any look, the first or one after a wait, the handler may be asked instead.
"""

from __future__ import annotations

from ottla.broker import plain_bytes
from ottla.broker.handlers.fetch import READ_COMMITTED, FullFetch, look
from ottla.broker.node import BrokerNode
from ottla.broker.partitions.partition import Partition
from ottla.broker.requests.call import Call, Outcome
from ottla.broker.requests.connection import Connection
from ottla.broker.requests.reading import read_request
from ottla.errors import CorruptRecordError, KafkaError
from ottla.model import FileSlice, Part
from ottla.protocol.codec import uuid_of
from ottla.protocol.messages.fetch import FetchRequest
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

    __slots__ = ("data", "end", "index", "leader_epoch", "limit", "name", "offset", "stable", "start", "topic_id")

    def __init__(self, name: str, topic_id: bytes, index: int, leader_epoch: int, offset: int, limit: int) -> None:
        self.name = name
        self.topic_id = topic_id
        """Empty where it is asked for by name."""
        self.index = index
        self.leader_epoch = leader_epoch
        self.offset = offset
        self.limit = limit
        self.start = self.stable = self.end = 0
        """Offsets of its log at the last look: its beginning, and up to where it is settled and committed."""
        self.data: FileSlice | None = None
        """Records that were found."""


class PlainFetch:
    """One request: what it asks for, and what the last look has found."""

    __slots__ = (
        "body",
        "committed",
        "correlation_id",
        "end",
        "max_bytes",
        "max_wait_ms",
        "min_bytes",
        "octets",
        "position",
        "read_from",
        "size",
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
        self.committed = False
        self.topics: list[tuple[int, int, int]] = []
        """From where to where a topic's name or id lies in the frame, and how many partitions follow."""
        self.wants: list[Want] = []
        self.read_from: list[Partition] = []

    def read(self, node: BrokerNode) -> bool:
        """Whether it is as usual in all that it says: of a consumer, without a session, for topics that there are."""
        if not self.read_header() or not self.read_limits():
            return False
        topics = self.uvarint()
        if topics < 2:
            return False
        for _ in range(topics - 1):
            if not self.read_topic(node):
                return False
        return self.forgets_nothing() and len({want.name for want in self.wants}) == topics - 1

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
        """What stands before the topics: who asks, which is a consumer, how long and how much, and that there is no session."""
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
        return raw.int32(octets, at + 13) == 0 and raw.int32(octets, at + 17) == -1

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
        self.read_from = []
        try:
            for want in self.wants:
                partition = node.partitions.find(want.name, want.index)
                if partition is None or not self.finds(partition, want, left):
                    return False
                if want.data is not None:
                    size = want.data.size
                    self.size += size
                    left -= size
                self.read_from.append(partition)
        except (KafkaError, CorruptRecordError):
            return False
        return True

    def finds(self, partition: Partition, want: Want, left: int) -> bool:
        """Read one partition, as `PartitionReader` does where nothing is the matter."""
        log = partition.opened_log
        if log is None or partition.leadership is not None or not partition.leads:
            return False
        if want.leader_epoch >= 0 and want.leader_epoch != partition.leader_epoch:
            return False
        if want.topic_id and partition.topic_id.bytes != want.topic_id:
            return False
        want.data = None
        want.stable = log.last_stable_offset
        offset = want.offset
        end = want.stable if self.committed else log.high_watermark
        if offset != end and (left > 0 or not self.size):
            limit = max(0, min(want.limit, left))
            if self.committed:
                want.data, aborted = log.read_committed(offset, limit, min_one=not self.size)
                if aborted:
                    return False
            else:
                want.data = log.read(offset, limit, min_one=not self.size, up_to=end)
        want.start = log.start_offset
        want.end = log.high_watermark
        return True

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

    def by_handler(self, node: BrokerNode, call: Call) -> Message | Outcome:
        """Look again as the handler does."""
        request = read_request(FetchRequest, self.version, self.view, self.body)
        asked = FullFetch(request, self.version >= IDS_SINCE)
        for fetched, want in zip(asked.partitions(), self.wants, strict=True):
            fetched.name = want.name  # as it was when it began to wait, whatever became of the topic
        return look(node, call, request, asked, again=True)

    def answer(self) -> list[Part]:
        """What the last look has found."""
        size = 25
        for start, stop, partitions in self.topics:
            size += stop - start + 6 + partitions * ANSWER_BYTES
        head = raw.allocate(size)
        out = raw.octets(head)
        view = memoryview(head)
        parts: list[Part] = []
        raw.put_int32(out, 0, self.correlation_id)
        out[4] = 0
        raw.put_int32(out, 5, 0)
        raw.put_int32(out, 9, 0)
        out[13] = out[14] = 0
        at = plain_bytes.put_uvarint(out, 15, len(self.topics) + 1)
        number = cut = 0
        for start, stop, partitions in self.topics:
            raw.copy(out, at, self.octets, start, stop - start)
            at = plain_bytes.put_uvarint(out, at + stop - start, partitions + 1)
            for _ in range(partitions):
                want = self.wants[number]
                at = self.put_partition(out, at, want)
                if want.data is not None:
                    parts.append(view[cut:at])
                    parts.append(want.data)
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
        raw.put_int64(out, at + 6, want.end)
        raw.put_int64(out, at + 14, want.stable)
        raw.put_int64(out, at + 22, want.start)
        out[at + 30] = 1 if self.committed else 0  # type: ignore[index]
        raw.put_int32(out, at + 31, -1)
        return plain_bytes.put_uvarint(out, at + 35, 1 if want.data is None else want.data.size + 1)
