"""A crash of the broker process loses no acknowledged record."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import threading
from pathlib import Path

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.broker.wire import Wire, batch, produce, values
from tests.patience import eventually


def kill(broker: Broker) -> None:
    os.kill(broker.pid, signal.SIGKILL)
    broker.close()


@pytest.mark.behaviour("P3")
def test_acknowledged_records_survive_kill_9(tmp_path: Path) -> None:
    broker = Broker(tmp_path, process=True).start()
    acknowledged = 0
    with Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        death = threading.Timer(0.3, lambda: os.kill(broker.pid, signal.SIGKILL))
        try:
            while True:
                wire.ask(produce("t", batch([b"%d" % (acknowledged + n) for n in range(10)])), 9)
                acknowledged += 10
                if acknowledged == 10:
                    death.start()
        except (EOFError, ConnectionError):
            pass
    broker.close()
    assert acknowledged > 0
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        offset, found = 0, []
        while piece := values(wire.fetch("t", offset), offset):
            found += piece
            offset += len(piece)
    assert found[:acknowledged] == [b"%d" % n for n in range(acknowledged)]


def test_a_torn_tail_is_truncated_and_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    broker = Broker(tmp_path, process=True).start()
    with Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        wire.produce("t", b"whole")
    kill(broker)
    with open(next((tmp_path / "t-0").glob("*.log")), "ab") as log:
        log.write(batch([b"torn"])[:-2])
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        assert values(wire.fetch("t")) == [b"whole"]
        assert wire.produce("t", b"next").base_offset == 1
    messages = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING and "t-0" in r.getMessage()]
    assert len(messages) == 1
    assert "cut 70 bytes" in messages[0]
    with Broker(tmp_path):
        pass
    assert len([r for r in caplog.records if "cut 70 bytes" in r.getMessage()]) == 1


def test_topics_created_and_deleted_before_a_kill_stay_so(tmp_path: Path) -> None:
    broker = Broker(tmp_path, process=True).start()
    with Wire(broker.bootstrap_servers) as wire:
        wire.create("kept", partitions=3)
        wire.create("deleted")
        wire.ask(DeleteTopicsRequest([DeleteTopicState("deleted")]))
    kill(broker)
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        kept, deleted = wire.metadata("kept", "deleted").topics
        assert len(kept.partitions) == 3
        assert deleted.error_code != 0


def test_a_folder_of_an_unknown_topic_is_kept_and_set_aside_for_a_topic_of_its_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        wire.produce("t", b"a")
    (tmp_path / "t-0").rename(tmp_path / "unknown-0")
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        assert "unknown-0 belongs to no partition of this broker, and is kept" in caplog.text
        kept = next(tmp_path.glob("unknown-0/*.log")).read_bytes()
        (created,) = wire.ask(CreateTopicsRequest([CreatableTopic("unknown", 1, 1)])).topics
        assert created.error_code == 0
        assert wire.produce("unknown", b"b").base_offset == 0
    (aside,) = (path for path in tmp_path.glob("unknown-0*/*.log") if path.parent.name != "unknown-0")
    assert aside.read_bytes() == kept
    assert "is of an earlier topic of that name: renamed to" in caplog.text


def test_a_folder_of_a_deleted_topic_is_removed_at_the_next_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broker = Broker(tmp_path, process=True).start()
    with Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        wire.produce("t", b"a")
        copy = shutil.copytree(tmp_path / "t-0", tmp_path / "copy")
        wire.ask(DeleteTopicsRequest([DeleteTopicState("t")]))
    kill(broker)
    for left in tmp_path.glob("t-0*"):
        shutil.rmtree(left)
    copy.rename(tmp_path / "t-0")  # as if the crash had happened before the folder was removed
    caplog.set_level(logging.INFO)
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        assert values(wire.fetch("t")) == []
        assert wire.produce("t", b"b").base_offset == 0
    assert [path.name for path in tmp_path.glob("t-*")] == ["t-0"]
    assert "deleting the files of deleted topics that an earlier run left: 1 folders" in caplog.text


def torn(path: Path, topics: list[str]) -> list[Path]:
    """A directory that a kill left, with half a batch at the end of each log; the logs."""
    broker = Broker(path, process=True).start()
    with Wire(broker.bootstrap_servers) as wire:
        for topic in topics:
            wire.create(topic)
            wire.produce(topic, b"whole")
    kill(broker)
    logs = [next((path / f"{topic}-0").glob("*.log")) for topic in topics]
    for each in logs:
        with open(each, "ab") as log:
            log.write(batch([b"torn"])[:-2])
    return logs


def test_small_logs_are_recovered_in_the_background_after_a_crash(tmp_path: Path) -> None:
    logs = torn(tmp_path, ["a", "b"])
    whole = [log.stat().st_size - 70 for log in logs]
    with Broker(tmp_path):
        eventually(lambda: [log.stat().st_size for log in logs] == whole)


def test_no_shutdown_is_clean_before_every_log_was_recovered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = torn(tmp_path, ["a", "b"])
    whole = [log.stat().st_size - 70 for log in logs]
    monkeypatch.setattr("ottla.broker.periodic_tasks.PartitionSweep.start", lambda sweep, partitions: None)
    Broker(tmp_path).start().close()
    assert [log.stat().st_size for log in logs] == whole
    assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_a_log_with_much_to_recover_is_recovered_before_clients_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.broker.replica_manager.partitions.AT_ONCE_BYTES", 100)
    monkeypatch.setattr("ottla.broker.periodic_tasks.PartitionSweep.start", lambda sweep, partitions: None)
    (log,) = torn(tmp_path, ["a"])
    whole = log.stat().st_size - 70
    with Broker(tmp_path):
        assert log.stat().st_size == whole
