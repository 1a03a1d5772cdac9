"""Backups of a running broker, restored into another one."""

from __future__ import annotations

import errno
import signal
from pathlib import Path
from typing import Any

import pytest

from ottla import Admin, Broker, Producer
from ottla.backup import (
    Backup,
    BackupError,
    BackupFolder,
    BackupReport,
    BackupSettings,
    Restore,
    RestoreReport,
    RestoreSettings,
    Selection,
    verify_backup,
)
from ottla.backup.manifest import Segment
from ottla.backup.segments import LogWriter
from ottla.client.admin import (
    AclBinding,
    AclBindingFilter,
    ClientQuotaEntity,
    ConfigResource,
    UserScramCredentialUpsertion,
)
from ottla.client.admin.client_quota import DEFAULT
from ottla.errors import ConfigError
from ottla.model import TopicPartition
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, Subtopology, Topology
from tests.backup.killed import run_killed
from tests.broker.wire import Wire
from tests.mirror.conftest import Side

Sides = tuple[Side, Side]
TOPOLOGY = Topology(0, [Subtopology("0", ["in"])])
"""A streams application that reads the topic `in`."""


def back_up(side: Side, folder: Path, *topics: str, messages: list[str] | None = None, **more: Any) -> BackupReport:
    selection = Selection(topics) if topics else None
    client = {"bootstrap.servers": side.address, "fetch.max.bytes": more.pop("fetch_bytes", 1 << 20)}
    say = (messages if messages is not None else []).append
    return Backup(BackupSettings(client=client, folder=folder, selection=selection, **more), say=say).run()


def restore(side: Side, folder: Path, *, messages: list[str] | None = None, **more: Any) -> RestoreReport:
    say = (messages if messages is not None else []).append
    return Restore(RestoreSettings(client={"bootstrap.servers": side.address}, folder=folder, **more), say=say).run()


def contents(side: Side, topic: str) -> list[tuple[Any, ...]]:
    return [(r.partition, r.key, r.value, r.timestamp, list(r.headers)) for r in side.records(topic)]


def configs_of(side: Side, kind: str, name: str) -> dict[str, str | None]:
    with Admin(bootstrap_servers=side.address) as admin:
        (entries,) = admin.describe_configs([ConfigResource(kind, name)]).values()
    return {e.name: e.value for e in entries.values() if e.source.startswith("DYNAMIC_")}


@pytest.mark.behaviour("B9")
@pytest.mark.parametrize("kind", ["log", "parquet"])
def test_records_configs_and_groups_survive_a_backup_and_a_restore(sides: Sides, tmp_path: Path, kind: Any) -> None:
    source, target = sides
    source.make("orders", 2, message_timestamp_type="CreateTime", max_message_bytes="2000000")
    source.make("stamped", 1, message_timestamp_type="LogAppendTime", cleanup_policy="compact")
    source.send("orders", "a", key=b"k", partition=1, timestamp=12345, headers=[("h", b"1"), ("h", None)])
    source.send("orders", None, key=b"k", partition=1, timestamp=12346)
    source.send("orders", *"xyz", "x" * 1_500_000, partition=0)
    source.send("stamped", "s", key=b"k")
    source.commit("billing", "orders", 2)
    before = {name: contents(source, name) for name in ("orders", "stamped")}

    report = back_up(source, tmp_path, segment_format=kind)
    assert (report.records, report.topics, report.groups, report.is_complete) == (7, 2, 1, True)
    assert verify_backup(BackupFolder(tmp_path)).problems == ()
    restored = restore(target, tmp_path)

    assert (restored.records, restored.renumbered, restored.groups) == (7, (), 1)
    assert {name: contents(target, name) for name in ("orders", "stamped")} == before
    for name in before:
        assert configs_of(target, "topic", name) == configs_of(source, "topic", name)
    assert target.committed("billing") == {"orders-0": 2}


def test_a_second_run_adds_what_is_new_and_a_second_restore_too(sides: Sides, tmp_path: Path) -> None:
    source, target = sides
    source.make("orders")
    source.send("orders", "a", "b")
    back_up(source, tmp_path, "orders")
    restore(target, tmp_path)
    source.send("orders", "c")
    source.commit("billing", "orders", 3)
    with Admin(bootstrap_servers=source.address) as admin:
        admin.create_partitions({"orders": 2})
    source.send("orders", "d", partition=1)
    assert back_up(source, tmp_path).records == 2
    assert back_up(source, tmp_path).records == 0
    assert restore(target, tmp_path).records == 2
    assert target.values("orders") == ["a", "b", "c", "d"]
    assert target.committed("billing") == {"orders-0": 3}


