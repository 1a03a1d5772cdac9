"""Records waiting to be sent, in a queue of batches per partition, after Kafka's `RecordAccumulator`.

Time is an argument and nothing here waits; the only side effects are locks. Users' threads append records, the sender
takes batches; one lock guards the queues and is never held during I/O.

Batches. Appending a record takes some hundred nanoseconds, a request tens of microseconds on each side: that price is
paid once per batch. A batch is due when it is full, when its first record has waited `linger.ms`, or during a flush, a
close, or a wait for memory. `ready` returns the brokers that have a due batch; a request takes all batches of its
broker, so that a batch may leave before it has lingered.

Order. Each partition has one queue. Only the newest batch, at its end, is appended to; the oldest leaves first. A batch
that is retried is inserted by `order`, before all that were started after it, some of which may be in flight already.
Two mechanisms keep those from overtaking it:

* With idempotence, sequence numbers: the broker accepts batch n+1 of a producer only after batch n, and the client
  holds later batches back (`SequenceNumbers.can_drain`). Up to five batches of a partition are in flight at a time.
* Without it, muting: with `max.in.flight.requests.per.connection` = 1 the sender mutes a partition while a batch of it
  is in flight, and `drain` skips it. With more requests in flight a retry may be written after later batches.

Memory is reserved per batch, not per record: `batch.size` bytes when it is started, or the size of a single larger
record, returned when the batch has its result. With `incremental` allocation (KIP-1332) a batch reserves chunks as it grows, and is
closed if there is no memory for the next one. So `buffer.memory` bounds queued and in-flight batches together.

A flush does not wait for empty queues, which other threads may keep filling: it reads the number of the newest batch
and waits until every batch up to that has its result. A split batch shares its number with its parts.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterator
from typing import Any, Protocol

from msgspec import Struct, field

from ottla.client.metadata.metadata_snapshot import KnownTopic, MetadataSnapshot
from ottla.client.producer.buffer_pool import BufferPool, MemoryClaim
from ottla.client.producer.events import BEGUN
from ottla.client.producer.future import RecordFuture
from ottla.client.producer.partitioner import StickyPartitioner
from ottla.client.producer.produce_request_result import OnDelivery
from ottla.client.producer.producer_batch import ProducerBatch, upper_bound_bytes
from ottla.client.producer.spare_buffers import SpareBuffers
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.errors import IllegalStateError
from ottla.model import FOREVER, Buffer, TopicPartition
from ottla.trace import EventStream

Queue = deque[ProducerBatch]


class ReadyCheck(Struct):
    """The brokers with due batches, and when to check again."""

    nodes: set[int] = field(default_factory=set)
    next_check: float = FOREVER
    """Seconds until more batches may be due."""
    leaderless_partitions: set[TopicPartition] = field(default_factory=set)
    """Partitions that have batches and no known leader."""


class SequenceNumbers(Protocol):
    """Assigns sequence numbers to batches, and holds back those that must wait for others."""

    def can_drain(self, batch: ProducerBatch) -> bool:
        """Return True if the first batch of a queue may be sent now."""
        ...

    def assign_sequence(self, batch: ProducerBatch) -> None:
        """Assign the sequence number of a batch that is about to be sent."""
        ...


CLOSED = "the producer is closed, as every producer is in a forked child; make a new one"


class TopicQueues:
    """The batches of one topic's partitions, and the partitioner for its records without a key."""

    __slots__ = ("_newest", "_queues", "_rack", "sticky")

    def __init__(self, sticky: StickyPartitioner, rack: str = "") -> None:
        self.sticky = sticky
        self._rack = rack
        """The rack of the preferred leaders; empty if there is none."""
        self._queues: dict[int, Queue] = {}
        self._newest: dict[int, ProducerBatch] = {}
        """The last started batch of each partition; one that has left its queue is marked as full."""

    def open_batch(self, partition: int) -> ProducerBatch | None:
        """Return the batch that records of a partition are appended to, or None."""
        batch: ProducerBatch | None = self._newest.get(partition)
        return None if batch is None or batch.full else batch

    def add_batch(self, batch: ProducerBatch) -> None:
        """Append a new batch to its queue."""
        partition = batch.tp.partition
        self._queues.setdefault(partition, deque()).append(batch)
        self._newest[partition] = batch

    def requeue_batch(self, batch: ProducerBatch) -> None:
        """Insert a batch before those that were started after it."""
        queue = self._queues.setdefault(batch.tp.partition, deque())
        place = 0
        while place < len(queue) and queue[place].order < batch.order:
            place += 1
        queue.insert(place, batch)

    def remove_batch(self, batch: ProducerBatch) -> None:
        """Drop the reference to a batch that was split: only the futures keep its result alive."""
        if self._newest.get(batch.tp.partition) is batch:
            del self._newest[batch.tp.partition]

    def items(self) -> Iterator[tuple[int, Queue]]:
        """Yield each partition that has had batches, with its queue."""
        return iter(self._queues.items())

    def update_load(self, topic: KnownTopic, cluster: MetadataSnapshot, adaptive: bool = True) -> None:
        """Pass the partitions with a leader, and their queue lengths, to the sticky partitioner (KIP-794).

        Without `adaptive` the lengths make no difference. Leaders in the preferred rack exclude others (KIP-1123).
        """
        led = [p for p in topic.partitions if p.leader in cluster.nodes]
        near = [p for p in led if cluster.nodes[p.leader].rack == self._rack] if self._rack else []
        choices = [p.partition for p in near or led]
        sizes = [len(self._queues.get(choice, ())) if adaptive else 0 for choice in choices]
        self.sticky.update_load(choices, sizes, len(topic.partitions))


