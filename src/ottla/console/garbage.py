"""Settings of the garbage collector for responses with 10,000 topics."""

from __future__ import annotations

import gc

OBJECTS = 50_000
"""The collector's threshold for young objects: a response about 10,000 topics allocates 30,000, none of them garbage.

Python's default is 700.
"""
ROUNDS = 20


def configure_collector() -> None:
    """Exclude the loaded modules from collection, and collect less often. Call it after all imports."""
    gc.freeze()
    gc.set_threshold(OBJECTS, ROUNDS, ROUNDS)
