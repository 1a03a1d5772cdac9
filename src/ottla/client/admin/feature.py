"""Features of a cluster as an admin sees them (KIP-584).

Values only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

UPGRADE_TYPES = {"UPGRADE": 1, "SAFE_DOWNGRADE": 2, "UNSAFE_DOWNGRADE": 3}
"""Kafka's names and the protocol's numbers."""


class SupportedVersionRange(NamedTuple):
    """The levels of a feature that the broker which was asked could run."""

    min_version: int
    max_version: int


class FinalizedVersionRange(NamedTuple):
    """The levels of a feature that the whole cluster runs."""

    min_version_level: int
    max_version_level: int


class FeatureMetadata(NamedTuple):
    """What a cluster runs, and what it could."""

    finalized_features: Mapping[str, FinalizedVersionRange]
    finalized_features_epoch: int | None
    """How new the levels are; None where the broker keeps none."""
    supported_features: Mapping[str, SupportedVersionRange]


class FeatureUpdate(NamedTuple):
    """The level that a feature is to have."""

    max_version_level: int
    """0 switches it off."""
    upgrade_type: str = "UPGRADE"
    """UPGRADE goes up only; SAFE_DOWNGRADE down where nothing is lost; UNSAFE_DOWNGRADE down at any price."""
