"""Timeouts and sizes of a quorum replica, under Kafka's names (`controller.quorum.…`)."""

from __future__ import annotations

from msgspec import Struct


class QuorumConfig(Struct, frozen=True):
    election_timeout_ms: int = 1000
    """Time to wait for a leader, or for votes, before the next attempt; a random part of up to the same length is added."""
    fetch_timeout_ms: int = 2000
    """Time that a voter waits for a response of the leader before it asks for pre-votes."""
    election_backoff_max_ms: int = 1000
    """Time that the last preferred successor of a resigned leader waits before it asks for votes."""
    request_timeout_ms: int = 2000
    """Time to wait for a response before another node is asked."""
    retry_backoff_ms: int = 20
    """Time before a node that did not respond is asked again."""
    max_wait_ms: int = 500
    """Time that the leader may hold a fetch that finds no records."""
    max_bytes: int = 8 << 20
    """The most bytes of the log in one response."""
    snapshot_bytes: int = 1 << 20
    """The most bytes of a snapshot in one response."""

    CHECK_FACTOR = 1.5
    """A leader resigns if a majority has not fetched for this many fetch timeouts: the others may have another leader by then."""
