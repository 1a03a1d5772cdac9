"""Fetch: return record batches from the log file, at once or when there are enough of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Protocol

from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.broker.replica_manager.fetch_session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    FetchedPartition,
    FetchSession,
    list_requested,
    make_partition,
)
from ottla.broker.replica_manager.leadership import Leadership
from ottla.broker.replica_manager.partition import Partition
from ottla.broker.replica_manager.partition_reader import FetchingFollower, Near, PartitionReader
from ottla.broker.replica_manager.waiting_fetch import Awaited, WaitingFetch
from ottla.broker.security.authorization import Access
from ottla.coordination.replication.read_replica import replica_to_read
from ottla.errors import ErrorCode
from ottla.model import TopicPartition
from ottla.protocol.acl import CLUSTER_NAME, Operation, ResourceType
from ottla.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData

IDS_SINCE = 13
"""From this version on topics have ids instead of names."""
ZSTD_SINCE = 10
"""Clients of earlier versions receive an error for topics with `compression.type=zstd` (KIP-110)."""
COPIES_SINCE = 11
"""From this version on consumers send their rack, and may read from followers (KIP-392)."""
NO_EPOCH = -1
READ_COMMITTED = 1
"""The isolation level of consumers that read no open or aborted transactions."""
FetchedData = Sequence[tuple[FetchedPartition, PartitionData]]


class FetchRequestState(Protocol):
    """The partitions to fetch: all in the request, or those with news in a session."""

    def partitions(self) -> Iterable[FetchedPartition]: ...

    def awaited(self, read_from: Sequence[Partition]) -> Sequence[Awaited]:
        """Return the partitions or the session that notify the request of new records."""
        ...

    def answer(self, node: BrokerNode, found: FetchedData) -> FetchResponse:
        """Return the response for what was found."""
        ...


def handle(node: BrokerNode, call: Call, request: FetchRequest) -> FetchResponse | Outcome:
    """Answer at once if there are enough records or an error; otherwise wait."""
    uses_ids = call.version >= IDS_SINCE
    if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        node.fetch_sessions.remove(request.session_id)
        return read_or_wait(node, call, request, FullFetch(request, uses_ids, call.received))
    session = node.fetch_sessions.get(request.session_id)
    if session is None:
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    error = session_error(session, request.session_epoch, uses_ids)
    if error:
        return FetchResponse(error_code=error)
    session.update(request.topics, request.forgotten_topics_data)
    record_follower(session, request, call.received)
    if not session.partitions:
        node.fetch_sessions.remove(session.session_id)
        return FetchResponse()
    node.fetch_sessions.touch(session, node.clock.monotonic())
    session.advance()
    return read_or_wait(node, call, request, IncrementalFetch(session))


def session_error(session: FetchSession, epoch: int, uses_ids: bool) -> int:
    """Return why a request cannot continue a session, NONE if it can."""
    if session.epoch != epoch:
        return ErrorCode.INVALID_FETCH_SESSION_EPOCH
    return ErrorCode.NONE if session.uses_ids == uses_ids else ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def read_or_wait(
    node: BrokerNode, call: Call, request: FetchRequest, asked: FetchRequestState, *, again: bool = False
) -> FetchResponse | Outcome:
    """Return the records if they are enough or the wait is over; otherwise wait, and be called again."""
    deadline = call.received + request.max_wait_ms / 1000
    max_bytes = min(request.max_bytes, node.config.fetch_max_bytes)
    if node.quotas is not None:
        max_bytes = node.quotas.most_bytes(call, max_bytes)
    committed, takes_zstd = request.isolation_level == READ_COMMITTED, call.version >= ZSTD_SINCE
    follower = find_follower(request, None if again else call.received) if is_from_follower(request) else None
    near = find_near_replica(node, call, request) if follower is None and call.version >= COPIES_SINCE else None
    reader = PartitionReader(
        node.partitions,
        node.topics,
        node,
        max_bytes,
        committed=committed,
        takes_zstd=takes_zstd,
        follower=follower,
        near=near,
        held_back=node.copies_sent.throttle_time,
    )
    access = node.access
    if access is None:
        found = [(partition, reader.read(partition)) for partition in asked.partitions()]
    else:
        is_follower = follower is not None
        found = [
            (
                partition,
                reader.read(partition)
                if may_read(node, access, call, partition, is_follower)
                else reader.build_error(partition, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
            )
            for partition in asked.partitions()
        ]
    awaited = asked.awaited(reader.read_from)
    enough = (
        reader.failed
        or reader.size >= request.min_bytes
        or not awaited
        or has_new_high_watermark(node, follower, found)
    )
    if enough or node.waiting.closed or node.clock.monotonic() >= deadline:
        if follower is not None:
            node.copies_sent.record_all(
                (TopicPartition(each.name or "", each.wanted.partition), len(data.records or b""))
                for each, data in found
            )
        return asked.answer(node, found)
    later = partial(call.resume, lambda: read_or_wait(node, call, request, asked, again=True))
    fetch = WaitingFetch(awaited, request.min_bytes - reader.size, later, call)
    node.waiting.add(fetch, deadline)
    return Outcome.LATER


def find_near_replica(node: BrokerNode, call: Call, request: FetchRequest) -> Near:
    """Return the choice of a replica for a consumer, by `replica.selector.class`."""
    if not node.config.selects_by_rack or not request.rack_id:
        return nowhere_else
    racks = node.brokers.list_racks(call.connection.listener)
    now = node.clock.monotonic()
    return lambda leadership, offset: replica_to_read(leadership.machine, racks, request.rack_id, offset, now)


def nowhere_else(leadership: Leadership, offset: int) -> int | None:
    return None


def has_new_high_watermark(node: BrokerNode, follower: FetchingFollower | None, found: FetchedData) -> bool:
    """Return True if a follower that consumers may read from does not know the high watermark yet. It is answered at once."""
    return follower is not None and node.config.selects_by_rack and any(each.differs(data) for each, data in found)


def may_read(node: BrokerNode, access: Access, call: Call, partition: FetchedPartition, is_follower: bool) -> bool:
    """Return True if the client may fetch a partition. An unknown topic id is rejected elsewhere."""
    if is_follower:
        return access.allows(call, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)
    name = partition.name or node.topics.name_of(partition.topic_id)
    return name is None or access.allows(call, Operation.READ, ResourceType.TOPIC, name)


def is_from_follower(request: FetchRequest) -> bool:
    """Return True if the request is a follower's."""
    state = request.replica_state
    return request.replica_id >= 0 or (state is not None and state.replica_id >= 0)


