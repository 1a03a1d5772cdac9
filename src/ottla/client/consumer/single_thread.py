"""Notices a second thread in what only one may use."""

from __future__ import annotations

import threading

from ottla.errors import IllegalStateError


class SingleThread:
    """`with guard:` around each public method; methods of the same thread may nest."""

    __slots__ = ("_depth", "_lock", "_owner", "_what", "interrupted")

    def __init__(self, what: str) -> None:
        self._what = what
        self.interrupted = False
        """Whether Ctrl-C ended a call: whoever pressed it wants no more long waits."""
        self._lock = threading.Lock()
        self._owner = 0
        self._depth = 0

    def __enter__(self) -> None:
        me = threading.get_ident()
        if self._owner != me:
            if not self._lock.acquire(blocking=False):
                raise IllegalStateError(
                    f"a second thread called this {self._what} while the first was in a call: "
                    f"use it from one thread; only wakeup() may come from another"
                )
            self._owner = me
        self._depth += 1

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self.interrupted = True
        self._depth -= 1
        if not self._depth:
            self._owner = 0
            self._lock.release()
