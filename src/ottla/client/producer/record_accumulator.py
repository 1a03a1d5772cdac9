"""Records waiting to be sent, in a queue of batches per partition.

Pure but for its lock: decides by the time it is handed, and waits for nobody. Users' threads append, the sender drains;
one lock guards the queues, never across I/O.

Why batches. A record costs some hundred nanoseconds to append, a request tens of microseconds on each side: they are
paid once for a batch. A batch is due when it is full, when its first record has waited `linger.ms`, or when somebody
presses: flush, close, or a record that finds no memory. `ready` answers "who has something due", a broker at a time,
for a request takes along all that is there for its broker: so with a busy neighbour a batch leaves before it has
lingered.

What keeps records in order. The queue of a partition is one; the newest batch is at its back and alone is written to,
the oldest leaves first. A batch that must be sent again goes back by `order`, before all that were begun after it,
and by then those may be on their way. Two things keep them from overtaking it:

* with idempotence, the numbers: the broker takes batch n+1 of a producer only after batch n, refuses it otherwise,
  and the client holds back (`Numbering.may_drain`) until it is its turn again. Up to five batches of a partition are
  on their way at a time;
* without, muting: `max.in.flight.requests.per.connection` = 1 has the sender mute a partition while a batch of it is
  under way, and `drain` passes over it. With more than one in flight and no idempotence a retry may change places
  with what came later.

Memory is counted by batch, not by record: `batch.size` when one is begun, or what its only record needs, given back
when it has its outcome. So `buffer.memory` bounds what is queued and what is in flight together.

A flush does not wait for the queues to be empty, which with other threads sending they may never be: it notes the
number of the newest batch and waits until every batch up to that has its outcome. A split batch shares its number
with its parts.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterator
from typing import Any, Protocol

from msgspec import Struct, field

from ottla.client.metadata.cluster import Cluster
from ottla.client.producer.buffer_pool import BufferPool, Claim
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
    """Who has something to be sent to."""

    nodes: set[int] = field(default_factory=set)
    next_check: float = FOREVER
    """Seconds after which more may have become ready by waiting."""
    leaderless_partitions: set[TopicPartition] = field(default_factory=set)
    """Topics with something to send and nobody to send it to."""


class Numbering(Protocol):
    """Who numbers batches as they are sent, and holds back those whose turn it is not."""

    def may_drain(self, batch: ProducerBatch) -> bool:
        """Whether the first batch of a queue may be sent now."""
        ...

    def number(self, batch: ProducerBatch) -> None:
        """It is about to be sent."""
        ...


CLOSED = "the producer is closed, as every producer is in a forked child; make a new one"


class TopicQueues:
    """The queues of one topic, and where its records without a key go."""

    __slots__ = ("newest", "queues", "sticky")

    def __init__(self, sticky: StickyPartitioner) -> None:
        self.queues: dict[int, Queue] = {}
        self.newest: dict[int, ProducerBatch] = {}
        """The batch of each partition that was begun last; what has left its queue is full."""
        self.sticky = sticky


class RecordAccumulator:
    """Gathers records into batches, says which are due, and hands them out."""

    def __init__(
        self,
        *,
        batch_size: int,
        linger_ms: float,
        delivery_timeout_ms: float,
        retry_backoff: ExponentialBackoff,
        pool: BufferPool,
        make_builder: Callable[[int], Any],
        make_sticky: Callable[[], StickyPartitioner],
        monotonic: Callable[[], float],
        spare: SpareBuffers | None = None,
        adaptive: bool = True,
        numbering: Numbering | None = None,
        events: EventStream | None = None,
    ) -> None:
        self.pool = pool
        self.closed = False
        self.wake: Callable[[], None] = nothing
        """Told when the sender should have a look: a batch was begun."""
        self._batch_size = batch_size
        self._linger = linger_ms / 1000
        self._delivery_timeout = delivery_timeout_ms / 1000
        self._retry_backoff = retry_backoff
        self._make_builder = make_builder
        self._spare = spare or SpareBuffers(())
        self._make_sticky = make_sticky
        self._monotonic = monotonic
        self._adaptive = adaptive
        self._numbering = numbering
        self._events = events or EventStream()
        self._lock = threading.Lock()
        self._acquire, self._release = self._lock.acquire, self._lock.release
        self._topics: dict[str, TopicQueues] = {}
        self._muted: set[TopicPartition] = set()
        self._drain_starts: dict[int, int] = {}
        self._flushes = 0
        self._serial = 0
        self._outcomes = threading.Lock()
        self._incomplete: OrderedDict[int, list[ProducerBatch]] = OrderedDict()

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
        claim: Claim | None = None,
    ) -> RecordFuture | None:
        """Queue a record; a negative partition leaves the choice to the topic's sticky partitioner.

        None where a batch must be begun and there is no memory for it: the caller waits for a `claim`, and comes again
        with it. It stays the caller's, to withdraw whatever comes of this.
        """
        self._acquire()  # in `with` it is half as quick, and each record comes by here
        try:
            future = self._append_to_open(topic, partition, partitions, timestamp, key, value, headers, on_delivery)
        finally:
            self._release()
        if future is not None:
            return future
        size = max(self._batch_size, upper_bound_bytes(key, value, headers))
        if claim is None and not self.pool.allocate(size):
            return None
        begun = False
        try:
            with self._lock:
                # Another thread may have begun a batch meanwhile.
                future = self._append_to_open(topic, partition, partitions, timestamp, key, value, headers, on_delivery)
                if future is None:
                    batch = self._new_batch(topic, partition, partitions, size)
                    future = batch.try_append(timestamp, key, value, headers, on_delivery)
                    assert future is not None, "an empty batch takes any record"
                    self._enqueue(batch)
                    begun = True
                    if claim is not None:
                        claim.spent = True
                    if partition < 0:
                        self._topics[topic].sticky.appended(upper_bound_bytes(key, value, headers), partitions)
        finally:
            if claim is None and not begun:
                self.pool.deallocate(size)
        self.wake()
        return future

    def claim(self, key: bytes | None, value: bytes | None, headers: Any) -> Claim:
        """Stand in line for the memory of a batch that is begun with this record."""
        return self.pool.claim(max(self._batch_size, upper_bound_bytes(key, value, headers)))

    def sticky_partition(self, topic: str, partitions: int, size: int) -> int:
        """Where a whole batch of `size` bytes goes that may go anywhere."""
        with self._lock:
            sticky = self._state_of(topic).sticky
            partition = sticky.new_batch(partitions, False)
            sticky.appended(size, partitions)
            return partition

    def append_batch(
        self, tp: TopicPartition, payload: Buffer, count: int, claim: Claim | None = None
    ) -> ProducerBatch | None:
        """Queue a batch that is ready to travel; None where there is no memory for it, as of `append`."""
        if claim is None and not self.pool.allocate(len(payload)):
            return None
        queued = False
        try:
            with self._lock:
                if self.closed:
                    raise IllegalStateError(CLOSED)
                batch = ProducerBatch(
                    tp, self._monotonic(), len(payload), (self._next_serial(), 0), payload=payload, count=count
                )
                self._enqueue(batch)
                queued = True
                if claim is not None:
                    claim.spent = True
        finally:
            if claim is None and not queued:
                self.pool.deallocate(len(payload))
        self.wake()
        return batch

    def ready(self, cluster: Cluster, now: float) -> ReadyCheck:
        """Which brokers have a batch that is due: full, lingered, retried, or pressed by flush, close or memory."""
        check = ReadyCheck()
        with self._lock:
            pressed = self.closed or self._flushes > 0 or self.pool.queued > 0
            for topic, state in self._topics.items():
                if self._adaptive:
                    update_load(topic, state, cluster)
                for partition, queue in state.queues.items():
                    if queue:
                        self._check(TopicPartition(topic, partition), queue, cluster, now, pressed, check)
        return check

    def drain(
        self, cluster: Cluster, nodes: Collection[int], max_bytes: int, now: float
    ) -> dict[int, list[ProducerBatch]]:
        """Take at most one batch per partition and `max_bytes` per broker; each turn begins where the last one ended."""
        drained: dict[int, list[ProducerBatch]] = {}
        with self._lock:
            for node, queues in self._queues_by_node(cluster, nodes).items():
                start = self._drain_starts.get(node, 0) % len(queues)
                taken, drained[node] = 0, []
                for queue in queues[start:] + queues[:start]:
                    batch = queue[0]
                    if now < batch.retry_at or (self._numbering and not self._numbering.may_drain(batch)):
                        continue
                    taken += batch.size_bytes
                    if taken > max_bytes and drained[node]:
                        break
                    drained[node].append(take_first(queue))
                    if self._numbering:
                        self._numbering.number(batch)
                self._drain_starts[node] = start + len(drained[node])
        return drained

    def expired_batches(self, now: float) -> list[ProducerBatch]:
        """Take the queued batches whose delivery timeout has passed."""
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
        """Take everything that is queued."""
        with self._lock:
            return [take_first(queue) for queue in self._queues() for _ in range(len(queue))]

    def batches_led_by(self, cluster: Cluster, nodes: Collection[int]) -> list[ProducerBatch]:
        """Take what is queued for these brokers."""
        with self._lock:
            found = self._queues_by_node(cluster, nodes).values()
            return [take_first(queue) for queues in found for queue in queues for _ in range(len(queue))]

    def is_expired(self, batch: ProducerBatch, now: float) -> bool:
        """Whether a batch has used up its delivery timeout."""
        return now - batch.created >= self._delivery_timeout

    def next_expiry(self) -> float:
        """The first moment at which a queued batch will be expired."""
        with self._lock:
            return min((q[0].created + self._delivery_timeout for q in self._queues() if q), default=FOREVER)

    def reenqueue(self, batch: ProducerBatch, now: float) -> None:
        """Put a batch back where it was, to be sent again after its backoff."""
        batch.attempts += 1
        batch.retry_at = now + self._retry_backoff.span(batch.attempts)
        with self._lock:
            insert_in_order(self._queue_of(batch.tp), batch)

    def split_and_reenqueue(self, batch: ProducerBatch) -> list[ProducerBatch]:
        """Put a batch that the broker finds too large back as two."""
        parts = batch.split(self._make_builder)
        with self._outcomes:
            self._incomplete[batch.serial].extend(parts)
        with self._lock:
            newest = self._topics[batch.tp.topic].newest
            if newest.get(batch.tp.partition) is batch:
                del newest[batch.tp.partition]  # nobody is to hold it, and its result, but the futures
            for part in parts:
                insert_in_order(self._queue_of(batch.tp), part)
        return parts

    def mute(self, tp: TopicPartition) -> None:
        """Hand out nothing for the partition: one batch at a time keeps the order."""
        with self._lock:
            self._muted.add(tp)

    def unmute(self, tp: TopicPartition) -> None:
        with self._lock:
            self._muted.discard(tp)

    def finish(self, batch: ProducerBatch) -> None:
        """The batch has its outcome and its callbacks have run: give back the memory."""
        self.pool.deallocate(batch.reserved_bytes)
        memory = batch.release()
        if memory is not None:
            self._spare.give_back(memory)
        with self._outcomes:
            group = self._incomplete[batch.serial]
            group.remove(batch)
            if not group:
                del self._incomplete[batch.serial]

    def incomplete(self) -> list[ProducerBatch]:
        """Every batch without an outcome, queued or in flight."""
        with self._outcomes:
            return [batch for group in self._incomplete.values() for batch in group]

    def close(self) -> None:
        """Take no more records, from those who wait for memory neither; what is queued is due at once."""
        with self._lock:
            self.closed = True
        self.pool.close()

    def disown(self) -> None:
        """In a child that was forked: what is queued is the parent's to send, and nobody here will."""
        # The old locks may be held by threads that are not here.
        self._lock, self._outcomes = threading.Lock(), threading.Lock()
        self._acquire, self._release = self._lock.acquire, self._lock.release
        self.closed = True
        self._incomplete.clear()

    def queues(self) -> dict[TopicPartition, list[ProducerBatch]]:
        """What is queued, in its order; RuntimeError where another thread changes it meanwhile."""
        copies = [list(queue) for queue in self._queues()]
        return {copy[0].tp: copy for copy in copies if copy}

    def begin_flush(self) -> None:
        """Everything queued is due until `end_flush`."""
        with self._lock:
            self._flushes += 1

    def end_flush(self) -> None:
        with self._lock:
            self._flushes -= 1

    def flush_mark(self) -> int:
        """The number of the newest batch."""
        return self._serial

    def is_flushed(self, mark: int) -> bool:
        """Whether every batch up to `mark` has its outcome."""
        with self._outcomes:
            return next(iter(self._incomplete), mark + 1) > mark

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
        """Add a record to the batch that is being filled, if there is one and it has room."""
        if self.closed:
            raise IllegalStateError(CLOSED)
        state = self._topics.get(topic)
        if state is None:
            state = self._state_of(topic)
        if partition >= 0:
            batch = open_batch(state.newest.get(partition))
            return None if batch is None else batch.try_append(timestamp, key, value, headers, on_delivery)
        sticky = state.sticky
        batch = open_batch(state.newest.get(sticky.current(partitions)))
        future = None if batch is None else batch.try_append(timestamp, key, value, headers, on_delivery)
        if future is None:
            batch = open_batch(state.newest.get(sticky.new_batch(partitions, batch is not None)))
            future = None if batch is None else batch.try_append(timestamp, key, value, headers, on_delivery)
        if future is not None:
            sticky.appended(upper_bound_bytes(key, value, headers), partitions)
        return future

    def _new_batch(self, topic: str, partition: int, partitions: int, reserved: int) -> ProducerBatch:
        if partition < 0:
            partition = self._topics[topic].sticky.current(partitions)
        builder = self._make_builder(self._batch_size)
        order = (self._next_serial(), 0)
        return ProducerBatch(TopicPartition(topic, partition), self._monotonic(), reserved, order, builder=builder)

    def _next_serial(self) -> int:
        self._serial += 1
        return self._serial

    def _enqueue(self, batch: ProducerBatch) -> None:
        with self._outcomes:
            self._incomplete[batch.serial] = [batch]
        if self._events.active:
            self._events.tell_facts(BEGUN, tuple(batch.tp))
        self._queue_of(batch.tp).append(batch)
        self._topics[batch.tp.topic].newest[batch.tp.partition] = batch

    def _queue_of(self, tp: TopicPartition) -> Queue:
        return self._state_of(tp.topic).queues.setdefault(tp.partition, deque())

    def _state_of(self, topic: str) -> TopicQueues:
        state = self._topics.get(topic)
        if state is None:
            state = self._topics[topic] = TopicQueues(self._make_sticky())
        return state

    def _queues(self) -> Iterator[Queue]:
        return (queue for state in self._topics.values() for queue in state.queues.values())

    def _check(
        self, tp: TopicPartition, queue: Queue, cluster: Cluster, now: float, pressed: bool, check: ReadyCheck
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
        elif pressed or batch.attempts or batch.full or len(queue) > 1 or waited >= self._linger:
            check.nodes.add(leader.node_id)
        else:
            check.next_check = min(check.next_check, self._linger - waited)

    def _queues_by_node(self, cluster: Cluster, nodes: Collection[int]) -> dict[int, list[Queue]]:
        found: dict[int, list[Queue]] = {}
        for topic, state in self._topics.items():
            for partition, queue in state.queues.items():
                tp = TopicPartition(topic, partition)
                leader = cluster.leader(tp) if queue and tp not in self._muted else None
                if leader is not None and leader.node_id in nodes:
                    found.setdefault(leader.node_id, []).append(queue)
        return found


def nothing() -> None:
    """Nobody listens yet."""


def open_batch(newest: ProducerBatch | None) -> ProducerBatch | None:
    """The batch that is being filled, if there is one."""
    return None if newest is None or newest.full else newest


def take_first(queue: Queue) -> ProducerBatch:
    """Take the first batch out of its queue: nothing is added to it from here on."""
    batch = queue.popleft()
    batch.full = True
    return batch


def insert_in_order(queue: Queue, batch: ProducerBatch) -> None:
    """Put a batch before those that were begun after it."""
    place = 0
    while place < len(queue) and queue[place].order < batch.order:
        place += 1
    queue.insert(place, batch)


def update_load(topic: str, state: TopicQueues, cluster: Cluster) -> None:
    """Tell the sticky partitioner how long each led partition's queue is."""
    info = cluster.topics.get(topic)
    if info is None:
        return
    choices = [p.partition for p in info.partitions if p.leader in cluster.nodes]
    sizes = [len(state.queues.get(choice, ())) for choice in choices]
    state.sticky.update_load(choices, sizes, len(info.partitions))
