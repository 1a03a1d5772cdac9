"""Notices a second thread in what only one may use."""

from __future__ import annotations

import sys
import threading

from ottla.errors import IllegalStateError, OttlaError


def is_expected(kind: type[BaseException]) -> bool:
    """True for an exception that leaves a call at a place made for it: of this package, or the end of a task."""
    asyncio = sys.modules.get("asyncio")  # a task can be cancelled only where it is loaded
    return issubclass(kind, OttlaError | GeneratorExit) or (
        asyncio is not None and issubclass(kind, asyncio.CancelledError)
    )


class SingleThread:
    """`with guard:` around each public method; methods of the same thread may nest.

    Ctrl-C can strike between any two lines, those of `__enter__` included, where no `with` undoes anything yet. So
    there is no lock that might stay taken: the owner is entered in one step (`setdefault`), and an owner whom Ctrl-C
    has left behind is the very thread that goes on to call `close`, which may.
    """

    __slots__ = ("_depth", "_owner", "_what", "interrupted", "is_broken")

    def __init__(self, what: str) -> None:
        self._what = what
        self.interrupted = False
        """Whether Ctrl-C ended a call: whoever pressed it wants no more long waits."""
        self.is_broken = False
        """True if an exception ended a call, other than by a raise of this package: something may be half done."""
        self._owner: dict[str, int] = {}
        self._depth = 0

    def __enter__(self) -> None:
        me = threading.get_ident()
        if self._owner.setdefault("thread", me) != me:
            raise IllegalStateError(
                f"a second thread called this {self._what} while the first was in a call: "
                f"use it from one thread; only wakeup() may come from another"
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
