"""Waiting in tests: for something to be so, never for a time to pass."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 60.0
"""Seconds: a machine that is busy may take long, and a test that fails for that says nothing about the code."""
PAUSE = 0.005


def eventually(condition: Callable[[], object], timeout: float = PATIENCE) -> None:
    """Wait until `condition()` is true."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"it did not happen within {timeout:.0f} s"
        time.sleep(PAUSE)
