"""OffsetFetch: how far a group has read. What it never committed is -1, and so is everything of a group nobody knows."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from ottla.broker.access import denied
from ottla.broker.group_calls import code_of, once_committed
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call, Outcome
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
"""From this version on there is room for one error for the whole answer."""
GROUPS_SINCE = 8
"""From this version on many groups are asked for at once."""
IDS_SINCE = 10
"""From this version on topics have ids instead of names."""
NONE_COMMITTED = OffsetAndMetadata(-1)


def handle(node: BrokerNode, call: Call, request: OffsetFetchRequest) -> Message | Outcome:
    """Tell what is committed in the log, too: another leader may not have it, and the group would go back."""
    groups = [each.group_id for each in request.groups] if call.version >= GROUPS_SINCE else [request.group_id]
    return once_committed(
        node, call, groups, lambda: answer(node, call, request), lambda code: refused(request, call.version, code)
    )


def refused(request: OffsetFetchRequest, version: int, code: int) -> OffsetFetchResponse:
    """The same code for all that was asked for."""
    if version < GROUPS_SINCE:
        return unreadable(request, code)
    groups = [OffsetFetchResponseGroup(each.group_id, error_code=code) for each in request.groups]
    return OffsetFetchResponse(groups=groups)


def answer(node: BrokerNode, call: Call, request: OffsetFetchRequest) -> OffsetFetchResponse:
    """What the coordinator knows by now."""
    if call.version >= GROUPS_SINCE:
        stable = request.require_stable
        return OffsetFetchResponse(groups=[of_group(node, call, group, stable) for group in once(request.groups)])
    if denied(node, call, Operation.DESCRIBE, ResourceType.GROUP, request.group_id):
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return OffsetFetchResponse(error_code=code) if call.version >= ERROR_SINCE else unreadable(request, code)
    try:
        kept = Kept.of(node, request.group_id, require_stable=request.require_stable)
    except KafkaError as error:
        return unreadable(request, code_of(node, request.group_id, error))
    if request.topics is None:
        wanted = every(seen(node, call, kept.all()))
        return OffsetFetchResponse(topics=[of_topic(kept, name, indexes) for name, indexes in wanted])
    return OffsetFetchResponse(
        topics=[
            of_topic(DENIED if is_denied(node, call, topic.name) else kept, topic.name, topic.partition_indexes)
            for topic in request.topics
        ]
    )


def once(groups: Iterable[OffsetFetchRequestGroup]) -> Iterator[OffsetFetchRequestGroup]:
    """The groups of a request; one whose every offset is wanted is answered once, however often it is named."""
    answered: set[str] = set()
    for group in groups:
        if group.topics is None:
            if group.group_id in answered:
                continue
            answered.add(group.group_id)
        yield group


def is_denied(node: BrokerNode, call: Call, name: str) -> bool:
    """Whether the client may not know of a topic."""
    return denied(node, call, Operation.DESCRIBE, ResourceType.TOPIC, name)


def seen(
    node: BrokerNode, call: Call, offsets: Mapping[TopicPartition, OffsetAndMetadata]
) -> Mapping[TopicPartition, OffsetAndMetadata]:
    """Those in topics of which the client may know."""
    access = node.access
    if access is None:
        return offsets
    return {place: offset for place, offset in offsets.items() if access.sees(call, ResourceType.TOPIC, place.topic)}


class Kept(NamedTuple):
    """What a group committed, as far as it is settled."""

    all: Callable[[], Mapping[TopicPartition, OffsetAndMetadata]]
    """Every committed offset; copied when it is called."""
    offset: Callable[[TopicPartition], OffsetAndMetadata]
    is_unstable: Callable[[TopicPartition], bool]
    """Whether an open transaction may change it, where the client cares (KIP-447)."""
    error: int = ErrorCode.NONE
    """Why the client is told of nothing."""

    @classmethod
    def of(cls, node: BrokerNode, group: str, *, require_stable: bool) -> Kept:
        """A group's; KafkaError where it cannot be read."""
        reader = node.groups.offsets_of(group)
        if reader is None:
            return cls(dict, lambda place: NONE_COMMITTED, lambda place: False)
        is_unstable = reader.is_unstable if require_stable else lambda place: False
        return cls(reader.all, lambda place: reader.offset(place) or NONE_COMMITTED, is_unstable)

    def at(self, place: TopicPartition) -> tuple[OffsetAndMetadata, int]:
        """The offset of a partition, and the error with which it is told."""
        if self.error:
            return NONE_COMMITTED, self.error
        if self.is_unstable(place):
            return NONE_COMMITTED, ErrorCode.UNSTABLE_OFFSET_COMMIT
        return self.offset(place), ErrorCode.NONE


