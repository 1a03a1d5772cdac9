from __future__ import annotations

import errno
import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from ottla.errors import ConfigError, KafkaError
from ottla.model import TopicPartition
from ottla.storage.directory import data_directory
from ottla.storage.directory.data_directory import ONE_BY_ONE, DataDirectory, UnusableError
from ottla.storage.files.durable import sync_file_system
from ottla.storage.log_config import LogConfig
from ottla.storage.segments.log_folder import stored_bytes
from tests.storage.batches import NOW, append, everything

FLIGHTS = TopicPartition("flights", 0)
CONFIG = LogConfig()
ID = uuid.UUID(int=7)


def opened(path: Path, node_id: int = 1, cluster_id: str | None = None) -> DataDirectory:
    return DataDirectory.open(path, node_id=node_id, cluster_id=cluster_id)


def test_a_new_directory_is_made_with_an_identity_that_stays(tmp_path: Path) -> None:
    first = opened(tmp_path / "new" / "data")
    assert len(first.cluster_id) == 22
    first.close()
    second = opened(tmp_path / "new" / "data")
    assert second.meta == first.meta
    second.close()
    lines = (tmp_path / "new" / "data" / "meta.properties").read_text().splitlines()
    assert {"node.id=1", "version=1", f"cluster.id={first.cluster_id}"} <= set(lines)


def test_logs_are_loaded_after_a_clean_shutdown(tmp_path: Path) -> None:
    with_data = opened(tmp_path)
    log = with_data.open_log(FLIGHTS, CONFIG, now_ms=NOW)
    append(log, b"a", b"b")
    data = everything(log)
    with_data.close()
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n1\nflights 0 2\n"
    again = opened(tmp_path)
    assert again.was_clean_shutdown
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    assert list(again.logs()) == [FLIGHTS]
    log = again.open_log(FLIGHTS, CONFIG, now_ms=NOW)
    assert (everything(log), log.recovery) == (data, None)
    assert again.open_log(FLIGHTS, CONFIG, now_ms=NOW) is log
    again.close()


def test_logs_are_recovered_after_a_crash(tmp_path: Path) -> None:
    crashed = opened(tmp_path)
    log = crashed.open_log(FLIGHTS, CONFIG, now_ms=NOW)
    append(log, b"a", b"b")
    log.flush()
    crashed.checkpoint()
    append(log, b"c")
    crashed.close(clean=False)
    path = log.segments[-1].path
    path.write_bytes(path.read_bytes() + b"torn")
    again = opened(tmp_path)
    assert not again.was_clean_shutdown
    log = again.open_log(FLIGHTS, CONFIG, now_ms=NOW)
    assert log.recovery is not None
    assert (log.end_offset, log.recovery_point, log.recovery.bytes_cut) == (3, 2, 4)
    again.close()