class IncompleteBatches:
    """Every batch without a result, queued or in flight, by its number. Any thread may call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_serial: OrderedDict[int, list[ProducerBatch]] = OrderedDict()

    def add(self, batch: ProducerBatch) -> None:
        """Add a new batch; its number is higher than all others."""
        with self._lock:
            self._by_serial[batch.serial] = [batch]

    def add_parts(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Add the parts of a split batch under its number."""
        with self._lock:
            self._by_serial[batch.serial].extend(parts)

    def remove(self, batch: ProducerBatch) -> None:
        """Remove a batch that has its result."""
        with self._lock:
            group = self._by_serial[batch.serial]
            group.remove(batch)
            if not group:
                del self._by_serial[batch.serial]

    def all_batches(self) -> list[ProducerBatch]:
        """Return a copy."""
        with self._lock:
            return [batch for group in self._by_serial.values() for batch in group]

    def are_complete(self, mark: int) -> bool:
        """Return True if every batch up to the number `mark` has its result."""
        with self._lock:
            return next(iter(self._by_serial), mark + 1) > mark


class RecordAccumulator:
    """Collects records into batches, and returns the batches that are due."""

    def __init__(
        self,
        *,
        batch_size: int,
        chunk_bytes: int = 0,
        linger_ms: float,
        delivery_timeout_ms: float,
        retry_backoff: ExponentialBackoff,
        pool: BufferPool,
        make_builder: Callable[[int], Any],
        make_sticky: Callable[[], StickyPartitioner],
        monotonic: Callable[[], float],
        spare: SpareBuffers | None = None,
        adaptive: bool = True,
        rack: str = "",
        cluster: Callable[[], MetadataSnapshot] | None = None,
        numbering: SequenceNumbers | None = None,
        events: EventStream | None = None,
    ) -> None:
        self._pool = pool
        self._closed = False
        self._wake: Callable[[], None] = do_nothing
        self._batch_size = batch_size
        self._chunk_bytes = chunk_bytes
        """The step in which a batch reserves memory; 0 if it reserves all of it at its start."""
        self._linger = linger_ms / 1000
        self._delivery_timeout = delivery_timeout_ms / 1000
        self._retry_backoff = retry_backoff
        self._make_builder = make_builder
        self._spare = spare or SpareBuffers(())
        self._make_sticky = make_sticky
        self._monotonic = monotonic
        self._adaptive = adaptive
        self._rack = rack
        self._cluster = cluster
        """Returns the known cluster, for the first choice of a partition in `rack`."""
        self._numbering = numbering
        self._events = events or EventStream()
        self._lock = threading.Lock()
        self._acquire, self._release = self._lock.acquire, self._lock.release
        self._topics: dict[str, TopicQueues] = {}
        self._muted: set[TopicPartition] = set()
        self._drain_starts: dict[int, int] = {}
        self._flushes = 0
        self._serial = 0
        self._incomplete = IncompleteBatches()

    @property
    def closed(self) -> bool:
        """True if no more records are accepted."""
        return self._closed

    def set_waker(self, wake: Callable[[], None]) -> None:
        """Set the function that wakes the sender, which is made after the accumulator."""
        self._wake = wake

    def wake_sender(self) -> None:
        """Have the sender check for due batches."""
        self._wake()

    # Appending, on users' threads

    def append(
        self,
        topic: str,
        partition: int,
        partitions: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Any,
        on_delivery: OnDelivery | None = None,
        claim: MemoryClaim | None = None,
    ) -> RecordFuture | None:
        """Queue a record; with a negative partition, the topic's sticky partitioner chooses one.

        Return None if a new batch is necessary and there is no memory for it: the caller waits for a `claim`, and calls
        again with it. The caller withdraws the claim in any case.
        """
        self._acquire()  # `with` takes twice as long, and this is called for each record
        try:
            future = self._append_to_open(topic, partition, partitions, timestamp, key, value, headers, on_delivery)
        finally:
            self._release()
        if future is not None:
            return future
        size = self._first_reservation(upper_bound_bytes(key, value, headers))
        if claim is None and not self._pool.allocate(size):
            return None
        is_started = False
        try:
            with self._lock:
                # Another thread may have started a batch meanwhile.
                future = self._append_to_open(topic, partition, partitions, timestamp, key, value, headers, on_delivery)
                if future is None:
                    batch = self._new_batch(topic, partition, partitions, size)
                    future = batch.try_append(timestamp, key, value, headers, on_delivery)
                    assert future is not None, "an empty batch takes any record"
                    self._enqueue(batch)
                    is_started = True
                    if claim is not None:
                        claim.spent = True
                    if partition < 0:
                        self._topics[topic].sticky.count_append(upper_bound_bytes(key, value, headers), partitions)
        finally:
            if claim is None and not is_started:
                self._pool.deallocate(size)
        self._wake()
        return future

    def claim(self, key: bytes | None, value: bytes | None, headers: Any) -> MemoryClaim:
        """Queue for the memory of a batch that starts with this record."""
        return self._pool.claim(self._first_reservation(upper_bound_bytes(key, value, headers)))

    def sticky_partition(self, topic: str, partitions: int, size: int) -> int:
        """Choose the partition for an encoded batch of `size` bytes."""
        with self._lock:
            sticky = self._state_of(topic).sticky
            partition = sticky.partition_for_batch(partitions, False)
            sticky.count_append(size, partitions)
            return partition

    def append_batch(
        self, tp: TopicPartition, payload: Buffer, count: int, claim: MemoryClaim | None = None
    ) -> ProducerBatch | None:
        """Queue an encoded batch; return None if there is no memory for it, as `append` does."""
        if claim is None and not self._pool.allocate(len(payload)):
            return None
        is_queued = False
        try:
            with self._lock:
                if self._closed:
                    raise IllegalStateError(CLOSED)
                batch = ProducerBatch(
                    tp, self._monotonic(), len(payload), (self._next_serial(), 0), payload=payload, count=count
                )
                self._enqueue(batch)
                is_queued = True
                if claim is not None:
                    claim.spent = True
        finally:
            if claim is None and not is_queued:
                self._pool.deallocate(len(payload))
        self._wake()
        return batch

    # Sending, on the sender's thread

    def ready(self, cluster: MetadataSnapshot, now: float) -> ReadyCheck:
        """Return the brokers that have a due batch: a full, lingered or retried one, or any during a flush, close or memory wait."""
        check = ReadyCheck()
        with self._lock:
            everything_is_due = self._closed or self._flushes > 0 or self._pool.queued > 0
            for topic, state in self._topics.items():
                info = cluster.topics.get(topic)
                if info is not None and (self._adaptive or self._rack):
                    state.update_load(info, cluster, self._adaptive)
                for partition, queue in state.items():
                    if queue:
                        self._check(TopicPartition(topic, partition), queue, cluster, now, everything_is_due, check)
        return check

    def drain(
        self, cluster: MetadataSnapshot, nodes: Collection[int], max_bytes: int, now: float
    ) -> dict[int, list[ProducerBatch]]:
        """Take at most one batch per partition and `max_bytes` per broker; each call starts after the last one's partitions."""
        drained: dict[int, list[ProducerBatch]] = {}
        with self._lock:
            for node, queues in self._queues_by_node(cluster, nodes).items():
                start = self._drain_starts.get(node, 0) % len(queues)
                taken, drained[node] = 0, []
                for queue in queues[start:] + queues[:start]:
                    batch = queue[0]
                    if now < batch.retry_at or (self._numbering and not self._numbering.can_drain(batch)):
                        continue
                    taken += batch.size_bytes
                    if taken > max_bytes and drained[node]:
                        break
                    drained[node].append(take_first(queue))
                    if self._numbering:
                        self._numbering.assign_sequence(batch)
                self._drain_starts[node] = start + len(drained[node])
        return drained

    def expired_batches(self, now: float) -> list[ProducerBatch]:
        """Take the queued batches that have reached their delivery timeout."""
        expired = []
        with self._lock:
            for queue in self._queues():
                while queue and self.is_expired(queue[0], now):
                    expired.append(take_first(queue))
        return expired

    def unsent_batches(self) -> list[ProducerBatch]:
        """Take the queued batches that were never sent: their transaction is being aborted."""
        unsent: list[ProducerBatch] = []
        with self._lock:
            for queue in self._queues():
                batches = [take_first(queue) for _ in range(len(queue))]
                unsent += [batch for batch in batches if not batch.has_sequence]
                queue.extend(batch for batch in batches if batch.has_sequence)
        return unsent

    def queued_batches(self) -> list[ProducerBatch]:
        """Take all queued batches."""
        with self._lock:
            return [take_first(queue) for queue in self._queues() for _ in range(len(queue))]

    def batches_led_by(self, cluster: MetadataSnapshot, nodes: Collection[int]) -> list[ProducerBatch]:
        """Take the queued batches that one of these brokers leads."""
        with self._lock:
            found = self._queues_by_node(cluster, nodes).values()
            return [take_first(queue) for queues in found for queue in queues for _ in range(len(queue))]

    def is_expired(self, batch: ProducerBatch, now: float) -> bool:
        """Return True if the delivery timeout of a batch has passed."""
        return now - batch.created >= self._delivery_timeout

    def next_expiry(self) -> float:
        """Return the first time at which a queued batch expires."""
        with self._lock:
            return min((q[0].created + self._delivery_timeout for q in self._queues() if q), default=FOREVER)

    def reenqueue(self, batch: ProducerBatch, now: float) -> None:
        """Put a batch back into its queue, to be sent again after a backoff."""
        batch.attempts += 1
        batch.retry_at = now + self._retry_backoff.span(batch.attempts)
        with self._lock:
            self._state_of(batch.tp.topic).requeue_batch(batch)

    def split_and_reenqueue(self, batch: ProducerBatch) -> list[ProducerBatch]:
        """Split a batch that is too large for the broker, and put the parts back."""
        parts = batch.split(self._make_builder)
        self._incomplete.add_parts(batch, parts)
        with self._lock:
            state = self._state_of(batch.tp.topic)
            state.remove_batch(batch)
            for part in parts:
                state.requeue_batch(part)
        return parts

    def mute(self, tp: TopicPartition) -> None:
        """Skip the partition in `ready` and `drain`: one batch in flight at a time keeps the order."""
        with self._lock:
            self._muted.add(tp)

    def unmute(self, tp: TopicPartition) -> None:
        with self._lock:
            self._muted.discard(tp)

    def finish(self, batch: ProducerBatch) -> None:
        """Return the memory of a batch after its result is set and its callbacks have run."""
        self._pool.deallocate(batch.reserved_bytes)
        memory = batch.release()
        if memory is not None:
            self._spare.return_buffer(memory)
        self._incomplete.remove(batch)

    def incomplete(self) -> list[ProducerBatch]:
        """Return every batch without a result, queued or in flight."""
        return self._incomplete.all_batches()

    def close(self) -> None:
        """Accept no more records, and end waits for memory; queued batches are due at once."""
        with self._lock:
            self._closed = True
        self._pool.close()

    def disown(self) -> None:
        """Close in a forked child: the parent sends the queued batches."""
        # The old locks may be held by threads that exist only in the parent.
        self._lock = threading.Lock()
        self._acquire, self._release = self._lock.acquire, self._lock.release
        self._closed = True
        self._incomplete = IncompleteBatches()

    def queues(self) -> dict[TopicPartition, list[ProducerBatch]]:
        """Return a copy of the queues; RuntimeError if another thread changes them meanwhile."""
        copies = [list(queue) for queue in self._queues()]
        return {copy[0].tp: copy for copy in copies if copy}

    def begin_flush(self) -> None:
        """Make all queued batches due until `end_flush`."""
        with self._lock:
            self._flushes += 1

    def end_flush(self) -> None:
        with self._lock:
            self._flushes -= 1

    def flush_mark(self) -> int:
        """Return the number of the newest batch."""
        return self._serial

    def is_flushed(self, mark: int) -> bool:
        """Return True if every batch up to `mark` has its result."""
        return self._incomplete.are_complete(mark)

    def _append_to_open(
        self,
        topic: str,
        partition: int,
        partitions: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Any,
        on_delivery: OnDelivery | None,
    ) -> RecordFuture | None:
        """Append a record to the open batch, if there is one and it has room."""
        if self._closed:
            raise IllegalStateError(CLOSED)
        state = self._topics.get(topic)
        if state is None:
            state = self._state_of(topic)
        if partition >= 0:
            batch = state.open_batch(partition)
            if batch is None or not self._extend_reservation(batch, key, value, headers):
                return None
            return batch.try_append(timestamp, key, value, headers, on_delivery)
        sticky = state.sticky
        batch = state.open_batch(sticky.current_partition(partitions))
        future = None
        if batch is not None and self._extend_reservation(batch, key, value, headers):
            future = batch.try_append(timestamp, key, value, headers, on_delivery)
        if future is None:
            batch = state.open_batch(sticky.partition_for_batch(partitions, batch is not None))
            if batch is not None and self._extend_reservation(batch, key, value, headers):
                future = batch.try_append(timestamp, key, value, headers, on_delivery)
        if future is not None:
            sticky.count_append(upper_bound_bytes(key, value, headers), partitions)
        return future

    def _first_reservation(self, record_bytes: int) -> int:
        """Return the bytes that a batch reserves at its start, if its first record has at most `record_bytes`."""
        if not self._chunk_bytes or record_bytes >= self._batch_size:
            return max(self._batch_size, record_bytes)
        return min(self._batch_size, -(-record_bytes // self._chunk_bytes) * self._chunk_bytes)

    def _extend_reservation(self, batch: ProducerBatch, key: bytes | None, value: bytes | None, headers: Any) -> bool:
        """Reserve the memory for one more record. Mark the batch as full and return False if there is none."""
        if not self._chunk_bytes:
            return True
        needed = batch.size_bytes + upper_bound_bytes(key, value, headers)
        lacking = min(self._batch_size, -(-needed // self._chunk_bytes) * self._chunk_bytes) - batch.reserved_bytes
        if lacking <= 0:
            return True
        if not self._pool.allocate(lacking):
            batch.full = True
            return False
        batch.reserved_bytes += lacking
        return True

    def _new_batch(self, topic: str, partition: int, partitions: int, reserved: int) -> ProducerBatch:
        if partition < 0:
            partition = self._topics[topic].sticky.current_partition(partitions)
        builder = self._make_builder(self._batch_size)
        order = (self._next_serial(), 0)
        return ProducerBatch(TopicPartition(topic, partition), self._monotonic(), reserved, order, builder=builder)

    def _next_serial(self) -> int:
        self._serial += 1
        return self._serial

    def _enqueue(self, batch: ProducerBatch) -> None:
        self._incomplete.add(batch)
        if self._events.active:
            self._events.publish_facts(BEGUN, tuple(batch.tp))
        self._state_of(batch.tp.topic).add_batch(batch)

    def _state_of(self, topic: str) -> TopicQueues:
        state = self._topics.get(topic)
        if state is None:
            state = self._topics[topic] = TopicQueues(self._make_sticky(), self._rack)
            if self._rack and self._cluster is not None and (info := self._cluster().topics.get(topic)) is not None:
                state.update_load(info, self._cluster(), self._adaptive)
        return state

    def _queues(self) -> Iterator[Queue]:
        return (queue for state in self._topics.values() for _, queue in state.items())

    def _check(
        self,
        tp: TopicPartition,
        queue: Queue,
        cluster: MetadataSnapshot,
        now: float,
        everything_is_due: bool,
        check: ReadyCheck,
    ) -> None:
        leader = cluster.leader(tp)
        if leader is None:
            check.leaderless_partitions.add(tp)
            return
        if tp in self._muted or leader.node_id in check.nodes:
            return
        batch = queue[0]
        waited = now - batch.created
        if now < batch.retry_at:
            check.next_check = min(check.next_check, batch.retry_at - now)
        elif everything_is_due or batch.attempts or batch.full or len(queue) > 1 or waited >= self._linger:
            check.nodes.add(leader.node_id)
        else:
            check.next_check = min(check.next_check, self._linger - waited)

    def _queues_by_node(self, cluster: MetadataSnapshot, nodes: Collection[int]) -> dict[int, list[Queue]]:
        found: dict[int, list[Queue]] = {}
        for topic, state in self._topics.items():
            for partition, queue in state.items():
                tp = TopicPartition(topic, partition)
                leader = cluster.leader(tp) if queue and tp not in self._muted else None
                if leader is not None and leader.node_id in nodes:
                    found.setdefault(leader.node_id, []).append(queue)
        return found


def do_nothing() -> None:
    """Do nothing: the waker before there is a sender."""


def take_first(queue: Queue) -> ProducerBatch:
    """Take the first batch out of its queue; no more records are appended to it."""
    batch = queue.popleft()
    batch.full = True
    return batch
