"""DescribeConfigs: what topics, groups and the broker are set to, where each value is from, and what it means."""

from __future__ import annotations

from dataclasses import replace

from ottla.broker import loggers
from ottla.broker.config_changes import denial_of
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.broker.settings.entries import broker_entries, entries_for_all, group_entries, topic_entries
from ottla.coordination.cluster.records import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
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


def handle(node: BrokerNode, call: Call, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """One result for each resource."""
    return DescribeConfigsResponse(results=[described(node, call, request, resource) for resource in request.resources])


def described(
    node: BrokerNode, call: Call, request: DescribeConfigsRequest, wanted: DescribeConfigsResource
) -> DescribeConfigsResult:
    """The configs of one resource that were asked for; no names stand for all of them."""
    result = DescribeConfigsResult(resource_type=wanted.resource_type, resource_name=wanted.resource_name)
    denial = denial_of(node, call, Operation.DESCRIBE_CONFIGS, wanted.resource_type, wanted.resource_name)
    if denial is not None:
        result.error_code, result.error_message = denial.code, str(denial)
        return result
    try:
        entries = entries_of(node, wanted)
    except KafkaError as refusal:
        result.error_code, result.error_message = refusal.code, refusal.message
        return result
    names = wanted.configuration_keys
    result.configs = [shown(request, entry) for entry in entries if not names or entry.name in names]
    return result


def entries_of(node: BrokerNode, wanted: DescribeConfigsResource) -> list[DescribeConfigsResourceResult]:
    """Every config of a resource; KafkaError where it has none."""
    kind, name = wanted.resource_type, wanted.resource_name
    if kind == TOPIC_RESOURCE:
        return of_topic(node, name)
    if kind == BROKER_RESOURCE:
        return of_broker(node, name)
    if kind == loggers.LOGGER_RESOURCE:
        return of_loggers(node, name)
    if kind == GROUP_RESOURCE:
        return of_group(node, name)
    if kind == CLIENT_METRICS_RESOURCE:
        return of_metrics(name)
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {kind}")


def of_topic(node: BrokerNode, name: str) -> list[DescribeConfigsResourceResult]:
    """Every config of a topic."""
    topic = node.topics.named(name)
    if topic is not None:
        return topic_entries(topic.configs, node.topics.settings)
    fault = fault_of(name)
    if fault:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{name}'.")


def of_broker(node: BrokerNode, name: str) -> list[DescribeConfigsResourceResult]:
    """Every setting of this broker; no name asks for what was set for all brokers at run time."""
    if not name:
        return entries_for_all(node.topics.settings)
    if not name.isdecimal():
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"{name!r} is no broker id: give a number, or nothing for all brokers"
        )
    if name != str(node.config.node_id):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"this is broker {node.config.node_id}, not {name}: ask with its id, or with none for all brokers",
        )
    return broker_entries(node.topics.settings, ",".join(f"{name}://{at}" for name, at in node.reached_at.items()))


def of_group(node: BrokerNode, name: str) -> list[DescribeConfigsResourceResult]:
    """Every config of a group, which may be one that is yet to come."""
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
    return group_entries(node.topics.group_configs.get(name, {}), node.topics.settings)


def of_metrics(name: str) -> list[DescribeConfigsResourceResult]:
    """Nothing: no metrics of clients are collected here, so there is no subscription to any."""
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a subscription to client metrics has a name; none was given")
    return []


def of_loggers(node: BrokerNode, name: str) -> list[DescribeConfigsResourceResult]:
    """The level of each logger of this broker."""
    try:
        loggers.check_node(node.config.node_id, name)
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
