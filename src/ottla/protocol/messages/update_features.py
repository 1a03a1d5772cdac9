"""UpdateFeatures: set the level of features for the whole cluster (KIP-584)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Bool, Int8, Int16, Int32, Message, String, message, since, struct


@struct
class FeatureUpdateKey:
    feature: String = ""
    max_version_level: Int16 = 0
    """Below 1 deletes the feature."""
    allow_downgrade: Bool = since(0, until=0, default=False)
    upgrade_type: Int8 = since(1, default=1)
    """1: upgrade only, 2: downgrade if no metadata is lost, 3: downgrade in any case."""


@message(key=57, versions="0-2", flexible="0+")
class UpdateFeaturesRequest(Message):
    timeout_ms: Int32 = 60_000
    feature_updates: Sequence[FeatureUpdateKey] = ()
    validate_only: Bool = since(1, default=False)


@struct
class UpdatableFeatureResult:
    feature: String = ""
    error_code: Int16 = 0
    error_message: String | None = None


@message(key=57, versions="0-2", flexible="0+")
class UpdateFeaturesResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    results: Sequence[UpdatableFeatureResult] = since(0, until=1, default=(), ignorable=True)
