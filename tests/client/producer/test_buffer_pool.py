from __future__ import annotations

import threading
import time

import pytest

from ottla.client.producer.buffer_pool import BufferPool
from ottla.errors import BufferExhaustedError


def pool(total: int = 100) -> BufferPool:
    return BufferPool(total, time.monotonic)


def test_memory_is_counted() -> None:
    memory = pool()
    memory.allocate(60, 0)
    assert memory.available_bytes == 40
    memory.deallocate(60)
    assert memory.available_bytes == 100


@pytest.mark.behaviour("P2")
def test_who_waits_too_long_is_told_which_settings_to_raise() -> None:
    memory = pool()
    memory.allocate(100, 0)
    with pytest.raises(BufferExhaustedError, match=r"max\.block\.ms = 10: 100 bytes \(buffer\.memory\)"):
        memory.allocate(1, 0.01)
    assert memory.queued == 0


def test_who_waits_gets_what_is_given_back() -> None:
    memory = pool()
    memory.allocate(100, 0)
    waiting = threading.Event()
    thread = threading.Thread(target=memory.allocate, args=(70, 10, waiting.set))
    thread.start()
    assert waiting.wait(10)
    memory.deallocate(60)
    memory.deallocate(40)
    thread.join(10)
    assert not thread.is_alive()
    assert memory.available_bytes == 30


def test_a_large_wish_is_not_overtaken_by_small_ones() -> None:
    memory = pool()
    memory.allocate(100, 0)
    waiting = threading.Event()
    got: list[int] = []

    def take(size: int) -> None:
        memory.allocate(size, 10, waiting.set)
        got.append(size)

    large = threading.Thread(target=take, args=(90,))
    large.start()
    assert waiting.wait(10)
    memory.deallocate(50)
    with pytest.raises(BufferExhaustedError):
        memory.allocate(10, 0.01)
    memory.deallocate(50)
    large.join(10)
    assert got == [90]


def test_closing_ends_the_waiting() -> None:
    memory = pool()
    memory.allocate(100, 0)
    waiting = threading.Event()
    errors: list[BaseException] = []

    def take() -> None:
        try:
            memory.allocate(1, 60, waiting.set)
        except BufferExhaustedError as error:
            errors.append(error)

    thread = threading.Thread(target=take)
    thread.start()
    assert waiting.wait(10)
    memory.close()
    thread.join(10)
    assert "closed" in str(errors[0])
