"""A broker of a cluster refuses connections until it knows the cluster, and a restart does not wait for the session of a dead process."""

from __future__ import annotations

import time
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pytest

from ottla import Admin, Broker, Cluster
from ottla.broker import broker_role
from ottla.broker.node import BrokerNode
from ottla.errors import ConfigError
from ottla.free_ports import free_port
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.create_topics import CreatableTopic
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker.cluster_nodes import BrokerPlace, StartedBroker, make_topic
from tests.broker.quorum_nodes import Place, new_hosts
from tests.broker.wire import Wire
from tests.patience import eventually

pytestmark = pytest.mark.heavy

SESSION_SECONDS = 45.0


def test_a_starting_broker_refuses_connections_and_its_first_response_has_the_brokers_and_topics(
    tmp_path: Path,
) -> None:
    hosts = new_hosts(2)
    controller = Place(tmp_path, 1, hosts[0])
    controller.format([controller.voter])
    broker = BrokerPlace(tmp_path, 2, hosts[1], [controller])
    question = MetadataRequest([MetadataRequestTopic(name="flights")], False)
    with controller.serving(), closing(StartedBroker(broker)) as first:
        first.wait()
        make_topic(broker, CreatableTopic("flights", 1, 1))

    connected: list[Wire] = []

    def connect() -> bool:
        with suppress(ConnectionRefusedError):
            connected.append(Wire(broker.address))
        return bool(connected)

    with ExitStack() as undo:
        second = StartedBroker(broker)
        undo.callback(second.close)
        with pytest.raises(ConnectionRefusedError):
            Wire(broker.address)
        undo.enter_context(controller.serving())
        eventually(connect)
        client = undo.enter_context(connected[0])
        client.send(question)
        _, answer = client.receive(question)
        second.wait()
    assert [each.node_id for each in answer.brokers] == [2]
    assert [(each.name, each.error_code, len(each.partitions)) for each in answer.topics] == [("flights", 0, 1)]


def test_a_single_broker_refuses_connections_until_its_logs_are_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = f"127.0.0.1:{free_port()}"
    tried: list[str] = []
    make_node = BrokerNode

    def try_before(*arguments: Any) -> Any:
        node = make_node(*arguments)
        with pytest.raises(ConnectionRefusedError):
            Wire(place)
        tried.append(place)
        return node

    monkeypatch.setattr(broker_role, "BrokerNode", try_before)
    with Broker(tmp_path, listen=place) as broker, Wire(place) as wire:
        assert wire.ask(ApiVersionsRequest("a", "1"), 4).error_code == 0
        with pytest.raises(ConfigError, match="the port is taken by another process"):
            Broker(listen=place).start()
        assert broker.bootstrap_servers == place
    assert tried == [place]


def test_a_node_killed_and_restarted_is_unfenced_long_before_the_session_of_the_dead_process_ends() -> None:
    with Cluster(broker_session_timeout_ms=int(SESSION_SECONDS * 1000), broker_heartbeat_interval_ms=2000) as cluster:
        for _ in range(2):
            with Admin(cluster.client_settings()) as admin:
                active = admin.describe_metadata_quorum().leader_id
            started = time.monotonic()
            cluster.kill(active)  # the next active controller gives every broker a new session
            cluster.start(active)
            assert time.monotonic() - started < SESSION_SECONDS / 2
