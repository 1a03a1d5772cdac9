"""The share coordinator: the persisted states of share groups, stored in `__share_group_state` (KIP-932).

    leader of a partition ──Read, WriteShareGroupState──────────► shard: ShareState ──► records
    group coordinator ──Initialize, Delete, ReadSummary─────────►

`CoordinatorRuntime` loads and retires the shards; `coordination.share.share_state.ShareState` decides. Requests of this broker come from
`share_persister.py`, those of other brokers through the APIs. Apache Kafka's counterpart is ShareCoordinatorService.

The log of a shard is deleted up to the oldest snapshot that is still the newest of its partition. A state that is not
written any more would hold the log back, so it gets another snapshot once the log has grown.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec import Struct

from ottla.broker.coordinators.coordinator_runtime import CoordinatorContext, CoordinatorListener, CoordinatorRuntime
from ottla.broker.event_loop.timers import repeat
from ottla.broker.metadata.internal_topics import SHARE_GROUP_STATE
from ottla.broker.replica_manager.partition import Partition
from ottla.broker.state_machines.runtime import Coding, PendingReply, Runtime
from ottla.coordination.share.records import decode_record, encode_record
from ottla.coordination.share.share_state import (
    UNKNOWN,
    ColdSnapshotsDue,
    DeleteRequested,
    Event,
    InitializeRequested,
    KeyState,
    ReadRequested,
    SharePartitionKey,
    ShareState,
    SummaryRequested,
    TopicStatesDeleted,
    WriteRequested,
)
from ottla.coordination.share.state_batches import PersisterStateBatch
from ottla.errors import ErrorCode, KafkaError
from ottla.kafka_id import text_of
from ottla.storage.batches.damage import OutOfServiceError

log = logging.getLogger(__name__)

PRUNE_SECONDS = 300.0
"""The interval at which the logs are deleted up to the oldest snapshot that is needed; Kafka's default."""
COLD_MS = 300_000
"""The time without a write after which a state may get another snapshot."""
RECORDS_PER_STATE = 10
"""The number of records per state from which cold states get another snapshot."""


class InitializeState(NamedTuple):
    """Create the state of a partition, or start a state epoch."""

    key: SharePartitionKey
    state_epoch: int
    start_offset: int


class ReadState(NamedTuple):
    """Read the state as the leader of the partition, and fence earlier leaders."""

    key: SharePartitionKey
    leader_epoch: int


class WriteState(NamedTuple):
    """Write changed states as the leader of the partition."""

    key: SharePartitionKey
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[PersisterStateBatch, ...]


class SummarizeState(NamedTuple):
    """Read the start offset without the states of records."""

    key: SharePartitionKey


class DeleteState(NamedTuple):
    """Delete the state of a partition."""

    key: SharePartitionKey


Operation = InitializeState | ReadState | WriteState | SummarizeState | DeleteState


class StateResult(Struct, frozen=True):
    """The result of an operation. The state is set for a successful ReadState and SummarizeState."""

    error: int = ErrorCode.NONE
    state_epoch: int = UNKNOWN
    leader_epoch: int = UNKNOWN
    start_offset: int = UNKNOWN
    delivery_complete_count: int = UNKNOWN
    batches: tuple[PersisterStateBatch, ...] = ()


OnResult = Callable[[StateResult], None]
CODING = Coding(encode_record, decode_record, note_offset=ShareState.note_offset)