def test_an_unopened_log_keeps_its_checkpoints(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    log = directory.open_log(FLIGHTS, CONFIG, now_ms=NOW)
    append(log, b"a", b"b")
    log.advance_start(1)
    directory.close()
    for clean in (True, False, True):
        opened(tmp_path).close(clean=clean)
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n1\nflights 0 2\n"
    assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n1\nflights 0 1\n"
    directory = opened(tmp_path)
    assert directory.open_log(FLIGHTS, CONFIG, now_ms=NOW).start_offset == 1
    directory.close()


@pytest.mark.parametrize("text", ["", "garbage", "0\n2\nflights 0 2\n", "1\n1\nflights 0 2\n", "0\n1\nflights 0 x\n"])
def test_a_damaged_checkpoint_requires_only_a_longer_recovery(tmp_path: Path, text: str) -> None:
    directory = opened(tmp_path)
    append(directory.open_log(FLIGHTS, CONFIG, now_ms=NOW), b"a", b"b")
    directory.close()
    (tmp_path / "recovery-point-offset-checkpoint").write_text(text)
    directory = opened(tmp_path)
    assert directory.open_log(FLIGHTS, CONFIG, now_ms=NOW).end_offset == 2
    directory.close()


def test_the_topic_id_is_stored_with_the_partition_and_another_is_rejected(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    id_ = uuid.UUID("5b7f3a52-8f1e-4d4c-9d9c-0123456789ab")
    directory.open_log(FLIGHTS, CONFIG, now_ms=NOW, topic_id=id_)
    assert (tmp_path / "flights-0" / "partition.metadata").read_text() == (
        "version: 0\ntopic_id: W386Uo8eTUydnAEjRWeJqw\n"
    )
    directory.close()
    directory = opened(tmp_path)
    directory.open_log(FLIGHTS, CONFIG, now_ms=NOW, topic_id=id_)
    directory.close()
    directory = opened(tmp_path)
    with pytest.raises(KafkaError, match=r"UNKNOWN_SERVER_ERROR: .* belongs to topic id W386Uo8eTUydnAEjRWeJqw"):
        directory.open_log(FLIGHTS, CONFIG, now_ms=NOW, topic_id=uuid.uuid4())
    directory.close()


def test_a_deleted_log_does_not_reappear(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    append(directory.open_log(FLIGHTS, CONFIG, now_ms=NOW), b"a", b"b")
    directory.delete_log(FLIGHTS)
    directory.delete_log(FLIGHTS)
    assert directory.logs() == {}
    log = directory.open_log(FLIGHTS, CONFIG, now_ms=NOW)
    assert log.end_offset == 0
    directory.close()
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n1\nflights 0 0\n"


def test_a_deletion_that_a_crash_interrupted_is_finished(tmp_path: Path) -> None:
    opened(tmp_path).close()
    doomed = tmp_path / f"flights-0.{uuid.uuid4().hex}-delete"
    doomed.mkdir()
    (doomed / "00000000000000000000.log").touch()
    directory = opened(tmp_path)
    assert not doomed.exists()
    assert directory.logs() == {}
    directory.close()


def test_a_topic_may_be_named_like_a_deletion(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    odd = TopicPartition(f"a-0.{uuid.uuid4().hex}-delete", 3)
    directory.open_log(odd, CONFIG, now_ms=NOW)
    directory.close()
    directory = opened(tmp_path)
    assert list(directory.logs()) == [odd]
    directory.close()


def test_a_directory_in_use_is_rejected_with_the_process_that_uses_it(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    with pytest.raises(ConfigError, match=f"is in use by process {os.getpid()}: stop that broker or choose another"):
        opened(tmp_path)
    directory.close()
    opened(tmp_path).close()


HOLD = """
import sys
from ottla.storage.directory import data_directory
from ottla.storage.directory.data_directory import ONE_BY_ONE, DataDirectory, UnusableError
from ottla.storage.files.durable import sync_file_system
held = DataDirectory.open(sys.argv[1], node_id=1)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_directory_in_use_by_another_process_is_free_when_that_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(ConfigError, match=f"in use by process {holder.pid}"):
            opened(tmp_path)
        holder.kill()
    opened(tmp_path).close()


HOLD_AS_KAFKA = """
import fcntl, sys
file = open(sys.argv[1] + "/.lock", "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_directory_that_kafka_has_locked_is_refused(tmp_path: Path) -> None:
    opened(tmp_path).close()
    command = [sys.executable, "-c", HOLD_AS_KAFKA, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(ConfigError, match="in use by another program, perhaps Kafka"):
            opened(tmp_path)
        holder.kill()
    opened(tmp_path).close()


def test_a_directory_of_another_node_cluster_or_version_is_refused(tmp_path: Path) -> None:
    directory = opened(tmp_path, cluster_id="a")
    directory.close()
    with pytest.raises(ConfigError, match=r"belongs to node 1, this is node 2: start with node\.id=1"):
        opened(tmp_path, node_id=2)
    with pytest.raises(ConfigError, match="belongs to cluster a, not b"):
        opened(tmp_path, cluster_id="b")
    for text, words in (
        ("version=0\nbroker.id=1\n", "version 0, expected 1"),
        ("version=1\n", "damaged"),
        ("", "damaged .*no version.* by hand"),
    ):
        (tmp_path / "meta.properties").write_text(text)
        with pytest.raises(ConfigError, match=words):
            opened(tmp_path)


def test_a_meta_properties_that_kafka_wrote_is_understood(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    (tmp_path / "meta.properties").write_text(
        "#\n#Fri Nov 21 04:00:00 UTC 2025\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\ndirectory.id=JOAFJtMKQwqAZxLcl3rQ1A\nnode.id=1\nversion=1\n"
    )
    directory = opened(tmp_path)
    assert (directory.cluster_id, directory.meta.directory_id) == ("MkU3OEVBNTcwNTJENDM2Qg", "JOAFJtMKQwqAZxLcl3rQ1A")
    directory.close()


def test_a_path_that_is_not_a_directory_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match=r"data directory .* cannot be used: it is a file"):
        opened(tmp_path / "file")
    with pytest.raises(ConfigError, match=r"data directory .* cannot be used: Not a directory"):
        opened(tmp_path / "file" / "below")


def test_a_directory_that_is_not_writable_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))  # root, which runs many tests, is never denied

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", denied)
        with pytest.raises(ConfigError, match="cannot be used: Permission denied"):
            opened(tmp_path)
    opened(tmp_path).close()


def test_foreign_files_are_not_touched(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "flights-0.txt").write_text("mine")
    directory = opened(tmp_path)
    assert directory.logs() == {}
    directory.close()
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_close_can_be_repeated(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    directory.close()
    other = opened(tmp_path)
    directory.close()
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    other.close()


def test_a_log_that_cannot_be_closed_does_not_stop_the_others_from_closing(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    logs = [directory.open_log(TopicPartition("t", number), CONFIG, now_ms=NOW) for number in range(3)]
    for log in logs:
        append(log, b"a")
    (tmp_path / "t-1").rename(tmp_path / "gone")
    with pytest.raises(KafkaError, match=r"KAFKA_STORAGE_ERROR: cannot flush the log in .*t-1"):
        directory.close()
    assert [log.closed for log in logs] == [True, False, True]
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    opened(tmp_path).close()


@pytest.mark.parametrize("text", ["", "\0" * 44])
def test_a_topic_id_lost_in_a_power_failure_is_written_again(tmp_path: Path, text: str) -> None:
    directory = opened(tmp_path)
    id_ = uuid.uuid4()
    directory.open_log(FLIGHTS, CONFIG, now_ms=NOW, topic_id=id_)
    directory.close()
    file = tmp_path / "flights-0" / "partition.metadata"
    whole = file.read_text()
    file.write_text(text)
    directory = opened(tmp_path)
    directory.open_log(FLIGHTS, CONFIG, now_ms=NOW, topic_id=id_)
    directory.close()
    assert file.read_text() == whole


def test_a_damaged_topic_id_is_named(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    (tmp_path / "flights-0").mkdir()
    (tmp_path / "flights-0" / "partition.metadata").write_text("version: 9")
    with pytest.raises(KafkaError, match=r"partition\.metadata is damaged"):
        directory.open_log(FLIGHTS, CONFIG, now_ms=NOW, topic_id=uuid.uuid4())
    directory.close()


def test_many_logs_are_flushed_by_one_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = DataDirectory.open(tmp_path, node_id=1)
    for number in range(ONE_BY_ONE + 1):
        append(directory.open_log(TopicPartition("t", number), LogConfig(), now_ms=NOW), b"a")
    together: list[int] = []
    alone: list[int] = []
    monkeypatch.setattr(data_directory, "sync_file_system", together.append)
    monkeypatch.setattr(os, "fsync", alone.append)
    directory.close()
    assert len(together) == 1
    assert len(alone) == 6  # the two checkpoints, the mark, and the folder after each
    again = DataDirectory.open(tmp_path, node_id=1)
    assert again.was_clean_shutdown
    assert again.open_log(TopicPartition("t", 0), LogConfig(), now_ms=NOW).recovery_point == 1
    again.close()


def test_a_shutdown_is_unclean_if_the_file_system_lost_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = DataDirectory.open(tmp_path, node_id=1)
    for number in range(ONE_BY_ONE + 1):
        append(directory.open_log(TopicPartition("t", number), LogConfig(), now_ms=NOW), b"a")

    def lost(fd: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(data_directory, "sync_file_system", lost)
    with pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR"):
        directory.close()
    again = DataDirectory.open(tmp_path, node_id=1)
    assert not again.was_clean_shutdown
    assert again.open_log(TopicPartition("t", 0), LogConfig(), now_ms=NOW).recovery_point == 0
    again.close()


def test_a_file_system_is_synced_or_an_error_is_raised(tmp_path: Path) -> None:
    with open(tmp_path / "a", "wb") as file:
        sync_file_system(file.fileno())
    with pytest.raises(OSError, match="Bad file descriptor"):
        sync_file_system(-1)


def doomed_partitions(directory: DataDirectory, count: int) -> list[TopicPartition]:
    """Partitions with one record each, forgotten, and with unchanged folder names."""
    names = [TopicPartition("flights", number) for number in range(count)]
    for name in names:
        append(directory.open_log(name, CONFIG, now_ms=NOW, topic_id=ID), b"a")
    directory.begin_deletion(names, ID)
    return names


def test_a_deleted_folder_is_removed_later_and_completely(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    names = doomed_partitions(directory, 3)
    assert directory.open_logs == {}
    assert sorted(directory.logs()) == names
    directory.deletions.remove()
    assert list(tmp_path.glob("flights*")) == []
    directory.close()


def test_a_deleted_name_is_free_at_once_and_the_new_log_is_separate(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    names = doomed_partitions(directory, 3)
    directory.forget_checkpoints(names[1:2])
    log = directory.open_log(names[1], CONFIG, now_ms=NOW, topic_id=uuid.uuid4())
    assert append(log, b"new") == 0
    directory.deletions.remove()
    assert list(directory.logs()) == [names[1]]
    assert len(list(tmp_path.glob("flights*"))) == 1
    assert append(log, b"newer") == 1
    directory.close()


def test_a_folder_of_another_topic_is_renamed_and_not_deleted(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    append(directory.open_log(FLIGHTS, CONFIG, now_ms=NOW, topic_id=ID), b"a")
    directory.begin_deletion([FLIGHTS], uuid.uuid4())
    directory.deletions.remove()
    assert len(list(tmp_path.glob("flights-0.*-stray/*.log"))) == 1
    directory.close()


def test_a_crash_between_renaming_and_deletion_does_not_restore_a_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = opened(tmp_path)
    doomed_partitions(directory, 3)

    def crash(*_: object, **__: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr("ottla.storage.directory.deletions.remove_tree", crash)
        with pytest.raises(SystemExit):
            directory.deletions.remove()
    assert len(list(tmp_path.glob("flights-*.*-delete"))) == 3
    directory.close(clean=False)
    directory = opened(tmp_path)
    assert directory.logs() == {}
    assert list(tmp_path.glob("flights*")) == []
    directory.close()


def test_a_folder_that_cannot_be_renamed_is_reported_and_the_others_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    directory = opened(tmp_path)
    names = doomed_partitions(directory, 3)
    real = Path.rename

    def rename(self: Path, target: Path) -> Path:
        if self.name == str(names[1]):
            raise OSError(errno.EIO, "Input/output error")
        return real(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    directory.deletions.remove()
    assert list(directory.logs()) == [names[1]]
    assert "flights-1 is no more, but its files are: cannot rename" in caplog.text
    directory.close(clean=False)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("version=1\ncluster.id=c\n", "it has no node.id"),
        ("node.id=1\n", "it has no version"),
        ("version=1\nnode.id=1\ncluster.id=\n", "it has no cluster.id"),
    ],
)
def test_missing_keys_of_meta_properties_are_named(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "meta.properties").write_text(text)
    with pytest.raises(ConfigError) as refused:
        DataDirectory.open(tmp_path, node_id=1)
    assert f"meta.properties is damaged ({words}): restore" in str(refused.value)


def test_a_segment_deleted_while_its_folder_is_measured_is_not_counted(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000000.log").symlink_to(tmp_path / "gone")
    (tmp_path / "00000000000000000007.log").write_bytes(b"kept")
    assert stored_bytes(tmp_path) == len(b"kept")


def test_a_file_that_may_not_be_read_is_named_with_a_remedy_for_its_owner() -> None:
    denied = PermissionError(errno.EACCES, "Permission denied", "/data/meta.properties")
    assert str(UnusableError(Path("/data"), denied)) == (
        "data directory /data cannot be used: /data/meta.properties: Permission denied; the user of this process must own all files "
        "in it: chown -R, or choose another directory"
    )
