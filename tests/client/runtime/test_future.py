from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from ottla.client.runtime.future import Future
from ottla.errors import KafkaTimeoutError


def test_a_result_can_be_had_any_number_of_times() -> None:
    future: Future[int] = Future()
    future.set_result(7)
    assert [future.result(), future.result(0)] == [7, 7]
    assert future.exception() is None


def test_result_raises_the_error_of_the_future() -> None:
    future: Future[int] = Future()
    future.set_exception(ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        future.result()
    assert isinstance(future.exception(), ValueError)


def test_waiting_ends_at_the_timeout() -> None:
    with pytest.raises(KafkaTimeoutError, match=r"within 0\.01 s"):
        Future[int]().result(0.01)


def test_waiting_ends_when_another_thread_completes_it() -> None:
    future: Future[str] = Future()
    thread = threading.Thread(target=future.set_result, args=("done",))
    thread.start()
    assert future.result(10) == "done"
    thread.join()


def test_only_the_first_completion_counts() -> None:
    future: Future[int] = Future()
    future.set_result(1)
    future.set_result(2)
    future.set_exception(ValueError())
    assert future.result() == 1


def test_callbacks_run_in_order_and_at_once_after_completion() -> None:
    future: Future[int] = Future()
    seen: list[str] = []
    future.add_done_callback(lambda f: seen.append("a"))
    future.add_done_callback(lambda f: seen.append("b"))
    future.set_result(1)
    future.add_done_callback(lambda f: seen.append("c"))
    assert seen == ["a", "b", "c"]


def test_a_callback_that_raises_is_logged_and_does_not_affect_others(caplog: pytest.LogCaptureFixture) -> None:
    future: Future[int] = Future()
    seen: list[int] = []
    future.add_done_callback(lambda f: 1 / 0)  # type: ignore[arg-type]
    future.add_done_callback(lambda f: seen.append(f.result()))
    with caplog.at_level(logging.ERROR):
        future.set_result(1)
    assert seen == [1]
    assert "ZeroDivisionError" in caplog.text


def test_it_can_be_awaited_from_asyncio() -> None:
    future: Future[int] = Future()

    async def wait() -> int:
        threading.Thread(target=future.set_result, args=(5,)).start()
        return await future

    assert asyncio.run(wait()) == 5


def test_awaiting_raises_the_error() -> None:
    future: Future[int] = Future()

    async def wait() -> None:
        threading.Thread(target=future.set_exception, args=(ValueError("no"),)).start()
        with pytest.raises(ValueError, match="no"):
            await future

    asyncio.run(wait())


def test_a_loop_that_ended_meanwhile_does_not_disturb_the_others() -> None:
    future: Future[int] = Future()

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await future

    asyncio.run(give_up())
    future.set_result(1)
    assert future.result() == 1
