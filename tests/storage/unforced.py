"""For tests of what is in files, whoever looks: thousands of logs, none of which has to outlive the machine."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def nothing_is_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a file that imports this; when the disk is asked to be sure is for others to see, `test_disk_errors.py` for instance."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
