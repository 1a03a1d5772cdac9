from __future__ import annotations

import os
from pathlib import Path

import pytest

from ottla.errors import CorruptRecordError, ErrorCode, IllegalStateError, KafkaError
from ottla.model import TimestampType
from ottla.records.batch import iter_headers, parse_header, verify
from ottla.storage.batches.damage import DamagedLogError
from ottla.storage.log import Log
from ottla.storage.log.append_path import Appended
from ottla.storage.log_config import LogConfig
from tests.storage.batches import NOW, append, batch, bytes_of, everything, open_log, sized


def test_a_new_log_is_empty_and_has_its_files(tmp_path: Path) -> None:
    log = open_log(tmp_path / "flights-0")
    assert (log.start_offset, log.end_offset, log.high_watermark, log.size_bytes) == (0, 0, 0, 0)
    assert log.read(0, 1000) is None
    assert (tmp_path / "flights-0" / "00000000000000000000.log").exists()


def test_append_assigns_the_next_offsets_and_the_leader_epoch(tmp_path: Path) -> None:
    log = open_log(tmp_path / "flights-0")
    append(log, b"a", b"b", b"c")
    result = log.append(batch(b"d", b"e") + batch(b"f"), leader_epoch=7, now_ms=NOW)
    assert result == Appended(3, 5, -1, 0)
    headers = [header for _, header in iter_headers(bytes_of(log, 3))]
    assert [(header.base_offset, header.leader_epoch) for header in headers] == [(3, 7), (5, 7)]
    assert log.end_offset == 6


def test_appended_batches_are_read_back_with_valid_crcs(tmp_path: Path) -> None:
    log = open_log(tmp_path / "flights-0")
    for number in range(50):
        append(log, b"x" * number, b"y")
    data = everything(log)
    for position, header in iter_headers(data):
        verify(data, position, header)
    assert len(data) == log.size_bytes


def test_bytes_that_cannot_be_written_are_copied_and_not_touched(tmp_path: Path) -> None:
    log = open_log(tmp_path / "flights-0")
    append(log, b"a")
    data = bytes(batch(b"b"))
    before = bytes(data)
    assert log.append(data, leader_epoch=0, now_ms=NOW).base_offset == 1
    assert data == before


def test_a_read_from_inside_a_batch_returns_the_whole_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path / "flights-0")
    append(log, b"a", b"b", b"c")
    append(log, b"d", b"e", b"f")
    assert parse_header(bytes_of(log, 4)).base_offset == 3


def test_a_read_returns_whole_batches_within_max_bytes(tmp_path: Path) -> None:
    log = open_log(tmp_path / "flights-0")
    size = len(batch(b"a"))
    for _ in range(10):
        append(log, b"a")
    for max_bytes in range(size, 11 * size):
        found = log.read(0, max_bytes)
        assert found is not None
        assert found.size == min(max_bytes // size, 10) * size


def test_an_oversized_first_batch_is_returned_whole_if_one_is_required(tmp_path: Path) -> None:
    log = open_log(tmp_path / "flights-0")
    log.append(sized(100_000), leader_epoch=0, now_ms=NOW)
    append(log, b"a")
    found = log.read(0, 10)
    assert found is not None
    assert found.size == len(sized(100_000))
    assert log.read(0, 10, min_one=False) is None
    assert log.read(0, 0, min_one=False) is None


@pytest.mark.parametrize("offset", [-1, 3, 1_000_000])
def test_an_offset_outside_of_the_log_is_refused(tmp_path: Path, offset: int) -> None:
    log = open_log(tmp_path / "flights-0")
    append(log, b"a", b"b")
    with pytest.raises(KafkaError, match=r"OFFSET_OUT_OF_RANGE: offset .* is outside of 0 to 2"):
        log.read(offset, 1000)


def test_reads_find_every_offset_through_the_index(tmp_path: Path) -> None:
    log = open_log(tmp_path / "flights-0", LogConfig(index_interval_bytes=300))
    for number in range(200):
        append(log, *[b"x" * (number % 37)] * (number % 3 + 1))
    assert len(log.segments[-1].indexes.offsets) > 20
    for offset in range(log.end_offset):
        header = parse_header(bytes_of(log, offset))
        assert header.base_offset <= offset <= header.last_offset


def test_every_read_at_every_size_ends_with_a_whole_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path / "flights-0", LogConfig(index_interval_bytes=300))
    for number in range(60):
        append(log, b"x" * (number * 7 % 150))
    for offset in range(0, log.end_offset, 3):
        for max_bytes in (1, 100, 299, 700, 1500, 4000):
            data = bytes_of(log, offset, max_bytes)
            headers = [header for _, header in iter_headers(data)]
            assert sum(header.size_bytes for header in headers) == len(data)
            assert len(data) <= max_bytes or len(headers) == 1