DENIED = Kept(dict, lambda place: NONE_COMMITTED, lambda place: False, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
"""What a client hears of a topic of which it may not know."""


def of_group(
    node: BrokerNode, call: Call, group: OffsetFetchRequestGroup, require_stable: bool
) -> OffsetFetchResponseGroup:
    """One group's offsets, for the topics asked for or for all."""
    if denied(node, call, Operation.DESCRIBE, ResourceType.GROUP, group.group_id):
        return OffsetFetchResponseGroup(group.group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    try:
        error = node.groups.fetch_error(group.group_id, group.member_id, group.member_epoch)
        if error:
            return OffsetFetchResponseGroup(group.group_id, error_code=error)
        kept = Kept.of(node, group.group_id, require_stable=require_stable)
    except KafkaError as error:
        return OffsetFetchResponseGroup(group.group_id, error_code=code_of(node, group.group_id, error))
    topics = group.topics
    if topics is None:
        topics = [
            OffsetFetchRequestTopics(name, topic_id_of(node, name), indexes)
            for name, indexes in every(seen(node, call, kept.all()))
            if call.version < IDS_SINCE or node.topics.named(name) is not None
        ]
    return OffsetFetchResponseGroup(group.group_id, [of_topic_by_id(node, call, kept, topic) for topic in topics])


def unreadable(request: OffsetFetchRequest, code: int) -> OffsetFetchResponse:
    """The answer for one group whose offsets cannot be read; the first version tells it of each partition."""
    topics = [
        OffsetFetchResponseTopic(
            topic.name, [OffsetFetchResponsePartition(index, -1, error_code=code) for index in topic.partition_indexes]
        )
        for topic in request.topics or ()
    ]
    return OffsetFetchResponse(topics=topics, error_code=code)


def of_topic(kept: Kept, name: str, indexes: Iterable[int]) -> OffsetFetchResponseTopic:
    """One topic, as the versions for one group answer it."""
    partitions = []
    for index in indexes:
        offset, code = kept.at(TopicPartition(name, index))
        partitions.append(
            OffsetFetchResponsePartition(index, offset.offset, offset.leader_epoch, offset.metadata, code)
        )
    return OffsetFetchResponseTopic(name, partitions)


def of_topic_by_id(
    node: BrokerNode, call: Call, kept: Kept, topic: OffsetFetchRequestTopics
) -> OffsetFetchResponseTopics:
    """One topic, as the versions for many groups answer it."""
    name: str | None = topic.name
    if call.version >= IDS_SINCE:
        name = node.partitions.topic_name(topic.topic_id)
    if name is not None and is_denied(node, call, name):
        kept = DENIED
    partitions = []
    for index in topic.partition_indexes:
        offset, code = NONE_COMMITTED, int(ErrorCode.UNKNOWN_TOPIC_ID)
        if name is not None:
            offset, code = kept.at(TopicPartition(name, index))
        partitions.append(
            OffsetFetchResponsePartitions(index, offset.offset, offset.leader_epoch, offset.metadata, code)
        )
    return OffsetFetchResponseTopics(topic.name, topic.topic_id, partitions)


def every(kept: Mapping[TopicPartition, OffsetAndMetadata]) -> list[tuple[str, Sequence[int]]]:
    """All partitions with an offset, by topic."""
    by_topic = groupby(sorted(kept), key=lambda partition: partition.topic)
    return [(name, [each.partition for each in partitions]) for name, partitions in by_topic]


def topic_id_of(node: BrokerNode, name: str) -> uuid.UUID:
    """A topic's id, zero where it is no more."""
    topic = node.topics.named(name)
    return ZERO_UUID if topic is None else topic.topic_id
