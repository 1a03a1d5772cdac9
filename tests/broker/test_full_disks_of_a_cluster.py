"""Three nodes with a small disk each: the one with the full disk stops with an error, the others continue, and no
acknowledged record is lost.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from ottla import Admin, Cluster, NewTopic, Producer
from ottla.broker.embedding.local_nodes import format_nodes, plan_nodes
from ottla.clock import SystemClock
from ottla.errors import ErrorCode, OttlaError
from ottla.free_ports import HeldPorts
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.broker.cluster_nodes import BrokerPlace, counted
from tests.broker.in_sync import in_sync
from tests.broker.quorum_nodes import Place, leader_of, new_hosts
from tests.broker.test_full_disk import filler_takes_the_rest
from tests.broker.wire import Wire
from tests.patience import eventually
from tests.small_disk import mounted

pytestmark = pytest.mark.heavy

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
        format_nodes(tmp_path, plan_nodes(len(NODES), undo.enter_context(HeldPorts())), {}, SystemClock())
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


def test_a_node_with_a_full_disk_stops_with_an_error_and_restarts_when_it_has_space(
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
                eventually(lambda: in_sync(admin, "t") == set(NODES))
            numbers.go_on()
        found = counted(cluster.bootstrap_servers, "t", len(numbers.written))
    assert found == dict.fromkeys(numbers.written, 1)


@pytest.mark.parametrize("small", ["log.dirs", "metadata.log.dir"])
def test_a_controller_with_a_full_metadata_disk_stops_and_votes_again_when_it_has_space(
    tmp_path: Path, small: str
) -> None:
    disk = tmp_path / "small"
    disk.mkdir()
    with mounted(disk, MEGABYTES), ExitStack() as undo:
        *hosts, last = new_hosts(4)
        places = [Place(tmp_path, node, host) for node, host in zip(NODES, hosts, strict=True)]
        full, others = places[0], places[1:]
        full.settings[small] = str(disk / "kept")
        full.write()
        for each in places:
            each.format([place.voter for place in places])
            undo.callback(each.kill)
            each.start()
        broker = BrokerPlace(tmp_path, 4, last, places)
        undo.callback(broker.kill)
        broker.start()
        filler_takes_the_rest(disk / "filler")
        process = full.process
        assert process is not None
        while process.poll() is None:
            is_made(broker, f"more-{next(NUMBERS)}")
        said = process.communicate()[1]
        assert "stops, since it cannot keep the cluster's metadata" in said
        assert "No space left on device: make room on that disk" in said
        eventually(lambda: is_made(broker, "without-it"))
        (disk / "filler").unlink()
        full.start()
        eventually(lambda: has_all(full, places))
        others[0].kill()  # now its vote is needed
        eventually(lambda: is_made(broker, "with-it"))


def is_made(broker: Place, topic: str) -> bool:
    """True if a topic exists, perhaps by an earlier attempt; the active controller may have just stopped."""
    with Wire(broker.address) as client:
        response: Any = client.ask(CreateTopicsRequest([CreatableTopic(topic, 1, 1)], timeout_ms=30_000))
    return response.topics[0].error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


def has_all(place: Place, places: Sequence[Place]) -> bool:
    """True if the leader has every record."""
    leader = leader_of(places)
    if leader is None:
        return False
    said = leader.describe()
    ends: dict[int, int] = {each.replica_id: each.log_end_offset for each in said.current_voters}
    return ends[place.node_id] >= int(said.high_watermark) > 0


def tried_a_topic(admin: Admin) -> bool:
    """Write a metadata record, for which the last page of a disk may still have space; its receiver may be down."""
    with suppress(OttlaError):
        admin.create_topics([NewTopic(f"more-{next(NUMBERS)}", 1, 1)])
    return True
