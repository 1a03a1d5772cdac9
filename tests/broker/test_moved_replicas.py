"""Copies that move from one directory of a broker to another while it serves them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ottla import Admin, Consumer, Producer
from ottla.errors import ErrorCode
from ottla.model import TopicPartition
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.storage.directory.data_directory import DataDirectory
from tests.broker.moving_replicas import committed, copies, find_directory, move, photographed, start
from tests.broker.wire import Wire, values
from tests.patience import eventually

pytestmark = pytest.mark.heavy

PLACE = TopicPartition("t", 0)


@pytest.fixture
def disks(tmp_path: Path) -> list[Path]:
    return [tmp_path / name for name in ("a", "b")]


def other(disks: list[Path], disk: Path | None) -> Path:
    return next(each for each in disks if each != disk)


def fill(address: str) -> None:
    """Records of all kinds: deleted up to the middle of a batch, of a producer, committed, aborted, of a transaction that is open."""
    with Producer(bootstrap_servers=address, linger_ms=1000) as producer:
        for number in range(20):
            producer.send("t", b"%d" % number, partition=0)
        producer.flush()
    for commits in (True, False):
        with Producer(bootstrap_servers=address, transactional_id=f"ends-{commits}") as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send("t", b"commits: %r" % commits, partition=0)
            producer.flush()
            producer.commit_transaction() if commits else producer.abort_transaction()
    with Admin(bootstrap_servers=address) as admin:
        admin.delete_records({PLACE: 5})


def test_a_replica_moves_during_produces_without_a_loss(disks: list[Path]) -> None:
    with start(disks) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", 1)
        fill(broker.bootstrap_servers)
        from_disk = find_directory(wire)
        to = other(disks, from_disk)
        with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
            assert move(wire, "t", to) == [ErrorCode.NONE]
            written = 0
            while find_directory(wire) != to:
                producer.send("t", b"beside %d" % written, partition=0)
                producer.flush()
                written += 1
            producer.send("t", b"after", partition=0).result()
        found = committed(broker.bootstrap_servers)
        assert found[0] == (5, b"5")
        assert [value for _, value in found][15:] == [
            b"commits: True",
            *(b"beside %d" % number for number in range(written)),
            b"after",
        ]
        eventually(lambda: from_disk is not None and not list(from_disk.glob("t-*")))
    with start(disks) as broker, Wire(broker.bootstrap_servers) as wire:
        assert find_directory(wire) == to
        assert committed(broker.bootstrap_servers) == found


def test_a_move_is_described_and_can_be_cancelled(disks: list[Path]) -> None:
    with (
        start(disks, replica_alter_log_dirs_io_max_bytes_per_second=0) as broker,
        Wire(broker.bootstrap_servers) as wire,
    ):
        wire.create("t", 1)
        wire.produce("t", b"a")
        present = find_directory(wire)
        assert present is not None
        to = other(disks, present)
        for _ in range(2):
            assert move(wire, "t", to) == [ErrorCode.NONE]
        assert sorted(copies(wire)[0]) == sorted([(present, False, 0), (to, True, 1)])
        assert len(list(to.glob("t-0.*-future"))) == 1
        assert move(wire, "t", present) == [ErrorCode.NONE]
        assert find_directory(wire) == present
        eventually(lambda: not list(to.glob("t-*")))
        assert values(wire.fetch("t")) == [b"a"]


def test_an_invalid_move_is_rejected_as_by_kafka(disks: list[Path], tmp_path: Path) -> None:
    with (
        start([*disks, tmp_path / "c"], cordoned_log_dirs=str(tmp_path / "c")) as broker,
        Wire(broker.bootstrap_servers) as wire,
    ):
        wire.create("t", 1)
        wire.produce("t", b"a")
        gone = disks[1]
        assert move(wire, "t", Path("/elsewhere")) == [ErrorCode.LOG_DIR_NOT_FOUND]
        assert move(wire, "t", tmp_path / "c") == [ErrorCode.INVALID_REPLICA_ASSIGNMENT]
        assert move(wire, "t", gone, 7) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert move(wire, "t" * 240, gone) == [ErrorCode.INVALID_TOPIC_EXCEPTION]
        shutil.rmtree(gone)
        eventually(lambda: move(wire, "t", gone) == [ErrorCode.KAFKA_STORAGE_ERROR])


def test_a_topic_created_later_is_placed_in_the_requested_directory(disks: list[Path]) -> None:
    with start(disks) as broker, Wire(broker.bootstrap_servers) as wire:
        assert move(wire, "t", disks[1], 0, 1, 2) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 3
        wire.create("t", 3)
        assert {find_directory(wire, "t", index) for index in range(3)} == {disks[1]}


def test_a_topic_deleted_during_its_move_leaves_no_files(disks: list[Path]) -> None:
    with (
        start(disks, replica_alter_log_dirs_io_max_bytes_per_second=0) as broker,
        Wire(broker.bootstrap_servers) as wire,
    ):
        wire.create("t", 1)
        wire.produce("t", b"a")
        assert move(wire, "t", other(disks, find_directory(wire))) == [ErrorCode.NONE]
        wire.ask(DeleteTopicsRequest([DeleteTopicState("t")]))
        eventually(lambda: not [each for disk in disks for each in disk.glob("t-*")])


def test_groups_and_transactions_continue_while_their_partitions_move(disks: list[Path]) -> None:
    with (
        start(disks, offsets_topic_num_partitions=1, transaction_state_log_num_partitions=1) as broker,
        Wire(broker.bootstrap_servers) as wire,
    ):
        wire.create("t", 1)
        fill(broker.bootstrap_servers)
        settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"}
        with (
            Consumer(settings) as consumer,
            Producer(bootstrap_servers=broker.bootstrap_servers, transactional_id="x") as producer,
        ):
            consumer.subscribe(["t"])
            eventually(lambda: consumer.poll(0.1) or consumer.assignment())
            producer.init_transactions()
            for topic in ("__consumer_offsets", "__transaction_state"):
                to = other(disks, find_directory(wire, topic))
                producer.begin_transaction()
                producer.send("t", topic.encode(), partition=0)
                assert move(wire, topic, to) == [ErrorCode.NONE]
                eventually(lambda: find_directory(wire, topic) == to)  # noqa: B023
                producer.commit_transaction()
                consumer.commit({PLACE: 7})
            kept = consumer.committed([PLACE])[PLACE]
            assert kept is not None
            assert kept.offset == 7
        found = committed(broker.bootstrap_servers)
        assert [value for _, value in found][-2:] == [b"__consumer_offsets", b"__transaction_state"]


def test_a_kill_at_any_step_of_a_move_loses_nothing(
    disks: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with start(disks) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", 1)
        fill(broker.bootstrap_servers)
        expected = committed(broker.bootstrap_servers)
        to = other(disks, find_directory(wire))
        with photographed(monkeypatch, disks, tmp_path / "images") as images:
            assert move(wire, "t", to) == [ErrorCode.NONE]
            eventually(lambda: find_directory(wire) == to)
    assert len(images) > 10
    for image in images:
        copied = [image / disk.name for disk in disks]
        with start(copied) as broker, Wire(broker.bootstrap_servers) as wire:
            eventually(lambda: find_directory(wire) is not None)
            assert committed(broker.bootstrap_servers) == expected
            assert wire.produce("t", b"more").error_code == ErrorCode.NONE
        assert not [each for disk in copied for each in disk.glob("*-future")]
        assert len([each for disk in copied for each in disk.glob("t-0")]) == 1


def test_a_partition_with_only_a_future_replica_is_not_started_empty(
    disks: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with start(disks) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", 2)
        index = next(each for each in (0, 1) if find_directory(wire, "t", each) == disks[1])
        wire.produce("t", b"a", partition=index)
        with photographed(monkeypatch, disks, tmp_path / "images") as images:
            assert move(wire, "t", disks[0], index) == [ErrorCode.NONE]
            eventually(lambda: find_directory(wire, "t", index) == disks[0])
    name = f"t-{index}"
    for image in images:
        if list((image / "a").glob(f"{name}.*-future")):
            away = (image / "b").rename(image / "away")
            (image / "b").write_text("no folder")
            with start([image / "a", image / "b"]) as broker, Wire(broker.bootstrap_servers) as wire:
                assert wire.produce("t", b"b", partition=index).error_code == ErrorCode.KAFKA_STORAGE_ERROR
            (image / "b").unlink()
            away.rename(image / "b")
            with start([image / "a", image / "b"]) as broker, Wire(broker.bootstrap_servers) as wire:
                assert values(wire.fetch("t", partition=index)) == [b"a"]


def test_a_move_is_retried_after_a_disk_error(
    disks: list[Path], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("ottla.broker.replica_manager.log_dir_moves.AGAIN_SECONDS", 0.05)
    with start(disks) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", 1)
        wire.produce("t", b"a")
        to = other(disks, find_directory(wire))
        with monkeypatch.context() as broken:
            broken.setattr(DataDirectory, "checkpoint", refuse)
            assert move(wire, "t", to) == [ErrorCode.NONE]
            eventually(lambda: "failed, and is retried" in caplog.text)
            assert wire.produce("t", b"b").error_code == ErrorCode.NONE
        eventually(lambda: find_directory(wire) == to)
        assert values(wire.fetch("t")) == [b"a", b"b"]


def refuse(directory: DataDirectory) -> None:
    raise OSError(28, "No space left on device", str(directory.path))
