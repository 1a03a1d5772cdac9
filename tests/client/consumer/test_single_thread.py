from __future__ import annotations

import threading

import pytest

from ottla.client.consumer.single_thread import SingleThread
from ottla.errors import IllegalStateError


def test_calls_of_one_thread_may_nest() -> None:
    guard = SingleThread("consumer")
    with guard, guard:
        pass
    with guard:
        pass


def test_a_second_thread_is_told_what_it_may_not_do() -> None:
    guard = SingleThread("consumer")
    errors: list[BaseException] = []

    def intrude() -> None:
        try:
            with guard:
                pass
        except IllegalStateError as error:
            errors.append(error)

    with guard:
        thread = threading.Thread(target=intrude)
        thread.start()
        thread.join(10)
    assert "a second thread called this consumer" in str(errors[0])


def test_another_thread_may_have_it_afterwards() -> None:
    guard = SingleThread("consumer")
    with guard:
        pass

    def use() -> None:
        with guard:
            pass

    thread = threading.Thread(target=use)
    thread.start()
    thread.join(10)
    with guard:
        pass


def test_an_error_inside_lets_go_of_it() -> None:
    guard = SingleThread("consumer")
    with pytest.raises(ValueError, match="x"), guard:
        raise ValueError("x")
    assert guard._depth == 0
    assert not guard._lock.locked()
