"""Fetches ahead of the user, and hands out what has arrived.

Plans and books, no I/O of its own: requests go through `ConsumerNetworkClient`. One request per broker is under way at
a time, for all of its partitions that have no data waiting here. What waits here and what was asked for is never more
than `fetch.max.bytes` for each broker, apart from a first batch that is larger.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Collection, Iterable
from functools import partial
from typing import Any

from ottla.client.consumer.config import ConsumerConfig
from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.client.consumer.events import BUFFERED, COMPLETED, HANDED_OUT, SENT
from ottla.client.consumer.fetching.completed_fetch import CompletedFetch
from ottla.client.consumer.fetching.fetch_session_handler import (
    FetchSessionHandler,
    PartitionData,
    add_session,
    farewell,
    uses_ids,
)
from ottla.client.consumer.fetching.position_validator import PositionValidator
from ottla.client.consumer.fetching.read_replicas import ReadReplicas
from ottla.client.consumer.records import RecordSlice
from ottla.client.consumer.subscription_state import SubscriptionState
from ottla.client.metrics.fetch_sensors import FetchSensors
from ottla.client.network.client_request import ClientResponse
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.client.runtime.future import Future
from ottla.errors import (
    CorruptRecordError,
    ErrorCode,
    KafkaError,
    KafkaTimeoutError,
    OffsetOutOfRangeError,
    RecordDeserializationError,
    error_for,
    name_of,
)
from ottla.model import FOREVER, Node, TopicPartition
from ottla.protocol.messages.fetch import FetchRequest
from ottla.records.columns import Columns
from ottla.trace import EventStream

LOG = logging.getLogger(__name__)
LAST_VERSION_WITH_NAMES = 12
"""Later versions of Fetch know topics by their id alone, which older brokers do not have."""
LOOK_AGAIN = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)
"""Errors after which to renew the metadata and ask again a little later."""
SESSION_LOST = frozenset({ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH})
"""Errors after which a new session is begun at once."""
Plan = dict[Node, dict[TopicPartition, PartitionData]]


class Fetcher:
    """What is being fetched, and what was."""

    def __init__(
        self,
        config: ConsumerConfig,
        client: ConsumerNetworkClient,
        subscriptions: SubscriptionState,
        retry_backoff: ExponentialBackoff,
        events: EventStream,
    ) -> None:
        self.completed_fetches: deque[CompletedFetch] = deque()
        """Arrived and not handed out, oldest first; the first may be partly handed out."""
        self.nodes_with_pending_fetch: set[int] = set()
        self._passed = False
        """Whether a position has moved past what has no records, of which nobody knows yet."""
        self._config = config
        self._client = client
        self._subscriptions = subscriptions
        self._retry_backoff = retry_backoff
        self._events = events
        self._clock = client.client.clock
        self.sensors = FetchSensors(client.client.sensors.registry)
        self._sessions: dict[int, FetchSessionHandler] = {}
        self._replicas = ReadReplicas(config.metadata_max_age_ms)
        self._positions = PositionValidator(client, subscriptions, retry_backoff)
        self._damaged: dict[TopicPartition, tuple[int, CorruptRecordError]] = {}
        """What decoding whole fetches came upon, and at which offset, of which the user is still to be told."""
        self._settled: tuple[int, int] | None = None
        """The grounds of the last plan, if no partition was in doubt; where a leader was missing, news of one changes them."""
        self._deserializers = (config.key_deserializer, config.value_deserializer)
        self._rollbacks = subscriptions.rollbacks

    def reset(self) -> None:
        """Forget what is under way and what is buffered: it is fetched again, in new sessions, from the positions."""
        self.nodes_with_pending_fetch.clear()
        self._sessions.clear()
        self.completed_fetches = deque()
        self._damaged.clear()
        self._settled, self._passed = None, False
        self._positions.reset()

    def send_fetches(self) -> int:
        """Queue a request to every broker that has something to be asked for; returns how many."""
        now = self._clock.monotonic()
        plan = self._plan(now)
        for node, partitions in plan.items():
            self.nodes_with_pending_fetch.add(node.node_id)
            if self._events.active:
                places = (fact for tp, want in partitions.items() for fact in (*tp, want.offset))
                self._events.tell_of(SENT, node.node_id, *places)
            request, max_version = self._request(node, partitions)
            timeout_ms = self._config.request_timeout_ms + self._config.fetch_max_wait_ms
            future = self._client.send(node, request, timeout_ms=timeout_ms, max_version=max_version)
            future.add_done_callback(partial(self._handle, node, partitions))
        return len(plan)

    @property
    def buffered_bytes(self) -> int:
        """Bytes of records, as fetched, that have arrived and are not handed out."""
        return sum(fetch.size_bytes for fetch in self.completed_fetches)

    @property
    def memory_limit_bytes(self) -> int:
        """About the most that may wait here: `fetch.max.bytes` for each broker that we read from."""
        return self._config.fetch_max_bytes * max(1, len(self._sessions))

    def collect_fetch(self, most: int) -> list[RecordSlice]:
        """Up to `most` records of what has arrived; positions move past them.

        An error waits for its turn: it is raised when there are no records before it.
        """
        self._drop_after_rollback()
        slices: list[RecordSlice] = []
        held: list[CompletedFetch] = []
        try:
            while most > 0 and self.completed_fetches:
                if self._paused(self.completed_fetches[0].tp):
                    held.append(self.completed_fetches.popleft())
                    continue
                try:
                    most -= self._hand_out(self.completed_fetches[0], most, slices)
                except Exception as error:
                    if slices:
                        break
                    if isinstance(error, RecordDeserializationError):  # the rows are here for the next try
                        self._subscriptions.forget_note(self.completed_fetches[0].tp)
                    else:
                        self.completed_fetches.popleft()
                    raise
                except BaseException:  # an interrupt, most likely in a deserializer: these records are returned later
                    for part in reversed(slices):
                        self._go_back(part.source.tp, part.source.columns.offsets[part.start])
                    raise
        finally:
            self.completed_fetches.extendleft(reversed(held))
        return slices

    def collect_columns(
        self, max_bytes: int | None, *, with_headers: bool, only: Collection[str] | None = None
    ) -> list[tuple[TopicPartition, Columns]]:
        """What has arrived, decoded, up to about `max_bytes` as fetched; the next fetches leave before the decoding.

        `only` names the columns that are wanted, as in `decode`.
        """
        self._drop_after_rollback()
        self._tell_damage()
        taken = self._take_whole(max_bytes)
        try:
            if taken:
                self.send_fetches()
                self._client.transmit_sends()
            chunks: list[tuple[TopicPartition, Columns]] = []
            for fetch, offset, end in taken:
                self._decode_into(chunks, fetch, offset, end, with_headers, only)
        except BaseException:
            for fetch, offset, _ in taken:
                self._go_back(fetch.tp, offset)
            raise
        if not chunks:
            self._tell_damage()
            self._passed |= bool(taken)
        return chunks

    def _drop_after_rollback(self) -> None:
        """Drop what is buffered if positions were restored: a fetch may have been left with rows taken off it."""
        if self._rollbacks != self._subscriptions.rollbacks:
            self.completed_fetches = deque()
            self._damaged.clear()
            self._rollbacks = self._subscriptions.rollbacks

    def _decode_into(
        self,
        chunks: list[tuple[TopicPartition, Columns]],
        fetch: CompletedFetch,
        offset: int,
        end: int | None,
        with_headers: bool,
        only: Collection[str] | None,
    ) -> None:
        """Decode a fetch up to its end, or up to damage, of which is told when nothing better is there to hand out."""
        try:
            crcs = self._config.check_crcs
            for columns in fetch.decode_all(offset, end, check_crcs=crcs, with_headers=with_headers, only=only):
                chunks.append((fetch.tp, columns))
                if self._events.active:
                    self._events.tell_facts(HANDED_OUT, (*fetch.tp, offset, columns.count))
                self.sensors.records.of(fetch.tp.topic).record(columns.count)
                offset = columns.next_offset
        except CorruptRecordError as error:
            self._go_back(fetch.tp, offset)
            self._damaged[fetch.tp] = offset, error

    def _tell_damage(self) -> None:
        """Raise what was found damaged, unless the consumer reads elsewhere by now."""
        while self._damaged:
            tp, (offset, error) = self._damaged.popitem()
            state = self._subscriptions.state_or_none(tp)
            if state is not None and state.position == offset:
                raise error

    def _go_back(self, tp: TopicPartition, offset: int) -> None:
        state = self._subscriptions.state_or_none(tp)
        if state is not None:
            state.position, state.epoch = offset, -1

    def take_passed(self) -> bool:
        """Whether positions have moved though there was nothing to hand out: past markers, aborted, compacted records."""
        passed, self._passed = self._passed, False
        return passed

    def end_sessions(self) -> None:
        """Tell each broker that its fetch session is over, as far as that can be done without waiting (KIP-227)."""
        for node_id, session in self._sessions.items():
            if session.session_id:
                self._client.send_last(node_id, farewell(session.session_id))

    def clear_buffered(self, tps: Iterable[TopicPartition]) -> None:
        """Drop what has arrived for these: their positions have changed or they are no longer assigned."""
        gone = set(tps)
        self.completed_fetches = deque(fetch for fetch in self.completed_fetches if fetch.tp not in gone)

    def _plan(self, now: float) -> Plan:
        """The partitions to ask each broker for.

        A broker holds back an answer that has no data. With records of other partitions of its still waiting here, the
        next question for those would be held up too: so it is then only asked where it is known to have more.
        """
        cluster = self._client.metadata.cluster
        if self._nothing_new():
            return {}
        buffered = {fetch.tp for fetch in self.completed_fetches}
        busy = {self._replicas.node(tp, cluster, now) for tp in buffered}
        plan: Plan = {}
        doubtful = []
        for tp in self._subscriptions.fetchable(now, buffered):
            state = self._subscriptions.state(tp)
            position = state.position
            assert position is not None
            node = self._replicas.node(tp, cluster, now)
            if node is None:
                self._client.metadata.request_update()
            elif self._positions.must_wait(tp, position, state.epoch):
                doubtful.append(tp)
            elif node.node_id not in self.nodes_with_pending_fetch and not self._unreachable(node, now):
                plan.setdefault(node, {})[tp] = self._wanted(tp, position)
        self._positions.validate(doubtful)
        self._settled = None if doubtful else self._grounds()
        return {node: wanted for node, wanted in plan.items() if self._has_room(node, wanted, busy, now)}

    def _grounds(self) -> tuple[int, int]:
        """What a plan rests on, apart from positions."""
        return self._client.metadata.version, len(self._subscriptions.assigned())

    def _nothing_new(self) -> bool:
        """Whether every broker is being asked already, and no partition has anything else to wait for: most often so."""
        everybody = len(self.nodes_with_pending_fetch) >= len(self._client.metadata.cluster.nodes)
        return everybody and self._settled == self._grounds()

    def _wanted(self, tp: TopicPartition, position: int) -> PartitionData:
        cluster = self._client.metadata.cluster
        most = self._config.max_partition_fetch_bytes
        return PartitionData(cluster.topic_id(tp.topic), position, cluster.leader_epoch(tp), most)

    def _has_room(self, node: Node, wanted: Iterable[TopicPartition], busy: set[Node | None], now: float) -> bool:
        """Whether more of this broker may be asked for while what it sent before waits here."""
        if node not in busy:
            return True
        if not any(self._subscriptions.state(tp).has_more() for tp in wanted):
            return False
        if self._room(node, now) > 0:
            return True
        # What is paused may wait here for ever, and must not keep the others from being read.
        self.clear_buffered([fetch.tp for fetch in self.completed_fetches if self._paused(fetch.tp)])
        return self._room(node, now) > 0

    def _room(self, node: Node, now: float) -> int:
        """How many bytes may be asked of this broker: `fetch.max.bytes` without what waits here of it."""
        cluster = self._client.metadata.cluster
        mine = (fetch for fetch in self.completed_fetches if self._replicas.node(fetch.tp, cluster, now) == node)
        return self._config.fetch_max_bytes - sum(fetch.size_bytes for fetch in mine)

    def _unreachable(self, node: Node, now: float) -> bool:
        """Whether the broker was lost and its turn to be tried again has not come."""
        return self._client.client.failed(node.node_id) and self._client.client.delay(node.node_id, now) > 0

    def _request(self, node: Node, partitions: dict[TopicPartition, PartitionData]) -> tuple[FetchRequest, int | None]:
        config = self._config
        session = self._sessions.setdefault(node.node_id, FetchSessionHandler())
        request = FetchRequest(
            max_wait_ms=config.fetch_max_wait_ms,
            min_bytes=config.fetch_min_bytes,
            max_bytes=max(0, self._room(node, self._clock.monotonic())),
            isolation_level=config.isolation_number,
            rack_id=config.client_rack,
        )
        max_version = None if uses_ids(partitions) else LAST_VERSION_WITH_NAMES
        return add_session(request, session.plan(partitions)), max_version

    def _handle(self, node: Node, asked: dict[TopicPartition, PartitionData], done: Future[ClientResponse]) -> None:
        """Take in an answer; what failed as a whole is asked for again a little later."""
        self.nodes_with_pending_fetch.discard(node.node_id)
        session = self._sessions.setdefault(node.node_id, FetchSessionHandler())
        error = done.exception(0)
        if self._events.active:
            self._events.tell_of(COMPLETED, node.node_id, *completed(done))
        if error is None:
            response = done.result(0)
            message = response.message
            if message.error_code == ErrorCode.NONE:
                session.answered(message.session_id)
                self.sensors.latency.record(response.received - response.request.created)
                self._count(message, self._file(message, asked))
                return
            session.refused(message.error_code)
            if message.error_code in SESSION_LOST:
                return
            error = error_for(message.error_code, f"fetch from {node}")
        session.lost()
        if not isinstance(error, KafkaError | KafkaTimeoutError):
            self._client.metadata.fail(error)
        LOG.debug("fetch from %s failed: %s", node, error)
        self._replicas.clear_preferred(asked)
        self._try_later(asked)

    def _count(self, message: Any, size_bytes: int) -> None:
        self.sensors.sizes.record(size_bytes)
        self.sensors.throttled.record(message.throttle_time_ms)
        if size_bytes:
            self.sensors.filled.record(1)

    def preferred_replica(self, tp: TopicPartition) -> int:
        """Whom a partition is read from instead of its leader; -1 for the leader."""
        return self._replicas.named(tp)

    def _try_later(self, tps: Iterable[TopicPartition]) -> None:
        self._client.metadata.request_update()
        self._subscriptions.postpone(tps, self._clock.monotonic() + self._retry_backoff.span(1))

    def _file(self, message: Any, asked: dict[TopicPartition, PartitionData]) -> int:
        """Lay down what came; returns its bytes of records."""
        size_bytes = 0
        names = {want.topic_id: tp.topic for tp, want in asked.items()}
        for topic in message.responses:
            name = topic.topic or names.get(topic.topic_id, "")
            for answer in topic.partitions:
                tp = TopicPartition(name, answer.partition_index)
                if tp in asked:
                    size_bytes += len(answer.records or b"")
                    self._file_one(tp, asked[tp], answer)
        return size_bytes

    def _file_one(self, tp: TopicPartition, want: PartitionData, answer: Any) -> None:
        if answer.error_code or answer.records:
            self.completed_fetches.append(CompletedFetch(tp, want.offset, answer, want.leader_epoch))
            if self._events.active:
                self._events.tell_facts(BUFFERED, (*tp, want.offset, len(answer.records or b"")))
        if not answer.error_code:
            self._note_ends(tp, answer)
        if answer.preferred_read_replica >= 0:
            self._replicas.prefer(tp, answer.preferred_read_replica, self._clock.monotonic())

    def _note_ends(self, tp: TopicPartition, answer: Any) -> None:
        state = self._subscriptions.state_or_none(tp)
        if state is not None:
            committed = self._config.isolation_number and answer.last_stable_offset >= 0
            state.log_start = answer.log_start_offset
            state.readable_to = answer.last_stable_offset if committed else answer.high_watermark

    def _is_current(self, fetch: CompletedFetch) -> bool:
        """Whether the data still is what the user wants next, if need be without the rows that a `seek` has skipped."""
        state = self._subscriptions.state_or_none(fetch.tp)
        if state is None or state.position is None:
            return False
        return state.position == fetch.fetch_offset or (state.epoch < 0 and fetch.skip_to(state.position))

    def _paused(self, tp: TopicPartition) -> bool:
        state = self._subscriptions.state_or_none(tp)
        return state is not None and state.held

    def _hand_out(self, fetch: CompletedFetch, most: int, slices: list[RecordSlice]) -> int:
        """Add up to `most` records of the first fetch to `slices`; returns how many."""
        if not self._is_current(fetch) or not self._usable(fetch):
            self.completed_fetches.popleft()
            return 0
        state = self._subscriptions.state(fetch.tp)
        self._subscriptions.note_position(fetch.tp, state)
        portion = fetch.fetch_records(most, fetch.fetch_offset, state.end, self._config.check_crcs, self._deserializers)
        if len(portion):
            slices.append(portion)
            if self._events.active:
                self._events.tell_facts(HANDED_OUT, (*fetch.tp, fetch.fetch_offset, len(portion)))
            self.sensors.records.of(fetch.tp.topic).record(len(portion))
        else:
            self._passed = True
        position, epoch = fetch.position_after()
        state.position = fetch.fetch_offset = bounded(position, state.end)
        state.epoch = epoch
        self._positions.note(fetch.tp, state.position, epoch, fetch.leader_epoch)
        if fetch.exhausted():
            self.sensors.bytes.of(fetch.tp.topic).record(fetch.size_bytes)
            self.completed_fetches.popleft()
            self._subscriptions.move_to_end(fetch.tp)
        return len(portion)

    def _take_whole(self, max_bytes: int | None) -> list[tuple[CompletedFetch, int, int | None]]:
        """Take fetches off the queue with the span of offsets to decode, and move the positions past them."""
        taken: list[tuple[CompletedFetch, int, int | None]] = []
        held: list[CompletedFetch] = []
        left = FOREVER if max_bytes is None else max_bytes
        try:
            while self.completed_fetches:
                fetch = self.completed_fetches.popleft()
                if self._paused(fetch.tp):
                    held.append(fetch)
                elif self._is_current(fetch):
                    if taken and (fetch.size_bytes > left or fetch.answer.error_code):
                        self.completed_fetches.appendleft(fetch)
                        break
                    if self._usable(fetch):
                        taken.append(self._move_past(fetch))
                        left -= fetch.size_bytes
        finally:
            self.completed_fetches.extendleft(reversed(held))
        return taken

    def _move_past(self, fetch: CompletedFetch) -> tuple[CompletedFetch, int, int | None]:
        state = self._subscriptions.state(fetch.tp)
        self._subscriptions.note_position(fetch.tp, state)
        state.position = bounded(fetch.next_offset(fetch.fetch_offset), state.end)
        state.epoch = fetch.last_epoch()
        self._positions.note(fetch.tp, state.position, state.epoch, fetch.leader_epoch)
        self._subscriptions.move_to_end(fetch.tp)
        self.sensors.bytes.of(fetch.tp.topic).record(fetch.size_bytes)
        return fetch, fetch.fetch_offset, state.end

    def _usable(self, fetch: CompletedFetch) -> bool:
        """Deal with an error in the answer: False when there is nothing to take, an exception when the user must know."""
        code = fetch.answer.error_code
        if code == ErrorCode.NONE:
            return True
        from_replica = self._replicas.clear_preferred([fetch.tp])
        if code == ErrorCode.OFFSET_OUT_OF_RANGE and from_replica:
            LOG.debug("%s; its leader may have it", out_of_range(fetch))
        elif code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._reset(fetch)
        elif code in LOOK_AGAIN:
            LOG.debug("fetch of %s at %d: %s", fetch.tp, fetch.fetch_offset, name_of(code))
            self._try_later([fetch.tp])
        elif code == ErrorCode.CORRUPT_MESSAGE:
            raise CorruptRecordError(fetch.unreadable())
        else:
            raise error_for(code, f"fetch of {fetch.tp} at offset {fetch.fetch_offset}")
        return False

    def _reset(self, fetch: CompletedFetch) -> None:
        """The offset does not exist: begin anew by `auto.offset.reset`, or say so."""
        policy = self._subscriptions.default_reset
        if policy is None:
            raise OffsetOutOfRangeError(ErrorCode.OFFSET_OUT_OF_RANGE, out_of_range(fetch))
        LOG.info("%s; starting anew by auto.offset.reset", out_of_range(fetch))
        self._subscriptions.request_reset(fetch.tp, policy)


def completed(done: Future[ClientResponse]) -> tuple[int, str]:
    """How many bytes of records an answer has, and why there is none."""
    error = done.exception(0)
    if error is not None:
        return 0, str(error)
    message = done.result(0).message
    size = sum(len(part.records or b"") for topic in message.responses for part in topic.partitions)
    return size, name_of(message.error_code) if message.error_code else ""


def bounded(position: int, end: int | None) -> int:
    """A position that does not run past the bound."""
    return position if end is None else min(position, max(end, 0))


def out_of_range(fetch: CompletedFetch) -> str:
    """The sentence about an offset that does not exist."""
    start, end = fetch.answer.log_start_offset, fetch.answer.high_watermark
    have = f"; it has {start} to {end}" if start >= 0 and end >= 0 else ""
    return f"{fetch.tp} has no offset {fetch.fetch_offset}{have}"
