"""Any request that can be read gets an answer that can be written, however little sense it makes."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from ottla.broker.apis.handlers import HANDLERS, Line
from ottla.broker.network_server.call import DisconnectError, Outcome
from ottla.broker.network_server.connection import Connection
from ottla.broker.server import Server
from ottla.broker.settings.config import read_config
from ottla.protocol.codec import Plan, Step
from ottla.protocol.conversation import decode_response, encode_response
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest
from ottla.protocol.plan import plan_of
from tests.broker.serving import create_topic, handle_request, start_server, stop_server
from tests.broker.wire import batch
from tests.protocol.values import Draw, Special, chances, messages, one_of

SPOKEN = [
    (line, version) for line in HANDLERS.values() for version in range(line.versions.first, line.versions.last + 1)
]
NAMES = ("t", "t", "__consumer_offsets", "__cluster_metadata", "", ".", "new.topic", "new_topic", "\u00fc")
EDGES = one_of(0, 0, 1, -1, 2**31 - 1, -(2**31))


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A broker that serves in this thread, with a topic `t` that holds a record."""
    folder = tempfile.mkdtemp()
    server = start_server(read_config(listeners="127.0.0.1:0", log_dirs=folder, num_partitions=2))
    create_topic(server, "t", 2)
    partition = server.node.partitions.find("t", 0)
    assert partition is not None
    server.node.append(partition, batch([b"a"]))
    yield server
    stop_server(server)
    shutil.rmtree(folder)


def narrow(known_id: UUID) -> Special:
    """Values that get past the first check now and then."""
    fields: dict[str, Draw] = {
        "max_wait_ms": one_of(0),
        "num_partitions": one_of(-1, 0, 1, 2),
        "resource_type": one_of(2, 4, 16),
        "resource_name": one_of("t", "1", "", "u"),
        "config_operation": one_of(0, 1, 2, 3, 4),
        "count": one_of(1, 2, 3),
        "response_partition_limit": one_of(0, 1, 2000),
        "election_type": one_of(0, 1, 2),
        "acks": one_of(-1, 1, 2),
        "session_epoch": one_of(-1, 0, 1),
        "name": one_of(*NAMES, "cleanup.policy", "retention.ms"),
        "topic": one_of(*NAMES),
        "topic_id": one_of(known_id, UUID(int=0), UUID(int=1)),
        "records": one_of(b"", bytes(61), batch([b"a"]), batch([b"a"])[:-1], None),
    }

    def special(plan: Plan, step: Step) -> Draw | None:
        chosen = fields.get(step.name)
        if chosen is None and step.most in (2**31 - 1, 2**63 - 1):
            return EDGES
        return chosen

    return special


@pytest.mark.parametrize(("line", "version"), SPOKEN, ids=[f"{line.api.name}-v{version}" for line, version in SPOKEN])
def test_every_request_is_answered(server: Server, line: Line, version: int) -> None:
    topic = server.node.topics.find_by_name("t")
    known_id = topic.topic_id if topic is not None else UUID(int=2)

    some = messages(plan_of(line.api.request, version), narrow(known_id))
    for chance in chances(15, line.api.name):
        is_answered(server, line, version, some(chance))


def is_answered(server: Server, line: Line, version: int, request: Any) -> None:
    connection = Connection(1, ("127.0.0.1", 1), ("127.0.0.1", 2), 0.0)
    try:
        response = handle_request(server, connection, request, version, None)
    except DisconnectError:
        return
    if response is Outcome.LATER and line.api.request is DeleteTopicsRequest:
        return  # after the files are deleted: test_deletion.py
    assert not isinstance(response, Outcome)
    parts = encode_response(response, version, 1)
    frame = b"".join(bytes(part) if not hasattr(part, "file") else bytes(len(part)) for part in parts)
    decode_response(line.api.response, version, memoryview(frame))
