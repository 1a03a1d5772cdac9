"""The part of a request that a principal is authorized for, and the errors for the rest."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from ottla.broker.controller.partial_authorization import split_request
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.records import TopicRecord
from ottla.errors import ErrorCode
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.messages import alter_configs, incremental_alter_configs
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from ottla.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from ottla.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

MINE, SECRET, GONE = UUID(int=1), UUID(int=2), UUID(int=3)
TOPIC, GROUP, CLUSTER = 2, 32, 4
REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
RULES = {
    *((each, "mine") for each in (Operation.CREATE, Operation.DELETE, Operation.ALTER, Operation.ALTER_CONFIGS)),
    *((each, name) for each in (Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS) for name in ("mine", "seen")),
}


def allows(operation: Operation, kind: ResourceType, name: str) -> bool:
    return kind == ResourceType.TOPIC and (operation, name) in RULES


@pytest.fixture
def metadata() -> ClusterMetadata:
    metadata = ClusterMetadata()
    for name, topic_id in (("mine", MINE), ("secret", SECRET)):
        metadata.replay(TopicRecord(name, topic_id))
    return metadata


def test_only_authorized_topics_are_created(metadata: ClusterMetadata) -> None:
    request = CreateTopicsRequest([CreatableTopic("mine"), CreatableTopic("other")])
    left, finish = split_request(request, allows, metadata)
    assert [each.name for each in left.topics] == ["mine"]
    done: Any = finish(CreateTopicsResponse(topics=[CreatableTopicResult("mine", num_partitions=3)]))
    assert [(each.name, each.error_code, each.num_partitions) for each in done.topics] == [
        ("mine", 0, 3), ("other", REFUSED, -1)
    ]  # fmt: skip


def test_configs_of_a_created_topic_are_returned_only_with_permission(metadata: ClusterMetadata) -> None:
    request = CreateTopicsRequest([CreatableTopic("other")])
    left, finish = split_request(request, lambda operation, kind, name: operation is Operation.CREATE, metadata)
    assert left.topics == request.topics
    done: Any = finish(CreateTopicsResponse(topics=[CreatableTopicResult("other", num_partitions=3)]))
    (reported,) = done.topics
    assert (reported.error_code, reported.num_partitions, reported.topic_config_error_code) == (0, -1, REFUSED)


def test_partitions_are_added_to_authorized_topics_only(metadata: ClusterMetadata) -> None:
    request = CreatePartitionsRequest([CreatePartitionsTopic("mine", 2), CreatePartitionsTopic("secret", 2)])
    left, finish = split_request(request, allows, metadata)
    assert [each.name for each in left.topics] == ["mine"]
    done: Any = finish(CreatePartitionsResponse())
    assert [(each.name, each.error_code) for each in done.results] == [("secret", REFUSED)]


def test_topic_names_are_returned_only_to_principals_that_may_describe_them(metadata: ClusterMetadata) -> None:
    metadata.replay(TopicRecord("seen", GONE))
    by_id = [DeleteTopicState(None, each) for each in (MINE, SECRET, GONE, UUID(int=9))]
    left, finish = split_request(DeleteTopicsRequest(by_id), allows, metadata)
    assert [each.topic_id for each in left.topics] == [MINE, UUID(int=9)]
    done: Any = finish(DeleteTopicsResponse())
    assert [(each.name, each.topic_id, each.error_code) for each in done.responses] == [
        (None, SECRET, REFUSED), ("seen", GONE, REFUSED)
    ]  # fmt: skip


def test_an_unknown_topic_is_reported_only_to_principals_that_may_describe_it(
    metadata: ClusterMetadata,
) -> None:
    left, finish = split_request(DeleteTopicsRequest(topic_names=["mine", "seen", "nowhere"]), allows, metadata)
    assert left.topic_names == ["mine", "seen"]
    done: Any = finish(DeleteTopicsResponse())
    assert [(each.name, each.error_code) for each in done.responses] == [("nowhere", REFUSED)]


@pytest.mark.parametrize("module", [alter_configs, incremental_alter_configs])
def test_configs_of_authorized_resources_only_are_changed(metadata: ClusterMetadata, module: Any) -> None:
    named = [(TOPIC, "mine"), (TOPIC, "secret"), (GROUP, "g"), (CLUSTER, "1"), (99, "x")]
    resources = [module.AlterConfigsResource(kind, name) for kind, name in named]
    name = "AlterConfigs" if module is alter_configs else "IncrementalAlterConfigs"
    left, finish = split_request(getattr(module, f"{name}Request")(resources), allows, metadata)
    assert [each.resource_name for each in left.resources] == ["mine", "x"]
    done: Any = finish(getattr(module, f"{name}Response")())
    assert [(each.resource_type, each.resource_name, each.error_code) for each in done.responses] == [
        (TOPIC, "secret", REFUSED),
        (GROUP, "g", ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (CLUSTER, "1", ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ]


def test_a_request_without_resources_is_not_changed(metadata: ClusterMetadata) -> None:
    request, response = UnregisterBrokerRequest(1), UnregisterBrokerResponse()
    left, finish = split_request(request, allows, metadata)
    assert (left, finish(response)) == (request, response)
