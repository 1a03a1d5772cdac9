"""Three nodes with a small disk each: the one that is full ends with a sentence, the others go on, and nothing acknowledged is lost."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from ottla import Admin, Cluster, NewTopic, Producer
from ottla.broker.local_nodes import format_nodes, plan
from ottla.clock import SystemClock
from ottla.errors import OttlaError
from tests.broker.cluster_nodes import counted
from tests.broker.test_full_disk import filler_takes_the_rest
from tests.patience import eventually
from tests.small_disk import mounted

MEGABYTES = 8
NODES = 1, 2, 3
SEVERAL = 20
NUMBERS = itertools.count()


@pytest.fixture
def disks(tmp_path: Path) -> Iterator[Path]:
    """A folder for a cluster, in which each node's directory is a file system of its own."""
    with ExitStack() as undo:
        for node in NODES:
            place = tmp_path / f"node-{node}"
            place.mkdir()
            undo.enter_context(mounted(place, MEGABYTES))
        format_nodes(tmp_path, plan(len(NODES)), {}, SystemClock())
        yield tmp_path


class Numbers:
    """Written one after the other to partitions that each node leads one of, each acknowledged by all in sync."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._next = itertools.count()
        self.written: list[bytes] = []

    def go_on(self) -> None:
        for number in itertools.islice(self._next, SEVERAL):
            value = b"%d" % number
            self._producer.send("t", value, partition=number % len(NODES)).result(60)
            self.written.append(value)


def test_whose_disk_is_full_ends_with_a_sentence_and_comes_back_when_there_is_room(
    disks: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with Cluster(len(NODES), data_dir=disks) as cluster, Admin(cluster.client_settings()) as admin:
        layouts = {node - 1: (node, *(each for each in NODES if each != node)) for node in NODES}
        admin.create_topics([NewTopic("t", replica_assignments=layouts)])
        with Producer(cluster.client_settings(), acks="all", request_timeout_ms=2000) as producer:
            numbers = Numbers(producer)
            for is_active in (False, True):
                numbers.go_on()
                active = admin.describe_metadata_quorum().leader_id
                full = active if is_active else next(node for node in NODES if node != active)
                filler = disks / f"node-{full}" / "filler"
                filler_takes_the_rest(filler)
                eventually(lambda full=full: tried_a_topic(admin) and full not in cluster.running)  # type: ignore[misc]
                said = capfd.readouterr().err
                assert "stops, since it cannot keep the cluster's metadata" in said
                assert "No space left on device: make room on that disk" in said
                numbers.go_on()
                assert admin.describe_metadata_quorum().leader_id != full
                with pytest.raises(OttlaError, match="No space left on device"):
                    cluster.start(full)
                filler.unlink()
                cluster.start(full)
                eventually(lambda: in_sync(admin) == set(NODES))
            numbers.go_on()
        found = counted(cluster.bootstrap_servers, "t", len(numbers.written))
    assert found == dict.fromkeys(numbers.written, 1)


def tried_a_topic(admin: Admin) -> bool:
    """Which is a record for the metadata, of which a disk's last page still takes some; who must take it may be away."""
    with suppress(OttlaError):
        admin.create_topics([NewTopic(f"more-{next(NUMBERS)}", 1, 1)])
    return True


def in_sync(admin: Admin) -> set[int]:
    partitions = admin.describe_topics(["t"])["t"].partitions
    return set.intersection(*(set(each.in_sync_replicas) for each in partitions))
