"""DescribeShareGroupOffsets: the offsets from which share groups read, and their lags (KIP-932, KIP-1226).

    partitions with a state ──► ReadShareGroupStateSummary ──► end offset of the partition ──► lag

The lag is the number of records from the start offset on, without those that are not delivered any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from ottla.broker.apis.deferred_response import DeferredResponse
from ottla.broker.apis.group_calls import find_code
from ottla.broker.apis.share_state_calls import group_fault
from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.broker.security.authorization import lacks_permission
from ottla.coordination.groups.consumer.member import TopicIdPartition
from ottla.coordination.groups.share.events import DescribedPartitions
from ottla.errors import ErrorCode, KafkaError
from ottla.model import TopicPartition
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from ottla.protocol.schema import Message

if TYPE_CHECKING:
    from ottla.broker.coordinators.share_coordinator import StateResult

UNKNOWN = -1


class GroupDescriptionBuilder:
    """The description of one group, which is complete when `left` is 0."""

    def __init__(self, node: BrokerNode, group: DescribeShareGroupOffsetsRequestGroup) -> None:
        self.node = node
        self.response = DescribeShareGroupOffsetsResponseGroup(group.group_id)
        self._topics: dict[str, dict[int, DescribeShareGroupOffsetsResponsePartition]] = {}

    def fail(self, code: int, text: str | None = None) -> None:
        self.response.error_code, self.response.error_message = code, text

    def put(self, name: str, part: DescribeShareGroupOffsetsResponsePartition) -> None:
        self._topics.setdefault(name, {})[part.partition_index] = part

    def build(self) -> DescribeShareGroupOffsetsResponseGroup:
        self.response.topics = [
            DescribeShareGroupOffsetsResponseTopic(name, self._id_of(name), [found[each] for each in sorted(found)])
            for name, found in sorted(self._topics.items())
        ]
        return self.response

    def _id_of(self, name: str) -> UUID:
        topic = self.node.topics.find_by_name(name)
        return UUID(int=0) if topic is None else topic.topic_id


def handle(node: BrokerNode, call: Call, request: DescribeShareGroupOffsetsRequest) -> Message | Outcome:
    """Describe each group, and respond when all are described."""
    left = {index for index, _ in enumerate(request.groups)}
    descriptions = [GroupDescriptionBuilder(node, group) for group in request.groups]
    response = DeferredResponse(call)

    def build() -> DescribeShareGroupOffsetsResponse:
        return DescribeShareGroupOffsetsResponse(groups=[each.build() for each in descriptions])

    def complete(index: int) -> None:
        left.discard(index)
        if not left:
            response.send(build())

    for index, group in enumerate(request.groups):
        describe(node, call, group, descriptions[index], partial(complete, index))
    return response.result() if descriptions else build()


def describe(
    node: BrokerNode,
    call: Call,
    group: DescribeShareGroupOffsetsRequestGroup,
    description: GroupDescriptionBuilder,
    on_done: partial[None],
) -> None:
    """Describe one group; `on_done` is called when the description is complete."""
    group_id = group.group_id
    fault = group_fault(node, call, group_id, Operation.DESCRIBE)
    if fault is not None:
        description.fail(*fault)
        return on_done()
    try:
        shard = node.groups.find_shard(group_id)
    except KafkaError as error:
        description.fail(find_code(node, group_id, error))
        return on_done()
    allowed = allowed_topics(node, call, group, description)
    found: ErrorCode | DescribedPartitions = (
        ErrorCode.GROUP_ID_NOT_FOUND if shard is None else shard.shares.find_described_partitions(group_id, allowed)
    )
    if found == ErrorCode.GROUP_ID_NOT_FOUND and allowed is not None:
        # As in Kafka: the partitions that are named have no offset yet.
        for name, indexes in allowed.items():
            for index in indexes:
                description.put(name, failed_partition(index, ErrorCode.NONE))
        return on_done()
    if isinstance(found, ErrorCode):
        description.fail(found, f"there is no share group {group_id}")
        return on_done()
    for (name, index), code in found.errors.items():
        description.put(name, failed_partition(index, code))
    names = visible_names(node, call, {topic_id for topic_id, _ in found.partitions})
    partitions = [each for each in found.partitions if each[0] in names]
    node.groups.share_states.summarize(
        group_id, partitions, lambda results: put_summaries(node, results, names, description, on_done)
    )
    return None


def allowed_topics(
    node: BrokerNode, call: Call, group: DescribeShareGroupOffsetsRequestGroup, description: GroupDescriptionBuilder
) -> dict[str, Sequence[int]] | None:
    """Return the requested topics that the client may describe, None for all; the others get their errors."""
    if group.topics is None:
        return None
    allowed: dict[str, Sequence[int]] = {}
    for topic in group.topics:
        if lacks_permission(node, call, Operation.DESCRIBE, ResourceType.TOPIC, topic.topic_name):
            for index in topic.partitions:
                description.put(topic.topic_name, failed_partition(index, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        else:
            allowed[topic.topic_name] = topic.partitions
    return allowed


def visible_names(node: BrokerNode, call: Call, topic_ids: Iterable[UUID]) -> dict[UUID, str]:
    """Return the names of those topics that exist and that the client may describe."""
    topics = (topic for each in topic_ids if (topic := node.topics.with_id(each)) is not None)
    access = node.access
    return {
        topic.topic_id: topic.name
        for topic in topics
        if access is None or access.can_describe(call, ResourceType.TOPIC, topic.name)
    }


def put_summaries(
    node: BrokerNode,
    results: Mapping[TopicIdPartition, StateResult],
    names: Mapping[UUID, str],
    description: GroupDescriptionBuilder,
    on_done: partial[None],
) -> None:
    """Add the start offsets, and the lags once the end offsets are known."""
    left = set(results)
    if not left:
        on_done()

    def complete(place: TopicIdPartition, result: StateResult, end_offset: int) -> None:
        lag = UNKNOWN
        if end_offset >= 0 and result.start_offset >= 0 and result.delivery_complete_count >= 0:
            lag = max(0, end_offset - result.start_offset - result.delivery_complete_count)
        part = DescribeShareGroupOffsetsResponsePartition(
            place[1], result.start_offset, max(0, result.leader_epoch), lag, result.error
        )
        description.put(names[place[0]], part)
        left.discard(place)
        if not left:
            on_done()

    for place, result in results.items():
        if result.error or result.start_offset < 0:
            complete(place, result, UNKNOWN)
        else:
            node.end_offsets.find(TopicPartition(names[place[0]], place[1]), partial(complete, place, result))


def failed_partition(index: int, code: int) -> DescribeShareGroupOffsetsResponsePartition:
    return DescribeShareGroupOffsetsResponsePartition(index, UNKNOWN, 0, UNKNOWN, code)
