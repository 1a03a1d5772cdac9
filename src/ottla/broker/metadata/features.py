"""The features of the cluster, as clients see them."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.broker.metadata.observed_metadata import ObservedMetadata
from ottla.coordination.cluster.features import BROKER_LEVELS, FIXED, Levels


class Features:
    """Levels of features, in the cluster's metadata."""

    def __init__(self, cluster: ObservedMetadata) -> None:
        self._cluster = cluster

    @property
    def supported(self) -> Mapping[str, Levels]:
        """The levels that this broker can run."""
        return BROKER_LEVELS

    @property
    def finalized(self) -> Mapping[str, int]:
        """The levels that the cluster runs."""
        return {**self._cluster.machine.features, **FIXED}

    @property
    def epoch(self) -> int:
        """The offset of the last record of the metadata, as in Kafka; it grows with every change."""
        return self._cluster.log.end_offset - 1
