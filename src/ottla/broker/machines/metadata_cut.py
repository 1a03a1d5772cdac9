"""What a copy of the metadata loses where it is cut: decisions of a controller, or nothing but that somebody led.

Of several that want to lead a new quorum one may come first by a hair, write that it leads, and have to give way before anybody has copied
that. Its log parts from the next leader's by that one record, which nobody misses.
"""

from __future__ import annotations

import logging

from ottla.broker.machines.runtime import READ_BYTES, read_slice
from ottla.records.batch import iter_headers
from ottla.storage.log import Log


def cut_level(log: Log, offset: int) -> int:
    """How loud a person is told of a cut there."""
    return logging.WARNING if holds_decisions(log, offset) else logging.INFO


def holds_decisions(log: Log, offset: int) -> bool:
    """Whether there is anything from there on that was written as metadata."""
    while (piece := log.read(offset, READ_BYTES)) is not None:
        for _, header in iter_headers(read_slice(piece)):
            if not header.is_control:
                return True
            offset = header.next_offset
    return False
