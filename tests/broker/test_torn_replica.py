"""Nodes are killed at once, and one restarts without the end of its log: acknowledged records are kept, although that
one would be elected.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ottla import Admin, Cluster, NewTopic, Producer
from tests.broker.cluster_nodes import counted
from tests.broker.in_sync import in_sync
from tests.patience import eventually

pytestmark = pytest.mark.heavy

RECORDS = 30
TORN, WHOLE, AWAY = 2, 1, 3


@pytest.mark.behaviour("B2", "B5")
def test_a_former_leader_with_a_torn_end_is_replaced_by_a_replica_that_was_complete(tmp_path: Path) -> None:
    """Two replicas are in the ISR when they are killed, so the first of them to return would be elected."""
    with Cluster(data_dir=tmp_path) as cluster:
        with Admin(cluster.client_settings()) as admin:
            admin.create_topics([NewTopic("t", replica_assignments={0: (TORN, WHOLE, AWAY)})])
            cluster.kill(AWAY)
            eventually(lambda: in_sync(admin, "t") == {TORN, WHOLE})
        with Producer(cluster.client_settings(), acks="all") as producer:
            for number in range(RECORDS):
                producer.send("t", b"%d" % number, partition=0).result(60)
        cluster.kill(TORN, WHOLE)
        path = tmp_path / f"node-{TORN}" / "t-0" / f"{0:020d}.log"
        os.truncate(path, path.stat().st_size // 2 + 5)
        cluster.start(TORN, AWAY)
        cluster.start(WHOLE)
        assert counted(cluster.bootstrap_servers, "t", RECORDS) == {b"%d" % number: 1 for number in range(RECORDS)}
        with Admin(cluster.client_settings()) as admin:
            eventually(lambda: in_sync(admin, "t") == {TORN, WHOLE, AWAY})
