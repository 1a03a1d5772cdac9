"""DescribeUserScramCredentials: which passwords users have, by mechanism and iterations."""

from __future__ import annotations

from collections import Counter, defaultdict

from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
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
    """A result for each user that was asked for, or for every one that there is."""
    known: dict[str, list[CredentialInfo]] = defaultdict(list)
    for each in sorted(node.passwords.all(), key=lambda record: (record.name, record.mechanism)):
        known[each.name].append(CredentialInfo(each.mechanism, each.iterations))
    asked = Counter(each.name for each in request.users or ())
    results = [described(name, count, known) for name, count in (asked or dict.fromkeys(known, 1)).items()]
    return DescribeUserScramCredentialsResponse(results=results)


def described(name: str, count: int, known: dict[str, list[CredentialInfo]]) -> DescribeUserScramCredentialsResult:
    """What is known of one user, or why that is not told."""
    if count > 1:
        message = f"{name!r} is named more than once: name each user once in a request"
        return DescribeUserScramCredentialsResult(name, ErrorCode.DUPLICATE_RESOURCE, message)
    if name not in known:
        message = f"the user {name!r} has no SCRAM password"
        return DescribeUserScramCredentialsResult(name, ErrorCode.RESOURCE_NOT_FOUND, message)
    return DescribeUserScramCredentialsResult(name, credential_infos=known[name])
