"""Timeouts and sizes of a quorum replica, under Kafka's names (`controller.quorum.…`)."""

from __future__ import annotations

from msgspec import Struct


class QuorumConfig(Struct, frozen=True):
    election_timeout_ms: int = 1000
    """The time that a voter waits for a leader before it starts an election, and a candidate for votes before it starts another.

    A random part of up to the same length is added.
    """
    fetch_timeout_ms: int = 2000
    """The time that a follower waits for a response of the leader before it starts an election with a request for pre-votes.

    A leader that no majority fetches from resigns after `CHECK_FACTOR` times this time.
    """
    election_backoff_max_ms: int = 1000
    """The time that the last preferred successor of a resigned leader waits before it starts an election.

    Each earlier successor waits half as long as the one after it; the first does not wait.
    """
    request_timeout_ms: int = 2000
    """The time to wait for a response. Then a fetch is sent to another node, and any other request is sent again."""
    retry_backoff_ms: int = 20
    """After a failed request, the time before the next request to the same node."""
    max_wait_ms: int = 500
    """Time that the leader may hold a fetch that finds no records."""
    max_bytes: int = 8 << 20
    """The most bytes of the log in one response."""
    snapshot_bytes: int = 1 << 20
    """The most bytes of a snapshot in one response."""

    CHECK_FACTOR = 1.5
    """The number of fetch timeouts after which a leader resigns, if no majority of the voters has fetched from it.

    By then the other voters may have elected another leader.
    """
