"""OffsetCommit: keep how far a group has read, for groups without members.

Groups with members come later: a commit that speaks for a member is refused, as it would be after the member was removed.
"""

from __future__ import annotations

import logging

from ottla.broker.call import Call
from ottla.broker.node import Node
from ottla.errors import ErrorCode, KafkaError
from ottla.model import OffsetAndMetadata, TopicPartition
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

log = logging.getLogger(__name__)

IDS_SINCE = 10
"""From this version on topics have ids instead of names."""


def handle(node: Node, call: Call, request: OffsetCommitRequest) -> OffsetCommitResponse:
    """Keep what can be kept; an error for each partition that cannot."""
    error = member_error(request)
    if error:
        return OffsetCommitResponse(topics=[answered(topic, error) for topic in request.topics])
    offsets: dict[TopicPartition, OffsetAndMetadata] = {}
    topics = [answered(topic, check_topic(node, call.version, topic, offsets)) for topic in request.topics]
    if offsets:
        try:
            node.offsets.commit(request.group_id, offsets)
        except KafkaError as failure:
            log.error("cannot keep offsets of group %r: %s", request.group_id, failure)
            topics = [answered(topic, ErrorCode.COORDINATOR_NOT_AVAILABLE) for topic in request.topics]
    return OffsetCommitResponse(topics=topics)


def member_error(request: OffsetCommitRequest) -> int:
    """Why this request may not commit, NONE where it may."""
    if request.generation_id_or_member_epoch >= 0:
        return ErrorCode.ILLEGAL_GENERATION
    if request.member_id or request.group_instance_id is not None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE


def check_topic(
    node: Node, version: int, topic: OffsetCommitRequestTopic, offsets: dict[TopicPartition, OffsetAndMetadata]
) -> list[int]:
    """Gather what may be committed; one error code, or NONE, for each partition."""
    name: str | None = topic.name
    if version >= IDS_SINCE:
        name = node.partitions.topic_name(topic.topic_id)
    codes = [partition_error(node, name, wanted) for wanted in topic.partitions]
    for wanted, code in zip(topic.partitions, codes, strict=True):
        if not code:
            assert name is not None
            offsets[TopicPartition(name, wanted.partition_index)] = OffsetAndMetadata(
                wanted.committed_offset, wanted.committed_metadata or "", wanted.committed_leader_epoch
            )
    return codes


def partition_error(node: Node, name: str | None, wanted: OffsetCommitRequestPartition) -> int:
    """What is wrong with one partition's commit."""
    if name is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if node.partitions.find(name, wanted.partition_index) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if len((wanted.committed_metadata or "").encode()) > node.config.offset_metadata_max_bytes:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    return ErrorCode.NONE


def answered(topic: OffsetCommitRequestTopic, errors: int | list[int]) -> OffsetCommitResponseTopic:
    """The answer for one topic, with an error for each partition, or one for all."""
    codes = errors if isinstance(errors, list) else [errors] * len(topic.partitions)
    partitions = [
        OffsetCommitResponsePartition(wanted.partition_index, code)
        for wanted, code in zip(topic.partitions, codes, strict=True)
    ]
    return OffsetCommitResponseTopic(topic.name, topic.topic_id, partitions)
