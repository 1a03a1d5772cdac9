"""A node without other nodes that serves in the thread of the test: nothing happens between two calls of `turn`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ottla.broker.network_server.call import EncodedResponse, Outcome
from ottla.broker.network_server.connection import Connection
from ottla.broker.server import Server
from ottla.broker.settings.config import BrokerConfig
from ottla.clock import Clock, SystemClock
from ottla.coordination.cluster.topic import ClusterTopic
from ottla.errors import ErrorCode
from ottla.protocol.conversation import encode_request
from ottla.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.protocol.schema import Message


def start_server(config: BrokerConfig, clock: Clock | None = None) -> Server:
    """Start a node, and return it when clients would be served."""
    server = Server(config, clock)
    server.start_serving()
    return server


def stop_server(server: Server) -> None:
    """Stop a node as at the end of `run`."""
    server.stop()
    server.run()


def decide(server: Server, request: Message, version: int) -> Any:
    """Have the active controller decide a request of the broker itself; return the response."""
    responses: list[Message | None] = []
    assert server.controller is not None
    server.controller.submit(None, request, version, responses.append)
    (response,) = responses
    return response


def create_topic(server: Server, name: str, partitions: int = 1, **configs: str) -> ClusterTopic:
    """Create a topic with one replica; configs are keywords with underscores for dots."""
    pairs = [CreatableTopicConfig(key.replace("_", "."), value) for key, value in configs.items()]
    (result,) = decide(server, CreateTopicsRequest([CreatableTopic(name, partitions, 1, configs=pairs)]), 7).topics
    assert result.error_code == ErrorCode.NONE, result.error_message
    topic = server.node.topics.find_by_name(name)
    assert topic is not None
    return topic


def grow_topic(server: Server, name: str, count: int) -> None:
    """Give a topic more partitions."""
    (result,) = decide(server, CreatePartitionsRequest([CreatePartitionsTopic(name, count)]), 3).results
    assert result.error_code == ErrorCode.NONE, result.error_message


def delete_topics(server: Server, names: Sequence[str]) -> None:
    """Delete topics."""
    response = decide(server, DeleteTopicsRequest([DeleteTopicState(name) for name in names]), 6)
    assert [each.error_code for each in response.responses] == [ErrorCode.NONE] * len(names)


def change_configs(server: Server, kind: int, name: str, **configs: str | None) -> None:
    """Set configs of a resource; None deletes one."""
    changes = [
        AlterableConfig(key.replace("_", "."), 1 if value is None else 0, value) for key, value in configs.items()
    ]
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(kind, name, changes)])
    (result,) = decide(server, request, 1).responses
    assert result.error_code == ErrorCode.NONE, result.error_message


def handle_request(
    server: Server, connection: Connection, request: Message, version: int, client_id: str | None = "c"
) -> Message | Outcome:
    """Have the broker role handle a request of a client, as it would from the wire."""
    assert server.broker is not None
    frame = memoryview(b"".join(map(bytes, encode_request(request, version, 1, client_id))))  # type: ignore[arg-type]
    now = SystemClock().monotonic()
    _, work = server.broker.requests.begin(server.handler, connection, frame, now)
    response = work()
    assert not isinstance(response, EncodedResponse), "only the fast path encodes"
    return response
