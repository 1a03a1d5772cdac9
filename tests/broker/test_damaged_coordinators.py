"""Three nodes, of which the coordinator of the groups restarts with a flipped bit in their log."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla import Admin, Cluster, Consumer, OffsetAndMetadata, TopicPartition
from tests.broker.in_sync import in_sync
from tests.patience import eventually

pytestmark = pytest.mark.heavy

OFFSETS = TopicPartition("__consumer_offsets", 0)
T0 = TopicPartition("t", 0)


def leader(admin: Admin) -> int:
    return admin.describe_topics([OFFSETS.topic])[OFFSETS.topic].partitions[0].leader


def flip(path: Path) -> None:
    """Flip a bit in the last record, which only the CRC detects."""
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


@pytest.mark.behaviour("B2")
def test_a_damaged_log_of_groups_is_taken_over_by_another_node_and_then_repaired(
    tmp_path: Path,
) -> None:
    with Cluster(data_dir=tmp_path, offsets_topic_num_partitions=1) as cluster:
        with Admin(cluster.client_settings()) as admin, Consumer(cluster.client_settings(), group_id="g") as consumer:
            consumer.assign([T0])
            consumer.commit({T0: OffsetAndMetadata(31)})
            eventually(lambda: in_sync(admin, OFFSETS.topic) == {1, 2, 3})
            first = leader(admin)
        logs = [tmp_path / f"node-{node}" / "__consumer_offsets-0" / f"{0:020d}.log" for node in cluster.nodes]
        cluster.stop(*cluster.nodes)
        flip(logs[first - 1])
        cluster.start(*cluster.nodes)
        with Admin(cluster.client_settings()) as admin, Consumer(cluster.client_settings(), group_id="g") as consumer:
            eventually(lambda: first in in_sync(admin, OFFSETS.topic))
            admin.elect_leaders("PREFERRED", [OFFSETS])
            assert consumer.committed([T0])[T0] == OffsetAndMetadata(31)
            eventually(
                lambda: in_sync(admin, OFFSETS.topic) == {1, 2, 3} and len({each.read_bytes() for each in logs}) == 1
            )
