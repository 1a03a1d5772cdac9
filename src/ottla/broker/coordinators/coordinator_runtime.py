"""The runtime of a coordinator: one state machine, a shard, for each partition of an internal topic that this broker leads.

                                    ┌── short log: at once ──────────────────────┐
    first request, or elected ──► load                                           ├──► active ──► retired
                                    └── long log: on a disk thread; requests get ┘      ▲  │
                                        COORDINATOR_LOAD_IN_PROGRESS                    │  └── an append failed: the state is
                                                                                        └───── built again from the log

A group or a transactional id belongs to the partition that the Java hash of its name selects, and the leader of that partition is its
coordinator. A broker that is no coordinator answers NOT_COORDINATOR, and the client sends FindCoordinator again. The leadership may
end while a log is read; the result of that read is discarded, because another leader may have written to the log or truncated it.

Apache Kafka has the same split: CoordinatorRuntime loads and unloads partitions, appends records and completes responses, and a
CoordinatorShard (GroupCoordinatorShard) only decides and replays. Here `state_machines.runtime.Runtime` runs one shard over one log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from typing import Any, Generic, TypeVar

from msgspec import Struct, field

from ottla.broker.coordinators.commitment import Commitment, ensure_may_append
from ottla.broker.event_loop.disk import Disk
from ottla.broker.event_loop.timers import Timers
from ottla.broker.metadata.topics import Topics, find_partition_of_key
from ottla.broker.replica_manager.partition import Partition
from ottla.broker.replica_manager.partitions import Partitions
from ottla.broker.state_machines.alarms import Alarms
from ottla.broker.state_machines.runtime import Coding, Hooks, Runtime
from ottla.clock import Clock
from ottla.coordination.cluster.topic import ClusterTopic
from ottla.coordination.machine import Machine
from ottla.errors import ErrorCode, KafkaError
from ottla.model import TopicPartition
from ottla.protocol.messages.create_topics import CreatableTopicResult
from ottla.storage.batches.damage import OutOfServiceError

log = logging.getLogger(__name__)
M = TypeVar("M", bound=Machine[Any, Any])

LONG_LOG_BYTES = 4 * 1024 * 1024
"""A log of this size or larger is read on a disk thread, because the event loop would be blocked for too long."""


class CoordinatorContext(Struct, frozen=True):
    """The parts of a broker that its coordinators use."""

    topics: Topics
    partitions: Partitions
    clock: Clock
    timers: Timers
    disk: Disk
    commitment: Commitment
    on_append: Callable[[Partition, int], None]
    """Called with the partition and the size in bytes after records were appended."""
    ensure_topic: Callable[[str], ClusterTopic | CreatableTopicResult]
    """Return the topic of that name, created if missing; or the result that says why it does not exist yet."""
    take_out_of_service: Callable[[Partition, OutOfServiceError], KafkaError]
    """Take a partition out of service whose log cannot be read, and return the error for the client."""


class CoordinatorListener(Generic[M]):
    """The callbacks of a CoordinatorRuntime to the coordinator that it serves. By default they do nothing."""

    def on_loaded(self, partition: Partition, runtime: Runtime[M]) -> None:
        """Handle a shard that was built from its log. If this raises KafkaError, the shard is loaded again at the next request."""

    def on_rebuilt(self, runtime: Runtime[M]) -> None:
        """Handle a state that was built again from the log after a failed append; timers and waiting requests are lost."""

    def on_timer(self, runtime: Runtime[M], name: Hashable) -> None:
        """Handle an expired timer of the shard."""

    def on_note(self, note: Any) -> None:
        """Handle a note of the shard on an event; a note has a text."""


class CoordinatorLoadInProgressError(KafkaError):
    """The log of the partition is still being read."""

    def __init__(self, partition: Partition) -> None:
        super().__init__(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{partition.topic_partition} is still being loaded")


class Load(Struct, eq=False):
    """One read of a long log on a disk thread, and what happened to the partition meanwhile."""

    events: list[Callable[[int], Any]] = field(default_factory=list)
    """Events to decide once the shard is loaded."""
    ended_transactions: list[tuple[int, bool]] = field(default_factory=list)
    """The producer id of each end marker appended meanwhile, and True for a commit. The read may have missed the marker."""


class CoordinatorRuntime(Generic[M]):
    """The shards of one coordinator."""

    def __init__(
        self,
        topic: str,
        new_shard: Callable[[], M],
        coding: Coding,
        listener: CoordinatorListener[M],
        context: CoordinatorContext,
    ) -> None:
        self._topic = topic
        self._new_shard = new_shard
        self._coding = coding
        self._listener = listener
        self._context = context
        self._topics = context.topics
        self._partitions = context.partitions
        self._active: dict[Partition, Runtime[M]] = {}
        self._loads: dict[Partition, Load] = {}

    def find_partition(self, key: str) -> Partition | None:
        """Return the partition that stores a group or transactional id; None if the internal topic does not exist.

        Raise KafkaError(NOT_COORDINATOR) if another broker leads the partition.
        """
        topic = self._topics.find_by_name(self._topic)
        if topic is None:
            return None
        topic_partition = find_partition_of_key(topic, key)
        partition = self._partitions.find(*topic_partition)
        if partition is None or not partition.leads:
            raise not_coordinator(topic_partition)
        return partition

    def ensure_topic(self) -> None:
        """Create the internal topic if it is missing. Raise KafkaError if it cannot be used yet."""
        if self._topics.find_by_name(self._topic) is not None:
            return
        result = self._context.ensure_topic(self._topic)
        if self._topics.find_by_name(self._topic) is not None:
            return
        error = f"{self._topic} cannot be created: {getattr(result, 'error_message', None)}"
        if getattr(result, "error_code", None) == ErrorCode.UNKNOWN_SERVER_ERROR:
            raise OutOfServiceError(error)
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error)

    def find(self, key: str) -> Runtime[M] | None:
        """Return the loaded shard of a group or transactional id; None if the internal topic does not exist.

        Raise KafkaError if the shard is on another broker, is being loaded, or is out of service.
        """
        partition = self.find_partition(key)
        return None if partition is None else self._active.get(partition) or self.load(partition)

    def find_fault(self, key: str) -> OutOfServiceError | None:
        """Return the damage that keeps a group or transactional id out of service until an operator repairs it."""
        try:
            self.find(key)
        except OutOfServiceError as error:
            return error
        except KafkaError:
            return None  # may be over when the client sends its request
        return None

    def load(self, partition: Partition) -> Runtime[M]:
        """Return the shard of a partition. Build it from the log if it is not active.

        Raise CoordinatorLoadInProgressError while a long log is read on a disk thread, OutOfServiceError if the log is damaged.
        """
        runtime = self._active.get(partition)
        if runtime is not None:
            return runtime
        if partition.fault is not None:
            raise partition.fault
        if partition.log.size_bytes >= LONG_LOG_BYTES:
            self._load_on_disk_thread(partition)
            raise CoordinatorLoadInProgressError(partition)
        try:
            runtime = self._build(partition)
        except OutOfServiceError as error:
            raise self._context.take_out_of_service(partition, error) from None
        self._activate(partition, runtime)
        return runtime

    def load_elected(self, partition: Partition) -> None:
        """Load a partition that this broker leads now, unless it is empty. Errors are reported at the next request."""
        with suppress(CoordinatorLoadInProgressError, OutOfServiceError):
            if self._has_records(partition):
                self.load(partition)

    def find_active(self, partition: Partition) -> Runtime[M] | None:
        """Return the shard of a partition if it is in memory."""
        return self._active.get(partition)

    def all_active(self) -> list[tuple[Partition, Runtime[M]]]:
        """Return the shards that are in memory; nothing is loaded for this."""
        return list(self._active.items())

    def stored_partitions(self) -> Iterator[Partition]:
        """Yield the partitions that have records and are led by this broker."""
        topic = self._topics.find_by_name(self._topic)
        for index in range(len(topic.partitions) if topic else 0):
            partition = self._partitions.find(self._topic, index)
            if partition is not None and partition.leads and self._has_records(partition):
                yield partition

    def stored_shards(self) -> Iterator[M]:
        """Yield every shard that has records, except those out of service. Raise KafkaError if one is being loaded."""
        for partition in self.stored_partitions():
            with suppress(OutOfServiceError):
                yield self.load(partition).machine

    def write_all(self, event: Callable[[int], Any]) -> list[tuple[Partition, Any]]:
        """Decide an event on every shard that has records, and return the replies.

        Shards out of service or being loaded are skipped. An error of one partition is logged and does not affect the others.
        """
        replies = []
        for partition in self.stored_partitions():
            try:
                replies.append((partition, self.load(partition).submit(event)))
            except (CoordinatorLoadInProgressError, OutOfServiceError):
                pass  # reported elsewhere
            except KafkaError as error:
                log.error("a write to every partition failed partition=%s error=%s", partition.topic_partition, error)
        return replies

    def write_when_loaded(self, event: Callable[[int], Any]) -> None:
        """Decide an event, after the load, on the shards that are being loaded."""
        for load in self._loads.values():
            load.events.append(event)

    def replay_transaction_end(self, partition: Partition, producer_id: int, *, commit: bool) -> None:
        """Replay an end marker that was appended to a partition: its pending records become valid, or are dropped."""
        runtime = self._active.get(partition)
        if runtime is not None:
            runtime.apply_transaction_end(producer_id, commit=commit)
        elif (load := self._loads.get(partition)) is not None:
            load.ended_transactions.append((producer_id, commit))

    def is_loading(self, partition: Partition) -> bool:
        return partition in self._loads

    def relocate(self, partition: Partition) -> None:
        """Use the log that the partition has now, in another directory."""
        runtime = self._active.get(partition)
        if runtime is not None:
            runtime.log = partition.log

    def retire(self, partition: Partition) -> None:
        """Drop the shard of a partition that another broker leads now, and the result of a load that is not finished."""
        self._retire(partition, not_coordinator(partition.topic_partition))

    def retire_all(self) -> None:
        """Drop all shards, because the internal topic was deleted."""
        error = KafkaError(ErrorCode.NOT_COORDINATOR, f"{self._topic} has been deleted")
        for partition in [*self._active, *self._loads]:
            self._retire(partition, error)

    def _retire(self, partition: Partition, error: KafkaError) -> None:
        self._loads.pop(partition, None)
        runtime = self._active.pop(partition, None)
        if runtime is not None:
            runtime.retire(error)

    def _has_records(self, partition: Partition) -> bool:
        try:
            return partition in self._active or bool(partition.log.end_offset)
        except KafkaError as error:  # the other partitions stay usable
            self._partitions.complaints.log(f"{partition.topic_partition}: {error}")
            return False

    def _load_on_disk_thread(self, partition: Partition) -> None:
        """Read a long log. Until it is loaded only end markers are appended to it."""
        if partition in self._loads:
            return
        load = self._loads[partition] = Load()
        built: list[Runtime[M]] = []

        def on_done(error: BaseException | None) -> None:
            if self._loads.get(partition) is not load:
                return  # the leadership ended meanwhile, and the log may have changed
            del self._loads[partition]
            if isinstance(error, OutOfServiceError):
                self._context.take_out_of_service(partition, error)
            elif error is not None:
                log.error("loading failed partition=%s error=%s", partition.topic_partition, error)
            elif self._partitions.find(*partition.topic_partition) is partition:
                self._activate_loaded(partition, built[0], load)

        self._context.disk.submit(lambda: built.append(self._build(partition)), on_done)

    def _activate_loaded(self, partition: Partition, runtime: Runtime[M], load: Load) -> None:
        # A marker that the read has seen is replayed twice. No request was answered in between, so this is harmless.
        for producer_id, commit in load.ended_transactions:
            runtime.apply_transaction_end(producer_id, commit=commit)
        try:
            self._activate(partition, runtime)
            for event in load.events:
                runtime.submit(event)
        except KafkaError as error:  # loaded again at the next request
            log.error("loading failed partition=%s error=%s", partition.topic_partition, error)

    def _activate(self, partition: Partition, runtime: Runtime[M]) -> None:
        for deleted in [each for each, active in self._active.items() if active.log.closed]:  # its topic was deleted
            del self._active[deleted]
        self._active[partition] = runtime
        try:
            self._listener.on_loaded(partition, runtime)
        except KafkaError:
            self._active.pop(partition, None)
            raise

    def _build(self, partition: Partition) -> Runtime[M]:
        """Build a shard from its log; runs on a disk thread if the log is long."""
        context, listener = self._context, self._listener

        def on_timer(name: Hashable) -> None:
            if runtime.log.closed:  # its topic was deleted
                self._active.pop(partition, None)
                return
            try:
                listener.on_timer(runtime, name)
            except KafkaError as error:
                log.error("a timer's event failed partition=%s error=%s", partition.topic_partition, error)

        runtime = Runtime(
            self._new_shard,
            partition.log,
            self._coding,
            context.clock,
            hooks=Hooks(
                on_append=lambda size: context.on_append(partition, size),
                on_note=listener.on_note,
                on_rebuilt=lambda: listener.on_rebuilt(runtime),
                ensure_may_append=lambda: ensure_may_append(partition),
                hold=lambda release: context.commitment.hold(partition, release),
                alarms=Alarms(context.timers, on_timer),
            ),
            leader_epoch=lambda: partition.leader_epoch,
        )
        return runtime


def not_coordinator(partition: TopicPartition) -> KafkaError:
    return KafkaError(ErrorCode.NOT_COORDINATOR, f"another broker leads {partition}")
