"""What a mirror is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ottla.mirror.selection import Selection


@dataclass(frozen=True, kw_only=True)
class MirrorSettings:
    """Two clusters, what is carried between them, and how."""

    source: Mapping[str, Any]
    """Settings of clients that read: `bootstrap.servers`, and how to log in."""
    target: Mapping[str, Any]
    """Settings of clients that write."""
    selection: Selection = field(default_factory=Selection)
    name: str | None = None
    """Who this mirror is to the target: its ledger is the topic `ottla.mirror.NAME`, and a second mirror of the name
    takes over from the first. Left out it is the id of the source's cluster."""
    once: bool = False
    """End where the partitions ended at the start."""
    refresh_seconds: float = 10.0
    """How often new topics, partitions and configs are looked for, and offsets of groups carried."""
    replication_factor: int = -1
    """Of topics that are made; -1: what the target's brokers say."""
    with_configs: bool = True
    with_groups: bool = True
    max_records: int = 20_000
    """How many records a transaction carries at most."""
