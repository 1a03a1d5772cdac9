"""What a controller is asked on its listener, in which versions: the quorum's own requests, how it is, and what the active controller decides.

One that could not be the active controller does not tell of what only that does, and whoever looks for one finds by ApiVersions that this is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ottla.coordination.cluster.features import OF_A_BROKER
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
"""By which rules of the quorum a node could vote."""

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
"""By which a connection shows who it is; they come before all others."""
HANDED_ON = frozenset(
    [
        "AddRaftVoter",
        "AlterClientQuotas",
        "AlterConfigs",
        "AlterPartitionReassignments",
        "AlterUserScramCredentials",
        "CreateAcls",
        "CreateDelegationToken",
        "CreatePartitions",
        "CreateTopics",
        "DeleteAcls",
        "DeleteTopics",
        "ElectLeaders",
        "ExpireDelegationToken",
        "IncrementalAlterConfigs",
        "ListPartitionReassignments",
        "RemoveRaftVoter",
        "RenewDelegationToken",
        "UnregisterBroker",
        "UpdateFeatures",
    ]
)
"""What clients ask of brokers, and brokers of the active controller for them."""
OF_BROKERS = frozenset(
    [
        "AllocateProducerIds",
        "AlterPartition",
        "AssignReplicasToDirs",
        "BrokerHeartbeat",
        "BrokerRegistration",
        "ControllerRegistration",
        "Envelope",
    ]
)
OF_ALL = OF_THE_QUORUM | OF_LOGINS
"""What each voter answers, whoever decides."""
CONTROLLER_APIS = {each.key: each for each in DECLARED.values() if each.name in OF_ALL | HANDED_ON | OF_BROKERS}
FORWARDED = {key: each for key, each in CONTROLLER_APIS.items() if each.name in HANDED_ON | {"DescribeQuorum"}}
FIRST = {"BeginQuorumEpoch": 1, "DescribeCluster": 1, "EndQuorumEpoch": 1, "Fetch": 17, "FetchSnapshot": 1, "Vote": 1}
"""Earlier versions do not say which directory is meant, or where a leader is: nobody has needed them since Kafka 3.9."""


def spoken(key: int) -> Range:
    """The versions in which an API is answered."""
    api = CONTROLLER_APIS[key]
    return Range(max(api.versions.first, FIRST.get(api.name, 0)), api.versions.last)


def api_versions(
    *, known: bool = True, decides: bool = False, finalized: Mapping[str, int] = NOTHING, offset: int = -1
) -> ApiVersionsResponse:
    """What is spoken here, and what the cluster runs as of that offset of the metadata, where that is known.

    To a version that is not `known`, so that whoever asks can ask anew (KIP-511).
    """
    if not known:
        return ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION, [ApiVersion(18, *spoken(18))])
    features = OF_A_BROKER if decides else {"kraft.version": KRAFT_VERSIONS}
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(key, spoken(key).first, min(spoken(key).last, each.advertised.last))
            for key, each in sorted(CONTROLLER_APIS.items())
            if decides or each.name in OF_ALL
        ],
        supported_features=[SupportedFeatureKey(name, *levels) for name, levels in features.items()],
        finalized_features_epoch=offset if finalized else -1,
        finalized_features=[FinalizedFeatureKey(name, level, level) for name, level in finalized.items() if level],
    )
