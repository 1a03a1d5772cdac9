"""Fetch and acknowledge the records of a share group.

The shell around the pure `ShareSession` of each broker: it sends what the session decides, reports the responses, and
buffers the acquired records. Records are fetched only while `poll` waits for them, and never ahead, because the
acquisition locks of buffered records are running.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.client.metrics.fetch_sensors import FetchSensors
from ottla.client.network.client_request import ClientResponse
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.client.runtime.future import Future
from ottla.client.share.config import ShareConsumerConfig
from ottla.client.share.state.acknowledgements import (
    Acknowledgements,
    AcknowledgeResult,
    ShareTopicPartition,
    merge_batches,
)
from ottla.client.share.state.acquired_records import CompletedShareFetch, DeliveredPortion
from ottla.client.share.state.share_session import SendAcknowledge, SendFetch, ShareRequest, ShareSessionHandler
from ottla.errors import ErrorCode, KafkaError, KafkaTimeoutError, OttlaError, error_for, name_of
from ottla.model import FOREVER, Node, TopicPartition
from ottla.protocol.messages.share_acknowledge import (
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from ottla.protocol.messages.share_fetch import FetchPartition, FetchTopic, ForgottenTopic, ShareFetchRequest

METADATA_ERRORS = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.FENCED_STATE_EPOCH,
    }
)
"""Errors of a partition after which the metadata is updated and the fetch is retried."""
SESSION_ERRORS = frozenset(
    {
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    }
)
"""Errors after which a new session is started."""
ACKNOWLEDGE_SECONDS = 0.1
"""While records of an earlier fetch are returned, acknowledgements wait for the next fetch, or until no request was sent for so long."""
Acquired = tuple[ShareTopicPartition, int, int, DeliveredPortion]
"""A returned portion with its partition, broker and session."""


class ShareFetcher:
    """Share sessions, requests in flight, and acquired records."""

    def __init__(
        self,
        config: ShareConsumerConfig,
        client: ConsumerNetworkClient,
        backoff: ExponentialBackoff,
        member_id: Callable[[], str],
        log: logging.LoggerAdapter[Any],
    ) -> None:
        self.lock_timeout_ms: int | None = None
        """The duration of acquisition locks, from the last response; None before."""
        self.sensors = FetchSensors(client.client.sensors.registry)
        self._config = config
        self._client = client
        self._clock = client.client.clock
        self._backoff = backoff
        self._member_id = member_id
        self._log = log
        self._sessions: dict[int, ShareSessionHandler] = {}
        self._completed: deque[CompletedShareFetch] = deque()
        self._failed_portion: Acquired | None = None
        self._failure: Exception | None = None
        self._next_node = 0
        self._sent_at = -FOREVER
        """When the last request was queued."""
        self._deserializers = (config.key_deserializer, config.value_deserializer)

    @property
    def buffered_bytes(self) -> int:
        """Bytes of acquired records that are not returned yet."""
        return sum(each.size_bytes for each in self._completed)

    @property
    def is_acknowledging(self) -> bool:
        """True if acknowledgements have no result yet."""
        return any(session.has_acknowledgements for session in self._sessions.values())

    @property
    def are_acknowledgements_late(self) -> bool:
        """True if records are buffered, and the acknowledgements should not wait until the next fetch.

        A program that processes a `poll` in less time than ACKNOWLEDGE_SECONDS sends half the requests this way.
        """
        if not self._completed or self._clock.monotonic() - self._sent_at < ACKNOWLEDGE_SECONDS:
            return False
        return self.is_acknowledging

    def reset(self, error: Exception) -> None:
        """Forget requests in flight and buffered records, after an exception that interrupted a call."""
        for session in self._sessions.values():
            session.reset(error)
        self._completed.clear()
        self._failed_portion = None

    def add(self, acknowledgements: Iterable[tuple[Acknowledgements, int]]) -> None:
        """Queue acknowledgements, each with the session of its records."""
        for each, generation in acknowledgements:
            self._session(each.node_id).add(each, generation)

    def send_fetches(self, assigned: Iterable[ShareTopicPartition]) -> float:
        """Queue the next request to each broker, with the waiting acknowledgements.

        Return the seconds until the next call.
        """
        now = self._clock.monotonic()
        wanted = self._group_by_leader(assigned)
        for node_id in wanted:
            self._session(node_id)
        span = FOREVER
        one_at_a_time = self._config.share_acquire_mode == "record_limit"
        is_fetching = any(session.is_busy for session in self._sessions.values())
        for node_id, session in self._rotated_sessions():
            partitions = wanted.get(node_id, ())
            if one_at_a_time and is_fetching:
                partitions = ()  # the limit holds for all brokers together
            if not self._is_unreachable(node_id, now):
                request = session.decide(partitions, now)
                if request is not None:
                    self._send(session, request)
                    is_fetching |= isinstance(request, SendFetch)
            span = min(span, session.time_to_retry(now))
        return span

    def send_acknowledgements(self) -> None:
        """Send waiting acknowledgements to every broker without a request in flight."""
        now = self._clock.monotonic()
        for session in self._sessions.values():
            request = session.decide(None, now)
            if request is not None:
                self._send(session, request)
        self._client.transmit_sends()

    def close_sessions(self) -> bool:
        """Close sessions without a request in flight, with the waiting acknowledgements. Return True if all are closed."""
        for session in self._sessions.values():
            request = session.decide_close()
            if request is not None:
                self._send(session, request)
        self._client.transmit_sends()
        return all(session.is_closed and not session.is_busy for session in self._sessions.values())

    def drop_sessions(self) -> None:
        """Forget all sessions and buffered records, after they were closed."""
        self._sessions.clear()
        self._completed.clear()
        self._failed_portion = None

    def take_results(self) -> list[AcknowledgeResult]:
        """Return the results of acknowledgements that were not taken yet."""
        return [result for session in self._sessions.values() for result in session.take_results()]

    def raise_failure(self) -> None:
        """Raise an error of a response that concerns the user, once."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def collect(self, max_records: int) -> list[Acquired]:
        """Return up to `max_records` acquired records. An error is in the last portion, and ends the result."""
        if self._failed_portion is not None:
            failed, self._failed_portion = self._failed_portion, None
            return [failed]
        found: list[Acquired] = []
        while self._completed and max_records > 0:
            fetch = self._completed[0]
            if fetch.generation != self._session(fetch.node_id).generation:
                self._completed.popleft()  # the broker has released them
                continue
            portion = fetch.fetch_records(max_records)
            if fetch.is_exhausted:
                self._completed.popleft()
                self.sensors.bytes.sensor_for(fetch.partition.topic).record(fetch.size_bytes)
            acquired = (fetch.partition, fetch.node_id, fetch.generation, portion)
            if portion.error is not None and any(each.record_count for *_, each in found):
                self._failed_portion = acquired  # raised by the next call, when no records precede it
                break
            found.append(acquired)
            count = portion.record_count
            if count:
                self.sensors.records.sensor_for(fetch.partition.topic).record(count)
            max_records -= count
            if portion.error is not None:
                break
        return found

    def time_to_retry(self) -> float:
        """Return the seconds until a waiting acknowledgement may be sent."""
        now = self._clock.monotonic()
        waiting = (each for each in self._sessions.values() if each.has_acknowledgements)
        return min((each.time_to_retry(now) for each in waiting), default=FOREVER)

    def _session(self, node_id: int) -> ShareSessionHandler:
        session = self._sessions.get(node_id)
        if session is None:
            session = self._sessions[node_id] = ShareSessionHandler(node_id, self._backoff)
        return session

    def _rotated_sessions(self) -> list[tuple[int, ShareSessionHandler]]:
        """Return the sessions, each time starting with another one."""
        sessions = list(self._sessions.items())
        self._next_node = (self._next_node + 1) % max(1, len(sessions))
        return sessions[self._next_node :] + sessions[: self._next_node]

    def _group_by_leader(self, assigned: Iterable[ShareTopicPartition]) -> dict[int, list[ShareTopicPartition]]:
        cluster = self._client.metadata.cluster
        wanted: dict[int, list[ShareTopicPartition]] = {}
        for each in assigned:
            leader = cluster.leader(each.tp)
            if leader is None:
                self._client.metadata.request_update()
            else:
                wanted.setdefault(leader.node_id, []).append(each)
        return wanted

    def _is_unreachable(self, node_id: int, now: float) -> bool:
        """Return True if the broker is unknown, or disconnected and its reconnect backoff has not passed."""
        if node_id not in self._client.metadata.cluster.nodes:
            return True
        network = self._client.client
        return network.has_failed_login(node_id) and network.connection_delay(node_id, now) > 0

    def _send(self, session: ShareSessionHandler, request: ShareRequest) -> None:
        node = self._client.metadata.cluster.nodes.get(session.node_id)
        if node is None:
            error = error_for(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {session.node_id} left the cluster")
            session.handle_failure(error, self._clock.monotonic())
            return
        self._sent_at = self._clock.monotonic()
        timeout_ms = self._config.request_timeout_ms
        message: Any
        if isinstance(request, SendFetch):
            message = self._fetch_message(request)
            timeout_ms += self._config.fetch_max_wait_ms
        else:
            message = self._acknowledge_message(request)
        future = self._client.send(node, message, timeout_ms=timeout_ms)
        future.add_done_callback(partial(self._handle, node, session, request))

    def _fetch_message(self, request: SendFetch) -> ShareFetchRequest:
        config = self._config
        batches = batches_by_partition(request.acknowledgements)
        parts = {each: FetchPartition(each.partition) for each in request.added}
        parts |= {each: FetchPartition(each.partition, batches[each]) for each in batches}
        topics: dict[Any, list[FetchPartition]] = {}
        for partition, part in parts.items():
            topics.setdefault(partition.topic_id, []).append(part)
        forgotten: dict[Any, list[int]] = {}
        for partition in request.forgotten:
            forgotten.setdefault(partition.topic_id, []).append(partition.partition)
        return ShareFetchRequest(
            group_id=config.group_id,
            member_id=self._member_id(),
            share_session_epoch=request.epoch,
            max_wait_ms=config.fetch_max_wait_ms,
            min_bytes=config.fetch_min_bytes,
            max_bytes=config.fetch_max_bytes,
            max_records=config.max_poll_records,
            batch_size=config.max_poll_records,
            share_acquire_mode=1 if config.share_acquire_mode == "record_limit" else 0,
            topics=[FetchTopic(topic_id, members) for topic_id, members in topics.items()],
            forgotten_topics_data=[ForgottenTopic(topic_id, numbers) for topic_id, numbers in forgotten.items()],
        )

    def _acknowledge_message(self, request: SendAcknowledge) -> ShareAcknowledgeRequest:
        topics: dict[Any, list[AcknowledgePartition]] = {}
        for partition, batches in batches_by_partition(request.acknowledgements).items():
            topics.setdefault(partition.topic_id, []).append(AcknowledgePartition(partition.partition, batches))
        return ShareAcknowledgeRequest(
            group_id=self._config.group_id,
            member_id=self._member_id(),
            share_session_epoch=request.epoch,
            is_renew_ack=request.renews,
            topics=[AcknowledgeTopic(topic_id, members) for topic_id, members in topics.items()],
        )

    def _handle(
        self, node: Node, session: ShareSessionHandler, request: ShareRequest, done: Future[ClientResponse]
    ) -> None:
        """Handle a response, or a failed request."""
        if session.in_flight is not request:
            return  # forgotten by a reset
        now = self._clock.monotonic()
        error = done.exception(0)
        if error is not None:
            self._log.debug("share request failed node=%s error=%s", node, error)
            session.handle_failure(error, now)
            self._client.metadata.request_update()
            if not isinstance(error, KafkaError | KafkaTimeoutError):
                self._failure = error
            return
        response = done.result(0)
        message = response.message
        if message.error_code:
            self._handle_error(node, message)
        if isinstance(request, SendFetch):
            self._handle_fetch(session, request, response, now)
        else:
            session.handle_acknowledge_response(
                message.error_code, self._acknowledge_errors(session, request, message), now
            )
            self._learn_lock_timeout(message)

    def _handle_error(self, node: Node, message: Any) -> None:
        """Handle an error of the whole response."""
        code = message.error_code
        self._log.info("share request refused node=%s error=%s message=%s", node, name_of(code), message.error_message)
        if code in METADATA_ERRORS:
            self._client.metadata.request_update()
        elif code not in SESSION_ERRORS:
            error = error_for(code, message.error_message or f"share request to {node}")
            self._failure = None if error.retriable else error

    def _handle_fetch(
        self, session: ShareSessionHandler, request: SendFetch, response: ClientResponse, now: float
    ) -> None:
        message = response.message
        known = {(each.topic_id, each.partition): each for each in session.partitions}
        known |= {
            (each.partition.topic_id, each.partition.partition): each.partition for each in request.acknowledgements
        }
        errors: dict[ShareTopicPartition, KafkaError | None] = {}
        completed, size_bytes, has_errors = [], 0, False
        for topic in message.responses:
            for part in topic.partitions:
                partition = known.get((topic.topic_id, part.partition_index))
                if partition is None:
                    continue
                errors[partition] = acknowledge_error(
                    partition, part.acknowledge_error_code, part.acknowledge_error_message
                )
                if part.error_code:
                    has_errors = True
                    self._handle_partition_error(partition, part, message)
                elif part.acquired_records:
                    size_bytes += len(part.records or b"")
                    completed.append(
                        CompletedShareFetch(
                            partition,
                            session.node_id,
                            request.generation,
                            part.records,
                            part.acquired_records,
                            deserializers=self._deserializers,
                            check_crcs=self._config.check_crcs,
                        )
                    )
        if session.handle_fetch_response(message.error_code, errors, now, retry=has_errors):
            self._completed.extend(completed)
            self._learn_lock_timeout(message)
            self.sensors.latency.record(response.received - response.request.created)
            self.sensors.sizes.record(size_bytes)
            self.sensors.throttled.record(message.throttle_time_ms)
            if size_bytes:
                self.sensors.filled.record(1)

    def _handle_partition_error(self, partition: ShareTopicPartition, part: Any, message: Any) -> None:
        code = part.error_code
        self._log.debug("share fetch failed partition=%s error=%s", partition, name_of(code))
        self._learn_leader(partition.tp, part, message)
        if code in METADATA_ERRORS:
            self._client.metadata.request_update()
        else:
            self._failure = error_for(code, part.error_message or f"fetch of {partition}")

    def _acknowledge_errors(
        self, session: ShareSessionHandler, request: SendAcknowledge, message: Any
    ) -> Mapping[ShareTopicPartition, KafkaError | None]:
        known = {
            (each.partition.topic_id, each.partition.partition): each.partition for each in request.acknowledgements
        }
        errors = {}
        for topic in message.responses:
            for part in topic.partitions:
                partition = known.get((topic.topic_id, part.partition_index))
                if partition is not None:
                    errors[partition] = acknowledge_error(partition, part.error_code, part.error_message)
                    if part.error_code:
                        self._learn_leader(partition.tp, part, message)
        return errors

    def _learn_leader(self, tp: TopicPartition, part: Any, message: Any) -> None:
        """Use the leader in a response of a broker that is not the leader."""
        leader = part.current_leader
        if leader.leader_id >= 0 and leader.leader_epoch >= 0:
            nodes = [Node(each.node_id, each.host, each.port, each.rack) for each in message.node_endpoints]
            self._client.metadata.update_leaders({tp: (leader.leader_id, leader.leader_epoch)}, nodes)

    def _learn_lock_timeout(self, message: Any) -> None:
        if message.acquisition_lock_timeout_ms > 0:
            self.lock_timeout_ms = message.acquisition_lock_timeout_ms


def batches_by_partition(acknowledgements: Iterable[Acknowledgements]) -> dict[ShareTopicPartition, Any]:
    """Return the acknowledgement batches of each partition."""
    types: dict[ShareTopicPartition, list[Mapping[int, int]]] = {}
    for each in acknowledgements:
        types.setdefault(each.partition, []).append(each.types)
    return {partition: merge_batches(acknowledged) for partition, acknowledged in types.items()}


def acknowledge_error(partition: ShareTopicPartition, code: int, message: str | None) -> KafkaError | None:
    """Return the result of the acknowledgements of a partition."""
    return error_for(code, message or f"acknowledgement of {partition}") if code else None


def as_ottla_error(error: Exception) -> OttlaError:
    """Return the error of a result for the user."""
    return error if isinstance(error, OttlaError) else KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
