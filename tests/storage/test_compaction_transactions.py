"""Compaction among transactions and producers with sequences."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ottla.records.batch import iter_headers
from ottla.records.control import ControlType
from ottla.records.end_marker import EndMarker, encode_end_marker
from ottla.storage.cleaning.log_cleaning import plan_log_compaction
from ottla.storage.log import Log
from ottla.storage.producers.producer_entry import Origin
from tests.storage.batches import NOW, everything, open_log
from tests.storage.compacting import COMPACT, compact, kept, keyed, put, roll
from tests.storage.test_inspection import faults

DAY_MS = 86_400_000
LAST_OFFSET = 18
"""The position of the last offset, of 8 bytes, in a row of a transaction index."""


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return open_log(tmp_path / "t-0", COMPACT)


def send(log: Log, producer_id: int, sequence: int, *pairs: tuple[bytes | None, bytes | None]) -> None:
    """Data of an open transaction."""
    data = keyed(pairs, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=True)
    log.append(data, leader_epoch=0, now_ms=NOW)


def end(log: Log, producer_id: int, how: ControlType) -> None:
    marker = encode_end_marker(producer_id, 0, EndMarker(how, 0), NOW)
    log.append(marker, leader_epoch=0, now_ms=NOW, origin=Origin.COORDINATOR)


def control_offsets(log: Log) -> list[int]:
    return [header.base_offset for _, header in iter_headers(everything(log)) if header.is_control]


def test_records_of_aborted_transactions_are_removed_and_supersede_nothing(log: Log) -> None:
    put(log, (b"a", b"good"))
    send(log, 7, 0, (b"a", b"bad"), (b"b", b"bad"))
    end(log, 7, ControlType.ABORT)
    roll(log)
    compact(log)
    assert [(record.key, record.value) for record in kept(log)] == [(b"a", b"good")]


def test_a_marker_is_removed_after_its_records_and_its_retention(log: Log) -> None:
    send(log, 7, 0, (b"a", b"bad"))
    end(log, 7, ControlType.ABORT)
    send(log, 7, 1, (b"a", b"good"))
    end(log, 7, ControlType.COMMIT)
    done = 0
    for number, (age, left) in enumerate([(0, [1, 3]), (1, [1, 3]), (DAY_MS, [1, 3]), (DAY_MS + 1, [3])]):
        put(log, (b"x", b"%d" % number))
        roll(log)
        done = compact(log, done, now_ms=NOW + age)
        assert control_offsets(log) == left
    assert [record.value for record in kept(log)] == [b"good", b"3"]


def test_a_commit_marker_is_removed_after_its_records(log: Log) -> None:
    send(log, 7, 0, (b"a", b"1"))
    end(log, 7, ControlType.COMMIT)
    send(log, 7, 1, (b"z", b"1"))
    end(log, 7, ControlType.COMMIT)
    done = 0
    for age, left in [(0, [1, 3]), (1, [1, 3]), (DAY_MS, [1, 3]), (DAY_MS + 1, [3]), (3 * DAY_MS, [3])]:
        put(log, (b"a", b"%d" % age))
        roll(log)
        done = compact(log, done, now_ms=NOW + age)
        assert control_offsets(log) == left, age


def test_read_committed_fetches_list_only_the_remaining_aborted_transactions(log: Log) -> None:
    send(log, 7, 0, (b"a", b"bad"))
    send(log, 8, 0, (b"b", b"open"))
    end(log, 7, ControlType.ABORT)
    roll(log)
    end(log, 8, ControlType.ABORT)
    roll(log)
    compact(log)
    _, aborted = log.read_committed(0, 1 << 20)
    again = open_log(log.directory, COMPACT, clean=True)
    assert again.read_committed(0, 1 << 20)[1] == aborted


@pytest.mark.parametrize("clean", [True, False])
def test_the_list_of_aborted_transactions_is_valid_after_their_records_are_removed(
    log: Log, clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    send(log, 7, 0, (b"a", b"bad"))
    end(log, 7, ControlType.ABORT)
    send(log, 7, 1, (b"a", b"good"))
    end(log, 7, ControlType.COMMIT)
    roll(log)
    compact(log)
    assert control_offsets(log) == [1, 3]
    again = open_log(log.directory, COMPACT, clean=clean, recovery_point=log.end_offset)
    assert [each.first_offset for each in again.find_aborted(0, 0, log.end_offset)] == [0]
    assert caplog.messages == []


@pytest.mark.behaviour("B2")
def test_an_aborted_transaction_listed_with_a_later_end_hides_no_record(log: Log) -> None:
    send(log, 7, 0, (b"a", b"bad"))
    end(log, 7, ControlType.ABORT)
    send(log, 7, 1, (b"a", b"good"))
    end(log, 7, ControlType.COMMIT)
    roll(log)
    compact(log)
    log.close()
    path = log.segments[0].file_path(".txnindex")
    row = bytearray(path.read_bytes())
    row[LAST_OFFSET + 1] ^= 1
    path.write_bytes(row)
    again = open_log(log.directory, COMPACT, clean=True, recovery_point=log.end_offset)
    assert again.read_committed(0, 1 << 20)[1] == []


def test_an_open_transaction_is_not_touched(log: Log) -> None:
    put(log, (b"a", b"1"))
    roll(log)
    send(log, 7, 0, (b"a", b"2"))
    roll(log)
    put(log, (b"a", b"3"))
    roll(log)
    assert plan_log_compaction(log, 0, NOW).upper_bound == 1
    end(log, 7, ControlType.COMMIT)
    assert plan_log_compaction(log, 0, NOW).upper_bound == 3


def test_the_last_batch_of_a_producer_is_kept_even_if_empty(log: Log) -> None:
    for sequence in range(3):
        data = keyed([(b"a", b"%d" % sequence)], producer_id=9, producer_epoch=2, base_sequence=sequence)
        log.append(data, leader_epoch=0, now_ms=NOW)
    put(log, (b"a", b"last"))
    roll(log)
    compact(log)
    headers = [header for _, header in iter_headers(everything(log))]
    assert [(header.base_offset, header.count) for header in headers] == [(2, 0), (3, 1)]
    assert (headers[0].producer_id, headers[0].producer_epoch, headers[0].base_sequence) == (9, 2, 2)
    for path in log.directory.glob("*.snapshot"):
        path.unlink()
    again = open_log(log.directory, COMPACT)
    assert again.producers.entries[9].last_offset == 2
    repeated = again.append(data, leader_epoch=0, now_ms=NOW)
    assert repeated.repeated


@pytest.mark.parametrize("seed", range(12))
def test_compacted_transactions_are_consistent_after_every_restart(
    seed: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    chance = random.Random(seed)
    log, done, now_ms = open_log(tmp_path / "t-0", COMPACT), 0, NOW
    sequences, begun = dict.fromkeys((7, 8, 9), 0), set[int]()
    for _ in range(12):
        for _ in range(5):
            producer = chance.choice(list(sequences))
            send(log, producer, sequences[producer], (chance.choice((b"a", b"b", b"c")), b"value"))
            sequences[producer] += 1
            begun.add(producer)
        ending = chance.choice(sorted(begun))
        begun.discard(ending)
        end(log, ending, chance.choice((ControlType.ABORT, ControlType.COMMIT)))
        roll(log)
        now_ms += chance.choice((0, DAY_MS, 2 * DAY_MS))
        done = compact(log, done, now_ms=now_ms)
        log.close()
        log = open_log(tmp_path / "t-0", COMPACT)
        for number in range(len(log.segments)):
            log.find_aborted(number, 0, log.end_offset)
    said = [record.getMessage() for record in caplog.records if record.name.startswith("ottla.storage")]
    assert (faults(tmp_path / "t-0"), said) == ([], [])
