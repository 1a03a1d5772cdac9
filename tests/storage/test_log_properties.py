"""The log against a list: whatever is done to both, they hold the same."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ottla.model import OffsetAndTimestamp
from ottla.records.batch import iter_headers
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from tests.storage.batches import NOW, batch, bytes_of, everything, open_log
from tests.storage.unforced import nothing_is_forced  # noqa: F401 (a fixture that acts by being here)


class LogAgainstList(RuleBasedStateMachine):
    """`batches` has (base offset, last offset, bytes) of all that was appended; `records` all timestamps."""

    @initialize(
        segment_bytes=st.integers(500, 5000), interval=st.integers(0, 1000), segment_ms=st.sampled_from([20, 2**62])
    )
    def begin(self, segment_bytes: int, interval: int, segment_ms: int) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.directory = Path(self.folder.name) / "t-0"
        self.config = LogConfig(
            segment_bytes=segment_bytes, index_interval_bytes=interval, segment_ms=segment_ms, retention_ms=60
        )
        self.log: Log = open_log(self.directory, self.config)
        self.batches: list[tuple[int, int, bytes]] = []
        self.records: list[int] = []
        self.flushed = 0

    @rule(sizes=st.lists(st.integers(0, 100), min_size=1, max_size=4), times=st.data())
    def append(self, sizes: list[int], times: Any) -> None:
        stamps = [NOW + times.draw(st.integers(0, 100)) for _ in sizes]
        data = batch(*map(bytes, sizes), timestamps=stamps)
        done = self.log.append(data, leader_epoch=0, now_ms=NOW)
        assert done.base_offset == len(self.records)
        self.records += stamps
        self.batches.append((done.base_offset, done.last_offset, bytes(data)))

    @rule(clean=st.booleans())
    def reopen(self, clean: bool) -> None:
        if clean:
            self.log.close()
            self.flushed = self.log.recovery_point
        self.log = open_log(
            self.directory,
            self.config,
            clean=clean,
            recovery_point=self.flushed,
            start_offset=self.log.start_offset,
        )
        assert self.log.recovery is None

    @rule(torn=st.integers(1, 60))
    def tear(self, torn: int) -> None:
        if self.batches and self.batches[-1][0] >= self.log.start_offset and self.log.segments[-1].size:
            base_offset, _, _ = self.batches.pop()
            path = self.log.segments[-1].path
            path.write_bytes(path.read_bytes()[:-torn])
            self.flushed = min(self.flushed, base_offset)
            del self.records[base_offset:]
            self.log = open_log(
                self.directory, self.config, recovery_point=self.flushed, start_offset=self.log.start_offset
            )
            assert self.log.recovery is not None
            assert self.log.recovery.offset == base_offset

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.flushed = self.log.recovery_point

    @rule(share=st.floats(0, 1))
    def advance_start(self, share: float) -> None:
        self.log.advance_start(int(self.log.end_offset * share))

    @rule(age=st.integers(0, 200))
    def retain(self, age: int) -> None:
        start = self.log.start_offset
        ends = dict(zip(self.log.bases, [*self.log.bases[1:], self.log.end_offset], strict=True))
        for segment in self.log.retain(NOW + age):
            assert segment.indexes.max_timestamp < NOW + age - 60 or ends[segment.base_offset] <= start

    @rule(share=st.floats(0, 1), max_bytes=st.integers(0, 3000))
    def read(self, share: float, max_bytes: int) -> None:
        offset = self.log.start_offset + int((self.log.end_offset - self.log.start_offset) * share)
        data = bytes_of(self.log, offset, max_bytes)
        wanted = b"".join(raw for _, last, raw in self.batches if last >= offset)
        assert wanted.startswith(data)
        headers = list(iter_headers(data))
        assert sum(header.size_bytes for _, header in headers) == len(data)
        assert bool(headers) == (offset < self.log.end_offset)

    @rule(ago=st.integers(-5, 105))
    def find(self, ago: int) -> None:
        first = next(
            (
                OffsetAndTimestamp(offset, timestamp, 0)
                for offset, timestamp in enumerate(self.records)
                if offset >= self.log.start_offset and timestamp >= NOW + ago
            ),
            None,
        )
        assert self.log.offset_for_timestamp(NOW + ago) == first

    @invariant()
    def same(self) -> None:
        if not hasattr(self, "log"):
            return
        assert self.log.end_offset == len(self.records)
        kept = b"".join(raw for _, last, raw in self.batches if last >= self.log.start_offset)
        assert everything(self.log) == kept
        files = sum(path.stat().st_size for path in self.directory.glob("*.log"))
        assert self.log.size_bytes == files

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()


TestLogAgainstList = LogAgainstList.TestCase
TestLogAgainstList.settings = settings(max_examples=80, stateful_step_count=40)
