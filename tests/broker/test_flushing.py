"""`flush.messages` and `flush.ms`: what is on the disk before the answer, and what soon after."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ErrorCode
from tests.broker.wire import Wire, batch, produce, values


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The threads that forced something to the disk."""
    found: list[str] = []
    fsync = os.fsync

    def noting(fd: int) -> None:
        found.append(threading.current_thread().name)
        fsync(fd)

    monkeypatch.setattr(os, "fsync", noting)
    return found


def test_with_flush_messages_1_a_response_waits_for_the_flush_outside_the_event_loop(
    wire: Wire, synced: list[str]
) -> None:
    wire.create("t", flush_messages=1)
    del synced[:]
    assert wire.produce("t", b"a").error_code == 0
    assert synced
    assert all(name.startswith("ottla-disk") for name in synced)


def test_without_flush_settings_nothing_is_flushed(wire: Wire, synced: list[str]) -> None:
    wire.create("t")
    del synced[:]
    assert wire.produce("t", b"a").error_code == 0
    assert not synced


def test_responses_stay_in_order_while_they_wait_for_the_flush(wire: Wire) -> None:
    wire.create("t", flush_messages=1)
    sent = [wire.send(produce("t", batch([b"%d" % n])), 9) for n in range(50)]
    assert [wire.receive(produce("t", None), 9)[0] for _ in sent] == sent
    assert values(wire.fetch("t")) == [b"%d" % n for n in range(50)]


def test_a_failed_flush_is_an_error_for_the_producer(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    wire.create("t", flush_messages=1)

    def failing(fd: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing)
        refused = wire.produce("t", b"a")
    assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert (refused.error_message or "").startswith("cannot flush the log in "), "the reason, without the code's name"
    assert wire.produce("t", b"b").error_code == 0


def test_flush_ms_flushes_records_after_their_response(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    wire.create("t", flush_ms=50)
    forced = threading.Event()
    fsync = os.fsync

    def noting(fd: int) -> None:
        fsync(fd)
        forced.set()

    monkeypatch.setattr(os, "fsync", noting)
    wire.produce("t", b"a")
    assert forced.wait(60)


def test_full_segments_are_flushed_in_the_background(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    wire.create("t", segment_bytes=1_048_576)
    forced = threading.Event()
    fsync = os.fsync

    def noting(fd: int) -> None:
        fsync(fd)
        forced.set()

    monkeypatch.setattr(os, "fsync", noting)
    for _ in range(3):
        wire.produce("t", bytes(600_000))
    assert forced.wait(60)


@pytest.mark.behaviour("B2")
def test_only_retention_deletes_and_only_whole_segments(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "log_segment_bytes": 1_048_576,
        "log_retention_bytes": 1_000_000,
        "log_retention_ms": -1,
        "log_retention_check_interval_ms": 50,
    }
    with Broker(tmp_path, **settings) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        for _ in range(5):
            wire.produce("t", bytes(600_000))
        while (found := wire.fetch("t")).error_code == 0:
            pass
        assert found.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        start = wire.fetch("t", 5).log_start_offset
        assert start > 0
        assert len(values(wire.fetch("t", start, partition_max_bytes=1))) == 1
