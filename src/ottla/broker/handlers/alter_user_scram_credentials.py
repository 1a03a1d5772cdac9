"""AlterUserScramCredentials: give users passwords, and take them away."""

from __future__ import annotations

from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.errors import KafkaError
from ottla.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)


def handle(
    node: BrokerNode, call: Call, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    """When the answer is there the next login goes by it; who is logged in stays so."""
    try:
        results = node.passwords.alter(request.deletions, request.upsertions)
    except KafkaError as error:  # nothing was written, so nothing is changed
        names = dict.fromkeys([*(each.name for each in request.deletions), *(each.name for each in request.upsertions)])
        results = [AlterUserScramCredentialsResult(name, error.code, error.reason) for name in names]
    return AlterUserScramCredentialsResponse(results=results)
