"""Fetch: record batches straight from the file, now or when there are enough of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Protocol

from ottla.broker.access import Access
from ottla.broker.fetching.fetch_session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    FetchedPartition,
    FetchSession,
    fetched,
    wanted_of,
)
from ottla.broker.fetching.waiting import Awaited, WaitingFetch
from ottla.broker.node import BrokerNode
from ottla.broker.partitions.leadership import Leadership
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partition_reader import Follower, Near, PartitionReader
from ottla.broker.requests.call import Call, Outcome
from ottla.coordination.replication.read_replica import replica_to_read
from ottla.errors import ErrorCode
from ottla.model import TopicPartition
from ottla.protocol.acl import CLUSTER_NAME, Operation, ResourceType
from ottla.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData

IDS_SINCE = 13
"""From this version on topics have ids instead of names."""
ZSTD_SINCE = 10
"""Who asks by an earlier version is told that he cannot read a topic with `compression.type=zstd` (KIP-110)."""
COPIES_SINCE = 11
"""From this version on consumers say where they are, and may read from copies (KIP-392)."""
NO_EPOCH = -1
READ_COMMITTED = 1
"""The isolation level of those who want nothing of open or aborted transactions."""
FetchedData = Sequence[tuple[FetchedPartition, PartitionData]]


class Asked(Protocol):
    """What is fetched: all that a request names, or what is new of a session."""

    def partitions(self) -> Iterable[FetchedPartition]: ...

    def awaited(self, read_from: Sequence[Partition]) -> Sequence[Awaited]:
        """Where to wait for more."""
        ...

    def answer(self, node: BrokerNode, found: FetchedData) -> FetchResponse:
        """What to say of what was found."""
        ...


def handle(node: BrokerNode, call: Call, request: FetchRequest) -> FetchResponse | Outcome:
    """Answer at once where there is enough, or something to complain of; else wait."""
    uses_ids = call.version >= IDS_SINCE
    if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        node.fetch_sessions.remove(request.session_id)
        return look(node, call, request, FullFetch(request, uses_ids, call.received))
    session = node.fetch_sessions.get(request.session_id)
    if session is None:
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    error = session_error(session, request.session_epoch, uses_ids)
    if error:
        return FetchResponse(error_code=error)
    session.update(request.topics, request.forgotten_topics_data)
    note_follower(session, request, call.received)
    if not session.partitions:
        node.fetch_sessions.remove(session.session_id)
        return FetchResponse()
    node.fetch_sessions.touch(session, node.clock.monotonic())
    session.advance()
    return look(node, call, request, IncrementalFetch(session))


def session_error(session: FetchSession, epoch: int, uses_ids: bool) -> int:
    """Why a request cannot go on with a session; NONE where it can."""
    if session.epoch != epoch:
        return ErrorCode.INVALID_FETCH_SESSION_EPOCH
    return ErrorCode.NONE if session.uses_ids == uses_ids else ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def look(
    node: BrokerNode, call: Call, request: FetchRequest, asked: Asked, *, again: bool = False
) -> FetchResponse | Outcome:
    """What there is, if it is enough or the wait is over; else wait, and look again then."""
    deadline = call.received + request.max_wait_ms / 1000
    max_bytes = min(request.max_bytes, node.config.fetch_max_bytes)
    if node.quotas is not None:
        max_bytes = node.quotas.most_bytes(call, max_bytes)
    committed, takes_zstd = request.isolation_level == READ_COMMITTED, call.version >= ZSTD_SINCE
    follower = follower_of(request, None if again else call.received) if follows(request) else None
    near = near_replica(node, call, request) if follower is None and call.version >= COPIES_SINCE else None
    reader = PartitionReader(
        node.partitions,
        max_bytes,
        committed=committed,
        takes_zstd=takes_zstd,
        follower=follower,
        near=near,
        held_back=node.copies_sent.wait,
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
                else reader.refused(partition, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
            )
            for partition in asked.partitions()
        ]
    awaited = asked.awaited(reader.read_from)
    enough = reader.failed or reader.size >= request.min_bytes or not awaited or hears_of_more(node, follower, found)
    if enough or node.waiting.closed or node.clock.monotonic() >= deadline:
        if follower is not None:
            node.copies_sent.record_all(
                (TopicPartition(each.name or "", each.wanted.partition), len(data.records or b""))
                for each, data in found
            )
        return asked.answer(node, found)
    later = partial(call.resume, lambda: look(node, call, request, asked, again=True))
    fetch = WaitingFetch(awaited, request.min_bytes - reader.size, later, call)
    node.waiting.add(fetch, deadline)
    return Outcome.LATER


def near_replica(node: BrokerNode, call: Call, request: FetchRequest) -> Near:
    """Where a consumer had better read, by `replica.selector.class`."""
    if not node.config.selects_by_rack or node.brokers is None or not request.rack_id:
        return nowhere_else
    racks = node.brokers.racks(call.connection.listener)
    now = node.clock.monotonic()
    return lambda leadership, offset: replica_to_read(leadership.machine, racks, request.rack_id, offset, now)


def nowhere_else(leadership: Leadership, offset: int) -> int | None:
    return None


def hears_of_more(node: BrokerNode, follower: Follower | None, found: FetchedData) -> bool:
    """Whether a follower does not know yet how much is committed: where consumers read from it, it is told at once."""
    return follower is not None and node.config.selects_by_rack and any(each.differs(data) for each, data in found)


def may_read(node: BrokerNode, access: Access, call: Call, partition: FetchedPartition, is_follower: bool) -> bool:
    """Whether who asks may have records of a partition; what has no name is refused for that."""
    if is_follower:
        return access.allows(call, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)
    name = partition.name or node.partitions.topic_name(partition.topic_id)
    return name is None or access.allows(call, Operation.READ, ResourceType.TOPIC, name)


def follows(request: FetchRequest) -> bool:
    """Whether another broker asks, for a copy."""
    state = request.replica_state
    return request.replica_id >= 0 or (state is not None and state.replica_id >= 0)


def follower_of(request: FetchRequest, now: float | None) -> Follower:
    """Which broker asks for a copy; before version 15 it does not say of which life it is."""
    state = request.replica_state
    return (
        Follower(request.replica_id, NO_EPOCH, now)
        if state is None
        else Follower(state.replica_id, state.replica_epoch, now)
    )


def note_follower(session: FetchSession, request: FetchRequest, now: float) -> None:
    """Remember which broker asked, and when: of what has no news that tells all."""
    if session.privileged:
        follower = follower_of(request, now)
        session.asked(follower.broker, follower.broker_epoch, now)


class FullFetch:
    """A request that names everything it wants; with epoch 0 it would like a session for that."""

    def __init__(self, request: FetchRequest, uses_ids: bool, asked_at: float) -> None:
        self._request = request
        self._uses_ids = uses_ids
        self._asked_at = asked_at
        self._wants_session = request.session_epoch == INITIAL_EPOCH
        self._is_follower = follows(request)
        self._wanted = {
            key: fetched(topic, wanted, uses_ids) for key, topic, wanted in wanted_of(request.topics, uses_ids)
        }

    def partitions(self) -> Iterable[FetchedPartition]:
        return self._wanted.values()

    def awaited(self, read_from: Sequence[Partition]) -> Sequence[Awaited]:
        return read_from

    def answer(self, node: BrokerNode, found: FetchedData) -> FetchResponse:
        """Everything; what the client knows now is where its session begins."""
        session = self._session(node) if self._wants_session else None
        if session is not None:
            session.adopt(self._wanted.items())
            session.news = dict.fromkeys(self._wanted.values())
            watch(node, session)
            note_follower(session, self._request, self._asked_at)
            session.answered(found)
        return FetchResponse(session_id=session.session_id if session else 0, responses=by_topic(found))

    def _session(self, node: BrokerNode) -> FetchSession | None:
        return node.fetch_sessions.create(
            len(self._wanted), uses_ids=self._uses_ids, privileged=self._is_follower, now=node.clock.monotonic()
        )


class IncrementalFetch:
    """A request that goes on with a session."""

    def __init__(self, session: FetchSession) -> None:
        self._session = session
        self._epoch = session.epoch

    @property
    def is_current(self) -> bool:
        """Whether no other request has gone on with the session since."""
        return self._session.epoch == self._epoch

    def partitions(self) -> Iterable[FetchedPartition]:
        """Those with news, as have those that the request names."""
        return list(self._session.news)

    def awaited(self, read_from: Sequence[Partition]) -> Sequence[Awaited]:
        return (self._session,)

    def answer(self, node: BrokerNode, found: FetchedData) -> FetchResponse:
        """What the client does not know; while it waited another may have gone on with its session."""
        session = self._session
        if not self.is_current:
            return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        changed = [(partition, data) for partition, data in found if partition.differs(data)]
        session.answered(found)
        return FetchResponse(session_id=session.session_id, responses=by_topic(changed))


def watch(node: BrokerNode, session: FetchSession) -> None:
    """Have a new session hear of its partitions; of those that are not there it asks again each time."""
    for partition in session.partitions.values():
        source = node.partitions.find(partition.name or "", partition.wanted.partition)
        if source is not None:
            partition.watch(source)


def by_topic(found: FetchedData) -> list[FetchableTopicResponse]:
    """Partitions under their topics, in the order in which they were read."""
    topics: dict[object, FetchableTopicResponse] = {}
    for partition, data in found:
        key = partition.topic_id if partition.topic_id.int else partition.name
        topic = topics.get(key)
        if topic is None:
            topic = topics[key] = FetchableTopicResponse(partition.name or "", partition.topic_id, [])
        topic.partitions.append(data)  # type: ignore[attr-defined]
    return list(topics.values())
