"""Streams groups next to groups of the other kinds, in one shard."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from ottla.coordination.groups.config import GroupConfig
from ottla.coordination.groups.consumer.events import ConsumerHeartbeat, TopicsChanged
from ottla.coordination.groups.consumer.image import TopicImage, TopicMetadata
from ottla.coordination.groups.events import (
    ExpiryDue,
    GroupDeletionRequested,
    JoinRequested,
    Loaded,
    OffsetDeletionRequested,
    OffsetsCommitted,
    TimerExpired,
    TimerName,
)
from ottla.coordination.groups.records import decode_record, encode_record
from ottla.coordination.groups.shard import Event, Shard
from ottla.coordination.groups.share.events import ShareHeartbeat
from ottla.coordination.groups.streams.events import StreamsHeartbeat
from ottla.coordination.groups.streams.streams_groups import SESSION
from ottla.coordination.machine import Decision
from ottla.errors import ErrorCode
from ottla.model import OffsetAndMetadata, TopicPartition
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from ottla.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from tests.coordination.groups.streams.story import AT_ONCE, ONE

OFFSETS = {TopicPartition("in", 0): OffsetAndMetadata(5)}
DAYS = 24 * 60 * 60_000


def decide(shard: Shard, event: Event) -> Decision[Any]:
    """Decide and replay, each record as it is read from the log."""
    decision = shard.decide(event, 0.0)
    for record in decision.records:
        pair = encode_record(record)
        read = record if pair is None else decode_record(*pair)
        assert read is not None
        shard.replay(read)
    shard.check()
    return decision


def heartbeat(epoch: int = 0) -> StreamsHeartbeat:
    request = StreamsGroupHeartbeatRequest("g", "a", epoch)
    if epoch == 0:
        request.topology, request.rebalance_timeout_ms, request.process_id = ONE, 1000, "p"
    return StreamsHeartbeat(1, request, "client", "host", 0)


def empty_shard() -> Shard:
    shard = Shard(GroupConfig(streams=AT_ONCE))
    decide(shard, TopicsChanged(1, TopicImage.of(1, [TopicMetadata("in", UUID(int=9), 1)])))
    return shard


def shard_with_a_streams_group() -> Shard:
    shard = empty_shard()
    decide(shard, heartbeat())
    return shard


def test_a_streams_group_has_the_topics_and_the_timers_of_the_shard() -> None:
    shard = shard_with_a_streams_group()

    resumed = decide(shard, Loaded(1, 0)).alarms
    tasks = shard.streams.groups["g"].members["a"].assigned.active
    decide(shard, TimerExpired(1, TimerName(SESSION, "g", "a"), 0))

    assert tasks == {("0", 0)}
    assert [alarm.name for alarm in resumed] == [TimerName(SESSION, "g", "a")]
    assert shard.streams.groups["g"].members == {}


JOIN = JoinRequested(
    1,
    JoinGroupRequest("g", 10_000, 10_000, "", None, "consumer", [JoinGroupRequestProtocol("range", b"")]),
    3,
    "m",
    "client",
    "host",
    0,
)
BEAT = ConsumerGroupHeartbeatRequest("g", "m", 0, None, None, 1000, ["t"], None, None, ())


@pytest.mark.parametrize(
    ("event", "error"),
    [
        (JOIN, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (ConsumerHeartbeat(1, BEAT, 1, "m", "client", "host", 0), ErrorCode.GROUP_ID_NOT_FOUND),
        (ShareHeartbeat(1, ShareGroupHeartbeatRequest("g", "m", 0, None, ["t"]), "c", "h", 0), ErrorCode.GROUP_ID_NOT_FOUND),
        (OffsetsCommitted(1, "g", OFFSETS, 0), ErrorCode.UNKNOWN_MEMBER_ID),
        (OffsetsCommitted(1, "g", OFFSETS, 0, 1, "a"), ErrorCode.STALE_MEMBER_EPOCH),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_requests_of_other_kinds_of_groups_are_rejected(event: Event, error: ErrorCode) -> None:
    decision = decide(shard_with_a_streams_group(), event)

    message = decision.replies[0].message
    assert decision.records == ()
    assert getattr(message, "error_code", message) == error


def test_members_commit_and_their_offsets_are_not_deleted_while_they_read_the_topic() -> None:
    shard = shard_with_a_streams_group()

    accepted = decide(shard, OffsetsCommitted(1, "g", OFFSETS, 0, 2, "a")).replies[0].message
    errors = decide(shard, OffsetDeletionRequested(1, "g", list(OFFSETS))).replies[0].message
    expired = decide(shard, ExpiryDue(1, 30 * DAYS)).replies[0].message

    assert (accepted, errors, expired) == (ErrorCode.NONE, [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC], 0)
    assert shard.fetch_error("g", "a", 2) == ErrorCode.NONE
    assert shard.fetch_error("g", "a", 1) == ErrorCode.STALE_MEMBER_EPOCH
    assert shard.fetch_error("g", "x", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert shard.fetch_error("g", None, -1) == ErrorCode.NONE


def test_an_empty_group_is_deleted_with_its_offsets_or_expires_with_them() -> None:
    shard = shard_with_a_streams_group()
    decide(shard, OffsetsCommitted(1, "g", OFFSETS, 0, 2, "a"))

    refused = decide(shard, GroupDeletionRequested(1, ["g"])).replies[0].message
    decide(shard, heartbeat(-1))
    kept = decide(shard, ExpiryDue(1, DAYS)).replies[0].message
    expired = decide(shard, ExpiryDue(1, 30 * DAYS)).replies[0].message

    assert (refused, kept, expired) == ([ErrorCode.NON_EMPTY_GROUP], 0, 1)
    assert shard.find("g") is None


def test_an_empty_classic_group_becomes_a_streams_group_and_keeps_its_offsets() -> None:
    shard = empty_shard()
    decide(shard, OffsetsCommitted(1, "g", OFFSETS, 0))

    decide(shard, heartbeat())

    assert [group.kind for group in shard.all()] == ["streams"]
    assert shard.offsets.of("g").keys() == OFFSETS.keys()


def test_an_empty_streams_group_becomes_a_classic_one() -> None:
    shard = shard_with_a_streams_group()
    decide(shard, heartbeat(-1))

    decide(shard, JOIN)

    assert [group.kind for group in shard.all()] == ["classic"]


def test_a_classic_group_with_members_is_no_streams_group() -> None:
    shard = empty_shard()
    decide(shard, JOIN)

    answer = decide(shard, heartbeat()).replies[0].message.response

    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
