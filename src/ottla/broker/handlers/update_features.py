"""UpdateFeatures: change the finalized levels of features."""

from __future__ import annotations

from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.coordination.cluster.features import PER_FEATURE_UNTIL, results_of
from ottla.coordination.cluster.topic_request import Refusal
from ottla.errors import KafkaError
from ottla.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse


def handle(node: BrokerNode, call: Call, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    """Change the levels before the response. Supported features are changed all or none."""
    updates, is_per_feature = request.feature_updates, call.version <= PER_FEATURE_UNTIL
    try:
        answer = node.features.update(updates, validate_only=request.validate_only, is_per_feature=is_per_feature)
    except KafkaError as error:
        answer = Refusal(error.code, error.reason)
    return results_of(updates, answer, call.version)
