"""Several `log.dirs` on one broker: where partitions are, and what becomes of the others when one directory fails."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.client.admin import Admin, ConfigResource
from ottla.errors import ConfigError, ErrorCode, OttlaError
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from tests.broker.wire import Wire, values
from tests.patience import eventually

DISKS = ("a", "b", "c")


@pytest.fixture
def disks(tmp_path: Path) -> list[Path]:
    return [tmp_path / name for name in DISKS]


def start(disks: list[Path], **settings: Any) -> Broker:
    return Broker(log_dirs=",".join(map(str, disks)), **settings)


def placed(disks: list[Path], topic: str = "t") -> dict[int, Path]:
    """In which directory each partition is that has a folder."""
    return {int(each.name[len(topic) + 1 :]): disk for disk in disks for each in disk.glob(f"{topic}-[0-9]")}


def write_all(wire: Wire, partitions: int, text: bytes = b"a") -> list[int]:
    return [wire.produce("t", text, partition=index).error_code for index in range(partitions)]


def errors(wire: Wire) -> dict[str, int]:
    return {each.log_dir: each.error_code for each in wire.ask(DescribeLogDirsRequest(None), 5).results}


def list_warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.message for each in caplog.records if "is offline" in each.message]


def test_partitions_are_placed_in_the_directory_with_the_fewest_and_found_after_a_restart(disks: list[Path]) -> None:
    with start(disks) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", 6)
        assert write_all(wire, 6) == [0] * 6
        where = placed(disks)
        assert sorted(where.values()) == sorted([*disks, *disks])
    with start(disks) as broker, Wire(broker.bootstrap_servers) as wire:
        assert [values(wire.fetch("t", 0, partition=index)) for index in range(6)] == [[b"a"]] * 6
        assert placed(disks) == where
    assert all((disk / ".kafka_cleanshutdown").exists() for disk in disks)


def removed(disk: Path) -> None:
    shutil.rmtree(disk)


def replaced_by_a_file(disk: Path) -> None:
    shutil.rmtree(disk)
    disk.write_text("a file")


def replaced_by_a_pipe(disk: Path) -> None:
    shutil.rmtree(disk)
    os.mkfifo(disk)


@pytest.mark.parametrize("breaking", [removed, replaced_by_a_file, replaced_by_a_pipe])
def test_an_offline_directory_affects_its_own_partitions_only(
    disks: list[Path], breaking: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    with start(disks) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", 6)
        write_all(wire, 6)
        where = placed(disks)
        breaking(disks[1])
        eventually(lambda: list_warnings(caplog))
        offline = {index for index, disk in where.items() if disk == disks[1]}
        for index in range(6):
            code = ErrorCode.KAFKA_STORAGE_ERROR if index in offline else ErrorCode.NONE
            assert wire.produce("t", b"b", partition=index).error_code == code
            assert wire.fetch("t", partition=index).error_code == code
        assert list(errors(wire).values()).count(ErrorCode.NONE) == 2
    (sentence,) = list_warnings(caplog)
    assert str(disks[1]) in sentence


def test_new_topics_are_placed_in_the_remaining_directories(
    disks: list[Path], caplog: pytest.LogCaptureFixture
) -> None:
    with start(disks) as broker, Wire(broker.bootstrap_servers) as wire:
        removed(disks[2])
        eventually(lambda: list_warnings(caplog))
        wire.create("t", 4)
        assert write_all(wire, 4) == [0] * 4
        assert set(placed(disks).values()) == set(disks[:2])


def test_a_directory_that_returns_has_lost_nothing(disks: list[Path], tmp_path: Path) -> None:
    with start(disks) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", 3)
        write_all(wire, 3)
        (gone,) = (index for index, disk in placed(disks).items() if disk == disks[1])
    away = disks[1].rename(tmp_path / "away")
    for present in (disks, [disks[0], disks[2]]):  # with an empty directory in its place, and without one
        with start(present) as broker, Wire(broker.bootstrap_servers) as wire:
            for _ in range(2):
                assert wire.produce("t", b"x", partition=gone).error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert wire.fetch("t", partition=gone).error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert gone not in placed(present)
    shutil.rmtree(disks[1])
    away.rename(disks[1])
    with start(disks) as broker, Wire(broker.bootstrap_servers) as wire:
        assert [values(wire.fetch("t", partition=index)) for index in range(3)] == [[b"a"]] * 3


@pytest.mark.parametrize("breaking", [replaced_by_a_file, replaced_by_a_pipe])
def test_an_unusable_directory_is_offline_at_startup(
    disks: list[Path], breaking: Callable[[Path], None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with start(disks) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", 3)
        write_all(wire, 3)
    away = disks[1].rename(tmp_path / "away")
    disks[1].mkdir()
    breaking(disks[1])
    with start(disks) as broker, Wire(broker.bootstrap_servers) as wire:
        assert sorted(write_all(wire, 3)) == [0, 0, ErrorCode.KAFKA_STORAGE_ERROR]
        assert errors(wire)[str(disks[1])] == ErrorCode.KAFKA_STORAGE_ERROR
    assert len(list_warnings(caplog)) == 1
    disks[1].unlink()
    away.rename(disks[1])
    with start(disks) as broker, Wire(broker.bootstrap_servers) as wire:
        assert write_all(wire, 3) == [0] * 3


def test_the_broker_stops_without_the_metadata_directory(disks: list[Path]) -> None:
    with start(disks, metadata_log_dir=str(disks[1])) as broker, Wire(broker.bootstrap_servers) as wire:
        assert (disks[1] / "__cluster_metadata-0").is_dir()
        removed(disks[1])
        eventually(lambda: hangs_up(wire))


def hangs_up(wire: Wire) -> bool:
    try:
        wire.metadata_of_all()
    except (OSError, EOFError):
        return True
    return False


def test_the_broker_stops_without_its_last_directory(disks: list[Path], tmp_path: Path) -> None:
    with start(disks[:1], metadata_log_dir=str(tmp_path / "m")) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        assert write_all(wire, 1) == [0]
        assert placed(disks) == {0: disks[0]}
        removed(disks[0])
        eventually(lambda: hangs_up(wire))


def test_a_partition_in_two_directories_is_used_where_the_metadata_have_it(disks: list[Path]) -> None:
    with start(disks) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", 1)
        write_all(wire, 1)
        home = placed(disks)[0]
    other = next(each for each in disks if each != home)
    shutil.copytree(home / "t-0", other / "t-0")
    with start(disks) as broker, Wire(broker.bootstrap_servers) as wire:
        assert values(wire.fetch("t")) == [b"a"]
        assert not (other / "t-0").exists()
        assert len(list(other.glob("t-0.*-stray"))) == 1


def test_a_directory_of_another_cluster_or_node_or_a_copy_is_rejected(disks: list[Path], tmp_path: Path) -> None:
    with start(disks):
        pass
    meta = (disks[1] / "meta.properties").read_text()
    shutil.copy(disks[0] / "meta.properties", disks[1])
    with pytest.raises(ConfigError, match="as a copy of it has"):
        start(disks).start()
    with Broker(tmp_path / "other"):
        pass
    with pytest.raises(ConfigError, match="belongs to cluster"):
        start([disks[0], tmp_path / "other"]).start()
    (disks[1] / "meta.properties").write_text(meta.replace("node.id=1", "node.id=7"))
    with pytest.raises(ConfigError, match="belongs to node 7"):
        start(disks).start()


@pytest.mark.parametrize("named", ["/a,/a", "/a,,/b", "/a,"])
def test_an_invalid_list_of_directories_is_rejected(named: str) -> None:
    with pytest.raises(OttlaError, match="name each directory once"):
        Broker(log_dirs=named)


def test_a_second_directory_can_be_added(disks: list[Path], tmp_path: Path) -> None:
    with start(disks[:1]) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", 2)
        assert wire.produce("t", b"a").error_code == 0
    with start(disks) as broker, Wire(broker.bootstrap_servers) as wire:
        assert values(wire.fetch("t")) == [b"a"]
        wire.create("u", 6)
        assert [wire.produce("u", b"b", partition=index).error_code for index in range(6)] == [0] * 6
    moved = int(next(disks[1].glob("u-*")).name.removeprefix("u-"))
    assert disks[1].rename(tmp_path / "away").is_dir()
    with start(disks) as broker, Wire(broker.bootstrap_servers) as wire:
        assert values(wire.fetch("t")) == [b"a"]
        assert wire.produce("u", b"c", partition=moved).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_deleted_topic_is_removed_from_a_directory_that_was_offline(disks: list[Path], tmp_path: Path) -> None:
    with start(disks) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", 3)
        write_all(wire, 3)
    away = disks[2].rename(tmp_path / "away")
    with start(disks[:2]) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.ask(DeleteTopicsRequest([DeleteTopicState("t")]))
        eventually(lambda: placed(disks[:2]) == {})
    away.rename(disks[2])
    with start(disks) as broker, Wire(broker.bootstrap_servers) as wire:
        eventually(lambda: placed(disks) == {})
        wire.create("t", 3)
        assert write_all(wire, 3) == [0] * 3


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of two megabytes."""
    disk = tmp_path / "small"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a file system")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], capture_output=True, check=False)


