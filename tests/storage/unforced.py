"""For tests of file content that need no durability: thousands of logs without flushes to the disk."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def nothing_is_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the flush in the importing module. Tests such as `test_disk_errors.py` check when the disk is flushed."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
