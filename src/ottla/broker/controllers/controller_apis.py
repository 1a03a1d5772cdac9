"""What a controller is asked on its listener, in which versions: the quorum's own requests, and how it is.

What would make it the active controller (registrations and heartbeats of brokers, topics, ISR changes) is not in here: nobody decides about that yet,
and a broker that looks for a controller finds by ApiVersions that this is none.
"""

from __future__ import annotations

from ottla.errors import ErrorCode
from ottla.protocol.apis import DECLARED
from ottla.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
    SupportedFeatureKey,
)
from ottla.protocol.schema import Range

KRAFT_VERSIONS = 0, 1
"""By which rules of the quorum a node could vote."""

CONTROLLER_APIS = {
    each.key: each
    for each in DECLARED.values()
    if each.name
    in (
        "AddRaftVoter",
        "ApiVersions",
        "BeginQuorumEpoch",
        "DescribeCluster",
        "DescribeQuorum",
        "EndQuorumEpoch",
        "Fetch",
        "FetchSnapshot",
        "RemoveRaftVoter",
        "UpdateRaftVoter",
        "Vote",
    )
}
FIRST = {"BeginQuorumEpoch": 1, "DescribeCluster": 1, "EndQuorumEpoch": 1, "Fetch": 17, "FetchSnapshot": 1, "Vote": 1}
"""Earlier versions do not say which directory is meant, or where a leader is: nobody has needed them since Kafka 3.9."""


def spoken(key: int) -> Range:
    """The versions in which an API is answered."""
    api = CONTROLLER_APIS[key]
    return Range(max(api.versions.first, FIRST.get(api.name, 0)), api.versions.last)


def api_versions(*, known: bool = True) -> ApiVersionsResponse:
    """What is spoken here; to a version that is not `known`, so that whoever asks can ask anew (KIP-511)."""
    if not known:
        return ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION, [ApiVersion(18, *spoken(18))])
    return ApiVersionsResponse(
        api_keys=[ApiVersion(key, *spoken(key)) for key in sorted(CONTROLLER_APIS)],
        supported_features=[SupportedFeatureKey("kraft.version", *KRAFT_VERSIONS)],
    )
