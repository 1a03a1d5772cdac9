"""Producers after a restart: snapshots, what is found in the log again, and damaged files."""

from __future__ import annotations

import errno
import os
import random
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import CorruptRecordError
from ottla.storage.indexes.transaction_index import ROW, check_rows
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.producers.producer_entry import ProducerEntry, RememberedBatch
from ottla.storage.producers.producer_snapshot import decode_snapshot, encode_snapshot, snapshot_offsets, snapshot_path
from ottla.storage.producers.snapshot_keeper import SnapshotKeeper
from tests.storage.batches import NOW, open_log
from tests.storage.producing import end, send

SMALL = LogConfig(segment_bytes=600, segment_ms=2**62)


def filled(directory: Path) -> Log:
    """A log of several segments with plain producers, ended transactions and open ones."""
    log = open_log(directory, SMALL)
    chance = random.Random(3)
    sequences = dict.fromkeys((1, 2, 11, 12, 13), 0)
    for _ in range(80):
        id_ = chance.choice(list(sequences))
        count = chance.randrange(1, 4)
        send(log, id_, sequences[id_], count, transactional=id_ > 10)
        sequences[id_] += count
        if id_ in (11, 12) and chance.random() < 0.4:
            end(log, id_, commit=chance.random() < 0.5, coordinator_epoch=2)
    return log


def known(log: Log) -> object:
    """All that a log knows of producers, in a form that can be compared."""
    log.producers.check_invariants()
    entries = {
        id_: (entry.epoch, entry.coordinator_epoch, entry.last_timestamp, entry.transaction_start, list(entry.batches))
        for id_, entry in log.producers.entries.items()
    }
    aborted = [transaction for segment in log.segments for transaction in segment.transactions]
    return entries, log.producers.open, log.last_stable_offset, aborted


@pytest.mark.parametrize("flushed", [False, True])
@pytest.mark.parametrize("clean", [False, True])
def test_after_a_restart_the_producer_state_is_unchanged(tmp_path: Path, clean: bool, flushed: bool) -> None:
    log = filled(tmp_path / "t-0")
    before = known(log)
    if flushed:
        log.flush()
    if clean:
        log.close()
    again = open_log(tmp_path / "t-0", SMALL, clean=clean, recovery_point=log.recovery_point)
    assert known(again) == before
    assert len(log.segments) > 5


def test_after_a_clean_shutdown_the_snapshot_is_sufficient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = filled(tmp_path / "t-0")
    before = known(log)
    log.close()
    assert snapshot_offsets(log.directory)[-1] == log.end_offset
    monkeypatch.setattr("ottla.storage.recovery.producer_recovery.iter_headers_and_damage", lambda *args: iter(()))
    assert known(open_log(tmp_path / "t-0", SMALL, clean=True)) == before


