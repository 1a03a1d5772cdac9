"""The locks of records of a share group."""

from __future__ import annotations

from typing import Any

from ottla.client.work.state.locks import Locks

A: Any
B: Any
A, B = "job a", "job b"


def test_a_lock_is_renewed_after_half_of_its_time_and_again() -> None:
    locks = Locks()
    locks.start(A, 0.0)
    locks.start(B, 4.0)
    assert locks.renew_due(14.9, 30.0) == []
    assert locks.renew_due(15.0, 30.0) == [A]
    assert locks.renew_due(19.0, 30.0) == [B]
    assert locks.renew_due(30.0, 30.0) == [A]


def test_a_lock_that_has_ended_is_not_renewed() -> None:
    locks = Locks()
    locks.start(A, 0.0)
    locks.end(A)
    locks.end(B)
    assert (len(locks), locks.renew_due(60.0, 30.0)) == (0, [])


def test_a_record_that_is_delivered_again_has_a_new_lock() -> None:
    locks = Locks()
    locks.start(A, 0.0)
    locks.start(B, 1.0)
    locks.start(A, 10.0)
    assert locks.renew_due(20.0, 30.0) == [B]
