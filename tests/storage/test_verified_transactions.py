"""State that no CRC covers: each flipped bit of aborted transactions and leader epochs is found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ottla.records.batch import iter_headers
from ottla.storage.inspection.state_files import ABORTED
from tests.storage.batches import append, open_log
from tests.storage.producing import end, send
from tests.storage.test_inspection import checked, faults

AT_EPOCH = 12


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Create a log of two producers with interleaved transactions, one of each aborted, and other records before and after."""
    log = open_log(tmp_path / "t-0")
    for _ in range(4):
        append(log, b"plain")
    send(log, 7, 0, transactional=True)
    send(log, 8, 0, transactional=True)
    end(log, 7, commit=False)
    send(log, 7, 1, transactional=True)
    end(log, 8, commit=False)
    end(log, 7, commit=True)
    append(log, b"plain")
    log.close()
    return log.directory


def test_each_bit_of_an_aborted_transaction_is_found_with_file_and_position(folder: Path) -> None:
    (path,) = folder.glob("*.txnindex")
    rows = path.read_bytes()
    assert len(rows) == 2 * ABORTED.size
    assert faults(folder) == []
    for position in range(len(rows)):
        for bit in range(8):
            changed = bytearray(rows)
            changed[position] ^= 1 << bit
            path.write_bytes(changed)
            found = faults(folder)
            assert found, (position, bit)
            assert all(fault.file == path for fault in found)
    path.write_bytes(rows)
    assert checked(folder).faults == []


def test_each_bit_of_a_leader_epoch_is_found_at_its_batch(folder: Path) -> None:
    (path,) = folder.glob("*.log")
    data = path.read_bytes()
    position, header = list(iter_headers(data))[3]
    for bit in range(31):
        changed = bytearray(data)
        changed[position + AT_EPOCH + 3 - bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        (fault,) = faults(folder)
        assert (fault.file, fault.position, fault.offset) == (path, position, header.base_offset), bit
        assert "leader epoch" in fault.reason


def test_the_first_list_of_aborted_transactions_is_in_its_folder_on_the_disk_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path / "t-0")
    append(log, b"plain")
    log.flush()
    forced: list[int] = []
    force = os.fsync

    def noting(fd: int) -> None:
        forced.append(os.fstat(fd).st_ino)
        force(fd)

    monkeypatch.setattr(os, "fsync", noting)
    send(log, 7, 0, transactional=True)
    end(log, 7, commit=False)
    log.flush()
    (path,) = log.directory.glob("*.txnindex")
    assert log.directory.stat().st_ino in forced[forced.index(path.stat().st_ino) :]
    send(log, 7, 1, transactional=True)
    end(log, 7, commit=False)
    forced.clear()
    log.flush()
    assert log.directory.stat().st_ino not in forced