def test_offsets_are_kept_after_deleted_records(sides: Sides, tmp_path: Path) -> None:
    source, target = sides
    source.make("orders")
    source.send("orders", *map(str, range(10)))
    with Admin(bootstrap_servers=source.address) as admin:
        admin.delete_records({TopicPartition("orders", 0): 7})
    back_up(source, tmp_path)
    assert restore(target, tmp_path, offset_policy="require").renumbered == ()
    assert [(r.offset, r.value) for r in target.records("orders")] == [(7, b"7"), (8, b"8"), (9, b"9")]
    assert len(restore(target, tmp_path, offset_policy="renumber", prefix="from-0.").renumbered) == 1
    assert [r.offset for r in target.records("from-0.orders")] == [0, 1, 2]


@pytest.mark.behaviour("B9")
def test_only_committed_records_are_backed_up_and_offsets_of_groups_are_translated(
    sides: Sides, tmp_path: Path
) -> None:
    source, target = sides
    source.make("orders")
    with Producer(bootstrap_servers=source.address, transactional_id="t") as producer:
        producer.init_transactions()
        for value, end in (("a", producer.commit_transaction), ("b", producer.abort_transaction)) * 2:
            producer.begin_transaction()
            producer.send("orders", value.encode()).result()
            end()
        source.commit("at-second", "orders", 4)  # a commit b abort a
        source.commit("at-end", "orders", 8)
        producer.begin_transaction()
        producer.send("orders", b"open").result()
        assert back_up(source, tmp_path).records == 2
        with pytest.raises(BackupError, match=r"the offsets of orders-0 cannot be kept: 6 offsets from 0 to 8"):
            restore(target, tmp_path, offset_policy="require")
        assert restore(target, tmp_path).renumbered == (TopicPartition("orders", 0),)
        assert target.values("orders") == ["a", "a"]
        assert (target.committed("at-second"), target.committed("at-end")) == ({"orders-0": 1}, {"orders-0": 2})
        producer.commit_transaction()
    assert back_up(source, tmp_path).records == 1
    restore(target, tmp_path)
    assert target.values("orders") == ["a", "a", "open"]


@pytest.mark.behaviour("B9")
def test_kill_9_of_backup_and_restore_causes_no_gap_and_no_duplicate(sides: Sides, tmp_path: Path) -> None:
    source, target = sides
    source.make("orders", 2)
    for number in range(12):
        source.send("orders", f"{number:03d}" + "x" * 600, partition=number % 2)
    before = contents(source, "orders")
    assert run_killed("backup", source.address, tmp_path, 3, "orders") == -signal.SIGKILL
    with pytest.raises(BackupError, match="is incomplete: run ottla backup create again"):
        restore(target, tmp_path)
    copied = len(list(tmp_path.glob("topics/*/*/*.log")))
    assert copied > 0
    assert 0 < back_up(source, tmp_path, fetch_bytes=1000, save_seconds=0).records < 12
    assert verify_backup(BackupFolder(tmp_path)).problems == ()
    assert run_killed("restore", target.address, tmp_path, 5, "orders") == -signal.SIGKILL
    assert 0 < len(target.records("orders")) < 12
    restore(target, tmp_path)
    assert contents(target, "orders") == before


def test_an_interrupted_restore_leaves_no_config_of_the_import(sides: Sides, tmp_path: Path) -> None:
    source, target = sides
    source.make("orders", retention_ms="1000")
    source.send("orders", *"abc", timestamp=1)
    (tmp_path / "lock").touch()  # as a run leaves it that was killed before it saved its progress
    (tmp_path / "topics" / "orders" / "0").mkdir(parents=True)
    (tmp_path / "topics" / "orders" / "0" / "00000000000000000000-1.log").touch()
    back_up(source, tmp_path)
    assert len(list(tmp_path.glob("topics/*/*/*.log"))) == 1
    settings = RestoreSettings(
        client={"bootstrap.servers": target.address},
        folder=tmp_path,
        with_configs=False,
        topic_configs={"retention.ms": "-1"},
    )
    first = Restore(settings)
    first.stop()
    assert not first.run().is_complete
    assert configs_of(target, "topic", "orders")["cleanup.policy"] == "delete"
    assert Restore(settings).run().records == 3
    configs = configs_of(target, "topic", "orders")
    assert configs["retention.ms"] == "-1"
    assert "cleanup.policy" not in configs
    assert target.values("orders") == ["a", "b", "c"]


