"""Truncation of the metadata log: whether metadata records are lost by it, or only control records.

Several candidates may lead a new quorum in short succession. One of them may write its LeaderChange record and lose the
leadership before another node has fetched it. Its log diverges from the next leader's by that record, and truncating it is harmless.
"""

from __future__ import annotations

import logging

from ottla.broker.state_machines.log_slices import READ_BYTES, read_slice
from ottla.records.batch import iter_headers
from ottla.storage.log import Log


def cut_level(log: Log, offset: int) -> int:
    """Return WARNING if a truncation removes metadata records, else INFO."""
    return logging.WARNING if has_decisions(log, offset) else logging.INFO


def has_decisions(log: Log, offset: int) -> bool:
    """Return True if there are metadata records from `offset` on."""
    while (piece := log.read(offset, READ_BYTES)) is not None:
        for _, header in iter_headers(read_slice(piece)):
            if not header.is_control:
                return True
            offset = header.next_offset
    return False
