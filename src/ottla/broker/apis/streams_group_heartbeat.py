"""StreamsGroupHeartbeat: join, stay in and leave a group of Kafka Streams (KIP-1071).

Internal topics of the application that are missing are created with the heartbeat that finds them missing, if the client may
create them. The response has a status with the reason until they exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ottla.broker.apis.group_calls import submit_to_group
from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.broker.security.authorization import lacks_permission
from ottla.coordination.cluster.features import STREAMS_VERSION
from ottla.coordination.cluster.topic_names import INTERNAL, find_fault
from ottla.coordination.groups.streams.events import HeartbeatResult, StreamsHeartbeat
from ottla.coordination.groups.streams.topology import InternalTopic, StatusCode, name_topics, topic_names
from ottla.errors import ErrorCode
from ottla.protocol.acl import CLUSTER_NAME, Operation, ResourceType
from ottla.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig
from ottla.protocol.messages.streams_group_heartbeat import (
    Status,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from ottla.protocol.schema import Message

STREAMS_OFF = f"streams groups are off: raise the feature {STREAMS_VERSION}"


def handle(node: BrokerNode, call: Call, request: StreamsGroupHeartbeatRequest) -> Message | Outcome:
    """Return the member's epoch, its tasks if they have changed, and the conditions that keep tasks from running."""
    if not has_streams_groups(node):
        return refused(ErrorCode.UNSUPPORTED_VERSION, STREAMS_OFF)
    if not request.group_id:
        return refused(ErrorCode.INVALID_REQUEST, "the group id is empty")
    fault = find_topic_fault(node, call, request)
    if fault is not None:
        return refused(*fault)

    def event(ticket: int) -> StreamsHeartbeat:
        host = f"/{call.connection.peer[0]}"
        client_id = call.header.client_id or ""
        return StreamsHeartbeat(ticket, request, client_id, host, node.clock.wall_ms(), call.version)

    def response(reply: Any) -> StreamsGroupHeartbeatResponse:
        if not isinstance(reply, HeartbeatResult):
            return refused(reply, None)
        if reply.missing:
            create_topics(node, call, reply.response, reply.missing)
        return reply.response

    return submit_to_group(node, call, request.group_id, event, response)


def has_streams_groups(node: BrokerNode) -> bool:
    """Return True if the feature streams.version is on."""
    return bool(node.features.finalized.get(STREAMS_VERSION))


def find_topic_fault(node: BrokerNode, call: Call, request: StreamsGroupHeartbeatRequest) -> tuple[int, str] | None:
    """Return the error for the topics of a topology: invalid, internal to the cluster, or not allowed; None if there is none."""
    if request.topology is None:
        return None
    names = topic_names(request.topology)
    for name in names:
        fault = f"{name} is an internal topic of the cluster" if name in INTERNAL else find_fault(name)
        if fault is not None:
            return ErrorCode.STREAMS_INVALID_TOPOLOGY, fault
    for name in names:
        if lacks_permission(node, call, Operation.DESCRIBE, ResourceType.TOPIC, name):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"DESCRIBE is not allowed on topic {name!r}"
    return None


def create_topics(
    node: BrokerNode, call: Call, response: StreamsGroupHeartbeatResponse, missing: Sequence[InternalTopic]
) -> None:
    """Have the controllers create internal topics, and add to the response why some cannot be created."""
    names = [topic.name for topic in missing]
    denied: list[str] = []
    if lacks_permission(node, call, Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME):
        denied = [name for name in names if lacks_permission(node, call, Operation.CREATE, ResourceType.TOPIC, name)]
    if denied:
        problems = [f"CREATE is not allowed on {name_topics(denied)}"]
    else:
        problems = [f"{name}: {text}" for name in names if (text := node.find_creation_error(name))]
        node.request_topics([creatable(topic) for topic in missing])
    if problems:
        response.status = [with_problems(each, problems) for each in response.status or ()]


def with_problems(status: Status, problems: Sequence[str]) -> Status:
    """Return a status of missing topics with the reasons for which they cannot be created; any other one as it is."""
    if status.status_code != StatusCode.MISSING_INTERNAL_TOPICS:
        return status
    return Status(status.status_code, f"{status.status_detail}; {'; '.join(problems)}")


def creatable(topic: InternalTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor or -1,
        configs=[CreatableTopicConfig(name, value) for name, value in topic.configs.items()],
    )


def refused(code: int, text: str | None) -> StreamsGroupHeartbeatResponse:
    return StreamsGroupHeartbeatResponse(error_code=code, error_message=text)