def test_reading_continues_while_the_log_grows(tmp_path: Path) -> None:
    log = open_log(tmp_path / "flights-0", LogConfig(segment_bytes=2000))
    offset = 0
    for number in range(100):
        append(log, b"x" * number)
        header = parse_header(bytes_of(log, offset))
        assert header.base_offset == offset == number
        offset = header.next_offset
    assert log.read(offset, 1000) is None


@pytest.mark.behaviour("B2")
def test_reading_never_deletes(tmp_path: Path) -> None:
    log = open_log(tmp_path / "flights-0", LogConfig(segment_bytes=500))
    for number in range(20):
        append(log, b"x" * number)
    first = everything(log)
    assert everything(log) == everything(log) == first
    assert log.start_offset == 0


class TestWhatIsRefused:
    def refused(self, tmp_path: Path, data: bytes | bytearray, **settings: object) -> KafkaError | CorruptRecordError:
        """The error; the log is as it was."""
        log = open_log(tmp_path / "flights-0", LogConfig(**settings))  # type: ignore[arg-type]
        append(log, b"a")
        before = everything(log)
        with pytest.raises((KafkaError, CorruptRecordError)) as caught:
            log.append(data, leader_epoch=0, now_ms=NOW)
        assert everything(log) == before
        assert append(log, b"b") == 1
        error = caught.value
        assert isinstance(error, KafkaError | CorruptRecordError)
        return error

    def code(self, error: KafkaError | CorruptRecordError) -> int:
        assert isinstance(error, KafkaError)
        return error.code

    @pytest.mark.parametrize("data", [b"", b"x", b"\0" * 61, bytes(range(200)), batch(b"a") + b"\0", batch(b"a")[:-1]])
    def test_bytes_that_are_no_batch_are_rejected(self, tmp_path: Path, data: bytes) -> None:
        self.refused(tmp_path, data)

    def test_every_flipped_bit_that_the_crc_covers(self, tmp_path: Path) -> None:
        good = batch(b"value")
        log = open_log(tmp_path / "flights-0")
        for position in range(8, len(good)):
            if 12 <= position < 16:
                continue  # the leader epoch is the broker's
            bad = bytearray(good)
            bad[position] ^= 0x10
            with pytest.raises((KafkaError, CorruptRecordError)):
                log.append(bad, leader_epoch=0, now_ms=NOW)
        assert log.size_bytes == 0

    def test_a_count_that_does_not_fit_the_offsets(self, tmp_path: Path) -> None:
        self.refused(tmp_path, batch(b"a", b"b", count=3))

    def test_a_batch_above_max_message_bytes(self, tmp_path: Path) -> None:
        error = self.refused(tmp_path, sized(3000), max_message_bytes=1000)
        assert self.code(error) == ErrorCode.MESSAGE_TOO_LARGE
        assert "max.message.bytes is 1000" in str(error)

    def test_more_at_once_than_a_segment_holds(self, tmp_path: Path) -> None:
        error = self.refused(tmp_path, sized(3000), segment_bytes=1000)
        assert self.code(error) == ErrorCode.RECORD_LIST_TOO_LARGE

    @pytest.mark.parametrize("magic", [0, 1])
    def test_message_formats_of_old(self, tmp_path: Path, magic: int) -> None:
        error = self.refused(tmp_path, batch(b"a", magic=magic))
        assert self.code(error) == ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT

    def test_a_format_of_the_future(self, tmp_path: Path) -> None:
        self.refused(tmp_path, batch(b"a", magic=3))

    def test_a_producer_that_claims_the_brokers_clock(self, tmp_path: Path) -> None:
        error = self.refused(tmp_path, batch(b"a", attributes=8))
        assert self.code(error) == ErrorCode.INVALID_TIMESTAMP

    def test_all_batches_are_rejected_if_one_is_bad(self, tmp_path: Path) -> None:
        bad = batch(b"b")
        bad[-1] ^= 1
        self.refused(tmp_path, batch(b"a") + bad)


def test_log_append_time_stamps_the_records_and_keeps_the_crc_right(tmp_path: Path) -> None:
    log = open_log(tmp_path / "flights-0", LogConfig(message_timestamp_type="LogAppendTime"))
    result = log.append(batch(b"a", b"b") + batch(b"c"), leader_epoch=0, now_ms=NOW + 5000)
    assert result.log_append_time_ms == NOW + 5000
    data = everything(log)
    for position, header in iter_headers(data):
        verify(data, position, header)
        assert header.max_timestamp == NOW + 5000
        assert header.timestamp_type == TimestampType.LOG_APPEND_TIME


