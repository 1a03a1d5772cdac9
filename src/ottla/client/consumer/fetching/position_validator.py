"""Detect log truncation after a leader change (KIP-320).

After an unclean election the new leader may lack records that the consumer has already read from the old one. Therefore
the position is validated once per leader, before the next fetch: OffsetsForLeaderEpoch returns the offset at which the
epoch of the last record read ends in the log of the new leader. If that end is before the position, the log was
truncated there and continued with other records.

Each batch contains the epoch of the leader that wrote it. `record_position` stores the epoch of the record before the
position. The metadata contains the epoch of the current leader. `needs_validation` compares it with the epoch for which
the position was validated (`ValidatedPosition.validated_epoch`). If the current epoch is not higher, no request is
sent; a cluster without leader changes never needs one. If it is higher, the partition is not fetched until the leader
has answered one request:

    end of that epoch ≥ position        the log contains what was read: fetch
    end of that epoch < position        truncated: seek to the point of divergence, or LogTruncationError
    the leader does not know the epoch  truncated earlier: reset by the policy, or LogTruncationError

Fetch requests contain the leader epoch as well. A broker with older metadata (UNKNOWN_LEADER_EPOCH), or one that was
replaced as leader (FENCED_LEADER_EPOCH), rejects the request. After both errors the metadata is updated and the fetch
is retried.

Requests are sent through `ConsumerNetworkClient`. Corresponds to Java's OffsetsForLeaderEpochClient and
SubscriptionState.maybeValidatePosition.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from functools import partial

from msgspec import Struct

from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.client.consumer.partition_retry import PartitionRetry
from ottla.client.consumer.subscription_state import SubscriptionState
from ottla.client.network.client_request import ClientResponse
from ottla.client.runtime.future import Future
from ottla.errors import ErrorCode, LogTruncationError, UnsupportedVersionError
from ottla.model import Node, OffsetAndMetadata, TopicPartition
from ottla.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

LOG = logging.getLogger(__name__)
CONSUMER = -1
UNKNOWN = -1


class ValidatedPosition(Struct):
    """A position and the epochs known for it."""

    offset: int
    epoch: int
    """The leader epoch of the record before the position."""
    validated_epoch: int
    """The leader epoch for which the position was validated; -1 for none."""


class PositionValidator:
    """The validated epochs of positions, and the validation requests in flight."""

    def __init__(self, client: ConsumerNetworkClient, subscriptions: SubscriptionState, retry: PartitionRetry) -> None:
        self._client = client
        self._subscriptions = subscriptions
        self._retry = retry
        self._positions: dict[TopicPartition, ValidatedPosition] = {}
        self._in_flight: set[TopicPartition] = set()
        self._failure: LogTruncationError | None = None

    def reset(self) -> None:
        """Forget the requests in flight. Their connections were closed, so there may be no response."""
        self._in_flight.clear()

    def record_position(self, tp: TopicPartition, offset: int, epoch: int, leader_epoch: int = UNKNOWN) -> None:
        """Store the position after a fetch.

        `epoch` is the leader epoch of the record before `offset`; an unknown epoch (-1) is not stored. `leader_epoch`
        is that of the leader that the records were fetched from; the position is valid for this leader.
        """
        if epoch >= 0:
            self._positions[tp] = ValidatedPosition(offset, epoch, leader_epoch)

    def needs_validation(self, tp: TopicPartition, offset: int, epoch: int) -> bool:
        """Return True if the position must be validated before the next fetch.

        `epoch` is the leader epoch of the record before it; -1 cannot be validated.
        """
        validated = self._positions.get(tp)
        if validated is None or validated.offset != offset:
            if epoch < 0:
                return False
            validated = self._positions[tp] = ValidatedPosition(offset, epoch, UNKNOWN)
        return self._client.metadata.cluster.leader_epoch(tp) > validated.validated_epoch

    def validate(self, tps: Iterable[TopicPartition]) -> None:
        """Send validation requests for the positions of these partitions.

        Raises LogTruncationError if an earlier response has shown a truncation and there is no reset policy.
        """
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        cluster = self._client.metadata.cluster
        requested: dict[Node, list[TopicPartition]] = {}
        for tp in tps:
            leader = cluster.leader(tp)
            if leader is not None and tp not in self._in_flight:
                requested.setdefault(leader, []).append(tp)
        for leader, wanted in requested.items():
            self._send_request(leader, wanted)

    def _send_request(self, leader: Node, tps: list[TopicPartition]) -> None:
        cluster = self._client.metadata.cluster
        topics: dict[str, list[OffsetForLeaderPartition]] = {}
        epochs = {tp: cluster.leader_epoch(tp) for tp in tps}
        for tp in tps:
            part = OffsetForLeaderPartition(tp.partition, epochs[tp], self._positions[tp].epoch)
            topics.setdefault(tp.topic, []).append(part)
        request = OffsetForLeaderEpochRequest(
            CONSUMER, [OffsetForLeaderTopic(name, parts) for name, parts in topics.items()]
        )
        self._in_flight.update(tps)
        positions = {tp: (self._positions[tp], epochs[tp]) for tp in tps}
        self._client.send(leader, request).add_done_callback(partial(self._handle, positions))

    def _handle(
        self, requested: Mapping[TopicPartition, tuple[ValidatedPosition, int]], done: Future[ClientResponse]
    ) -> None:
        self._in_flight.difference_update(requested)
        error = done.exception(0)
        if isinstance(error, UnsupportedVersionError):  # before Kafka 2.1; validation is not possible
            for validated, epoch in requested.values():
                validated.validated_epoch = epoch
            return
        responses: dict[TopicPartition, EpochEndOffset] = {}
        if error is None:
            for topic in done.result(0).message.topics:
                responses |= {TopicPartition(topic.topic, part.partition): part for part in topic.partitions}
        for tp, (validated, epoch) in requested.items():
            response = responses.get(tp)
            if response is None or response.error_code != ErrorCode.NONE:
                self._retry.retry_later([tp])
            else:
                self._evaluate(tp, validated, epoch, response)

    def _evaluate(
        self, tp: TopicPartition, validated: ValidatedPosition, leader_epoch: int, response: EpochEndOffset
    ) -> None:
        state = self._subscriptions.state_or_none(tp)
        if state is None or state.position != validated.offset or self._positions.get(tp) is not validated:
            return  # the position has changed since the request
        if UNKNOWN not in (response.end_offset, response.leader_epoch) and response.end_offset >= validated.offset:
            validated.validated_epoch = leader_epoch
        else:
            self._handle_truncation(tp, validated, leader_epoch, response)

    def _handle_truncation(
        self, tp: TopicPartition, validated: ValidatedPosition, leader_epoch: int, response: EpochEndOffset
    ) -> None:
        """Handle a truncation: seek to the point of divergence, or raise an error if there is no reset policy."""
        is_known = UNKNOWN not in (response.end_offset, response.leader_epoch)
        policy = self._subscriptions.default_reset
        location = f"at offset {response.end_offset}" if is_known else "at an unknown earlier offset"
        text = f"{tp}: the log was truncated {location}, after it was read up to {validated.offset} (leader epoch {validated.epoch})"
        if policy is None:
            del self._positions[tp]
            diverged = OffsetAndMetadata(response.end_offset, "", response.leader_epoch) if is_known else None
            self._failure = LogTruncationError(
                f"{text}, and auto.offset.reset = none: seek() to the offset to continue from",
                tp,
                validated.offset,
                diverged,
            )
            return
        LOG.warning("%s; continuing from %s", text, "there" if is_known else "the offset of auto.offset.reset")
        if is_known:
            self._subscriptions.seek(tp, response.end_offset, response.leader_epoch)
            self._positions[tp] = ValidatedPosition(response.end_offset, response.leader_epoch, leader_epoch)
        else:
            self._subscriptions.request_reset(tp, policy)
