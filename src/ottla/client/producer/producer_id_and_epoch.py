"""Who a producer is to the brokers."""

from __future__ import annotations

from typing import NamedTuple

LAST_EPOCH = 2**15 - 2
"""The last epoch that a producer may give itself: one more is the broker's, to fence with."""


class ProducerIdAndEpoch(NamedTuple):
    """The id that a broker gave, and which incarnation of it this is."""

    producer_id: int = -1
    epoch: int = -1

    @property
    def is_known(self) -> bool:
        """Whether there is an id yet."""
        return self.producer_id >= 0


NO_PRODUCER = ProducerIdAndEpoch()
