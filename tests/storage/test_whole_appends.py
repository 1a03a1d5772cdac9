"""An append is complete or absent, if any step after its write fails."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from ottla.errors import KafkaError
from ottla.records.batch import iter_headers
from ottla.storage.indexes.transaction_index import TransactionIndex
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.log import Log
from ottla.storage.producers.producer_state import ProducerStateManager
from ottla.storage.segments.segment import Segment
from tests.storage.batches import NOW, append, batch, everything, open_log
from tests.storage.producing import end, send

A, B = 1, 2
"""Producers."""


def with_an_aborted_and_an_open_transaction(directory: Path) -> Log:
    """Offsets 0 to 2 aborted, 3 of another producer, 4 and 5 open; opened again after a clean stop."""
    log = open_log(directory)
    send(log, A, 0, 2, transactional=True)
    end(log, A, commit=False)
    append(log, b"plain")
    send(log, B, 0, 2, transactional=True)
    log.close()
    return open_log(directory, clean=True, recovery_point=log.end_offset)


def killed(log: Log, to: Path) -> Log:
    """Open a copy of the folder as a start after a kill does."""
    shutil.copytree(log.directory, to / log.directory.name)
    return open_log(to / log.directory.name, recovery_point=log.recovery_point)


def offsets(log: Log) -> list[int]:
    return [header.base_offset for _, header in iter_headers(everything(log))]


def aborted(log: Log) -> list[tuple[int, int]]:
    return [(each.producer_id, each.first_offset) for each in log.read_committed(0, 1 << 20)[1]]


@pytest.mark.parametrize("content", [b"", b"x", b"\0" * 34, b"\xff" * 68])
def test_a_transaction_ends_even_if_the_file_of_aborted_transactions_is_damaged(tmp_path: Path, content: bytes) -> None:
    log = with_an_aborted_and_an_open_transaction(tmp_path / "t-0")
    (tmp_path / "t-0" / "00000000000000000000.txnindex").write_bytes(content)
    assert end(log, B, commit=False).base_offset == 6
    assert append(log, b"behind") == 7
    for each in (log, killed(log, tmp_path / "copy")):
        assert offsets(each) == [0, 2, 3, 4, 6, 7]
        assert aborted(each) == [(A, 0), (B, 4)]


@pytest.mark.parametrize("name", [".txnindex", "leader-epoch-checkpoint"])
def test_an_append_fails_if_its_related_state_is_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    log = with_an_aborted_and_an_open_transaction(tmp_path / "t-0")
    log.release()

    really = os.open

    def failing(path: Any, flags: int, *more: Any) -> int:
        if str(path).endswith(name) and flags & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return really(path, flags, *more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", failing)
        with pytest.raises(KafkaError, match="Input/output error"):
            end(log, B, commit=False)
    assert log.last_stable_offset == 4
    assert end(log, B, commit=False).base_offset == 6
    assert aborted(log) == [(A, 0), (B, 4)]
    assert offsets(killed(log, tmp_path / "copy")) == [0, 2, 3, 4, 6]


STEPS = [
    (Segment, "account"),
    (LeaderEpochs, "assign"),
    (ProducerStateManager, "add"),
    (TransactionIndex, "append"),
]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("raised", [MemoryError, OSError, KeyboardInterrupt])
@pytest.mark.parametrize(("owner", "name"), STEPS, ids=[name for _, name in STEPS])
def test_a_failure_after_the_write_undoes_the_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: type, name: str, raised: type[BaseException], when: str
) -> None:
    log = with_an_aborted_and_an_open_transaction(tmp_path / "t-0")
    real = getattr(owner, name)

    def step(*arguments: Any) -> Any:
        if when == "after":
            real(*arguments)
        raise raised

    monkeypatch.setattr(owner, name, step)
    with pytest.raises((raised, KafkaError)):
        end(log, B, commit=False)
    monkeypatch.setattr(owner, name, real)
    assert (log.end_offset, log.last_stable_offset, aborted(log)) == (6, 4, [(A, 0)])
    assert offsets(killed(log, tmp_path / "one")) == [0, 2, 3, 4]
    assert end(log, B, commit=False).base_offset == 6
    assert append(log, b"behind") == 7
    for each in (log, killed(log, tmp_path / "two")):
        assert offsets(each) == [0, 2, 3, 4, 6, 7]
        assert aborted(each) == [(A, 0), (B, 4)]


def test_an_append_that_cannot_be_truncated_is_overwritten_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path / "t-0")
    append(log, b"first")
    with monkeypatch.context() as patch:
        patch.setattr(LeaderEpochs, "assign", lambda *_: 1 / 0)

        def no(fd: int, size: int) -> None:
            raise OSError(errno.EIO, "no")

        patch.setattr(os, "ftruncate", no)
        with pytest.raises(ZeroDivisionError):
            append(log, b"a longer record than the next")
    assert append(log, b"short") == 1
    assert offsets(log) == offsets(killed(log, tmp_path / "copy")) == [0, 1]


def test_a_retry_of_an_undone_append_is_not_a_repeat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path / "t-0")
    send(log, A, 0)
    with monkeypatch.context() as patch:
        patch.setattr(LeaderEpochs, "assign", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            send(log, A, 1)
    assert not send(log, A, 1).repeated
    assert offsets(log) == [0, 1]


def test_a_segment_that_cannot_be_created_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path / "t-0")
    append(log, b"a")
    real = os.ftruncate

    def no(fd: int, size: int) -> None:
        raise OSError(errno.EIO, "no")

    monkeypatch.setattr(os, "ftruncate", no)
    try:
        log.roll(NOW)
    except KafkaError:
        assert len(list((tmp_path / "t-0").glob("*.log"))) == 1
    monkeypatch.setattr(os, "ftruncate", real)
    log.append(batch(b"b"), leader_epoch=0, now_ms=NOW)
    assert offsets(killed(log, tmp_path / "copy")) == [0, 1]


def test_a_rebuilt_file_of_aborted_transactions_is_never_missing(tmp_path: Path) -> None:
    log = with_an_aborted_and_an_open_transaction(tmp_path / "t-0")
    (tmp_path / "t-0" / "00000000000000000000.txnindex").write_bytes(b"damaged")
    assert aborted(log) == [(A, 0)]
    again = killed(log, tmp_path / "before the flush")
    assert aborted(again) == [(A, 0)]
    log.flush()
    assert aborted(killed(log, tmp_path / "after the flush")) == [(A, 0)]


def test_a_transaction_with_a_damaged_marker_stays_aborted(tmp_path: Path) -> None:
    log = with_an_aborted_and_an_open_transaction(tmp_path / "t-0")
    log.close()
    path = log.segments[0].path
    whole = path.read_bytes()
    position, header = next(each for each in iter_headers(whole) if each[1].is_control)
    for place in range(position + 62, position + header.size_bytes):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        again = open_log(tmp_path / "t-0", clean=True, recovery_point=6)
        assert aborted(again) == [(A, 0)]
