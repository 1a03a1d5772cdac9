"""Imports without the garbage collector.

Modules consist of thousands of objects that are never freed. While they are created, the collector scans them a hundred
times without result: an eighth of a broker's import time, and more in a program with many objects.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Disable the garbage collector in the block, and restore its state afterwards."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()
