"""AlterClientQuotas: set and lift limits of users, client ids and addresses."""

from __future__ import annotations

from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.coordination.cluster.topic_request import Refusal
from ottla.errors import KafkaError
from ottla.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse, EntryData


def handle(node: BrokerNode, call: Call, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    """When the answer is there the limits are in force."""
    try:
        refusals = node.change_quotas(request.entries, validate_only=request.validate_only)
    except KafkaError as error:
        refusals = [Refusal(error.code, error.reason) for _ in request.entries]
    return AlterClientQuotasResponse(
        entries=[
            EntryData(0, None, entry.entity) if refusal is None else EntryData(refusal.code, str(refusal), entry.entity)
            for entry, refusal in zip(request.entries, refusals, strict=True)
        ]
    )
