"""When what a coordinator has written is committed: answers wait for that, as those to producers with acks=all do.

    decided ──► appended, replayed ──► the copies fetch it ──► high watermark beyond it ──► answered
                                   └─► another leads, or nothing for seconds ──► an error after which clients ask again

Kafka's rule for coordinators in a cluster: the state runs ahead of the high watermark, the answers do not, not even those for which
nothing was written: they may tell of what a new leader would not know. A partition without copies has nothing to wait for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ottla.broker.fetching.waiting import Waiting
from ottla.broker.machines.runtime import HandOut
from ottla.broker.partitions.leadership import Leadership, WaitingProduce
from ottla.broker.partitions.partition import Partition
from ottla.clock import Clock
from ottla.errors import ErrorCode, KafkaError, error_for

COMMIT_SECONDS = 5.0
"""Kafka's `offsets.commit.timeout.ms`, which holds for all that a coordinator of groups writes."""


def uncommitted(partition: Partition) -> tuple[Leadership, int] | None:
    """How far the high watermark of a partition has to come until all of it is committed; None where it is."""
    leadership = partition.leadership
    if leadership is None or leadership.log.high_watermark >= leadership.log.end_offset:
        return None
    return leadership, leadership.log.end_offset


def error_of(leadership: Leadership, end_offset: int) -> KafkaError | None:
    """What has become of all before `end_offset`, once the waiting is over; None where it is committed."""
    place = leadership.partition.topic_partition
    if leadership.ended:
        return KafkaError(ErrorCode.NOT_COORDINATOR, f"another broker leads {place} now")
    if leadership.log.high_watermark < end_offset:
        why = f"{place}: offset {end_offset} was not committed in time; copies lag at {leadership.log.high_watermark}"
        return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, why)
    return None


class Commitment:
    """Lets answers of coordinators wait."""

    def __init__(self, waiting: Waiting, clock: Clock) -> None:
        self._waiting = waiting
        self._clock = clock

    def hold(self, partition: Partition, hand_out: HandOut) -> bool:
        """Have `hand_out` called once all that is in the partition's log is committed; False where it is."""
        open_ = uncommitted(partition)
        if open_ is None:
            return False
        self.wait([open_], lambda: hand_out(error_of(*open_)))
        return True

    def wait(self, open_: list[tuple[Leadership, int]], over: Callable[[], None]) -> Callable[[], None]:
        """Have `over` called when all of these are settled, or it took too long; what is returned calls that off."""
        waiting = WaitingProduce(dict(open_), over)
        # Where the broker ends nobody is waited for.
        self._waiting.add(waiting, self._clock.monotonic() + (0 if self._waiting.closed else COMMIT_SECONDS))
        return partial(self._waiting.discard, waiting)


def ensure_may_append(partition: Partition) -> None:
    """KafkaError where what is appended could not be committed, or would not be this broker's to append."""
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
