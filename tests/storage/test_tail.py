"""The remembered position of the last append: a waiting reader gets the result of a search."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from ottla.errors import KafkaError
from ottla.model import INT64_MAX
from ottla.network.send_queue import read_whole_piece
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.segments import segment as segment_module
from tests.storage.batches import NOW, append, batch, open_log
from tests.storage.producing import end, send


def check_reads(log: Log) -> None:
    """From each offset the same is read when nothing is remembered; what is brought along is what the file has."""
    remembered = [log.read(offset, 150) for offset in range(log.end_offset)]
    tails = [(segment, segment._tail_offset) for segment in log.segments]
    for segment, _ in tails:
        segment._tail_offset = INT64_MAX
    searched = [log.read(offset, 150) for offset in range(log.end_offset)]
    for segment, offset in tails:
        segment._tail_offset = offset
    assert [place and (place.position, place.size) for place in remembered] == [
        place and (place.position, place.size) for place in searched
    ]
    for place in remembered:
        assert place is None or place.written in {b"", os.pread(place.file.fileno(), place.size, place.position)}
    check_last_append(log)


def check_last_append(log: Log) -> None:
    """A cached read equals a search for both isolation levels, without aborted transactions; outside of the log it is None."""
    for offset in range(-1, log.end_offset + 2):
        for most in (-1, 10, 70, 150, 10_000):
            found = log.read_last_append(offset, most)
            if found is not None:
                assert log.last_stable_offset == log.end_offset
                assert log.read(offset, most) == found
                assert log.read_committed(offset, most) == (found, [])


def has_last_append(log: Log, offset: int) -> bool:
    return log.read_last_append(offset, 10_000) is not None


def test_cached_reads_equal_searches_after_appends_rolls_and_truncations(tmp_path: Path) -> None:
    chance = random.Random(3)
    log = open_log(tmp_path / "t-0", LogConfig(segment_bytes=1500, index_interval_bytes=300))
    for _ in range(120):
        if chance.random() < 0.15 and log.end_offset:
            log.truncate_to(chance.randrange(log.end_offset), now_ms=NOW)
        else:
            values = [bytes(chance.randrange(60)) for _ in range(chance.randint(1, 3))]
            data = bytearray().join(batch(*values) for _ in range(chance.randint(1, 2)))
            log.append(data, leader_epoch=0, now_ms=NOW)
        check_reads(log)
    log.close()


def test_the_last_append_is_found_without_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path / "t-0")
    for _ in range(20):
        offset = append(log, b"a")
    monkeypatch.setattr(segment_module.Segment, "entry_before", None)
    piece = log.read(offset, 1000)
    assert piece is not None
    assert piece.size == len(batch(b"a"))
    log.close()


def test_a_small_last_append_is_read_without_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path / "t-0")
    for size in (10, segment_module.TAIL_BYTES, 20):
        offset = append(log, bytes(size))
        piece = log.read(offset, 10_000)
        assert piece is not None
        assert bool(piece.written) == (size < segment_module.TAIL_BYTES)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pread", None)
        piece = log.read(offset, 10_000)
        assert piece is not None
        written = read_whole_piece(piece)
    assert written == os.pread(piece.file.fileno(), piece.size, piece.position)
    both = log.read(offset - 1, 10_000)
    assert both is not None
    assert not both.written
    log.close()


def test_the_last_append_is_cached_while_it_is_the_only_one(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    assert not has_last_append(log, 0), "there is none"
    first = append(log, b"a", b"b")
    assert has_last_append(log, first)
    assert not has_last_append(log, first + 1), "amid the batch"
    second = append(log, b"c")
    assert not has_last_append(log, first), "there is more by now"
    assert has_last_append(log, second)
    size = len(batch(b"c"))
    assert log.read_last_append(second, size - 1) is None, "there is no room for it"
    assert log.read_last_append(second, size) is not None
    log.advance_start(log.end_offset)
    assert not has_last_append(log, second), "it was deleted"
    log.close()


def test_an_aborted_transaction_disables_the_cached_read(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    send(log, 8, 0, transactional=True)
    end(log, 8, commit=True)
    assert has_last_append(log, append(log, b"a"))
    send(log, 8, 1, transactional=True)
    end(log, 8, commit=False)
    assert not has_last_append(log, append(log, b"a")), "it would have to be looked up"
    log.close()


def test_a_loaded_log_has_no_last_append(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    offset = append(log, b"a")
    log.close()
    again = open_log(tmp_path / "t-0")
    assert not has_last_append(again, offset)
    assert has_last_append(again, append(again, b"b"))
    again.close()


def test_an_undone_append_is_not_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path / "t-0")
    append(log, b"a")

    def failing(*_: object) -> None:
        raise OSError("the disk")

    with monkeypatch.context() as patch:
        patch.setattr(type(log.epochs), "assign", failing)
        with pytest.raises((OSError, KafkaError)):
            append(log, b"b")
    assert log.segments[-1]._tail_offset == INT64_MAX
    assert not log.segments[-1]._tail
    append(log, b"c")
    check_reads(log)
    log.close()
