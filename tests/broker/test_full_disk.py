"""A broker whose disk is full, failing or read-only: it rejects writes, serves reads, and recovers."""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ErrorCode
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.storage.inspection import find
from tests.broker.wire import Wire, values
from tests.patience import eventually
from tests.small_disk import mounted

FAULTS = (errno.ENOSPC, errno.EIO, errno.EROFS, errno.EACCES)
WRITING = os.O_CREAT | os.O_RDWR | os.O_WRONLY
MEGABYTE = 1 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path, 4) as place:
        yield place


@pytest.fixture(params=FAULTS, ids=errno.errorcode.get)
def broken(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """Makes every call fail that would change the disk, as long as its context lasts."""
    number: int = request.param
    opening = os.open

    def fails(*arguments: Any, **more: Any) -> Any:
        raise OSError(number, os.strerror(number))

    def opens(path: Any, flags: int, mode: int = 0o777, **more: Any) -> int:
        fd: int = fails() if flags & WRITING else opening(path, flags, mode, **more)
        return fd

    def context() -> Any:
        patched = monkeypatch.context()
        patch = patched.__enter__()
        for name in ("pwrite", "fsync", "ftruncate", "mkdir", "replace", "rename", "unlink"):
            patch.setattr(os, name, fails)
        patch.setattr(os, "open", opens)
        return patched

    return context


def create(wire: Wire, name: str) -> int:
    (result,) = wire.ask(CreateTopicsRequest([CreatableTopic(name, 1, 1)])).topics
    code: int = result.error_code
    return code


def commit(wire: Wire) -> int:
    partition = OffsetCommitRequestPartition(0, 1)
    topic = OffsetCommitRequestTopic("t", partitions=[partition])
    response = wire.ask(OffsetCommitRequest("g", topics=[topic]), 8)
    code: int = response.topics[0].partitions[0].error_code
    return code


def test_a_disk_that_fails_every_write_affects_responses_only(wire: Wire, broken: Callable[[], Any]) -> None:
    wire.create("t")
    wire.create("untouched")
    wire.produce("t", b"a")
    assert commit(wire) == 0
    refusing = broken()
    assert wire.produce("t", b"b").error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert wire.produce("untouched", b"b").error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert create(wire, "new") == ErrorCode.KAFKA_STORAGE_ERROR
    assert commit(wire) != 0
    assert values(wire.fetch("t")) == [b"a"]
    assert wire.fetch("untouched").error_code in (0, ErrorCode.KAFKA_STORAGE_ERROR)
    refusing.__exit__(None, None, None)
    assert wire.produce("t", b"c").base_offset == 1
    assert wire.produce("untouched", b"c").base_offset == 0
    assert create(wire, "new") == 0
    assert commit(wire) == 0
    assert values(wire.fetch("t")) == [b"a", b"c"]


def test_a_full_disk_accepts_records_again_when_it_has_space(small_disk: Path) -> None:
    filler = small_disk / "filler"
    data = small_disk / "data"
    with Broker(data) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        filler.write_bytes(bytes(MEGABYTE))
        accepted = 0
        while not (result := wire.produce("t", b"x" * 100_000)).error_code:
            accepted += 1
        assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert result.error_message is not None
        assert "No space left on device" in result.error_message
        while not (result := wire.produce("t", b"y" * 100)).error_code:
            accepted += 1
        assert create(wire, "new") == ErrorCode.KAFKA_STORAGE_ERROR
        assert len(values(wire.fetch("t", partition_max_bytes=8 * MEGABYTE))) == accepted
        filler.unlink()
        assert wire.produce("t", b"z" * 100_000).base_offset == accepted
        assert create(wire, "newer") == 0
        assert wire.produce("newer", b"a").base_offset == 0
    checks = list(find(data).run(lambda size: None, deep=True))
    assert [check.faults for check in checks if check.faults] == []
    with Broker(data) as broker, Wire(broker.bootstrap_servers) as wire:
        assert wire.produce("t", b"a").base_offset == accepted + 1


def filler_takes_the_rest(filler: Path) -> None:
    """Fill the disk completely."""
    with open(filler, "ab", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))


def test_a_broker_killed_on_a_full_disk_starts_reads_deletes_and_frees_space(
    small_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data, filler = small_disk / "data", small_disk / "filler"
    broker = Broker(data, process=True).start()
    with Wire(broker.bootstrap_servers) as wire:
        for topic in ("t", "old", "unwanted"):
            wire.create(topic, retention_ms=1 if topic == "old" else -1)
        for topic in ("t", "unwanted"):
            for _ in range(3):
                assert wire.produce(topic, b"x" * 100_000).error_code == 0
        assert wire.produce("old", b"o" * 100_000).error_code == 0
        filler_takes_the_rest(filler)
        assert wire.produce("t", b"y" * 100_000).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    os.kill(broker.pid, signal.SIGKILL)
    broker.close()
    with Broker(data, log_retention_check_interval_ms=100) as again, Wire(again.bootstrap_servers) as wire:
        assert [message for message in caplog.messages if "the disk of" in message] == [
            f"the disk of {data} is full: free some space, and try again; what is there is served, and topics can be deleted"
        ]
        assert values(wire.fetch("t", partition_max_bytes=8 * MEGABYTE)) == [b"x" * 100_000] * 3
        deadline = time.monotonic() + 30
        while wire.fetch("old").error_code != ErrorCode.OFFSET_OUT_OF_RANGE:
            assert time.monotonic() < deadline
        filler_takes_the_rest(filler)
        assert create(wire, "new") == ErrorCode.KAFKA_STORAGE_ERROR
        (deleted,) = wire.ask(DeleteTopicsRequest([DeleteTopicState("unwanted")])).responses
        assert deleted.error_code == 0, deleted.error_message
        eventually(lambda: wire.produce("t", b"z" * 100_000).error_code == 0)
