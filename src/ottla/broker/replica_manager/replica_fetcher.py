"""Fetch replicas from one leader: all partitions that it leads and this broker follows, on one connection (Kafka's ReplicaFetcherThread).

One request is under way at a time. Records are appended in the loop, to which the logs belong, so that the next request
has their new ends.

A broker may follow thousands of partitions, of which a few change between two requests. Only those are processed:

    added, answered or due again ──► stirred ──► named in a request, if the leader does not know it ──► still
    must not be fetched yet      ──► held, and not in the session until its time has come

Without a session, as at the start and after a lost response, all partitions are stirred. Partitions that lag behind are
processed each time, since a throttle may delay them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from ottla.broker.event_loop.timers import Timers
from ottla.broker.peers.peer_connection import PeerConnection, Question
from ottla.broker.replica_manager.followed_partition import FollowedPartition
from ottla.broker.replica_manager.replication_throttle import ThrottledReplicas
from ottla.clock import Clock
from ottla.coordination.quorum.observer import Address
from ottla.coordination.replication.fetch_session import FollowerSession, ReplicaPlace
from ottla.coordination.replication.fetched import (
    LATER_SECONDS,
    AppendBatches,
    RequestRange,
    decide_fetched,
    decide_out_of_range,
)
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
"""The time after which a throttled partition is checked again."""
LOST_SECONDS = 0.2
"""The delay before a leader without a response is sent another request."""
SESSION_ERRORS = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)


class Replica(NamedTuple):
    """The follower in a request: broker, incarnation and directory."""

    node_id: int
    epoch: Callable[[], int]
    directory_id: UUID


class LeaderFetcher:
    """Fetches from one leader. Belongs to the loop."""

    def __init__(
        self,
        leader: int,
        address: Callable[[int], Address | None],
        me: Replica,
        timers: Timers,
        clock: Clock,
        connection: PeerConnection,
        throttled: ThrottledReplicas,
    ) -> None:
        """`address` returns the current address of a broker."""
        self._throttled = throttled
        self.partitions: dict[ReplicaPlace, FollowedPartition] = {}
        self._leader = leader
        self._address = address
        self._me = me
        self._timers = timers
        self._clock = clock
        self._connection = connection
        self._session = FollowerSession()
        self._stirred: dict[ReplicaPlace, FollowedPartition] = {}
        self._lagging: dict[ReplicaPlace, FollowedPartition] = {}
        self._held: dict[ReplicaPlace, FollowedPartition] = {}
        self._requested: dict[ReplicaPlace, FollowedPartition] = {}
        """The partitions of the request under way."""
        self._busy = self._closed = False
        self._silent = False

    def add(self, partition: FollowedPartition) -> None:
        """Start to fetch a partition, or to fetch it in another leader epoch."""
        self.partitions[partition.place] = partition
        self._held.pop(partition.place, None)
        self._mark_changed(partition)
        self._run()

    def remove(self, place: ReplicaPlace) -> None:
        self.partitions.pop(place, None)
        self._remove_partition(place)

    def _mark_changed(self, each: FollowedPartition) -> None:
        """Have a partition processed before the next request."""
        self._stirred[each.place] = each
        if each.lags:
            self._lagging[each.place] = each
        else:
            self._lagging.pop(each.place, None)

    def close(self) -> None:
        self._closed = True
        self._connection.close()

    def _run(self) -> None:
        """Send the next request, unless one is under way or there is nothing to fetch."""
        if self._busy or self._closed or not self.partitions:
            return
        now = self._clock.monotonic()
        self._check_partitions(now)
        lost = next((each for each in self._stirred.values() if each.out_of_range), None)
        address = self._address(self._leader)
        if address is None or len(self._held) == len(self.partitions):
            soonest = min(each.not_before for each in self.partitions.values())
            self._again_at(max(soonest, now + (LOST_SECONDS if address is None else 0.0)))
        elif lost:
            self._request_range(address, lost)
        else:
            self._send_fetch(address)

    def _check_partitions(self, now: float) -> None:
        """Release partitions that were held long enough, and hold those that must not be fetched now."""
        if not self._session.epoch:
            self._stirred, self._held = dict(self.partitions), {}
        for each in [each for each in self._held.values() if each.not_before <= now]:
            self._stirred[each.place] = self._held.pop(each.place)
        for each in [each for each in (self._lagging | self._stirred).values() if not self._can_fetch(each, now)]:
            self._pause_partition(each)

    def _can_fetch(self, each: FollowedPartition, now: float) -> bool:
        if each.lags and each.not_before <= now:
            span = self._throttled.throttle_time(each.partition.topic_partition)
            each.not_before = now + min(span, HELD_BACK_SECONDS) if span else each.not_before
        return each.not_before <= now

    def _pause_partition(self, each: FollowedPartition) -> None:
        self._remove_partition(each.place)
        self._held[each.place] = each

    def _remove_partition(self, place: ReplicaPlace) -> None:
        for some in (self._stirred, self._held, self._lagging, self._requested):
            some.pop(place, None)
        self._session.remove_partition(place)

    def _again_at(self, moment: float) -> None:
        self._busy = True
        self._timers.schedule(moment, self._resume)

    def _resume(self) -> None:
        self._busy = False
        try:
            self._run()
        except Exception:
            log.exception("fetching replicas failed, and is retried leader=%d", self._leader)
            self._again_at(self._clock.monotonic() + LOST_SECONDS)

    def _send_fetch(self, address: Address) -> None:
        request = FetchRequest(
            replica_state=ReplicaState(self._me.node_id, self._me.epoch()),
            max_wait_ms=MAX_WAIT_MS if self._session.is_patient else 0,
            min_bytes=1,
            max_bytes=MAX_BYTES,
        )
        self._session.fill_request(
            request, {place: self._build_partition(each) for place, each in self._stirred.items()}
        )
        self._requested.update(self._stirred)
        self._stirred.clear()
        self._busy = True
        self._connection.send_request(Question(address, request, FETCH_VERSION, FetchResponse, self._handle_fetch))

    def _build_partition(self, each: FollowedPartition) -> FetchPartition:
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

    def _handle_fetch(self, answer: FetchResponse | OttlaError) -> None:
        self._busy = False
        if self._closed:
            return
        if isinstance(answer, OttlaError) or answer.error_code:
            self._handle_failure(answer)
            return
        self._handle_response()
        self._session.handle_response(answer)
        for topic in answer.responses:
            for data in topic.partitions:
                each = self._requested.get(place := ReplicaPlace(topic.topic_id, data.partition_index))
                # The partition may have another leader meanwhile, or this broker may lead it.
                if each is not None and self.partitions.get(place) is each:
                    self._handle_partition(each, data)
        self._run()

    def _handle_partition(self, each: FollowedPartition, data: PartitionData) -> None:
        outcome = decide_fetched(data)
        if isinstance(outcome, RequestRange):
            each.out_of_range = True
        else:
            if isinstance(outcome, AppendBatches):
                self._throttled.record(each.partition.topic_partition, len(outcome.records))
            each.handle_outcome(outcome)
        self._mark_changed(each)

    def _request_range(self, address: Address, each: FollowedPartition) -> None:
        """Request the start and then the end of the leader's log: one request names a partition once."""
        self._busy = True
        self._request_offset(
            address,
            each,
            EARLIEST,
            lambda start: self._request_offset(address, each, LATEST, lambda end: self._handle_range(each, start, end)),
        )

    def _request_offset(
        self, address: Address, each: FollowedPartition, which: int, then: Callable[[int], None]
    ) -> None:
        wanted = ListOffsetsPartition(each.place.partition, each.machine.leader_epoch, which)
        topic = ListOffsetsTopic(each.partition.topic_partition.topic, [wanted])
        request = ListOffsetsRequest(self._me.node_id, topics=[topic])

        def done(answer: ListOffsetsResponse | OttlaError) -> None:
            if self._closed:
                return
            topics = [] if isinstance(answer, OttlaError) else answer.topics
            found = next((data for topic in topics for data in topic.partitions), None)
            if found is None or found.error_code or found.offset < 0:
                each.wait(LATER_SECONDS, "the leader did not return its log start")
                self._resume()
            else:
                then(found.offset)

        self._connection.send_request(Question(address, request, LIST_OFFSETS_VERSION, ListOffsetsResponse, done))

    def _handle_range(self, each: FollowedPartition, start: int, end: int) -> None:
        each.out_of_range = False
        if self.partitions.get(each.place) is each:
            each.reset_to(start)
            outcome = decide_out_of_range(each.log.end_offset, start, end, each.fetch_offset)
            if outcome is None:
                each.wait(LATER_SECONDS, "what it lacks was not to be had from its leader, which has it by now")
            else:
                each.handle_outcome(outcome)
        self._resume()

    def _handle_failure(self, answer: FetchResponse | OttlaError) -> None:
        """Handle a lost response or an unknown session."""
        if isinstance(answer, OttlaError):
            self._session.handle_disconnect()
            if not self._silent:
                log.warning("fetching replicas from broker %d failed, and is retried: %s", self._leader, answer)
            self._silent = True
        else:
            self._session.reset()
            if answer.error_code in SESSION_ERRORS:
                self._run()
                return
        self._again_at(self._clock.monotonic() + LOST_SECONDS)

    def _handle_response(self) -> None:
        if self._silent:
            log.info("broker %d responds again", self._leader)
        self._silent = False
