"""Writes that run in a thread of Spark's in this process, in a library that is no Python: a merge into a Delta table.

Such a thread must not be amid its work when the process ends: it comes back into an interpreter that is no more, and the process dies of
SIGSEGV instead of ending with the status and the sentence that it has. Where Java ends first nobody waits for them but us.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_CHANGED = threading.Condition()
_WRITING: set[int] = set()


@contextmanager
def under_way() -> Iterator[None]:
    """While it lasts, this thread writes."""
    me = threading.get_ident()
    with _CHANGED:
        _WRITING.add(me)
    try:
        yield
    finally:
        with _CHANGED:
            _WRITING.discard(me)
            _CHANGED.notify_all()


def none_under_way(seconds: float) -> bool:
    """Wait until nothing is written any more, at most for so long; whether that came."""
    with _CHANGED:
        return _CHANGED.wait_for(lambda: not _WRITING, seconds)
