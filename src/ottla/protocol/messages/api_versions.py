"""ApiVersions: the APIs that a broker supports, with their versions (KIP-35, KIP-511)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Bool, Int16, Int32, Int64, Message, String, message, since, struct, tagged


@message(key=18, versions="0-5", flexible="3+")
class ApiVersionsRequest(Message):
    client_software_name: String = since(3, default="", ignorable=True)
    client_software_version: String = since(3, default="", ignorable=True)
    cluster_id: String | None = since(5, default=None, ignorable=True)
    """The cluster that the client expects; with `node_id`, or None (KIP-1242)."""
    node_id: Int32 = since(5, default=-1, ignorable=True)
    """The node that the client expects; -1 if it does not know it."""


@struct
class ApiVersion:
    """One API that the broker supports."""

    api_key: Int16 = 0
    min_version: Int16 = 0
    max_version: Int16 = 0


@struct
class SupportedFeatureKey:
    """A feature and the levels that this broker supports."""

    name: String = ""
    min_version: Int16 = 0
    max_version: Int16 = 0


@struct
class FinalizedFeatureKey:
    """A feature and the finalized level of the cluster."""

    name: String = ""
    max_version_level: Int16 = 0
    min_version_level: Int16 = 0


@message(key=18, versions="0-5", flexible="3+")
class ApiVersionsResponse(Message):
    """Its header is always v0, since the client may not know the broker's versions yet."""

    error_code: Int16 = 0
    api_keys: Sequence[ApiVersion] = ()
    throttle_time_ms: Int32 = since(1, default=0, ignorable=True)
    supported_features: Sequence[SupportedFeatureKey] = tagged(0, since=3, default=(), ignorable=True)
    finalized_features_epoch: Int64 = tagged(1, since=3, default=-1, ignorable=True)
    finalized_features: Sequence[FinalizedFeatureKey] = tagged(2, since=3, default=(), ignorable=True)
    zk_migration_ready: Bool = tagged(3, since=3, default=False, ignorable=True)
