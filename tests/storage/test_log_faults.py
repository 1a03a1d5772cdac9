"""The log against a list, on a disk that fails: nothing acknowledged is lost, nothing refused appears."""

from __future__ import annotations

import errno
import os
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ottla.errors import CorruptRecordError, ErrorCode, KafkaError
from ottla.records.batch import iter_headers, verify
from ottla.storage.batches.damage import DamagedLogError
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from tests.storage.batches import NOW, batch, bytes_of, open_log
from tests.storage.faulty_disk import CALLS, FaultyDisk

SOME_CALLS = st.sets(st.sampled_from(CALLS), max_size=3)


def whole_pieces(log: Log) -> Iterator[bytes]:
    """All that can be read, without what a loss of power left half written in the middle."""
    offset = log.start_offset
    while offset < log.end_offset:
        try:
            part = bytes_of(log, offset)
        except DamagedLogError as error:
            offset = error.damage.next_offset
            continue
        if not part:
            return
        yield b"".join(whole_batches(part))
        offset = [header for _, header in iter_headers(part)][-1].next_offset


def whole_batches(part: bytes) -> Iterator[bytes]:
    """Yield the batches that a client accepts. It rejects a wrong CRC; after a clean stop the broker has not checked them."""
    for position, header in iter_headers(part):
        try:
            verify(part, position, header)
        except CorruptRecordError:
            continue
        yield part[position : position + header.size_bytes]


def must_be(error: KafkaError, *codes: ErrorCode) -> None:
    assert error.code in codes, error


class LogOnAFaultyDisk(RuleBasedStateMachine):
    """`batches` has the bytes of all that was acknowledged, with its base offset and the offset after it."""

    @initialize(seed=st.integers(0, 2**32), segment_bytes=st.integers(500, 3000), interval=st.integers(0, 500))
    def begin(self, seed: int, segment_bytes: int, interval: int) -> None:
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self.temporary.name, "t-0")
        self.config = LogConfig(segment_bytes=segment_bytes, index_interval_bytes=interval, retention_ms=60)
        self.disk = FaultyDisk(Path(self.temporary.name), random.Random(seed))
        self.disk.__enter__()
        self.log: Log = open_log(self.folder, self.config)
        self.batches: list[tuple[int, int, bytes]] = []
        self.flushed = 0
        """The end offset that a flush reported to be on the disk."""
        self.end = 0

    @rule(sizes=st.lists(st.integers(0, 300), min_size=1, max_size=4), failing=SOME_CALLS, age=st.integers(0, 30))
    def append(self, sizes: list[int], failing: set[str], age: int) -> None:
        data = batch(*map(bytes, sizes), timestamps=[NOW + age] * len(sizes))
        self.disk.failing = failing
        try:
            done = self.log.append(data, leader_epoch=0, now_ms=NOW)
        except KafkaError as error:
            must_be(error, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.RECORD_LIST_TOO_LARGE)
        else:
            assert done.base_offset == self.end
            self.end = done.last_offset + 1
            self.batches.append((done.base_offset, self.end, bytes(data)))
        finally:
            self.disk.failing = set()

    @rule(failing=SOME_CALLS)
    def flush(self, failing: set[str]) -> None:
        self.disk.failing = failing
        try:
            self.log.flush()
        except KafkaError as error:
            must_be(error, ErrorCode.KAFKA_STORAGE_ERROR)
        self.disk.failing = set()
        self.flushed = self.log.recovery_point
        assert self.flushed <= self.end

    @rule(age=st.integers(0, 120), share=st.floats(0, 1), failing=SOME_CALLS)
    def retain(self, age: int, share: float, failing: set[str]) -> None:
        self.log.advance_start(int(self.end * share))
        self.disk.failing = failing
        try:
            self.log.retain(NOW + age)
        except KafkaError as error:
            must_be(error, ErrorCode.KAFKA_STORAGE_ERROR)
        self.disk.failing = set()

    @rule(failing=SOME_CALLS)
    def end_and_begin_again(self, failing: set[str]) -> None:
        self.disk.failing = failing
        try:
            self.log.close()
            clean = True
        except KafkaError:
            clean = False
        self.disk.failing = set()
        self.flushed = self.log.recovery_point
        self.reopen(clean)
        assert self.log.recovery is None or not clean
        assert self.log.end_offset == self.end

    @rule(failing=SOME_CALLS)
    def kill(self, failing: set[str]) -> None:
        self.disk.failing = failing
        try:
            self.reopen(clean=False)
        except KafkaError as error:
            must_be(error, ErrorCode.KAFKA_STORAGE_ERROR)
            self.disk.failing = set()
            self.reopen(clean=False)
        self.disk.failing = set()
        assert self.log.end_offset == self.end

    @rule()
    def lose_power(self) -> None:
        self.disk.lose_power()
        self.reopen(clean=False)
        assert self.flushed <= self.log.end_offset <= self.end
        start, data = self.log.start_offset, b"".join(whole_pieces(self.log))
        found = {data[position : position + header.size_bytes] for position, header in iter_headers(data)}
        assert found <= {raw for _, _, raw in self.batches}
        assert found >= {raw for _, end, raw in self.batches if start < end <= self.flushed}
        self.batches = [each for each in self.batches if each[2] in found]
        self.end = self.log.end_offset

    def reopen(self, clean: bool) -> None:
        start = self.log.start_offset
        self.log.release()
        self.log = open_log(self.folder, self.config, clean=clean, recovery_point=self.flushed, start_offset=start)

    @invariant()
    def same(self) -> None:
        if not hasattr(self, "log"):
            return
        assert self.log.end_offset == self.end
        kept = b"".join(raw for _, next_offset, raw in self.batches if next_offset > self.log.start_offset)
        found = b"".join(whole_pieces(self.log))
        assert found == kept, ([h.base_offset for _, h in iter_headers(found)], self.log.start_offset)

    def teardown(self) -> None:
        if hasattr(self, "disk"):
            self.disk.__exit__(None, None, None)
            self.temporary.cleanup()


