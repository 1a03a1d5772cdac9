"""Three nodes, of which one has a torn or damaged snapshot of the metadata, or no quorum state: it reports it and does
not vote, and the others continue.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla import Admin, Cluster, Producer
from ottla.broker.controller.formatting import format_without_voters
from ottla.errors import OttlaError
from ottla.storage.state_log.check import START_OVER
from tests.broker.cluster_nodes import counted
from tests.broker.in_sync import in_sync
from tests.patience import eventually

OFTEN: dict[str, Any] = {"metadata_log_max_snapshot_interval_ms": 300, "metadata_max_retention_bytes": 0}
"""Make a snapshot the only source of the first decisions."""
DAMAGED = 2
pytestmark = [pytest.mark.xdist_group("damaged snapshots"), pytest.mark.heavy]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[Cluster]:
    with Cluster(data_dir=folder, controller_quorum_auto_join_enable=True, **OFTEN) as cluster:
        yield cluster


def first_snapshot(folder: Path) -> Path | None:
    """Return the snapshot that replaces the deleted part of the log."""
    log = folder / f"node-{DAMAGED}" / "__cluster_metadata-0"
    start = min(int(path.stem) for path in log.glob("*.log"))
    return next(iter(log.glob(f"{start:020}-*.checkpoint")), None) if start else None


def torn(data: bytes) -> bytes:
    return data[: len(data) // 2]


def flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


@pytest.mark.parametrize("damage", [torn, flipped])
def test_a_node_with_a_damaged_snapshot_reports_it_and_the_others_continue(
    cluster: Cluster, folder: Path, damage: Callable[[bytes], bytes]
) -> None:
    with Producer(cluster.client_settings(), acks="all") as producer:
        producer.send(damage.__name__, b"before").result(60)
        eventually(lambda: first_snapshot(folder))
        cluster.kill(DAMAGED)
        snapshot = first_snapshot(folder)
        assert snapshot is not None
        whole = snapshot.read_bytes()
        snapshot.write_bytes(damage(whole))
        with pytest.raises(OttlaError) as caught:
            cluster.start(DAMAGED)
        assert f"{snapshot} cannot be read" in str(caught.value)
        assert START_OVER in str(caught.value)
        assert snapshot.read_bytes() == damage(whole), "nothing was changed"
        producer.send(damage.__name__, b"without it").result(60)
        snapshot.write_bytes(whole)
        cluster.start(DAMAGED)
    assert counted(cluster.bootstrap_servers, damage.__name__, 2) == {b"before": 1, b"without it": 1}


def test_a_node_without_its_quorum_state_reports_it_and_does_not_vote(cluster: Cluster, folder: Path) -> None:
    promises = folder / f"node-{DAMAGED}" / "__cluster_metadata-0" / "quorum-state"
    cluster.kill(DAMAGED)
    saved = promises.read_bytes()
    promises.unlink()
    with pytest.raises(OttlaError) as caught:
        cluster.start(DAMAGED)
    assert f"{promises} is gone, and without it this node might vote twice: restore it from a backup" in str(
        caught.value
    )
    assert not promises.exists(), "nothing was changed"
    promises.write_bytes(b"{")
    with pytest.raises(OttlaError, match=r"quorum-state cannot be read .*, and without it this node might vote twice"):
        cluster.start(DAMAGED)
    promises.write_bytes(saved)
    cluster.start(DAMAGED)


def test_a_node_that_follows_the_remedy_votes_again_and_has_the_whole_log(cluster: Cluster, folder: Path) -> None:
    with Producer(cluster.client_settings(), acks="all") as producer, Admin(cluster.client_settings()) as admin:
        producer.send("kept", b"before").result(60)
        cluster.kill(DAMAGED)
        before = {each.replica_id: each.replica_directory_id for each in admin.describe_metadata_quorum().voters}
        admin.remove_raft_voter(DAMAGED, before[DAMAGED])
        shutil.rmtree(folder / f"node-{DAMAGED}")
        id_ = admin.describe_cluster().cluster_id or ""
        format_without_voters(cluster._configs[DAMAGED], id_)
        cluster.start(DAMAGED)
        eventually(lambda: {each.replica_id for each in admin.describe_metadata_quorum().voters} == set(cluster.nodes))
        eventually(lambda: in_sync(admin, "kept") == set(cluster.nodes))
        cluster.kill(next(node for node in cluster.nodes if node != DAMAGED))
        producer.send("kept", b"after").result(60)
    assert counted(cluster.bootstrap_servers, "kept", 2) == {b"before": 1, b"after": 1}
