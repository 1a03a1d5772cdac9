"""The identity of a producer."""

from __future__ import annotations

from typing import NamedTuple

LAST_EPOCH = 2**15 - 2
"""The last epoch that a producer may use; the next one is used by the broker for fencing."""


class ProducerIdAndEpoch(NamedTuple):
    """The producer id assigned by a broker, and its epoch."""

    producer_id: int = -1
    epoch: int = -1

    @property
    def is_known(self) -> bool:
        """True if a producer id was assigned."""
        return self.producer_id >= 0


NO_PRODUCER = ProducerIdAndEpoch()
