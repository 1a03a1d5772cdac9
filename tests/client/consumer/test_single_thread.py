from __future__ import annotations

import sys
import threading
from types import FrameType
from typing import Any

import pytest

from ottla.client.consumer.single_thread import SingleThread
from ottla.errors import IllegalStateError


def test_calls_of_one_thread_may_nest() -> None:
    guard = SingleThread("consumer")
    with guard, guard:
        pass
    with guard:
        pass


def test_a_second_thread_gets_an_error_that_names_the_call() -> None:
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


def test_another_thread_may_use_it_afterwards() -> None:
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


def test_an_error_inside_releases_the_lock() -> None:
    guard = SingleThread("consumer")
    with pytest.raises(ValueError, match="x"), guard:
        raise ValueError("x")
    assert guard._depth == 0
    assert not guard._owner


def interrupted_at(guard: SingleThread, line: int) -> bool:
    """Enter, Ctrl-C striking at this line of `__enter__`, counted from its first; False: it has no such line."""
    code = SingleThread.__enter__.__code__

    def strike(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code is code and event == "line" and frame.f_lineno - code.co_firstlineno == line:
            raise KeyboardInterrupt
        return strike

    before = sys.gettrace()
    sys.settrace(strike)
    try:
        guard.__enter__()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    guard.__exit__(None)
    return False


def test_ctrl_c_at_any_line_of_its_entry_leaves_it_usable() -> None:
    lines = [line for line in range(20) if interrupted_at(SingleThread("consumer"), line)]
    assert len(lines) >= 3
    for line in lines:
        guard = SingleThread("consumer")
        interrupted_at(guard, line)
        with guard:
            pass
        assert not guard._owner
