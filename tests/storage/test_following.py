"""A follower's appends: the leader's bytes as they are, or one sentence."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ottla.errors import CorruptRecordError
from ottla.model import Buffer
from ottla.records.batch import iter_headers, stamp
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.producers.producer_snapshot import encode_snapshot
from tests.storage.batches import NOW, append, batch, bytes_of, everything, open_log
from tests.storage.producing import end, send

SMALL = LogConfig(segment_bytes=1500, index_interval_bytes=200)


def placed(offset: int, epoch: int, *values: bytes) -> bytearray:
    """A batch as a leader has it."""
    data = batch(*values)
    stamp(data, 0, offset, epoch)
    return data


def follower(path: Path, config: LogConfig = SMALL, *, clean: bool = False) -> Log:
    return open_log(path / "f" / "t-0", config, committed=0, clean=clean)


def copy(log: Log, data: Buffer, epoch: int = 9) -> int:
    return log.append_as_is(data, leader_epoch=epoch, now_ms=NOW)


def follow(leader: Log, log: Log, max_bytes: int = 700) -> None:
    """Copy all that the leader has, some batches at a time."""
    while log.end_offset < leader.end_offset:
        copy(log, bytes_of(leader, log.end_offset, max_bytes))


def producers_of(log: Log) -> tuple[bytes, dict[int, int]]:
    """All that a log knows of producers."""
    return encode_snapshot(log.producers.entries.values()), log.producers.open


def files_of(log: Log) -> dict[str, bytes]:
    """The content of the files that the batches determine."""
    kinds = (".log", ".index", ".timeindex", ".txnindex")
    return {path.name: path.read_bytes() for path in log.directory.iterdir() if path.suffix in kinds}


def test_a_replica_equals_the_leaders_log_with_its_indexes(tmp_path: Path) -> None:
    leader = open_log(tmp_path / "l" / "t-0", SMALL)
    for number in range(40):
        send(leader, number % 3, number // 3, transactional=number % 3 == 1)
        if number % 7 == 4 and leader.producers.open:
            end(leader, 1, commit=number % 2 == 0)
    log = follower(tmp_path)
    follow(leader, log)
    assert everything(log) == everything(leader)
    assert producers_of(log) == producers_of(leader)
    assert log.epochs.entries == leader.epochs.entries
    leader.close()
    log.close()
    assert files_of(log) == files_of(leader)


@pytest.mark.parametrize("clean", [True, False])
def test_offsets_compacted_by_the_leader_are_missing_in_the_replica_too(tmp_path: Path, clean: bool) -> None:
    log = follower(tmp_path)
    copy(log, placed(3, 0, b"a", b"b") + placed(9, 0, bytes(1000)))
    copy(log, placed(20, 2, bytes(1000)))
    copy(log, placed(40, 2, b"last"))
    assert (log.end_offset, log.bases) == (41, [0, 20])
    before = everything(log)
    if clean:
        log.close()
    again = follower(tmp_path, clean=clean)
    assert (again.end_offset, again.recovery, everything(again)) == (41, None, before)
    assert again.epochs.entries == [(0, 3), (2, 20)]


def test_a_batch_cut_off_in_one_fetch_response_arrives_in_the_next(tmp_path: Path) -> None:
    log = follower(tmp_path)
    assert copy(log, placed(0, 0, b"a") + placed(1, 0, b"b")[:-3]) == 1
    assert copy(log, placed(1, 0, b"b")) == 2


def test_oversized_data_is_appended_as_the_leader_appended_it(tmp_path: Path) -> None:
    log = follower(tmp_path)
    copy(log, placed(0, 0, b"a") + placed(1, 0, bytes(5000)) + placed(2, 0, b"c"))
    assert (log.end_offset, log.bases) == (3, [0, 1, 2])


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (placed(1, 3, b"x"), "the batch has offset 1, expected 2 or more"),
        (placed(2, 2, b"x"), "the batch at offset 2 has leader epoch 2, after 3"),
        (placed(2, 5, b"x"), "the batch at offset 2 has leader epoch 5, the leader's is 4"),
        (placed(2, 3, b"x")[:20], "20 bytes without a complete batch"),
        (placed(2, 3, b"x") + placed(2, 3, b"y"), "the batch has offset 2, expected 3 or more"),
    ],
)
def test_invalid_batches_from_a_leader_are_reported_and_not_written(
    tmp_path: Path, data: bytearray, sentence: str
) -> None:
    log = follower(tmp_path)
    copy(log, placed(0, 3, b"a", b"b"))
    before = everything(log)
    with pytest.raises(CorruptRecordError, match=sentence) as caught:
        copy(log, data, 4)
    assert str(caught.value).startswith("t-0: the leader sent")
    assert str(caught.value).endswith("nothing of it was kept, and it is fetched again")
    assert (log.end_offset, everything(log)) == (2, before)


def test_an_empty_replica_starts_with_the_first_batch_of_the_leaders_log(tmp_path: Path) -> None:
    log = follower(tmp_path)
    log.truncate_fully_and_start_at(6, now_ms=NOW)
    with pytest.raises(CorruptRecordError, match="offset 4, expected 6 or more"):
        copy(log, placed(4, 3, b"a", b"b"))
    assert copy(log, placed(4, 3, b"a", b"b", b"c") + placed(7, 3, b"d")) == 8
    assert [header.base_offset for _, header in iter_headers(everything(log))] == [4, 7]
    with pytest.raises(CorruptRecordError, match="offset 7, expected 8 or more"):
        copy(log, placed(7, 3, b"d", b"e"))
    log.close()
    assert open_log(log.directory, SMALL, clean=True).end_offset == 8


def test_a_flipped_bit_is_never_copied_silently(tmp_path: Path) -> None:
    whole = placed(0, 1, b"some", b"values")
    log, chance = follower(tmp_path), random.Random(5)
    for _ in range(300):
        damaged = bytearray(whole)
        position = chance.randrange(len(damaged))
        damaged[position] ^= 1 << chance.randrange(8)
        try:
            copy(log, damaged, 1)
        except CorruptRecordError:
            assert log.end_offset == 0
        else:
            # Base offset and epoch are under no CRC: what is possible of them is taken.
            assert position < 16
            log = open_log(tmp_path / str(chance.random()) / "t-0", SMALL, committed=0)


def test_a_former_leader_can_continue_from_its_replica(tmp_path: Path) -> None:
    log = follower(tmp_path)
    copy(log, placed(0, 1, b"a"))
    assert append_next(log, 2) == 1
    assert [header.leader_epoch for _, header in iter_headers(everything(log))] == [1, 2]


def append_next(log: Log, epoch: int) -> int:
    return log.append(batch(b"x"), leader_epoch=epoch, now_ms=NOW).base_offset


def test_a_follower_commits_only_up_to_the_leaders_high_watermark(tmp_path: Path) -> None:
    log = follower(tmp_path)
    copy(log, placed(0, 1, b"a", b"b"))
    assert (log.high_watermark, log.end_offset) == (0, 2)
    log.advance_high_watermark(7)
    assert log.high_watermark == 2
    assert append(open_log(tmp_path / "other-0"), b"x") == 0


def test_a_replica_keeps_an_epoch_with_compacted_first_batches(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = follower(tmp_path)
    log.epochs.assign(1, 3)
    copy(log, placed(9, 1, b"what compaction left"))
    copy(log, placed(20, 2, b"the next leader's"))
    log.close()
    assert follower(tmp_path, clean=True).epochs.entries == [(1, 3), (2, 20)]
    assert caplog.messages == []


@pytest.mark.parametrize("clean", [True, False])
def test_epochs_with_a_lost_file_are_rebuilt_from_the_batches(tmp_path: Path, clean: bool) -> None:
    log = follower(tmp_path)
    copy(log, placed(0, 1, bytes(1000)) + placed(1, 3, bytes(1000)))
    copy(log, placed(2, 4, b"last"))
    log.close()
    (log.directory / "leader-epoch-checkpoint").unlink()
    again = open_log(log.directory, SMALL, clean=clean, committed=0, recovery_point=3)
    assert again.epochs.entries == [(1, 0), (3, 1), (4, 2)]


def test_extra_bytes_after_the_clean_end_of_a_replica_are_truncated(tmp_path: Path) -> None:
    log = follower(tmp_path)
    copy(log, placed(0, 1, b"a"))
    log.close()
    with log.segments[0].path.open("ab") as file:
        file.write(b"\x9c" * 20)
    again = open_log(log.directory, clean=True, committed=0, recovery_point=1)
    assert (again.end_offset, list(again.known_damages())) == (1, [])
