"""A result that another thread or a later `poll` provides.

Completed once, from any thread; waited for in any thread, or awaited in asyncio.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar, cast
from weakref import WeakMethod

from ottla.client.interface.arguments import checked_timeout
from ottla.errors import IllegalStateError, KafkaTimeoutError

T = TypeVar("T")
LOG = logging.getLogger(__name__)
GUARD = threading.Lock()
"""Serialises completing a future and registering a callback, for all futures. It is held very briefly."""


class ThreadRole(threading.local):
    """The role of the current thread: callbacks of users also run in threads of clients."""

    is_client: bool = False
    """True in a thread of a client's own: nothing that user code raises may end it."""
    completion_tests: tuple[WeakMethod[Callable[[object], bool]], ...] = ()
    """For each client that uses this thread, a test for futures that only this thread completes."""
    exit_error: BaseException | None = None
    """SystemExit or similar, raised by a callback in a user's thread; re-raised by `raise_exit`."""


THREAD = ThreadRole()


class Future(Generic[T]):
    """The result of an operation that another thread, or a later `poll`, will finish."""

    __slots__ = ("_callbacks", "_done", "_error", "_value")

    def __init__(self) -> None:
        self._done = False
        self._value: T | None = None
        self._error: Exception | None = None
        self._callbacks: list[Callable[[Future[T]], None]] = []

    def __repr__(self) -> str:
        what = "pending" if not self._done else repr(self._error) if self._error is not None else repr(self._value)
        return f"{type(self).__name__}({what})"

    def done(self) -> bool:
        """Return True if there is a result or an error."""
        return self._done

    def result(self, timeout: float | None = None) -> T:
        """Return the result, after a wait of up to `timeout` seconds. Raise the error, or KafkaTimeoutError."""
        error = self.exception(timeout)
        if error is not None:
            raise error
        return cast(T, self._value)

    def exception(self, timeout: float | None = None) -> Exception | None:
        """Return the error, or None when all went well; waits as `result` does."""
        if not self._done:
            wait_for(self, timeout)
        return self._error

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call `callback(future)` on the thread that completes it; at once when it is complete already."""
        with GUARD:
            if not self._done:
                self._callbacks.append(callback)
                return
        run_callback(callback, self)

    def set_result(self, value: T) -> None:
        """Complete with a result. A future that is complete already stays as it is."""
        self._complete(value, None)

    def set_exception(self, error: Exception) -> None:
        """Complete with an error. A future that is complete already stays as it is."""
        self._complete(None, error)

    def _complete(self, value: T | None, error: Exception | None) -> None:
        with GUARD:
            if self._done:
                return
            self._value, self._error, self._done = value, error, True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            call_safely(callback, self)
        raise_exit()

    def __await__(self) -> Generator[Any, None, T]:
        return await_future(self)


def run_callback(callback: Callable[..., Any], *arguments: Any) -> None:
    """Call a user's callback, and log its errors, which no caller could catch."""
    try:
        callback(*arguments)
    except Exception:
        LOG.exception("a callback raised an error; the record or request itself is not affected")


def call_safely(callback: Callable[..., Any], *arguments: Any) -> None:
    """Call a user's callback among others that must be called too: whatever it raises is logged."""
    try:
        callback(*arguments)
    except BaseException as error:
        log_callback_error(error)


def log_callback_error(error: BaseException) -> None:
    """Log what a callback has raised. SystemExit and its kind in a thread of the user's is kept for `raise_exit`."""
    if not isinstance(error, Exception) and not THREAD.is_client and THREAD.exit_error is None:
        THREAD.exit_error = error  # raised soon, and so not logged
    else:
        LOG.error("a callback raised an error; the record or request itself is not affected", exc_info=error)


def raise_exit() -> None:
    """Raise what a callback has raised to end the program, once the client's own work is done."""
    error = THREAD.exit_error
    if error is not None:
        THREAD.exit_error = None
        raise error


def refuse_waiting(future: object) -> None:
    """Raise IllegalStateError where the thread that waits is the one that would complete the future."""
    if any(completes(future) for each in THREAD.completion_tests if (completes := each()) is not None):
        raise IllegalStateError(
            "waiting for this future here would wait for ever: the thread that runs this code is the one that completes "
            "it; use add_done_callback(), await it in asyncio, or wait in another thread"
        )


def wait_for(future: Any, timeout: float | None) -> None:
    """Block until `future` is done; KafkaTimeoutError when that takes longer than `timeout` seconds."""
    span = -1 if timeout is None else checked_timeout(timeout)
    if span and THREAD.completion_tests:
        refuse_waiting(future)
    gate = threading.Lock()
    gate.acquire()
    future.add_done_callback(lambda _: gate.release())
    if not gate.acquire(timeout=span):
        raise KafkaTimeoutError(f"no result within {span:g} s")


def await_future(future: Any) -> Generator[Any, None, Any]:
    """Return the body of `__await__`: suspend the task until the completing thread calls its loop."""
    import asyncio

    if not future.done():
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()

        def finish() -> None:
            if not waiter.done():
                waiter.set_result(None)

        def wake_loop(_: Any) -> None:
            try:
                loop.call_soon_threadsafe(finish)
            except RuntimeError:  # the loop was closed during the wait, and no task is left
                pass

        future.add_done_callback(wake_loop)
        yield from waiter
    return future.result(0)
