"""OffsetCommit: store the committed offsets of a group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ottla.broker.apis.group_calls import submit_to_group
from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.broker.security.authorization import lacks_permission
from ottla.coordination.groups.events import OffsetsCommitted
from ottla.errors import ErrorCode
from ottla.model import OffsetAndMetadata, TopicPartition
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.protocol.messages.txn_offset_commit import TxnOffsetCommitRequestPartition
from ottla.protocol.schema import Message

IDS_SINCE = 10
"""From this version on topics have ids instead of names."""
RECORD_BYTES = 40
"""The minimum size of an offset's record, without names and metadata."""


def handle(node: BrokerNode, call: Call, request: OffsetCommitRequest) -> Message | Outcome:
    """Store the offsets that are valid; the other partitions have an error."""
    offsets: dict[TopicPartition, OffsetAndMetadata] = {}
    errors = [check_topic(node, call, topic, offsets) for topic in request.topics]

    def response(error: int) -> OffsetCommitResponse:
        error = commit_error(error)
        topics = zip(request.topics, errors, strict=True)
        return OffsetCommitResponse(
            topics=[build_topic_result(topic, [code or error for code in codes]) for topic, codes in topics]
        )

    def event(ticket: int) -> OffsetsCommitted:
        return OffsetsCommitted(
            ticket,
            request.group_id,
            offsets,
            node.clock.wall_ms(),
            request.generation_id_or_member_epoch,
            request.member_id,
            request.group_instance_id,
            request.retention_time_ms,
            call.version,
        )

    if not offsets:
        return response(ErrorCode.NONE)
    if is_too_much(node, request.group_id, offsets):
        return response(ErrorCode.INVALID_COMMIT_OFFSET_SIZE)
    return submit_to_group(node, call, request.group_id, event, response, nameless=True)


def is_too_much(node: BrokerNode, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> bool:
    """Return True if the offsets, which are stored in one batch, exceed its maximum size.

    Checked first, since a failed append makes the coordinator load its state again, which affects other groups.
    """
    names = sum(len(topic_partition.topic) + len(offset.metadata) for topic_partition, offset in offsets.items())
    return names + (len(group) + RECORD_BYTES) * len(offsets) > node.config.message_max_bytes


def commit_error(error: int) -> int:
    """Return the code with which clients expect this error in OffsetCommit."""
    return ErrorCode.INVALID_COMMIT_OFFSET_SIZE if error == ErrorCode.MESSAGE_TOO_LARGE else error


def check_topic(
    node: BrokerNode, call: Call, topic: OffsetCommitRequestTopic, offsets: dict[TopicPartition, OffsetAndMetadata]
) -> list[int]:
    """Collect the valid offsets in `offsets`. Return an error code, or NONE, for each partition."""
    name: str | None = topic.name
    if call.version >= IDS_SINCE:
        name = node.topics.name_of(topic.topic_id)
    if name is not None and lacks_permission(node, call, Operation.READ, ResourceType.TOPIC, name):
        return [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * len(topic.partitions)
    codes = [partition_error(node, name, wanted) for wanted in topic.partitions]
    for wanted, code in zip(topic.partitions, codes, strict=True):
        if not code:
            assert name is not None
            offsets[TopicPartition(name, wanted.partition_index)] = OffsetAndMetadata(
                wanted.committed_offset, wanted.committed_metadata or "", wanted.committed_leader_epoch
            )
    return codes


def partition_error(
    node: BrokerNode, name: str | None, wanted: OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition
) -> int:
    """Return the error code for the commit of one partition."""
    if name is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if not node.topics.has_partition(name, wanted.partition_index):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if len((wanted.committed_metadata or "").encode()) > node.config.offset_metadata_max_bytes:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    return ErrorCode.NONE


def build_topic_result(topic: OffsetCommitRequestTopic, codes: Sequence[int]) -> OffsetCommitResponseTopic:
    """Return the result of one topic, with a code for each partition."""
    partitions = [
        OffsetCommitResponsePartition(wanted.partition_index, code)
        for wanted, code in zip(topic.partitions, codes, strict=True)
    ]
    return OffsetCommitResponseTopic(topic.name, topic.topic_id, partitions)
