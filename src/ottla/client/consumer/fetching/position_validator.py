"""Whether the log still holds what was read of it, after another broker has come to lead (KIP-320).

A new leader may lack records that the old one had shown. So before reading on, it is asked where the epoch of the last
record read ends in its log: if that is before the position, the log was cut there and went on otherwise.

Where the two numbers come from. Each batch bears the epoch of the leader that wrote it; `note` remembers the epoch of
the record before the position. The metadata tells the epoch of the present leader. While the second is no higher than
the one for which the position was found right (`Mark.checked`), there is nothing to ask, and that is so for every
fetch of a quiet cluster. When it has grown, the partition is left out of the fetches (`must_wait`), its leader is
asked once, and by the answer:

    end of that epoch ≥ position      the log still has what was read: fetch
    end of that epoch < position      it was cut there: go back to where it parts, or LogTruncationError
    the leader does not know it       it was cut before there: begin by the policy, or LogTruncationError

Fetches carry the leader's epoch as well, so that a broker that is behind (UNKNOWN_LEADER_EPOCH) or was replaced
(FENCED_LEADER_EPOCH) says so instead of answering from another past; both only mean to renew the metadata.

Plans and books, no I/O of its own: requests go through `ConsumerNetworkClient`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from functools import partial

from msgspec import Struct

from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.client.consumer.subscription_state import SubscriptionState
from ottla.client.network.client_request import ClientResponse
from ottla.client.runtime.backoff import ExponentialBackoff
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


class Mark(Struct):
    """What is known of a position."""

    offset: int
    epoch: int
    """Of the record before it."""
    checked: int
    """The leader's epoch for which the position was known to be right; -1 for none."""


class PositionValidator:
    """The epochs of positions, and what is being asked about them."""

    def __init__(
        self, client: ConsumerNetworkClient, subscriptions: SubscriptionState, retry_backoff: ExponentialBackoff
    ) -> None:
        self._client = client
        self._subscriptions = subscriptions
        self._retry_backoff = retry_backoff
        self._marks: dict[TopicPartition, Mark] = {}
        self._asking: set[TopicPartition] = set()
        self._failure: LogTruncationError | None = None

    def reset(self) -> None:
        """Forget the requests under way, whose answers may never be handled."""
        self._asking.clear()

    def note(self, tp: TopicPartition, offset: int, epoch: int, leader_epoch: int = UNKNOWN) -> None:
        """The position is `offset` now, after a record of `epoch`; read from the leader of `leader_epoch`."""
        if epoch >= 0:
            self._marks[tp] = Mark(offset, epoch, leader_epoch)

    def must_wait(self, tp: TopicPartition, offset: int, epoch: int) -> bool:
        """Whether the position, after a record of `epoch`, is to be held against the present leader's log first."""
        mark = self._marks.get(tp)
        if mark is None or mark.offset != offset:
            if epoch < 0:
                return False
            mark = self._marks[tp] = Mark(offset, epoch, UNKNOWN)
        return self._client.metadata.cluster.leader_epoch(tp) > mark.checked

    def validate(self, tps: Iterable[TopicPartition]) -> None:
        """Ask the leaders about these positions; raises LogTruncationError for what was found of others before."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        cluster = self._client.metadata.cluster
        asked: dict[Node, list[TopicPartition]] = {}
        for tp in tps:
            leader = cluster.leader(tp)
            if leader is not None and tp not in self._asking:
                asked.setdefault(leader, []).append(tp)
        for leader, wanted in asked.items():
            self._ask(leader, wanted)

    def _ask(self, leader: Node, tps: list[TopicPartition]) -> None:
        cluster = self._client.metadata.cluster
        topics: dict[str, list[OffsetForLeaderPartition]] = {}
        epochs = {tp: cluster.leader_epoch(tp) for tp in tps}
        for tp in tps:
            part = OffsetForLeaderPartition(tp.partition, epochs[tp], self._marks[tp].epoch)
            topics.setdefault(tp.topic, []).append(part)
        request = OffsetForLeaderEpochRequest(
            CONSUMER, [OffsetForLeaderTopic(name, parts) for name, parts in topics.items()]
        )
        self._asking.update(tps)
        marks = {tp: (self._marks[tp], epochs[tp]) for tp in tps}
        self._client.send(leader, request).add_done_callback(partial(self._handle, marks))

    def _handle(self, asked: Mapping[TopicPartition, tuple[Mark, int]], done: Future[ClientResponse]) -> None:
        self._asking.difference_update(asked)
        error = done.exception(0)
        if isinstance(error, UnsupportedVersionError):  # before Kafka 2.1: there is no way to know
            for mark, epoch in asked.values():
                mark.checked = epoch
            return
        answers: dict[TopicPartition, EpochEndOffset] = {}
        if error is None:
            for topic in done.result(0).message.topics:
                answers |= {TopicPartition(topic.topic, part.partition): part for part in topic.partitions}
        for tp, (mark, epoch) in asked.items():
            answer = answers.get(tp)
            if answer is None or answer.error_code != ErrorCode.NONE:
                self._try_later(tp)
            else:
                self._judge(tp, mark, epoch, answer)

    def _judge(self, tp: TopicPartition, mark: Mark, leader_epoch: int, answer: EpochEndOffset) -> None:
        state = self._subscriptions.state_or_none(tp)
        if state is None or state.position != mark.offset or self._marks.get(tp) is not mark:
            return  # something else was asked for meanwhile
        if UNKNOWN not in (answer.end_offset, answer.leader_epoch) and answer.end_offset >= mark.offset:
            mark.checked = leader_epoch
        else:
            self._truncated(tp, mark, leader_epoch, answer)

    def _truncated(self, tp: TopicPartition, mark: Mark, leader_epoch: int, answer: EpochEndOffset) -> None:
        """The log parts from what was read: go back to where it does, or say so where no policy allows it."""
        known = UNKNOWN not in (answer.end_offset, answer.leader_epoch)
        policy = self._subscriptions.default_reset
        where = f"at offset {answer.end_offset}" if known else "somewhere before"
        text = f"{tp}: the log was truncated {where}, after it was read up to {mark.offset} (leader epoch {mark.epoch})"
        if policy is None:
            del self._marks[tp]
            diverged = OffsetAndMetadata(answer.end_offset, "", answer.leader_epoch) if known else None
            self._failure = LogTruncationError(
                f"{text}, and auto.offset.reset = none: seek() to where to go on", tp, mark.offset, diverged
            )
            return
        LOG.warning("%s; reading on from %s", text, "there" if known else "where auto.offset.reset says")
        if known:
            self._subscriptions.seek(tp, answer.end_offset, answer.leader_epoch)
            self._marks[tp] = Mark(answer.end_offset, answer.leader_epoch, leader_epoch)
        else:
            self._subscriptions.request_reset(tp, policy)

    def _try_later(self, tp: TopicPartition) -> None:
        self._client.metadata.request_update()
        self._subscriptions.postpone([tp], self._client.client.clock.monotonic() + self._retry_backoff.span(1))
