"""The system clock and the manual clock."""

from __future__ import annotations

import time

from ottla.clock import Clock, ManualClock, SystemClock


def test_a_manual_clock_changes_only_when_it_is_advanced() -> None:
    clock: Clock = ManualClock(now=5.0, wall_ms=1000)
    assert (clock.monotonic(), clock.wall_ms()) == (5.0, 1000)
    assert (clock.monotonic(), clock.wall_ms()) == (5.0, 1000)


def test_both_readings_of_a_manual_clock_move_together() -> None:
    clock = ManualClock(now=5.0, wall_ms=1000)
    clock.advance(1.5)
    assert (clock.monotonic(), clock.wall_ms()) == (6.5, 2500)


def test_the_system_clock_reads_the_machines_time() -> None:
    clock: Clock = SystemClock()
    before = time.time()
    assert abs(clock.wall_ms() / 1000 - before) < 5
    assert clock.monotonic() <= clock.monotonic()
