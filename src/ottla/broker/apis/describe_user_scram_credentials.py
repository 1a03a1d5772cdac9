"""DescribeUserScramCredentials: the SCRAM mechanisms and iterations of users."""

from __future__ import annotations

from collections import Counter, defaultdict

from ottla.broker.network_server.call import Call
from ottla.broker.node import BrokerNode
from ottla.errors import ErrorCode
from ottla.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


def handle(
    node: BrokerNode, call: Call, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Return a result for each requested user, or for all users."""
    known: dict[str, list[CredentialInfo]] = defaultdict(list)
    for each in sorted(node.passwords.all(), key=lambda record: (record.name, record.mechanism)):
        known[each.name].append(CredentialInfo(each.mechanism, each.iterations))
    asked = Counter(each.name for each in request.users or ())
    results = [describe_user(name, count, known) for name, count in (asked or dict.fromkeys(known, 1)).items()]
    return DescribeUserScramCredentialsResponse(results=results)


def describe_user(name: str, count: int, known: dict[str, list[CredentialInfo]]) -> DescribeUserScramCredentialsResult:
    """Return the credentials of one user, or an error."""
    if count > 1:
        message = f"{name!r} is named more than once: name each user once in a request"
        return DescribeUserScramCredentialsResult(name, ErrorCode.DUPLICATE_RESOURCE, message)
    if name not in known:
        message = f"the user {name!r} has no SCRAM password"
        return DescribeUserScramCredentialsResult(name, ErrorCode.RESOURCE_NOT_FOUND, message)
    return DescribeUserScramCredentialsResult(name, credential_infos=known[name])
