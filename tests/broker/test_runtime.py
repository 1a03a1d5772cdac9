"""The runtime: nothing is state that is not in the log, nothing is answered that is not state."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ottla.broker.runtime import Runtime
from ottla.clock import ManualClock
from ottla.coordination.machine import Decision, Reply
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
        encode=lambda number: (None, b"%d" % number),
        decode=lambda key, value: int(value or b""),
        clock=ManualClock(),
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
