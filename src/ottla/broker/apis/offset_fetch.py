"""OffsetFetch: the committed offsets of groups.

An offset that was never committed is -1, as are all of an unknown group.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from ottla.broker.apis.group_calls import find_code, respond_when_committed
from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.broker.security.authorization import lacks_permission
from ottla.errors import ErrorCode, KafkaError
from ottla.model import OffsetAndMetadata, TopicPartition
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from ottla.protocol.schema import ZERO_UUID, Message

ERROR_SINCE = 2
"""From this version on the response has an error for the whole group."""
GROUPS_SINCE = 8
"""From this version on a request has several groups."""
IDS_SINCE = 10
"""From this version on topics have ids instead of names."""
NONE_COMMITTED = OffsetAndMetadata(-1)


def handle(node: BrokerNode, call: Call, request: OffsetFetchRequest) -> Message | Outcome:
    """Return the offsets once they are committed in the log.

    A new leader might not have uncommitted ones, and the group would read records again.
    """
    groups = [each.group_id for each in request.groups] if call.version >= GROUPS_SINCE else [request.group_id]
    return respond_when_committed(
        node,
        call,
        groups,
        lambda: build_response(node, call, request),
        lambda code: build_error(request, call.version, code),
    )


def build_error(request: OffsetFetchRequest, version: int, code: int) -> OffsetFetchResponse:
    """Return the same code for everything that was requested."""
    if version < GROUPS_SINCE:
        return build_group_errors(request, code)
    groups = [OffsetFetchResponseGroup(each.group_id, error_code=code) for each in request.groups]
    return OffsetFetchResponse(groups=groups)


def build_response(node: BrokerNode, call: Call, request: OffsetFetchRequest) -> OffsetFetchResponse:
    """Return the committed offsets that the coordinator knows."""
    if call.version >= GROUPS_SINCE:
        stable = request.require_stable
        return OffsetFetchResponse(
            groups=[build_group_result(node, call, group, stable) for group in remove_duplicates(request.groups)]
        )
    if lacks_permission(node, call, Operation.DESCRIBE, ResourceType.GROUP, request.group_id):
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return (
            OffsetFetchResponse(error_code=code) if call.version >= ERROR_SINCE else build_group_errors(request, code)
        )
    try:
        kept = GroupOffsets.read(node, request.group_id, require_stable=request.require_stable)
    except KafkaError as error:
        return build_group_errors(request, find_code(node, request.group_id, error))
    if request.topics is None:
        wanted = list_all_partitions(hide_unauthorized_offsets(node, call, kept.all()))
        return OffsetFetchResponse(topics=[build_topic_result(kept, name, indexes) for name, indexes in wanted])
    return OffsetFetchResponse(
        topics=[
            build_topic_result(
                DENIED if is_denied(node, call, topic.name) else kept, topic.name, topic.partition_indexes
            )
            for topic in request.topics
        ]
    )


def remove_duplicates(groups: Iterable[OffsetFetchRequestGroup]) -> Iterator[OffsetFetchRequestGroup]:
    """Yield the groups of a request. A group with all offsets requested is answered once, however often it is named."""
    answered: set[str] = set()
    for group in groups:
        if group.topics is None:
            if group.group_id in answered:
                continue
            answered.add(group.group_id)
        yield group


def is_denied(node: BrokerNode, call: Call, name: str) -> bool:
    """Return True if the client may not describe a topic."""
    return lacks_permission(node, call, Operation.DESCRIBE, ResourceType.TOPIC, name)


def hide_unauthorized_offsets(
    node: BrokerNode, call: Call, offsets: Mapping[TopicPartition, OffsetAndMetadata]
) -> Mapping[TopicPartition, OffsetAndMetadata]:
    """Return the offsets in topics that the client may describe."""
    access = node.access
    if access is None:
        return offsets
    return {
        place: offset for place, offset in offsets.items() if access.can_describe(call, ResourceType.TOPIC, place.topic)
    }


class GroupOffsets(NamedTuple):
    """The committed offsets of a group."""

    all: Callable[[], Mapping[TopicPartition, OffsetAndMetadata]]
    """Every committed offset; copied when it is called."""
    offset: Callable[[TopicPartition], OffsetAndMetadata]
    is_unstable: Callable[[TopicPartition], bool]
    """Returns true if an open transaction may change the offset and the client requires stable ones (KIP-447)."""
    error: int = ErrorCode.NONE
    """The error code of all offsets, or NONE."""

    @classmethod
    def read(cls, node: BrokerNode, group: str, *, require_stable: bool) -> GroupOffsets:
        """Return the offsets of a group. KafkaError if they cannot be read."""
        reader = node.groups.find_offsets(group)
        if reader is None:
            return cls(dict, lambda place: NONE_COMMITTED, lambda place: False)
        is_unstable = reader.is_unstable if require_stable else lambda place: False
        return cls(reader.all, lambda place: reader.offset(place) or NONE_COMMITTED, is_unstable)

    def find(self, place: TopicPartition) -> tuple[OffsetAndMetadata, int]:
        """Return the offset of a partition, and its error code."""
        if self.error:
            return NONE_COMMITTED, self.error
        if self.is_unstable(place):
            return NONE_COMMITTED, ErrorCode.UNSTABLE_OFFSET_COMMIT
        return self.offset(place), ErrorCode.NONE


DENIED = GroupOffsets(dict, lambda place: NONE_COMMITTED, lambda place: False, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
"""The offsets in topics that the client may not describe."""


def build_group_result(
    node: BrokerNode, call: Call, group: OffsetFetchRequestGroup, require_stable: bool
) -> OffsetFetchResponseGroup:
    """Return one group's offsets, for the requested topics or for all."""
    if lacks_permission(node, call, Operation.DESCRIBE, ResourceType.GROUP, group.group_id):
        return OffsetFetchResponseGroup(group.group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    try:
        error = node.groups.fetch_error(group.group_id, group.member_id, group.member_epoch)
        if error:
            return OffsetFetchResponseGroup(group.group_id, error_code=error)
        kept = GroupOffsets.read(node, group.group_id, require_stable=require_stable)
    except KafkaError as error:
        return OffsetFetchResponseGroup(group.group_id, error_code=find_code(node, group.group_id, error))
    topics = group.topics
    if topics is None:
        topics = [
            OffsetFetchRequestTopics(name, find_topic_id(node, name), indexes)
            for name, indexes in list_all_partitions(hide_unauthorized_offsets(node, call, kept.all()))
            if call.version < IDS_SINCE or node.topics.find_by_name(name) is not None
        ]
    return OffsetFetchResponseGroup(
        group.group_id, [build_topic_result_by_id(node, call, kept, topic) for topic in topics]
    )


def build_group_errors(request: OffsetFetchRequest, code: int) -> OffsetFetchResponse:
    """Return the error of a group. In the first version each partition has the code."""
    topics = [
        OffsetFetchResponseTopic(
            topic.name, [OffsetFetchResponsePartition(index, -1, error_code=code) for index in topic.partition_indexes]
        )
        for topic in request.topics or ()
    ]
    return OffsetFetchResponse(topics=topics, error_code=code)


def build_topic_result(kept: GroupOffsets, name: str, indexes: Iterable[int]) -> OffsetFetchResponseTopic:
    """Return one topic in the form of the versions with a single group."""
    partitions = []
    for index in indexes:
        offset, code = kept.find(TopicPartition(name, index))
        partitions.append(
            OffsetFetchResponsePartition(index, offset.offset, offset.leader_epoch, offset.metadata, code)
        )
    return OffsetFetchResponseTopic(name, partitions)


def build_topic_result_by_id(
    node: BrokerNode, call: Call, kept: GroupOffsets, topic: OffsetFetchRequestTopics
) -> OffsetFetchResponseTopics:
    """Return one topic in the form of the versions with several groups."""
    name: str | None = topic.name
    if call.version >= IDS_SINCE:
        name = node.topics.name_of(topic.topic_id)
    if name is not None and is_denied(node, call, name):
        kept = DENIED
    partitions = []
    for index in topic.partition_indexes:
        offset, code = NONE_COMMITTED, int(ErrorCode.UNKNOWN_TOPIC_ID)
        if name is not None:
            offset, code = kept.find(TopicPartition(name, index))
        partitions.append(
            OffsetFetchResponsePartitions(index, offset.offset, offset.leader_epoch, offset.metadata, code)
        )
    return OffsetFetchResponseTopics(topic.name, topic.topic_id, partitions)


def list_all_partitions(kept: Mapping[TopicPartition, OffsetAndMetadata]) -> list[tuple[str, Sequence[int]]]:
    """Return all partitions with a committed offset, by topic."""
    by_topic = groupby(sorted(kept), key=lambda partition: partition.topic)
    return [(name, [each.partition for each in partitions]) for name, partitions in by_topic]


def find_topic_id(node: BrokerNode, name: str) -> uuid.UUID:
    """Return a topic's id, zero if it was deleted."""
    topic = node.topics.find_by_name(name)
    return ZERO_UUID if topic is None else topic.topic_id