@pytest.mark.parametrize("damage", ["none is left", "each is torn", "each has a wrong bit"])
@pytest.mark.parametrize("clean", [False, True])
def test_without_a_valid_snapshot_the_state_is_rebuilt_from_the_log(tmp_path: Path, clean: bool, damage: str) -> None:
    log = filled(tmp_path / "t-0")
    before = known(log)
    log.close()
    for offset in snapshot_offsets(log.directory):
        path = snapshot_path(log.directory, offset)
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 4
        if damage == "none is left":
            path.unlink()
        else:
            path.write_bytes(data if damage == "each has a wrong bit" else data[: len(data) // 2])
    assert known(open_log(tmp_path / "t-0", SMALL, clean=clean)) == before


def test_a_truncated_log_keeps_the_state_of_the_remaining_batches(tmp_path: Path) -> None:
    log = filled(tmp_path / "t-0")
    log.close()
    last = next(each for each in reversed(log.segments) if each.size).path
    last.write_bytes(last.read_bytes()[:-5])
    cut = open_log(tmp_path / "t-0", SMALL, recovery_point=0)
    assert cut.recovery is not None
    shutil.rmtree(tmp_path / "u-0", ignore_errors=True)
    shutil.copytree(tmp_path / "t-0", tmp_path / "u-0")
    for path in (tmp_path / "u-0").glob("*.snapshot"):
        path.unlink()
    assert known(cut) == known(open_log(tmp_path / "u-0", SMALL))
    assert max(snapshot_offsets(cut.directory)) <= cut.end_offset


def test_retention_deletes_snapshots_with_their_segments_and_keeps_the_state(tmp_path: Path) -> None:
    log = filled(tmp_path / "t-0")
    entries = known(log)[0]  # type: ignore[index]
    log.config = LogConfig(segment_bytes=600, segment_ms=2**62, retention_bytes=1)
    log.retain(NOW)
    assert snapshot_offsets(log.directory) == [base for base in log.bases if base]
    assert known(log)[0] == entries  # type: ignore[index]
    log.close()
    assert known(open_log(tmp_path / "t-0", SMALL, clean=True))[0] == entries  # type: ignore[index]


def test_unneeded_snapshots_are_removed_at_the_next_start(tmp_path: Path) -> None:
    log = filled(tmp_path / "t-0")
    log.close()
    again = open_log(tmp_path / "t-0", SMALL, clean=True)
    send(again, 50, 0)
    again.close()
    third = open_log(tmp_path / "t-0", SMALL, clean=True)
    bases = {base for base in third.bases if base}
    assert set(snapshot_offsets(third.directory)) == bases | {third.end_offset}


@pytest.mark.parametrize("damaged", [b"x" * 33, ROW.pack(1, 7, 0, 5, 6), ROW.pack(0, 7, 9, 5, 6), bytes(34) * 2])
def test_a_damaged_transaction_index_is_rebuilt(tmp_path: Path, damaged: bytes) -> None:
    log = filled(tmp_path / "t-0")
    for id_ in (11, 12, 13):
        end(log, id_, commit=False, coordinator_epoch=2)
    before = known(log)
    log.close()
    paths = sorted(log.directory.glob("*.txnindex"))
    for path in paths:
        path.write_bytes(damaged)
    again = open_log(tmp_path / "t-0", SMALL, clean=True)
    offset = again.start_offset
    while offset < again.last_stable_offset:
        piece, _ = again.read_committed(offset, 1 << 20)
        assert piece is not None
        offset = again.bases[again.bases.index(offset) + 1] if again.bases[-1] > offset else again.end_offset
    assert paths
    assert known(again) == before


entries = st.builds(
    ProducerEntry,
    st.integers(0, 2**63 - 1),
    st.integers(0, 2**15 - 1),
    st.integers(-1, 2**31 - 1),
    st.integers(-1, 2**63 - 1),
    st.integers(-1, 2**63 - 1),
)
batches = st.lists(
    st.builds(
        RememberedBatch,
        st.integers(0, 2**31 - 1),
        st.integers(0, 2**63 - 1),
        st.integers(0, 2**31 - 1),
        st.integers(-1, 2**63 - 1),
    ),
    max_size=7,
)


def facts(entry: ProducerEntry) -> object:
    return (
        entry.producer_id,
        entry.epoch,
        entry.coordinator_epoch,
        entry.last_timestamp,
        entry.transaction_start,
        list(entry.batches),
    )


@given(made=st.lists(st.tuples(entries, batches), max_size=4, unique_by=lambda pair: pair[0].producer_id))
def test_a_snapshot_returns_the_stored_state(made: list[tuple[ProducerEntry, list[RememberedBatch]]]) -> None:
    for entry, remembered in made:
        entry.batches.extend(remembered)
        if remembered:
            entry.last_timestamp = remembered[-1].timestamp
    found = decode_snapshot(encode_snapshot(entry for entry, _ in made), 5)
    assert [facts(entry) for entry in found] == [facts(entry) for entry, _ in made]


@given(at=st.integers(0, 10**6), bit=st.integers(0, 7), cut=st.integers(0, 10**6), keep=st.booleans())
def test_every_flipped_bit_and_torn_end_of_a_snapshot_is_detected(at: int, bit: int, cut: int, keep: bool) -> None:
    entry = ProducerEntry(7, 1, 2, NOW, 5)
    entry.batches.append(RememberedBatch(3, 9, 2, NOW))
    data = bytearray(encode_snapshot([entry, ProducerEntry(8)]))
    if keep:
        data[at % len(data)] ^= 1 << bit
    else:
        del data[cut % len(data) :]
    with pytest.raises(CorruptRecordError):
        decode_snapshot(bytes(data), 0)


@given(data=st.binary(max_size=150))
def test_any_bytes_are_a_transaction_index_or_an_error(data: bytes) -> None:
    try:
        check_rows(bytearray(data), Path("x.txnindex"), 0)
    except CorruptRecordError:
        return
    rows = list(ROW.iter_unpack(data))
    assert [row[3] for row in rows] == sorted({row[3] for row in rows})


@pytest.mark.parametrize("when", ["in between", "at a segment's beginning"])
def test_a_snapshot_that_cannot_be_written_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, when: str
) -> None:
    log = open_log(tmp_path / "t-0")
    send(log, 7, 0)
    log.flush()

    def full(path: Path, data: bytes) -> None:
        path.touch()
        no_room()

    def no_room(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    keep = log.keeping_producers()
    assert keep is not None
    monkeypatch.setattr(os, "pwrite", no_room)
    monkeypatch.setattr(Path, "write_bytes", full)
    keep() if when == "in between" else SnapshotKeeper(log.directory).write(1, log.producers)
    assert list(log.directory.glob("*.snapshot")) == []
    assert "No space left on device; a restart has more of the log to read" in caplog.text
