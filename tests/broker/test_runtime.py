"""The runtime: nothing is state that is not in the log, nothing is answered that is not state."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.event_loop.timers import Timers
from ottla.broker.state_machines.alarms import Alarms
from ottla.broker.state_machines.runtime import Coding, Hooks, KeyAndValue, PendingReply, Runtime
from ottla.clock import ManualClock
from ottla.coordination.machine import Alarm, Decision, Reply
from ottla.errors import KafkaError
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig


@dataclass(frozen=True)
class Add:
    ticket: int
    number: int


class Sum:
    """Adds numbers; refuses odd ones."""

    def __init__(self) -> None:
        self.total = 0

    def decide(self, event: Add, now: float) -> Decision[int]:
        if event.number % 2:
            return Decision((), (Reply(event.ticket, "odd"),))
        return Decision((event.number,), (Reply(event.ticket, "added"),))

    def replay(self, record: int) -> None:
        self.total += record

    def check(self) -> None:
        assert self.total % 2 == 0


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    log = Log.open(tmp_path / "sum-0", LogConfig(), now_ms=0)
    yield log
    log.close()


def run(log: Log) -> Runtime[Sum]:
    return Runtime(
        Sum,
        log,
        Coding(lambda number: (None, b"%d" % number), lambda key, value: int(value or b"")),
        ManualClock(),
    )


def test_a_reply_is_sent_when_the_decision_is_in_the_log_and_replayed(log: Log) -> None:
    runtime = run(log)
    assert runtime.submit(lambda ticket: Add(ticket, 4)) == "added"
    assert (runtime.machine.total, log.end_offset) == (4, 1)


def test_a_decision_without_records_writes_nothing(log: Log) -> None:
    assert run(log).submit(lambda ticket: Add(ticket, 3)) == "odd"
    assert log.end_offset == 0


def test_a_machine_is_rebuilt_from_its_log(log: Log) -> None:
    runtime = run(log)
    for _ in range(1000):
        runtime.submit(lambda ticket: Add(ticket, 2))
    assert run(log).machine.total == 2000


def test_a_failed_append_leaves_the_state_of_the_log(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = run(log)
    runtime.submit(lambda ticket: Add(ticket, 2))

    def full(fd: int, data: object, position: int) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR"):
            runtime.submit(lambda ticket: Add(ticket, 4))
    assert runtime.machine.total == 2
    assert runtime.submit(lambda ticket: Add(ticket, 4)) == "added"
    assert runtime.machine.total == 6


class Meeting:
    """A machine that delays every reply until `size` requests have arrived; they are kept in memory only."""

    def __init__(self, size: int = 2) -> None:
        self.size = size
        self.waiting: tuple[int, ...] = ()

    def decide(self, event: int, now: float) -> Decision[tuple[int, ...]]:
        waiting = (*self.waiting, event)
        if len(waiting) < self.size:
            return Decision((waiting,), alarms=(Alarm("late", now + 5),), notes=(f"{event} waits",))
        return Decision(((),), tuple(Reply(ticket, "all here") for ticket in waiting), (Alarm("late", None),))

    def replay(self, record: tuple[int, ...]) -> None:
        self.waiting = record

    def check(self) -> None:
        assert len(self.waiting) < self.size


def make_runtime(
    log: Log, encode: Callable[[Any], KeyAndValue | None] = lambda waiting: None, **hooks: Any
) -> Runtime[Meeting]:
    coding = Coding(encode, lambda key, value: ())
    return Runtime(lambda: Meeting(2), log, coding, ManualClock(), hooks=Hooks(**hooks))


def test_a_reply_may_be_sent_by_a_later_event(log: Log) -> None:
    runtime = make_runtime(log)
    heard: list[str] = []
    assert isinstance(runtime.submit(lambda ticket: ticket, heard.append), PendingReply)
    assert heard == []
    assert runtime.submit(lambda ticket: ticket, heard.append) == "all here"
    assert heard == ["all here"]
    assert log.end_offset == 0


def test_notes_are_delivered_and_alarms_set_and_cancelled(log: Log) -> None:
    timers = Timers()
    rung: list[Any] = []
    notes: list[str] = []
    runtime = make_runtime(log, alarms=Alarms(timers, rung.append), on_note=notes.append)
    runtime.submit(lambda ticket: ticket)
    assert (notes, timers.time_until_next(0)) == (["1 waits"], 5)
    runtime.submit(lambda ticket: ticket)
    assert timers.time_until_next(0) is None
    runtime.submit(lambda ticket: ticket)
    timers.run(5)
    assert rung == ["late"]


def test_waiting_callers_are_informed_of_a_failed_append(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    timers = Timers()
    heard: list[KafkaError] = []
    again: list[str] = []
    runtime = make_runtime(
        log,
        encode=lambda waiting: None if waiting else (b"key", b"met"),
        alarms=Alarms(timers, lambda name: None),
        on_rebuilt=lambda: again.append("rebuilt"),
    )
    runtime.submit(lambda ticket: ticket, heard.append)

    def full(fd: int, data: object, position: int) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(KafkaError):
        runtime.submit(lambda ticket: ticket, heard.append)
    assert [error.name for error in heard] == ["KAFKA_STORAGE_ERROR"]
    assert again == ["rebuilt"]
    assert timers.time_until_next(0) is None
    assert runtime.machine.waiting == ()


def test_a_postponed_alarm_fires_once_at_the_later_time() -> None:
    timers = Timers()
    rung: list[Any] = []
    alarms = Alarms(timers, rung.append)
    alarms.set(Alarm("session", 10.0))
    for moment in range(11, 20):
        alarms.set(Alarm("session", float(moment)))
    assert len(timers) == 1
    timers.run(10)
    timers.run(18.9)
    assert rung == []
    timers.run(19)
    timers.run(99)
    assert rung == ["session"]


def test_an_advanced_alarm_fires_at_the_earlier_time() -> None:
    timers = Timers()
    rung: list[Any] = []
    alarms = Alarms(timers, rung.append)
    alarms.set(Alarm("join", 10.0))
    alarms.set(Alarm("join", 3.0))
    timers.run(3)
    timers.run(10)
    assert rung == ["join"]