def test_a_topic_with_other_records_is_an_error_before_anything_is_changed(sides: Sides, tmp_path: Path) -> None:
    source, target = sides
    source.make("orders")
    source.make("payments")
    source.send("orders", "a", "b")
    back_up(source, tmp_path)
    target.make("payments")
    target.send("payments", "mine")
    with pytest.raises(BackupError, match="nothing was changed: payments-0 ends at offset 1, and would end at 0"):
        restore(target, tmp_path)
    target.make("orders")
    target.send("orders", "other")
    with pytest.raises(BackupError, match="orders-0 has another record at offset 0 than the backup; delete the topic"):
        restore(target, tmp_path, selection=Selection(("orders",)))
    with pytest.raises(ConfigError, match="the backup has no topic 'order'; it has orders, payments"):
        restore(target, tmp_path, selection=Selection(("order",)))


def test_folders_and_clusters_are_not_mixed_up(sides: Sides, tmp_path: Path) -> None:
    source, target = sides
    source.make("orders")
    back_up(source, tmp_path / "backup")
    with pytest.raises(BackupError, match="give another folder"):
        back_up(target, tmp_path / "backup")
    with pytest.raises(BackupError, match="has the format log, not parquet"):
        back_up(source, tmp_path / "backup", segment_format="parquet")
    with pytest.raises(BackupError, match="contains other files: give an empty folder"):
        back_up(source, tmp_path)
    with Admin(bootstrap_servers=source.address) as admin:
        admin.delete_topics(["orders"])
    source.make("orders")
    with pytest.raises(BackupError, match="topic orders was deleted and created again"):
        back_up(source, tmp_path / "backup")


def test_a_compacted_topic_is_read_again_when_tombstones_may_be_gone(sides: Sides, tmp_path: Path) -> None:
    source, target = sides
    source.make("states", cleanup_policy="compact", delete_retention_ms="1")
    source.send("states", "old", key=b"k")
    back_up(source, tmp_path)
    source.send("states", None, key=b"k")
    messages: list[str] = []
    back_up(source, tmp_path, messages=messages)
    assert messages[0].startswith("topic states is read again from its start: the last backup is older than delete.")
    restore(target, tmp_path)
    assert target.values("states") == ["old", None]
    assert len(list(tmp_path.glob("topics/states/0/*"))) == 1


@pytest.mark.behaviour("B10")
def test_access_rules_and_quotas_are_restored_and_users_without_a_password_are_named(tmp_path: Path) -> None:
    rules = [
        AclBinding("topic", "orders", "User:alice", "read", "allow"),
        AclBinding("group", "bill", "User:bob", "read", "deny", "prefixed", "10.0.0.1"),
    ]
    quotas = {
        ClientQuotaEntity(user="alice", client_id="app"): {"producer_byte_rate": 1e6},
        ClientQuotaEntity(client_id=DEFAULT): {"consumer_byte_rate": 2e6, "request_percentage": 50.0},
    }
    rights: dict[str, Any] = {"authorizer_class_name": "standard", "super_users": "User:ANONYMOUS"}
    messages: list[str] = []
    with Broker(**rights) as first, Broker(**rights) as second:
        with Admin(first.client_settings()) as admin:
            admin.create_acls(rules)
            admin.alter_client_quotas(quotas)
            admin.alter_user_scram_credentials(
                [UserScramCredentialUpsertion("alice", "a"), UserScramCredentialUpsertion("bob", "b", "SCRAM-SHA-512")]
            )
        back_up(Side(first.bootstrap_servers), tmp_path)
        with Admin(second.client_settings()) as admin:
            target = Side(second.bootstrap_servers)
            assert restore(target, tmp_path, messages=messages)[4:6] == (0, 0)
            assert admin.describe_acls(AclBindingFilter()) == []
            admin.alter_user_scram_credentials([UserScramCredentialUpsertion("alice", "a")])
            assert restore(target, tmp_path, with_access=True, messages=messages)[4:6] == (2, 2)
            assert sorted(admin.describe_acls(AclBindingFilter())) == sorted(rules)
            assert admin.describe_client_quotas() == quotas
    assert messages == ["passwords are not in a backup; set them again with ottla users add: bob (SCRAM-SHA-512)"]