def find_follower(request: FetchRequest, now: float | None) -> FetchingFollower:
    """Return the follower of a request. Before version 15 requests have no broker epoch."""
    state = request.replica_state
    return (
        FetchingFollower(request.replica_id, NO_EPOCH, now)
        if state is None
        else FetchingFollower(state.replica_id, state.replica_epoch, now)
    )


def record_follower(session: FetchSession, request: FetchRequest, now: float) -> None:
    """Record the follower of a session and the time of its request, which is its position in all partitions without news."""
    if session.privileged:
        follower = find_follower(request, now)
        session.handle_request(follower.broker, follower.broker_epoch, now)


class FullFetch:
    """A request that names all its partitions; with epoch 0 it requests a session."""

    def __init__(self, request: FetchRequest, uses_ids: bool, asked_at: float) -> None:
        self._request = request
        self._uses_ids = uses_ids
        self._asked_at = asked_at
        self._wants_session = request.session_epoch == INITIAL_EPOCH
        self._is_follower = is_from_follower(request)
        self._wanted = {
            key: make_partition(topic, wanted, uses_ids)
            for key, topic, wanted in list_requested(request.topics, uses_ids)
        }

    def partitions(self) -> Iterable[FetchedPartition]:
        return self._wanted.values()

    def awaited(self, read_from: Sequence[Partition]) -> Sequence[Awaited]:
        return read_from

    def answer(self, node: BrokerNode, found: FetchedData) -> FetchResponse:
        """Return all partitions. A new session starts with this state."""
        session = self._session(node) if self._wants_session else None
        if session is not None:
            session.adopt(self._wanted.items())
            session.news = dict.fromkeys(self._wanted.values())
            watch_session(node, session)
            record_follower(session, self._request, self._asked_at)
            session.handle_response(found)
        return FetchResponse(session_id=session.session_id if session else 0, responses=by_topic(found))

    def _session(self, node: BrokerNode) -> FetchSession | None:
        return node.fetch_sessions.create(
            len(self._wanted), uses_ids=self._uses_ids, privileged=self._is_follower, now=node.clock.monotonic()
        )


class IncrementalFetch:
    """A request in a session."""

    def __init__(self, session: FetchSession) -> None:
        self._session = session
        self._epoch = session.epoch

    @property
    def is_current(self) -> bool:
        """True if no later request has continued the session."""
        return self._session.epoch == self._epoch

    def partitions(self) -> Iterable[FetchedPartition]:
        """Return the partitions with news, including those that the request names."""
        return list(self._session.news)

    def awaited(self, read_from: Sequence[Partition]) -> Sequence[Awaited]:
        return (self._session,)

    def answer(self, node: BrokerNode, found: FetchedData) -> FetchResponse:
        """Return the changes since the last response.

        While this request waited, another may have continued its session.
        """
        session = self._session
        if not self.is_current:
            return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        changed = [(partition, data) for partition, data in found if partition.differs(data)]
        session.handle_response(found)
        return FetchResponse(session_id=session.session_id, responses=by_topic(changed))


def watch_session(node: BrokerNode, session: FetchSession) -> None:
    """Have a new session watch its partitions. Those that do not exist are requested again each time."""
    for partition in session.partitions.values():
        source = node.partitions.find(partition.name or "", partition.wanted.partition)
        if source is not None:
            partition.watch(source)


def by_topic(found: FetchedData) -> list[FetchableTopicResponse]:
    """Return the partitions grouped by topic, in the order in which they were read."""
    topics: dict[object, FetchableTopicResponse] = {}
    for partition, data in found:
        key = partition.topic_id if partition.topic_id.int else partition.name
        topic = topics.get(key)
        if topic is None:
            topic = topics[key] = FetchableTopicResponse(partition.name or "", partition.topic_id, [])
        topic.partitions.append(data)  # type: ignore[attr-defined]
    return list(topics.values())
