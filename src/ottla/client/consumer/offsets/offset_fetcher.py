"""Offsets by timestamp: start positions of a consumer, and calls such as `offsets_for_times`.

Requests are sent through `ConsumerNetworkClient`; the functions that build requests and read responses are pure.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from msgspec import Struct, field

from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.client.consumer.partition_retry import PartitionRetry
from ottla.client.consumer.subscription_state import SubscriptionState
from ottla.client.metadata.metadata_snapshot import MetadataSnapshot
from ottla.client.network.client_request import ClientResponse
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.client.runtime.deadline import Deadline
from ottla.client.runtime.future import Future
from ottla.client.runtime.steps import Steps
from ottla.errors import ErrorCode, KafkaError, KafkaTimeoutError, OttlaError, error_for, few_of, name_of, topic_asked
from ottla.model import EARLIEST, LATEST, Node, OffsetAndTimestamp, TopicPartition
from ottla.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

LOG = logging.getLogger(__name__)
READ_UNCOMMITTED = 0
UNKNOWN_GRACE = 3.0
"""Seconds until an unknown topic is reported: a new topic is not known to all brokers at once."""
EXPLANATIONS: Mapping[int, str] = {
    ErrorCode.UNKNOWN_SERVER_ERROR: ": its leader cannot use the partition, for example because the stored data is damaged; see the log of that broker"
}
"""Explanations of error codes; a ListOffsets response has no error message."""
CONSUMER_REPLICA_ID = -1
"""The replica id of clients."""
LEADER_MOVED = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NETWORK_EXCEPTION,
    }
)
"""Errors after which the metadata is refreshed and the request retried."""


class OffsetLookup(Struct):
    """A ListOffsets response, sorted."""

    offsets: dict[TopicPartition, OffsetAndTimestamp] = field(default_factory=dict)
    """The first offset at or after the requested timestamp; -1 if there is no such record."""
    retriable: dict[TopicPartition, int] = field(default_factory=dict)
    fatal: dict[TopicPartition, int] = field(default_factory=dict)


class OffsetFetcher:
    """Looks up offsets: `reset_positions` in the background, `fetch_offsets` while the caller waits."""

    def __init__(
        self,
        client: ConsumerNetworkClient,
        subscriptions: SubscriptionState,
        retry_backoff: ExponentialBackoff,
        *,
        request_timeout_ms: int,
        isolation_level: int = READ_UNCOMMITTED,
    ) -> None:
        self._client = client
        self._subscriptions = subscriptions
        self._retry_backoff = retry_backoff
        self._retry = PartitionRetry(client, subscriptions, retry_backoff)
        self._request_timeout_ms = request_timeout_ms
        self._isolation_level = isolation_level
        self._clock = client.client.clock
        self._logged_errors: dict[TopicPartition, int] = {}
        """The last logged error of each partition without a start position."""

    def reset_positions(self) -> None:
        """Request missing positions; they are set by later polls."""
        now = self._clock.monotonic()
        wanted = self._subscriptions.find_reset_timestamps(now)
        if not wanted:
            return
        requests, leaderless = list_offsets_requests(
            self._client.metadata.cluster, wanted, self._isolation_level, self._request_timeout_ms
        )
        if leaderless:  # a later call sends the requests, after the metadata has arrived
            self._client.metadata.request_update()
        for node, request, tps in requests:
            self._subscriptions.postpone_requests(tps, now + self._request_timeout_ms / 1000)
            future = self._client.send(node, request)
            future.add_done_callback(partial(self._handle_reset, tps, wanted))

    def fetch_offsets(
        self, timestamps: Mapping[TopicPartition, int], timeout: float
    ) -> Steps[dict[TopicPartition, OffsetAndTimestamp]]:
        """Return the first offset at or after each timestamp, -1 if there is none.

        EARLIEST and LATEST are timestamps too.

        Retriable errors are retried for `timeout` seconds; KafkaTimeoutError names the missing partitions.
        """
        started = self._clock.monotonic()
        deadline = Deadline.after(timeout, started)
        found: dict[TopicPartition, OffsetAndTimestamp] = {}
        left = dict(timestamps)
        attempts, why = 0, ""
        for topic in {tp.topic for tp in left}:
            self._client.metadata.track_topic(topic, started)
        while left:
            # If the deadline ends the last round without a reason, the reason of an earlier round is reported.
            why = (yield from self._request_offsets(left, found, deadline)) or why
            left = {tp: timestamp for tp, timestamp in left.items() if tp not in found}
            if left:
                attempts += 1
                yield from self._wait_for_retry(left, why, deadline, attempts)
        return found

    def _request_offsets(
        self, timestamps: dict[TopicPartition, int], found: dict[TopicPartition, OffsetAndTimestamp], deadline: Deadline
    ) -> Steps[str]:
        """Send one round of requests and add the results to `found`.

        Return the reason for missing results; "" if it is unknown.
        """
        requests, leaderless = list_offsets_requests(
            self._client.metadata.cluster, timestamps, self._isolation_level, self._request_timeout_ms
        )
        why = "the leader is not known" if leaderless else ""
        futures = [self._client.send(node, request) for node, request, _ in requests]
        for future in futures:
            if not (yield from self._client.wait_until(future.done, deadline.at)):
                return ""
            findings = lookup_of(future)
            for tp, code in findings.fatal.items():
                raise error_for(
                    code, f"{describe_lookup(tp, timestamps[tp])} cannot be looked up{EXPLANATIONS.get(code, '')}"
                )
            found.update(findings.offsets)
            why = ", ".join({name_of(code) for code in findings.retriable.values()}) or why
        return why

    def _wait_for_retry(
        self, left: Iterable[TopicPartition], why: str, deadline: Deadline, attempts: int
    ) -> Steps[None]:
        """Refresh the metadata and back off before the next round; raise an error if there is no time for one."""
        now = self._clock.monotonic()
        if now - (deadline.at - deadline.span) >= UNKNOWN_GRACE and self._client.metadata.version:
            self.raise_unknown(left)
        if now >= deadline.at:
            raise self._timeout_error(left, why, deadline)
        yield from self._client.fresh_metadata(min(deadline.at, now + 1.0))
        pause = min(deadline.at, now + self._retry_backoff.span(attempts))
        while (rest := pause - self._clock.monotonic()) > 0 and (attempts > 1 or self._has_leaderless(left)):
            yield rest

    def _has_leaderless(self, tps: Iterable[TopicPartition]) -> bool:
        return any(self._client.metadata.cluster.leader(tp) is None for tp in tps)

    def raise_unknown(self, tps: Iterable[TopicPartition]) -> None:
        """Raise an error for a topic or partition that is still unknown: it does not exist."""
        cluster = self._client.metadata.cluster
        for tp in tps:
            info = cluster.topics.get(tp.topic)
            if info is not None and tp.partition >= len(info.partitions):
                text = f"topic {tp.topic!r} has partitions {info.partition_range}, not {tp.partition}"
                raise error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
            if info is None and tp.topic in cluster.errors:
                raise error_for(cluster.errors[tp.topic], topic_asked(cluster.errors[tp.topic], tp.topic))

    def _timeout_error(self, left: Iterable[TopicPartition], why: str, deadline: Deadline) -> KafkaTimeoutError:
        if not self._client.metadata.has_discovered_brokers():  # no broker has answered, or none answers any more
            setting = "default.api.timeout.ms, or the call's own timeout"
            return self._client.client.unavailable_error(deadline.span * 1000, setting)
        reason = why or self._client.client.describe_trouble()
        return KafkaTimeoutError(f"no offset of {few_of(list(left))} within {deadline.span:g} s: {reason}")

    def _handle_reset(
        self, tps: list[TopicPartition], wanted: Mapping[TopicPartition, int], done: Future[ClientResponse]
    ) -> None:
        try:
            findings = lookup_of(done)
        except OttlaError as error:
            self._client.metadata.set_fatal_error(error)
            return
        for tp, found in findings.offsets.items():
            self._subscriptions.reset(tp, wanted[tp], found.offset)
            self._logged_errors.pop(tp, None)
        for tp, code in findings.fatal.items():
            if (
                self._logged_errors.get(tp) != code
            ):  # log a repeated error once only; the lookup is retried about ten times a second
                LOG.warning("cannot look up the start position of %s: %s", tp, explain_error(code))
        self._logged_errors.update(findings.fatal)
        missing = [tp for tp in tps if tp not in findings.offsets]
        if missing:
            self._retry.retry_later(missing)


def describe_lookup(tp: TopicPartition, timestamp: int) -> str:
    """Describe a lookup for an error message."""
    ends = {EARLIEST: f"the offset at which {tp} begins", LATEST: f"the offset at which {tp} ends"}
    return ends.get(timestamp, f"the offset of {tp} at timestamp {timestamp}")


def explain_error(code: int) -> str:
    """Return the name of an error, and its explanation if there is one."""
    return f"{name_of(code)}{EXPLANATIONS.get(code, '')}"


def lookup_of(future: Future[ClientResponse]) -> OffsetLookup:
    """Return the findings of a response; none if it was lost with its connection. Raise errors that are not retriable."""
    error = future.exception(0)
    if error is None:
        return read_response(future.result(0).message)
    if isinstance(error, KafkaError) and error.retriable:
        return OffsetLookup()
    if isinstance(error, KafkaTimeoutError):
        return OffsetLookup()
    raise error


def list_offsets_requests(
    cluster: MetadataSnapshot, timestamps: Mapping[TopicPartition, int], isolation_level: int, timeout_ms: int
) -> tuple[list[tuple[Node, ListOffsetsRequest, list[TopicPartition]]], list[TopicPartition]]:
    """Return a request per leader with its partitions, and the partitions without a known leader."""
    by_leader: dict[Node, list[TopicPartition]] = {}
    leaderless: list[TopicPartition] = []
    for tp in timestamps:
        leader = cluster.leader(tp)
        if leader is None:
            leaderless.append(tp)
        else:
            by_leader.setdefault(leader, []).append(tp)
    requests = []
    for leader, tps in by_leader.items():
        topics = topics_of(cluster, tps, timestamps)
        request = ListOffsetsRequest(
            replica_id=CONSUMER_REPLICA_ID, isolation_level=isolation_level, topics=topics, timeout_ms=timeout_ms
        )
        requests.append((leader, request, tps))
    return requests, leaderless


def topics_of(
    cluster: MetadataSnapshot, tps: Iterable[TopicPartition], timestamps: Mapping[TopicPartition, int]
) -> list[ListOffsetsTopic]:
    """Group the partitions by topic, as in the request."""
    by_topic: dict[str, list[ListOffsetsPartition]] = {}
    for tp in tps:
        part = ListOffsetsPartition(
            partition_index=tp.partition, current_leader_epoch=cluster.leader_epoch(tp), timestamp=timestamps[tp]
        )
        by_topic.setdefault(tp.topic, []).append(part)
    return [ListOffsetsTopic(name=name, partitions=parts) for name, parts in by_topic.items()]


def read_response(message: Any) -> OffsetLookup:
    """Sort a ListOffsetsResponse into offsets and errors."""
    found = OffsetLookup()
    for topic in message.topics:
        for part in topic.partitions:
            tp = TopicPartition(topic.name, part.partition_index)
            if part.error_code == ErrorCode.NONE:
                found.offsets[tp] = OffsetAndTimestamp(part.offset, part.timestamp, part.leader_epoch)
            elif part.error_code in LEADER_MOVED:
                found.retriable[tp] = part.error_code
            else:
                found.fatal[tp] = part.error_code
    return found
