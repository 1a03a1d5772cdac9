"""Features of a cluster as an admin sees them (KIP-584). Values only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

UPGRADE_TYPES = {"UPGRADE": 1, "SAFE_DOWNGRADE": 2, "UNSAFE_DOWNGRADE": 3}
"""Kafka's names and the numbers in the protocol."""


class SupportedVersionRange(NamedTuple):
    """The levels of a feature that the responding broker supports."""

    min_version: int
    max_version: int


class FinalizedVersionRange(NamedTuple):
    """The levels of a feature that the cluster runs."""

    min_version_level: int
    max_version_level: int


class FeatureMetadata(NamedTuple):
    """The feature levels that a cluster runs, and those it supports."""

    finalized_features: Mapping[str, FinalizedVersionRange]
    finalized_features_epoch: int | None
    """The epoch of the levels; None if the broker reports none."""
    supported_features: Mapping[str, SupportedVersionRange]


class FeatureUpdate(NamedTuple):
    """The new level of a feature."""

    max_version_level: int
    """The level; 0 disables the feature."""
    upgrade_type: str = "UPGRADE"
    """UPGRADE only raises the level. SAFE_DOWNGRADE lowers it if no data is lost, UNSAFE_DOWNGRADE in any case."""