def test_a_closed_log_rejects_appends_and_may_be_closed_again(tmp_path: Path) -> None:
    log = open_log(tmp_path / "flights-0")
    log.close()
    log.close()
    with pytest.raises(IllegalStateError, match="is closed"):
        append(log, b"a")


def test_a_deleted_log_leaves_only_slices_in_use(tmp_path: Path) -> None:
    log = open_log(tmp_path / "flights-0")
    append(log, b"a")
    slice_ = log.read(0, 1000)
    assert slice_ is not None
    log.delete()
    assert list(tmp_path.iterdir()) == []
    assert len(os.pread(slice_.file.fileno(), slice_.size, slice_.position)) == slice_.size


def test_a_topic_name_of_the_longest_kind_can_be_deleted(tmp_path: Path) -> None:
    log = open_log(tmp_path / f"{'t' * 249}-99999")
    log.delete()
    assert list(tmp_path.iterdir()) == []


def test_leader_epochs_are_stored_with_their_start_offsets(tmp_path: Path) -> None:
    log = open_log(tmp_path / "flights-0")
    for epoch in (0, 0, 3, 3, 4):
        log.append(batch(b"a"), leader_epoch=epoch, now_ms=NOW)
    log.flush()
    text = (tmp_path / "flights-0" / "leader-epoch-checkpoint").read_text()
    assert text == "0\n3\n0 0\n3 2\n4 4\n"


def test_an_empty_log_has_no_epoch_file(tmp_path: Path) -> None:
    """A broker that is stopped closes thousands of them."""
    log = open_log(tmp_path / "flights-0")
    log.epochs.assign(3, 0)
    log.close()
    assert not (tmp_path / "flights-0" / "leader-epoch-checkpoint").exists()
    again = open_log(tmp_path / "flights-0")
    again.append(batch(b"a"), leader_epoch=4, now_ms=NOW)
    again.truncate_to(0, now_ms=NOW)
    again.close()
    assert (tmp_path / "flights-0" / "leader-epoch-checkpoint").exists() is False


def test_an_emptied_log_has_no_old_epochs(tmp_path: Path) -> None:
    log = open_log(tmp_path / "flights-0")
    log.append(batch(b"a"), leader_epoch=4, now_ms=NOW)
    log.flush()
    log.truncate_to(0, now_ms=NOW)
    log.close()
    assert open_log(tmp_path / "flights-0").epochs.entries == []


def test_a_full_segment_awaits_a_flush(tmp_path: Path) -> None:
    log = open_log(tmp_path / "flights-0", LogConfig(segment_bytes=300))
    append(log, b"a")
    begun = log.is_awaiting_flush
    while len(log.segments) == 1:
        append(log, b"a")
    full = log.is_awaiting_flush
    log.flush()
    assert (begun, full, log.is_awaiting_flush) == (False, True, False)


def test_files_are_closed_on_release_and_opened_again_on_use(tmp_path: Path) -> None:
    log = open_log(tmp_path / "flights-0")
    append(log, b"a")
    log.release()
    assert append(log, b"b") == 1
    log.release()
    assert parse_header(bytes_of(log, 1)).base_offset == 1


def test_settings_may_change_while_the_log_is_open(tmp_path: Path) -> None:
    log: Log = open_log(tmp_path / "flights-0", LogConfig(max_message_bytes=200))
    with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
        log.append(sized(1000), leader_epoch=0, now_ms=NOW)
    log.config = LogConfig()
    log.append(sized(1000), leader_epoch=0, now_ms=NOW)


@pytest.mark.parametrize("rolled", [False, True])
def test_damage_in_fresh_appends_is_reported_with_the_next_readable_offset(tmp_path: Path, rolled: bool) -> None:
    log = open_log(tmp_path / "t-0")
    for value in (b"0", b"1", b"2"):
        append(log, value)
    segment = log.segments[0]
    if rolled:
        log.roll(NOW)
        append(log, b"3")
    data = bytearray(segment.path.read_bytes())
    data[len(data) // 3 + 16] = 9  # the format of the second batch
    segment.path.write_bytes(data)
    with pytest.raises(DamagedLogError, match=r"t-0, offset 1: .*; seek to offset 2 to go on without it"):
        log.read(1, 1 << 20)
    assert bytes_of(log, 2)
    end = append(log, b"4")
    assert bytes_of(log, end)
    assert log.end_offset == end + 1