class ShareCoordinator(CoordinatorListener[ShareState]):
    """The states that this broker coordinates."""

    def __init__(self, updates_per_snapshot: int, context: CoordinatorContext) -> None:
        self._topics = context.topics
        self._clock = context.clock
        new_shard = lambda: ShareState(updates_per_snapshot)  # noqa: E731
        self._runtime = CoordinatorRuntime(SHARE_GROUP_STATE, new_shard, CODING, self, context)
        repeat(context.timers, context.clock, "share state pruning", self.prune, lambda: PRUNE_SECONDS)

    def submit(self, operation: Operation, on_result: OnResult) -> None:
        """Decide an operation, and call `on_result` once its records are committed; possibly within this call."""

        def later(reply: Any) -> None:
            on_result(StateResult(reply.code) if isinstance(reply, KafkaError) else result_of(operation, reply))

        try:
            self._runtime.ensure_topic()
            runtime = self._runtime.find(coordinator_key(operation.key))
            if runtime is None:
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{SHARE_GROUP_STATE} does not exist")
            reply = runtime.submit(lambda ticket: self._event(ticket, operation), later)
        except KafkaError as error:
            later(error)
            return
        if not isinstance(reply, PendingReply):
            later(reply)

    def find_fault(self, key: str) -> OutOfServiceError | None:
        """Return the damage that keeps a key out of service until an operator repairs it."""
        return self._runtime.find_fault(key)

    def drop_deleted_topics(self) -> None:
        """Delete the states of topics that are not in the metadata any more."""
        if self._topics.find_by_name(SHARE_GROUP_STATE) is None:
            self._runtime.retire_all()
            return
        for partition, runtime in self._runtime.all_active():
            try:
                self._drop_deleted_topics(runtime)
            except KafkaError as error:
                log.error("deleting states failed partition=%s error=%s", partition.topic_partition, error)

    def prune(self) -> None:
        """Delete the part of each log that no state needs."""
        for partition, runtime in self._runtime.all_active():
            try:
                self._snapshot_cold_states(partition, runtime)
                needed = runtime.machine.lowest_needed_offset
                if needed is not None and partition.log.start_offset < needed <= partition.log.high_watermark:
                    partition.log.advance_start(needed)
                    log.info("deleted old states partition=%s start=%d", partition.topic_partition, needed)
            except KafkaError as error:
                log.error("pruning failed partition=%s error=%s", partition.topic_partition, error)

    def is_loading(self, partition: Partition) -> bool:
        return self._runtime.is_loading(partition)

    def relocate(self, partition: Partition) -> None:
        """Use the log that the partition has now, in another directory."""
        self._runtime.relocate(partition)

    def retire(self, partition: Partition) -> None:
        """Drop the states of a partition that another broker leads now."""
        self._runtime.retire(partition)

    def on_loaded(self, partition: Partition, runtime: Runtime[ShareState]) -> None:
        self._drop_deleted_topics(runtime)

    def _drop_deleted_topics(self, runtime: Runtime[ShareState]) -> None:
        # A state exists only for a topic that its coordinator knew, and a later coordinator has later metadata.
        ids = {key.topic_id for key in runtime.machine.states}
        gone = frozenset(each for each in ids if self._topics.with_id(each) is None)
        if gone:
            runtime.submit(lambda ticket: TopicStatesDeleted(ticket, gone))

    def _snapshot_cold_states(self, partition: Partition, runtime: Runtime[ShareState]) -> None:
        machine, now_ms = runtime.machine, self._clock.wall_ms()
        needed = machine.lowest_needed_offset
        if needed is not None and partition.log.end_offset - needed > RECORDS_PER_STATE * len(machine.states):
            runtime.submit(lambda ticket: ColdSnapshotsDue(ticket, now_ms - COLD_MS, now_ms))

    def _event(self, ticket: int, operation: Operation) -> Event:
        key, now_ms = operation.key, self._clock.wall_ms()
        topic = self._topics.with_id(key.topic_id)
        is_known = topic is not None and key.partition < len(topic.partitions)
        match operation:
            case InitializeState(_, state_epoch, start_offset):
                return InitializeRequested(ticket, key, state_epoch, start_offset, now_ms, is_known)
            case ReadState(_, leader_epoch):
                return ReadRequested(ticket, key, leader_epoch, now_ms, is_known)
            case WriteState(_, state_epoch, leader_epoch, start_offset, count, batches):
                return WriteRequested(
                    ticket, key, state_epoch, leader_epoch, start_offset, count, batches, now_ms, is_known
                )
            case SummarizeState():
                return SummaryRequested(ticket, key, is_known)
            case DeleteState():
                return DeleteRequested(ticket, key, is_known)


@lru_cache(maxsize=1024)
def coordinator_key(key: SharePartitionKey) -> str:
    """Return the key of FindCoordinator: group, topic id and partition."""
    return f"{key.group_id}:{text_of(key.topic_id)}:{key.partition}"


def is_coordinator_key(text: str) -> bool:
    """Return True if a key of FindCoordinator has a group, a topic id and a partition."""
    parts = text.rsplit(":", 2)
    return len(parts) == 3 and all(parts) and len(parts[1]) == 22 and parts[2].isdecimal()


def result_of(operation: Operation, reply: ErrorCode | KeyState | None) -> StateResult:
    if reply is None:
        return StateResult()
    if not isinstance(reply, KeyState):
        return StateResult(reply)
    batches = reply.batches if isinstance(operation, ReadState) else ()
    return StateResult(
        ErrorCode.NONE,
        reply.state_epoch,
        reply.leader_epoch,
        reply.start_offset,
        reply.delivery_complete_count,
        batches,
    )
