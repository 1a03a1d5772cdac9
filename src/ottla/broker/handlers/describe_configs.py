"""DescribeConfigs: what topics, groups and the broker are set to, where each value is from, and what it means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ottla.broker import loggers
from ottla.broker.config_changes import denial_of
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.broker.settings.dynamic_config import Settings
from ottla.broker.settings.entries import (
    broker_entries,
    entries_for_all,
    group_entries,
    subscription_entries,
    topic_entries,
)
from ottla.coordination.cluster.records import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from ottla.coordination.cluster.topic import Topic
from ottla.coordination.cluster.topic_names import fault_of
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


class Known(NamedTuple):
    """What there is to describe."""

    topics: Mapping[str, Topic]
    groups: Mapping[str, Mapping[str, str]]
    subscriptions: Mapping[str, Mapping[str, str]]
    settings: Settings
    node_id: int
    reached_at: str = ""
    """What clients are told of the node's addresses where `advertised.listeners` does not say."""


Denial = Callable[[int, str], Refusal | None]


def handle(node: BrokerNode, call: Call, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """As this broker knows them."""
    reached_at = ",".join(f"{name}://{at}" for name, at in node.reached_at.items())
    topics = {topic.name: topic for each in request.resources if (topic := node.topics.named(each.resource_name))}
    known = Known(
        topics,
        node.topics.group_configs,
        node.topics.subscriptions,
        node.topics.settings,
        node.config.node_id,
        reached_at,
    )
    return answer(known, request, lambda kind, name: denial_of(node, call, Operation.DESCRIBE_CONFIGS, kind, name))


def answer(known: Known, request: DescribeConfigsRequest, denial_for: Denial) -> DescribeConfigsResponse:
    """One result for each resource, however often it is named."""
    resources = {
        (each.resource_type, each.resource_name, frozenset(each.configuration_keys or ())): each
        for each in request.resources
    }
    results = [described(known, request, each, denial_for) for each in resources.values()]
    return DescribeConfigsResponse(results=results)


def described(
    known: Known, request: DescribeConfigsRequest, wanted: DescribeConfigsResource, denial_for: Denial
) -> DescribeConfigsResult:
    """The configs of one resource that were asked for; no names stand for all of them."""
    result = DescribeConfigsResult(resource_type=wanted.resource_type, resource_name=wanted.resource_name)
    denial = denial_for(wanted.resource_type, wanted.resource_name)
    if denial is not None:
        result.error_code, result.error_message = denial.code, str(denial)
        return result
    try:
        entries = entries_of(known, wanted)
    except KafkaError as refusal:
        result.error_code, result.error_message = refusal.code, refusal.message
        return result
    names = frozenset(wanted.configuration_keys or ())
    result.configs = [shown(request, entry) for entry in entries if not names or entry.name in names]
    return result


def entries_of(known: Known, wanted: DescribeConfigsResource) -> list[DescribeConfigsResourceResult]:
    """Every config of a resource; KafkaError where it has none."""
    kind, name = wanted.resource_type, wanted.resource_name
    if kind == TOPIC_RESOURCE:
        return of_topic(known, name)
    if kind == BROKER_RESOURCE:
        return of_broker(known, name)
    if kind == loggers.LOGGER_RESOURCE:
        return of_loggers(known, name)
    if kind == GROUP_RESOURCE:
        return of_group(known, name)
    if kind == CLIENT_METRICS_RESOURCE:
        return of_subscription(known, name)
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {kind}")


def of_topic(known: Known, name: str) -> list[DescribeConfigsResourceResult]:
    """Every config of a topic."""
    topic = known.topics.get(name)
    if topic is not None:
        return topic_entries(topic.configs, known.settings)
    fault = fault_of(name)
    if fault:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{name}'.")


def of_broker(known: Known, name: str) -> list[DescribeConfigsResourceResult]:
    """Every setting of this broker; no name asks for what was set for all brokers at run time."""
    if not name:
        return entries_for_all(known.settings)
    if not name.isdecimal():
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"{name!r} is no broker id: give a number, or nothing for all brokers"
        )
    if name != str(known.node_id):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"this is broker {known.node_id}, not {name}: ask with its id, or with none for all brokers",
        )
    return broker_entries(known.settings, known.reached_at)


def of_group(known: Known, name: str) -> list[DescribeConfigsResourceResult]:
    """Every config of a group, which may be one that is yet to come."""
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a group has a name, and this one is empty")
    return group_entries(known.groups.get(name, {}), known.settings)


def of_subscription(known: Known, name: str) -> list[DescribeConfigsResourceResult]:
    """Every config of a subscription to metrics of clients, which may be one that is yet to come."""
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a subscription to client metrics has a name; none was given")
    return subscription_entries(known.subscriptions.get(name, {}))


def of_loggers(known: Known, name: str) -> list[DescribeConfigsResourceResult]:
    """The level of each logger of this broker."""
    try:
        loggers.check_node(known.node_id, name)
    except Refusal as refusal:
        raise KafkaError(refusal.code, str(refusal)) from None
    return loggers.entries()


def shown(request: DescribeConfigsRequest, entry: DescribeConfigsResourceResult) -> DescribeConfigsResourceResult:
    """An entry without what was not asked for."""
    return replace(
        entry,
        synonyms=entry.synonyms if request.include_synonyms else (),
        documentation=entry.documentation if request.include_documentation else None,
    )