def test_a_full_disk_stays_online_and_an_unmounted_one_is_offline(
    small_disk: Path, disks: list[Path], caplog: pytest.LogCaptureFixture
) -> None:
    with start([disks[0], small_disk]) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", 2)
        write_all(wire, 2)
        (small,) = (index for index, disk in placed([small_disk]).items() if disk == small_disk)
        eventually(lambda: wire.produce("t", bytes(200_000), partition=small).error_code)
        assert wire.produce("t", b"b", partition=1 - small).error_code == 0
        assert set(errors(wire).values()) == {ErrorCode.NONE}
        assert values(wire.fetch("t", partition=small))[0] == b"a"
        wire.create("u", 2)
        assert set(placed([disks[0], small_disk], "u").values()) <= {disks[0]}
        subprocess.run(["umount", "-l", str(small_disk)], check=True)
        eventually(lambda: list_warnings(caplog))
        assert sorted(write_all(wire, 2)) == [0, ErrorCode.KAFKA_STORAGE_ERROR]


def test_directories_are_cordoned_and_opened_again_while_the_broker_runs(disks: list[Path]) -> None:
    with ExitStack() as undo:
        at = undo.enter_context(start(disks)).bootstrap_servers
        wire, admin = undo.enter_context(Wire(at)), undo.enter_context(Admin(bootstrap_servers=at))
        admin.alter_configs({ConfigResource("broker", "1"): {"cordoned.log.dirs": f"{disks[0]},{disks[2]}"}})
        wire.create("t", 6)
        assert write_all(wire, 6) == [0] * 6
        assert set(placed(disks).values()) == {disks[1]}
        admin.alter_configs({ConfigResource("broker", "1"): {"cordoned.log.dirs": None}})
        wire.create("u", 6)
        for partition in range(6):
            assert wire.produce("u", b"a", partition=partition).error_code == 0
        assert {disks[0], disks[2]} <= set(placed(disks, "u").values())


def test_a_cordoned_new_directory_gets_no_partitions(disks: list[Path]) -> None:
    with start(disks, cordoned_log_dirs=str(disks[2])) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", 6)
        assert write_all(wire, 6) == [0] * 6
        assert set(placed(disks).values()) == set(disks[:2])
