"""What was appended last, for whoever waited for just that: found without a search, and answered from memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.model import FileSlice

if TYPE_CHECKING:
    from ottla.storage.log import Log


def last_append(log: Log, offset: int, max_bytes: int) -> FileSlice | None:
    """The batches from `offset` to the log's end, where they are the last append and no transaction was aborted in it.

    None wherever it may be otherwise, and in all that is the matter with a log: `Log.read` and `read_committed` tell.
    """
    segment = log.segments[-1]
    size = len(segment.tail)
    if offset != segment.tail_offset or not size or size > max_bytes or segment.tail_position + size != segment.size:
        return None
    transactions = segment.transactions
    if offset < segment.own_offset or offset < log.start_offset or not transactions.believed:
        return None
    if not transactions.loaded or transactions.rows:
        return None
    try:
        return FileSlice(segment.file, segment.tail_position, size, segment.tail)
    except OSError:
        return None
