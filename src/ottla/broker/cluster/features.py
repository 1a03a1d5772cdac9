"""The features of the cluster as clients are told them, and how their levels change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ottla.broker.machines.runtime import Runtime
from ottla.coordination.cluster.events import ClusterBegun, FeaturesRequested
from ottla.coordination.cluster.features import ALONE, FIXED, OF_A_BROKER, Levels
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.topic_request import Refusal
from ottla.protocol.messages.update_features import FeatureUpdateKey


class Features:
    """Levels of features, in the cluster's metadata."""

    def __init__(self, cluster: Runtime[ClusterMetadata], formatted: Path | None) -> None:
        """A new cluster begins with the levels of today, or with what its directory was `formatted` with; one that others control has its own."""
        self._cluster = cluster
        self._supported = OF_A_BROKER
        self._fixed = FIXED if formatted is None else {**FIXED, **ALONE}
        if formatted is not None and not cluster.machine.features:
            begin(cluster, formatted)

    @property
    def supported(self) -> Mapping[str, Levels]:
        """What this broker can run."""
        return self._supported

    @property
    def finalized(self) -> Mapping[str, int]:
        return {**self._cluster.machine.features, **self._fixed}

    @property
    def epoch(self) -> int:
        """Grows with every change: the offset of the last record of the metadata, as in Kafka."""
        return self._cluster.log.end_offset - 1

    def update(
        self, updates: Sequence[FeatureUpdateKey], *, validate_only: bool, is_per_feature: bool
    ) -> Refusal | Mapping[str, Refusal] | None:
        """Change levels; return None, the refusal of all, or those of single features."""
        answer: Refusal | Mapping[str, Refusal] | None = self._cluster.ask(
            lambda ticket: FeaturesRequested(ticket, tuple(updates), validate_only, is_per_feature)
        )
        return answer


def begin(cluster: Runtime[ClusterMetadata], directory: Path) -> None:
    """Let the log say with what the cluster begins."""
    from ottla.broker.machines.bootstrap_checkpoint import read_bootstrap

    first = read_bootstrap(directory)
    cluster.ask(lambda ticket: ClusterBegun(ticket, tuple(first)))
