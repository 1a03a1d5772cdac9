"""ApiVersions: the APIs and feature levels that this broker supports."""

from __future__ import annotations

import re

from ottla.broker.network_server.call import Call
from ottla.broker.node import BrokerNode
from ottla.errors import ErrorCode
from ottla.protocol.apis import DECLARED
from ottla.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
UNKNOWN_NODE = -1
NAMED_SINCE = 3
"""From this version on clients state the name and version of their software."""
CHECKED_SINCE = 5
"""From this version on clients may name the node that they expect (KIP-1242)."""
LEVEL_0_SINCE = 4
"""From this version on clients can read features with a minimum level of 0 (KAFKA-17011)."""


def handle(node: BrokerNode, call: Call, request: ApiVersionsRequest | None) -> ApiVersionsResponse:
    """Return the supported APIs and features. `request` is None if its version is not supported."""
    if request is None:
        return unsupported_version()
    if call.version >= NAMED_SINCE and not has_valid_name(request):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    if call.version >= CHECKED_SINCE and (error := expectation_error(node, request)):
        return ApiVersionsResponse(error_code=error)
    if call.version >= NAMED_SINCE:
        call.connection.software = (request.client_software_name, request.client_software_version)
    features = node.features
    return ApiVersionsResponse(
        api_keys=node.apis,
        supported_features=[
            SupportedFeatureKey(name, *levels)
            for name, levels in features.supported.items()
            if levels.first or call.version >= LEVEL_0_SINCE
        ],
        finalized_features=[FinalizedFeatureKey(name, level, level) for name, level in features.finalized.items()],
        finalized_features_epoch=features.epoch,
    )


def has_valid_name(request: ApiVersionsRequest) -> bool:
    """Return True if name and version of the client's software are valid (KIP-511)."""
    return all(map(SOFTWARE.fullmatch, (request.client_software_name, request.client_software_version)))


def expectation_error(node: BrokerNode, request: ApiVersionsRequest) -> int:
    """Return the error for a client that expects another node, such as the former user of this address (KIP-1242)."""
    if (request.cluster_id is None) != (request.node_id == UNKNOWN_NODE):
        return ErrorCode.INVALID_REQUEST
    expected = request.cluster_id, request.node_id
    is_other = request.cluster_id is not None and expected != (node.cluster_id, node.config.node_id)
    return ErrorCode.REBOOTSTRAP_REQUIRED if is_other else ErrorCode.NONE


def unsupported_version() -> ApiVersionsResponse:
    """Return the response to an unsupported version: the versions of this API only, so that the client can retry (KIP-511)."""
    known = DECLARED[ApiVersionsRequest.KEY]
    return ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[ApiVersion(known.key, *known.advertised)]
    )
