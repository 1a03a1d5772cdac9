from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.client.producer.buffer_pool import BufferPool, MemoryClaim


def test_memory_is_counted() -> None:
    memory = BufferPool(100)
    assert memory.allocate(60)
    assert memory.available_bytes == 40
    memory.deallocate(60)
    assert memory.available_bytes == 100


def test_no_more_memory_is_granted_than_the_pool_has() -> None:
    memory = BufferPool(100)
    assert memory.allocate(100)
    assert not memory.allocate(1)
    assert memory.queued == 0


def test_waiting_claims_get_released_memory() -> None:
    memory = BufferPool(100)
    memory.allocate(100)
    claim = memory.claim(70)
    memory.deallocate(60)
    assert memory.queued == 1
    memory.deallocate(40)
    assert claim.granted
    assert memory.available_bytes == 30


def test_a_claim_is_granted_at_once_if_no_other_waits() -> None:
    memory = BufferPool(100)
    assert memory.claim(100).granted


def test_a_large_claim_is_not_overtaken_by_small_ones() -> None:
    memory = BufferPool(100)
    memory.allocate(100)
    large, small = memory.claim(90), memory.claim(10)
    memory.deallocate(50)
    assert not memory.allocate(10)
    assert not small.granted
    memory.deallocate(50)
    assert large.granted
    assert small.granted


def test_a_cancelled_claim_lets_the_next_one_proceed() -> None:
    memory = BufferPool(100)
    memory.allocate(95)
    large, small = memory.claim(90), memory.claim(5)
    memory.withdraw(large)
    assert small.granted
    assert memory.queued == 0


def test_unspent_memory_is_released_and_spent_memory_is_not() -> None:
    memory = BufferPool(100)
    unspent, spent = memory.claim(30), memory.claim(20)
    spent.spent = True
    for claim in (unspent, spent):
        memory.withdraw(claim)
    assert memory.available_bytes == 80


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 100)), max_size=60))
def test_for_any_sequence_of_calls_no_byte_is_lost_or_granted_twice_and_no_grantable_claim_waits(
    moves: list[tuple[int, int]],
) -> None:
    memory, held = BufferPool(100), list[int]()
    claims: list[MemoryClaim] = []
    for move, size in moves:
        if move == 0 and memory.allocate(size):
            held.append(size)
        elif move == 1:
            claims.append(memory.claim(size))
        elif move == 2 and held:
            memory.deallocate(held.pop())
        elif move == 3 and claims:
            memory.withdraw(claims.pop(size % len(claims)))
        waiting = [claim for claim in claims if not claim.granted]
        assert memory.available_bytes == 100 - sum(held) - sum(claim.size for claim in claims if claim.granted)
        assert memory.queued == len(waiting)
        assert not waiting or waiting[0].size > memory.available_bytes


def test_a_claim_is_cancelled_only_once() -> None:
    memory = BufferPool(100)
    claim = memory.claim(30)
    for _ in range(2):
        memory.withdraw(claim)
    assert memory.available_bytes == 100


def test_a_pool_is_open_until_it_is_closed() -> None:
    memory = BufferPool(100)
    assert not memory.closed
    memory.close()
    assert memory.closed
