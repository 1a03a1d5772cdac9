"""A snapshot of producers that cannot be written costs one sentence in the log, and nothing else."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from ottla.storage.log_config import LogConfig
from ottla.storage.producers import producer_snapshot, snapshot_keeper
from tests.storage.batches import NOW, open_log
from tests.storage.producing import send

PRODUCER = 7


def failing(*arguments: Any, **more: Any) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def sentences(caplog: pytest.LogCaptureFixture) -> list[str]:
    assert not any(record.exc_info for record in caplog.records)
    return [record.getMessage() for record in caplog.records if "snapshot of producers" in record.getMessage()]


def test_a_failed_snapshot_stops_neither_a_roll_nor_a_close(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(tmp_path / "t-0", LogConfig())
    send(log, PRODUCER, 0)
    with monkeypatch.context() as patch:
        patch.setattr(snapshot_keeper, "write_snapshot", failing)
        log.roll(NOW)
        send(log, PRODUCER, 1)
        log.close()
    messages = sentences(caplog)
    assert len(messages) == 2
    assert all("No space left on device" in text and str(tmp_path / "t-0") in text for text in messages)
    again = open_log(tmp_path / "t-0", clean=True, recovery_point=2)
    assert send(again, PRODUCER, 1).repeated
    assert not producer_snapshot.snapshot_offsets(tmp_path / "t-0")


@pytest.mark.parametrize("step", ["OpenFile", "write_in"])
def test_a_failed_snapshot_between_segments_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, step: str
) -> None:
    log = open_log(tmp_path / "t-0", LogConfig())
    send(log, PRODUCER, 0)
    log.flush()
    with monkeypatch.context() as patch:
        patch.setattr(snapshot_keeper, step, failing)
        keep = log.keeping_producers()
        if keep is not None:
            keep()
    assert len(sentences(caplog)) == 1
    send(log, PRODUCER, 1)
    assert log.end_offset == 2


def test_a_snapshot_overtaken_by_a_truncation_is_not_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = open_log(tmp_path / "t-0", LogConfig())
    begun = []
    for number in range(2):
        send(log, PRODUCER, number)
        log.flush()
        begun.append(log.keeping_producers())
    send(log, PRODUCER, 2)
    log.truncate_to(2, now_ms=NOW)
    for number in range(2, 4):
        send(log, PRODUCER, number)
        log.flush()
        begun.append(log.keeping_producers())
    for keep in begun:
        if keep is not None:
            keep()
    assert not sentences(caplog)
    assert producer_snapshot.snapshot_offsets(tmp_path / "t-0") == [3, 4]
