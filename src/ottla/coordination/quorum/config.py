"""The quorum's patience, under Kafka's names (`controller.quorum.…`)."""

from __future__ import annotations

from msgspec import Struct


class QuorumConfig(Struct, frozen=True):
    election_timeout_ms: int = 1000
    """How long to wait for a leader, or for votes, before the next attempt; up to as much again is added by chance."""
    fetch_timeout_ms: int = 2000
    """How long a voter goes without an answer of the leader before it asks whether others would vote for it."""
    election_backoff_max_ms: int = 1000
    """How long who was named last by a leader that left waits before it asks for votes."""
    request_timeout_ms: int = 2000
    """How long to wait for an answer before another is asked."""
    retry_backoff_ms: int = 20
    """How long to leave somebody alone who did not answer."""
    max_wait_ms: int = 500
    """How long the leader may keep a fetch that finds nothing."""
    max_bytes: int = 8 << 20
    """Of the log in one answer."""
    snapshot_bytes: int = 1 << 20
    """Of a snapshot in one answer."""

    CHECK_FACTOR = 1.5
    """A leader of whom too few have fetched for so many fetch timeouts gives up: they may have another by then."""
