"""The state of transactions during compaction: aborted batches, and end markers that are no longer needed.

The headers of a log are added in their order. Kafka's rules: records of aborted transactions are deleted at once, the marker of
a transaction `delete.retention.ms` after a compaction that found no more of its records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from ottla.model import Buffer
from ottla.records.batch import HEADER_BYTES, BatchHeader
from ottla.records.control import ControlType, control_type
from ottla.storage.producers.producer_state import AbortedTxn


class Ongoing:
    """An aborted transaction before its marker."""

    __slots__ = ("has_data", "transaction")

    def __init__(self, transaction: AbortedTxn) -> None:
        self.transaction = transaction
        self.has_data = False


class CleanedTransactions:
    """The transactions of a log, as far as its batches have got."""

    def __init__(self, aborted: Iterable[AbortedTxn] = ()) -> None:
        self._coming = deque(sorted(set(aborted), key=lambda entry: entry.first_offset))
        self._aborted: dict[int, Ongoing] = {}
        self._with_data: set[int] = set()
        """Producers with remaining batches of an open transaction that is not aborted."""
        self.kept: list[AbortedTxn] = []
        """Aborted transactions of which there were batches: readers of the cleaned files need to know."""

    def should_discard(self, header: BatchHeader, data: Buffer) -> bool:
        """Return True if the batch is data of an aborted transaction, or the marker of a transaction without data."""
        while self._coming and self._coming[0].first_offset <= header.last_offset:
            transaction = self._coming.popleft()
            self._aborted.setdefault(transaction.producer_id, Ongoing(transaction))
        if header.is_control:
            return self._is_marker_without_data(header, data)
        if not header.is_transactional:
            return False
        ongoing = self._aborted.get(header.producer_id)
        if ongoing is None:
            self._with_data.add(header.producer_id)
            return False
        ongoing.has_data = True
        return True

    def _is_marker_without_data(self, header: BatchHeader, data: Buffer) -> bool:
        if not header.count:
            return True  # Its marker was dropped before; the batch stayed for its producer's sake.
        match control_type(memoryview(data)[HEADER_BYTES : header.size_bytes]):
            case ControlType.ABORT:
                ongoing = self._aborted.pop(header.producer_id, None)
                if ongoing is None or not ongoing.has_data:
                    return True
                self.kept.append(ongoing.transaction)
                return False
            case ControlType.COMMIT:
                found = header.producer_id in self._with_data
                self._with_data.discard(header.producer_id)
                return not found
            case _:
                return False
