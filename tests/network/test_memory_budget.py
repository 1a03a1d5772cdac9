"""The choice of channels that may read when memory for requests is short."""

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


def test_one_channel_continues_and_the_others_wait_until_its_request_is_complete(short: MemoryBudget) -> None:
    assert short.can_continue_reading("a", BIG, 0.0)
    assert not short.can_continue_reading("b", BIG + 1, 0.0)
    assert not short.can_continue_reading("c", BIG, 0.0)
    assert short.can_continue_reading("a", BIG, 0.0)
    assert not short.take_readmitted(0.0)
    short.record_completion("a")
    assert short.take_readmitted(0.0) == ["c"], "it misses less than b"
    short.check()


def test_when_memory_is_free_again_waiting_channels_continue_in_order(short: MemoryBudget) -> None:
    assert [short.can_continue_reading(connection_id, BIG, 0.0) for connection_id in "abc"] == [True, False, False]
    short.unfinished = 0
    assert short.has_readmitted()
    assert short.take_readmitted(0.0) == ["b", "c"]
    assert not short.has_readmitted()


def test_a_small_request_is_read_whatever_is_left(short: MemoryBudget) -> None:
    assert short.can_continue_reading("a", BIG, 0.0)
    assert short.can_continue_reading("b", SMALL_BYTES, 0.0)


def test_no_channel_is_elected_while_complete_requests_fill_the_memory(short: MemoryBudget) -> None:
    short.unfinished, short.handed_out = 0, 1000
    assert not short.can_continue_reading("a", BIG, 0.0)
    assert short.take_readmitted(0.0) == []
    short.handed_out = 999
    assert short.take_readmitted(0.0) == ["a"]


def test_a_channel_that_blocks_others_too_long_is_named(short: MemoryBudget) -> None:
    assert short.can_continue_reading("a", BIG, 5.0)
    assert short.deadline() is None, "nobody waits for it"
    assert not short.can_continue_reading("b", BIG, 6.0)
    end = 5.0 + PATIENCE_SECONDS + BIG / LEAST_BYTES_PER_SECOND
    assert short.deadline() == end
    assert short.find_too_slow(end - 0.1) is None
    assert short.find_too_slow(end) == "a"
    short.release("a", 600)
    assert short.unfinished == 400
    assert short.take_readmitted(end) == ["b"]


def test_for_any_sequence_some_channel_can_continue_and_memory_stays_bounded() -> None:
    """A thousand connections with big requests; each reads a piece when it is allowed to."""
    chance = random.Random(5)
    budget, size, piece = MemoryBudget(10 * BIG), 4 * BIG, BIG // 2
    missing: dict[Hashable, int] = dict.fromkeys(range(1000), size)
    held = dict.fromkeys(missing, 0)
    reading: set[Hashable] = set(missing)
    highest = turns = 0
    while missing:
        turns += 1
        assert turns < 20_000, "no deadlock"
        reading |= set(budget.take_readmitted(0.0))
        assert reading, "somebody can always go on"
        for connection_id in chance.sample(sorted(reading, key=str), min(len(reading), 10)):
            if (
                budget.is_exhausted
                and held[connection_id]
                and not budget.can_continue_reading(connection_id, missing[connection_id], 0.0)
            ):
                reading.discard(connection_id)
                continue
            got = min(piece if held[connection_id] or not budget.is_exhausted else 1, missing[connection_id])
            held[connection_id] += got
            missing[connection_id] -= got
            budget.unfinished += got
            highest = max(highest, budget.unfinished)
            if not missing[connection_id]:
                budget.record_completion(connection_id)
                budget.release(connection_id, held[connection_id])
                reading.discard(connection_id)
                del missing[connection_id]
        budget.check()
    assert budget.unfinished == 0
    assert highest < budget.limit + size + 10 * piece + 1000
