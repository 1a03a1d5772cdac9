"""Producer rules against a list: whatever is sent, and however often the log is opened again, both agree."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ottla.errors import ErrorCode, KafkaError
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.producers.producer_entry import MAX_SEQUENCE
from tests.storage.batches import open_log
from tests.storage.producing import end, send
from tests.storage.unforced import nothing_is_forced  # noqa: F401 (a fixture that acts by being here)

CONFIG = LogConfig(segment_bytes=500, segment_ms=2**62, retention_bytes=600)
PLAIN, TRANSACTIONAL = (1, 2), (11, 12)


class ProducersAgainstLists(RuleBasedStateMachine):
    """For each producer: its epoch, and (first sequence, count, base offset) of each batch of that epoch."""

    @initialize(first=st.sampled_from([0, 5, MAX_SEQUENCE - 3]))
    def begin(self, first: int) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.directory = Path(self.folder.name) / "t-0"
        self.log: Log = open_log(self.directory, CONFIG)
        self.first = first
        self.epochs = dict.fromkeys(PLAIN + TRANSACTIONAL, 0)
        self.sent: dict[int, list[tuple[int, int, int]]] = {id_: [] for id_ in self.epochs}
        self.begun: dict[int, int] = {}

    def next_sequence(self, id_: int) -> int:
        if not self.sent[id_]:
            return 0 if self.epochs[id_] or id_ in self.log.producers.entries else self.first
        sequence, count, _ = self.sent[id_][-1]
        return (sequence + count) % (MAX_SEQUENCE + 1)

    def send(self, id_: int, sequence: int, count: int, epoch: int) -> int | ErrorCode:
        try:
            return send(self.log, id_, sequence, count, epoch=epoch, transactional=id_ in TRANSACTIONAL).base_offset
        except KafkaError as error:
            return ErrorCode(error.code)

    @rule(id_=st.sampled_from(PLAIN + TRANSACTIONAL), count=st.integers(1, 4))
    def go_on(self, id_: int, count: int) -> None:
        sequence, base = self.next_sequence(id_), self.log.end_offset
        assert self.send(id_, sequence, count, self.epochs[id_]) == base
        self.sent[id_].append((sequence, count, base))
        if id_ in TRANSACTIONAL:
            self.begun.setdefault(id_, base)

    @rule(id_=st.sampled_from(PLAIN + TRANSACTIONAL), back=st.integers(1, 7))
    def repeat(self, id_: int, back: int) -> None:
        if len(self.sent[id_]) >= back:
            sequence, count, base = self.sent[id_][-back]
            expected = base if back <= 5 else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            assert self.send(id_, sequence, count, self.epochs[id_]) == expected

    @rule(id_=st.sampled_from(PLAIN + TRANSACTIONAL), gap=st.integers(1, 50))
    def leave_a_gap(self, id_: int, gap: int) -> None:
        if self.sent[id_]:
            sequence = (self.next_sequence(id_) + gap) % (MAX_SEQUENCE + 1)
            assert self.send(id_, sequence, 1, self.epochs[id_]) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    @rule(id_=st.sampled_from(PLAIN + TRANSACTIONAL))
    def begin_an_epoch(self, id_: int) -> None:
        if self.sent[id_]:
            self.epochs[id_] += 1
            assert self.send(id_, 7, 1, self.epochs[id_]) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            self.sent[id_] = []
            self.go_on(id_, 1)
            assert self.send(id_, 1, 1, self.epochs[id_] - 1) == ErrorCode.INVALID_PRODUCER_EPOCH

    @rule(id_=st.sampled_from(TRANSACTIONAL), commit=st.booleans())
    def end(self, id_: int, commit: bool) -> None:
        end(self.log, id_, commit=commit, epoch=self.epochs[id_])
        self.begun.pop(id_, None)

    @rule()
    def retain(self) -> None:
        self.log.retain(0)

    @rule(clean=st.booleans(), flush=st.booleans())
    def reopen(self, clean: bool, flush: bool) -> None:
        if flush:
            self.log.flush()
        if clean:
            self.log.close()
        start, flushed = self.log.start_offset, self.log.recovery_point
        self.log = open_log(self.directory, CONFIG, clean=clean, start_offset=start, recovery_point=flushed)

    @invariant()
    def agrees(self) -> None:
        if hasattr(self, "log"):
            self.log.producers.check_invariants()
            unstable = min(self.begun.values(), default=self.log.end_offset)
            assert self.log.last_stable_offset == max(unstable, self.log.start_offset)

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()


TestProducersAgainstLists = ProducersAgainstLists.TestCase
TestProducersAgainstLists.settings = settings(max_examples=60, stateful_step_count=40)
