"""Authorization of requests that name several resources: each denied resource is refused, the others are processed.

request ──► share ──► allowed part ──► decided ──► response ──► finish: adds an error per denied resource
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ottla.broker.apis.config_changes import GUARDED
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.errors import ErrorCode
from ottla.protocol.acl import CLUSTER_NAME, Operation, ResourceType
from ottla.protocol.messages import alter_configs, incremental_alter_configs
from ottla.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopicResult
from ottla.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.schema import Message, replace

Allows = Callable[[Operation, ResourceType, str], bool]
TOPIC = ResourceType.TOPIC


class Share(NamedTuple):
    """The allowed part of a request, and a function that adds the denied resources to its response."""

    request: Any
    finish: Callable[[Any], Message]


def split_request(request: Any, allows: Allows, metadata: ClusterMetadata) -> Share:
    """Return the allowed part of a request; requests without resources of their own are returned as they are."""
    match request:
        case CreateTopicsRequest():
            return split_creation(request, allows)
        case CreatePartitionsRequest():
            return split_partition_creation(request, allows)
        case DeleteTopicsRequest():
            return split_deletion(request, allows, metadata)
        case alter_configs.AlterConfigsRequest():
            return split_config_change(request, allows, alter_configs.AlterConfigsResourceResponse)
        case incremental_alter_configs.IncrementalAlterConfigsRequest():
            return split_config_change(request, allows, incremental_alter_configs.AlterConfigsResourceResponse)
    return Share(request, lambda response: response)


def split_creation(request: CreateTopicsRequest, allows: Allows) -> Share:
    any_topic = allows(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
    allowed, denied = partition_by(request.topics, lambda each: any_topic or allows(Operation.CREATE, TOPIC, each.name))

    def finish(response: CreateTopicsResponse) -> Message:
        for result in response.topics:
            if not allows(Operation.DESCRIBE_CONFIGS, TOPIC, result.name):
                hide_configs(result)
        return replace(response, topics=[*response.topics, *map(refused_creation, denied)])

    return Share(replace(request, topics=allowed), finish)


def hide_configs(result: CreatableTopicResult) -> None:
    """Hide the topic's configs from a client that may not describe them."""
    if not result.error_code:
        result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        result.num_partitions = result.replication_factor = -1
        result.configs = None


def refused_creation(topic: CreatableTopic) -> CreatableTopicResult:
    """Return the result for a topic that the client may not create, whether it exists or not."""
    message = f"CREATE is allowed neither on the cluster nor on topic {topic.name!r}"
    return CreatableTopicResult(topic.name, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message=message)


def split_partition_creation(request: CreatePartitionsRequest, allows: Allows) -> Share:
    allowed, denied = partition_by(request.topics, lambda each: allows(Operation.ALTER, TOPIC, each.name))
    refusals = [
        CreatePartitionsTopicResult(
            each.name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"ALTER is not allowed on topic {each.name!r}"
        )
        for each in denied
    ]
    return Share(
        replace(request, topics=allowed), lambda response: replace(response, results=[*response.results, *refusals])
    )


def split_deletion(request: DeleteTopicsRequest, allows: Allows, metadata: ClusterMetadata) -> Share:
    """Split a DeleteTopics request.

    Versions before 6 give names, later ones names or ids. A client without DESCRIBE must not learn whether a topic
    exists, or the name for an id.
    """
    names = {topic.topic_id: topic.name for topic in metadata.topics.values()}

    def refusal(each: DeleteTopicState) -> DeletableTopicResult | None:
        name = names.get(each.topic_id) if each.name is None else each.name
        if name is None or allows(Operation.DELETE, TOPIC, name):
            return None
        is_known = allows(Operation.DESCRIBE, TOPIC, name)
        if is_known and name not in metadata.topics:
            return None  # the client may describe it, and gets UNKNOWN_TOPIC_OR_PARTITION
        shown_name = name if is_known else each.name
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return DeletableTopicResult(shown_name, each.topic_id, code, not_allowed(shown_name))

    by_name = [(name, refusal(DeleteTopicState(name))) for name in request.topic_names]
    states = [(each, refusal(each)) for each in request.topics]
    refusals = [denial for _, denial in (*by_name, *states) if denial is not None]
    left = replace(
        request,
        topic_names=[name for name, denial in by_name if denial is None],
        topics=[each for each, denial in states if denial is None],
    )
    return Share(left, lambda response: replace(response, responses=[*response.responses, *refusals]))


def not_allowed(name: str | None) -> str:
    """Return the message of a denial.

    A topic that was given by its id has no name in it if the client may not describe it.
    """
    return f"DELETE is not allowed on {'this topic' if name is None else f'topic {name!r}'}"


def split_config_change(request: Any, allows: Allows, result: Callable[..., Any]) -> Share:
    """Split a request for configs. Unknown kinds of resources stay in it and are rejected later."""

    def owner_of(each: Any) -> tuple[ResourceType, str]:
        owner, _ = GUARDED[each.resource_type]
        return owner, CLUSTER_NAME if owner is ResourceType.CLUSTER else each.resource_name

    def may(each: Any) -> bool:
        return each.resource_type not in GUARDED or allows(Operation.ALTER_CONFIGS, *owner_of(each))

    def denial(owner: ResourceType, name: str) -> str:
        return f"ALTER_CONFIGS is not allowed on {owner.name.lower()} {name!r}"

    allowed, denied = partition_by(request.resources, may)
    refusals = [
        result(
            error_code=GUARDED[each.resource_type][1],
            error_message=denial(*owner_of(each)),
            resource_type=each.resource_type,
            resource_name=each.resource_name,
        )
        for each in denied
    ]
    return Share(
        replace(request, resources=allowed),
        lambda response: replace(response, responses=[*response.responses, *refusals]),
    )


def partition_by(things: Sequence[Any], may: Callable[[Any], bool]) -> tuple[list[Any], list[Any]]:
    """Return the allowed things and the denied ones."""
    verdicts = [(each, may(each)) for each in things]
    return [each for each, yes in verdicts if yes], [each for each, yes in verdicts if not yes]
