"""A node suspended until the metadata it lacks are only in a snapshot: it applies the snapshot without further records."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from ottla import Admin, Cluster, NewTopic, Producer
from tests.broker.cluster_nodes import counted
from tests.patience import eventually

pytestmark = pytest.mark.heavy


def begin_of_metadata(folder: Path) -> int:
    return min(int(path.stem) for path in (folder / "__cluster_metadata-0").glob("*.log"))


def test_the_state_of_a_loaded_snapshot_is_applied_at_once(tmp_path: Path) -> None:
    often: dict[str, Any] = {"metadata_log_max_snapshot_interval_ms": 200, "metadata_max_retention_bytes": 0}
    seldom: dict[str, Any] = {"broker_session_timeout_ms": 600_000, "replica_lag_time_max_ms": 600_000}
    with Cluster(data_dir=tmp_path, **often, **seldom) as cluster:
        # The suspended node may be queried.
        with Admin(cluster.client_settings(), request_timeout_ms=5_000) as admin:
            decides = admin.describe_metadata_quorum().leader_id
            stopped = next(node for node in cluster.nodes if node != decides)
            others = [node for node in cluster.nodes if node != stopped]
            os.kill(cluster.pid(stopped), signal.SIGSTOP)
            try:
                admin.create_topics([NewTopic("t", replica_assignments={0: (stopped, *others)})])
                made = admin.describe_metadata_quorum().high_watermark
                eventually(lambda: begin_of_metadata(tmp_path / f"node-{decides}") > made)
            finally:
                os.kill(cluster.pid(stopped), signal.SIGCONT)
        # Without idempotence it requests no producer id, which would add a record.
        with Producer(cluster.client_settings(), enable_idempotence=False) as producer:
            producer.send("t", b"led there", partition=0).result(60)
        assert counted(cluster.bootstrap_servers, "t", 1) == {b"led there": 1}
