"""Compaction against a list: whatever happens in between, the last of each key is there and nothing is made up."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ottla.records.batch import iter_headers
from ottla.records.compression import Codec
from ottla.storage.cleaning.key_map import ENTRY_BYTES
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from tests.storage.batches import NOW, everything, open_log
from tests.storage.compacting import Crash, Kept, dying_after, kept, keyed, one_pass, roll
from tests.storage.unforced import nothing_is_forced  # noqa: F401 (a fixture that acts by being here)

DELETE_RETENTION_MS = 100
RETENTION_MS = 1000
KEYS = st.sampled_from([b"a", b"b", b"c", b"d", b"e", b"f", b"g"])
VALUES = st.one_of(st.none(), st.binary(max_size=60))


class CompactionAgainstList(RuleBasedStateMachine):
    """`appended` has every record; `seen` has the time at which a cleaning first found each tombstone."""

    @initialize(segment_bytes=st.integers(400, 2000), policy=st.sampled_from([("compact",), ("compact", "delete")]))
    def begin(self, segment_bytes: int, policy: tuple[str, ...]) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.config = LogConfig(
            cleanup_policy=policy,
            segment_bytes=segment_bytes,
            index_interval_bytes=50,
            delete_retention_ms=DELETE_RETENTION_MS,
            retention_ms=RETENTION_MS,
        )
        self.log: Log = open_log(Path(self.folder.name) / "t-0", self.config)
        self.appended: list[Kept] = []
        self.seen: dict[int, int] = {}
        self.now_ms = NOW
        self.cleaned_up_to = 0
        self.flushed = 0

    @rule(pairs=st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=5), codec=st.sampled_from(Codec))
    def append(self, pairs: list[tuple[bytes, bytes | None]], codec: Codec) -> None:
        data = keyed(pairs, timestamp=self.now_ms, codec=codec)
        base = self.log.append(data, leader_epoch=0, now_ms=self.now_ms).base_offset
        assert base == len(self.appended)
        self.appended += [
            Kept(base + number, key, value, self.now_ms + number) for number, (key, value) in enumerate(pairs)
        ]

    @rule(span=st.integers(1, 150))
    def wait(self, span: int) -> None:
        self.now_ms += span

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.flushed = self.log.recovery_point

    @rule()
    def roll(self) -> None:
        roll(self.log, self.now_ms)
        self.flushed = self.log.recovery_point

    @rule(room=st.integers(4, 20))
    def clean(self, room: int) -> None:
        before = self.marks()
        self.cleaned_up_to = one_pass(self.log, self.cleaned_up_to, self.now_ms, room * ENTRY_BYTES)
        self.see(before)
        # What was cleaned holds a key once.
        clean = [record for record in kept(self.log) if record.offset < self.cleaned_up_to]
        assert len({record.key for record in clean}) == len(clean)

    @rule(room=st.integers(4, 20), operations=st.integers(0, 40))
    def crash_in_cleaning(self, room: int, operations: int) -> None:
        before = self.marks()
        try:
            with dying_after(operations):
                one_pass(self.log, self.cleaned_up_to, self.now_ms, room * ENTRY_BYTES)
        except Crash:
            pass
        self.see(before)
        self.reopen(clean=False)
        assert not [path.name for path in self.log.directory.iterdir() if path.suffix in (".cleaned", ".swap")]

    @rule(clean=st.booleans())
    def reopen(self, clean: bool) -> None:
        if clean:
            self.log.close()
            self.flushed = self.log.recovery_point
        self.log = open_log(
            self.log.directory,
            self.config,
            now_ms=self.now_ms,
            clean=clean,
            recovery_point=self.flushed,
            start_offset=self.log.start_offset,
        )
        assert self.log.recovery is None

    @rule(share=st.floats(0, 1))
    def advance_start(self, share: float) -> None:
        self.log.advance_start(int(self.log.end_offset * share))

    @rule()
    def retain(self) -> None:
        self.log.retain(self.now_ms)

    @rule(share=st.floats(0, 1))
    def read(self, share: float) -> None:
        offset = self.log.start_offset + int((self.log.end_offset - self.log.start_offset) * share)
        piece = self.log.read(offset, 200)
        # There is always a last record, up to the very end.
        assert (piece is not None) == (offset < self.log.end_offset)

    def marks(self) -> set[int]:
        """The tombstones that a cleaning may find: those in closed segments."""
        return {record.offset for record in kept(self.log) if record.value is None}

    def see(self, before: set[int]) -> None:
        for offset in before:
            if offset < self.log.bases[-1]:
                self.seen.setdefault(offset, self.now_ms)

    @invariant()
    def holds(self) -> None:
        if not hasattr(self, "log"):
            return
        log = self.log
        assert log.end_offset == len(self.appended)
        found = kept(log)
        assert all(record == self.appended[record.offset] for record in found)
        there = {record.offset for record in found}
        last: dict[Any, Kept] = {}
        for record in self.appended:
            last[record.key] = record
        for record in last.values():
            if record.offset >= log.start_offset and record.offset not in there:
                assert record.value is None
                assert self.now_ms >= self.seen[record.offset] + DELETE_RETENTION_MS
        uncleaned = [record.offset for record in self.appended if record.offset >= log.bases[-1]]
        assert there.issuperset(offset for offset in uncleaned if offset >= log.start_offset)
        assert log.size_bytes == sum(path.stat().st_size for path in log.directory.glob("*.log"))
        offsets = [header.base_offset for _, header in iter_headers(everything(log))]
        assert offsets == sorted(offsets)

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()


TestCompactionAgainstList = CompactionAgainstList.TestCase
TestCompactionAgainstList.settings = settings(max_examples=60, stateful_step_count=40)
