"""The APIs of a controller's listener and their versions: those of the quorum, of brokers, and of forwarded requests.

A node that cannot become the active controller does not advertise the APIs that only an active controller serves. A client
of ApiVersions can see by this that the node is no controller.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ottla.coordination.cluster.features import BROKER_LEVELS
from ottla.errors import ErrorCode
from ottla.protocol.apis import DECLARED
from ottla.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from ottla.protocol.schema import Range

NOTHING: Mapping[str, int] = MappingProxyType({})
KRAFT_VERSIONS = 0, 1
"""The levels of `kraft.version` that this node supports."""

OF_THE_QUORUM = frozenset(
    [
        "AddRaftVoter",
        "ApiVersions",
        "BeginQuorumEpoch",
        "DescribeAcls",
        "DescribeCluster",
        "DescribeConfigs",
        "DescribeQuorum",
        "EndQuorumEpoch",
        "Fetch",
        "FetchSnapshot",
        "RemoveRaftVoter",
        "UpdateRaftVoter",
        "Vote",
    ]
)
OF_LOGINS = frozenset(["SaslAuthenticate", "SaslHandshake"])
"""The APIs by which a connection authenticates; they precede all others."""
FORWARDED = {key: each for key, each in DECLARED.items() if each.is_forwarded}
"""The requests of clients that brokers forward to the active controller."""
OF_BROKERS = frozenset(each.name for each in DECLARED.values() if each.to_controller) - OF_THE_QUORUM
"""The requests of brokers and of other controllers to the active controller."""
OF_ALL = OF_THE_QUORUM | OF_LOGINS
"""The APIs that every voter serves, also if it is not the active controller."""
CONTROLLER_APIS = {key: each for key, each in DECLARED.items() if each.is_forwarded or each.name in OF_ALL | OF_BROKERS}
FIRST = {"BeginQuorumEpoch": 1, "DescribeCluster": 1, "EndQuorumEpoch": 1, "Fetch": 17, "FetchSnapshot": 1, "Vote": 1}
"""Minimum versions. Earlier ones lack the directory id or the leader's address; Kafka has not sent them since 3.9."""


def find_versions(key: int) -> Range:
    """Return the versions of an API that this listener serves."""
    api = CONTROLLER_APIS[key]
    return Range(max(api.versions.first, FIRST.get(api.name, 0)), api.versions.last)


def api_versions(
    *, known: bool = True, decides: bool = False, finalized: Mapping[str, int] = NOTHING, offset: int = -1
) -> ApiVersionsResponse:
    """Return the APIs, and the finalized features as of `offset` of the metadata log if they are known.

    If the version of the request is not `known`, return UNSUPPORTED_VERSION, and the client repeats it in a lower
    version (KIP-511).
    """
    if not known:
        return ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION, [ApiVersion(18, *find_versions(18))])
    features = BROKER_LEVELS if decides else {"kraft.version": KRAFT_VERSIONS}
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(key, find_versions(key).first, min(find_versions(key).last, each.advertised.last))
            for key, each in sorted(CONTROLLER_APIS.items())
            if decides or each.name in OF_ALL
        ],
        supported_features=[SupportedFeatureKey(name, *levels) for name, levels in features.items()],
        finalized_features_epoch=offset if finalized else -1,
        finalized_features=[FinalizedFeatureKey(name, level, level) for name, level in finalized.items() if level],
    )
