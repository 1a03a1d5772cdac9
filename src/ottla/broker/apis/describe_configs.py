"""DescribeConfigs: the configs of topics, groups and brokers, with their sources and documentation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ottla.broker.apis.config_changes import find_denial
from ottla.broker.network_server.call import Call
from ottla.broker.node import BrokerNode
from ottla.broker.settings import broker_loggers
from ottla.broker.settings.config_entries import (
    broker_entries,
    entries_for_all,
    group_entries,
    subscription_entries,
    topic_entries,
)
from ottla.broker.settings.dynamic_config import DynamicSettings
from ottla.coordination.cluster.records import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from ottla.coordination.cluster.topic import ClusterTopic
from ottla.coordination.cluster.topic_names import find_fault
from ottla.coordination.cluster.topic_request import Refusal
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.acl import Operation
from ottla.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from ottla.protocol.schema import replace


class ConfigSources(NamedTuple):
    """The configs that can be described."""

    topics: Mapping[str, ClusterTopic]
    groups: Mapping[str, Mapping[str, str]]
    subscriptions: Mapping[str, Mapping[str, str]]
    settings: DynamicSettings
    node_id: int
    reached_at: str = ""
    """The addresses for clients if `advertised.listeners` is not set."""


Denial = Callable[[int, str], Refusal | None]


def handle(node: BrokerNode, call: Call, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Describe configs, as this broker knows them."""
    reached_at = ",".join(f"{name}://{at}" for name, at in node.reached_at.items())
    topics = {
        topic.name: topic for each in request.resources if (topic := node.topics.find_by_name(each.resource_name))
    }
    known = ConfigSources(
        topics,
        node.topics.group_configs,
        node.topics.subscriptions,
        node.topics.settings,
        node.config.node_id,
        reached_at,
    )
    return build_response(
        known, request, lambda kind, name: find_denial(node, call, Operation.DESCRIBE_CONFIGS, kind, name)
    )


def build_response(
    known: ConfigSources, request: DescribeConfigsRequest, denial_for: Denial
) -> DescribeConfigsResponse:
    """Return one result for each resource, also if it is named several times."""
    resources = {
        (each.resource_type, each.resource_name, frozenset(each.configuration_keys or ())): each
        for each in request.resources
    }
    results = [describe_resource(known, request, each, denial_for) for each in resources.values()]
    return DescribeConfigsResponse(results=results)


def describe_resource(
    known: ConfigSources, request: DescribeConfigsRequest, wanted: DescribeConfigsResource, denial_for: Denial
) -> DescribeConfigsResult:
    """Return the requested configs of one resource; all of them without names."""
    result = DescribeConfigsResult(resource_type=wanted.resource_type, resource_name=wanted.resource_name)
    denial = denial_for(wanted.resource_type, wanted.resource_name)
    if denial is not None:
        result.error_code, result.error_message = denial.code, str(denial)
        return result
    try:
        entries = list_entries(known, wanted)
    except KafkaError as refusal:
        result.error_code, result.error_message = refusal.code, refusal.message
        return result
    names = frozenset(wanted.configuration_keys or ())
    result.configs = [select_fields(request, entry) for entry in entries if not names or entry.name in names]
    return result


def list_entries(known: ConfigSources, wanted: DescribeConfigsResource) -> list[DescribeConfigsResourceResult]:
    """Return every config of a resource. KafkaError if it does not exist or has none."""
    kind, name = wanted.resource_type, wanted.resource_name
    if kind == TOPIC_RESOURCE:
        return list_topic_entries(known, name)
    if kind == BROKER_RESOURCE:
        return list_broker_entries(known, name)
    if kind == broker_loggers.LOGGER_RESOURCE:
        return list_logger_entries(known, name)
    if kind == GROUP_RESOURCE:
        return list_group_entries(known, name)
    if kind == CLIENT_METRICS_RESOURCE:
        return list_subscription_entries(known, name)
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {kind}")


def list_topic_entries(known: ConfigSources, name: str) -> list[DescribeConfigsResourceResult]:
    topic = known.topics.get(name)
    if topic is not None:
        return topic_entries(topic.configs, known.settings)
    fault = find_fault(name)
    if fault:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{name}'.")


def list_broker_entries(known: ConfigSources, name: str) -> list[DescribeConfigsResourceResult]:
    """Return every setting of this broker; an empty name selects the settings for all brokers at run time."""
    if not name:
        return entries_for_all(known.settings)
    if not name.isdecimal():
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"{name!r} is not a broker id: expected a number, or an empty name for the defaults of all brokers",
        )
    if name != str(known.node_id):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"this is broker {known.node_id}, not {name}: send the request to broker {name}, or use an empty name for the defaults of all brokers",
        )
    return broker_entries(known.settings, known.reached_at)


def list_group_entries(known: ConfigSources, name: str) -> list[DescribeConfigsResourceResult]:
    """Return every config of a group, which need not exist yet."""
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the name of a group must not be empty")
    return group_entries(known.groups.get(name, {}), known.settings)


def list_subscription_entries(known: ConfigSources, name: str) -> list[DescribeConfigsResourceResult]:
    """Return every config of a client metrics subscription, which need not exist yet."""
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the name of a client metrics subscription must not be empty")
    return subscription_entries(known.subscriptions.get(name, {}))


def list_logger_entries(known: ConfigSources, name: str) -> list[DescribeConfigsResourceResult]:
    """Return the level of each logger of this broker."""
    try:
        broker_loggers.check_node(known.node_id, name)
    except Refusal as refusal:
        raise KafkaError(refusal.code, str(refusal)) from None
    return broker_loggers.list_entries()


def select_fields(
    request: DescribeConfigsRequest, entry: DescribeConfigsResourceResult
) -> DescribeConfigsResourceResult:
    """Return an entry without the parts that were not requested."""
    return replace(
        entry,
        synonyms=entry.synonyms if request.include_synonyms else (),
        documentation=entry.documentation if request.include_documentation else None,
    )
