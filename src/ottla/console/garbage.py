"""What Python's collector need not look at again and again while a page of 10,000 topics is made."""

from __future__ import annotations

import gc

OBJECTS = 50_000
"""New ones after which it looks at the young: an answer on 10,000 topics is 30,000, of which none is garbage yet. Python's own number is 700."""
ROUNDS = 20


def spare_the_collector() -> None:
    """Call it once all is loaded that stays."""
    gc.freeze()
    gc.set_threshold(OBJECTS, ROUNDS, ROUNDS)
