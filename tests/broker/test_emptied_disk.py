"""Three nodes are killed at once and the disk of one is emptied, all but its `meta.properties`: what was acknowledged
is there.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ottla import Admin, Cluster, NewTopic, Producer
from ottla.storage.state_log.quorum_state import QuorumState, write_quorum_state
from tests.broker.cluster_nodes import counted
from tests.broker.in_sync import in_sync
from tests.patience import eventually

pytestmark = pytest.mark.heavy

RECORDS = 90
COPIES = {index: tuple((index + each) % 3 + 1 for each in range(3)) for index in range(3)}
"""Each node leads one."""


@pytest.mark.behaviour("B4", "B5")
@pytest.mark.parametrize("emptied", [1, 2, 3])
def test_acknowledged_records_survive_an_emptied_disk_after_all_nodes_were_killed(tmp_path: Path, emptied: int) -> None:
    with Cluster(data_dir=tmp_path) as cluster:
        with Admin(cluster.client_settings()) as admin:
            admin.create_topics([NewTopic("t", replica_assignments=COPIES)])
        with Producer(cluster.client_settings(), acks="all") as producer:
            sent = [producer.send("t", b"%d" % number, partition=number % 3) for number in range(RECORDS)]
            assert [future.result(60).partition for future in sent[:3]] == [0, 1, 2]
            for future in sent:
                future.result(60)
        cluster.kill(*cluster.nodes)
        empty(tmp_path / f"node-{emptied}")
        cluster.start(*cluster.nodes)
        assert counted(cluster.bootstrap_servers, "t", RECORDS) == {b"%d" % number: 1 for number in range(RECORDS)}
        with Admin(cluster.client_settings()) as admin:
            eventually(lambda: in_sync(admin, "t") == {1, 2, 3})
            assert list_fetching_voters(admin) == {1, 2, 3} - {emptied}, "it has another id than the one that voted"


def empty(directory: Path) -> None:
    for each in directory.iterdir():
        if each.name != "meta.properties":
            shutil.rmtree(each) if each.is_dir() else each.unlink()


def list_fetching_voters(admin: Admin) -> set[int]:
    """Return the voters that have fetched from the leader."""
    quorum = admin.describe_metadata_quorum()
    return {each.replica_id for each in quorum.voters if each.last_fetch_timestamp is not None}


def test_a_node_killed_before_its_controller_had_records_votes_after_a_restart(tmp_path: Path) -> None:
    """Its broker half may have made folders of topics by then."""
    with Cluster(data_dir=tmp_path) as cluster:
        with Producer(cluster.client_settings(), acks="all") as producer:
            producer.send("t", b"kept").result(60)
        cluster.kill(*cluster.nodes)
        empty(tmp_path / "node-2")
        metadata = tmp_path / "node-3" / "__cluster_metadata-0"
        for each in [path for path in metadata.iterdir() if not path.name.endswith("-0000000000.checkpoint")]:
            each.unlink()
        write_quorum_state(metadata, QuorumState())
        cluster.start(*cluster.nodes)
        assert counted(cluster.bootstrap_servers, "t", 1) == {b"kept": 1}
