"""Share groups next to groups of the other kinds, in one shard."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from ottla.coordination.groups.config import GroupConfig
from ottla.coordination.groups.consumer.events import ConsumerHeartbeat, TopicsChanged
from ottla.coordination.groups.consumer.image import TopicImage, TopicMetadata
from ottla.coordination.groups.events import (
    GroupDeletionRequested,
    JoinRequested,
    Loaded,
    OffsetsCommitted,
    TimerExpired,
    TimerName,
    TransactionalOffsetsCommitted,
)
from ottla.coordination.groups.records import decode_record, encode_record
from ottla.coordination.groups.shard import Event, Shard
from ottla.coordination.groups.share.events import ShareHeartbeat, ShareOffsetsAlterRequested, StateInitialized
from ottla.coordination.groups.share.share_groups import SESSION
from ottla.coordination.machine import Decision
from ottla.errors import ErrorCode
from ottla.model import OffsetAndMetadata, TopicPartition
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest
from ottla.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

TOPIC = UUID(int=9)
OFFSETS = {TopicPartition("t", 0): OffsetAndMetadata(5)}


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


def share_heartbeat(group: str, epoch: int = 0) -> ShareHeartbeat:
    return ShareHeartbeat(1, ShareGroupHeartbeatRequest(group, "a", epoch, None, ["t"]), "client", "host", 0)


def shard_with_a_share_group() -> Shard:
    shard = Shard(GroupConfig())
    decide(shard, TopicsChanged(1, TopicImage.of(1, [TopicMetadata("t", TOPIC, 1)])))
    decide(shard, share_heartbeat("g"))
    decide(shard, StateInitialized(1, "g", [(TOPIC, 0)]))
    return shard


def test_a_share_group_sees_the_topics_of_the_shard_and_has_its_timers() -> None:
    shard = shard_with_a_share_group()

    answer = decide(shard, share_heartbeat("g", 1)).replies[0].message
    resumed = decide(shard, Loaded(1, 0)).alarms
    decide(shard, TimerExpired(1, TimerName(SESSION, "g", "a"), 0))

    assert [(each.topic_id, each.partitions) for each in answer.assignment.topic_partitions] == [(TOPIC, [0])]
    assert [alarm.name for alarm in resumed] == [TimerName(SESSION, "g", "a")]
    assert shard.shares.groups["g"].members == {}


JOIN = JoinRequested(1, JoinGroupRequest("g", 10_000, 10_000, "", None, "consumer", ()), 9, "m", "client", "host", 0)
BEAT = ConsumerGroupHeartbeatRequest("g", "m", 0, None, None, 1000, ["t"], None, None, ())


@pytest.mark.parametrize(
    ("event", "error"),
    [
        (JOIN, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (ConsumerHeartbeat(1, BEAT, 1, "m", "client", "host", 0), ErrorCode.GROUP_ID_NOT_FOUND),
        (OffsetsCommitted(1, "g", OFFSETS, 0), ErrorCode.GROUP_ID_NOT_FOUND),
        (TransactionalOffsetsCommitted(1, "g", OFFSETS, 1, 0, 0), ErrorCode.GROUP_ID_NOT_FOUND),
    ],
    ids=lambda value: type(value).__name__,
)
def test_requests_of_other_kinds_of_groups_are_rejected(event: Event, error: ErrorCode) -> None:
    decision = decide(shard_with_a_share_group(), event)

    message = decision.replies[0].message
    assert decision.records == ()
    assert getattr(message, "error_code", message) == error


def test_a_group_of_another_kind_is_no_share_group() -> None:
    shard = Shard(GroupConfig())
    decide(shard, OffsetsCommitted(1, "g", OFFSETS, 0))

    answer = decide(shard, share_heartbeat("g")).replies[0].message

    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_of_a_group_of_another_kind_cannot_be_altered_as_those_of_a_share_group() -> None:
    shard = Shard(GroupConfig())
    decide(shard, OffsetsCommitted(1, "g", OFFSETS, 0))

    decision = decide(shard, ShareOffsetsAlterRequested(1, "g", {("t", 0): 5}, 0))

    assert decision.replies[0].message == ErrorCode.GROUP_ID_NOT_FOUND
    assert shard.shares.groups == {}


def test_a_share_group_is_deleted_once_it_is_empty() -> None:
    shard = shard_with_a_share_group()

    refused = decide(shard, GroupDeletionRequested(1, ["g", "x"])).replies[0].message
    decide(shard, share_heartbeat("g", -1))
    accepted = decide(shard, GroupDeletionRequested(1, ["g"])).replies[0].message

    assert refused == [ErrorCode.NON_EMPTY_GROUP, ErrorCode.GROUP_ID_NOT_FOUND]
    assert accepted == [ErrorCode.NONE]
    assert shard.shares.groups == {}
