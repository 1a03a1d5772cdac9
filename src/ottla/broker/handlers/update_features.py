"""UpdateFeatures: run features at other levels, all that are named or none."""

from __future__ import annotations

from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.coordination.cluster.topic_request import Refusal
from ottla.errors import KafkaError
from ottla.protocol.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

RESULTS_UNTIL = 1
"""Up to this version a success names each feature."""


def handle(node: BrokerNode, call: Call, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    """When the answer is there the levels are in force; a failure is one for all of them."""
    try:
        refusal = node.features.update(request.feature_updates, validate_only=request.validate_only)
    except KafkaError as error:
        refusal = Refusal(error.code, error.reason)
    if refusal is not None:
        return UpdateFeaturesResponse(error_code=refusal.code, error_message=str(refusal))
    results = request.feature_updates if call.version <= RESULTS_UNTIL else ()
    return UpdateFeaturesResponse(results=[UpdatableFeatureResult(update.feature) for update in results])
