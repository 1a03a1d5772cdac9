"""Copies from one leader: all partitions that it leads and this broker follows, in one conversation.

One question is under way at a time. What came is appended in the loop, to which the logs belong; so the next question says where
they end by then.

A broker may follow thousands, of which a few change between two questions. Only those are looked at:

    added, answered or due again ──► stirred ──► named in a question, if it is not what the leader knows ──► still
    must not be asked for yet    ──► held, and not in the session until its time has come

Whoever has no session with its leader, as at the beginning and after a lost answer, has all of them stirred. Copies that lag behind
are looked at each time, since a throttle may hold them back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from ottla.broker.peers.peer_connection import PeerConnection, Question
from ottla.broker.replication.followed_partition import FollowedPartition
from ottla.broker.replication.throttled_copies import ThrottledCopies
from ottla.broker.timers import Timers
from ottla.clock import Clock
from ottla.coordination.quorum.observer import Address
from ottla.coordination.replication.fetch_session import FollowerSession, Place
from ottla.coordination.replication.fetched import LATER_SECONDS, Append, AskForRange, outcome_of, within_range
from ottla.errors import ErrorCode, OttlaError
from ottla.model import EARLIEST, LATEST
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, PartitionData, ReplicaState
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
        connection: PeerConnection,
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
        self._stirred: dict[Place, FollowedPartition] = {}
        self._lagging: dict[Place, FollowedPartition] = {}
        self._held: dict[Place, FollowedPartition] = {}
        self._asked: dict[Place, FollowedPartition] = {}
        """Who takes what comes for a partition."""
        self._busy = self._closed = False
        self._silent = False

    def add(self, partition: FollowedPartition) -> None:
        """Copy one more, or the same in another epoch."""
        self.partitions[partition.place] = partition
        self._held.pop(partition.place, None)
        self._stir(partition)
        self._go_on()

    def remove(self, place: Place) -> None:
        self.partitions.pop(place, None)
        self._drop(place)

    def _stir(self, each: FollowedPartition) -> None:
        """Look at it before the next question."""
        self._stirred[each.place] = each
        if each.lags:
            self._lagging[each.place] = each
        else:
            self._lagging.pop(each.place, None)

    def close(self) -> None:
        self._closed = True
        self._connection.close()

    def _go_on(self) -> None:
        """Ask, unless an answer is awaited or there is nothing to ask."""
        if self._busy or self._closed or not self.partitions:
            return
        now = self._clock.monotonic()
        self._look(now)
        lost = next((each for each in self._stirred.values() if each.out_of_range), None)
        address = self._address(self._leader)
        if address is None or len(self._held) == len(self.partitions):
            soonest = min(each.not_before for each in self.partitions.values())
            self._again_at(max(soonest, now + (LOST_SECONDS if address is None else 0.0)))
        elif lost:
            self._ask_for_range(address, lost)
        else:
            self._fetch(address)

    def _look(self, now: float) -> None:
        """Let go what was held for long enough, and hold what may not be asked for now."""
        if not self._session.epoch:
            self._stirred, self._held = dict(self.partitions), {}
        for each in [each for each in self._held.values() if each.not_before <= now]:
            self._stirred[each.place] = self._held.pop(each.place)
        for each in [each for each in (self._lagging | self._stirred).values() if not self._may_ask(each, now)]:
            self._hold(each)

    def _may_ask(self, each: FollowedPartition, now: float) -> bool:
        if each.lags and each.not_before <= now:
            span = self._throttled.wait(each.partition.topic_partition)
            each.not_before = now + min(span, HELD_BACK_SECONDS) if span else each.not_before
        return each.not_before <= now

    def _hold(self, each: FollowedPartition) -> None:
        self._drop(each.place)
        self._held[each.place] = each

    def _drop(self, place: Place) -> None:
        """Ask for it no more."""
        for some in (self._stirred, self._held, self._lagging, self._asked):
            some.pop(place, None)
        self._session.leave(place)

    def _again_at(self, moment: float) -> None:
        self._busy = True
        self._timers.at(moment, self._resume)

    def _resume(self) -> None:
        self._busy = False
        try:
            self._go_on()
        except Exception:
            log.exception("copies could not be fetched, and are fetched again leader=%d", self._leader)
            self._again_at(self._clock.monotonic() + LOST_SECONDS)

    def _fetch(self, address: Address) -> None:
        request = FetchRequest(
            replica_state=ReplicaState(self._me.node_id, self._me.epoch()),
            max_wait_ms=MAX_WAIT_MS if self._session.is_patient else 0,
            min_bytes=1,
            max_bytes=MAX_BYTES,
        )
        self._session.fill(request, {place: self._wanted(each) for place, each in self._stirred.items()})
        self._asked.update(self._stirred)
        self._stirred.clear()
        self._busy = True
        self._connection.ask(Question(address, request, FETCH_VERSION, FetchResponse, self._fetched))

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

    def _fetched(self, answer: FetchResponse | OttlaError) -> None:
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
                each = self._asked.get(place := Place(topic.topic_id, data.partition_index))
                # Meanwhile it may be another's to lead, or ours.
                if each is not None and self.partitions.get(place) is each:
                    self._take(each, data)
        self._go_on()

    def _take(self, each: FollowedPartition, data: PartitionData) -> None:
        outcome = outcome_of(data)
        if isinstance(outcome, AskForRange):
            each.out_of_range = True
        else:
            if isinstance(outcome, Append):
                self._throttled.record(each.partition.topic_partition, len(outcome.records))
            each.take(outcome)
        self._stir(each)

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
        if self.partitions.get(each.place) is each:
            each.begin_at(start)
            outcome = within_range(each.log.end_offset, start, end, each.fetch_offset)
            if outcome is None:
                each.wait(LATER_SECONDS, "what it lacks was not to be had from its leader, which has it by now")
            else:
                each.take(outcome)
        self._resume()

    def _lost(self, answer: FetchResponse | OttlaError) -> None:
        """The leader does not answer, or knows the session no more."""
        if isinstance(answer, OttlaError):
            self._session.lost_connection()
            if not self._silent:
                log.warning("broker %d, whose partitions are copied here, does not answer: %s", self._leader, answer)
            self._silent = True
        else:
            self._session.lost()
            if answer.error_code in SESSION_ERRORS:
                self._go_on()
                return
        self._again_at(self._clock.monotonic() + LOST_SECONDS)

    def _heard(self) -> None:
        if self._silent:
            log.info("broker %d answers again", self._leader)
        self._silent = False
