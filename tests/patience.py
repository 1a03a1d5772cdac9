"""Tests wait for a condition, never for a fixed time."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 60.0
"""Seconds. A busy machine may need long, and a test that fails because of that proves nothing about the code."""
PAUSE = 0.005


def eventually(condition: Callable[[], object], timeout: float = PATIENCE) -> None:
    """Wait until `condition()` is true."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"it did not happen within {timeout:.0f} s"
        time.sleep(PAUSE)
