"""The settings of a mirror."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ottla.mirror.selection import Selection


@dataclass(frozen=True, kw_only=True)
class MirrorSettings:
    """Two clusters, the selection, and the options of the copy."""

    source: Mapping[str, Any]
    """Client settings for the source: `bootstrap.servers`, login."""
    target: Mapping[str, Any]
    """Client settings for the target."""
    selection: Selection = field(default_factory=Selection)
    name: str | None = None
    """The identity of this mirror in the target: its ledger is the topic `ottla.mirror.NAME`, and a second mirror of the same
    name fences the first. Default: the id of the source's cluster.
    """
    once: bool = False
    """Stop at the present ends of the partitions."""
    refresh_seconds: float = 10.0
    """The interval at which topics, partitions and configs are compared, and offsets of groups copied."""
    replication_factor: int = -1
    """The replication factor of created topics; -1 is the default of the target's brokers."""
    with_configs: bool = True
    with_groups: bool = True
    max_records: int = 20_000
    """The maximum number of records in a transaction."""
