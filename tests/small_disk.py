"""A small file system that is soon full. Only a user with the right to mount can create it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted(place: Path, megabytes: int) -> Iterator[Path]:
    """Mount a file system of this size at this folder."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(place)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system takes root")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
