"""Turns, among processes, at what is brought from elsewhere once and then stays."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def one_at_a_time(what: Path) -> Iterator[None]:
    """Waits while another process brings `what`; then it is there, and who waited has only to look."""
    what.parent.mkdir(parents=True, exist_ok=True)
    with what.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
