"""What of a request who asks may have, where it names several things: the rest of it is refused, thing by thing.

request ──► share ──► decided ──► response ──► finish: with a refusal for each thing that was left out
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ottla.broker.config_changes import GUARDED
from ottla.broker.handlers import create_topics
from ottla.broker.handlers.delete_topics import not_allowed
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.errors import ErrorCode
from ottla.protocol.acl import CLUSTER_NAME, Operation, ResourceType
from ottla.protocol.messages import alter_configs, incremental_alter_configs
from ottla.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopicResult
from ottla.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ottla.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.schema import Message, replace

Allows = Callable[[Operation, ResourceType, str], bool]
TOPIC = ResourceType.TOPIC


class Share(NamedTuple):
    """What is left of a request, and how its answer becomes that to the whole."""

    request: Any
    finish: Callable[[Any], Message]


def share(request: Any, allows: Allows, metadata: ClusterMetadata) -> Share:
    """The whole, where nothing is named that rules are about."""
    match request:
        case CreateTopicsRequest():
            return of_creation(request, allows)
        case CreatePartitionsRequest():
            return of_growth(request, allows)
        case DeleteTopicsRequest():
            return of_deletion(request, allows, metadata)
        case alter_configs.AlterConfigsRequest():
            return of_configs(request, allows, alter_configs.AlterConfigsResourceResponse)
        case incremental_alter_configs.IncrementalAlterConfigsRequest():
            return of_configs(request, allows, incremental_alter_configs.AlterConfigsResourceResponse)
    return Share(request, lambda response: response)


def of_creation(request: CreateTopicsRequest, allows: Allows) -> Share:
    any_topic = allows(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
    allowed, denied = split(request.topics, lambda each: any_topic or allows(Operation.CREATE, TOPIC, each.name))

    def finish(response: CreateTopicsResponse) -> Message:
        for result in response.topics:
            if not allows(Operation.DESCRIBE_CONFIGS, TOPIC, result.name):
                create_topics.hide_configs(result)
        return replace(response, topics=[*response.topics, *map(create_topics.refused, denied)])

    return Share(replace(request, topics=allowed), finish)


def of_growth(request: CreatePartitionsRequest, allows: Allows) -> Share:
    allowed, denied = split(request.topics, lambda each: allows(Operation.ALTER, TOPIC, each.name))
    refusals = [
        CreatePartitionsTopicResult(
            each.name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"ALTER is not allowed on topic {each.name!r}"
        )
        for each in denied
    ]
    return Share(
        replace(request, topics=allowed), lambda response: replace(response, results=[*response.results, *refusals])
    )


def of_deletion(request: DeleteTopicsRequest, allows: Allows, metadata: ClusterMetadata) -> Share:
    """Early versions name topics and nothing else."""
    names = {topic.topic_id: topic.name for topic in metadata.topics.values()}

    def refusal(each: DeleteTopicState) -> DeletableTopicResult | None:
        name = names.get(each.topic_id) if each.name is None else each.name
        if name is None or allows(Operation.DELETE, TOPIC, name):
            return None
        is_known = allows(Operation.DESCRIBE, TOPIC, name)
        if is_known and name not in metadata.topics:
            return None  # who may know of it hears that it is not there
        told = name if is_known else each.name
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return DeletableTopicResult(told, each.topic_id, code, not_allowed(told))

    by_name = [(name, refusal(DeleteTopicState(name))) for name in request.topic_names]
    states = [(each, refusal(each)) for each in request.topics]
    refusals = [denial for _, denial in (*by_name, *states) if denial is not None]
    left = replace(
        request,
        topic_names=[name for name, denial in by_name if denial is None],
        topics=[each for each, denial in states if denial is None],
    )
    return Share(left, lambda response: replace(response, responses=[*response.responses, *refusals]))


def of_configs(request: Any, allows: Allows, result: Callable[..., Any]) -> Share:
    """Kinds of resources that there are not are refused for that."""

    def owner_of(each: Any) -> tuple[ResourceType, str]:
        owner, _ = GUARDED[each.resource_type]
        return owner, CLUSTER_NAME if owner is ResourceType.CLUSTER else each.resource_name

    def may(each: Any) -> bool:
        return each.resource_type not in GUARDED or allows(Operation.ALTER_CONFIGS, *owner_of(each))

    def denial(owner: ResourceType, name: str) -> str:
        return f"ALTER_CONFIGS is not allowed on {owner.name.lower()} {name!r}"

    allowed, denied = split(request.resources, may)
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


def split(things: Sequence[Any], may: Callable[[Any], bool]) -> tuple[list[Any], list[Any]]:
    """Those that may be, and the others."""
    verdicts = [(each, may(each)) for each in things]
    return [each for each, yes in verdicts if yes], [each for each, yes in verdicts if not yes]
