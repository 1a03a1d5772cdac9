"""A topic is deleted while other clients are served: its files are deleted by another thread."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from ottla import Broker
from ottla.errors import ErrorCode
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.storage.directory.deletions import Deletions
from tests.broker.damaging import kill
from tests.broker.wire import Wire, values

SECONDS = 30.0
DELETION = DeleteTopicsRequest([DeleteTopicState("t")], timeout_ms=60_000)


class Slow:
    """A replacement of the removal of files that waits until the test continues it."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        real = Deletions.remove

        def remove(deletions: Deletions) -> None:
            self.begun.set()
            assert self.go_on.wait(SECONDS)
            real(deletions)

        patch.setattr(Deletions, "remove", remove)


def test_other_clients_are_served_while_the_files_of_a_topic_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow(monkeypatch)
    with (
        Broker(tmp_path) as broker,
        Wire(broker.bootstrap_servers) as deleting,
        Wire(broker.bootstrap_servers) as other,
    ):
        deleting.create("t", partitions=20)
        deleting.produce("t", b"a")
        deleting.send(DELETION)
        assert slow.begun.wait(SECONDS)
        assert other.ask(ApiVersionsRequest("test", "1"), 3).error_code == 0
        assert other.metadata("t").topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        (result,) = deleting.receive(DELETION)[1].responses
        assert result.error_code == 0
        assert list(tmp_path.glob("t-0*"))
        slow.go_on.set()
    assert not list(tmp_path.glob("t-*"))


def test_a_topic_can_be_recreated_before_the_files_of_the_first_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow(monkeypatch)
    with (
        Broker(tmp_path) as broker,
        Wire(broker.bootstrap_servers) as deleting,
        Wire(broker.bootstrap_servers) as other,
    ):
        other.create("t", partitions=3)
        other.produce("t", b"old")
        deleting.send(DELETION)
        assert slow.begun.wait(SECONDS)
        other.create("t", partitions=2)
        assert other.produce("t", b"new").base_offset == 0
        slow.go_on.set()
        assert deleting.receive(DELETION)[1].responses[0].error_code == 0
        assert values(other.fetch("t")) == [b"new"]
        assert other.produce("t", b"newer").base_offset == 1
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        assert values(wire.fetch("t")) == [b"new", b"newer"]


def test_a_stopping_broker_completes_the_deletion_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(monkeypatch)
    broker = Broker(tmp_path).start()
    with Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        wire.produce("t", b"a")
        wire.send(DELETION)
        assert slow.begun.wait(SECONDS)
        stopping = threading.Thread(target=broker.close)
        stopping.start()
        slow.go_on.set()
        assert wire.receive(DELETION)[1].responses[0].error_code == 0
        stopping.join(SECONDS)
    assert not list(tmp_path.glob("t-*"))


@pytest.mark.parametrize("answered", [0, 1])
def test_a_topic_does_not_reappear_after_a_kill_during_its_deletion(tmp_path: Path, answered: int) -> None:
    broker = Broker(tmp_path, process=True).start()
    with Wire(broker.bootstrap_servers) as wire:
        wire.create("t", partitions=30)
        for number in range(30):
            wire.produce("t", b"old", partition=number)
        wire.send(DELETION)
        for _ in range(answered):
            wire.receive(DELETION)
        kill(broker)
    with Broker(tmp_path) as again, Wire(again.bootstrap_servers) as wire:
        known = wire.metadata("t").topics[0].error_code == 0
        assert not (known and answered)
        if known:  # the kill came first: then all of it is there
            assert len(list(tmp_path.glob("t-*/*.log"))) == 30
            return
        assert not [path for path in tmp_path.glob("t-*") if not path.name.endswith("-delete")]
        wire.create("t", partitions=30)
        assert values(wire.fetch("t")) == []
        assert wire.produce("t", b"new", partition=7).base_offset == 0
    assert {path.name for path in tmp_path.glob("t-*")} == {"t-0", "t-7"}
