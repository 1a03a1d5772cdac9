"""What a member may do in its group at the moment, whichever protocol it speaks."""

from __future__ import annotations

from enum import Enum


class Standing(Enum):
    """Whether offsets may be committed, and what to say if not."""

    GOOD = "a member in good standing"
    REBALANCING = "on its way through a rebalance"
    OUTSIDE = "no member"
