"""Writes by native code in threads of this process that Python did not start, such as a merge into a Delta table.

Py4J runs Python callbacks in such threads. If the process ends during a write, native code returns into an interpreter
that is already finalized, and the process dies of SIGSEGV instead of ending with its status and message. Therefore the
end of the process waits for these writes: Java does not.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_CHANGED = threading.Condition()
_WRITING: set[int] = set()


@contextmanager
def native_write() -> Iterator[None]:
    """Mark this thread as writing within the block."""
    me = threading.get_ident()
    with _CHANGED:
        _WRITING.add(me)
    try:
        yield
    finally:
        with _CHANGED:
            _WRITING.discard(me)
            _CHANGED.notify_all()


def wait_for_native_writes(seconds: float) -> bool:
    """Wait until no thread is writing, for at most `seconds`; return False after that time."""
    with _CHANGED:
        return _CHANGED.wait_for(lambda: not _WRITING, seconds)
