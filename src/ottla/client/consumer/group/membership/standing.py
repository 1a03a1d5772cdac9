"""A member's right to commit, in either protocol."""

from __future__ import annotations

from enum import Enum


class Standing(Enum):
    """The right to commit offsets, or the reason why not."""

    GOOD = "a stable member"
    REBALANCING = "rebalancing"
    OUTSIDE = "not a member"
