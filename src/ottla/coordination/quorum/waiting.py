"""What is under way over more than one event: fetches that the leader keeps, a snapshot that comes in pieces."""

from __future__ import annotations

from typing import NamedTuple

from ottla.coordination.quorum.log_shape import SnapshotId
from ottla.protocol.messages.fetch import FetchRequest


class WaitingFetch(NamedTuple):
    """A fetch that is kept until there is something to say."""

    ticket: int
    request: FetchRequest
    deadline: float


class Piece(NamedTuple):
    """Of the snapshot that is being fetched, the next one."""

    snapshot: SnapshotId
    position: int
