"""The checks of a broker before it forwards a change of topics: the client's quota, and room on the only node's disks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ottla.broker.network_server.call import Call
from ottla.broker.node import BrokerNode
from ottla.coordination.cluster.topic import ClusterTopic
from ottla.coordination.cluster.topic_request import MOST_PARTITIONS
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from ottla.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from ottla.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.schema import Message, replace

Finish = Callable[[Any], Message]
TOO_MANY = "the quota controller_mutation_rate is exceeded: retry after throttle_time_ms"
LATE = ErrorCode.THROTTLING_QUOTA_EXCEEDED


def reject_above_quota(node: BrokerNode, request: Any) -> Message | None:
    """Return the refusal of new partitions for which the only node's disks have no room; None if there is room.

    Folders of partitions are created at the first write, and a topic that could never be written must not be created.
    """
    if not node.is_alone or isinstance(request, DeleteTopicsRequest):
        return None
    if isinstance(request, CreateTopicsRequest):
        count = sum(min(max(each.num_partitions, 1), MOST_PARTITIONS) for each in request.topics)
    else:
        count = len(request.topics)
    try:
        node.directory.ensure_space(count)
    except KafkaError as error:
        names = [each.name for each in request.topics]
        if isinstance(request, CreateTopicsRequest):
            return CreateTopicsResponse(
                topics=[CreatableTopicResult(name, error_code=error.code, error_message=error.reason) for name in names]
            )
        return CreatePartitionsResponse(
            results=[CreatePartitionsTopicResult(name, error.code, error.reason) for name in names]
        )
    return None


def apply_quota(node: BrokerNode, call: Call, request: Any) -> tuple[Any, Finish]:
    """Return the part of a request that is within the controller mutation quota, and what completes the response."""
    match request:
        case CreateTopicsRequest():
            within, beyond = split_by_quota(node, call, request.topics, lambda each: max(each.num_partitions, 1))
            results: list[Any] = [
                CreatableTopicResult(each.name, error_code=LATE, error_message=TOO_MANY) for each in beyond
            ]
            return select_part(request, within, beyond), lambda said: replace(said, topics=[*said.topics, *results])
        case CreatePartitionsRequest():
            within, beyond = split_by_quota(
                node, call, request.topics, lambda each: count_added(node, each.name, each.count)
            )
            results = [CreatePartitionsTopicResult(each.name, LATE, TOO_MANY) for each in beyond]
            return select_part(request, within, beyond), lambda said: replace(said, results=[*said.results, *results])
    states = [*request.topics, *map(DeleteTopicState, request.topic_names)]
    within, beyond = split_by_quota(node, call, states, lambda each: count_deleted(node, each))
    results = [DeletableTopicResult(each.name, each.topic_id, LATE, TOO_MANY) for each in beyond]
    finish = lambda said: replace(said, responses=[*said.responses, *results])  # noqa: E731
    if not beyond:
        return request, finish
    if request.topic_names:
        return replace(request, topic_names=[each.name or "" for each in within]), finish
    return replace(request, topics=within), finish


def split_by_quota(
    node: BrokerNode, call: Call, wanted: Sequence[Any], count: Callable[[Any], int]
) -> tuple[list[Any], list[Any]]:
    """Return the changes within the quota, and those beyond it. `count` returns the partitions of a change."""
    assert node.quotas is not None
    now = node.clock.monotonic()
    verdicts = [(each, node.quotas.may_change(call, count(each), now)) for each in wanted]
    return [each for each, may in verdicts if may], [each for each, may in verdicts if not may]


def select_part(request: Any, within: Sequence[Any], beyond: Sequence[Any]) -> Any:
    return replace(request, topics=within) if beyond else request


def count_added(node: BrokerNode, name: str, count: int) -> int:
    """Return the number of partitions that a topic would get."""
    topic = node.topics.find_by_name(name)
    return max(count - len(topic.partitions), 0) if topic is not None else 0


def count_deleted(node: BrokerNode, unwanted: DeleteTopicState) -> int:
    """Return the number of partitions of a topic to delete."""
    found: ClusterTopic | None
    found = node.topics.with_id(unwanted.topic_id) if unwanted.name is None else node.topics.find_by_name(unwanted.name)
    return 0 if found is None else len(found.partitions)
