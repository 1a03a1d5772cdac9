"""ApiVersions: which APIs a broker speaks, in which versions (KIP-35, KIP-511)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Bool, Int16, Int32, Int64, Message, String, message, since, struct, tagged


@message(key=18, versions="0-4", flexible="3+")
class ApiVersionsRequest(Message):
    client_software_name: String = since(3, default="", ignorable=True)
    client_software_version: String = since(3, default="", ignorable=True)


@struct
class ApiVersion:
    """One API the broker speaks."""

    api_key: Int16 = 0
    min_version: Int16 = 0
    max_version: Int16 = 0


@struct
class SupportedFeatureKey:
    """A feature and the levels of it that this broker could run."""

    name: String = ""
    min_version: Int16 = 0
    max_version: Int16 = 0


@struct
class FinalizedFeatureKey:
    """A feature and the levels of it that the whole cluster runs."""

    name: String = ""
    max_version_level: Int16 = 0
    min_version_level: Int16 = 0


@message(key=18, versions="0-4", flexible="3+")
class ApiVersionsResponse(Message):
    """Its header is always v0, whatever its version: the client may not know ours yet."""

    error_code: Int16 = 0
    api_keys: Sequence[ApiVersion] = ()
    throttle_time_ms: Int32 = since(1, default=0, ignorable=True)
    supported_features: Sequence[SupportedFeatureKey] = tagged(0, since=3, default=(), ignorable=True)
    finalized_features_epoch: Int64 = tagged(1, since=3, default=-1, ignorable=True)
    finalized_features: Sequence[FinalizedFeatureKey] = tagged(2, since=3, default=(), ignorable=True)
    zk_migration_ready: Bool = tagged(3, since=3, default=False, ignorable=True)
