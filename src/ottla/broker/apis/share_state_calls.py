"""Requests for the states of share groups: one operation for each partition, and a response when all have a result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.broker.security.authorization import lacks_permission
from ottla.coordination.cluster.features import SHARE_VERSION
from ottla.coordination.share.share_state import SharePartitionKey
from ottla.errors import ErrorCode
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.schema import Message

if TYPE_CHECKING:
    from ottla.broker.coordinators.share_coordinator import Operation as StateOperation
    from ottla.broker.coordinators.share_coordinator import StateResult

Results = list[tuple[UUID, list[Any]]]
"""The results by topic id."""


def has_share_groups(node: BrokerNode) -> bool:
    """Return True if the feature share.version is on."""
    return bool(node.features.finalized.get(SHARE_VERSION))


def group_fault(node: BrokerNode, call: Call, group_id: str, operation: Operation) -> tuple[int, str] | None:
    """Return error code and message of a request that concerns a share group; None if it may be handled."""
    if not has_share_groups(node):
        return ErrorCode.UNSUPPORTED_VERSION, "share groups are off: raise the feature share.version"
    if not group_id:
        return ErrorCode.INVALID_REQUEST, "the group id is empty"
    if lacks_permission(node, call, operation, ResourceType.GROUP, group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED, f"{operation.name} is not allowed on group {group_id!r}"
    return None


def operate(
    node: BrokerNode,
    call: Call,
    request: Any,
    operation: Callable[[SharePartitionKey, Any], StateOperation],
    result: Callable[[int, StateResult], Any],
    response: Callable[[Results], Message],
) -> Message | Outcome:
    """Decide an operation for each partition of a request, and respond when all have a result.

    `operation` is made of the key and the partition's part of the request; `result` is the partition's part of the response.
    """
    places = [(topic.topic_id, each.partition) for topic in request.topics for each in topic.partitions]
    results: list[StateResult | None] = [None] * len(places)
    is_waiting = False

    def build() -> Message:
        topics: dict[UUID, list[Any]] = {}
        for (topic_id, partition), found in zip(places, results, strict=True):
            assert found is not None
            topics.setdefault(topic_id, []).append(result(partition, found))
        return response(list(topics.items()))

    def complete(index: int, found: StateResult) -> None:
        results[index] = found
        if is_waiting and None not in results:
            call.answer(build())

    from ottla.broker.coordinators.share_coordinator import StateResult  # loaded at the first request

    is_on = has_share_groups(node)
    for index, (key, part) in enumerate(parts_of(request)):
        if is_on:
            node.share_coordinator.submit(operation(key, part), partial(complete, index))
        else:
            complete(index, StateResult(ErrorCode.UNSUPPORTED_VERSION))
    if None not in results:
        return build()
    is_waiting = True
    return Outcome.LATER


def parts_of(request: Any) -> Iterator[tuple[SharePartitionKey, Any]]:
    for topic in request.topics:
        for each in topic.partitions:
            yield SharePartitionKey(request.group_id, topic.topic_id, each.partition), each


def topics_of(make: Callable[[UUID, Sequence[Any]], Any], results: Results) -> list[Any]:
    """Return the topics of a response."""
    return [make(*each) for each in results]
