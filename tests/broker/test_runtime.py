"""The runtime: nothing is state that is not in the log, nothing is answered that is not state."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.machines.alarms import Alarms
from ottla.broker.machines.runtime import Coding, Hooks, KeyAndValue, Pending, Runtime
from ottla.broker.timers import Timers
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


def run(log: Log, durable: bool = False) -> Runtime[Sum]:
    return Runtime(
        Sum,
        log,
        Coding(lambda number: (None, b"%d" % number), lambda key, value: int(value or b"")),
        ManualClock(),
        durable=durable,
    )


def test_a_decision_is_replied_to_when_it_is_in_the_log_and_replayed(log: Log) -> None:
    runtime = run(log)
    assert runtime.ask(lambda ticket: Add(ticket, 4)) == "added"
    assert (runtime.machine.total, log.end_offset) == (4, 1)


def test_a_decision_without_records_writes_nothing(log: Log) -> None:
    assert run(log).ask(lambda ticket: Add(ticket, 3)) == "odd"
    assert log.end_offset == 0


def test_a_machine_is_built_again_from_its_log(log: Log) -> None:
    runtime = run(log)
    for _ in range(1000):
        runtime.ask(lambda ticket: Add(ticket, 2))
    assert run(log).machine.total == 2000


def test_a_failed_append_leaves_the_state_that_is_in_the_log(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = run(log)
    runtime.ask(lambda ticket: Add(ticket, 2))

    def full(fd: int, data: object, position: int) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR"):
            runtime.ask(lambda ticket: Add(ticket, 4))
    assert runtime.machine.total == 2
    assert runtime.ask(lambda ticket: Add(ticket, 4)) == "added"
    assert runtime.machine.total == 6


def test_a_durable_decision_is_on_the_disk_before_it_is_answered(log: Log) -> None:
    run(log, durable=True).ask(lambda ticket: Add(ticket, 2))
    assert log.recovery_point == 1


class Meeting:
    """Keeps everybody waiting until `size` have come; who has come is kept in memory only."""

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


def meet(
    log: Log, encode: Callable[[Any], KeyAndValue | None] = lambda waiting: None, **hooks: Any
) -> Runtime[Meeting]:
    coding = Coding(encode, lambda key, value: ())
    return Runtime(lambda: Meeting(2), log, coding, ManualClock(), durable=False, hooks=Hooks(**hooks))


def test_a_reply_may_come_with_somebody_elses_event(log: Log) -> None:
    runtime = meet(log)
    heard: list[str] = []
    assert isinstance(runtime.ask(lambda ticket: ticket, heard.append), Pending)
    assert heard == []
    assert runtime.ask(lambda ticket: ticket, heard.append) == "all here"
    assert heard == ["all here"]
    assert log.end_offset == 0


def test_notes_are_told_and_alarms_set_and_cancelled(log: Log) -> None:
    timers = Timers()
    rung: list[Any] = []
    notes: list[str] = []
    runtime = meet(log, alarms=Alarms(timers, rung.append), noted=notes.append)
    runtime.ask(lambda ticket: ticket)
    assert (notes, timers.patience(0)) == (["1 waits"], 5)
    runtime.ask(lambda ticket: ticket)
    assert timers.patience(0) is None
    runtime.ask(lambda ticket: ticket)
    timers.run(5)
    assert rung == ["late"]


def test_who_waits_hears_of_an_append_that_failed(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    timers = Timers()
    heard: list[KafkaError] = []
    again: list[str] = []
    runtime = meet(
        log,
        encode=lambda waiting: None if waiting else (b"key", b"met"),
        alarms=Alarms(timers, lambda name: None),
        rebuilt=lambda: again.append("rebuilt"),
    )
    runtime.ask(lambda ticket: ticket, heard.append)

    def full(fd: int, data: object, position: int) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(KafkaError):
        runtime.ask(lambda ticket: ticket, heard.append)
    assert [error.name for error in heard] == ["KAFKA_STORAGE_ERROR"]
    assert again == ["rebuilt"]
    assert timers.patience(0) is None
    assert runtime.machine.waiting == ()


def test_an_alarm_that_is_put_off_rings_once_and_late() -> None:
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


def test_an_alarm_that_is_brought_forward_rings_early() -> None:
    timers = Timers()
    rung: list[Any] = []
    alarms = Alarms(timers, rung.append)
    alarms.set(Alarm("join", 10.0))
    alarms.set(Alarm("join", 3.0))
    timers.run(3)
    timers.run(10)
    assert rung == ["join"]
