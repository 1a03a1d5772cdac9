"""Fetch records ahead of the user, and return the records that have arrived.

Corresponds to Java's Fetcher and FetchCollector. Requests are sent through `ConsumerNetworkClient`. The life of a
fetch:

1. `send_fetches` plans at most one request per broker. A partition is requested if it has a position, is not paused,
revoked or in its retry backoff, and has no data in `completed_fetches`. A broker with a request in flight gets no
second one. `Consumer.poll` calls `send_fetches` before it waits for data and again before it returns records, so the
next data arrives while the user works.

2. `_handle` receives the response. It appends a `CompletedFetch` for each partition with data or with an error. A
request that failed as a whole leaves no entry. Its partitions are requested again after a backoff, or at once in a new
fetch session after a session error.

3. `collect_fetch` takes the first entry of `completed_fetches`. It compares the start offset of the entry with the
position, decodes the data once, returns up to `max.poll.records` records, and advances the position. The entry stays
first until all its records are returned.

4. The error of a partition is handled when its entry is first, so the records before it are returned first. Depending
on the error, the position is reset, the partition is retried with new metadata, or an exception is raised
(`_check_error`).

Nothing is cancelled by a seek, a reset or a rebalance. An entry is dropped when it is first and its partition is no
longer assigned or has another position; a response that arrives later is treated in the same way. While a partition is
paused or revoked, its entries stay in the queue and those of other partitions are returned.

The buffered data of one broker plus its request in flight is limited to `fetch.max.bytes`. A single larger batch is
accepted, because the partition could not continue without it.
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
    PartitionFetchParameters,
    add_session,
    can_use_ids,
    close_session_request,
)
from ottla.client.consumer.fetching.position_validator import PositionValidator
from ottla.client.consumer.fetching.read_replicas import ReadReplicas
from ottla.client.consumer.partition_retry import PartitionRetry
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
"""The last version with topic names. Later versions identify topics by ids; older brokers assign no ids."""
METADATA_ERRORS = frozenset(
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
"""Errors after which the metadata is updated and the fetch retried after a backoff."""
SESSION_ERRORS = frozenset({ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH})
"""Errors after which a new session is started at once."""
Plan = dict[Node, dict[TopicPartition, PartitionFetchParameters]]


class Fetcher:
    """Fetches in flight and fetched data."""

    def __init__(
        self,
        config: ConsumerConfig,
        client: ConsumerNetworkClient,
        subscriptions: SubscriptionState,
        retry_backoff: ExponentialBackoff,
        events: EventStream,
    ) -> None:
        self.completed_fetches: deque[CompletedFetch] = deque()
        """Data that is not fully returned yet, oldest first. Only the first entry may be partly returned."""
        self.nodes_with_pending_fetch: set[int] = set()
        self._has_skipped_records = False
        """True if a position has advanced without returning records, and `take_skipped` has not reported it yet."""
        self._config = config
        self._client = client
        self._subscriptions = subscriptions
        self._retry = PartitionRetry(client, subscriptions, retry_backoff)
        self._events = events
        self._clock = client.client.clock
        self.sensors = FetchSensors(client.client.sensors.registry)
        self._sessions: dict[int, FetchSessionHandler] = {}
        self._replicas = ReadReplicas(config.metadata_max_age_ms)
        self._positions = PositionValidator(client, subscriptions, self._retry)
        self._damaged: dict[TopicPartition, tuple[int, CorruptRecordError]] = {}
        """The decoding error of each partition and the offset of the damage, until `_raise_damage` raises it. Used only
        by `collect_columns`.
        """
        self._planned_state: tuple[int, int] | None = None
        """The result of `_plan_state` at the last plan; None if a position then needed validation. While every broker
        has a request in flight, another plan is needed only if this result has changed.
        """
        self._deserializers = (config.key_deserializer, config.value_deserializer)
        self._rollbacks = subscriptions.rollbacks

    def reset(self) -> None:
        """Forget requests in flight and buffered data. Everything is fetched again from the positions, in new sessions."""
        self.nodes_with_pending_fetch.clear()
        self._sessions.clear()
        self.completed_fetches = deque()
        self._damaged.clear()
        self._planned_state, self._has_skipped_records = None, False
        self._positions.reset()

    def send_fetches(self) -> int:
        """Queue a request to every broker that has partitions to fetch. Return the number of requests."""
        now = self._clock.monotonic()
        plan = self._plan(now)
        for node, partitions in plan.items():
            self.nodes_with_pending_fetch.add(node.node_id)
            if self._events.active:
                offsets = (fact for tp, params in partitions.items() for fact in (*tp, params.offset))
                self._events.publish_kind(SENT, node.node_id, *offsets)
            request, max_version = self._request(node, partitions)
            timeout_ms = self._config.request_timeout_ms + self._config.fetch_max_wait_ms
            future = self._client.send(node, request, timeout_ms=timeout_ms, max_version=max_version)
            future.add_done_callback(partial(self._handle, node, partitions))
        return len(plan)

    @property
    def buffered_bytes(self) -> int:
        """Bytes of fetched record data that is not returned yet."""
        return sum(fetch.size_bytes for fetch in self.completed_fetches)

    @property
    def memory_limit_bytes(self) -> int:
        """The approximate limit of buffered data: `fetch.max.bytes` per broker."""
        return self._config.fetch_max_bytes * max(1, len(self._sessions))

    def collect_fetch(self, max_records: int) -> list[RecordSlice]:
        """Return up to `max_records` fetched records and advance the positions.

        An error of a partition is raised only if no records can be returned. Otherwise the next call raises it.
        """
        self._drop_after_rollback()
        slices: list[RecordSlice] = []
        held: list[CompletedFetch] = []
        try:
            while max_records > 0 and self.completed_fetches:
                if self._is_paused(self.completed_fetches[0].tp):
                    held.append(self.completed_fetches.popleft())
                    continue
                try:
                    max_records -= self._return_records(self.completed_fetches[0], max_records, slices)
                except Exception as error:
                    if slices:
                        break
                    if isinstance(error, RecordDeserializationError):  # the fetch stays in the queue for the next call
                        self._subscriptions.drop_saved_position(self.completed_fetches[0].tp)
                    else:
                        self.completed_fetches.popleft()
                    raise
                except (
                    BaseException
                ):  # for example Ctrl-C in a deserializer; the next call returns the records in `slices`
                    for part in reversed(slices):
                        self._rewind(part.source.tp, part.source.columns.offsets[part.start])
                    raise
        finally:
            self.completed_fetches.extendleft(reversed(held))
        return slices

    def collect_columns(
        self, max_bytes: int | None, *, with_headers: bool, only: Collection[str] | None = None
    ) -> list[tuple[TopicPartition, Columns]]:
        """Return the fetched data decoded into columns, and advance the positions.

        The next fetches are sent before decoding.

        Fetched data is taken until its size as received reaches `max_bytes`; the data of at least one fetch is taken.
        `only` names the required columns, as in `decode`.
        """
        self._drop_after_rollback()
        self._raise_damage()
        taken = self._take_fetches(max_bytes)
        try:
            if taken:
                self.send_fetches()
                self._client.transmit_sends()
            chunks: list[tuple[TopicPartition, Columns]] = []
            for fetch, offset, end in taken:
                self._decode_into(chunks, fetch, offset, end, with_headers, only)
        except BaseException:
            for fetch, offset, _ in taken:
                self._rewind(fetch.tp, offset)
            raise
        if not chunks:
            self._raise_damage()
            self._has_skipped_records |= bool(taken)
        return chunks

    def _drop_after_rollback(self) -> None:
        """Drop all buffered data if `SubscriptionState.restore_positions` has moved positions back since the last call.

        Records may already have been taken from this data, so it no longer starts at the positions. It is fetched
        again.
        """
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
        """Decode a fetch up to its end or to a damaged batch.

        The error of a damaged batch is stored in `_damaged`, and is raised once no other data can be returned.
        """
        try:
            crcs = self._config.check_crcs
            for columns in fetch.decode_all(offset, end, check_crcs=crcs, with_headers=with_headers, only=only):
                chunks.append((fetch.tp, columns))
                if self._events.active:
                    self._events.publish_facts(HANDED_OUT, (*fetch.tp, offset, columns.count))
                self.sensors.records.sensor_for(fetch.tp.topic).record(columns.count)
                offset = columns.next_offset
        except CorruptRecordError as error:
            self._rewind(fetch.tp, offset)
            self._damaged[fetch.tp] = offset, error

    def _raise_damage(self) -> None:
        """Raise a stored decoding error, unless the position of its partition has changed since."""
        while self._damaged:
            tp, (offset, error) = self._damaged.popitem()
            state = self._subscriptions.state_or_none(tp)
            if state is not None and state.position == offset:
                raise error

    def _rewind(self, tp: TopicPartition, offset: int) -> None:
        state = self._subscriptions.state_or_none(tp)
        if state is not None:
            state.position, state.epoch = offset, -1

    def take_skipped(self) -> bool:
        """Return True if a position has advanced past offsets without records since the last call.

        Such offsets belong to control records, to records of aborted transactions, or to compacted records.
        """
        skipped, self._has_skipped_records = self._has_skipped_records, False
        return skipped

    def close_sessions(self) -> None:
        """End the fetch session of each connected broker (KIP-227). Does not wait for connections or responses."""
        for node_id, session in self._sessions.items():
            if session.session_id:
                self._client.send_last(node_id, close_session_request(session.session_id))

    def clear_buffered(self, tps: Iterable[TopicPartition]) -> None:
        """Drop the buffered data of these partitions.

        The caller has changed their positions, or the partitions are no longer assigned.
        """
        dropped = set(tps)
        self.completed_fetches = deque(fetch for fetch in self.completed_fetches if fetch.tp not in dropped)

    def _plan(self, now: float) -> Plan:
        """Return the partitions to fetch from each broker.

        A broker with no new data delays its response by up to `fetch.max.wait.ms`, and no second request is sent
        meanwhile. If the user then takes the last buffered records of this broker's other partitions, these could not
        be fetched before the response. Therefore, while data of a broker is buffered, a request must contain at least
        one partition that is known to have more records (`_can_fetch_more`).
        """
        cluster = self._client.metadata.cluster
        if self._is_plan_unchanged():
            return {}
        buffered = {fetch.tp for fetch in self.completed_fetches}
        busy = {self._replicas.node(tp, cluster, now) for tp in buffered}
        plan: Plan = {}
        unvalidated = []
        for tp in self._subscriptions.find_fetchable(now, buffered):
            state = self._subscriptions.state(tp)
            position = state.position
            assert position is not None
            node = self._replicas.node(tp, cluster, now)
            if node is None:
                self._client.metadata.request_update()
            elif self._positions.needs_validation(tp, position, state.epoch):
                unvalidated.append(tp)
            elif node.node_id not in self.nodes_with_pending_fetch and not self._is_unreachable(node, now):
                plan.setdefault(node, {})[tp] = self._partition_params(tp, position)
        self._positions.validate(unvalidated)
        self._planned_state = None if unvalidated else self._plan_state()
        return {node: wanted for node, wanted in plan.items() if self._can_fetch_more(node, wanted, busy, now)}

    def _plan_state(self) -> tuple[int, int]:
        """Return the metadata version and the number of assigned partitions.

        Only new metadata names a new leader, for which positions must be validated.
        """
        return self._client.metadata.version, len(self._subscriptions.assigned())

    def _is_plan_unchanged(self) -> bool:
        """Return True if every broker has a request in flight and `_plan_state` has not changed.

        This is the usual case, and saves a pass over all partitions.
        """
        all_brokers_pending = len(self.nodes_with_pending_fetch) >= len(self._client.metadata.cluster.nodes)
        return all_brokers_pending and self._planned_state == self._plan_state()

    def _partition_params(self, tp: TopicPartition, position: int) -> PartitionFetchParameters:
        cluster = self._client.metadata.cluster
        max_records = self._config.max_partition_fetch_bytes
        return PartitionFetchParameters(cluster.topic_id(tp.topic), position, cluster.leader_epoch(tp), max_records)

    def _can_fetch_more(self, node: Node, wanted: Iterable[TopicPartition], busy: set[Node | None], now: float) -> bool:
        """Return True if a further request to this broker is allowed while its earlier data is buffered."""
        if node not in busy:
            return True
        if not any(self._subscriptions.state(tp).has_more() for tp in wanted):
            return False
        if self._free_bytes(node, now) > 0:
            return True
        # Data of paused partitions may stay buffered forever and must not stop the others.
        self.clear_buffered([fetch.tp for fetch in self.completed_fetches if self._is_paused(fetch.tp)])
        return self._free_bytes(node, now) > 0

    def _free_bytes(self, node: Node, now: float) -> int:
        """Return the number of bytes that may be requested from this broker: `fetch.max.bytes` minus its buffered data."""
        cluster = self._client.metadata.cluster
        node_fetches = (
            fetch for fetch in self.completed_fetches if self._replicas.node(fetch.tp, cluster, now) == node
        )
        return self._config.fetch_max_bytes - sum(fetch.size_bytes for fetch in node_fetches)

    def _is_unreachable(self, node: Node, now: float) -> bool:
        """Return True if the broker is disconnected and its reconnect backoff has not passed."""
        return (
            self._client.client.has_failed_login(node.node_id)
            and self._client.client.connection_delay(node.node_id, now) > 0
        )

    def _request(
        self, node: Node, partitions: dict[TopicPartition, PartitionFetchParameters]
    ) -> tuple[FetchRequest, int | None]:
        config = self._config
        session = self._sessions.setdefault(node.node_id, FetchSessionHandler())
        request = FetchRequest(
            max_wait_ms=config.fetch_max_wait_ms,
            min_bytes=config.fetch_min_bytes,
            max_bytes=max(0, self._free_bytes(node, self._clock.monotonic())),
            isolation_level=config.isolation_number,
            rack_id=config.client_rack,
        )
        max_version = None if can_use_ids(partitions) else LAST_VERSION_WITH_NAMES
        return add_session(request, session.plan(partitions)), max_version

    def _handle(
        self, node: Node, requested: dict[TopicPartition, PartitionFetchParameters], done: Future[ClientResponse]
    ) -> None:
        """Handle a response. A request that failed as a whole is retried after a backoff."""
        self.nodes_with_pending_fetch.discard(node.node_id)
        session = self._sessions.setdefault(node.node_id, FetchSessionHandler())
        error = done.exception(0)
        if self._events.active:
            self._events.publish_kind(COMPLETED, node.node_id, *response_summary(done))
        if error is None:
            response = done.result(0)
            message = response.message
            if message.error_code == ErrorCode.NONE:
                session.handle_response(message.session_id)
                self.sensors.latency.record(response.received - response.request.created)
                self._record_sizes(message, self._store_response(message, requested))
                return
            session.handle_error(message.error_code)
            if message.error_code in SESSION_ERRORS:
                return
            error = error_for(message.error_code, f"fetch from {node}")
        session.handle_disconnect()
        if not isinstance(error, KafkaError | KafkaTimeoutError):
            self._client.metadata.set_fatal_error(error)
        LOG.debug("fetch failed node=%s error=%s", node, error)
        self._replicas.clear_preferred(requested)
        self._retry.retry_later(requested)

    def _record_sizes(self, message: Any, size_bytes: int) -> None:
        self.sensors.sizes.record(size_bytes)
        self.sensors.throttled.record(message.throttle_time_ms)
        if size_bytes:
            self.sensors.filled.record(1)

    def preferred_replica(self, tp: TopicPartition) -> int:
        """Return the follower that a partition is fetched from; -1 for the leader."""
        return self._replicas.preferred(tp)

    def _store_response(self, message: Any, requested: dict[TopicPartition, PartitionFetchParameters]) -> int:
        """Store the data of a response. Return its bytes of records."""
        size_bytes = 0
        names = {params.topic_id: tp.topic for tp, params in requested.items()}
        for topic in message.responses:
            name = topic.topic or names.get(topic.topic_id, "")
            for partition_response in topic.partitions:
                tp = TopicPartition(name, partition_response.partition_index)
                if tp in requested:
                    size_bytes += len(partition_response.records or b"")
                    self._store_partition(tp, requested[tp], partition_response)
        return size_bytes

    def _store_partition(self, tp: TopicPartition, params: PartitionFetchParameters, partition_response: Any) -> None:
        if partition_response.error_code or partition_response.records:
            self.completed_fetches.append(CompletedFetch(tp, params.offset, partition_response, params.leader_epoch))
            if self._events.active:
                self._events.publish_facts(BUFFERED, (*tp, params.offset, len(partition_response.records or b"")))
        if not partition_response.error_code:
            self._update_log_ends(tp, partition_response)
        if partition_response.preferred_read_replica >= 0:
            self._replicas.set_preferred(tp, partition_response.preferred_read_replica, self._clock.monotonic())

    def _update_log_ends(self, tp: TopicPartition, partition_response: Any) -> None:
        state = self._subscriptions.state_or_none(tp)
        if state is not None:
            committed = self._config.isolation_number and partition_response.last_stable_offset >= 0
            state.log_start = partition_response.log_start_offset
            state.readable_to = (
                partition_response.last_stable_offset if committed else partition_response.high_watermark
            )

    def _is_current(self, fetch: CompletedFetch) -> bool:
        """Return True if the data starts at the position.

        After a seek to a later offset within decoded data, the rows before that offset are skipped and the result is
        True.
        """
        state = self._subscriptions.state_or_none(fetch.tp)
        if state is None or state.position is None:
            return False
        return state.position == fetch.fetch_offset or (state.epoch < 0 and fetch.skip_to(state.position))

    def _is_paused(self, tp: TopicPartition) -> bool:
        state = self._subscriptions.state_or_none(tp)
        return state is not None and state.is_held

    def _return_records(self, fetch: CompletedFetch, max_records: int, slices: list[RecordSlice]) -> int:
        """Add up to `max_records` records of the first fetch to `slices`. Return the number of added records."""
        if not self._is_current(fetch) or not self._check_error(fetch):
            self.completed_fetches.popleft()
            return 0
        state = self._subscriptions.state(fetch.tp)
        self._subscriptions.save_position(fetch.tp, state)
        portion = fetch.fetch_records(
            max_records, fetch.fetch_offset, state.end, self._config.check_crcs, self._deserializers
        )
        if len(portion):
            slices.append(portion)
            if self._events.active:
                self._events.publish_facts(HANDED_OUT, (*fetch.tp, fetch.fetch_offset, len(portion)))
            self.sensors.records.sensor_for(fetch.tp.topic).record(len(portion))
        else:
            self._has_skipped_records = True
        position, epoch = fetch.position_after_taken()
        state.position = fetch.fetch_offset = limit_position(position, state.end)
        state.epoch = epoch
        self._positions.record_position(fetch.tp, state.position, epoch, fetch.leader_epoch)
        if fetch.is_exhausted():
            self.sensors.bytes.sensor_for(fetch.tp.topic).record(fetch.size_bytes)
            self.completed_fetches.popleft()
            self._subscriptions.move_to_end(fetch.tp)
        return len(portion)

    def _take_fetches(self, max_bytes: int | None) -> list[tuple[CompletedFetch, int, int | None]]:
        """Take fetches from the queue and advance the positions.

        Return each fetch with the first and the end offset to decode.
        """
        taken: list[tuple[CompletedFetch, int, int | None]] = []
        held: list[CompletedFetch] = []
        left = FOREVER if max_bytes is None else max_bytes
        try:
            while self.completed_fetches:
                fetch = self.completed_fetches.popleft()
                if self._is_paused(fetch.tp):
                    held.append(fetch)
                elif self._is_current(fetch):
                    if taken and (fetch.size_bytes > left or fetch.response.error_code):
                        self.completed_fetches.appendleft(fetch)
                        break
                    if self._check_error(fetch):
                        taken.append(self._advance_past(fetch))
                        left -= fetch.size_bytes
        finally:
            self.completed_fetches.extendleft(reversed(held))
        return taken

    def _advance_past(self, fetch: CompletedFetch) -> tuple[CompletedFetch, int, int | None]:
        state = self._subscriptions.state(fetch.tp)
        self._subscriptions.save_position(fetch.tp, state)
        state.position = limit_position(fetch.next_offset(fetch.fetch_offset), state.end)
        state.epoch = fetch.last_epoch()
        self._positions.record_position(fetch.tp, state.position, state.epoch, fetch.leader_epoch)
        self._subscriptions.move_to_end(fetch.tp)
        self.sensors.bytes.sensor_for(fetch.tp.topic).record(fetch.size_bytes)
        return fetch, fetch.fetch_offset, state.end

    def _check_error(self, fetch: CompletedFetch) -> bool:
        """Return True if the partition has no error.

        Otherwise handle the error: return False after a reset or for a retry, or raise an exception for the user.
        """
        code = fetch.response.error_code
        if code == ErrorCode.NONE:
            return True
        from_replica = self._replicas.clear_preferred([fetch.tp])
        if code == ErrorCode.OFFSET_OUT_OF_RANGE and from_replica:
            LOG.debug("%s; fetching from the leader", out_of_range_text(fetch))
        elif code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._reset(fetch)
        elif code in METADATA_ERRORS:
            LOG.debug("fetch failed partition=%s offset=%d error=%s", fetch.tp, fetch.fetch_offset, name_of(code))
            self._retry.retry_later([fetch.tp])
        elif code == ErrorCode.CORRUPT_MESSAGE:
            raise CorruptRecordError(fetch.corrupt_log_text())
        else:
            raise error_for(code, f"fetch of {fetch.tp} at offset {fetch.fetch_offset}")
        return False

    def _reset(self, fetch: CompletedFetch) -> None:
        """Handle an offset out of range: reset the position by `auto.offset.reset`, or raise OffsetOutOfRangeError."""
        policy = self._subscriptions.default_reset
        if policy is None:
            raise OffsetOutOfRangeError(ErrorCode.OFFSET_OUT_OF_RANGE, out_of_range_text(fetch))
        LOG.info("%s; resetting the position by auto.offset.reset", out_of_range_text(fetch))
        self._subscriptions.request_reset(fetch.tp, policy)


def response_summary(done: Future[ClientResponse]) -> tuple[int, str]:
    """Return the bytes of records of a response, and its error text or ""."""
    error = done.exception(0)
    if error is not None:
        return 0, str(error)
    message = done.result(0).message
    size = sum(len(part.records or b"") for topic in message.responses for part in topic.partitions)
    return size, name_of(message.error_code) if message.error_code else ""


def limit_position(position: int, end: int | None) -> int:
    """Limit a position to the exclusive end offset that was set with `Consumer.bound`."""
    return position if end is None else min(position, max(end, 0))


def out_of_range_text(fetch: CompletedFetch) -> str:
    """Return the error text for an offset out of range."""
    start, end = fetch.response.log_start_offset, fetch.response.high_watermark
    known_offsets = f"; its offsets are {start} to {end}" if start >= 0 and end >= 0 else ""
    return f"{fetch.tp} has no offset {fetch.fetch_offset}{known_offsets}"
