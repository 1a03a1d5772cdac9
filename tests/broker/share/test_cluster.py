"""Share groups in a cluster of three nodes: the state survives the leader of the partition and the share coordinator."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla import Admin, Cluster, NewTopic
from ottla.errors import ErrorCode
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest
from tests.broker.in_sync import in_sync
from tests.broker.share.consumer import ACCEPT, REJECT, Sharer, configure, produce_each
from tests.broker.share.requests import beat
from tests.broker.wire import Wire
from tests.patience import eventually

pytestmark = pytest.mark.xdist_group("share cluster")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster, Admin(cluster.client_settings()) as admin:
        admin.create_topics([NewTopic("t", replica_assignments={0: (2, 3, 1)})])
        eventually(lambda: in_sync(admin, "t") == {1, 2, 3})
        yield cluster


def join_somewhere(cluster: Cluster, group: str) -> None:
    """Beat at whichever node coordinates the group, until the member has its partition."""
    epoch, has_partitions = 0, False

    def try_nodes() -> bool:
        nonlocal epoch, has_partitions
        for node in cluster.running:
            with Wire(cluster.addresses[node]) as wire:
                response = beat(wire, "a", epoch, ["t"] if epoch == 0 else None, group)
            if response.error_code == 0:
                epoch = response.member_epoch
                has_partitions = bool(response.assignment and response.assignment.topic_partitions)
        return has_partitions

    eventually(try_nodes)


def test_the_next_leader_continues_after_the_acknowledgements_of_the_last_one(cluster: Cluster) -> None:
    with Wire(cluster.addresses[2]) as wire:
        configure(wire, {"share.auto.offset.reset": "earliest"})
        join_somewhere(cluster, "g")
        produce_each(wire, 6)
        sharer = Sharer(wire)
        assert sharer.fetch(max_wait_ms=30_000).ranges == [(0, 5, 1)]
        assert sharer.acknowledge((0, 1, ACCEPT), (4, 4, REJECT)) == 0
    cluster.kill(2)
    with Wire(cluster.addresses[3]) as wire:
        successor = Sharer(wire, "b")
        acquired: list[tuple[int, int, int]] = []

        def has_all_that_is_left() -> bool:
            # The new leader may know a lower high watermark than the old one did until its follower has fetched.
            acquired.extend(successor.fetch(max_wait_ms=1000).ranges)
            return len(acquired) == 2

        eventually(has_all_that_is_left)
        assert acquired == [(2, 3, 1), (5, 5, 1)]
        assert successor.acknowledge((2, 3, ACCEPT)) == 0
    cluster.start(2)


def test_another_broker_names_the_leader(cluster: Cluster) -> None:
    with Wire(cluster.addresses[1]) as wire:
        sharer = Sharer(wire, "c", group="other")
        found = sharer.fetch()
        assert (found.error, found.leader in (2, 3)) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, True)
        assert [each.node_id for each in sharer.last.node_endpoints] == [found.leader]
        assert wire.ask(DescribeClusterRequest()).error_code == 0
