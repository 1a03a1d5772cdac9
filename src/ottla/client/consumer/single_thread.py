"""Detect a second thread in an object for one thread."""

from __future__ import annotations

import sys
import threading

from ottla.errors import IllegalStateError, OttlaError


def is_expected(kind: type[BaseException]) -> bool:
    """Return True for an exception that leaves no operation incomplete: an error of this package, or the cancellation of a task or generator."""
    asyncio = sys.modules.get("asyncio")  # a task can be cancelled only where it is loaded
    return issubclass(kind, OttlaError | GeneratorExit) or (
        asyncio is not None and issubclass(kind, asyncio.CancelledError)
    )


class SingleThread:
    """Use `with guard:` around each public method; methods of the same thread may nest.

    Ctrl-C can interrupt between any two lines, including those of `__enter__`, before `with` can undo anything.
    Therefore there is no lock that could stay acquired. The owner is set in one atomic step (`setdefault`). After
    Ctrl-C the owner may still be set; it is the thread that was interrupted, so this thread may call `close`.
    """

    __slots__ = ("_depth", "_owner", "_what", "interrupted", "is_broken")

    def __init__(self, what: str) -> None:
        self._what = what
        self.interrupted = False
        """True after Ctrl-C interrupted a call: `close` should not wait long."""
        self.is_broken = False
        """True if an exception not raised by this package ended a call, so that an operation may be incomplete."""
        self._owner: dict[str, int] = {}
        self._depth = 0

    def __enter__(self) -> None:
        me = threading.get_ident()
        if self._owner.setdefault("thread", me) != me:
            raise IllegalStateError(
                f"a second thread called this {self._what} during a call of the first: "
                f"use it from one thread; only wakeup() may be called from another"
            )
        self._depth += 1

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and not is_expected(kind):
            self.is_broken = True
            if issubclass(kind, KeyboardInterrupt):
                self.interrupted = True
        self._depth -= 1
        if not self._depth:
            self._owner.clear()
