"""The quorum that keeps a cluster's metadata, as an admin sees it (KIP-595, KIP-853).

Values only.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import NamedTuple

from ottla.kafka_id import id_of, text_of


class QuorumReplicaState(NamedTuple):
    """How far a voter or an observer has come."""

    replica_id: int
    replica_directory_id: str
    """As in its `meta.properties`; "" where the broker tells none."""
    log_end_offset: int
    """-1 where nobody knows."""
    last_fetch_timestamp: int | None
    """When it last asked the leader, in ms since 1970."""
    last_caught_up_timestamp: int | None
    """When it last had all that there was, in ms since 1970."""


class RaftVoterEndpoint(NamedTuple):
    """Where a voter is reached."""

    listener: str
    host: str
    port: int


class QuorumInfo(NamedTuple):
    """Who votes on a cluster's metadata, and who leads."""

    leader_id: int
    """-1 where nobody leads."""
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplicaState, ...]
    observers: tuple[QuorumReplicaState, ...]
    nodes: Mapping[int, tuple[RaftVoterEndpoint, ...]]
    """Where the voters are reached, by their numbers; empty where the broker tells none."""


def directory_text(directory_id: uuid.UUID) -> str:
    """An id as `meta.properties` has it; "" for none."""
    return text_of(directory_id) if directory_id.int else ""


def directory_id_of(text: object) -> uuid.UUID:
    """The id that such a text is; ValueError where it is none."""
    if not isinstance(text, str):
        raise TypeError(f"voter_directory_id = {text!r}: must be text, as directory.id in the voter's meta.properties")
    try:
        return id_of(text)
    except ValueError:
        raise ValueError(
            f"voter_directory_id = {text!r}: must be 22 letters and digits, as directory.id in the voter's meta.properties"
        ) from None
