"""A directory of a node that is a broker alone, or a controller alone, and is damaged: one sentence, or the node does
without what others have.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest

from ottla.broker.serve import make_server
from ottla.client.consumer import Consumer
from ottla.client.producer import Producer
from ottla.errors import KafkaError, OttlaError
from ottla.model import TopicPartition
from ottla.storage.batches.damage import OutOfServiceError
from ottla.storage.state_log.check import START_OVER
from tests.broker.cluster_nodes import BrokerPlace, StartedBroker
from tests.broker.quorum_nodes import CLUSTER, Place, new_hosts
from tests.cli.conftest import ottla
from tests.storage.no_files import in_the_place_of

METADATA = "__cluster_metadata-0"
pytestmark = pytest.mark.xdist_group("damaged roles")


class Cluster:
    """A controller and a broker with intact directories, of which copies are damaged."""

    def __init__(self, folder: Path) -> None:
        hosts = new_hosts(2)
        self.controller = Place(folder, 1, hosts[0])
        self.controller.format([self.controller.voter])
        self.broker = BrokerPlace(folder, 2, hosts[1], [self.controller])
        with self.controller.serving():
            self._fill()
        for place in (self.controller, self.broker):
            place.data.rename(self.whole(place))

    def _fill(self) -> None:
        begun = StartedBroker(self.broker)
        try:
            begun.wait()
            with Producer(bootstrap_servers=self.broker.address) as producer:
                for number in range(5):
                    producer.send("t", b"%d" % number).result(30)
        finally:
            begun.close()

    def whole(self, place: Place) -> Path:
        return place.data.with_name(f"{place.data.name}-whole")

    def take_up(self) -> None:
        """Both directories, as they were left."""
        for place in (self.controller, self.broker):
            if place.data.is_dir():
                shutil.rmtree(place.data)
            place.data.unlink(missing_ok=True)
            shutil.copytree(self.whole(place), place.data)

    def read(self) -> list[bytes | None]:
        """Return the records that a client reads once the broker is unfenced."""
        partition, found = TopicPartition("t", 0), list[bytes | None]()
        with Consumer(bootstrap_servers=self.broker.address) as consumer:
            consumer.assign([partition])
            consumer.seek_to_beginning(partition)
            while len(found) < 5:
                found += [each.value for each in consumer.poll(1)]
        return found


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    return Cluster(tmp_path_factory.mktemp("roles"))


@pytest.fixture
def cluster(filled: Cluster) -> Cluster:
    filled.take_up()
    return filled


def newest(place: Place, pattern: str) -> Path:
    return max((place.data / METADATA).glob(pattern))


as_folder = partial(in_the_place_of, kind="a folder")
as_pipe = partial(in_the_place_of, kind="a pipe")


def flip(place: Place) -> None:
    path = newest(place, "*.log")
    data = bytearray(path.read_bytes())
    data[70] ^= 1
    path.write_bytes(data)


def empty(place: Place) -> None:
    os.truncate(newest(place, "*.log"), 0)


def no_folder(folder: Path) -> None:
    shutil.rmtree(folder)


def no_files(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


def no_segments(folder: Path) -> None:
    for path in folder.glob("*.log"):
        path.unlink()


def only_a_snapshot(folder: Path) -> None:
    (folder / f"{5:020d}-{1:010d}.checkpoint").write_bytes(b"of any content")
    no_segments(folder)


def no_bytes(folder: Path) -> None:
    for path in folder.glob("*.log"):
        os.truncate(path, 0)


def write_property(place: Place, name: str, value: str) -> None:
    meta = place.data / "meta.properties"
    meta.write_text(re.sub(rf"^{re.escape(name)}=.*$", f"{name}={value}", meta.read_text(), flags=re.MULTILINE))


def no_meta(place: Place) -> None:
    (place.data / "meta.properties").unlink()


def a_file(place: Place) -> None:
    shutil.rmtree(place.data)
    place.data.write_bytes(b"")


EITHER = [
    pytest.param(lambda place: as_folder(newest(place, "*.log")), r"0\.log is a folder, where a file belongs: move it", id="a folder as segment"),
    pytest.param(lambda place: as_folder(place.data / METADATA / f"{5:020d}-{1:010d}.checkpoint"), r"checkpoint is a folder, where a file", id="a folder as snapshot"),
    pytest.param(lambda place: as_pipe(newest(place, "*.log")), r"0\.log is a pipe, where a file belongs: move it", id="a pipe as segment"),
    pytest.param(lambda place: as_pipe(place.data / METADATA / "leader-epoch-checkpoint"), r"leader-epoch-checkpoint is a pipe, where a file", id="a pipe as epochs"),
    pytest.param(lambda place: as_pipe(place.data / METADATA / f"{5:020d}-{1:010d}.checkpoint"), r"checkpoint is a pipe, where a file", id="a pipe as snapshot"),
    pytest.param(lambda place: as_pipe(place.data / "recovery-point-offset-checkpoint"), r"checkpoint is a pipe, where a file", id="a pipe as checkpoint"),
    pytest.param(flip, r"0\.log: \d+ bytes at position .* are damaged: the batch has CRC .* from a backup", id="a flipped bit"),
    pytest.param(lambda place: write_property(place, "node.id", "77"), "belongs to node 77, this is node .: start with node.id=77 or choose", id="another node's"),
    pytest.param(lambda place: write_property(place, "directory.id", "xx"), r"meta\.properties is damaged \(invalid id 'xx'", id="no id"),
    pytest.param(lambda place: (place.data / "meta.properties").write_bytes(b"\xff\0"), r"meta\.properties is damaged .* by hand", id="garbage"),
    pytest.param(lambda place: as_folder(place.data / "meta.properties"), r"meta\.properties is a folder, where a file belongs", id="a folder as meta.properties"),
    pytest.param(lambda place: as_pipe(place.data / "meta.properties"), r"meta\.properties is a pipe, where a file belongs", id="a pipe as meta.properties"),
    pytest.param(no_meta, r"holds logs, such as .*, and no meta\.properties: restore that file from a backup", id="no meta.properties"),
    pytest.param(a_file, "is no folder: move it away or choose another", id="a file as directory"),
]  # fmt: skip
OF_A_CONTROLLER = [
    pytest.param(empty, r"the log ends at offset 0, and was on the disk up to \d+; restore .* from a backup", id="an empty segment"),
    pytest.param(lambda place: no_folder(place.data / METADATA), f"{METADATA} is missing or empty, while there was a log in it: restore it", id="no folder"),
    pytest.param(lambda place: only_a_snapshot(place.data / METADATA), f"{METADATA} is missing or empty, while there was a log in it: restore it", id="only a snapshot"),
    pytest.param(lambda place: no_files(place.data / METADATA), f"{METADATA} is missing or empty, while there was a log in it: restore it", id="no files"),
    pytest.param(lambda place: as_folder(place.data / METADATA / "quorum-state"), "quorum-state is a folder, where a file belongs: move it away", id="a folder as promises"),
    pytest.param(lambda place: as_pipe(place.data / METADATA / "quorum-state"), "quorum-state is a pipe, where a file belongs: move it away", id="a pipe as promises"),
    pytest.param(lambda place: (place.data / METADATA / "quorum-state").write_bytes(b"{"), r"quorum-state cannot be read .*: restore it from a backup, or, as this node votes alone, remove the file$", id="torn promises"),
]  # fmt: skip


def refused(place: Place) -> str:
    """Return the output of `ottla broker` for a directory with which it does not start, and check that nothing changes."""
    before = contents(place.data)
    ended = ottla("broker", "--config", place.file)
    assert (ended.status, ended.out) == (1, "")
    assert contents(place.data) == before
    (line,) = [line for line in ended.err.splitlines() if line.startswith("ottla: ")]
    assert "Traceback" not in ended.err
    assert "ERROR:" not in line, "a code is for clients"
    return line


def contents(folder: Path) -> dict[str, bytes]:
    """Copy all files except the clean shutdown mark, which is removed by each start, and the lock."""
    return {str(each): each.read_bytes() for each in folder.rglob("*") if each.is_file() and each.name[0] != "."}


@pytest.mark.behaviour("B2")
@pytest.mark.parametrize(("damage", "text"), EITHER)
def test_a_broker_that_cannot_start_reports_the_damage_and_the_remedy(
    cluster: Cluster, damage: Callable[[Place], None], text: str
) -> None:
    damage(cluster.broker)
    assert re.search(text, refused(cluster.broker))


@pytest.mark.behaviour("B2")
@pytest.mark.parametrize(("damage", "text"), [*EITHER, *OF_A_CONTROLLER])
def test_a_controller_that_cannot_start_reports_the_damage_and_the_remedy(
    cluster: Cluster, damage: Callable[[Place], None], text: str
) -> None:
    damage(cluster.controller)
    assert re.search(text, refused(cluster.controller))


@pytest.mark.behaviour("B2")
@pytest.mark.parametrize("lose", [no_folder, no_files, no_segments, no_bytes])
def test_a_broker_without_its_copy_of_the_metadata_fetches_them_again_and_serves_its_records(
    cluster: Cluster, lose: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    lose(cluster.broker.data / METADATA)
    check_served(cluster)
    assert f"{METADATA} is missing or empty: the metadata are fetched again from the controllers" in caplog.text


OTHER_CLUSTER = "AAAAAAAAAAAAAAAAAAAAAA"


@pytest.mark.behaviour("B2")
def test_a_controller_of_another_cluster_serves_no_broker_and_both_log_it(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    write_property(cluster.controller, "cluster.id", OTHER_CLUSTER)
    with cluster.controller.serving():
        ended = ottla("broker", "--config", cluster.broker.file)
    assert (ended.status, ended.out) == (1, "")
    assert f"cluster.id = {CLUSTER} in meta.properties, and the cluster of the controller at" in ended.err
    assert f"is {OTHER_CLUSTER}: look at controller.quorum.bootstrap.servers" in ended.err
    assert (
        f"node 2 of another cluster ('{CLUSTER}') sends requests to this node of cluster {OTHER_CLUSTER}" in caplog.text
    )


def test_a_broker_skips_a_controller_of_another_cluster(
    cluster: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stranger = Place(tmp_path, 9, *new_hosts(1))
    stranger.format([stranger.voter])
    write_property(stranger, "cluster.id", OTHER_CLUSTER)
    cluster.broker.knows([stranger, cluster.controller])
    try:
        with stranger.serving():
            check_served(cluster)
    finally:
        cluster.broker.knows([cluster.controller])
    assert f"and the cluster of the controller at {stranger.address} is {OTHER_CLUSTER}" in caplog.text


def test_a_damaged_copy_is_not_repaired_with_records_that_the_controllers_lack(cluster: Cluster) -> None:
    flip(cluster.broker)
    reported = refused(cluster.broker)
    remedy = f"move {cluster.broker.data / METADATA} away, and the broker fetches the metadata again"
    assert remedy in reported
    assert "ottla log repair" not in reported
    repaired = ottla("log", "repair", cluster.broker.data, "--execute")
    assert repaired.status == 1
    assert "other nodes have these records" in repaired.err
    assert remedy in repaired.err


def test_the_remedy_for_a_single_voter_is_a_backup_or_a_repair(cluster: Cluster) -> None:
    flip(cluster.controller)
    reported = refused(cluster.controller)
    assert "ottla log repair" in reported
    assert START_OVER not in reported


@pytest.mark.behaviour("B2")
def test_a_single_voter_without_its_quorum_state_continues_and_logs_it(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    promises = cluster.controller.data / METADATA / "quorum-state"
    promises.unlink()
    with caplog.at_level(logging.INFO):
        check_served(cluster)
    assert f"no {promises}: node " in caplog.text
    assert "is the only voter, and continues with the epochs of its log" in caplog.text


@pytest.mark.behaviour("B2")
@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(b"\xff" * 300), as_folder])
def test_the_bootstrap_records_are_not_needed_by_a_running_cluster(
    cluster: Cluster, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    path = cluster.controller.data / "bootstrap.checkpoint"
    damage(path)
    check_served(cluster)
    assert str(path) in caplog.text
    assert "the cluster is already started and does not need the file: remove it" in caplog.text


def test_a_new_cluster_does_not_start_without_its_bootstrap_records(tmp_path: Path) -> None:
    place = Place(tmp_path, 1, new_hosts(1)[0])
    place.format([place.voter])
    (place.data / "bootstrap.checkpoint").write_bytes(b"\xff" * 300)
    with pytest.raises(
        OttlaError, match=rf"{place.data}/bootstrap\.checkpoint is not whole: .* format an empty directory"
    ):
        make_server(place.config)


def check_served(cluster: Cluster) -> None:
    with cluster.controller.serving():
        begun = StartedBroker(cluster.broker)
        try:
            begun.wait()
            assert cluster.read() == [b"%d" % number for number in range(5)]
        finally:
            begun.close()


def test_a_program_that_starts_a_server_gets_an_error_without_a_protocol_code(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = OutOfServiceError("/data/t-0 is gone, though there was a log in it: restore it from a backup")
    monkeypatch.setattr("ottla.broker.server.Server", Mock(side_effect=refusal))
    with pytest.raises(OttlaError, match=r"^/data/t-0 is gone") as caught:
        make_server(cluster.controller.config)
    assert not isinstance(caught.value, KafkaError)