TestLogOnAFaultyDisk = LogOnAFaultyDisk.TestCase
TestLogOnAFaultyDisk.settings = settings(max_examples=60, stateful_step_count=25)


@pytest.mark.parametrize("seed", range(20))
def test_flushed_records_survive_a_power_loss(tmp_path: Path, seed: int) -> None:
    with FaultyDisk(tmp_path, random.Random(seed)) as disk:
        log = open_log(tmp_path / "t-0", LogConfig(segment_bytes=2000, index_interval_bytes=100))
        for number in range(40):
            log.append(batch(bytes(number * 5)), leader_epoch=0, now_ms=NOW)
            if number == 25:
                log.flush()
        disk.lose_power()
        again = open_log(tmp_path / "t-0", log.config, recovery_point=26)
        assert 26 <= again.end_offset <= 40
        found = [header.base_offset for part in whole_pieces(again) for _, header in iter_headers(part)]
        assert found == sorted(found)
        assert found[:26] == list(range(26))


def test_what_a_failed_append_left_in_the_file_is_removed_before_a_clean_shutdown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.pwrite

    def write_half(fd: int, data: bytes, position: int) -> int:
        write(fd, memoryview(data)[: len(data) // 2], position)
        raise OSError(errno.EIO, "the disk fails")

    def fail(fd: int, size: int) -> None:
        raise OSError(errno.EIO, "the disk fails")

    log = open_log(tmp_path / "t-0", LogConfig())
    log.append(batch(b"kept"), leader_epoch=0, now_ms=NOW)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", write_half)
        patch.setattr(os, "ftruncate", fail)
        with pytest.raises(KafkaError):
            log.append(batch(b"refused"), leader_epoch=0, now_ms=NOW)
    log.flush()
    with monkeypatch.context() as patch:
        patch.setattr(os, "ftruncate", fail)
        with pytest.raises(KafkaError):  # the shutdown is not clean while they are there
            log.close()
    log.close()
    again = open_log(tmp_path / "t-0", LogConfig(), clean=True)
    assert (again.end_offset, again.recovery) == (1, None)
