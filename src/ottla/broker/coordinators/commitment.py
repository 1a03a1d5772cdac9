"""Holds the responses of coordinators until the records that they depend on are committed, as a produce with acks=all is.

    decided ──► appended, replayed ──┬─► the replicas fetch it ──► the high watermark passes it ──► response
                                     └─► another leader, or 5 s without progress ──► a retriable error

The state of a coordinator runs ahead of the high watermark; its responses do not (as in Kafka's CoordinatorRuntime). That includes
responses for which nothing was written, because they may depend on records that a new leader would not have. A partition with one
replica has nothing to wait for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ottla.broker.replica_manager.fetch_purgatory import FetchPurgatory
from ottla.broker.replica_manager.leadership import Leadership, WaitingProduce
from ottla.broker.replica_manager.partition import Partition
from ottla.broker.state_machines.runtime import Release
from ottla.clock import Clock
from ottla.errors import ErrorCode, KafkaError, error_for

COMMIT_SECONDS = 5.0
"""Kafka's `offsets.commit.timeout.ms`, the timeout of every write of a group coordinator."""


def find_uncommitted(partition: Partition) -> tuple[Leadership, int] | None:
    """Return the end offset that the high watermark of a partition has to reach; None if everything is committed."""
    leadership = partition.leadership
    if leadership is None or leadership.log.high_watermark >= leadership.log.end_offset:
        return None
    return leadership, leadership.log.end_offset


def commit_error(leadership: Leadership, end_offset: int) -> KafkaError | None:
    """Return None if everything before `end_offset` is committed, else the error; called when the wait is over."""
    place = leadership.partition.topic_partition
    if leadership.ended:
        return KafkaError(ErrorCode.NOT_COORDINATOR, f"another broker leads {place} now")
    if leadership.log.high_watermark < end_offset:
        watermark = leadership.log.high_watermark
        why = f"{place}: offset {end_offset} was not committed within {COMMIT_SECONDS} s, the high watermark is {watermark}"
        return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, why)
    return None


class Commitment:
    """Responses of coordinators that wait for the high watermark."""

    def __init__(self, waiting: FetchPurgatory, clock: Clock) -> None:
        self._waiting = waiting
        self._clock = clock

    def hold(self, partition: Partition, release: Release) -> bool:
        """Call `release` once everything in the partition's log is committed. Return False if it already is; nothing is called then."""
        pending = find_uncommitted(partition)
        if pending is None:
            return False
        self.wait([pending], lambda: release(commit_error(*pending)))
        return True

    def wait(self, pending: list[tuple[Leadership, int]], on_done: Callable[[], None]) -> Callable[[], None]:
        """Call `on_done` when all of these are committed, failed or timed out. Return a function that cancels the wait."""
        waiting = WaitingProduce(dict(pending), on_done)
        # A broker that shuts down does not wait.
        self._waiting.add(waiting, self._clock.monotonic() + (0 if self._waiting.closed else COMMIT_SECONDS))
        return partial(self._waiting.discard, waiting)


def ensure_may_append(partition: Partition) -> None:
    """Raise KafkaError if this broker does not lead the partition, or fewer than min.insync.replicas replicas are in sync."""
    if not partition.leads:
        raise KafkaError(ErrorCode.NOT_COORDINATOR, f"another broker leads {partition.topic_partition}")
    leadership = partition.leadership
    if leadership is None:
        return
    assigned = leadership.machine.assignment
    if len(assigned.in_sync) < assigned.quorum:
        found, least = len(assigned.in_sync), assigned.quorum
        text = f"{partition.topic_partition}: {found} in sync, min.insync.replicas is {least}"
        raise error_for(ErrorCode.NOT_ENOUGH_REPLICAS, text)
