"""The metadata quorum of a cluster as an admin sees it (KIP-595, KIP-853). Values only."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import NamedTuple

from ottla.kafka_id import id_of, text_of


class QuorumReplicaState(NamedTuple):
    """The progress of a voter or an observer."""

    replica_id: int
    replica_directory_id: str
    """The id in its `meta.properties`; "" if the broker does not report it."""
    log_end_offset: int
    """-1 if unknown."""
    last_fetch_timestamp: int | None
    """The time of its last fetch from the leader, in ms since 1970."""
    last_caught_up_timestamp: int | None
    """The last time at which it had caught up with the leader, in ms since 1970."""


class RaftVoterEndpoint(NamedTuple):
    """An address of a voter."""

    listener: str
    host: str
    port: int


class QuorumInfo(NamedTuple):
    """The voters, observers and the leader of the metadata quorum."""

    leader_id: int
    """-1 if there is no leader."""
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplicaState, ...]
    observers: tuple[QuorumReplicaState, ...]
    nodes: Mapping[int, tuple[RaftVoterEndpoint, ...]]
    """The addresses of the voters by node id; empty if the broker does not report them."""


def format_directory_id(directory_id: uuid.UUID) -> str:
    """Return a directory id in the form of `meta.properties`; "" for none."""
    return text_of(directory_id) if directory_id.int else ""


def parse_directory_id(text: object) -> uuid.UUID:
    """Parse a directory id. Raises ValueError if it is malformed."""
    if not isinstance(text, str):
        raise TypeError(f"voter_directory_id = {text!r}: must be text, as directory.id in the voter's meta.properties")
    try:
        return id_of(text)
    except ValueError:
        raise ValueError(
            f"voter_directory_id = {text!r}: must be 22 letters and digits, as directory.id in the voter's meta.properties"
        ) from None
