"""A lock between processes for downloads and builds that are made once."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def one_at_a_time(what: Path) -> Iterator[None]:
    """Hold the lock of `what`. A process that waited for it checks afterwards whether `what` exists."""
    what.parent.mkdir(parents=True, exist_ok=True)
    with what.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
