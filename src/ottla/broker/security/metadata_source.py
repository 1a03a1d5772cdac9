"""The parts of the cluster's metadata that authentication and authorization of a broker use."""

from __future__ import annotations

from typing import Protocol

from ottla.coordination.cluster.metadata import ClusterMetadata


class MetadataSource(Protocol):
    """The owner of the committed metadata."""

    @property
    def machine(self) -> ClusterMetadata:
        """The present metadata; another object after a snapshot has replaced it."""
