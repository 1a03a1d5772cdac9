"""Where a segment stands before an append, so that one which fails on its way can be taken back."""

from __future__ import annotations

from typing import NamedTuple


class Savepoint(NamedTuple):
    """Where a segment stands: what an append changes."""

    size: int
    bytes_since_entry: int
    max_timestamp: int
    max_timestamp_offset: int
    offsets: int
    """Entries of the index, as the next."""
    times: int
    transactions: int | None
    """None where the aborted transactions were not read: then they do not change either."""
