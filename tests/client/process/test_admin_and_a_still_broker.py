"""An admin with a suspended controller: the request is retried with the next broker, not with the same one."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from ottla import Admin, Cluster, NewTopic
from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.model import Node

STILL_MS = 4000
"""So long it is waited for: on a busy machine, too, the others make a topic in less."""


def test_an_unresponsive_broker_gets_one_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    send = ConsumerNetworkClient.send

    def noted(client: ConsumerNetworkClient, node: Node, *request: Any, **options: Any) -> Any:
        asked.append(node.node_id)
        return send(client, node, *request, **options)

    with (
        Cluster(data_dir=tmp_path, broker_session_timeout_ms=600_000) as cluster,
        Admin(cluster.client_settings(), request_timeout_ms=STILL_MS, retry_backoff_ms=0) as admin,
    ):
        controller = admin.describe_cluster().controller
        assert controller is not None
        os.kill(cluster.pid(controller.node_id), signal.SIGSTOP)
        try:
            monkeypatch.setattr(ConsumerNetworkClient, "send", noted)
            admin.create_topics([NewTopic("t")])
        finally:
            os.kill(cluster.pid(controller.node_id), signal.SIGCONT)
    assert asked.count(controller.node_id) == 1
