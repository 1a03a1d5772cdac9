"""Who may read on when memory for requests is short."""

from __future__ import annotations

import random
from collections.abc import Hashable

import pytest

from ottla.network.memory_budget import LEAST_BYTES_PER_SECOND, PATIENCE_SECONDS, SMALL_BYTES, MemoryBudget

BIG = SMALL_BYTES + 1


@pytest.fixture
def short() -> MemoryBudget:
    """A budget that half-read requests have used up."""
    budget = MemoryBudget(1000)
    budget.unfinished = 1000
    return budget


def test_one_goes_on_and_the_others_wait_until_its_request_is_whole(short: MemoryBudget) -> None:
    assert short.may_go_on("a", BIG, 0.0)
    assert not short.may_go_on("b", BIG + 1, 0.0)
    assert not short.may_go_on("c", BIG, 0.0)
    assert short.may_go_on("a", BIG, 0.0)
    assert not short.readmit(0.0)
    short.completed("a")
    assert short.readmit(0.0) == ["c"], "it misses less than b"
    short.check()


def test_when_there_is_room_again_those_that_waited_go_on_in_their_order(short: MemoryBudget) -> None:
    assert [short.may_go_on(who, BIG, 0.0) for who in "abc"] == [True, False, False]
    short.unfinished = 0
    assert short.has_news()
    assert short.readmit(0.0) == ["b", "c"]
    assert not short.has_news()


def test_a_small_request_is_read_whatever_is_left(short: MemoryBudget) -> None:
    assert short.may_go_on("a", BIG, 0.0)
    assert short.may_go_on("b", SMALL_BYTES, 0.0)


def test_nobody_is_elected_while_whole_requests_fill_the_memory(short: MemoryBudget) -> None:
    short.unfinished, short.handed_out = 0, 1000
    assert not short.may_go_on("a", BIG, 0.0)
    assert short.readmit(0.0) == []
    short.handed_out = 999
    assert short.readmit(0.0) == ["a"]


def test_who_keeps_others_waiting_too_long_is_named(short: MemoryBudget) -> None:
    assert short.may_go_on("a", BIG, 5.0)
    assert short.deadline() is None, "nobody waits for it"
    assert not short.may_go_on("b", BIG, 6.0)
    end = 5.0 + PATIENCE_SECONDS + BIG / LEAST_BYTES_PER_SECOND
    assert short.deadline() == end
    assert short.too_slow(end - 0.1) is None
    assert short.too_slow(end) == "a"
    short.release("a", 600)
    assert short.unfinished == 400
    assert short.readmit(end) == ["b"]


def test_whatever_happens_somebody_can_go_on_and_memory_stays_bounded() -> None:
    """A thousand connections with big requests; each reads a piece when it may."""
    chance = random.Random(5)
    budget, size, piece = MemoryBudget(10 * BIG), 4 * BIG, BIG // 2
    missing: dict[Hashable, int] = dict.fromkeys(range(1000), size)
    held = dict.fromkeys(missing, 0)
    reading: set[Hashable] = set(missing)
    highest = turns = 0
    while missing:
        turns += 1
        assert turns < 20_000, "no deadlock"
        reading |= set(budget.readmit(0.0))
        assert reading, "somebody can always go on"
        for who in chance.sample(sorted(reading, key=str), min(len(reading), 10)):
            if budget.short and held[who] and not budget.may_go_on(who, missing[who], 0.0):
                reading.discard(who)
                continue
            got = min(piece if held[who] or not budget.short else 1, missing[who])
            held[who] += got
            missing[who] -= got
            budget.unfinished += got
            highest = max(highest, budget.unfinished)
            if not missing[who]:
                budget.completed(who)
                budget.release(who, held[who])
                reading.discard(who)
                del missing[who]
        budget.check()
    assert budget.unfinished == 0
    assert highest < budget.limit + size + 10 * piece + 1000
