"""DescribeClientQuotas: the quotas that match a filter, by entity."""

from __future__ import annotations

from ottla.broker.network_server.call import Call
from ottla.broker.node import BrokerNode
from ottla.coordination.cluster.quota_request import find_matching
from ottla.coordination.cluster.topic_request import Refusal
from ottla.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)


def handle(node: BrokerNode, call: Call, request: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
    try:
        found = find_matching(node.client_quotas, request.components, strict=request.strict)
    except Refusal as refusal:
        return DescribeClientQuotasResponse(error_code=refusal.code, error_message=str(refusal), entries=None)
    return DescribeClientQuotasResponse(
        error_message=None,
        entries=[
            EntryData(
                [EntityData(kind, name) for kind, name in sorted(entity, key=str)],
                [ValueData(key, value) for key, value in sorted(values.items())],
            )
            for entity, values in found
        ],
    )
