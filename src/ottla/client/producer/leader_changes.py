"""What a broker's answer says about who leads a partition now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from ottla.errors import ErrorCode
from ottla.model import TopicPartition

LEADER_MOVED = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NETWORK_EXCEPTION,
    }
)
"""Errors after which somebody else may be the leader."""


def new_leaders(message: Any, names: Mapping[UUID, str]) -> dict[TopicPartition, tuple[int, int]]:
    """Node and epoch of the leaders that a broker names where it does not lead itself (KIP-951)."""
    return {
        TopicPartition(topic.name or names.get(topic.topic_id, ""), answer.index): (
            answer.current_leader.leader_id,
            answer.current_leader.leader_epoch,
        )
        for topic in message.responses
        for answer in topic.partition_responses
        if answer.error_code and answer.current_leader is not None and answer.current_leader.leader_id >= 0
    }
