"""A follower process with a full disk: it leaves the ISR, and rejoins when there is space."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ottla import Producer
from ottla.protocol.messages.create_topics import CreatableReplicaAssignment, CreatableTopic
from tests.broker.cluster_nodes import BrokerPlace, make_topic, partitions_of
from tests.broker.quorum_nodes import Place, new_hosts
from tests.patience import eventually

BALLAST_BYTES = 3 * 1024 * 1024
RECORD = bytes(100_000)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of four megabytes, three of which are taken."""
    disk = tmp_path / "small"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a file system")
    (disk / "ballast").write_bytes(bytes(BALLAST_BYTES))
    yield disk
    subprocess.run(["umount", "-l", str(disk)], capture_output=True, check=False)


def in_sync(leader: BrokerPlace) -> int:
    """Return the size of the ISR, as soon as the leader knows its leadership."""
    return sum(len(each.isr_nodes) for each in partitions_of(leader, "t") if each.leader_id == 2)


def test_a_follower_with_a_full_disk_leaves_the_isr_and_rejoins_when_it_has_space(
    small_disk: Path, tmp_path: Path
) -> None:
    hosts = new_hosts(3)
    controller = Place(tmp_path, 1, hosts[0])
    controller.format([controller.voter])
    quick = {"replica_lag_time_max_ms": "1000"}
    leader = BrokerPlace(tmp_path, 2, hosts[1], [controller], **quick)
    metadata = str(tmp_path / "metadata-3")
    follower = BrokerPlace(
        tmp_path, 3, hosts[2], [controller], log_dirs=str(small_disk / "data"), metadata_log_dir=metadata, **quick
    )
    with controller.serving(), ExitStack() as undo:
        for each in (leader, follower):
            undo.callback(each.kill)
            each.start()
        make_topic(leader, CreatableTopic("t", -1, -1, [CreatableReplicaAssignment(0, [2, 3])]))
        eventually(lambda: in_sync(leader) == 2)
        with Producer(bootstrap_servers=leader.address, acks=1) as producer:
            for _ in range(20):
                producer.send("t", RECORD, partition=0).result()
            eventually(lambda: in_sync(leader) == 1)
            assert producer.send("t", b"without it", partition=0).result().offset == 20
        (small_disk / "ballast").unlink()
        eventually(lambda: in_sync(leader) == 2)
        copies = [
            each.read_bytes() for each in (*tmp_path.glob("data-2/t-0/*.log"), *small_disk.glob("data/t-0/*.log"))
        ]
        assert len(copies) == 2
        assert copies[0] == copies[1]
