"""Filter of the batches of aborted transactions, for `read_committed` (KIP-98).

 It receives the batches of one fetch response in order. The response lists each aborted transaction by producer id and
first offset; its batches end with the producer's abort marker.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.model import Buffer
from ottla.records.batch import HEADER_BYTES, BatchHeader
from ottla.records.control import ControlType, control_type


class AbortedTransactions:
    """The producers with a transaction, at the current position, that will be aborted."""

    def __init__(self, transactions: Iterable[tuple[int, int]]) -> None:
        """`transactions` has (producer id, first offset) of each."""
        self._coming = sorted(((first, producer) for producer, first in transactions), reverse=True)
        self._open: set[int] = set()

    def covers(self, header: BatchHeader, data: Buffer, position: int) -> bool:
        """Return True if the next batch, at `position` of `data`, belongs to an aborted transaction."""
        while self._coming and self._coming[-1][0] <= header.last_offset:
            self._open.add(self._coming.pop()[1])
        if header.is_control:
            records = memoryview(data)[position + HEADER_BYTES : position + header.size_bytes]
            if header.count and control_type(records) is ControlType.ABORT:
                self._open.discard(header.producer_id)
            return False
        return header.is_transactional and header.producer_id in self._open
