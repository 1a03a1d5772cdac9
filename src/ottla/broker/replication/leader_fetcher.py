"""Copies from one leader: all partitions that it leads and this broker follows, in one conversation.

One question is under way at a time. What came is appended in the loop, to which the logs belong; so the next question says where
they end by then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from ottla.broker.peers.loop_connection import LoopConnection, Question
from ottla.broker.replication.followed_partition import FollowedPartition
from ottla.broker.replication.throttled_copies import ThrottledCopies
from ottla.broker.timers import Timers
from ottla.clock import Clock
from ottla.coordination.quorum.observer import Address
from ottla.coordination.replication.fetch_session import FollowerSession, Place
from ottla.coordination.replication.fetched import LATER_SECONDS, Append, AskForRange, outcome_of, within_range
from ottla.errors import ErrorCode, OttlaError
from ottla.model import EARLIEST, LATEST
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, ReplicaState
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

log = logging.getLogger(__name__)
FETCH_VERSION = 17
LIST_OFFSETS_VERSION = 9
MAX_WAIT_MS = 500
"""`replica.fetch.wait.max.ms`"""
MAX_BYTES = 10 << 20
"""`replica.fetch.response.max.bytes`"""
PARTITION_BYTES = 1 << 20
"""`replica.fetch.max.bytes`"""
HELD_BACK_SECONDS = 1.0
"""After so long a throttled copy is looked at again: the throttle may be another by then."""
LOST_SECONDS = 0.2
"""Before a leader that did not answer is asked again."""
SESSION_ERRORS = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)


class Replica(NamedTuple):
    """Who fetches: one of the brokers, in this incarnation, for that directory."""

    node_id: int
    epoch: Callable[[], int]
    directory_id: UUID


class LeaderFetcher:
    """Of one leader. Belongs to the loop."""

    def __init__(
        self,
        leader: int,
        address: Callable[[int], Address | None],
        me: Replica,
        timers: Timers,
        clock: Clock,
        connection: LoopConnection,
        throttled: ThrottledCopies,
    ) -> None:
        """`address` says where a broker is by now."""
        self._throttled = throttled
        self.partitions: dict[Place, FollowedPartition] = {}
        self._leader = leader
        self._address = address
        self._me = me
        self._timers = timers
        self._clock = clock
        self._connection = connection
        self._session = FollowerSession()
        self._busy = self._closed = False
        self._silent = False

    def add(self, partition: FollowedPartition) -> None:
        """Copy one more, or the same in another epoch."""
        self.partitions[partition.place] = partition
        self._go_on()

    def remove(self, place: Place) -> None:
        self.partitions.pop(place, None)

    def close(self) -> None:
        self._closed = True
        self._connection.close()

    def _go_on(self) -> None:
        """Ask, unless an answer is awaited or there is nothing to ask."""
        if self._busy or self._closed or not self.partitions:
            return
        now = self._clock.monotonic()
        ready = self._ready(now)
        lost = [each for each in ready if each.out_of_range]
        address = self._address(self._leader)
        if address is None or not ready:
            soonest = min(each.not_before for each in self.partitions.values())
            self._again_at(max(soonest, now + (LOST_SECONDS if address is None else 0.0)))
        elif lost:
            self._ask_for_range(address, lost[0])
        else:
            self._fetch(address, ready)

    def _ready(self, now: float) -> list[FollowedPartition]:
        """What may be asked for now; copies that lag behind may be throttled."""
        for each in self.partitions.values():
            if each.lags and each.not_before <= now:
                span = self._throttled.wait(each.partition.topic_partition)
                each.not_before = now + min(span, HELD_BACK_SECONDS) if span else each.not_before
        return [each for each in self.partitions.values() if each.not_before <= now]

    def _again_at(self, moment: float) -> None:
        self._busy = True
        self._timers.at(moment, self._resume)

    def _resume(self) -> None:
        self._busy = False
        self._go_on()

    def _fetch(self, address: Address, ready: list[FollowedPartition]) -> None:
        asked = {each.place: (each, self._wanted(each)) for each in ready}
        request = FetchRequest(
            replica_state=ReplicaState(self._me.node_id, self._me.epoch()),
            max_wait_ms=MAX_WAIT_MS,
            min_bytes=1,
            max_bytes=MAX_BYTES,
        )
        self._session.fill(request, {place: wanted for place, (_, wanted) in asked.items()})
        self._busy = True
        done = lambda answer: self._fetched(asked, answer)  # noqa: E731
        self._connection.ask(Question(address, request, FETCH_VERSION, FetchResponse, done))

    def _wanted(self, each: FollowedPartition) -> FetchPartition:
        wanted = each.next_fetch()
        return FetchPartition(
            each.place.partition,
            wanted.leader_epoch,
            wanted.offset,
            wanted.last_epoch,
            each.log.start_offset,
            PARTITION_BYTES,
            self._me.directory_id,
        )

    def _fetched(
        self, asked: dict[Place, tuple[FollowedPartition, FetchPartition]], answer: FetchResponse | OttlaError
    ) -> None:
        self._busy = False
        if self._closed:
            return
        if isinstance(answer, OttlaError) or answer.error_code:
            self._lost(answer)
            return
        self._heard()
        self._session.answered(answer)
        for topic in answer.responses:
            for data in topic.partitions:
                place = Place(topic.topic_id, data.partition_index)
                each, wanted = asked.get(place, (None, None))
                # Meanwhile it may be another's to lead, or ours.
                if each is None or wanted is None or self.partitions.get(place) is not each:
                    continue
                outcome = outcome_of(data)
                if isinstance(outcome, AskForRange):
                    each.out_of_range = True
                    continue
                if isinstance(outcome, Append):
                    self._throttled.record(each.partition.topic_partition, len(outcome.records))
                each.take(outcome)
        self._go_on()

    def _ask_for_range(self, address: Address, each: FollowedPartition) -> None:
        """Where the leader's log begins, then where it ends: one question names a partition once."""
        self._busy = True
        self._ask_offset(
            address,
            each,
            EARLIEST,
            lambda start: self._ask_offset(address, each, LATEST, lambda end: self._ranged(each, start, end)),
        )

    def _ask_offset(self, address: Address, each: FollowedPartition, which: int, then: Callable[[int], None]) -> None:
        wanted = ListOffsetsPartition(each.place.partition, each.machine.leader_epoch, which)
        topic = ListOffsetsTopic(each.partition.topic_partition.topic, [wanted])
        request = ListOffsetsRequest(self._me.node_id, topics=[topic])

        def done(answer: ListOffsetsResponse | OttlaError) -> None:
            if self._closed:
                return
            topics = [] if isinstance(answer, OttlaError) else answer.topics
            found = next((data for topic in topics for data in topic.partitions), None)
            if found is None or found.error_code or found.offset < 0:
                each.wait(LATER_SECONDS, "the leader does not say where its log begins")
                self._resume()
            else:
                then(found.offset)

        self._connection.ask(Question(address, request, LIST_OFFSETS_VERSION, ListOffsetsResponse, done))

    def _ranged(self, each: FollowedPartition, start: int, end: int) -> None:
        each.out_of_range = False
        outcome = within_range(each.log.end_offset, start, end)
        if self.partitions.get(each.place) is not each:
            pass
        elif outcome is None:
            each.wait(LATER_SECONDS, "its offset was out of the leader's range, and is not any more")
        else:
            each.take(outcome)
        self._resume()

    def _lost(self, answer: FetchResponse | OttlaError) -> None:
        """The leader does not answer, or knows the session no more."""
        self._session.lost()
        if isinstance(answer, OttlaError):
            if not self._silent:
                log.warning("broker %d, whose partitions are copied here, does not answer: %s", self._leader, answer)
            self._silent = True
        elif answer.error_code in SESSION_ERRORS:
            self._go_on()
            return
        self._again_at(self._clock.monotonic() + LOST_SECONDS)

    def _heard(self) -> None:
        if self._silent:
            log.info("broker %d answers again", self._leader)
        self._silent = False