@pytest.mark.behaviour("B10")
def test_offsets_of_a_streams_group_are_restored_and_its_members_continue_there(sides: Sides, tmp_path: Path) -> None:
    source, target = sides
    source.make("in")
    source.send("in", *"abc")
    with Wire(source.address) as wire:
        joined = join_streams(wire)
        topic = OffsetCommitRequestTopic("in", partitions=[OffsetCommitRequestPartition(0, 2)])
        done = wire.ask(OffsetCommitRequest("counting", joined.member_epoch, "a", topics=[topic]), 9)
        assert done.topics[0].partitions[0].error_code == 0
        assert join_streams(wire, -1).error_code == 0  # it leaves
    back_up(source, tmp_path)
    assert BackupFolder(tmp_path).read_manifest().groups["counting"].type == "streams"
    messages: list[str] = []
    assert restore(target, tmp_path, messages=messages).groups == 1
    assert messages == []
    with Wire(target.address) as wire:
        assert join_streams(wire).error_code == 0
    assert target.committed("counting") == {"in-0": 2}


def join_streams(wire: Wire, epoch: int = 0) -> Any:
    """Send a heartbeat of a streams group that reads the topic `in`."""
    joining: dict[str, Any] = (
        {"rebalance_timeout_ms": 60_000, "topology": TOPOLOGY, "process_id": "a"} if epoch == 0 else {}
    )
    return wire.ask(StreamsGroupHeartbeatRequest("counting", "a", epoch, **joining), 1)


@pytest.mark.behaviour("B10")
def test_configs_of_groups_and_start_offsets_of_share_groups_are_restored(sides: Sides, tmp_path: Path) -> None:
    source, target = sides
    source.make("orders")
    source.send("orders", *"abc")
    with Admin(bootstrap_servers=source.address) as admin:
        admin.alter_configs({ConfigResource("group", "sharing"): {"share.auto.offset.reset": "earliest"}})
        admin.alter_share_group_offsets("sharing", {TopicPartition("orders", 0): 2})
    back_up(source, tmp_path)
    messages: list[str] = []
    restore(target, tmp_path, messages=messages)
    assert messages == []
    assert configs_of(target, "group", "sharing") == {"share.auto.offset.reset": "earliest"}
    with Admin(bootstrap_servers=target.address) as admin:
        assert admin.list_share_group_offsets("sharing")[TopicPartition("orders", 0)].start_offset == 2


def test_a_file_whose_write_failed_is_discarded_and_its_records_are_read_again(
    sides: Sides, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = sides
    source.make("orders", 1)
    for number in range(8):
        source.send("orders", f"{number:03d}" + "x" * 600, partition=0)
    write, writes = LogWriter.write, []

    def fail_midway(self: LogWriter, columns: Any) -> None:
        write(self, columns)
        writes.append(columns.count)
        if len(writes) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(LogWriter, "write", fail_midway)
    with pytest.raises(OSError, match="No space left"):
        back_up(source, tmp_path, fetch_bytes=1000)
    monkeypatch.undo()

    back_up(source, tmp_path)

    assert verify_backup(BackupFolder(tmp_path)).problems == ()
    restore(target, tmp_path)
    assert contents(target, "orders") == contents(source, "orders")


def test_topics_that_differ_in_case_have_files_of_their_own_in_one_directory(tmp_path: Path) -> None:
    folder = BackupFolder(tmp_path)
    first = folder.create_segment_path("orders", 0, 5, 1000, "log")
    first.touch()
    second = folder.create_segment_path("orders", 0, 5, 1000, "log")  # as `Orders` is on macOS and Windows
    second.touch()
    stray = folder.create_segment_path("orders", 0, 6, 1000, "log")
    stray.touch()

    folder.delete_unlisted(
        [
            Segment(f"topics/{name}/0/{path.name}", 5, 6, 1, 0, "")
            for name, path in (("orders", first), ("Orders", second))
        ]
    )

    assert [first.exists(), second.exists(), stray.exists()] == [True, True, False]
    assert first != second
