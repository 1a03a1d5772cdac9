"""Mistakes that the shells of share groups can make, each to be planted and found by the histories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from ottla.broker.coordinators import share_persister
from ottla.broker.coordinators.coordinator_runtime import CoordinatorRuntime
from ottla.broker.coordinators.share_coordinator import ReadState, StateResult
from ottla.broker.coordinators.share_persister import SharePersister
from ottla.broker.share.led_share_partition import LedSharePartition
from ottla.broker.share.share_partition_manager import SharePartitionManager
from ottla.broker.state_machines.runtime import Runtime
from ottla.coordination.share.events import DeadLetters
from ottla.coordination.share.record_state import RecordState
from ottla.coordination.share.share_state import SharePartitionKey
from ottla.coordination.share.state_batches import PersisterStateBatch
from ottla.errors import ErrorCode

Plant = Callable[[pytest.MonkeyPatch], None]


def releases_the_records_of_all_members(patch: pytest.MonkeyPatch) -> None:
    """A record is acquired by two members: a session that closes frees the records of the others, too."""
    release = LedSharePartition.release_member

    def release_all(self: LedSharePartition, member_id: str, on_code: Callable[[int], None]) -> None:
        release(self, member_id, on_code)
        if self.is_ready:
            self.expire_all_locks()

    patch.setattr(LedSharePartition, "release_member", release_all)


def starts_after_the_last_known_record(patch: pytest.MonkeyPatch) -> None:
    """A record is forgotten after a failover: the new leader starts after the last record with a state."""
    handle = LedSharePartition._handle_state

    def skip(self: LedSharePartition, result: StateResult) -> None:
        if result.batches:
            result = replace(result, start_offset=result.batches[-1].last_offset + 1, batches=())
        handle(self, result)

    patch.setattr(LedSharePartition, "_handle_state", skip)


def answers_before_the_replicas_have_the_state(patch: pytest.MonkeyPatch) -> None:
    """An accepted record is delivered again: the coordinator's next leader does not have the write."""
    deliver = Runtime._deliver

    def deliver_at_once(self: Runtime[Any], replies: Sequence[Any], ticket: int, later: Any) -> Any:
        hooks, self._hooks = self._hooks, replace(self._hooks, hold=lambda release: False)
        try:
            return deliver(self, replies, ticket, later)
        finally:
            self._hooks = hooks

    patch.setattr(Runtime, "_deliver", deliver_at_once)


def takes_a_lost_response_for_a_success(patch: pytest.MonkeyPatch) -> None:
    """An accepted record is delivered again: the write has not reached the coordinator."""
    finish = SharePersister._finish

    def accept(self: SharePersister, pending: Any, result: StateResult) -> None:
        is_lost = result.error == ErrorCode.NETWORK_EXCEPTION and not isinstance(pending.operation, ReadState)
        finish(self, pending, StateResult() if is_lost else result)

    patch.setattr(SharePersister, "_finish", accept)


def drops_delivery_counts_of_a_remote_state(patch: pytest.MonkeyPatch) -> None:
    """A delivery count is lost: the response of another broker is read without it."""
    result_in = share_persister.result_in

    def drop(partition: Any) -> StateResult:
        result = result_in(partition)
        batches = tuple(
            PersisterStateBatch(*each[:3], 0) if each.state == RecordState.AVAILABLE else each
            for each in result.batches
        )
        return replace(result, batches=batches)

    patch.setattr(share_persister, "result_in", drop)


def sets_no_timer_for_locks(patch: pytest.MonkeyPatch) -> None:
    """The window leaks: the records of a member that died are never available again."""
    patch.setattr(LedSharePartition, "_set_timer", lambda self: None)


def forgets_finished_copies(patch: pytest.MonkeyPatch) -> None:
    """The window leaks: records that were copied to the dead letter queue are not archived."""

    def forget(self: LedSharePartition, letters: DeadLetters) -> None: ...

    patch.setattr(LedSharePartition, "_handle_copied", forget)


def keeps_the_shard_of_a_lost_partition(patch: pytest.MonkeyPatch) -> None:
    """The coordinator continues with its old state when it leads the partition of the states again."""
    patch.setattr(CoordinatorRuntime, "retire", lambda self, partition: None)


def keeps_share_partitions_of_a_lost_partition(patch: pytest.MonkeyPatch) -> None:
    """A broker that leads the partition again continues with what it knew in an earlier leader epoch, and is fenced for ever."""
    find = SharePartitionManager.find

    def find_stale(self: SharePartitionManager, group_id: str, place: Any) -> LedSharePartition | int:
        found = find(self, group_id, place)
        key = SharePartitionKey(group_id, *place)
        if isinstance(found, int):
            return found
        kept = self.__dict__.setdefault("kept", {})
        return kept.setdefault(key, found)  # type: ignore[no-any-return]

    patch.setattr(SharePartitionManager, "find", find_stale)


def starts_every_group_at_the_end(patch: pytest.MonkeyPatch) -> None:
    """A record is forgotten: a state without a start offset is taken for a new group at each leader."""
    handle = LedSharePartition._handle_state

    def reset(self: LedSharePartition, result: StateResult) -> None:
        if not result.error and not result.batches:
            result = replace(result, start_offset=self.partition.log.high_watermark)
        handle(self, result)

    patch.setattr(LedSharePartition, "_handle_state", reset)


PLANTED: dict[Plant, int] = {
    releases_the_records_of_all_members: 0,
    starts_after_the_last_known_record: 0,
    answers_before_the_replicas_have_the_state: 0,
    takes_a_lost_response_for_a_success: 0,
    drops_delivery_counts_of_a_remote_state: 0,
    sets_no_timer_for_locks: 0,
    forgets_finished_copies: 0,
    keeps_the_shard_of_a_lost_partition: 8,
    keeps_share_partitions_of_a_lost_partition: 2,
    starts_every_group_at_the_end: 1,
}
"""And a seed at which it was found, to be tried first."""
