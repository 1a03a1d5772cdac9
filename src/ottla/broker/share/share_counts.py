"""Counts of what share groups do at this broker, for its metrics. They start at 0 when the broker starts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ottla.broker.network_server.bounded_names import OTHERS, BoundedNames
from ottla.coordination.share.events import ShareAcknowledgementBatch
from ottla.coordination.share.record_state import AcknowledgeType


class SharePartitionView(NamedTuple):
    """The state of one partition as one share group reads it."""

    group_id: str
    topic: str
    partition: int
    start_offset: int
    acquired_count: int
    """Records that members have acquired and not acknowledged."""
    lag: int
    """Records that are not finished, whether or not they were delivered (KIP-1226)."""
    delivery_counts: dict[int, int]
    """Delivery count → the number of records that were delivered so often and are not finished."""


class ShareCounts:
    """Counters by group. Belongs to the event loop."""

    def __init__(self) -> None:
        self._groups = BoundedNames()
        self.acquired: Counter[str] = Counter()
        """Deliveries of records: a record that is delivered twice counts twice."""
        self.expired: Counter[str] = Counter()
        """Records whose acquisition lock expired."""
        self.acknowledged: Counter[tuple[str, str]] = Counter()
        """Acknowledged records by group and type of acknowledgement."""

    def count_acquired(self, group_id: str, records: int) -> None:
        self.acquired[self._name(group_id)] += records

    def count_expired(self, group_id: str, records: int) -> None:
        if records:
            self.expired[self._name(group_id)] += records

    def count_acknowledged(self, group_id: str, batches: Sequence[ShareAcknowledgementBatch]) -> None:
        """Count the records by type of acknowledgement. Call this once the acknowledgements are persisted."""
        name = self._name(group_id)
        for batch in batches:
            if len(batch.types) == 1:
                numbers = {batch.types[0]: batch.last_offset - batch.first_offset + 1}
            else:
                numbers = Counter(batch.types)
            for number, records in numbers.items():
                self.acknowledged[name, AcknowledgeType(number).name.lower()] += records

    def _name(self, group_id: str) -> str:
        """Return the group's own name, or the common one."""
        return group_id if self._groups.admit(group_id) else OTHERS
