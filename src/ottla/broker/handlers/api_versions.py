"""ApiVersions: what this broker speaks."""

from __future__ import annotations

import re

from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
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
NAMED_SINCE = 3
"""From this version on clients say what software they are."""
LEVEL_0_SINCE = 4
"""From this version on clients can read of a feature that may be missing (KAFKA-17011)."""


def handle(node: BrokerNode, call: Call, request: ApiVersionsRequest | None) -> ApiVersionsResponse:
    """The table and the features; there is no request where its version could not be read."""
    if request is None:
        return unsupported_version()
    if call.version >= NAMED_SINCE and not is_named_well(request):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
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


def is_named_well(request: ApiVersionsRequest) -> bool:
    """Whether name and version of the client's software are such as Kafka takes (KIP-511)."""
    return all(map(SOFTWARE.fullmatch, (request.client_software_name, request.client_software_version)))


def unsupported_version() -> ApiVersionsResponse:
    """To a version from the future: the versions of this one API, so that the client can ask anew (KIP-511)."""
    known = DECLARED[ApiVersionsRequest.KEY]
    return ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[ApiVersion(known.key, *known.advertised)]
    )
